"""Means, variances and covariances that are told a dtype: what they return has it, as NumPy's has."""

from __future__ import annotations

import numpy as np
import pytest
from each import each

import fad
from fad.errors import MissingRuleError

X = np.random.default_rng(0).random((3, 5))


@each(
    "f",
    [
        lambda x: np.mean(3 * x, dtype=int, axis=0),
        lambda x: np.mean(x, dtype=complex),
        lambda x: np.var(x, dtype=complex),
        lambda x: np.std(x, axis=0, dtype=complex),
        lambda x: np.nanvar(x, dtype="f4"),
        lambda x: np.cov(x, dtype="f4"),
        lambda x: np.corrcoef(x, dtype="f4"),
    ],
)
def test_a_statistic_has_the_dtype_that_it_is_told(f):
    wanted = f(X)
    for found in (fad.jvp(f, (X,), (X,))[0], fad.jit(f)(X), fad.vmap(f)(X[None])[0]):
        assert found.dtype == wanted.dtype
        np.testing.assert_allclose(found, wanted, rtol=1e-6)


@pytest.mark.parametrize("f", [np.var, np.std])
def test_a_variance_of_whole_numbers_is_refused_for_it_rounds_each_square(f):
    with pytest.raises(MissingRuleError, match="convert their result"):
        fad.grad(lambda x: f(x, dtype=int))(X)
