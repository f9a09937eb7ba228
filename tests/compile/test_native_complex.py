"""Complex arithmetic runs in native loops over its real and imaginary parts."""

import numpy as np
import pytest

import fad
from fad.compile.targets.select import using

pytest.importorskip("llvmlite")
RNG = np.random.default_rng(0)


def numbers(*shape, dtype=np.complex128):
    return (RNG.normal(size=shape) + 1j * RNG.normal(size=shape)).astype(dtype)


PROGRAMS = {
    "arithmetic": lambda z, w, x: (z * w + z - w * (2.0 - 1j), -z, z * z, x * z, z + x, 3 * z),
    "quotients": lambda z, w, x: (
        z / w,
        z / (x + 3.0),
        x / z,
        1.0 / w,
        (z * 1e200) / (w * 1e200) if z.real.itemsize > 4 else z,
    ),
    "parts": lambda z, w, x: (np.real(z * w), np.imag(z * w), np.conj(z) * w, np.abs(z + w), np.real(z)),
    "exponentials": lambda z, w, x: (np.exp(z), np.exp(1j * x) * w),
    "choices": lambda z, w, x: (np.where(x > 0, z, w * 2.0), np.where(x > 0, z, x)),
    "sums": lambda z, w, x: (np.sum(z * w), np.sum(z * np.conj(z), axis=0), np.sum(z, axis=1, keepdims=True)),
    "views": lambda z, w, x: ((z * w).T + 1.0, (z + w)[1:, ::2] * 2.0, (z * 2j).reshape(-1), z[:, :1] * w),
    "conversions": lambda z, w, x: (x.astype(z.dtype) * z, z.astype(np.complex64), (z * w).astype(np.complex128)),
    "what falls back in the middle": lambda z, w, x: np.sort(z * w, axis=0) * np.sqrt(z + w) / w,
    "nothing but itself": lambda z, w, x: (z, z.T, z * 1.0),
}


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("dtype", [np.complex128, np.complex64])
@pytest.mark.parametrize("shape", [(3, 5), (1, 1), (60, 1000)])
def test_complex_programs_give_what_numpy_gives(name, dtype, shape):
    f = PROGRAMS[name]
    x = RNG.normal(size=shape).astype(np.float32 if dtype == np.complex64 else float)
    args = (numbers(*shape, dtype=dtype), numbers(*shape, dtype=dtype), x)
    with using("llvm"):
        fast = fad.jit(f)
        fast(*args)
        fast(*args)
        got = fast(*args)
    for a, b in zip(fad.tree.leaves(got), fad.tree.leaves(f(*args)), strict=True):
        assert a.dtype == b.dtype
        assert a.shape == b.shape
        single = b.dtype in (np.complex64, np.float32)
        np.testing.assert_allclose(
            a, b, rtol=1e-5 if single else 1e-13, atol=(1e-5 if single else 1e-14) * np.abs(b).max(initial=0.0)
        )


def test_a_complex_gradient_is_native_and_right():
    def loss(z, w):
        return np.sum(np.abs(np.exp(z * w) - np.conj(w)) ** 2)

    z, w = numbers(40), numbers(40)
    with using("llvm"):
        fast = fad.jit(fad.grad(loss, argnums=(0, 1)))
        fast(z, w)
        got = fast(z, w)
    (signature,) = fast._signatures.values()
    assert set(signature.paths[0].program.fallbacks) == set()
    for a, b in zip(got, fad.grad(loss, argnums=(0, 1))(z, w), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)


@pytest.mark.parametrize("shape", [(), (0,), (2, 0)])
def test_numbers_and_empty_arrays(shape):
    z = numbers(*shape)[()]
    with using("llvm"):
        fast = fad.jit(lambda z: (z * z + 1.0, np.sum(z * 2j), np.real(z)))
        fast(z)
        for a, b in zip(fast(z), (z * z + 1.0, np.sum(z * 2j), np.real(z)), strict=True):
            assert type(a) is type(b)
            np.testing.assert_allclose(a, b, rtol=1e-14)


def test_quotients_of_zeros_and_infinities_are_numpys():
    values = np.array([a + 1j * b for a in (0.0, 1.0, -2.0, np.inf) for b in (0.0, -1.0, 3.0)])
    z, w = (v.reshape(-1) for v in np.meshgrid(values, values))
    with using("llvm"), np.errstate(all="ignore"):
        fast = fad.jit(np.divide)
        fast(z, w)
        got, wanted = fast(z, w), z / w
    np.testing.assert_allclose(got.real, wanted.real, rtol=1e-14)
    np.testing.assert_allclose(got.imag, wanted.imag, rtol=1e-14)


@pytest.mark.parametrize("dtype", [np.complex128, np.complex64])
def test_exponentials_of_infinities_are_numpys(dtype):
    ends = [0.0, -0.0, 1.0, -2.0, np.inf, -np.inf, np.nan]
    z = np.array([complex(a, b) for a in ends for b in ends], dtype)
    with using("llvm"), np.errstate(all="ignore"):
        fast = fad.jit(np.exp)
        fast(z)
        np.testing.assert_allclose(fast(z), np.exp(z), rtol=1e-6)


QUESTIONS = {
    "kinds": lambda z, w, x: (np.isfinite(z), np.isnan(z), np.isinf(z), np.isfinite(z * 2.0)),
    "pairs": lambda z, w, x: (z == w, z != w, z[:, None] == w[:3], z != z),
    "numbers": lambda z, w, x: (z == 0, z != 0, z == 1.0, z != 2.0, z == np.inf),
    "constants": lambda z, w, x: (z == 1.0 - 2.0j, z != np.array(1.0j, z.dtype), z == np.zeros_like(w[:1])),
    "real arrays": lambda z, w, x: (z == x, x != z, z * 1.0 == np.arange(z.size)),
}


@pytest.mark.parametrize("name", QUESTIONS)
@pytest.mark.parametrize("dtype", [np.complex128, np.complex64])
def test_questions_of_complex_numbers_have_numpys_answers(name, dtype):
    f, ends = QUESTIONS[name], [0.0, -0.0, 1.0, -2.0, np.inf, -np.inf, np.nan]
    z = np.array([complex(a, b) for a in ends for b in ends], dtype)
    w = np.where(np.arange(z.size) % 3 == 0, z, z[::-1])
    x = z.real.astype(np.float32 if dtype == np.complex64 else float)
    with using("llvm"), np.errstate(all="ignore"):
        fast = fad.jit(f)
        for _ in range(3):
            for got, want in zip(fast(z, w, x), f(z, w, x), strict=True):
                np.testing.assert_array_equal(got, want)
                assert got.dtype == want.dtype
    if name in ("kinds", "pairs", "numbers"):
        (signature,) = fast._signatures.values()
        assert not signature.paths[0].program.fallbacks


def test_a_complex_number_times_one_is_numpys():
    z = np.array([complex(np.inf, 1.0), complex(0.0, np.nan), 2.0 - 3.0j])
    with using("llvm"), np.errstate(all="ignore"):
        for f in (lambda z: z * 1.0, lambda z: 1.0 * z, lambda z: z / 1.0):
            fast = fad.jit(f)
            fast(z)
            np.testing.assert_array_equal(fast(z), f(z))


@pytest.mark.parametrize(("dtype", "low", "high"), [(np.complex128, 695.0, 750.0), (np.complex64, 75.0, 105.0)])
def test_an_exponential_is_finite_where_a_small_cosine_or_sine_makes_it_so(dtype, low, high):
    rng = np.random.default_rng(0)
    angle = np.pi / 2 + rng.normal(size=300) * 10.0 ** rng.uniform(-16, 0, 300)
    z = np.concatenate([rng.uniform(low, high, 300) + 1j * angle, rng.uniform(-high, high, 300) + 1j * angle])
    z = z.astype(dtype)
    with using("llvm"), np.errstate(all="ignore"):
        fast = fad.jit(lambda z: np.exp(z))
        fast(z)
        found, want = fast(z), np.exp(z)
        for x, y in ((found.real, want.real), (found.imag, want.imag)):
            usual = np.isfinite(y) & (np.abs(y) > np.finfo(y.dtype).tiny)
            np.testing.assert_array_equal(np.isfinite(x), np.isfinite(y))
            np.testing.assert_allclose(x[usual], y[usual], rtol=4 * np.finfo(y.dtype).eps)
