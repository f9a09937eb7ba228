"""Hypothesis strategies: shapes, dtypes, broadcast pairs, arrays, pytrees and random programs.

    from hypothesis import given
    from fad.testing import check_grads, strategies

    @given(strategies.arrays(low=0.5, high=2.0))
    def test_my_function(x):
        check_grads(my_function, (x,), order=2)

Needs the package hypothesis, and is therefore not imported with `fad.testing`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import strategies as st

from fad.core.primitives.samples import Sampler
from fad.testing.programs import SMOOTH, Program

INEXACT = (np.float32, np.float64, np.complex64, np.complex128)


def shapes(max_dims: int = 3, max_side: int = 4, min_side: int = 0, min_dims: int = 0) -> st.SearchStrategy:
    """Draw shapes, those of scalars and of empty arrays too.

    >>> from hypothesis import find
    >>> find(shapes(), lambda shape: len(shape) == 2)
    (0, 0)
    """
    return st.lists(st.integers(min_side, max_side), min_size=min_dims, max_size=max_dims).map(tuple)


def dtypes(complex: bool = True, single: bool = True) -> st.SearchStrategy:
    """Draw the dtypes that have derivatives.

    >>> from hypothesis import find
    >>> find(dtypes(single=False), lambda dtype: dtype.kind == "c")
    dtype('complex128')
    """
    kept = [d for d in map(np.dtype, INEXACT) if complex or d.kind == "f"]
    return st.sampled_from([d for d in kept if single or d.itemsize == (16 if d.kind == "c" else 8)])


@st.composite
def broadcast_pairs(draw: Callable, max_dims: int = 3, max_side: int = 4) -> tuple:
    """Draw two shapes that broadcast against each other.

    >>> from hypothesis import find
    >>> find(broadcast_pairs(), lambda pair: np.broadcast_shapes(*pair) == (2, 2) and () in pair)
    ((), (2, 2))
    """
    full = draw(shapes(max_dims, max_side, min_side=0))

    def part():
        kept = full[draw(st.integers(0, len(full))) :]
        return tuple(draw(st.sampled_from((d, 1))) for d in kept)

    return (full, part()) if draw(st.booleans()) else (part(), full)


@st.composite
def arrays(
    draw: Callable, shape: Any = None, dtype: Any = np.float64, low: float = -2.0, high: float = 2.0
) -> np.ndarray:
    """Draw an array whose elements lie in an interval, well apart from each other: no ties, no kinks.

    `shape` and `dtype` may be strategies.

    >>> from hypothesis import find
    >>> find(arrays(shape=(2, 3), low=0.5), lambda x: True).shape
    (2, 3)
    """
    shape = draw(shapes()) if shape is None else draw(shape) if isinstance(shape, st.SearchStrategy) else shape
    dtype = draw(dtype) if isinstance(dtype, st.SearchStrategy) else dtype
    return np.asarray(Sampler(draw(st.integers(0, 2**16)), dtype).real(*shape, low=low, high=high))


def pytrees(leaves: st.SearchStrategy | None = None, max_leaves: int = 4) -> st.SearchStrategy:
    """Draw nested lists, tuples and dictionaries, with None here and there, of arrays (or of `leaves`).

    >>> from hypothesis import find
    >>> find(pytrees(leaves=st.just(1.0)), lambda tree: isinstance(tree, tuple))
    (1.0, 1.0)
    """
    leaves = arrays(shape=shapes(max_dims=2, max_side=3)) if leaves is None else leaves

    def wrap(inner):
        inner = inner | st.none()
        return (
            st.lists(inner, min_size=1, max_size=3)
            | st.tuples(inner, inner)
            | st.dictionaries(st.sampled_from("abc"), inner, min_size=1, max_size=3)
        )

    return st.recursive(leaves, wrap, max_leaves=max_leaves)


@st.composite
def programs(draw: Callable, inputs: Any = None, max_steps: int = 6, table: dict | None = None) -> Program:
    """Draw a random program; its arguments are vectors of one length with elements in [-2, 2].

    >>> from hypothesis import find
    >>> find(programs(inputs=2), lambda program: len(program.steps) == 2)(np.ones(3), np.zeros(3)).shape
    (3,)
    """
    inputs = draw(st.integers(1, 3)) if inputs is None else inputs
    table = SMOOTH if table is None else table
    steps = []
    for k in range(draw(st.integers(1, max_steps))):
        last = inputs + k - 1
        first = last if k else draw(st.integers(0, last))  # each step uses the one before, so that none is in vain
        pair = [first, draw(st.integers(0, last))]
        steps.append((draw(st.sampled_from(sorted(table))), *(pair if draw(st.booleans()) else pair[::-1])))
    return Program(inputs, steps, table)


@st.composite
def programs_and_points(draw: Callable, inputs: Any = None, max_steps: int = 6, table: dict | None = None,
                        dtype: Any = np.float64, high: float = 2.0) -> tuple:  # fmt: skip
    """Draw a random program together with arguments for it: ``(program, (x, y, ...))``.

    >>> from hypothesis import find
    >>> program, xs = find(programs_and_points(inputs=1), lambda drawn: True)
    >>> program(*xs).shape == xs[0].shape
    True
    """
    program = draw(programs(inputs, max_steps, table))
    n = draw(st.integers(2, 4))
    return program, tuple(draw(arrays(shape=(n,), dtype=dtype, low=-high, high=high)) for _ in range(program.inputs))
