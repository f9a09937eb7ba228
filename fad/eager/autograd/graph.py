"""Pictures of a graph: the nodes behind a tensor, as lines of text and in the DOT language."""

from __future__ import annotations

from typing import Any

from fad.eager.node import Node, node_of


def nodes(tensor: Any) -> list[Node]:
    """Return the nodes behind a tensor, each once, the tensor's own first."""
    if tensor.node is None:
        return []
    found, waiting, seen = [], [node_of(tensor.node)], set()
    while waiting:
        node = waiting.pop(0)
        if id(node._record) in seen:
            continue
        seen.add(id(node._record))
        found.append(node)
        waiting += [n for n, _ in node.next_functions if n is not None]
    return found


def _label(node: Node) -> str:
    if node.name() != "AccumulateGrad":
        return node.name()
    leaf = node.variable
    return "AccumulateGrad" if leaf is None else f"leaf {tuple(leaf.shape)}"


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
    number = {id(n._record): i for i, n in enumerate(found)}
    lines = []
    for i, node in enumerate(found):
        shape = ", shape=box" if node.name() == "AccumulateGrad" else ""
        lines.append(f'  n{i} [label="{_label(node)}"{shape}];')
    for i, node in enumerate(found):
        lines += [f"  n{number[id(n._record)]} -> n{i};" for n, _ in node.next_functions if n is not None]
    return "\n".join(["digraph {", *lines, "}"])
