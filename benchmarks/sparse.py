"""Sparse Jacobians beside dense ones, and five problems that gather beside formulas by hand and CasADi.

With ``--write`` the tables and the picture of docs/sparse.md are rewritten. CasADi is timed where it is installed.
"""

from __future__ import annotations

import argparse
import importlib.util
import pathlib
import re
import time
import tracemalloc

import numpy as np
import scipy.sparse
import sparse_problems

import fad
from fad.sparse.colouring import plan_passes

DOCS = pathlib.Path(__file__).parents[1] / "docs"
SIZES = (100, 1_000, 10_000, 100_000)


def residual(u):
    h = 1.0 / (u.size + 1)
    wide = np.pad(u, 1)
    return wide[2:] - 2 * u + wide[:-2] - h**2 * np.exp(u)


def by_hand(u):
    h = 1.0 / (u.size + 1)
    beside = np.ones(u.size - 1)
    return scipy.sparse.diags_array([beside, -2 - h**2 * np.exp(u), beside], offsets=[-1, 0, 1], format="csr")


def milliseconds(run, rounds: int = 7) -> float:
    """Return the least CPU time of a call, in milliseconds."""
    return min(_cpu(run)[0] for _ in range(rounds))


def row(n: int) -> str:
    u = np.zeros(n)
    jacobian = fad.sparse.jacobian(residual)
    compiled = fad.jit(jacobian)
    jacobian(u), compiled(u)
    assert abs(jacobian(u) - by_hand(u)).max() <= 1e-12
    dense = f"{milliseconds(lambda: fad.jacobian(residual)(u), 3):.3g}" if n <= 3_000 else "–"
    cells = [
        milliseconds(lambda: fad.sparse.jacobian(residual)(u)),
        milliseconds(lambda: jacobian(u)),
        milliseconds(lambda: compiled(u)),
        milliseconds(lambda: by_hand(u)),
        milliseconds(lambda: residual(u)),
    ]
    return f"| {n} | {dense} | " + " | ".join([f"{c:.3g}" for c in cells]) + " |"


def _cpu(run) -> tuple[float, object]:
    """Return the CPU time of one call in milliseconds, and its result."""
    start = time.process_time()
    result = run()
    return 1e3 * (time.process_time() - start), result


def _peak(run) -> float:
    """Return the megabytes that a call takes at most, its result among them."""
    tracemalloc.start()
    run()
    found = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return found / 1e6


def _least_times(sides: list, rounds: int) -> list[float]:
    """Return the least CPU time of each of some calls, run in turns; what ran before changes what caches hold."""
    least, rng = [np.inf] * len(sides), np.random.default_rng(0)
    for _ in range(rounds):
        for i in rng.permutation(len(sides)):
            least[i] = min(least[i], _cpu(sides[i])[0])
    return least


def five_problems(n: int, rounds: int = 7) -> list[str]:
    """Return a row for each problem: first calls and later ones, by fad, by hand and by CasADi, and their memory.

    CasADi, which takes long to start, does so once.
    """
    rows = []
    for make in sparse_problems.PROBLEMS:
        problem = make(n)
        small = make(100)
        small.derivative()(*small.args), small.by_hand()(*small.args)  # what is imported and made once
        makers, args = (problem.derivative, problem.by_hand), problem.args
        memory = [_peak(lambda make=make, args=args: make()(*args)) for make in makers]
        firsts = _least_times([lambda make=make, args=args: make()(*args) for make in makers], rounds)
        derivative, by_hand = [make() for make in makers]
        found, wanted = derivative(*args), by_hand(*args)
        compiled = fad.jit(problem.derivative())
        compiled(*args), compiled(*args)
        sides = [lambda run=run, args=args: run(*args) for run in (derivative, compiled, by_hand)]
        assert abs(found - wanted).max() <= 1e-10 * abs(wanted).max(), problem.name
        started = None
        if importlib.util.find_spec("casadi") and problem.casadi is not None:
            x = np.concatenate([np.ravel(x) for x in args])
            started, (by_casadi, seen) = _cpu(lambda problem=problem, x=x: (f := problem.casadi(), f(x)))
            seen = seen.sparse().tocsr()
            assert abs(seen - wanted).max() <= 1e-10 * abs(wanted).max(), problem.name
            sides.append(lambda by_casadi=by_casadi, x=x: by_casadi(x))
        times = _least_times(sides, 3 * rounds)
        size = (found.data.nbytes + found.indices.nbytes + found.indptr.nbytes) / 1e6
        casadi = ["–", "–"] if started is None else [f"{times.pop():.3g}", f"{started:.3g}"]
        cells = [f"{t:.3g}" for t in firsts] + casadi[1:] + [f"{t:.3g}" for t in times] + casadi[:1]
        cells += [f"{m / size:.2g}" for m in memory]
        rows.append("| " + " | ".join([f"{problem.name}, {problem.size}", *cells]) + " |")
    return rows


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
    plan = plan_passes(pattern, "fwd")
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
    parser.add_argument("--size", type=int, default=5_000, help="of the five problems")
    options = parser.parse_args()
    write = options.write
    rows = [row(n) for n in SIZES]
    print("| n | dense | first call | later calls | with fad.jit | by hand | the function |", *rows, sep="\n")
    problems = five_problems(options.size)
    print("| problem | first call | by hand | CasADi | later | with fad.jit | by hand | CasADi | memory | by hand |",
          *problems, sep="\n")  # fmt: skip
    if write:
        page = DOCS / "sparse.md"
        table = "\n".join(rows) + "\n"
        text = re.sub(r"((?:\|---){7}\|\n)(?:\|.*\n)*", lambda m: m[1] + table, page.read_text(encoding="utf-8"))
        table = "\n".join(problems) + "\n"
        text = re.sub(r"((?:\|---){10}\|\n)(?:\|.*\n)*", lambda m: m[1] + table, text)
        page.write_text(text, encoding="utf-8")
        picture(DOCS / "sparse.svg")


if __name__ == "__main__":
    main()
