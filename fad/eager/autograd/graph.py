"""Pictures of a graph: the nodes behind a tensor as a list, in the DOT language, and as a page with a drawing."""

from __future__ import annotations

from typing import Any

from fad.core import drawing
from fad.eager.node import Node, node_of
from fad.eager.records import BIRTH


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


def _label(node: Node) -> str:
    if node.name() != "AccumulateGrad":
        return node.name()
    leaf = node.variable
    return "AccumulateGrad" if leaf is None else f"leaf {tuple(leaf.shape)}"


def _parents(found: list[Node]) -> list[list[int]]:
    place = {node._record[BIRTH]: i for i, node in enumerate(found)}
    return [[place[n._record[BIRTH]] for n, _ in node.next_functions if n is not None] for node in found]


def to_dot(tensor: Any) -> str:
    """Return the graph behind a tensor in the DOT language: an arrow points from an operand to its result.

    >>> import fad.eager as torch
    >>> x = torch.ones(3, requires_grad=True)
    >>> print(to_dot(2 * x))
    digraph {
      n0 [label="MulBackward0"];
      n1 [label="leaf (3,)", shape=box];
      n1 -> n0;
    }
    """
    found = nodes(tensor)
    lines = []
    for i, node in enumerate(found):
        shape = ", shape=box" if node.name() == "AccumulateGrad" else ""
        lines.append(f'  n{i} [label="{_label(node)}"{shape}];')
    for i, parents in enumerate(_parents(found)):
        lines += [f"  n{p} -> n{i};" for p in parents]
    return "\n".join(["digraph {", *lines, "}"])


def to_html(tensor: Any) -> str:
    """Return a page that draws the graph behind a tensor, with the user's lines below; it needs no network."""
    found = nodes(tensor)[::-1]
    drawn = [
        drawing.Node(f"n{i}", "input" if n.name() == "AccumulateGrad" else "operation", _label(n), n.line, parents)
        for i, (n, parents) in enumerate(zip(found, _parents(found), strict=True))
    ]
    return drawing.page(drawn, "\n".join(f"{_label(n)}  {n.line}" for n in found))
