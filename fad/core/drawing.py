"""Graphs as drawings: Graphviz text, and a page of its own with an SVG."""

from __future__ import annotations

import html
from typing import Any

_WIDE, _HIGH, _GAP_X, _GAP_Y = 150, 34, 20, 36
_FILL = {"input": "#dbeafe", "constant": "#f3f4f6", "output": "#dcfce7", "guard": "#fef3c7", "operation": "#ffffff"}


class Node:
    __slots__ = ("name", "kind", "label", "detail", "parents")

    def __init__(self, name: str, kind: str, label: str, detail: str, parents: list):
        self.name = name
        self.kind = kind
        self.label = label
        self.detail = detail
        self.parents = parents  # positions of earlier nodes


def _nodes(graph: Any, named: dict[int, str]) -> list[Node]:
    found: list[Node] = []
    place: dict[int, int] = {}

    def put(kind: str, label: str, detail: str, ins: Any, outs: Any) -> None:
        found.append(Node(f"n{len(found)}", kind, label, detail, [place[i] for i in ins if i in place]))
        place.update(dict.fromkeys(outs, len(found) - 1))

    for i in graph.inputs:
        put("input", named[i], str(graph.types[i]), (), (i,))
    for i, c in graph.constants.items():
        if getattr(c, "size", 1) > 1:
            put("constant", named[i], str(graph.types[i]), (), (i,))
    for eq in graph.equations:
        kind = "guard" if eq.prim.name == "guard" else "operation"
        small = [named[i] for i in eq.ins if i not in place]
        label = eq.prim.name + (f" {' '.join(small)}" if small else "")
        put(kind, label, ", ".join(f"{named[o]}: {graph.types[o]}" for o in eq.outs), eq.ins, eq.outs)
    for k, i in enumerate(graph.outputs):
        if i in place:
            put("output", f"output {k}", str(graph.types[i]), (i,), ())
    return found


def to_dot(graph: Any, named: dict[int, str]) -> str:
    lines = ["digraph program {", "  node [shape=box, style=filled, fontname=monospace];"]
    nodes = _nodes(graph, named)
    for n in nodes:
        text = f"{n.label}\\n{n.detail}".replace('"', '\\"')
        lines.append(f'  {n.name} [label="{text}", fillcolor="{_FILL[n.kind]}"];')
    for n in nodes:
        lines += [f"  {nodes[p].name} -> {n.name};" for p in n.parents]
    return "\n".join([*lines, "}"])


def _places(nodes: list[Node]) -> list[tuple[int, int]]:
    """Put each node one level below its lowest parent, and side by side within a level."""
    level: list[int] = []
    width: dict[int, int] = {}
    places = []
    for n in nodes:
        mine = 1 + max((level[p] for p in n.parents), default=-1)
        level.append(mine)
        column = width.get(mine, 0)
        width[mine] = column + 1
        places.append((10 + column * (_WIDE + _GAP_X), 10 + mine * (_HIGH + _GAP_Y)))
    return places


def _svg(nodes: list[Node]) -> str:
    places = _places(nodes)
    parts = []
    for n, (x, y) in zip(nodes, places, strict=True):
        for p in n.parents:
            a, b = places[p]
            parts.append(
                f'<path d="M{a + _WIDE // 2},{b + _HIGH} C{a + _WIDE // 2},{b + _HIGH + 20} '
                f'{x + _WIDE // 2},{y - 20} {x + _WIDE // 2},{y}" fill="none" stroke="#94a3b8"/>'
            )
    for n, (x, y) in zip(nodes, places, strict=True):
        parts.append(
            f"<g><title>{html.escape(n.label)} {html.escape(n.detail)}</title>"
            f'<rect x="{x}" y="{y}" width="{_WIDE}" height="{_HIGH}" rx="4" fill="{_FILL[n.kind]}" stroke="#475569"/>'
            f'<text x="{x + 6}" y="{y + 14}">{html.escape(n.label[:22])}</text>'
            f'<text x="{x + 6}" y="{y + 28}" fill="#64748b">{html.escape(n.detail[:22])}</text></g>'
        )
    wide = max((x for x, _ in places), default=0) + _WIDE + 10
    high = max((y for _, y in places), default=0) + _HIGH + 10
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{wide}" height="{high}" '
        f'font-family="monospace" font-size="11">{"".join(parts)}</svg>'
    )


def page(nodes: list[Node], text: str) -> str:
    """Return a page that shows nodes, each after its parents, as a drawing, and a text below; it needs no network."""
    return (
        "<!DOCTYPE html>\n<html><head><meta charset='utf-8'><title>fad graph</title></head><body>"
        f"<div style='overflow:auto'>{_svg(nodes)}</div><pre>{html.escape(text)}</pre></body></html>"
    )


def to_html(graph: Any, named: dict[int, str]) -> str:
    return page(_nodes(graph, named), str(graph))
