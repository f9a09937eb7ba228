"""Gradients through NumPy's linear algebra of one matrix, beside JAX's: ``python benchmarks/linear_algebra.py``.

With ``--write`` the table of docs/benchmarks.md is rewritten.
"""

from __future__ import annotations

import argparse
import pathlib
import time

import jax
import jax.numpy as jnp
import numpy as np

import fad

PAGE = pathlib.Path(__file__).parents[1] / "docs" / "benchmarks.md"
HEADING, NEXT = "## Linear algebra", "## GradBench"
SIZES = (10, 50, 200, 500)
PROGRAMS = {
    "solve": lambda xp, a, b: xp.linalg.solve(a, b).sum(),
    "solve for n columns": lambda xp, a, b: xp.linalg.solve(a, a.T).sum(),
    "inv": lambda xp, a, b: xp.linalg.inv(a).sum(),
    "det": lambda xp, a, b: xp.linalg.det(a / len(a)),
    "slogdet": lambda xp, a, b: xp.linalg.slogdet(a)[1],
    "cholesky": lambda xp, a, b: xp.linalg.cholesky(a @ a.T).sum(),
    "qr": lambda xp, a, b: xp.linalg.qr(a)[0].sum(),
    "eigh": lambda xp, a, b: (xp.linalg.eigh(a + a.T)[1] ** 3).sum(),
    "svd": lambda xp, a, b: (xp.linalg.svd(a)[0] ** 3).sum(),
    "singular values": lambda xp, a, b: xp.sqrt(xp.linalg.svd(a, compute_uv=False)).sum(),
}


def measure(runs: list) -> list[float]:
    """Return the least times of functions that take turns, in milliseconds."""
    found = []
    for run in runs:
        run(), run()
    for _ in range(15):
        times = []
        for run in runs:
            start = time.perf_counter()
            run()
            times.append((time.perf_counter() - start) * 1e3)
        found.append(times)
    return np.min(found, axis=0).tolist()


def row(name: str, n: int) -> str:
    program, rng = PROGRAMS[name], np.random.default_rng(0)
    a, b = rng.normal(size=(n, n)) + n * np.eye(n), rng.normal(size=(n, 1))
    gradient = fad.grad(lambda a, b: program(np, a, b))
    compiled = fad.jit(gradient)
    other = jax.jit(jax.grad(lambda a, b: program(jnp, a, b)))
    far, near = jnp.asarray(a), jnp.asarray(b)
    np.testing.assert_allclose(compiled(a, b), gradient(a, b), rtol=1e-6, atol=1e-9 * np.abs(gradient(a, b)).max())
    times = measure([
        lambda: program(np, a, b), lambda: gradient(a, b), lambda: compiled(a, b),
        lambda: other(far, near).block_until_ready(),
    ])  # fmt: skip
    return f"| {name}, {n} | " + " | ".join([f"{t:.3g}" for t in times]) + f" | {times[2] / times[3]:.2f} |"


def section(rows: list[str]) -> str:
    lines = "\n".join(rows)
    return f"""{HEADING}

Gradients of functions of one matrix, of n rows and columns in double precision, on one thread, in milliseconds:
the plain run, the gradient without and with `fad.jit`, and that of `jax.jit`. With SciPy installed the factors of a
matrix are found once and serve its gradient, too ([how](design/linalg.md#factors-that-are-kept)).
`python benchmarks/linear_algebra.py --write` makes this table.

| | NumPy | fad | fad jit | JAX jit | jit / JAX |
|---|---:|---:|---:|---:|---:|
{lines}
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    jax.config.update("jax_enable_x64", True)
    rows = []
    for name in PROGRAMS:
        for n in SIZES:
            rows.append(row(name, n))
            print(rows[-1], flush=True)
    if options.write:
        before, _, after = PAGE.read_text(encoding="utf-8").partition(f"\n{NEXT}\n")
        before = before.partition(f"\n{HEADING}\n")[0].rstrip()
        PAGE.write_text(f"{before}\n\n{section(rows)}\n{NEXT}\n{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
