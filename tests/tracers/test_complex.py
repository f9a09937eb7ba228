"""Complex numbers end to end: operations beside themselves on pairs of reals, holomorphic ones, and random programs.

The convention is JAX's: cotangents pair with tangents as Re(sum(ct * t)), and the gradient of a real function is
df/dx - i df/dy.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fad
import fad.nn.functional
from fad.core.primitives.primitive import REGISTRY
from fad.core.tracing.numpy_dispatch import FUNCTIONS, REFUSED, UFUNCS
from fad.errors import ComplexGradientError
from fad.testing.cases import cases, is_defined

RNG = np.random.default_rng(5)


@pytest.fixture(autouse=True)
def _draws_do_not_depend_on_the_order_of_tests():
    global RNG
    RNG = np.random.default_rng(5)


def noise(*shape, kind=complex):
    x = RNG.normal(size=shape)
    return x + 1j * RNG.normal(size=shape) if kind is complex else x


# --- what NumPy defines for complex numbers has a rule ---------------------------------------------------------------


def complex_ufuncs():
    """Return NumPy's ufuncs that have a loop for complex128."""
    found = {f for f in vars(np).values() if isinstance(f, np.ufunc)}
    return sorted((f for f in found if any("D" in loop.split("->")[0] for loop in f.types)), key=lambda f: f.__name__)


@pytest.mark.parametrize("ufunc", complex_ufuncs(), ids=lambda f: f.__name__)
def test_every_ufunc_with_a_complex_loop_has_a_rule_and_is_tried_on_complex_samples(ufunc):
    operation = UFUNCS.get(ufunc)
    assert operation is not None
    assert ufunc not in REFUSED
    entries = [op for op in REGISTRY.values() if any(f is ufunc for f in op.numpy if not isinstance(f, list))]
    assert entries
    assert any(op.complex for op in entries)


# Where complex samples are refused although NumPy computes something: what it computes is no function of them.
NO_MEANING = {
    "arange": "NumPy drops the imaginary part of a length",
    **dict.fromkeys(["histogram", "histogram_bin_edges", "histogram2d", "histogramdd"], "bins of complex numbers"),
    "unique_values": "an order that NumPy leaves open; the set is right",
    "norm_root": "a step of norm on real numbers",
    "random_gamma": "its parameter is real, and fad.random refuses another",
    "sign_real": "the real branch of sign",
    "isposinf": "its samples are constants", "isneginf": "its samples are constants",
    "real_part": "the complex branch of real, whose samples are complex already",
    "imag_part": "the complex branch of imag, whose samples are complex already",
    "angle_of_real": "the real branch of angle", "imag_of_real": "the real branch of imag",
    "search_sorted": "places in a sorted array of reals",
    "scipy.ndimage.zoom": "SciPy forgets grid_mode for complex images; the parts of one are right",
    "scipy.ndimage.gaussian_gradient_magnitude": "the root of a sum of complex squares, which is no length",
    **dict.fromkeys(
        [f"scipy.spatial.distance.{name}" for name in
         ("chebyshev", "cityblock", "euclidean", "mahalanobis", "minkowski", "sqeuclidean")],
        "SciPy's metrics are for real vectors, as it says; some give complex distances",
    ),
    **dict.fromkeys(
        ["scipy.sum_over_pairs", "scipy.inverse_or_zero", "scipy.root_of_a_sum"],
        "the parts that the metrics for real vectors are made of",
    ),
    "scipy.spatial.distance_matrix": "computed as the metric of real vectors, which refuses traced complex ones",
    "scipy.linalg.solveh_banded": "its sample has a real diagonal",
    **dict.fromkeys(
        [f"scipy.{name}" for name in ("exponnorm_isf", "exponnorm_ppf", "invgauss_isf", "invgauss_ppf", "skewnorm_cdf",
                                      "skewnorm_ppf", "frequencies_of_a_filter")],
        "the parts that distributions and responses of filters are made of, of real numbers",
    ),
    **dict.fromkeys(
        [f"scipy.ndimage.{name}" for name in ("center_of_mass", "maximum", "mean", "minimum", "standard_deviation",
                                              "sum", "sum_labels", "variance")],
        "SciPy measures complex images without labels alone, or orders them",
    ),
    **dict.fromkeys([f"scipy.signal.argrel{name}" for name in ("extrema", "max", "min")], "an order of numbers"),
    **dict.fromkeys(
        [f"scipy.signal.{name}" for name in ("bilinear", "freqs", "freqz", "freqz_sos", "freqz_zpk", "group_delay",
                                             "normalize", "sos2tf", "sosfreqz", "tf2zpk", "zpk2tf")],
        "filters with real coefficients: SciPy takes the real part of some complex ones",
    ),
    **dict.fromkeys(
        [f"scipy.signal.{name}" for name in ("cont2discrete", "impulse", "lsim", "residue", "residuez", "ss2tf",
                                             "ss2zpk", "step", "tf2ss", "zpk2ss")],
        "systems of real numbers, whose roots come in pairs",
    ),
    **dict.fromkeys(
        ["scipy.signal.get_window", *[f"scipy.signal.windows.{name}" for name in (
            "chebwin", "exponential", "gaussian", "general_gaussian")]],
        "the width of a window is a length",
    ),
    "scipy.gap": "an order of numbers", "scipy.kendall": "an order of numbers",
    "scipy.signal.gausspulse": "times are real", "scipy.signal.wiener": "the noise has a real power",
}  # fmt: skip


def operations_without_complex():
    for name, op in REGISTRY.items():
        allowed = op.complex
        if not allowed and (op.samples is not None or op.archetype == "elementwise"):
            yield name, op


@pytest.mark.filterwarnings("ignore")
def test_what_is_declared_real_is_what_numpy_does_not_define_for_complex_numbers():
    computed = set()
    for name, op in operations_without_complex():
        if name.startswith(("special.", "scipy.stats.")):
            continue  # SciPy says where they are complex: see tests/scipy
        try:
            drawn = cases(op, np.complex128)
        except (TypeError, ValueError):
            continue  # not even the samples can be drawn
        if any(is_defined(case) for case in drawn if any(x.dtype.kind == "c" for x in case.operands)):
            computed.add(name)
    assert computed <= set(NO_MEANING), computed - set(NO_MEANING)


def test_lengths_of_complex_vectors_are_refused_where_they_are_traced():
    ndimage, distance = pytest.importorskip("fad.scipy.ndimage"), pytest.importorskip("fad.scipy.spatial.distance")
    z = np.array([1.0 + 2.0j, -0.5j, 0.3, 2.0 - 1.0j])
    with pytest.raises(fad.errors.UnsupportedInputError, match="no length"):
        fad.jvp(lambda z: ndimage.gaussian_gradient_magnitude(z, 1.0), (z,), (z,))
    for name in ("chebyshev", "cityblock", "euclidean", "sqeuclidean"):
        metric = getattr(distance, name)
        with pytest.raises(fad.errors.ComplexGradientError, match="imaginary part"):
            fad.jvp(lambda z, metric=metric: metric(z, 2.0 * z), (z,), (z,))


def test_the_parameters_of_random_numbers_are_real():
    key = fad.random.key(0)
    for draw in (lambda a: fad.random.gamma(key, a), lambda a: fad.random.beta(key, a, 2.0)):
        with pytest.raises(TypeError, match="real"):
            draw(1.0 + 1.0j)
        with pytest.raises(TypeError, match="real"):
            fad.grad(lambda a, draw=draw: draw(a + 0j).real)(1.0)


@pytest.mark.parametrize("weight", [1.0, 0.3 - 2.0j])
def test_cross_entropy_of_complex_logits_is_that_of_its_formula(weight):
    z, labels = noise(3, 4), np.array([0, 2, 1])
    formula = lambda z: np.mean(np.log(np.sum(np.exp(z), -1)) - z[np.arange(3), labels])
    found = fad.grad(lambda z: (weight * fad.nn.functional.cross_entropy(z, labels)).real)(z)
    np.testing.assert_allclose(found, fad.grad(lambda z: (weight * formula(z)).real)(z), rtol=1e-10, atol=1e-12)


# --- each operation, as a function of pairs of reals -----------------------------------------------------------------

Z = noise(3, 3) + 3.0 * np.eye(3)
W = noise(3, 3)
OPERATIONS = {
    "sum": lambda z, w: np.sum(z * w, 0),
    "prod": lambda z, w: np.prod(z + w, 1),
    "prod with a zero": lambda z, w: np.prod(z * np.array([0.0, 1.0, 1.0]), 1),
    "cumsum": lambda z, w: np.cumsum(z) * w.ravel(),
    "cumprod": lambda z, w: np.cumprod(0.5 * z, 1),
    "mean": lambda z, w: np.mean(z * w),
    "var": lambda z, w: np.var(z, 0) * w,
    "std": lambda z, w: np.std(z + w),
    "abs": lambda z, w: np.abs(z) * w,
    "abs of a real part": lambda z, w: abs(z.real) * w,
    "angle": lambda z, w: np.angle(z) * w,
    "sign": lambda z, w: np.sign(z) * w,
    "conj": lambda z, w: z.conj() * w,
    "real and imag": lambda z, w: z.real * w.imag + 1j * z.imag,
    "power": lambda z, w: z ** (0.3 * w),
    "integer power": lambda z, w: z**3 + w**-2,
    "sqrt": lambda z, w: np.sqrt(z) + np.log(w),
    "inverse functions": lambda z, w: np.arcsin(z) + np.arctanh(w) + np.arccosh(z * w),
    "exp2, log2, log10, log1p, expm1": lambda z, w: np.exp2(z) + np.log2(w) + np.log10(z) + np.log1p(w) + np.expm1(z),
    "matmul": lambda z, w: z @ w,
    "matmul with its adjoint": lambda z, w: z @ np.conjugate(z.T) + w,
    "vdot": lambda z, w: np.vdot(z, w),
    "vecdot": lambda z, w: np.vecdot(z, w),
    "inner, outer": lambda z, w: np.inner(z, w) + np.outer(z[0], w[1]),
    "einsum": lambda z, w: np.einsum("ij,kj->ik", z, w),
    "tensordot": lambda z, w: np.tensordot(z, w, 1),
    "kron": lambda z, w: np.kron(z, w[:1]),
    "cross": lambda z, w: np.cross(z, w),
    "where": lambda z, w: np.where(np.arange(3) > 1, z, w),
    "indexing": lambda z, w: z[[0, 0, 2]] * w[1],
    "max, by real parts": lambda z, w: np.max(z, 1) * np.min(w, 0),
    "maximum": lambda z, w: np.maximum(z, w),
    "sort": lambda z, w: np.sort(z, 1) + np.sort(w, None).reshape(3, 3),
    "interp with complex values": lambda z, w: np.interp(np.array([0.5, 1.2]), np.arange(3.0), z[0] * w[0]),
    "fft": lambda z, w: np.fft.fft(z) * np.fft.ifft(w, axis=0),
    "irfft": lambda z, w: np.fft.irfft(z) + np.fft.hfft(w),
    "rfft of a real part": lambda z, w: np.fft.rfft(z.real) * w[:, :2],
    "nan_to_num": lambda z, w: np.nan_to_num(z) * w,
    "clip of parts": lambda z, w: np.clip(z.real, -1.0, 1.0) + 1j * w,
    "gradient, diff": lambda z, w: np.gradient(z, axis=0) + np.diff(w, axis=0, prepend=0),
    "trapezoid": lambda z, w: np.trapezoid(z, dx=0.5) + np.trapezoid(w),
    "convolve": lambda z, w: np.convolve(z[0], w[1]),
    "polyval": lambda z, w: np.polyval(z[0], w),
    "norm": lambda z, w: np.linalg.norm(z) + np.linalg.norm(w, axis=1),
    "norm of order 3": lambda z, w: np.linalg.norm(z, 3, axis=0) + np.linalg.norm(w, np.inf),
    "nuclear norm": lambda z, w: np.linalg.norm(z, "nuc") + np.linalg.norm(w, 2),
    "solve": lambda z, w: np.linalg.solve(z, w),
    "inv, det": lambda z, w: np.linalg.inv(z) * np.linalg.det(w),
    "slogdet": lambda z, w: np.stack([np.linalg.slogdet(z)[0] * w[0, 0], np.linalg.slogdet(w)[1] + 0j]),
    "pinv": lambda z, w: np.linalg.pinv(z[:, :2]) @ w,
    "qr": lambda z, w: np.linalg.qr(z)[0] @ np.abs(np.linalg.qr(w)[1]),
    "cholesky": lambda z, w: np.linalg.cholesky(z @ z.conj().T) @ w,
    "eigh": lambda z, w: np.linalg.eigh(z + z.conj().T)[0] * w,
    "eigvals": lambda z, w: np.sum(np.linalg.eigvals(z) ** 2) * w,
    "svd": lambda z, w: np.linalg.svd(z, compute_uv=False) * w,
    "matrix_power": lambda z, w: np.linalg.matrix_power(0.3 * z, 3) @ w,
}  # fmt: skip


def on_pairs(f):
    """Return a function of the parts of z and w that gives the parts of f(z, w), flat."""

    def parts(zr, zi, wr, wi):
        y = f(zr + 1j * zi, wr + 1j * wi)
        y = y if y.dtype.kind == "c" else y + 0j
        return np.concatenate([y.real.ravel(), y.imag.ravel()])

    return parts


def split(*zs):
    return tuple(part.copy() for z in zs for part in (z.real, z.imag))


@pytest.mark.parametrize("what", list(OPERATIONS))
def test_derivatives_are_those_of_the_pairs_of_reals(what):
    f = OPERATIONS[what]
    tz, tw = noise(3, 3), noise(3, 3)
    y, t = fad.jvp(f, (Z, W), (tz, tw))
    step = 1e-6
    difference = (f(Z + step * tz, W + step * tw) - f(Z - step * tz, W - step * tw)) / (2 * step)
    np.testing.assert_allclose(t, difference, rtol=1e-6, atol=1e-6 * max(1.0, np.abs(difference).max()))
    pushed = fad.jvp(on_pairs(f), split(Z, W), split(tz, tw))[1]
    np.testing.assert_allclose(np.concatenate([np.ravel(t.real), np.ravel(t.imag)]), pushed, rtol=1e-9, atol=1e-9)
    ct = noise(*y.shape, kind=complex if y.dtype.kind == "c" else float).astype(y.dtype)
    found = fad.vjp(f, Z, W)[1](ct)
    flat = np.concatenate([np.ravel(ct.real), np.ravel(-ct.imag)])
    parts = fad.vjp(on_pairs(f), *split(Z, W))[1](flat)
    for c, re, im in zip(found, parts[::2], parts[1::2], strict=True):
        assert c.dtype == np.complex128
        np.testing.assert_allclose(c, re - 1j * im, rtol=1e-9, atol=1e-8)


@pytest.mark.parametrize("what", list(OPERATIONS))
def test_second_derivatives_are_the_differences_of_gradients(what):
    f = OPERATIONS[what]

    def loss(z, w):
        y = f(z, w)
        return np.sum(y.real**2) + np.sum(np.sin(y.imag))

    def gradient(z, w):
        return fad.grad(loss, (0, 1))(z, w)

    tz, tw = noise(3, 3), noise(3, 3)
    _, found = fad.jvp(gradient, (Z, W), (tz, tw))
    step = 1e-6
    ahead, behind = gradient(Z + step * tz, W + step * tw), gradient(Z - step * tz, W - step * tw)
    for t, a, b in zip(found, ahead, behind, strict=True):
        wanted = (a - b) / (2 * step)
        np.testing.assert_allclose(t, wanted, rtol=1e-5, atol=2e-6 * max(1.0, np.abs(wanted).max()))


# --- holomorphic=True ------------------------------------------------------------------------------------------------

HOLOMORPHIC = {
    "polynomial": (lambda z: z**3 - 2j * z, lambda z: 3 * z**2 - 2j),
    "exp": (lambda z: np.exp(1j * z), lambda z: 1j * np.exp(1j * z)),
    "quotient": (lambda z: (z + 1) / (z - 2j), lambda z: (-2j - 1) / (z - 2j) ** 2),
    "sqrt, log": (lambda z: np.sqrt(z) * np.log(z), lambda z: np.log(z) / (2 * np.sqrt(z)) + 1 / np.sqrt(z)),
    "tan, arctan": (lambda z: np.tan(z) + np.arctan(z), lambda z: 1 / np.cos(z) ** 2 + 1 / (1 + z**2)),
    "conj twice": (lambda z: np.conjugate(np.conjugate(z) * 2j), lambda z: -2j),
    "det": (
        lambda z: np.linalg.det(z * np.eye(2) + np.array([[0, 1], [1j, 0]])),
        lambda z: 2 * z,
    ),
}


@pytest.mark.parametrize("what", list(HOLOMORPHIC))
def test_holomorphic_gradients_are_the_complex_derivative(what):
    f, df = HOLOMORPHIC[what]
    for z in (1.5 + 0.5j, -0.3 + 0.8j):
        np.testing.assert_allclose(fad.grad(f, holomorphic=True)(z), df(z), rtol=1e-12)
        np.testing.assert_allclose(fad.jvp(f, (np.complex128(z),), (np.complex128(1),))[1], df(z), rtol=1e-12)


def test_holomorphic_second_derivatives():
    g = fad.grad(fad.grad(lambda z: np.sin(z) * z, holomorphic=True), holomorphic=True)
    z = 0.4 - 0.2j
    np.testing.assert_allclose(g(z), 2 * np.cos(z) - z * np.sin(z), rtol=1e-12)


def test_holomorphic_jacobians():
    def f(z):
        return np.stack([z[0] * z[1], np.exp(z[0])])

    z = np.array([1 + 1j, 2 - 1j])
    wanted = np.array([[z[1], z[0]], [np.exp(z[0]), 0]])
    np.testing.assert_allclose(fad.jacfwd(f, holomorphic=True)(z), wanted)
    np.testing.assert_allclose(fad.jacrev(f, holomorphic=True)(z), wanted)


def test_the_gradient_of_a_real_function_points_up_by_its_conjugate():
    assert fad.grad(lambda z: abs(z) ** 2)(1 + 2j) == 2 - 4j
    assert fad.grad(lambda z: (z * np.conjugate(z)).real)(1 + 2j) == 2 - 4j


def test_misuse_raises_and_says_what_to_do():
    with pytest.raises(ComplexGradientError, match="real output"):
        fad.grad(lambda z: z * z)(1 + 1j)
    with pytest.raises(ComplexGradientError, match="complex input"):
        fad.grad(lambda z: z * (1 + 0j), holomorphic=True)(1.0)
    with pytest.raises(ComplexGradientError, match="complex output"):
        fad.grad(abs, holomorphic=True)(1 + 1j)
    with pytest.raises(ComplexGradientError, match=r"x\.real"):
        fad.grad(lambda z: np.sum(z.astype(float)))(np.ones(2, complex))


def test_real_arguments_of_complex_programs_have_real_gradients():
    def f(x):
        return np.sum(np.abs(np.exp(1j * x) + x * (2 - 1j)) ** 2)

    x = RNG.normal(size=4)
    g = fad.grad(f)(x)
    assert g.dtype == np.float64
    step = 1e-6
    basis = np.eye(4)
    wanted = [(f(x + step * e) - f(x - step * e)) / (2 * step) for e in basis]
    np.testing.assert_allclose(g, wanted, rtol=1e-7)


def test_complex64_stays_complex64():
    z = noise(3).astype(np.complex64)
    assert fad.grad(lambda z: np.sum(np.abs(z) ** 2))(z).dtype == np.complex64
    assert fad.grad(lambda x: np.sum(np.abs(x * z)))(np.ones(3, np.float32)).dtype == np.float32


# --- random programs with matrices -----------------------------------------------------------------------------------


def _times(a, b):
    """Multiply pairs of reals as complex matrices."""
    return a[0] @ b[0] - a[1] @ b[1], a[0] @ b[1] + a[1] @ b[0]


def _real_form(a):
    """Return the real matrix that does what a complex one does to pairs of vectors."""
    return np.concatenate([np.concatenate([a[0], -a[1]], 1), np.concatenate([a[1], a[0]], 1)], 0)


def _from_real_form(m, n):
    return m[:n, :n], m[n:, :n]


def _shifted(a):
    return a[0] + 4.0 * np.eye(3), a[1]


# Each step on complex matrices, and on pairs of real ones; every result stays of order one.
STEPS = {
    "product": (lambda z, w: 0.3 * z @ w, lambda a, b: tuple(0.3 * x for x in _times(a, b))),
    "adjoint": (lambda z, w: z.conj().T + 0.1 * w, lambda a, b: (a[0].T + 0.1 * b[0], -a[1].T + 0.1 * b[1])),
    "inverse": (
        lambda z, w: np.linalg.inv(z + 4.0 * np.eye(3)) @ w,
        lambda a, b: _times(_from_real_form(np.linalg.inv(_real_form(_shifted(a))), 3), b),
    ),
    "solve": (
        lambda z, w: np.linalg.solve(z + 4.0 * np.eye(3), w),
        lambda a, b: _from_real_form(np.linalg.solve(_real_form(_shifted(a)), _real_form(b)), 3),
    ),
    "sine": (
        lambda z, w: np.sin(0.5 * z),
        lambda a, b: (
            np.sin(0.5 * a[0]) * np.cosh(0.5 * a[1]),
            np.cos(0.5 * a[0]) * np.sinh(0.5 * a[1]),
        ),
    ),
    "size": (
        lambda z, w: 0.3 * np.abs(z + 2.0) * w,
        lambda a, b: tuple(0.3 * np.hypot(a[0] + 2.0, a[1]) * x for x in b),
    ),
    "trace": (
        lambda z, w: 0.2 * np.trace(z) * w,
        lambda a, b: (
            0.2 * (np.trace(a[0]) * b[0] - np.trace(a[1]) * b[1]),
            0.2 * (np.trace(a[0]) * b[1] + np.trace(a[1]) * b[0]),
        ),
    ),
    "hermitian power": (
        lambda z, w: _hermitian_function(z + z.conj().T),
        lambda a, b: _from_real_form(_hermitian_function(_real_form((a[0] + a[0].T, a[1] - a[1].T))), 3),
    ),
}  # fmt: skip


def _hermitian_function(m):
    """Return sin(m / 4): of the real form, all eigenvalues are double."""
    w, v = np.linalg.eigh(m)
    return (v * np.sin(0.25 * w)) @ np.conjugate(v.T)


programs = st.lists(
    st.tuples(st.sampled_from(sorted(STEPS)), st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=4
)


def run(program, side, values):
    values = list(values)
    for name, i, j in program:
        values.append(STEPS[name][side](values[i % len(values)], values[j % len(values)]))
    return values[-1]


@given(programs, st.integers(0, 100))
@settings(max_examples=30)
def test_random_programs_of_matrices_and_the_same_on_pairs_of_reals(program, seed):
    rng = np.random.default_rng(seed)
    zr, zi, wr, wi = rng.normal(size=(4, 3, 3)) * 0.5
    z, w = zr + 1j * zi, wr + 1j * wi

    def loss(z, w):
        y = run(program, 0, (z, w))
        return np.sum(np.sin(y.real)) + np.sum(y.imag**2)

    def loss_of_pairs(zr, zi, wr, wi):
        re, im = run(program, 1, ((zr, zi), (wr, wi)))
        return np.sum(np.sin(re)) + np.sum(im**2)

    value, found = fad.value_and_grad(loss, (0, 1))(z, w)
    wanted_value, parts = fad.value_and_grad(loss_of_pairs, (0, 1, 2, 3))(zr, zi, wr, wi)
    np.testing.assert_allclose(value, wanted_value, rtol=1e-10, atol=1e-10)
    for g, re, im in zip(found, parts[::2], parts[1::2], strict=True):
        np.testing.assert_allclose(g, re - 1j * im, rtol=1e-8, atol=1e-8)


def test_every_numpy_function_of_complex_numbers_is_answered():
    for f in (np.real, np.imag, np.angle, np.real_if_close, np.iscomplex, np.isreal, np.vdot, np.linalg.vecdot):
        assert f in FUNCTIONS, f.__name__


def test_the_sign_of_a_number_with_an_infinite_part_points_along_its_axis():
    parts = (0.0, -0.0, 1.0, np.inf, -np.inf, np.nan)
    z = np.array([complex(a, b) for a in parts for b in parts])
    with np.errstate(all="ignore"):
        want = np.sign(z)
        fast = fad.jit(lambda z: np.sign(z))
        for found in (fast(z), fast(z), fad.vmap(np.sign)(z)):
            np.testing.assert_array_equal(found, want)


def test_the_angle_of_a_negative_integer_is_pi():
    for x in (np.array([1, -2]), np.array([3, -1], np.int8), np.array([-0.0, np.nan, -1.0])):
        for found in (fad.jit(np.angle)(x), fad.vmap(np.angle)(x)):
            np.testing.assert_array_equal(found, np.angle(x))
            assert found.dtype == np.angle(x).dtype


def test_the_polynomial_of_roots_in_conjugate_pairs_is_real_as_numpys_is():
    for roots in (np.array([1.0 + 2.0j, 0.5, 1.0 - 2.0j]), np.array([1.0 + 2.0j, 0.5])):
        y = fad.vjp(np.poly, roots)[0]
        assert y.dtype == np.poly(roots).dtype
        np.testing.assert_allclose(y, np.poly(roots), rtol=1e-12)
