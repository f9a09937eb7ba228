"""How accurate jit's own mathematical functions are, in units of the last place.

    python benchmarks/kernels.py [--all] [--markdown] [function ...]

Single precision is compared with NumPy's or SciPy's function in double precision: over a sample of every exponent, and
with ``--all`` over all 2**32 numbers (some minutes a function). Double precision is compared with mpmath on drawn
numbers. The last columns count special values (zeros, infinities, NaN) that are not NumPy's.
"""

from __future__ import annotations

import sys
import time

import mpmath
import numpy as np
import scipy.special as sc

import fad
import fad.scipy.special as fs
from fad.compile.targets.select import using

FULL = "--all" in sys.argv
BLOCK = 1 << 18
rng = np.random.default_rng(0)


def near(low=0.0, width=3.0, n=2000):
    return low + rng.uniform(-1.0, 1.0, n) * width * 10.0 ** rng.uniform(-12, 0, n)


def wide(low=-300, high=300, n=2000):
    return 10.0 ** rng.uniform(low, high, n)


def between(low, high, n=6000):
    return rng.uniform(low, high, n)


def exact_cdf(v):
    return mpmath.erfc(-v / mpmath.sqrt(2)) / 2


# name -> (traced function, reference in double precision, the same in mpmath, double-precision arguments)
ONE = {
    "exp": (np.exp, np.exp, mpmath.exp, (between(-745, 709.7), near())),
    "exp2": (np.exp2, np.exp2, lambda v: mpmath.mpf(2) ** v, (between(-1074, 1023.9), near())),
    "expm1": (np.expm1, np.expm1, mpmath.expm1, (between(-40, 40), between(40, 709.7), near())),
    "log": (np.log, np.log, mpmath.log, (between(1e-9, 9.0), near(1.0, 0.1), wide(-320, 308))),
    "log2": (np.log2, np.log2, lambda v: mpmath.log(v, 2), (between(1e-9, 9.0), near(1.0, 0.1), wide(-320, 308))),
    "log10": (np.log10, np.log10, lambda v: mpmath.log(v, 10), (between(1e-9, 9.0), near(1.0, 0.1), wide(-320, 308))),
    "log1p": (np.log1p, np.log1p, mpmath.log1p, (between(-1 + 1e-16, 9.0), near(0.0, 0.3), wide(0, 308))),
    "sin": (np.sin, np.sin, mpmath.sin, (between(-100, 100), between(-1e5, 1e5), near())),
    "cos": (np.cos, np.cos, mpmath.cos, (between(-100, 100), between(-1e5, 1e5), near())),
    "tan": (np.tan, np.tan, mpmath.tan, (between(-100, 100), between(-1e5, 1e5), near())),
    "arcsin": (np.arcsin, np.arcsin, mpmath.asin, (between(-1, 1), near(0, 0.5), near(1, 0.5).clip(-1, 1))),
    "arccos": (np.arccos, np.arccos, mpmath.acos, (between(-1, 1), near(0, 0.5), near(1, 0.5).clip(-1, 1))),
    "arctan": (np.arctan, np.arctan, mpmath.atan, (between(-30, 30), near(), wide())),
    "sinh": (np.sinh, np.sinh, mpmath.sinh, (between(-710, 710), between(-30, 30), near())),
    "cosh": (np.cosh, np.cosh, mpmath.cosh, (between(-710, 710), between(-30, 30), near())),
    "tanh": (np.tanh, np.tanh, mpmath.tanh, (between(-20, 20), near())),
    "arcsinh": (np.arcsinh, np.arcsinh, mpmath.asinh, (between(-30, 30), near(), wide(-300, 308))),
    "arccosh": (np.arccosh, np.arccosh, mpmath.acosh, (between(1, 30), near(1.0).clip(1), wide(0, 308))),
    "arctanh": (np.arctanh, np.arctanh, mpmath.atanh, (between(-1, 1), near(0, 0.5))),
    "cbrt": (np.cbrt, np.cbrt, lambda v: mpmath.sign(v) * mpmath.cbrt(abs(v)), (between(-30, 30), wide(-320, 308))),
    "sqrt": (np.sqrt, np.sqrt, mpmath.sqrt, (between(0, 30), wide(-320, 308))),
    "erf": (fs.erf, sc.erf, mpmath.erf, (between(-6, 6), between(0.8, 0.9), near())),
    "erfc": (fs.erfc, sc.erfc, mpmath.erfc, (between(-6, 27.2), between(0.4, 0.9), near())),
    "ndtr": (fs.ndtr, sc.ndtr, exact_cdf, (between(-38, 9), between(-1.3, 1.3), near())),
}
TWO = {
    "power": (np.power, np.power, mpmath.power, (
        (between(0, 10), between(-30, 30)), (wide(), between(-1, 1, 2000)), (near(1.0, 0.1), between(-500, 500, 2000)),
        (between(0.5, 2), between(-1000, 1000)),
    )),
    "arctan2": (np.arctan2, np.arctan2, mpmath.atan2, (
        (rng.normal(size=6000), rng.normal(size=6000)), (wide(), wide()),
    )),
    "hypot": (np.hypot, np.hypot, mpmath.hypot, ((rng.normal(size=6000), rng.normal(size=6000)), (wide(), wide()))),
}  # fmt: skip


def compiled(f, *args):
    with using("llvm"):
        fast = fad.jit(f)
        fast(*args)
        fast(*args)
    return fast


def double_ulps(f, exact, sets):
    """Return the largest error in double precision and the argument at which it is found."""
    xs = [np.concatenate(x) for x in zip(*sets, strict=True)]
    y = compiled(f, *xs)(*xs)
    worst, at = 0.0, None
    with mpmath.workprec(200):
        for *a, b in zip(*[x.tolist() for x in xs], y.tolist(), strict=True):
            t = exact(*[mpmath.mpf(v) for v in a])
            if t != 0 and abs(t) < mpmath.mpf(1.7e308):
                off = float(abs(t - mpmath.mpf(b)) / float(np.spacing(abs(float(t)))))
                worst, at = max((worst, at), (off, a), key=lambda pair: pair[0])
    return worst, at


def blocks(arity):
    """Yield the single-precision arguments, in blocks."""
    if FULL and arity == 1:
        for start in range(0, 1 << 32, BLOCK):
            yield (np.arange(start, start + BLOCK, dtype=np.uint32).view(np.float32),)
        return
    for _ in range(4096 if FULL else 64):
        yield tuple(rng.integers(0, 1 << 32, BLOCK, dtype=np.uint32).view(np.float32) for _ in range(arity))


def single_ulps(f, reference, arity):
    """Return the largest error in single precision, its argument, how many special values differ, how many numbers.

    Where the result is the reference rounded, the error is half a unit at most and is not looked at.
    """
    worst, at, strange, count = 0.5, None, 0, 0
    fast = None
    for xs in blocks(arity):
        fast = fast or compiled(f, *xs)
        y = fast(*xs)
        wanted = reference(*[x.astype(np.float64) for x in xs])
        single = wanted.astype(np.float32)
        count += len(y)
        other = np.flatnonzero(y.view(np.uint32) != single.view(np.uint32))
        y, wanted, single = y[other], wanted[other], single[other]
        with np.errstate(all="ignore"):
            off = np.abs(y - wanted) / np.spacing(np.abs(single))
        finite = np.isfinite(single)
        off[~finite] = 0.0
        strange += int(np.count_nonzero(~finite & ~(np.isnan(y) & np.isnan(single))))
        strange += int(np.count_nonzero((y == 0) & (single == 0)))
        if len(off) and not off.max() <= worst:
            worst, k = float(off.max()), int(off.argmax())
            at = [float(x[other[k]]) for x in xs]
    return worst, at, strange, count


def main():
    wanted = [a for a in sys.argv[1:] if not a.startswith("-")]
    table = {**{n: (f, r, m, [(x,) for x in xs]) for n, (f, r, m, xs) in ONE.items()}, **TWO}
    bar = " | " if "--markdown" in sys.argv else "  "
    print(bar.join(["function".ljust(9), "double", "single", "numbers tried", "special", "seconds"]))
    for name, (f, reference, exact, sets) in table.items():
        if wanted and name not in wanted:
            continue
        start = time.perf_counter()
        with np.errstate(all="ignore"):
            double, _ = double_ulps(f, exact, sets)
            single, at, strange, count = single_ulps(f, reference, len(sets[0]))
        took = time.perf_counter() - start
        row = [name.ljust(9), f"{double:6.3f}", f"{single:6.4f}", f"{count:13d}", f"{strange:7d}", f"{took:7.0f}"]
        print(bar.join(row), f"  at {at}" if strange or single > 1 else "", flush=True)


if __name__ == "__main__":
    main()
