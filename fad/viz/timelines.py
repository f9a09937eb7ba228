"""Charts over time as SVG: calls inside calls, and the memory that a program holds from operation to operation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from fad.viz.drawing import amount, escape
from fad.viz.tables import COLOURS

WIDE = 900.0
_ROW, _LEAST = 18.0, 0.4  # the height of a row of calls, and the narrowest call that is drawn
_HIGH, _TOP = 150.0, 18.0
_MOST = 3000  # calls that are drawn, the longest
_LETTER = 6.6


class Span(NamedTuple):
    """A call: when it began and ended, how deep it lies in others, and what a pointer over it reads."""

    start: float
    end: float
    depth: int
    kind: str
    name: str
    says: str


def _frame(high: float, body: str) -> str:
    return (
        f'<div style="overflow-x:auto"><svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDE:.0f} {high:.0f}" '
        f'style="width:100%;min-width:480px;height:auto;font:11px monospace" role="img">{body}</svg></div>'
    )


def calls(spans: Sequence[Span]) -> str:
    """Return a chart of calls over time, those that others made below them; the unit of time does not matter."""
    first, last = min(s.start for s in spans), max(s.end for s in spans)
    scale = WIDE / max(last - first, 1e-12)
    parts = []
    for s in sorted(spans, key=lambda s: s.start - s.end)[:_MOST]:
        x, wide = (s.start - first) * scale, (s.end - s.start) * scale
        if wide < _LEAST:
            continue
        y = s.depth * _ROW
        label = s.name[: max(int((wide - 6) / _LETTER), 0)]
        text = f'<text x="{x + 3:.1f}" y="{y + 13:.1f}" fill="#000">{escape(label)}</text>' if len(label) > 2 else ""
        parts.append(
            f'<g><title>{escape(s.says)}</title><rect x="{x:.1f}" y="{y:.1f}" width="{wide:.1f}" '
            f'height="{_ROW - 2:.0f}" fill="{COLOURS[s.kind]}"/>{text}</g>'
        )
    return _frame((1 + max(s.depth for s in spans)) * _ROW, "".join(parts))


def memory(sizes: Sequence[int], says: Sequence[str]) -> str:
    """Return a chart of the bytes held while each operation runs, one step each; ``says[k]`` is read over step k."""
    most = max(sizes)
    wide = WIDE / len(sizes)
    level = lambda n: _TOP + _HIGH * (1 - n / max(most, 1))
    parts = []
    for k, (size, text) in enumerate(zip(sizes, says, strict=True)):
        x, y = k * wide, level(size)
        parts.append(
            f'<g><title>{escape(f"{amount(size)}  {text}")}</title>'
            f'<rect x="{x:.2f}" y="{_TOP:.1f}" width="{wide:.2f}" height="{_HIGH:.1f}" fill="transparent"/>'
            f'<rect x="{x:.2f}" y="{y:.1f}" width="{wide:.2f}" height="{_TOP + _HIGH - y:.1f}" '
            f'fill="{COLOURS["backward" if size == most else "forward"]}"/></g>'
        )
    peak = list(sizes).index(most)
    middle = (peak + 0.5) * wide
    anchor = "start" if middle < WIDE / 3 else "end" if middle > 2 * WIDE / 3 else "middle"
    title = escape(f"{amount(most)}  {says[peak]}"[:100])
    parts.append(f'<text x="{middle:.1f}" y="12" text-anchor="{anchor}" fill="currentColor">{title}</text>')
    return _frame(_TOP + _HIGH, "".join(parts))
