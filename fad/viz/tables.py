"""Tables and charts as parts of a notebook: HTML whose colours are those of the page around it, dark or light."""

from __future__ import annotations

import re
from collections.abc import Sequence

from fad.viz.drawing import escape

_BAR = "rgba(59,130,246,0.28)"
_CELL = "padding:2px 12px 2px 4px;text-align:{};white-space:{};vertical-align:top;font-family:monospace;font-size:12px"
_FOLDERS = re.compile(r"^(?:[A-Za-z]:)?[^:]*[/\\](?=[^/\\:]+:\d+)")
COLOURS = {"forward": "#3b82f6", "backward": "#f97316", "block": "#94a3b8"}


def table(
    head: Sequence[str], rows: Sequence[Sequence[str]], text: Sequence[str], shares: Sequence[float] = ()
) -> str:
    """Return a table: the columns named in `text` set to the left, behind row i's first cell a bar of ``shares[i]``."""
    sides = ["left" if h in text else "right" for h in head]
    titles = "".join(
        f'<th style="{_CELL.format(side, "nowrap")};border-bottom:1px solid">{escape(h)}</th>'
        for h, side in zip(head, sides, strict=True)
    )
    lines = []
    for i, row in enumerate(rows):
        cells = []
        for k, (cell, side) in enumerate(zip(row, sides, strict=True)):
            bar = ""
            if k == 0 and shares:
                percent = 100 * min(max(shares[i], 0.0), 1.0)
                bar = f";background:linear-gradient(90deg,{_BAR} {percent:.1f}%,transparent {percent:.1f}%)"
            wrap = "pre-wrap" if side == "left" and k else "nowrap"
            cells.append(f'<td style="{_CELL.format(side, wrap)}{bar}">{escape(cell)}</td>')
        lines.append(f"<tr>{''.join(cells)}</tr>")
    return (
        '<div style="overflow-x:auto"><table style="border-collapse:collapse;margin:4px 0">'
        f"<thead><tr>{titles}</tr></thead><tbody>{''.join(lines)}</tbody></table></div>"
    )


def without_folder(place: str) -> str:
    """Return ``'file.py:3: the line'`` of the same with the file's folders, which take the line's width."""
    return _FOLDERS.sub("", place, count=1)


def paragraph(text: str) -> str:
    return f'<p style="margin:4px 0">{escape(text)}</p>'


def fold_part(title: str, body: str) -> str:
    """Return a part of a page that opens on a click."""
    return f"<details><summary>{escape(title)}</summary>{body}</details>"
