"""Sparse Jacobians beside dense ones; with ``--write`` the table and the picture of docs/sparse.md are rewritten."""

from __future__ import annotations

import argparse
import pathlib
import re
import time

import numpy as np

import fad
from fad.sparse.colouring import planned

DOCS = pathlib.Path(__file__).parents[1] / "docs"
SIZES = (100, 1_000, 10_000, 100_000)


def residual(u):
    h = 1.0 / (u.size + 1)
    wide = np.pad(u, 1)
    return wide[2:] - 2 * u + wide[:-2] - h**2 * np.exp(u)


def milliseconds(run, rounds: int = 7) -> float:
    """Return the median time of a call."""
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return 1e3 * float(np.median(times))


def row(n: int) -> str:
    u = np.zeros(n)
    jacobian = fad.sparse.jacobian(residual)
    compiled = fad.jit(jacobian)
    jacobian(u), compiled(u)
    dense = f"{milliseconds(lambda: fad.jacobian(residual)(u), 3):.3g}" if n <= 3_000 else "–"
    cells = [
        milliseconds(lambda: fad.sparse.jacobian(residual)(u)),
        milliseconds(lambda: jacobian(u)),
        milliseconds(lambda: compiled(u)),
        milliseconds(lambda: residual(u)),
    ]
    return f"| {n} | {dense} | " + " | ".join([f"{c:.3g}" for c in cells]) + " |"


def on_grid(u):
    around = np.pad(u, 1)
    around = around[2:, 1:-1] + around[:-2, 1:-1] + around[1:-1, 2:] + around[1:-1, :-2]
    return around - 4 * u + u**3


def picture(path: pathlib.Path) -> None:
    """Draw the places of a Jacobian, coloured by the pass that they come from, and the products that are computed."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    u = np.zeros((6, 6))
    pattern = fad.sparse.pattern(on_grid)(u)
    plan = planned(pattern, "fwd")
    rows, columns = plan.places
    colours = plan.pushed[columns]
    shades = plt.get_cmap("tab10")
    figure, (left, right) = plt.subplots(1, 2, figsize=(8.4, 4.6), width_ratios=(36, 8), layout="constrained")
    left.scatter(columns, rows, c=shades(colours), marker="s", s=34)
    right.scatter(colours, rows, c=shades(colours), marker="s", s=34)
    for axes, width, title in ((left, 36, f"{pattern.nnz} places in 36 columns"),
                               (right, plan.pushes, f"{plan.pushes} passes")):  # fmt: skip
        axes.set(xlim=(-0.8, width - 0.2), ylim=(35.8, -0.8), title=title, aspect="equal", xticks=[], yticks=[])
    left.set(xlabel="input: a grid of 6 by 6", ylabel="output")
    right.set(xlabel="products")
    figure.savefig(path, metadata={"Date": None})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="put the table and the picture into docs")
    write = parser.parse_args().write
    rows = [row(n) for n in SIZES]
    print("| n | dense | first call | later calls | with fad.jit | the function |", *rows, sep="\n")
    if write:
        page = DOCS / "sparse.md"
        table = "\n".join(rows) + "\n"
        text = re.sub(r"((?:\|---){6}\|\n)(?:\|.*\n)*", lambda m: m[1] + table, page.read_text(encoding="utf-8"))
        page.write_text(text, encoding="utf-8")
        picture(DOCS / "sparse.svg")


if __name__ == "__main__":
    main()
