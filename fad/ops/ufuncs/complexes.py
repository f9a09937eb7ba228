"""Complex numbers: real, imag, conjugate, absolute, angle.

The convention is JAX's: cotangents pair with tangents as Re(sum(ct * t)), with no conjugation,
so a holomorphic operation's VJP multiplies by the plain derivative, and grad of |z|**2 is 2 conj(z).
"""

from __future__ import annotations

import numpy as np

from fad.core.primitives.archetypes import align, cast, elementwise
from fad.core.primitives.options import refuse_options
from fad.core.primitives.primitive import Primitive, public, register
from fad.core.primitives.samples import call
from fad.core.tracing.tracer import Tracer, add_methods, bind, stack_list
from fad.core.tracing.views import ViewRule, as_one_array, is_array, link
from fad.ops.ufuncs.bounds import be_positive


def _conj_sign(x):
    return np.conjugate(np.sign(x)) if x.dtype.kind == "c" else np.sign(x)


# np.abs, np.absolute; the subgradient at 0 is 0.
absolute = elementwise(
    "absolute", lambda _z, x: _conj_sign(x), operator="abs", lower="fabs({0})", complex=True, cheap=True,
    bounds=be_positive,
)

real_p = elementwise(
    "real_part",
    lambda _z, _x: 1 + 0j,
    forward=np.real,
    symbol=".real",
    samples=lambda s: [call(_complex(s))],
    doc="The real part of a complex array, elementwise.",
)
imag_p = elementwise(
    "imag_part",
    lambda _z, _x: -1j,
    forward=np.imag,
    symbol=".imag",
    samples=lambda s: [call(_complex(s))],
    doc="The imaginary part of a complex array, elementwise.",
)
_angle_of_real = elementwise(
    "angle_of_real", None, numpy=None, forward=np.angle, doc="The angle of real numbers: 0, or pi of negative ones."
)
_no_imag = elementwise(
    "imag_of_real", None, numpy=None, forward=np.imag, doc="The imaginary part of real numbers, which is 0."
)  # a scalar for a scalar
conj_p = register(
    Primitive(
        "conjugate_part",
        lambda x: np.conjugate(x),
        symbol=".conjugate()",
        dependence="elementwise",
        jvp=lambda tangents, y, xs, params: np.conjugate(tangents[0]),
        vjp=(lambda ct, y, x: np.conjugate(ct),),
        batch=lambda size, batched, xs, params: np.conjugate(xs[0]),
        saves="none",
        archetype="linear",
        samples=lambda s: [call(_complex(s))],
        doc="The complex conjugate, elementwise; linear over the real numbers.",
    )
)


def _complex(s):
    return s.real(3, 4) + 1j * s.real(3, 4)


real_p.view = ViewRule(lambda x, y, params: is_array(x), lambda x, y: _join(x, y, np.imag(x)), False)
imag_p.view = ViewRule(lambda x, y, params: is_array(x), lambda x, y: _join(x, np.real(x), y), False)


def _from_parts(real, imaginary):
    dtype = np.result_type(real.dtype, np.complex64)
    z = np.empty_like(real, dtype=dtype, shape=np.broadcast_shapes(real.shape, imaginary.shape))
    z.real, z.imag = real, imaginary
    return z[()]


def _parts_jvp(tangents, z, xs, params):
    return bind(parts_p, *[np.zeros_like(x) if t is None else t for t, x in zip(tangents, xs, strict=True)])


# Not real + 1j * imaginary, which loses the signs of zeros, and is NaN where a part is infinite.
parts_p: Primitive = register(
    Primitive(
        "join_parts",
        _from_parts,
        dependence="elementwise",
        jvp=_parts_jvp,
        vjp=(lambda ct, z, x, y: cast(ct.real, x.dtype), lambda ct, z, x, y: cast(-ct.imag, y.dtype)),
        batch=lambda size, batched, xs, params: bind(parts_p, *align(batched, xs)),
        saves="none",
        archetype="linear",
        samples=lambda s: [call(s.real(3, 4), s.real(3, 4))],
        doc="Complex numbers by their real and imaginary parts, two arrays of one shape.",
    )
)


def _join(x, real, imaginary):
    """Return an array like x of these parts; one without axes is an array as well, and keeps its byte order."""
    if x.shape:
        return bind(parts_p, real, imaginary).astype(x.dtype, copy=False)
    return bind(parts_p, np.reshape(real, 1), np.reshape(imaginary, 1)).astype(x.dtype, copy=False)[0, ...]


def _part(part, x):
    """Return the real or the imaginary part, a view of the complex array."""
    y = part(x)
    if type(y) is Tracer and type(x) is Tracer:
        link(x, y, part, {})
    return y


def _both(s):
    return [call(s.real(3, 4)), call(_complex(s)), call(s.real())]


def _is_complex(x):
    return x.dtype.kind == "c"


@public(np.real, samples=_both)
def real(val):
    """Return the real part; of a real array, the array itself.

    >>> fad.numpy.real(1 + 2j)
    1.0
    >>> fad.grad(lambda x: fad.numpy.real(x * (1 + 2j)))(3.0)
    np.float64(1.0)
    """
    val = stack_list(val)
    return _part(real_p, val) if _is_complex(val) else val


@public(np.imag, samples=_both)
def imag(val):
    """Return the imaginary part; of a real array, zeros.

    >>> fad.numpy.imag(1 + 2j)
    2.0
    >>> fad.grad(lambda x: fad.numpy.imag(1j * x))(3.0)
    np.float64(1.0)
    """
    val = stack_list(val)
    if _is_complex(val):
        return _part(imag_p, val)
    y = _no_imag(val)
    if type(y) is not Tracer or not is_array(val):
        return y
    return np.broadcast_to(as_one_array(y), y.shape)  # zeros that nobody may write into


@public(np.conjugate, samples=_both, raises="TypeError: The operand is a string.")
def conjugate(x, /, **options):
    """Return the complex conjugate; of a real array, the same numbers.

    >>> fad.numpy.conj(1 + 2j)
    np.complex128(1-2j)
    """
    if options:
        refuse_options("conjugate", options)
    if _is_complex(x):
        return conj_p(x)
    return np.positive(x) if x.dtype.kind != "b" else x.astype(np.int8)[()]  # as NumPy's function, but not its method


@public(np.angle, samples=_both)
def angle(z, deg=False):
    """Return the angle of complex numbers in the plane, in radians, or in degrees if `deg`.

    >>> fad.numpy.angle(1.0)
    np.float64(0.0)
    >>> fad.grad(lambda x: fad.numpy.angle(x + 1j))(1.0)
    np.float64(-0.5)
    """
    z = stack_list(z)
    a = np.arctan2(np.imag(z), np.real(z)) if _is_complex(z) else _angle_of_real(z)
    return np.rad2deg(a) if deg else a


@public(np.sign, samples=_both, name="sign", flat="real", raises="TypeError: The operand is a string.")
def sign(x, /, **options):
    """Return the sign: -1, 0 or 1 of a real number, z / abs(z) of a complex one. Flat for real numbers.

    >>> fad.numpy.sign(np.array([-2.0, 0.0, 3.0]))
    array([-1.,  0.,  1.])
    """
    if not _is_complex(x):
        return sign_p(x, **options)
    if options:
        refuse_options("sign", options)
    size = np.abs(x)
    infinite = np.isinf(size)
    y = x / np.where((size == 0) | infinite, np.ones_like(size), size)
    # One infinite part points along its axis; two point nowhere.
    ends = [np.where(np.isinf(part), np.sign(part), np.zeros_like(part)) for part in (x.real, x.imag)]
    nowhere = np.isinf(x.real) & np.isinf(x.imag)
    return np.where(infinite, np.where(nowhere, np.nan, ends[0]) + 1j * np.where(nowhere, np.nan, ends[1]), y)[()]


sign_p = elementwise(
    "sign_real", None, numpy=None, forward=np.sign, cheap=True,
    lower="((1.0 if {0} > 0 else -1.0 if {0} < 0 else 0.0 if {0} == 0 else {0}))",
    doc="The sign of real numbers: -1, 0 or 1.",
)  # fmt: skip


def _imaginary(x):
    number = x.owner.lower(x)
    return 0 * number if type(number) in (int, float) else imag(x)


# The same as attributes and methods, not by NumPy's functions: Python's numbers stay Python's.
_conjugate = lambda x: conj_p(x) if _is_complex(x) else x
add_methods(real=property(real), imag=property(_imaginary), conj=_conjugate, conjugate=_conjugate)
