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


def agree(f, x, order=2, smooth=True):
    """Check a scalar function of one array under every transform, captured and recorded."""
    with np.errstate(all="ignore"):
        value = f(x.copy())
        slope = differences(lambda y: f(y.copy()), x) if smooth else None
    results = {}
    for loops in ("capture", "record"):
        with fad.config.use(loops=loops), warnings.catch_warnings():
            warnings.simplefilter("ignore", fad.errors.LoopFallbackWarning)
            given = x.copy()
            fast, steep = fad.jit(f), fad.jit(fad.grad(f))
            for _ in range(2):
                close(fast(given), value, (f.__name__, loops, "value"), 1e-12)
            if smooth:
                for _ in range(2):
                    results[loops] = steep(given)
                close(results[loops], slope, (f.__name__, loops, "gradient"), 2e-5)
                v = np.linspace(0.5, -0.3, x.size).reshape(x.shape)
                pushed = fad.jit(lambda y: fad.jvp(f, (y,), (v,)))(given)  # noqa: B023
                close(pushed[1], np.sum(v * results[loops]), (f.__name__, loops, "jvp"), 1e-9)
                if order > 1:
                    curve = fad.jit(fad.grad(lambda y: np.sum(v * fad.grad(f)(y))))  # noqa: B023
                    results[loops, 2] = curve(given)
            batch = np.stack([x, x * 1.01])
            close(
                fad.jit(fad.vmap(f))(batch), np.array([value, f(batch[1].copy())]), (f.__name__, loops, "vmap"), 1e-12
            )
            np.testing.assert_array_equal(given, x)
    if smooth:
        close(results["capture"], results["record"], (f.__name__, "captured beside recorded"), 1e-9)
        close(fad.grad(f)(x.copy()), results["capture"], (f.__name__, "eager gradient"), 1e-9)
        if order > 1:
            close(results["capture", 2], results["record", 2], (f.__name__, "second derivative"), 1e-8)
