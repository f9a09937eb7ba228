"""The tables of docs/benchmarks.md as a picture, docs/benchmarks.svg: run times beside fad's, and warm-ups.

    python benchmarks/jit_picture.py

`benchmarks/jit.py --write` draws it too. The figures are read from the page, so that picture and page cannot differ.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt

DOCS = Path(__file__).parent.parent / "docs"
# Colours that people who see few of them still tell apart, and a mark of its own for each.
MARKS = {
    "fad jit": ("o", "#000000"), "fad": ("o", "#999999"), "JAX jit": ("s", "#0072b2"), "PyTorch": ("^", "#d55e00"),
    "torch.compile": ("v", "#e69f00"), "autograd": ("D", "#009e73"),
}  # fmt: skip
STOPPED = ">"


def tables(page: str) -> list[dict[str, dict[str, str]]]:
    """Return the tables of a page in their order: row -> column -> what stands there."""
    found: list[dict[str, dict[str, str]]] = []
    head: list[str] = []
    for line in page.splitlines():
        cells = [c.strip() for c in line.strip("|").split("|")] if line.startswith("|") else []
        if not cells:
            head = []
        elif not head:
            head = cells
            found.append({})
        elif not cells[0].startswith("--"):
            found[-1][cells[0]] = dict(zip(head[1:], cells[1:], strict=True))
    return found


def number(cell: str) -> float | None:
    """Return what a cell says in figures, for a library that was stopped the time after which it was."""
    try:
        return float(cell.strip("> s"))
    except ValueError:
        return None


def scatter(axes, rows: dict, library: str, beside: str | None = None, floor: float = 0.0) -> None:
    """Mark a library's figures, hollow where it was stopped, as multiples of those of another if one is given."""
    marker, colour = MARKS[library]
    for y, cells in enumerate(rows.values()):
        value = number(cells[library])
        if value is None:
            continue
        unit = number(cells[beside]) if beside else 1.0
        fill = "white" if cells[library].startswith(STOPPED) else colour
        axes.plot(max(value, floor) / unit, y, marker, color=colour, markerfacecolor=fill, markersize=5.5)


def draw(page: str):
    """Return the figure of the page's first two tables: run times and warm-ups."""
    runs, warm = tables(page)[:2]
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 0.36 * len(runs) + 1.4), sharey=True, layout="constrained")
    for library in MARKS:
        scatter(left, runs, library, beside="fad jit")
        if library not in ("fad", "PyTorch", "autograd"):  # these compile nothing
            scatter(right, warm, library, floor=0.01)
    left.set_yticks(range(len(runs)), list(runs))
    left.invert_yaxis()
    left.set_xlabel("run time as a multiple of fad jit's (to the right: slower)")
    right.set_xlabel("warm-up in seconds (hollow: stopped there)")
    for axes in (left, right):
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter("{x:g}")
        axes.grid(True, axis="x", color="#dddddd")
        axes.set_axisbelow(True)
    left.axvline(1.0, color="#bbbbbb", linewidth=1, zorder=0)
    handles = [plt.Line2D([], [], linestyle="", marker=m, color=c, label=k) for k, (m, c) in MARKS.items()]
    figure.legend(handles=handles, loc="outside upper center", ncols=len(MARKS), frameon=False)
    return figure


def write() -> None:
    """Draw docs/benchmarks.svg from docs/benchmarks.md."""
    matplotlib.rcParams["svg.hashsalt"] = "fad"  # the same figures give the same file
    matplotlib.rcParams["svg.fonttype"] = "none"
    figure = draw((DOCS / "benchmarks.md").read_text(encoding="utf-8"))
    figure.savefig(DOCS / "benchmarks.svg", metadata={"Date": None})
    plt.close(figure)


if __name__ == "__main__":
    write()
