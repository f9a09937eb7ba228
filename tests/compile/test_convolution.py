"""Convolutions in native programs: no call of NumPy, equal to eager ones within rounding, in derivatives as well."""

import numpy as np
import pytest
from natively import compiled, native

import fad
from fad import tree
from fad.compile.codegen import convolution
from fad.compile.ir.slice_writes import left_out
from fad.ops.products.conv import conv, conv_transpose
from fad.ops.products.pooling import max_pool

pytest.importorskip("llvmlite")
rng = np.random.default_rng(0)

# Input, kernel, options: vectors along the examples first, then along the last axis.
CASES = [
    ((9, 3, 12), (4, 3, 3), {}),
    ((32, 1, 14, 14), (8, 1, 3, 3), {}),
    ((32, 4, 9, 7), (6, 2, 3, 2), {"stride": (2, 1), "padding": 1, "groups": 2}),
    ((17, 4, 9, 8), (6, 4, 3, 2), {"stride": 2, "padding": ((1, 2), (0, 1)), "dilation": (2, 1)}),
    ((16, 2, 5, 6, 4), (2, 2, 2, 3, 2), {"padding": 1}),
    ((8, 3, 11, 11), (5, 3, 2, 2), {"stride": 4}),
    ((40, 3, 11, 11), (5, 3, 5, 5), {"padding": 4, "dilation": 2, "stride": 3}),
    ((16, 3, 4, 5), (4, 3, 1, 1), {}),
    ((20, 4, 9, 7), (6, 2, 1, 1), {"padding": 1, "stride": 2, "groups": 2}),
    ((16, 6, 8, 8), (6, 1, 3, 3), {"padding": "same", "groups": 6}),
    ((2, 3, 4, 17), (4, 3, 3, 3), {}),
    ((2, 3, 4, 5), (4, 3, 1, 1), {}),
    ((2, 3, 9, 17), (4, 3, 3, 3), {"padding": "same", "stride": (2, 1)}),
    ((1, 4, 40), (4, 1, 5), {"groups": 4, "padding": 2}),
    ((1, 2, 4, 3, 16), (2, 2, 2, 2, 2), {"padding": ((1, 0), (0, 1), (0, 0))}),
]


def _operands(shape, kernel, dtype):
    return rng.normal(size=shape).astype(dtype), rng.normal(size=kernel).astype(dtype)


def _equal(found, want, dtype, scale=1.0):
    within = (1e-12 if dtype is np.float64 else 3e-5) * scale
    for a, b in zip(tree.leaves(found), tree.leaves(want), strict=True):
        assert a.dtype == b.dtype == dtype
        np.testing.assert_allclose(a, b, rtol=within, atol=within * np.abs(b).max())


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(("shape", "kernel", "options"), CASES)
def test_a_convolution_and_its_gradient_run_natively(shape, kernel, options, dtype):
    x, w = _operands(shape, kernel, dtype)
    bias = rng.normal(size=kernel[0]).astype(dtype)

    def f(x, w, bias):
        loss = lambda x, w, bias: np.sum(np.sin(conv(x, w, bias, **options)))
        return conv(x, w, bias, **options), fad.grad(loss, argnums=(0, 1, 2))(x, w, bias)

    _equal(native(f, x, w, bias), f(x, w, bias), dtype)


@pytest.mark.parametrize(("shape", "kernel", "options"), CASES)
def test_second_derivatives_run_natively(shape, kernel, options):
    x, w = _operands(shape, kernel, np.float64)

    def f(x, w):
        slope = lambda x, w: fad.grad(lambda x: np.sum(np.sin(conv(x, w, **options))))(x)
        return fad.grad(lambda x, w: np.sum(slope(x, w) ** 2), argnums=(0, 1))(x, w)

    _equal(native(f, x, w), f(x, w), np.float64, 10)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(
    ("shape", "kernel", "options"),
    [
        ((16, 3, 4), (3, 2, 3), {}), ((16, 3, 4, 4), (3, 2, 1, 3), {"stride": (3, 2), "padding": (0, 1)}),
        ((8, 4, 3, 3), (4, 3, 3, 2), {"stride": 2, "padding": (1, 0), "output_padding": (1, 0), "groups": 2}),
        ((1, 2, 20), (2, 3, 4), {"dilation": 2}),
    ],
)  # fmt: skip
def test_a_transposed_convolution_runs_natively_where_no_tap_meets_a_place_too(shape, kernel, options, dtype):
    x, w = _operands(shape, kernel, dtype)

    def f(x, w):
        loss = lambda x, w: np.sum(np.sin(conv_transpose(x, w, **options)))
        return conv_transpose(x, w, **options), fad.grad(loss, argnums=(0, 1))(x, w)

    _equal(native(f, x, w), f(x, w), dtype)


@pytest.mark.parametrize("in_axes", [(0, None), (None, 0), (0, 0)])
def test_vmap_of_a_convolution_runs_natively(in_axes):
    x, w = _operands((3, 8, 2, 6, 7) if in_axes[0] == 0 else (8, 2, 6, 7), (4, 2, 3, 3), np.float64)
    w = np.stack([w, 2 * w, w - 1]) if in_axes[1] == 0 else w

    def f(x, w):
        one = lambda x, w: fad.grad(lambda x, w: np.sum(np.tanh(conv(x, w, padding=1))), argnums=(0, 1))(x, w)
        return fad.vmap(one, in_axes)(x, w)

    _equal(native(f, x, w), f(x, w), np.float64)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_training_step_of_a_network_with_pooling_calls_no_numpy(dtype):
    shapes = [(8, 1, 3, 3), (8,), (6, 8, 3, 3), (6,), (54, 10), (10,)]
    params = [rng.normal(size=s).astype(dtype) / 4 for s in shapes]
    x = rng.normal(size=(16, 1, 16, 16)).astype(dtype)

    def loss(params, x):
        w1, b1, w2, b2, w3, b3 = params
        h = max_pool(np.maximum(conv(x, w1, b1), 0.0), 2)
        h = max_pool(np.maximum(conv(h, w2, b2, padding=1), 0.0), 2)
        return np.mean(np.tanh(h.reshape(16, -1) @ w3 + b3) ** 2)

    def step(params, x):
        value, slopes = fad.value_and_grad(loss)(params, x)
        return value, [p - 0.1 * s for p, s in zip(params, slopes, strict=True)]

    _equal(native(step, params, x), step(params, x), dtype, 10)


def test_what_stands_around_convolutions_keeps_its_meaning():
    """Slices, joins, sums, transposes and shapes of one axis, after a convolution and before another one."""
    x, w = _operands((8, 3, 6, 7), (3, 3, 3, 3), np.float64)

    def f(x, w):
        y = conv(x, w, padding=1)
        z = np.concatenate([y[:, :2], np.exp(-np.abs(y[:, 1:]))], axis=1)[:, ::2]
        z = z - np.mean(z, axis=(0, 2, 3), keepdims=True) + np.sum(y, axis=1)[:, None] * np.arange(7.0)
        u = conv(np.transpose(z, (0, 1, 3, 2)), w[:, :2])
        first = y[0] + y[-1, 0, 2]
        return u, np.sum(y, axis=(0, 2)), np.max(u, axis=1), first, np.where(y > 0, y, x), y.reshape(8, -1)[:, 5], y

    for a, b in zip(compiled(f, x, w)(x, w), f(x, w), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-13)


def test_a_convolution_in_a_loop_runs_natively():
    x, w = _operands((8, 2, 6, 6), (2, 2, 3, 3), np.float64)

    def f(x, w):
        return fad.fori_loop(0, 4, lambda _, x: np.tanh(conv(x, w, padding=1)), x)

    _equal(native(f, x, w), f(x, w), np.float64)


def test_where_vectors_would_stay_empty_it_is_numpys_call():
    x, w = _operands((1, 3, 9, 9), (4, 3, 3, 3), np.float64)  # one example: a quarter of the shortest vectors
    f = compiled(lambda x, w: conv(x, w, stride=2), x, w)
    assert "convolution" in f.explain().partition("calls of NumPy")[2]
    _equal(f(x, w), conv(x, w, stride=2), np.float64)


def test_large_weights_for_single_vectors_are_blas_s_with_the_same_result():
    x, w = _operands((1, 256, 3, 8), (256, 256, 3, 3), np.float32)
    f = compiled(lambda x, w: conv(x, w, padding=1), x, w)
    assert "convolution" in f.explain().partition("calls of NumPy")[2]
    _equal(f(x, w), conv(x, w, padding=1), np.float32)


def test_mixed_dtypes_are_numpys_call():
    x, w = _operands((16, 3, 6), (4, 3, 3), np.float32)
    _equal(compiled(conv, x, w.astype(float))(x, w.astype(float)), conv(x, w.astype(float)), np.float64)


def test_what_does_not_fit_into_tables_is_computed_by_numpy_on_the_same_arrays(monkeypatch):
    monkeypatch.setattr(convolution, "MOST_PLACES", 0)
    for shape, kernel, options in CASES:
        x, w = _operands(shape, kernel, np.float64)
        f = lambda x, w: fad.grad(lambda x, w: np.sum(np.sin(conv(x, w, **options))), argnums=(0, 1))(x, w)  # noqa: B023
        _equal(compiled(f, x, w)(x, w), f(x, w), np.float64)


def test_large_convolutions_are_cut_into_parts_with_the_same_result():
    x, w = _operands((16, 16, 24, 24), (24, 16, 3, 3), np.float32)
    f = lambda x, w: fad.grad(lambda x, w: np.sum(np.sin(conv(x, w, padding=1))), argnums=(0, 1))(x, w)
    _equal(native(f, x, w), f(x, w), np.float32, 3)
    x, w = _operands((1, 2, 3000, 16), (3, 2, 3, 3), np.float32)
    _equal(native(f, x, w), f(x, w), np.float32, 3)


def test_pieces_that_fill_a_box_leave_the_frame_around_it():
    def frame(shape, *indices):
        rest = left_out(indices, shape)
        if rest is None:
            return None
        found = np.zeros(shape, int)
        for index in rest:
            found[index] += 1
        return found

    def inside(shape, *indices):
        covered = np.zeros(shape, int)
        for index in indices:
            covered[index] += 1
        return 1 - covered

    whole, even, odd = slice(None), slice(0, 4, 2), slice(1, 4, 2)
    for shape, indices in [
        ((5, 6), [(slice(1, 3), slice(2, 5))]),
        ((2, 5, 4), [(whole, a, b) for a in (even, odd) for b in (even, odd)]),
        ((4, 5, 3), [(even,), (odd,)]),
        ((3, 4), [(0, slice(1, 3)), (1, slice(1, 3))]),
    ]:
        np.testing.assert_array_equal(frame(shape, *indices), inside(shape, *indices))
    assert frame((4, 4), (even, even)) is None  # with holes
    assert frame((4, 4), (slice(0, 3), slice(0, 3)), (slice(2, 4), slice(2, 4))) is None  # one over the other
    assert frame((4, 4), (slice(0, 3), slice(0, 3)), (..., 3)) is None
