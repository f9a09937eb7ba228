"""The table of GradBench in docs/benchmarks.md as a picture, docs/gradbench.svg: times as multiples of fad's.

    python benchmarks/gradbench_picture.py

`benchmarks/gradbench.py --write` draws it too. The figures are read from the page: picture and page cannot differ.
"""

from __future__ import annotations

from jit_picture import DOCS, number, plt, tables

MARKS = {
    "C++ by hand": ("o", "#d55e00"), "Tapenade": ("v", "#e69f00"), "CoDiPack": ("D", "#009e73"),
    "differences": ("x", "#999999"), "JAX": ("s", "#0072b2"), "PyTorch": ("^", "#cc79a7"),
}  # fmt: skip


def time_in(cell: str) -> float | None:
    """Return the milliseconds in a cell, or None where a tool was stopped, fails or has no program."""
    return None if cell.startswith(">") else number(cell)


def draw(page: str):
    """Return the figure of the table with Tapenade's column, which is GradBench's."""
    rows = next(table for table in tables(page) if "Tapenade" in next(iter(table.values())))
    measured = {name: cells for name, cells in rows.items() if time_in(cells["fad"])}
    figure, axes = plt.subplots(figsize=(8, 0.26 * len(measured) + 1.4), layout="constrained")
    for column, (marker, colour) in MARKS.items():
        points = []
        for k, cells in enumerate(measured.values()):
            if (value := time_in(cells[column])) is not None:
                points.append((value / time_in(cells["fad"]), k))
        if points:
            axes.plot(*zip(*points, strict=True), marker, color=colour, markersize=5, linestyle="", label=column)
    axes.axvline(1.0, color="#000000", linewidth=1, zorder=0)
    axes.set_yticks(range(len(measured)), list(measured), fontsize=8)
    axes.set_ylim(len(measured) - 0.5, -0.5)
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter("{x:g}")
    axes.set_xlabel("time of a gradient as a multiple of fad's (to the right: slower than fad)")
    axes.grid(True, axis="x", color="#dddddd")
    axes.set_axisbelow(True)
    figure.legend(loc="outside upper center", ncols=len(MARKS), frameon=False, fontsize=8)
    return figure


def write() -> None:
    """Draw the table of the page as it is now."""
    plt.rcParams["svg.hashsalt"] = "fad"  # the same figures give the same file
    figure = draw((DOCS / "benchmarks.md").read_text(encoding="utf-8"))
    figure.savefig(DOCS / "gradbench.svg", metadata={"Date": None})
    plt.close(figure)


if __name__ == "__main__":
    write()
