"""Graphs as drawings: Graphviz text, and a page of its own with an SVG and a table, which need no network."""

from __future__ import annotations

from collections.abc import Sequence

from fad.viz.layout import layout

_LETTER, _LINE, _PAD = 6.7, 15.0, 8.0  # of the 11-point monospace type: width, height, and the space around it
_LONGEST = 44  # letters of a box's line; the table has the whole
_COLOURS = {
    "input": ("#dbeafe", "#2563eb"), "constant": ("#f3f4f6", "#6b7280"), "output": ("#dcfce7", "#15803d"),
    "guard": ("#fef3c7", "#b45309"), "operation": ("#ffffff", "#475569"),
}  # fmt: skip
_STYLE = """
:root { color-scheme: light; }
body { font: 14px/1.45 system-ui, sans-serif; color: #1e293b; background: #ffffff; margin: 1.5rem; }
h1 { font-size: 1.15rem; margin: 0 0 .2rem; }
p { margin: .2rem 0 .8rem; color: #475569; }
.key span { border: 1px solid; border-radius: 4px; padding: 0 .5em; margin-right: .5em; font: 12px monospace; }
.drawing { overflow: auto; max-height: 78vh; border: 1px solid #e2e8f0; border-radius: 6px; padding: 10px; }
.drawing svg { display: block; margin: 0 auto; font: 11px monospace; }
h2 { font-size: 1rem; margin: 1rem 0 .2rem; }
svg a:hover rect, svg a:target rect { stroke-width: 3; }
path { fill: none; stroke: #94a3b8; }
table { border-collapse: collapse; margin-top: 1.2rem; font: 12px/1.5 monospace; }
th { text-align: left; font-family: system-ui, sans-serif; border-bottom: 2px solid #cbd5e1; }
th, td { padding: .15rem 1.2rem .15rem 0; vertical-align: top; }
td { border-bottom: 1px solid #f1f5f9; white-space: pre-wrap; overflow-wrap: break-word; }
td.number, th.number { text-align: right; white-space: nowrap; }
tr:target td { background: #fef9c3; }
td a { color: inherit; }
"""


class Node:
    """A box: what it is called, what stands in it (the first line is its head), what is said of it, and its parents."""

    __slots__ = ("name", "kind", "lines", "cells", "parents")

    def __init__(self, name: str, kind: str, lines: Sequence[str], cells: Sequence[str], parents: list[int]):
        self.name = name
        self.kind = kind
        self.lines = [short(line) for line in lines if line]
        self.cells = cells  # its row of the table
        self.parents = parents  # positions of earlier nodes

    @property
    def size(self) -> tuple[float, float]:
        return 2 * _PAD + _LETTER * max(map(len, self.lines)), 2 * _PAD - 2 + _LINE * len(self.lines)


def escape(text: str) -> str:
    import html  # its table of names is large, and import fad is quick

    return html.escape(text)


def short(text: str, most: int = _LONGEST) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def amount(n: int) -> str:
    """Return a number of bytes in words: ``'1.5 kB'``."""
    size = float(n)
    for unit in ("B", "kB", "MB"):
        if size < 1000:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:.3g} GB"


def to_dot(nodes: list[Node]) -> str:
    """Return nodes in Graphviz's language: an arrow points from an operand to its result."""
    lines = ["digraph program {", "  node [shape=box, style=filled, fontname=monospace];"]
    for i, n in enumerate(nodes):
        text = "\\n".join(line.replace("\\", "\\\\").replace('"', '\\"') for line in n.lines)
        lines.append(f'  n{i} [label="{text}", fillcolor="{_COLOURS[n.kind][0]}"];')
    for i, n in enumerate(nodes):
        lines += [f"  n{p} -> n{i};" for p in n.parents]
    return "\n".join([*lines, "}"])


def _curve(a: tuple, b: tuple, ends: bool) -> str:
    (x, y), (u, v) = a, b
    half = (v - y) / 2
    mark = ' marker-end="url(#tip)"' if ends else ""
    return f'<path d="M{x:.1f},{y:.1f} C{x:.1f},{y + half:.1f} {u:.1f},{v - half:.1f} {u:.1f},{v:.1f}"{mark}/>'


def _box(i: int, n: Node, corner: tuple[float, float]) -> str:
    (x, y), (wide, high) = corner, n.size
    fill, edge = _COLOURS[n.kind]
    look = (' font-weight="bold"', *[' fill="#475569"'] * len(n.lines))
    texts = "".join(
        f'<text x="{x + _PAD:.1f}" y="{y + _PAD + 9 + k * _LINE:.1f}"{look[k]}>{escape(line)}</text>'
        for k, line in enumerate(n.lines)
    )
    return (
        f'<a href="#row{i}" id="box{i}"><title>{escape("  ".join(filter(None, n.cells)))}</title>'
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{wide:.1f}" height="{high:.1f}" rx="4" fill="{fill}" stroke="{edge}"/>'
        f"{texts}</a>"
    )


def svg(nodes: list[Node]) -> str:
    """Return the drawing; an operand too far up for a line is named above the box that takes it."""
    found = layout([n.size for n in nodes], [n.parents for n in nodes])
    parts = [_curve(*line) for line in found.lines]
    parts += [_box(i, n, corner) for i, (n, corner) in enumerate(zip(nodes, found.corners, strict=True))]
    far: dict[int, list[str]] = {}
    for p, child in found.far:
        far.setdefault(child, []).append(nodes[p].name)
    for child, names in far.items():
        x, y = found.corners[child]
        parts.append(f'<text x="{x + 2:.1f}" y="{y - 4:.1f}" fill="#7c3aed">↑ {escape(", ".join(names))}</text>')
    wide, high = found.size
    first = found.corners[0][0] + nodes[0].size[0] / 2
    tip = (
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path d="M0,0 L8,4 L0,8 z" style="fill:#94a3b8;stroke:none"/></marker></defs>'
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" data-start="{first:.0f}" width="{wide + 4:.0f}" '
        f'height="{high + 20:.0f}" viewBox="-2 -16 {wide + 4:.0f} {high + 20:.0f}">{tip}{"".join(parts)}</svg>'
    )


def _key(nodes: list[Node], far: bool) -> str:
    kinds = dict.fromkeys(n.kind for n in nodes)
    boxes = "".join(
        f'<span style="background:{_COLOURS[k][0]};border-color:{_COLOURS[k][1]}">{k}</span>' for k in kinds
    )
    return boxes + ("<small>↑ name: an operand from far above</small>" if far else "")


# A wide drawing opens at its first box.
_SCRIPT = """
const frame = document.querySelector(".drawing"), drawn = frame.querySelector("svg");
if (drawn) frame.scrollLeft = drawn.dataset.start - frame.clientWidth / 2;
"""


def page(title: str, summary: str, nodes: list[Node], head: Sequence[str], chart: str = "") -> str:
    """Return a page that shows nodes, each after its parents, as a drawing and as a table; it needs no network.

    A chart, if there is one, stands between them.
    """
    picture = svg(nodes) if nodes else "<p>(empty)</p>"
    numeric = [h == "bytes" for h in head]
    mark = lambda k: ' class="number"' if numeric[k] else ""
    titles = "".join(f"<th{mark(k)}>{escape(h)}</th>" for k, h in enumerate(head))
    rows = []
    for i, n in enumerate(nodes):
        cells = [escape(c) for c in n.cells]
        cells[0] = f'<a href="#box{i}">{cells[0]}</a>'
        rows.append(f'<tr id="row{i}">' + "".join(f"<td{mark(k)}>{c}</td>" for k, c in enumerate(cells)) + "</tr>")
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f"<style>{_STYLE}</style></head><body><h1>{escape(title)}</h1><p>{escape(summary)}</p>"
        f'<p class="key">{_key(nodes, "↑" in picture)}</p><div class="drawing">{picture}</div>{chart}'
        f"<table><thead><tr>{titles}</tr></thead><tbody>{''.join(rows)}</tbody></table><script>{_SCRIPT}</script></body></html>\n"
    )


def frame(page: str) -> str:
    """Return a page as a part of another one, such as a notebook, whose styles and names it must not touch."""
    return f'<iframe srcdoc="{escape(page)}" width="100%" height="640" style="border:none"></iframe>'
