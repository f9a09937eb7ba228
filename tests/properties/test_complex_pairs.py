"""A complex program and the same program written out in pairs of reals have the same derivatives."""

import numpy as np
from hypothesis import given

import fad
from fad.testing.strategies import programs_and_points

# name -> (on complex numbers z, w; on pairs (a, b), (c, d) of their real and imaginary parts).
# Each maps |z|, |w| <= 1 into itself; several are not holomorphic.
TABLE = {
    "z * w": (lambda z, w: z * w, lambda a, b, c, d: (a * c - b * d, a * d + b * c)),
    "(z + w) / 2": (lambda z, w: (z + w) / 2, lambda a, b, c, d: ((a + c) / 2, (b + d) / 2)),
    "sin(z) / 2": (
        lambda z, w: np.sin(z) / 2,
        lambda a, b, c, d: (np.sin(a) * np.cosh(b) / 2, np.cos(a) * np.sinh(b) / 2),
    ),
    "exp(z) / 3": (
        lambda z, w: np.exp(z) / 3,
        lambda a, b, c, d: (np.exp(a) * np.cos(b) / 3, np.exp(a) * np.sin(b) / 3),
    ),
    "conj(z)": (lambda z, w: np.conjugate(z), lambda a, b, c, d: (a, -b)),
    "z.real * w": (lambda z, w: z.real * w, lambda a, b, c, d: (a * c, a * d)),
    "z.imag * w": (lambda z, w: w * z.imag, lambda a, b, c, d: (b * c, b * d)),
    "abs(2 + z) * w / 3": (
        lambda z, w: np.abs(2 + z) * w / 3,
        lambda a, b, c, d: (np.hypot(2 + a, b) * c / 3, np.hypot(2 + a, b) * d / 3),
    ),
    "log(3 + z) / 2": (
        lambda z, w: np.log(3 + z) / 2,
        lambda a, b, c, d: (np.log(np.hypot(3 + a, b)) / 2, np.arctan2(b, 3 + a) / 2),
    ),
    "z / (3 + w)": (
        lambda z, w: z / (3 + w),
        lambda a, b, c, d: (
            (a * (3 + c) + b * d) / ((3 + c) ** 2 + d**2),
            (b * (3 + c) - a * d) / ((3 + c) ** 2 + d**2),
        ),
    ),
    "z[::-1] * abs(w)**2": (
        lambda z, w: z[::-1] * np.abs(w) ** 2,
        lambda a, b, c, d: (a[::-1] * (c * c + d * d), b[::-1] * (c * c + d * d)),
    ),
}
COMPLEX = {name: f for name, (f, _) in TABLE.items()}
drawn_programs = programs_and_points(max_steps=5, table=COMPLEX, dtype=np.complex128, high=0.7)


def _pairs(program, *parts):
    """Run the program on real and imaginary parts, given as x1, y1, x2, y2, ..."""
    values = list(zip(parts[::2], parts[1::2], strict=True))
    for name, i, j in program.steps:
        values.append(TABLE[name][1](*values[i], *values[j]))
    return values[-1]


def _split(zs):
    return tuple(part for z in zs for part in (z.real.copy(), z.imag.copy()))


def _nonzero(zs):
    return tuple(np.where(np.abs(z) < 1e-2, 0.1, z) for z in zs)


@given(drawn_programs)
def test_values_agree(drawn):
    f, zs = drawn
    re, im = _pairs(f, *_split(zs))
    np.testing.assert_allclose(f(*zs), re + 1j * im, rtol=1e-12, atol=1e-12)


@given(drawn_programs)
def test_jvps_agree(drawn):
    f, zs = drawn
    zs = _nonzero(zs)
    rng = np.random.default_rng(0)
    ts = tuple(rng.normal(size=z.shape) + 1j * rng.normal(size=z.shape) for z in zs)
    _, found = fad.jvp(f, zs, ts)
    _, (re, im) = fad.jvp(lambda *p: _pairs(f, *p), _split(zs), _split(ts))
    np.testing.assert_allclose(found, re + 1j * im, rtol=1e-9, atol=1e-9)


@given(drawn_programs)
def test_pullbacks_agree(drawn):
    # Re(ct * t) with ct = c + id, t = a + ib is ca - db: the cotangent of the parts is (c, -d).
    f, zs = drawn
    zs = _nonzero(zs)
    rng = np.random.default_rng(0)
    y, pullback = fad.vjp(f, *zs)
    ct = rng.normal(size=y.shape) + 1j * rng.normal(size=y.shape)
    _, pull_pairs = fad.vjp(lambda *p: _pairs(f, *p), *_split(zs))
    parts = pull_pairs((ct.real.copy(), -ct.imag))
    for c, re, im in zip(pullback(ct), parts[::2], parts[1::2], strict=True):
        np.testing.assert_allclose(c, re - 1j * im, rtol=1e-9, atol=1e-9)


@given(drawn_programs)
def test_the_gradient_of_a_real_loss_is_df_dx_minus_i_df_dy(drawn):
    f, zs = drawn
    zs = _nonzero(zs)
    found = fad.grad(lambda *z: np.sum(np.abs(f(*z)) ** 2), tuple(range(len(zs))))(*zs)

    def loss(*parts):
        re, im = _pairs(f, *parts)
        return np.sum(re**2 + im**2)

    parts = fad.grad(loss, tuple(range(2 * len(zs))))(*_split(zs))
    for g, re, im in zip(found, parts[::2], parts[1::2], strict=True):
        np.testing.assert_allclose(g, re - 1j * im, rtol=1e-9, atol=1e-9)


@given(drawn_programs)
def test_second_derivatives_agree(drawn):
    f, zs = drawn
    zs = _nonzero(zs)
    ts = tuple(np.ones_like(z) * (1 + 2j) for z in zs)
    nums = tuple(range(len(zs)))

    def loss(*parts):
        re, im = _pairs(f, *parts)
        return np.sum(np.sin(re) + im**2)

    _, found = fad.jvp(fad.grad(lambda *z: np.sum(np.sin(f(*z).real) + f(*z).imag ** 2), nums), zs, ts)
    _, parts = fad.jvp(fad.grad(loss, tuple(range(2 * len(zs)))), _split(zs), _split(ts))
    for g, re, im in zip(found, parts[::2], parts[1::2], strict=True):
        np.testing.assert_allclose(g, re - 1j * im, rtol=1e-8, atol=1e-8)
