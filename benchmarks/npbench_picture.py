"""The table of NPBench in docs/benchmarks.md as a picture, docs/npbench.svg: each program's gradient beside its run.

    python benchmarks/npbench_picture.py

`benchmarks/npbench.py --write` draws it too. The figures are read from the page: picture and page cannot differ.
"""

from __future__ import annotations

from jit_picture import DOCS, number, plt, tables

MARKS = {
    "fad jit": ("o", "#000000"), "fad": ("o", "#999999"), "JAX jit": ("s", "#0072b2"),
    "Numba, no gradient": ("x", "#d55e00"),
}  # fmt: skip


def draw(page: str):
    """Return the figure of the page's last table."""
    rows = tables(page)[-1]
    order = sorted(rows, key=lambda name: number(rows[name]["fad jit"]) or 1e9)
    figure, axes = plt.subplots(figsize=(8, 0.2 * len(rows) + 1.2), layout="constrained")
    for column, (marker, colour) in MARKS.items():
        known = [(number(rows[name][column]), k) for k, name in enumerate(order)]
        points = [(max(value, 1e-3), k) for value, k in known if value is not None]
        axes.plot(*zip(*points, strict=True), marker, color=colour, markersize=4.5, linestyle="", label=column)
    axes.axvline(1.0, color="#bbbbbb", linewidth=1, zorder=0)
    axes.set_yticks(range(len(order)), order, fontsize=8)
    axes.set_ylim(len(order) - 0.5, -0.5)
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter("{x:g}")
    axes.set_xlabel("value and gradient as a multiple of the plain NumPy run (to the left: faster)")
    axes.grid(True, axis="x", color="#dddddd")
    axes.set_axisbelow(True)
    axes.legend(loc="lower right", frameon=False, fontsize=8)
    return figure


def write() -> None:
    """Draw the table of the page as it is now."""
    plt.rcParams["svg.hashsalt"] = "fad"  # the same figures give the same file
    figure = draw((DOCS / "benchmarks.md").read_text(encoding="utf-8"))
    figure.savefig(DOCS / "npbench.svg", metadata={"Date": None})
    plt.close(figure)


if __name__ == "__main__":
    write()
