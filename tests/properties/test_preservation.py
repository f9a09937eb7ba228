"""What a transform must leave as it is: dtypes, structures, kinds, and the user's arrays."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fad
from fad.testing.strategies import arrays, broadcast_pairs, dtypes, programs_and_points, pytrees, shapes


@given(programs_and_points(), st.sampled_from([np.float32, np.float64]))
def test_derivatives_have_the_dtype_of_the_input(drawn, dtype):
    f, xs = drawn
    xs = tuple(x.astype(dtype) for x in xs)
    y = f(*xs)
    ts = tuple(np.ones_like(x) for x in xs)
    value, tangent = fad.jvp(f, xs, ts)
    assert value.dtype == y.dtype
    assert tangent.dtype == y.dtype
    for g, x in zip(fad.grad(f.scalar, tuple(range(len(xs))))(*xs), xs, strict=True):
        assert g.dtype == x.dtype
        assert g.shape == x.shape


@given(programs_and_points())
def test_no_transform_writes_into_its_inputs(drawn):
    f, xs = drawn
    before = [x.copy() for x in xs]
    ts = tuple(np.ones_like(x) for x in xs)
    fad.jvp(f, xs, ts)
    y, pullback = fad.vjp(f, *xs)
    ct = np.ones_like(y)
    first = pullback(ct)
    again = pullback(ct)
    fad.hessian(f.scalar)(*xs)
    for x, copy in zip((*xs, *ts, ct), (*before, *[np.ones_like(x) for x in xs], np.ones_like(y)), strict=True):
        np.testing.assert_array_equal(x, copy)
    for a, b in zip(first, again, strict=True):
        np.testing.assert_array_equal(a, b)
        assert not np.shares_memory(a, b)
        assert not any(np.shares_memory(a, x) for x in (*xs, ct, y))


@given(programs_and_points())
def test_read_only_inputs_are_enough(drawn):
    f, xs = drawn
    for x in xs:
        x.flags.writeable = False
    g = fad.grad(f.scalar)(*xs)
    assert g.flags.writeable


def _loss(tree):
    return sum((np.sum(np.sin(x) * x) for x in fad.tree.leaves(tree)), start=0.0)


@given(pytrees().filter(lambda tree: fad.tree.leaves(tree)))
def test_a_gradient_has_the_structure_shapes_and_dtypes_of_its_argument(tree):
    g = fad.grad(_loss)(tree)
    assert fad.tree.structure(g) == fad.tree.structure(tree)
    for a, x in zip(fad.tree.leaves(g), fad.tree.leaves(tree), strict=True):
        assert a.shape == x.shape
        assert a.dtype == x.dtype
        np.testing.assert_allclose(a, np.sin(x) + x * np.cos(x), rtol=1e-12, atol=1e-12)


@given(pytrees().filter(lambda tree: fad.tree.leaves(tree)))
def test_outputs_may_be_any_tree_in_both_modes(tree):
    def f(t):
        return {"same": t, "squares": fad.tree.map(lambda x: x * x, t)}

    tangents = fad.tree.map(np.ones_like, tree)
    out, dout = fad.jvp(f, (tree,), (tangents,))
    assert fad.tree.structure(dout) == fad.tree.structure(out)
    _, pullback = fad.vjp(f, tree)
    (back,) = pullback(fad.tree.map(np.ones_like, out))
    for c, x in zip(fad.tree.leaves(back), fad.tree.leaves(tree), strict=True):
        np.testing.assert_allclose(c, 1 + 2 * x)
    for t, x in zip(fad.tree.leaves(dout["squares"]), fad.tree.leaves(tree), strict=True):
        np.testing.assert_allclose(t, 2 * x)


@given(st.data(), broadcast_pairs(), dtypes(), dtypes())
def test_broadcasting_and_mixed_dtypes_come_back_as_they_went_in(data, pair, first, second):
    x = data.draw(arrays(shape=pair[0], dtype=first))
    y = data.draw(arrays(shape=pair[1], dtype=second))
    z, pullback = fad.vjp(lambda x, y: x * y + x, x, y)
    assert z.dtype == (x * y + x).dtype
    cx, cy = pullback(np.ones_like(z))
    assert (cx.shape, cx.dtype) == (x.shape, x.dtype)
    assert (cy.shape, cy.dtype) == (y.shape, y.dtype)
    full = np.broadcast_to(y + 1, z.shape)
    np.testing.assert_allclose(
        np.sum(cx * 1.0), np.sum(full if x.dtype.kind == "c" else full.real), rtol=1e-4, atol=1e-4
    )


@given(st.data(), shapes())
def test_empty_and_zero_dimensional_arrays_have_derivatives(data, shape):
    x = data.draw(arrays(shape=shape))
    value, g = fad.value_and_grad(lambda x: np.sum(np.exp(x)))(x)
    np.testing.assert_allclose(value, np.sum(np.exp(x)))
    np.testing.assert_allclose(g, np.exp(x))
    assert type(g) is np.ndarray


@pytest.mark.parametrize("x", [3.0, np.float64(3.0), np.float32(3.0), np.array(3.0)])
def test_scalars_in_give_scalars_of_their_kind_out(x):
    value, g = fad.value_and_grad(lambda x: x * x)(x)
    wanted = np.asarray(x)[()] if not isinstance(x, np.ndarray) else x
    assert type(g) is type(wanted)
    assert g.dtype == np.asarray(x).dtype
    assert float(g) == 6.0
    assert float(value) == 9.0
