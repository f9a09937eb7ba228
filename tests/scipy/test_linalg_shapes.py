"""fad.scipy.linalg and numpy.cov on empty arrays, and on arrays of more axes: traced calls give what plain ones do."""

import warnings

import numpy as np
import pytest
import scipy.linalg as sl

import fad
from fad.scipy import linalg as fsl
from fad.testing import check_grads

C = np.array([[3.0, 1.0], [5.0, 1.0]])
B = np.array([[1.0, 2.0], [3.0, 5.0]])
CUBE = np.stack([B, 2.0 * B + 1.0], -1)


def pairs(name, *args, **options):
    return name, lambda module, *xs: getattr(module, name)(*xs, **options), args


CALLS = [
    *[pairs(name, np.zeros(shape)) for shape in ((3, 0), (0, 3), (0, 0)) for name in ("lu", "lu_factor")],
    *[pairs("lu", np.zeros(shape), permute_l=True) for shape in ((3, 0), (0, 3), (0, 0))],
    pairs("lu_factor", np.arange(1.0, 9.0).reshape(4, 2) ** 2),
    pairs("lu_factor", np.arange(1.0, 9.0).reshape(2, 4) ** 2),
    *[pairs("lstsq", np.zeros(a), np.ones(b)) for a in ((0, 0), (3, 0), (0, 3)) for b in (a[:1], (a[0], 2), (a[0], 0))],
    pairs("solve", np.float64(2.0), np.float64(3.0)),
    pairs("solve", np.array([2.0]), B[0]),
    pairs("solve", np.float64(2.0), C, assume_a="pos"),
    pairs("expm", np.array([2.0])),
    pairs("hankel", C),
    pairs("hankel", C, B),
    pairs("hankel", C[0], B),
    pairs("toeplitz", C),
    pairs("toeplitz", C, B),
    pairs("toeplitz", C[0], B),
    pairs("toeplitz", np.float64(2.0)),
    pairs("circulant", C),
    pairs("circulant", np.float64(2.0)),
    pairs("convolution_matrix", C, n=3),
    pairs("convolution_matrix", C, n=3, mode="same"),
    pairs("convolution_matrix", C, n=3, mode="valid"),
    pairs("solve_circulant", C, B[0]),
    pairs("solve_circulant", C, B),
    pairs("solve_circulant", C[0], B),
    pairs("solve_circulant", C[0], CUBE),
    pairs("solve_circulant", C[0].astype(np.float32), B.astype(np.float32)),
    pairs("solve_circulant", C.T, B, caxis=0, baxis=1, outaxis=-1),
    pairs("solve_circulant", C[:, None], np.ones((3, 2)), baxis=-1),
    pairs("solve_circulant", C[0], np.ones((2, 0))),
    pairs("solve_circulant", np.float64(2.0), np.ones(1)),
]


def results(f, xs):
    """Return the values that each transform has for a call."""
    yield fad.vjp(f, *xs)[0]
    yield fad.jvp(f, xs, xs)[0]
    yield fad.tree.map(lambda y: y[1], fad.vmap(f)(*[np.stack([x, x]) for x in xs]))
    fast = fad.jit(f)
    yield from (fast(*xs), fast(*xs))


def same(f, expected, xs):
    for found in results(f, xs):
        for y, z in zip(fad.tree.leaves(found), fad.tree.leaves(expected), strict=True):
            assert np.asarray(y).dtype == np.asarray(z).dtype
            np.testing.assert_allclose(y, z, rtol=1e-6, atol=1e-12, strict=False)
            assert np.shape(y) == np.shape(z)


@pytest.mark.parametrize(
    ("name", "function", "xs"), CALLS, ids=[f"{c[0]}-{[np.shape(x) for x in c[2]]}" for c in CALLS]
)
def test_a_traced_call_of_scipy_linalg_gives_what_a_plain_one_gives(name, function, xs):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # SciPy announces what hankel will take stacks for
        expected = tuple(fad.tree.leaves(function(sl, *xs)))
        same(lambda *xs: tuple(fad.tree.leaves(function(fsl, *xs))), expected, xs)


@pytest.mark.parametrize("function", [np.cov, np.corrcoef])
@pytest.mark.parametrize(
    ("x", "y", "rowvar"),
    [
        (np.zeros((0, 2)), B, True),
        (B, np.zeros((0, 2)), True),
        (np.zeros((2, 0)), B, False),
        (B, np.zeros((2, 0)), False),
        (np.zeros((0, 2), complex), B + 0j, True),
    ],
)
def test_covariances_without_variables_are_numpys(function, x, y, rowvar):
    same(lambda x, y: function(x, y, rowvar), function(x, y, rowvar), (x, y))


@pytest.mark.parametrize(
    ("args", "options", "match"),
    [
        ((C, np.ones(3)), {}, "incompatible"),
        ((C, B), {"caxis": 4}, "'caxis' entry is out of bounds"),
        ((C, B), {"baxis": -3}, "'baxis' entry is out of bounds"),
    ],
)
def test_solve_circulant_refuses_axes_and_lengths_as_scipy_does(args, options, match):
    for solve in (sl.solve_circulant, fsl.solve_circulant, fad.jit(lambda c, b: fsl.solve_circulant(c, b, **options))):
        with pytest.raises(ValueError, match=match):
            solve(*args, **(options if not hasattr(solve, "explain") else {}))


def test_derivatives_of_stacked_circulant_systems_are_right():
    for c, b, options in [(C, B, {}), (C[0], CUBE, {}), (C.T, B, {"caxis": 0, "baxis": 1, "outaxis": -1})]:
        check_grads(lambda c, b, options=options: fsl.solve_circulant(c, b, **options), (c, b), order=2)
