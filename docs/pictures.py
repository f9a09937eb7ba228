"""Draw the pictures of the README and of the landing page: python docs/pictures.py

``thrown.svg`` is the README's own program, drawn. ``short.svg`` has three figures of docs/benchmarks.md, which are read
from that page, so that picture and page cannot differ. ``logo.svg`` is a curve and its tangent.
"""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt
import numpy as np

import fad

DOCS = Path(__file__).parent
STATIC = DOCS / "_static"
sys.path.insert(0, str(DOCS.parent / "benchmarks"))
BLUE, RED, GREY = "#1b6ca8", "#d1495b", "#b9c0c7"

# What the short chart shows: the title, a table of docs/benchmarks.md (0: run time in ms, 1: warm-up in s), its row,
# and the columns to compare.
CHAIN = "chain of 75 tiny operations"
CHART = [
    ("gradient of 75 small operations,\nnot compiled: ms per call", 0, CHAIN, ("fad", "PyTorch", "autograd")),
    ("the same, compiled:\nms per call", 0, CHAIN, ("fad jit", "JAX jit", "torch.compile")),
    (
        "compiling the gradient of a Runge-Kutta\nmethod of 200 steps: s", 1, "RK4 network, 200 steps unrolled",
        ("fad jit", "JAX jit"),
    ),
]  # fmt: skip


def flight(throw, step=0.01):
    """Return the places of the README's ball, a row each."""
    position, velocity = np.zeros(2), throw
    places = [position]
    while position[1] >= 0.0:
        drag = 0.02 * np.linalg.norm(velocity) * velocity
        velocity = velocity - step * (drag + np.array([0.0, 9.81]))
        position = position + step * velocity
        places.append(position)
    return np.stack(places)


def landing(throw):
    """Return how far the ball flies: the README's function."""
    (*_, before, after) = flight(throw)
    return after[0] - after[1] * (after - before)[0] / (after - before)[1]


def thrown():
    """Draw the flights of each step of Newton's method, and the distance over all throws with its gradient."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.6), width_ratios=(1.35, 1))
    throws = [np.array([10.0, 20.0])]
    for _ in range(3):
        distance, slope = fad.value_and_grad(landing)(throws[-1])
        throws.append(throws[-1] + (30.0 - distance) * slope / (slope @ slope))
    for i, throw in enumerate(throws):
        last = i == len(throws) - 1
        left.plot(
            *flight(throw).T, color=RED if last else BLUE, alpha=1 if last else 0.35 + 0.2 * i, label=f"throw {i + 1}"
        )
    left.plot([30], [0], "v", color=RED, markersize=11, clip_on=False)
    left.set(
        title="Four throws: Newton's method through the flight",
        xlabel="metres",
        ylabel="metres",
        ylim=(0, None),
        xlim=(0, 33),
    )
    left.legend(loc="upper left")

    vx, vy = np.meshgrid(np.linspace(5, 21, 33), np.linspace(5, 27, 33))
    grid = np.column_stack([vx.ravel(), vy.ravel()])
    values, slopes = fad.vmap(fad.value_and_grad(landing))(grid)
    levels = right.contour(vx, vy, values.reshape(vx.shape), levels=range(10, 50, 5), colors=GREY, linewidths=1)
    right.clabel(levels, fmt="%d m", fontsize=8)
    right.contour(vx, vy, values.reshape(vx.shape), levels=[30], colors=RED, linewidths=2)
    some = (np.arange(len(grid)) % 33 % 4 == 2) & (np.arange(len(grid)) // 33 % 4 == 2)
    right.quiver(*grid[some].T, *slopes[some].T, color=BLUE, width=0.005, scale=32)
    right.plot(*np.array(throws).T, "o-", color="black", markersize=4, linewidth=1)
    right.set(title="Distance and gradient: vmap(grad)", xlabel="speed forward, m/s", ylabel="speed upward, m/s")
    return figure


def figures():
    """Return the figures of the short chart: title -> library -> number, from docs/benchmarks.md."""
    from jit_picture import number, tables

    found = tables((DOCS / "benchmarks.md").read_text(encoding="utf-8"))
    return {title: {name: number(found[table][row][name]) for name in names} for title, table, row, names in CHART}


def short():
    """Draw the short chart: three comparisons, fad's bar in colour."""
    chart = figures()
    figure, axes = plt.subplots(1, len(chart), figsize=(10, 2.3))
    for ax, (title, values) in zip(axes, chart.items(), strict=True):
        names = list(values)[::-1]
        bars = ax.barh(
            names, [values[n] for n in names], color=[BLUE if "fad" in n else GREY for n in names], height=0.62
        )
        ax.bar_label(bars, [f"{values[n]:g}" for n in names], padding=4, fontsize=9)
        ax.set_title(title, fontsize=9, fontweight="normal")
        ax.set_xlim(0, 1.2 * max(values.values()))
        ax.xaxis.set_visible(False)
        ax.spines["bottom"].set_visible(False)
        ax.grid(False)
    return figure


def logo():
    """Draw the logo: a curve, its tangent, the point where they meet."""
    figure = plt.figure(figsize=(2, 2), layout="none")
    ax = figure.add_axes((0, 0, 1, 1))
    wave = lambda x: np.sin(1.7 * x) + 0.25 * x
    x = np.linspace(-1.6, 1.9, 200)
    at = 0.5
    slope = fad.grad(wave)(at)
    ax.plot(x, wave(x), color=BLUE, linewidth=9, solid_capstyle="round")
    ends = np.array([at - 0.72, at + 0.72])
    ax.plot(ends, wave(at) + slope * (ends - at), color=RED, linewidth=9, solid_capstyle="round")
    ax.plot([at], [wave(at)], "o", color="white", markersize=15, markeredgecolor=RED, markeredgewidth=5)
    ax.set(xlim=(-2, 2.2), ylim=(-2.1, 2.1))
    ax.axis("off")
    return figure


def main():
    plt.style.use("fad.style")
    for draw in (thrown, short, logo):
        draw().savefig(STATIC / f"{draw.__name__}.svg", metadata={"Date": None}, transparent=draw is logo)


if __name__ == "__main__":
    main()
