"""Pictures of a graph: the nodes behind a tensor as a list, in the DOT language, and as a page with a drawing."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from fad.eager.core.node import Node, node_of
from fad.eager.core.records import BIRTH, find_saved_in
from fad.eager.unsupported import explain_missing
from fad.viz import drawing

__getattr__ = explain_missing("torch.autograd.graph", globals())


def nodes(tensor: Any) -> list[Node]:
    """Return the nodes behind a tensor, each once, the youngest (the tensor's own) first."""
    if tensor.node is None:
        return []
    found, waiting = {}, [node_of(tensor.node)]
    while waiting:
        node = waiting.pop()
        if node._record[BIRTH] not in found:
            found[node._record[BIRTH]] = node
            waiting += [n for n, _ in node.next_functions if n is not None]
    return [found[birth] for birth in sorted(found, reverse=True)]


def _draw(tensor: Any) -> list[drawing.Node]:
    """Return the boxes of a drawing, leaves first."""
    found = nodes(tensor)[::-1]
    place = {node._record[BIRTH]: i for i, node in enumerate(found)}
    boxes = []
    for i, node in enumerate(found):
        kind, what = _describe(node)
        parents = [place[n._record[BIRTH]] for n, _ in node.next_functions if n is not None]
        name, _, text = node.line.partition(": ")
        cells = (str(i), node.name(), what, ", ".join(map(str, parents)), node.line)
        boxes.append(
            drawing.Node(str(i), kind, (node.name(), what, f"{os.path.basename(name)}: {text}"), cells, parents)
        )
    return boxes


def _describe(node: Node) -> tuple[str, str]:
    """Return the kind of a node's box, and of a leaf the shape, dtype and bytes, of another what it keeps."""
    if node.name() == "AccumulateGrad":
        leaf = node.variable
        if leaf is None:
            return "input", "(a leaf that no longer exists)"
        return "input", f"leaf {tuple(leaf.shape)} {leaf.dtype} ({drawing.amount(leaf.value.nbytes)})"
    kept = [x for x in find_saved_in(node._record) if type(x) is np.ndarray]
    shapes = ", ".join(str(x.shape) for x in kept)
    return "operation", f"keeps {shapes} ({drawing.amount(sum(x.nbytes for x in kept))})" if kept else "keeps nothing"


def to_dot(tensor: Any) -> str:
    """Return the graph behind a tensor in the DOT language: an arrow points from an operand to its result.

    >>> import fad.eager as torch
    >>> x = torch.ones(3, requires_grad=True)
    >>> "n0 -> n1;" in to_dot(2 * x)
    True
    """
    return drawing.to_dot(_draw(tensor))


def to_html(tensor: Any) -> str:
    """Return a page that draws the graph behind a tensor, with what each node keeps and the user's lines."""
    boxes = _draw(tensor)
    leaves = sum(n.kind == "input" for n in boxes)
    summary = (
        f"operations: {len(boxes) - leaves}; leaves: {leaves}; backward goes through them from the last to the first"
    )
    return drawing.page("fad.eager graph", summary, boxes, ("node", "name", "keeps", "operands", "line"))
