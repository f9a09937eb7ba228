"""Choices between numbers are made in the dtype that they are wanted in."""

import numpy as np
import pytest
from natively import native

import fad
from fad.compile.legalize.numbers.narrow_selects import narrow_selects
from fad.compile.pipeline import optimise
from fad.core.programs.rewriter import check_types

pytest.importorskip("llvmlite")
rng = np.random.default_rng(0)


def test_a_choice_between_numbers_that_is_wanted_in_single_precision_takes_no_double():
    x = rng.normal(size=50).astype(np.float32)
    x[:2] = 0.0, np.nan
    sign = lambda x: np.where(x == 0, 0.0, np.where(x < 0, -1.0, 1.0)).astype(x.dtype)
    f = fad.grad(lambda x: np.sum(sign(x) * x * np.arange(50, dtype=np.float32)))
    graph = optimise(fad.make_graph(f)(x))
    narrow = narrow_selects(graph)
    check_types(narrow)
    doubles = [sum(g.types[o].dtype == float for eq in g.equations for o in eq.outs) for g in (graph, narrow)]
    assert doubles[0] > 0
    assert doubles[1] == 0
    np.testing.assert_array_equal(native(f, x), f(x))
    np.testing.assert_array_equal(narrow(x)[0], f(x))


def test_numbers_are_rounded_before_they_are_chosen_with_the_same_result():
    x = rng.normal(size=50)
    f = lambda x: np.where(x > 0, 0.1, np.where(x < -1, -7, np.nan)).astype(np.float32)
    graph = optimise(fad.make_graph(f)(x))
    assert all(t.dtype != float for t in narrow_selects(graph).types[-3:])
    np.testing.assert_array_equal(native(f, x), f(x))
