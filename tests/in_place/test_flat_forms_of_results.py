"""Results lie in memory as NumPy's and SciPy's do: on that depends whether ``y.reshape(-1)`` is a view of ``y``."""

import numpy as np
import pytest

import fad
import fad.scipy as scipy

_RNG = np.random.default_rng(0)
_X = _RNG.uniform(0.5, 1.5, (4, 4, 4))
_M = _RNG.uniform(0.5, 1.5, (4, 4)) + 3 * np.eye(4)
_TAPS = np.array([[0.5, 1.0, 0.25], [1.0, 2.0, 0.5]])


def _spread(x):
    """Lie with gaps between the elements, the axes the other way round."""
    wide = np.zeros(tuple(2 * n for n in x.shape[::-1]))[tuple(slice(None, None, 2) for _ in x.shape)].T
    wide[...] = x
    return wide


def _turn(q):
    """Make each vector's first element positive: rounding decides on the sign that LAPACK gives."""
    return q * np.sign(q[0])


_LAYOUTS = {
    "C": np.ascontiguousarray,
    "Fortran": np.asfortranarray,
    "first axes swapped": lambda x: np.ascontiguousarray(x.swapaxes(0, 1)).swapaxes(0, 1),
    "gaps": _spread,
    "reversed": lambda x: np.ascontiguousarray(x[::-1])[::-1],
    "repeated rows": lambda x: np.broadcast_to(x[0], x.shape),
}

_OF_STACKS = {
    "sort": lambda x: np.sort(x, axis=1),
    "partition": lambda x: np.partition(x, 1, axis=1),
    "median": lambda x: np.median(x, axis=1),
    "median of 2 axes": lambda x: np.median(x, axis=(0, 2), keepdims=True),
    "median of the last axis": lambda x: np.median(x, axis=-1),
    "nanmedian": lambda x: np.nanmedian(x, axis=1),
    "gradient": lambda x: np.gradient(x, axis=1),
    "nansum": lambda x: np.nansum(x, axis=0),
    "nanmean": lambda x: np.nanmean(x, axis=0),
    "nanprod": lambda x: np.nanprod(x, axis=1),
    "nanmax": lambda x: np.nanmax(x, axis=0),
    "nancumsum": lambda x: np.nancumsum(x, axis=1),
    "nanstd": lambda x: np.nanstd(x, axis=0),
    "repeat": lambda x: np.repeat(x, [1, 0, 2, 1], axis=-1),
    "block": lambda x: np.block(x),
    "block of two": lambda x: np.block([x, x]),
    "matvec": lambda x: np.matvec(x, x[:, 0]),
    "vecmat": lambda x: np.vecmat(x[:, 0], x),
    "einsum": lambda x: np.einsum("ab,bc,cd->ad", x[0], x[1], x[2]),
    "diagonal": lambda x: np.diagonal(x, axis1=1, axis2=2) * 1.0,
    "windows": lambda x: np.lib.stride_tricks.sliding_window_view(x[0], 2, axis=1).copy(),
    "histogramdd": lambda x: np.histogramdd(np.zeros((4, 2)), 3, weights=x[0, 0])[0],
    "histogram2d": lambda x: np.histogram2d(np.arange(4.0), np.arange(4.0), 3, weights=x[0, 0])[0],
    "average": lambda x: np.average(x, axis=0, weights=x[0, 0]),
    "averages and weights": lambda x: np.stack(np.average(x, axis=1, weights=x[0, 0], returned=True)),
    "round": lambda x: np.round(x, 1) + 0 * x,
    "added in Fortran's order": lambda x: np.add(x, 1.0, order="F"),
    "powers in C order": lambda x: np.power(x, 2, order="C"),
    "exponentials in any order": lambda x: np.exp(x, order="A"),
    "copy in any order": lambda x: np.copy(x, order="A"),
    "array of a list": lambda x: np.array([x[0], x[1]]),
    "maximum of a list": lambda x: np.max([x, 2 * x], axis=0),
    "matmul": lambda x: np.matmul(x, x, order="F"),
    "matmul along axes": lambda x: np.matmul(x, x, axes=[(0, 1), (1, 2), (2, 0)]),
    "scipy.fft": lambda x: scipy.fft.fft(x, axis=1).real.copy(),
    "scipy.irfft": lambda x: scipy.fft.irfft(x, axis=0),
    "scipy.dct": lambda x: scipy.fft.dct(x, axis=0),
    "gaussian_filter": lambda x: scipy.ndimage.gaussian_filter(x, 1.0),
    "sobel": lambda x: scipy.ndimage.sobel(x, axis=0),
    "correlate1d": lambda x: scipy.ndimage.correlate1d(x, [1.0, 2.0, 1.0], axis=0),
    "uniform_filter1d": lambda x: scipy.ndimage.uniform_filter1d(x, 3, axis=0),
    "shift": lambda x: scipy.ndimage.shift(x, 0.5, order=1),
    "zoom": lambda x: scipy.ndimage.zoom(x, 1.5, order=1),
    "savgol_filter": lambda x: scipy.signal.savgol_filter(x, 3, 1, axis=0),
    "lfilter": lambda x: scipy.signal.lfilter([1.0, 2.0], [1.0, 0.5], x, axis=0),
    "upfirdn": lambda x: scipy.signal.upfirdn([1.0, 2.0], x, 2, axis=0),
}  # fmt: skip
_OF_MATRICES = {
    "cholesky, upper": lambda m: np.linalg.cholesky(m @ m.T, upper=True),
    "matrix_power 0": lambda m: np.linalg.matrix_power(m, 0) * np.sum(m),
    "convolve2d": lambda m: scipy.signal.convolve2d(m, _TAPS, "same"),
    "correlate2d": lambda m: scipy.signal.correlate2d(m, _TAPS),
    "convolve": lambda m: scipy.signal.convolve(m, _TAPS, "same", "direct"),
    "fftconvolve": lambda m: scipy.signal.fftconvolve(m, _TAPS, "same"),
    "scipy.inv": lambda m: scipy.linalg.inv(m),
    "scipy.solve": lambda m: scipy.linalg.solve(m, m.T),
    "scipy.expm": lambda m: scipy.linalg.expm(0.1 * m),
    "scipy.cholesky": lambda m: scipy.linalg.cholesky(m @ m.T, lower=True),
    "cho_factor": lambda m: scipy.linalg.cho_factor(m @ m.T)[0],
    "cho_solve": lambda m: scipy.linalg.cho_solve(scipy.linalg.cho_factor(m @ m.T), m),
    "lu_factor": lambda m: scipy.linalg.lu_factor(m)[0],
    "solve_triangular": lambda m: scipy.linalg.solve_triangular(m, m),
    "lstsq": lambda m: scipy.linalg.lstsq(m, m[:, :2])[0],
    "eigh": lambda m: _turn(scipy.linalg.eigh(m @ m.T)[1]),
    "svd": lambda m: _turn(scipy.linalg.svd(m)[0]),
    "pinv": lambda m: scipy.linalg.pinv(m),
}  # fmt: skip
_CASES = {
    **{name: (f, _X) for name, f in _OF_STACKS.items()},
    **{name: (f, _M) for name, f in _OF_MATRICES.items()},
}


def _write_flat(f):
    """Double a result through its flat form, which is a view of it or a copy."""

    def program(x):
        y = f(x)
        y.reshape(-1)[1:] *= 2.0
        y.ravel("K")[:1] += 1.0  # seen in y unless it has gaps, whatever the order of its axes
        return y

    return program


@pytest.mark.parametrize("name", _CASES)
def test_a_write_through_the_flat_form_of_a_result_is_seen_where_it_is_in_numpy(name):
    f, start = _CASES[name]
    program = _write_flat(f)
    jitted = fad.jit(program)
    for layout, lay in _LAYOUTS.items():
        x = lay(start)
        if layout == "repeated rows" and name in _OF_MATRICES:
            continue  # a singular matrix
        wanted = program(x)
        tried = {
            "jvp": fad.jvp(program, (x,), (np.ones(x.shape),))[0],
            "vjp": fad.vjp(program, x)[0],
            "jit": jitted(x),
            "jit again": jitted(x),
            "vmap": fad.vmap(program)(np.stack([x, x]))[1] if layout == "C" else wanted,
        }
        for what, got in tried.items():
            np.testing.assert_allclose(got, wanted, rtol=1e-9, atol=1e-9, err_msg=f"{what}, {layout}")


def _write_flat_into_argument(x):
    x.reshape(-1)[0] = 5.0
    return x * 2.0


@pytest.mark.parametrize("shape", [(3, 4), (2, 3, 4)])
def test_an_argument_of_repeated_rows_has_a_flat_form_of_its_own(shape):
    x = np.broadcast_to(np.arange(1.0, 5.0), shape)
    wanted = _write_flat_into_argument(x)
    y, pullback = fad.vjp(_write_flat_into_argument, x)
    np.testing.assert_array_equal(y, wanted)
    np.testing.assert_array_equal(pullback(np.ones(shape))[0], np.full(shape, 2.0))
    np.testing.assert_array_equal(fad.jvp(_write_flat_into_argument, (x,), (np.ones(shape),))[0], wanted)
    np.testing.assert_array_equal(fad.jit(_write_flat_into_argument)(x), wanted)


def _stack(x):
    return np.stack([x, 2 * x])


_OF_DIAGONALS = {
    "ascontiguousarray": lambda x: (x, np.ascontiguousarray(np.einsum("ii->i", x))),
    "asfortranarray": lambda x: (x, np.asfortranarray(np.einsum("ii->i", x))),
    "require": lambda x: (x, np.require(np.einsum("ii->i", x), requirements="C")),
    "array without a copy": lambda x: (x, np.array(np.einsum("ii->i", x), copy=None, order="C")),
    "astype without a copy": lambda x: (x, np.einsum("ii->i", x).astype(float, order="C", copy=False)),
    "reshape": lambda x: (x, np.einsum("ii->i", x).reshape(-1)),
    "part": lambda x: (x, np.ascontiguousarray(np.einsum("ii->i", x)[1:])),
    "rows of diagonals": lambda x: (z := _stack(x), np.einsum("kii->ki", z).ravel()),
    "a diagonal that may not be written": lambda x: (x, np.ascontiguousarray(np.diagonal(x))),
    "diagonals that may not be written": lambda x: (z := _stack(x), np.diagonal(z, axis1=1, axis2=2).reshape(-1)),
    "windows": lambda x: (x, np.lib.stride_tricks.sliding_window_view(x, 2, axis=0).reshape(-1)),
}


@pytest.mark.parametrize("name", _OF_DIAGONALS)
def test_what_is_made_contiguous_of_a_diagonal_is_a_copy_where_numpy_makes_one(name):
    def program(x):
        x = x * 1.0
        whole, part = _OF_DIAGONALS[name](x)
        part *= 3.0
        return whole, part

    x = np.arange(1.0, 10.0).reshape(3, 3)
    wanted = program(x)
    batch = fad.vmap(program)(np.stack([x, x]))
    found = fad.jvp(program, (x,), (x,))[0], fad.vjp(program, x)[0], fad.jit(program)(x), [y[1] for y in batch]
    for got in found:
        for g, w in zip(got, wanted, strict=True):
            np.testing.assert_array_equal(g, w)
