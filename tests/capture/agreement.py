"""A program under every transform, its loops captured and recorded step by step, beside plain NumPy and differences."""

import warnings

import numpy as np

import fad
from fad.capture.context import reporting


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
    """Check a scalar function of one array at some points, under every transform, captured and recorded."""
    results = {loops: _results_of(f, points, loops, order, smooth) for loops in ("capture", "record")}
    if not smooth:
        return
    for x, captured, recorded in zip(points, results["capture"], results["record"], strict=True):
        close(captured[0], recorded[0], (f.__name__, "captured beside recorded"), 1e-9)
        close(fad.grad(f)(x.copy()), captured[0], (f.__name__, "eager gradient"), 1e-9)
        if order > 1:
            close(captured[1], recorded[1], (f.__name__, "second derivative"), 1e-8)


def _results_of(f, points, loops, order, smooth):
    """Return the gradients of a jitted function and of a product with it, at each point; compare with differences.

    The programs of the first point serve the others, as far as they take the same way.
    """
    v = np.linspace(0.5, -0.3, points[0].size).reshape(points[0].shape)
    found = []
    with fad.config.use(loops=loops), warnings.catch_warnings():
        warnings.simplefilter("ignore", fad.errors.LoopFallbackWarning)
        fast, steep, mapped = fad.jit(f), fad.jit(fad.grad(f)), fad.jit(fad.vmap(f))
        push = fad.jit(lambda y: fad.jvp(f, (y,), (v,)))
        curve = fad.jit(fad.grad(lambda y: np.sum(v * fad.grad(f)(y))))
        for k, x in enumerate(points):
            given, batch = x.copy(), np.stack([x, x * 1.01])
            with np.errstate(all="ignore"):
                value, other = f(x.copy()), f(batch[1].copy())
                slope = differences(lambda y: f(y.copy()), x) if smooth else None
            for _ in range(1 if k else 2):
                close(fast(given), value, (f.__name__, loops, "value"), 1e-12)
            if smooth:
                for _ in range(1 if k else 2):
                    gradient = steep(given)
                close(gradient, slope, (f.__name__, loops, "gradient"), 2e-5)
                close(push(given)[1], np.sum(v * gradient), (f.__name__, loops, "jvp"), 1e-9)
                found.append((gradient, curve(given) if order > 1 else None))
            close(mapped(batch), np.array([value, other]), (f.__name__, loops, "vmap"), 1e-12)
            np.testing.assert_array_equal(given, x)
    return found
