"""A program under every transform, its loops captured and recorded step by step, beside plain NumPy and differences."""

import warnings
import zlib

import numpy as np

import fad
from fad.capture.body.context import reporting


def report_of(f, *args, loops="capture"):
    """Return what became of the loops of a program: ``{line after the def: what}``, and the text of it all."""
    with fad.config.use(loops=loops), reporting() as entries, warnings.catch_warnings():
        warnings.simplefilter("ignore", fad.errors.LoopFallbackWarning)
        fad.make_graph(f)(*args)
    return [entry.what for _, entry in sorted(entries.items())], "\n".join(map(str, entries.values()))


def close(got, wanted, what, rtol=1e-9):
    for a, b in zip(fad.tree.leaves(got), fad.tree.leaves(wanted), strict=True):
        assert np.shape(a) == np.shape(b), (what, np.shape(a), np.shape(b))
        assert np.asarray(a).dtype == np.asarray(b).dtype, (what, np.asarray(a).dtype, np.asarray(b).dtype)
        np.testing.assert_allclose(a, b, rtol=rtol, atol=1e-11, err_msg=str(what))


def differences(f, x, step=1e-6):
    """Return the gradient of a scalar function by central differences."""
    g = np.zeros_like(x)
    for i in np.ndindex(x.shape):
        a, b = x.copy(), x.copy()
        a[i] += step
        b[i] -= step
        g[i] = (f(a) - f(b)) / (2 * step)
    return g


def agree(f, *points, order=2, smooth=True):
    """Check a scalar function of one array at some points, under every transform, captured and recorded.

    The programs of the first point serve the others, as far as they take the same way. Two checks take turns, for each
    takes as long as all others: that of the program with all steps recorded, and that of second derivatives.
    """
    in_turn = zlib.crc32(f.__name__.encode()) % 2
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fad.errors.LoopFallbackWarning)
        if in_turn:
            with fad.config.use(loops="record"):
                (_agree_in_gradients if smooth else _agree_in_values)(f, points)
        with fad.config.use(loops="capture"):
            _agree_in_values(f, points)
            _agree_in_a_batch(f, points)
            if smooth:
                _agree_in_gradients(f, points)
                _agree_in_further_derivatives(f, points, 1 if in_turn else order)


def agree_briefly(f, x):
    """Check a scalar function of one array at a point, captured: its value, a batch, and its gradient."""
    with warnings.catch_warnings(), fad.config.use(loops="capture"):
        warnings.simplefilter("ignore", fad.errors.LoopFallbackWarning)
        fast, steep = fad.jit(f), fad.jit(fad.grad(f))
        batch = np.stack([x, x * 1.01])
        wanted = np.array([_plain(f, row) for row in batch])
        close(fad.jit(fad.vmap(f))(batch.copy()), wanted, (f.__name__, "vmap"), 1e-12)
        slope = differences(lambda y: f(y.copy()), x)
        for _ in range(2):
            given = x.copy()
            close(fast(given), _plain(f, x), (f.__name__, "value"), 1e-12)
            close(steep(given), slope, (f.__name__, "gradient"), 2e-5)
            np.testing.assert_array_equal(given, x)


def _agree_in_values(f, points):
    fast = fad.jit(f)
    for k, x in enumerate(points):
        given = x.copy()
        for _ in range(1 if k else 2):
            close(fast(given), _plain(f, x), (f.__name__, "value"), 1e-12)
        np.testing.assert_array_equal(given, x)


def _agree_in_gradients(f, points):
    steep = fad.jit(fad.grad(f))
    for k, x in enumerate(points):
        given = x.copy()
        for _ in range(1 if k else 2):
            gradient = steep(given)
        with np.errstate(all="ignore"):
            slope = differences(lambda y: f(y.copy()), x)
        close(gradient, slope, (f.__name__, "gradient beside differences"), 2e-5)
        close(gradient, fad.grad(f)(x.copy()), (f.__name__, "gradient beside that without jit"), 1e-9)
        np.testing.assert_array_equal(given, x)


def _agree_in_a_batch(f, points):
    mapped = fad.jit(fad.vmap(f))
    for x in points:
        batch = np.stack([x, x * 1.01])
        close(mapped(batch.copy()), np.array([_plain(f, row) for row in batch]), (f.__name__, "vmap"), 1e-12)


def _agree_in_further_derivatives(f, points, order):
    v = np.linspace(0.5, -0.3, points[0].size).reshape(points[0].shape)
    curve = fad.grad(lambda y: np.sum(v * fad.grad(f)(y)))
    push, bent = fad.jit(lambda y: fad.jvp(f, (y,), (v,))), fad.jit(curve)
    for x in points:
        close(push(x.copy())[1], np.sum(v * fad.grad(f)(x.copy())), (f.__name__, "jvp"), 1e-9)
        if order > 1:
            close(bent(x.copy()), curve(x.copy()), (f.__name__, "second derivative"), 1e-8)


def _plain(f, x):
    with np.errstate(all="ignore"):
        return f(x.copy())
