"""Every operation that jax.numpy has too gives the same derivatives there."""

import numpy as np
import pytest

from fad.testing.cases import inexact, numbers

from .peers import close, derivative_cases, directions, lookup, numpy_names, ours, same_dtypes, same_values

jax = pytest.importorskip("jax", reason="JAX, the oracle of this test, is not installed")
jnp = pytest.importorskip("jax.numpy", reason="JAX, the oracle of this test, is not installed")

pytestmark = pytest.mark.oracle

# Where the two differ on purpose: the operation, and why.
SETS = "JAX drops the derivative of a set's values; fad follows each value to where it stands in the argument"
DIFFERENT = {
    **dict.fromkeys(["intersect1d", "setdiff1d", "setxor1d", "union1d"], SETS),
    **dict.fromkeys(["unique", "unique_all", "unique_counts", "unique_inverse", "unique_values"], SETS),
    "arange": "JAX's arange has no derivative in its ends; fad's start and step have one",
    "sign": "JAX calls the sign of complex numbers flat; it is z / abs(z), which turns with z",
    "nextafter": "JAX has no rule",
    "linalg.eig": "JAX refuses the derivative of eigenvectors",
}


@pytest.fixture(autouse=True, scope="module")
def _double_precision():
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", before)


SHARED = {path: op for path, op in numpy_names().items() if lookup(jnp, path) is not None and op.flat is not True}


def _theirs(case, function):
    """Return the sample as a JAX function of its differentiated operands."""

    def f(*xs):
        operands = [jnp.asarray(x) for x in case.operands]
        for k, x in zip(case.diff, xs, strict=True):
            operands[k] = x
        leaves = [y for y in jax.tree.leaves(case.call(function, *operands)) if hasattr(y, "dtype")]
        return tuple(y for y in leaves if y.dtype.kind in "fc")

    return f


@pytest.mark.filterwarnings("default")  # JAX deprecates parts of NumPy's interface in its own time
@pytest.mark.parametrize("path", [p for p in SHARED if p not in DIFFERENT])
def test_derivatives_agree_with_jax(path):
    function = lookup(jnp, path)
    for case in derivative_cases(SHARED[path]):
        f = _theirs(case, function)
        try:
            values = f(*[jnp.asarray(x) for x in case.points])
        except Exception:  # JAX does not take this call: another signature, or a shape that depends on values
            continue
        if not same_values(case, values) or not same_dtypes(case, values):
            continue
        tangents, cts = directions(case)
        _, pushed = jax.jvp(f, tuple(map(jnp.asarray, case.points)), tuple(map(jnp.asarray, tangents)))
        _, pullback = jax.vjp(f, *map(jnp.asarray, case.points))
        pulled = pullback(tuple(map(jnp.asarray, cts)))
        _, our_pushed, our_pulled = ours(case, tangents, cts)
        single = any(y.dtype.itemsize == 4 * (1 + (y.dtype.kind == "c")) for y in values)
        tolerance = 1e-5 if single else 1e-8
        close(f"jvp of {path} {case}", our_pushed, pushed, tolerance)
        close(f"vjp of {path} {case}", our_pulled, pulled, tolerance)


def test_there_is_something_to_compare():
    assert len(SHARED) > 150
    assert np.add is SHARED["add"].numpy[0]
    assert inexact(numbers(np.ones(1)))
