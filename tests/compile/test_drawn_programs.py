"""Drawn programs on arrays of drawn shapes, dtypes and layouts: jitted, they give what NumPy gives, and change nothing.

Numbers are multiples of a quarter and operations exact, so that comparisons do not depend on rounding. For a longer
search set DRAWN_PROGRAMS to a number of programs.
"""

import itertools
import os

import numpy as np
import pytest

import fad
from fad.compile.targets.select import has_llvm, using

LOWERINGS = ["numpy", *(["llvm"] if has_llvm() else [])]
COUNT = int(os.environ.get("DRAWN_PROGRAMS", "60"))
DTYPES = [np.float64, np.float64, np.float32, np.int64, np.int32, bool]
SIDES = [0, 1, 1, 2, 3, 4, 5, 7]
MOST, LARGEST = 1500, 1e6  # elements of a value, and its size


def _axes(r, x):
    """Draw an axis, or several in any order."""
    if r.random() < 0.5:
        return int(r.integers(-x.ndim, x.ndim))
    return tuple(int(a) for a in r.permutation(x.ndim)[: r.integers(1, x.ndim + 1)])


def _index(r, x):
    """Draw slices of any steps, and positions."""
    found = []
    for n in x.shape[: r.integers(0, x.ndim + 1)]:
        part = slice(int(r.integers(0, n + 1)), None, int(r.integers(1, 3)))
        found.append([slice(None), slice(None, None, -1), part, n - 1][r.integers(4 if n else 3)])
    return tuple(found)


def _shift(r, x):
    n = int(r.integers(-3, 4))
    return lambda x: np.roll(x, n, 0)


def _permuted(r, x):
    order = tuple(int(a) for a in r.permutation(x.ndim))
    return lambda x: np.transpose(x, order)


def _reduced(*functions):
    def draw(r, x):
        f, axis, keepdims = functions[r.integers(len(functions))], _axes(r, x), bool(r.integers(2))
        return lambda x: f(x, axis=axis, keepdims=keepdims)

    return draw


def _indexed(r, x):
    index = _index(r, x)
    return lambda x: x[index]


def _gathered(r, x):
    places = r.integers(-len(x), len(x), (2, 3))
    return lambda x: x[places]


def _with(number):
    """Draw a number that may be neutral: Python's, of one element in more axes, or an array's."""

    def draw(r, x):
        n = [0.0, -0.0, 1.0, 2.0, 0, 1, 2][r.integers(7)]
        other = [n, np.full((1,) * int(r.integers(0, x.ndim + 2)), float(n)), np.full(x.shape, float(n))][r.integers(3)]
        return lambda x: number(x, other)

    return draw


def _plain(f):
    return lambda r, x: f


# What may be applied to one value: where it may, and how it is drawn.
ANY, SIDED, NUMBERS, FILLED = (
    lambda x: True,
    lambda x: x.ndim > 0,
    lambda x: x.dtype.kind in "fi",
    lambda x: x.ndim > 0 and x.size > 0 and x.dtype.kind in "fi",
)
UNARY = [
    (ANY, _plain(np.copy)), (ANY, _plain(lambda x: x.astype(np.float32))), (ANY, _plain(lambda x: x.astype(float))),
    (ANY, _plain(lambda x: x > 0)), (ANY, _plain(lambda x: np.broadcast_to(x, (2, *x.shape)))), (ANY, _permuted),
    (ANY, _indexed), (ANY, _plain(lambda x: x.reshape(-1))), (ANY, _plain(lambda x: np.where(x > 0, x, 0))),
    (SIDED, _plain(lambda x: np.concatenate([x, x[::-1]]))), (SIDED, _shift), (SIDED, _reduced(np.any, np.all)),
    (SIDED, _reduced(np.sum, np.sum, np.prod)), (SIDED, _plain(lambda x: np.pad(x, 1))),
    (SIDED, _plain(lambda x: np.cumsum(x, -1))), (SIDED, _plain(lambda x: np.stack([x, x], -1))),
    (NUMBERS, _with(np.multiply)), (NUMBERS, _with(np.add)), (NUMBERS, _with(np.subtract)),
    (NUMBERS, _plain(lambda x: -x)), (NUMBERS, _plain(lambda x: np.maximum(x, 0))), (NUMBERS, _plain(np.abs)),
    (FILLED, _reduced(np.max, np.min)), (FILLED, _gathered), (FILLED, _plain(lambda x: np.argmax(x, -1))),
    (FILLED, _plain(lambda x: np.sort(x, 0))), (lambda x: x.dtype.kind == "f", _with(np.power)),
]  # fmt: skip
BINARY = [
    np.add, np.subtract, np.multiply, np.maximum, np.minimum, np.equal, np.less, np.matmul, np.outer,
    lambda x, y: np.where(x > 0, x, y), lambda x, y: np.concatenate([x, y]), lambda x, y: np.stack([x, y]),
    lambda x, y: np.einsum("i...,i...->...", x, y), lambda x, y: x + np.sum(y),
]  # fmt: skip


def _data(r, shape, dtype):
    x = r.integers(-8, 9, shape)
    return np.asarray(x > 0 if dtype is bool else (x / (4 if np.dtype(dtype).kind == "f" else 1)).astype(dtype))[()]


def _drawn(r, values):
    """Draw an operation on values: a function and which they are; None if it cannot be."""
    i, j = (int(r.integers(len(values))) for _ in range(2))
    if r.random() < 0.35:
        return BINARY[r.integers(len(BINARY))], (i, j)
    fits, draw = UNARY[r.integers(len(UNARY))]
    return (draw(r, values[i]), (i,)) if fits(values[i]) else None


def program(seed):
    """Return a program that gives several of its values, and its arguments."""
    r = np.random.default_rng(seed)
    base = tuple(int(n) for n in r.choice(SIDES, r.integers(0, 4)))
    args = [_data(r, base[k // 2 :], DTYPES[r.integers(len(DTYPES))]) for k in range(r.integers(1, 4))]
    values, steps = list(args), []
    while len(steps) < 12:
        step = _drawn(r, values)
        try:
            y = step and step[0](*[values[i] for i in step[1]])
        except (ValueError, TypeError):  # shapes that do not fit, booleans that are subtracted
            continue
        if y is None or y.size > MOST or np.max(np.abs(y), initial=0) > LARGEST or not np.all(np.isfinite(y)):
            continue
        values.append(y)
        steps.append(step)
    kept = sorted({len(values) - 1, *(int(i) for i in r.integers(0, len(values), 3))})

    def run(*xs):
        found = list(xs)
        for f, places in steps:
            found.append(f(*[found[i] for i in places]))
        return [found[i] for i in kept]

    return run, args


def _laid_otherwise(r, x):
    """Return the same numbers in another order in memory, or with gaps."""
    if not np.ndim(x):
        return x
    wide = np.zeros([2 * n for n in x.shape], x.dtype)[(slice(None, None, 2),) * x.ndim]
    wide[...] = x
    return [np.asfortranarray(x), x[::-1].copy()[::-1], wide][r.integers(3)]


@pytest.mark.filterwarnings("error::fad.errors.NativeFallbackWarning")
@pytest.mark.parametrize("lowering", LOWERINGS)
@pytest.mark.parametrize("seed", range(COUNT))
def test_a_drawn_program_gives_what_numpy_gives_and_changes_nothing_else(seed, lowering):
    with np.errstate(all="ignore"):
        run, args = program(seed)
        want = run(*args)
        with using(lowering):
            fast = fad.jit(run)
            fast(*args)
            got = fast(*args)
            before = [np.array(x) for x in (*args, *got)]
            again = fast(*[_laid_otherwise(np.random.default_rng(seed), x) for x in args])
            fast(*[np.zeros_like(x)[()] for x in args])
    for a, b, w in zip(got, again, want, strict=True):
        assert (a.shape, a.dtype) == (b.shape, b.dtype) == (w.shape, w.dtype)
        np.testing.assert_allclose(a, w, rtol=1e-6, atol=1e-6)
        np.testing.assert_array_equal(b, a)
    for x, old in zip((*args, *got), before, strict=True):
        np.testing.assert_array_equal(x, old)
    for (x, a), (y, b) in itertools.combinations(zip((*args, *want), (*args, *got), strict=True), 2):
        if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
            assert not np.shares_memory(a, b) or np.shares_memory(x, y)
