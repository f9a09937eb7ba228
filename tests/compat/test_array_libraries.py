"""Libraries written for any array take traced ones: einops, opt_einsum, array-API paths of SciPy and scikit-learn."""

import importlib
import os
import subprocess
import sys

import numpy as np
import opt_einsum
import pytest

import fad
from fad.compat.einops import einops
from fad.testing import check_grads

X = np.linspace(0.3, 1.7, 12).reshape(4, 3)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: einops.rearrange(x, "(a b) c -> (c a) b", a=2) ** 2,
        lambda x: einops.reduce(x, "a b -> b", "mean") ** 2,
        lambda x: einops.reduce(x, "a b -> b", "max") ** 2,
        lambda x: einops.repeat(x, "a b -> a b two", two=2) ** 2,
        lambda x: einops.einsum(x, x, "a b, c b -> a c"),
        lambda x: einops.pack([x, 2 * x], "* b")[0] ** 2,
    ],
)
def test_einops_rearranges_traced_arrays(f):
    check_grads(f, (X,), order=2)
    batched = fad.vmap(f)(np.stack([X, 2 * X]))
    np.testing.assert_allclose(batched[1], f(2 * X))


def test_opt_einsum_contracts_traced_arrays():
    def f(x, y, z):
        return opt_einsum.contract("ij,kj,kl->il", x, y, z)

    check_grads(f, (X, 2 * X, X[:, :2]), order=2)


def test_the_namespace_of_a_traced_array_is_fad_numpy():
    seen = []
    fad.grad(lambda x: seen.append(x.__array_namespace__()) or np.sum(x))(X)
    assert seen == [fad.numpy]


SCIPY = """
import numpy as np, fad, scipy.fft, scipy.stats
functions = [lambda v: np.sum(np.abs(scipy.fft.fft(v)) ** 3), lambda v: scipy.stats.skew(v)]
v, e = np.linspace(0.3, 1.7, 12) ** 2, 1e-6 * np.eye(12)[5]
for f in functions:
    assert abs(fad.grad(f)(v)[5] - (f(v + e) - f(v - e)) / 2e-6) < 1e-5 * max(1, abs(f(v)))
"""
MIXED = """
import numpy as np, fad, scipy.signal, scipy.special, scipy.stats
import fad.compat.array_api
y = np.linspace(-1.0, 2.0, 12)
functions = [
    lambda v: np.sum(scipy.signal.fftconvolve(v, y) ** 2),
    lambda v: np.sum(scipy.signal.fftconvolve(y, v) ** 2),
    lambda v: scipy.stats.ttest_1samp(v, 1.0).statistic,
    lambda v: scipy.stats.ttest_ind(v, y).pvalue,
    lambda v: scipy.stats.entropy(v, y**2),
    lambda v: scipy.stats.hmean(v, weights=y**2),
    lambda v: np.sum(scipy.special.xlogy(y**2, v)),
    lambda v: np.sum(scipy.special.expit(v)),
]
v, e = np.linspace(0.3, 1.7, 12) ** 2, 1e-6 * np.eye(12)[5]
for f in functions:
    assert abs(fad.grad(f)(v)[5] - (f(v + e) - f(v - e)) / 2e-6) < 1e-5 * max(1, abs(f(v)))
    assert np.allclose(fad.jit(f)(v), f(v)) and np.allclose(fad.vmap(f)(np.stack([v, v])), f(v))
assert scipy.special._support_alternative_backends.scipy_namespace_for(np) is None
"""
SCIKIT_LEARN = """
import numpy as np, fad
from sklearn import config_context
from sklearn.metrics import mean_squared_error
x = np.linspace(0.3, 1.7, 12).reshape(4, 3)
with config_context(array_api_dispatch=True):
    g = fad.grad(lambda p: np.sum(mean_squared_error(p * 0, p, multioutput="raw_values")))(x)
assert np.allclose(g, 2 * x / len(x))
"""


def run(program: str) -> str:
    environment = {**os.environ, "SCIPY_ARRAY_API": "1"}
    ended = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)
    return "" if ended.returncode == 0 else ended.stderr


def test_array_api_paths_of_scipy_take_traced_arrays():
    assert not run(SCIPY)


def test_array_api_paths_of_scipy_take_traced_and_plain_arrays_together():
    assert not run(MIXED)


def test_array_api_paths_of_scikit_learn_take_traced_arrays():
    said = run(SCIKIT_LEARN)
    if "ImportError" in said:  # it says which SciPy, or which package, its array API needs
        pytest.skip(said.splitlines()[-1])
    assert not said


_IMAGES = """
import numpy as np

def smooth(image):
    image = np.asarray(image, dtype=float)
    out = np.zeros_like(image)
    out[1:-1] = 0.25 * image[:-2] + 0.5 * image[1:-1] + 0.25 * image[2:]
    out[0], out[-1] = image[0], image[-1]
    return np.clip(out, 0.0, None) ** 2
"""


@pytest.mark.parametrize("library", ["skimage", "sklearn"])
def test_libraries_of_numpy_nearly_throughout_are_differentiated_as_programs(library, tmp_path, monkeypatch):
    # A package of the library's name, which need not be installed, stands in for it.
    (tmp_path / library).mkdir()
    (tmp_path / library / "__init__.py").write_text("")
    (tmp_path / library / "filters.py").write_text(_IMAGES)
    monkeypatch.syspath_prepend(tmp_path)
    for name in [name for name in sys.modules if name.partition(".")[0] == library]:
        monkeypatch.delitem(sys.modules, name)
    filters = importlib.import_module(f"{library}.filters")

    try:
        check_grads(filters.smooth, (X,), order=2)
        np.testing.assert_allclose(fad.jit(filters.smooth)(X), filters.smooth(X))
    finally:
        for name in [name for name in sys.modules if name.partition(".")[0] == library]:
            del sys.modules[name]


MADE = {
    "zeros": lambda xp, w: xp.zeros(3), "ones": lambda xp, w: xp.ones((3,), dtype=w.dtype),
    "empty": lambda xp, w: xp.empty(3) * 0.0 + 1.0, "full": lambda xp, w: xp.full(3, 2.0),
    "eye": lambda xp, w: xp.eye(3)[1],
    "arange": lambda xp, w: xp.arange(3.0), "linspace": lambda xp, w: xp.linspace(0.0, 1.0, 3),
    "asarray": lambda xp, w: xp.asarray([1.0, 2.0, 3.0]), "zeros_like": lambda xp, w: xp.zeros_like(w),
    "ones_like": lambda xp, w: xp.ones_like(w), "full_like": lambda xp, w: xp.full_like(w, 0.5),
    "empty_like": lambda xp, w: xp.zeros_like(xp.empty_like(w)), "stack": lambda xp, w: xp.stack([w, w])[1],
    "concat": lambda xp, w: xp.concatenate([w, w])[:3], "tile": lambda xp, w: xp.tile(w, 2)[3:],
    "copy": lambda xp, w: xp.copy(w),
}  # fmt: skip


@pytest.mark.parametrize("made", MADE.values(), ids=MADE)
def test_what_the_namespace_of_a_traced_array_makes_takes_traced_values(made):
    outside = np.linspace(1.0, 2.0, 3)

    def f(x):
        xp = x.__array_namespace__()
        y = made(xp, outside)
        y[0] = x[0] * x[1]
        y[1:] *= x[2]
        return xp.sum(y**2)

    check_grads(f, (X[0],), order=2)
    np.testing.assert_array_equal(outside, np.linspace(1.0, 2.0, 3))
    np.testing.assert_allclose(fad.vmap(f)(X), [f(x) for x in X])
    compiled, slope = fad.jit(f), fad.jit(fad.grad(f))
    for x in X[:3]:
        np.testing.assert_allclose(compiled(x), f(x))
        np.testing.assert_allclose(slope(x), fad.grad(f)(x))


def test_what_the_namespace_of_a_traced_array_makes_takes_a_traced_mask():
    def f(x):
        xp = x.__array_namespace__()
        return xp.sum(xp.ones(3)[x > 0.5] * x[x > 0.5] ** 2)

    np.testing.assert_allclose(fad.vmap(f)(X), [f(x) for x in X])
    np.testing.assert_allclose([fad.jit(f)(x) for x in X], [f(x) for x in X])


def test_a_converter_of_the_namespace_keeps_an_array_from_outside():
    outside, seen = np.ones(3), []

    def f(x):
        xp = x.__array_namespace__()
        seen.append(xp.asarray(outside) is outside)
        y = xp.zeros(3)
        y[0] = x[0]
        return xp.sum(y * outside)

    fad.grad(f)(X[0])
    assert all(seen)
