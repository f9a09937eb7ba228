"""Elementwise operations: NumPy's ufuncs and related functions, each with its partial derivatives on one line.

A partial is ``(z, x)`` or ``(z, x, y)`` -> dz/dx, z being the result. What it does not read has a leading underscore,
and is then not kept for the backward pass. Numbers in rules are Python floats, so float32 stays float32.
"""

from __future__ import annotations

import cmath
import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from fad.backends import backend_of, is_numpy_scalar
from fad.backends.counterparts import with_notes
from fad.core.primitives.archetypes import elementwise, minus_one, one
from fad.core.primitives.cotangent import share_at_ties
from fad.core.primitives.options import refuse_options
from fad.core.primitives.primitive import public
from fad.core.primitives.samples import call
from fad.core.tracing.tracer import Tracer, add_methods
from fad.core.tracing.values import number_behind, traces_of
from fad.core.tracing.weak import WeakFloat, note_operators
from fad.ops.ufuncs import bounds
from fad.ops.ufuncs.strong_zero import has_overflow, have_strong_zeros, sum_of_squares

# --- whether a slope is infinite somewhere -------------------------------------------------------------------

_LARGE = 4000  # elements, from which on `all` is faster than to count


def has_zero(x):
    """Return whether an element is zero."""
    if type(x) is not np.ndarray:
        return x == 0
    return np.count_nonzero(x) < x.size if x.size < _LARGE else not x.all()


def _has_not_positive(x):
    """Return whether an element is not positive; of complex numbers, whether one is zero."""
    if issubclass(type(x), (int, float)):  # np.float64 is a float
        return not x > 0
    if not np.size(x) or np.result_type(x).kind == "c":
        return has_zero(x)
    return not np.min(x) > 0


def _has_unit(x):
    return np.any(np.abs(x) >= 1)


def is_at_an_edge(*saved):
    """Return whether a special function may have an infinite slope: something is a whole number or not finite.

    Poles and the ends of domains are there. A whole number of Python's own is an order or a degree.
    """
    with np.errstate(all="ignore"):
        return any(x is not None and type(x) is not int and not np.all(np.abs(x) % 1.0 > 0.0) for x in saved)


# --- arithmetic ----------------------------------------------------------------------------------------------

add = elementwise(
    "add", one, one, operator="+", lower="({0} + {1})", lower_for={"b": "({0} or {1})"}, complex=True, cheap=True,
    bounds=bounds.add,
)  # fmt: skip
subtract = elementwise(
    "subtract", one, minus_one, operator="-", lower="({0} - {1})", complex=True, cheap=True, bounds=bounds.subtract
)
multiply = elementwise(
    "multiply", lambda _z, _x, y: y, lambda _z, x, _y: x,
    operator="*", lower="({0} * {1})", lower_for={"b": "({0} and {1})"}, complex=True, cheap=True,
    bounds=bounds.multiply,
)  # fmt: skip


def _inverse(_z, _x, y):
    try:
        return 1.0 / y
    except ZeroDivisionError:  # of a Python number; it stays one, so that it widens nothing
        return math.copysign(math.inf, y) if type(y) is not complex else complex(math.nan, math.nan)


def _is_steep_quotient(z, _x, y):
    return has_zero(y) or (z is not None and has_overflow(z))


divide = elementwise(
    "divide", _inverse, lambda z, _x, y: -z / y, steep=_is_steep_quotient,
    operator="/", lower="({0} / {1})", domain=((-2.0, 2.0), (0.5, 2.0)), complex=True, cheap="far",
    bounds=bounds.divide,
)  # fmt: skip
divide.keep = (divide.keep[0], (True, True, True), divide.keep[2])  # zeros of a constant numerator drop infinite slopes
negative = elementwise(
    "negative", lambda _z, _x: -1.0, operator="neg", lower="(-{0})", complex=True, cheap=True, bounds=bounds.negate
)
positive = elementwise("positive", lambda _z, _x: 1.0, operator="pos", lower="({0})", complex=True, cheap=True)
square = elementwise(
    "square", lambda _z, x: 2.0 * x, lower="({0} * {0})", complex=True, cheap=True, bounds=bounds.be_positive
)
reciprocal = elementwise(
    "reciprocal", lambda z, _x: -z * z, lower="(1 / {0})", domain=(0.5, 2.0), complex=True,
    steep=lambda z, _x: not np.all(np.isfinite(z)),
)  # fmt: skip
sqrt = elementwise(
    "sqrt", lambda z, _x: 0.5 / z, lower="sqrt({0})", domain=(0.3, 3.0), complex=True,
    steep=lambda z, _x: _has_not_positive(z),
)  # fmt: skip
cbrt = elementwise(
    "cbrt", lambda z, _x: 1.0 / (3.0 * z * z), domain=(0.3, 3.0), lower="cbrt({0})", steep=lambda z, _x: has_zero(z)
)
fabs = elementwise("fabs", lambda _z, x: np.sign(x), lower="fabs({0})", domain=(0.1, 2.0))


_MOST_PRODUCTS = 16  # exponents up to which products take less time than NumPy's power


def _whole_power(x, n):
    """Return x**n for a whole n that is not zero, by products."""
    if n < 0:
        x, n = 1.0 / x, -n
    found = None
    while n:
        if n & 1:
            found = x if found is None else found * x
        n >>= 1
        if n:
            x = x * x
    return found


def _power_base(_z, x, y):
    # y x**(y-1), where y == 0 gives 0 and not 0 * inf, so that x**0 has derivative 0 at x == 0.
    if type(y) is int or type(y) is float:
        if y == 0:
            return np.zeros_like(x)
        if y == 2:
            return 2.0 * x
        n = y - 1
        whole = type(x) is np.ndarray and x.dtype.kind in "fc" and 0 < abs(n) <= _MOST_PRODUCTS and n == int(n)
        return y * (_whole_power(x, int(n)) if whole else x**n)
    if type(y) is bool or is_numpy_scalar(y):
        return y * x ** (y - 1 if y else 1 - y)  # a number beside an array of a device, too
    return y * x ** np.where(y == 0, np.ones_like(y), y - 1)


def _power_exponent(z, x, y):
    # x**y log x, where x == 0 gives 0 for y > 0 (the limit) instead of 0 * -inf.
    if type(x) is int or type(x) is float or type(x) is bool:
        return z * _log_of_number(x, z.dtype.kind) if x else np.where(y == 0, -np.inf, np.zeros_like(z))
    x = _promote(x, z)
    safe = np.where(x == 0, np.ones_like(x), x)
    return np.where(x == 0, np.where(y == 0, -np.inf, np.zeros_like(z)), z * np.log(safe))


def _is_steep_power(z, x, y):
    # Powers of a negative number may be NaN, in the derivative by the exponent all of them are.
    if z is None and type(y) in (int, float) and y >= 1 and y == int(y):
        return y > 2 and not sum_of_squares(x) < 1e38 ** (2 / y)  # beyond this, single precision ends
    return _has_not_positive(x) or (z is not None and has_overflow(z))


def _log_of_number(x, kind):
    # A Python number, so that it does not widen single precision.
    if kind == "c":
        return cmath.log(x)
    return math.log(x) if x > 0 else math.nan


power = elementwise(
    "power", _power_base, _power_exponent,
    operator="**", lower="pow({0}, {1})", domain=((0.3, 2.0), (-2.0, 2.0)), complex=True, steep=_is_steep_power,
)  # fmt: skip


# What NumPy computes in place of a power: for arrays and Python's ``**``, but not for scalars nor in np.power.
_OF_ARRAYS: dict[type, dict] = {float: {0.5: sqrt}, int: {2: square, -1: reciprocal}}
_raised, _raise_to = Tracer.__pow__, Tracer.__rpow__


def _power_operator(x: Tracer, y: Any, modulus: Any = None) -> Any:
    if modulus is not None:
        return _raise_modulo(x, y, modulus)
    known = _OF_ARRAYS.get(type(y))
    if known is not None and y in known and x.__class__ is np.ndarray and x.dtype.kind in ("fcb" if y == 2 else "fc"):
        return x.owner.unary(known[y], x)
    return _raised(x + 0j if type(y) is not int and _is_complex_to_python(x, y) else x, y)


def _raise_modulo(x: Tracer, y: Any, modulus: Any) -> Any:
    """Return Python's power modulo a number, of whole numbers of Python's alone; it asks for the traced ones."""
    if not all(isinstance(z, int) for z in (x, y, modulus)):
        raise TypeError("pow() 3rd argument not allowed unless all arguments are integers")
    return pow(*map(operator.index, (x, y, modulus)))


def _reflected_power_operator(y: Tracer, x: Any) -> Any:
    return _raise_to(y, complex(x) if type(x) in (float, int) and _is_complex_to_python(x, y) else x)


def _is_complex_to_python(x: Any, y: Any) -> bool:
    """Return whether a power is one of a negative number of Python's with a fraction, which NumPy's are not."""
    base, exponent = number_behind(x), number_behind(y)
    if type(base) not in (WeakFloat, float, int) or type(exponent) not in (WeakFloat, float):
        return False
    if type(y) is float and y % 1 == 0:
        return False
    owners = [z.owner for z in (x, y) if type(z) is Tracer]
    if all(trace.compiled for trace in owners):
        return False  # a recording itself keeps the kind of number that its operations give
    if any(trace.compiled for z in (x, y) for trace in traces_of(z)):
        base, exponent = x, y  # another call may have another answer, and a path of its own
    return bool(base < 0) and bool(base > -math.inf) and bool(exponent % 1 > 0)  # nothing is left of infinity


add_methods(__pow__=_power_operator, __rpow__=_reflected_power_operator)
note_operators(_power_operator, _reflected_power_operator)


@public(
    np.float_power,
    samples=lambda s: [
        call(s.positive(3, 4), s.real(3, 4)),
        call(s.positive(3, 1), s.real(4)),
        call(s.positive(3), -0.5),
        call(0.7, s.real(3)),
        call(s.positive(), s.real()),
    ],
    raises="ValueError: The operands cannot be broadcast against each other.",
)
def float_power(x1, x2, /, **options):
    """Return x1**x2 in double precision at least.

    >>> fad.numpy.float_power(2, 3)
    np.float64(8.0)
    >>> fad.grad(fad.numpy.float_power)(2.0, 3.0)
    np.float64(12.0)
    """
    refuse_options("float_power", options)
    return np.power(_double(x1), _double(x2))


def _double(x):
    return x.astype(np.result_type(x.dtype, np.float64)) if hasattr(x, "dtype") else x


floor_divide = elementwise(
    "floor_divide", None, None, operator="//", lower="floor_divide({0}, {1})", domain=((-2.0, 2.0), (0.5, 2.0))
)


def at_multiples(x, y):
    """Return what is zero where the quotient is a whole number: there remainders jump."""
    return (x / y - np.round(x / y),)


remainder = elementwise(
    "remainder", one, lambda _z, x, y: -np.floor_divide(x, y), operator="%", domain=((-2.0, 2.0), (0.5, 2.0)),
    kinks=at_multiples, lower="remainder({0}, {1})",
)  # fmt: skip
fmod = elementwise(
    "fmod", one, lambda _z, x, y: -np.trunc(x / y), lower="fmod({0}, {1})", domain=((-2.0, 2.0), (0.5, 2.0)),
    kinks=at_multiples,
)  # fmt: skip

# --- exponentials and logarithms -----------------------------------------------------------------------------

_EXP: dict[str, Any] = {"complex": True, "steep": lambda z, _x: has_overflow(z)}
exp = elementwise("exp", lambda z, _x: z, lower="exp({0})", bounds=bounds.be_positive, **_EXP)
exp2 = elementwise("exp2", lambda z, _x: math.log(2) * z, lower="exp2({0})", bounds=bounds.be_positive, **_EXP)
expm1 = elementwise("expm1", lambda z, _x: z + 1.0, lower="expm1({0})", **_EXP)
_LOG: dict[str, Any] = {"domain": (0.3, 3.0), "complex": True, "steep": lambda _z, x: has_zero(x)}
log = elementwise("log", lambda _z, x: 1.0 / x, lower="log({0})", **_LOG)
log2 = elementwise("log2", lambda _z, x: (1 / math.log(2)) / x, lower="log2({0})", **_LOG)
log10 = elementwise("log10", lambda _z, x: (1 / math.log(10)) / x, lower="log10({0})", **_LOG)
log1p = elementwise(
    "log1p", lambda _z, x: 1.0 / (1.0 + x), lower="log1p({0})", domain=(-0.6, 2.0), complex=True,
    steep=lambda _z, x: np.any(x == -1),
)  # fmt: skip


def _log_weight(z, x, power):
    # power(x - z) is the weight of x in the sum. With both operands -inf (or inf), x - z is NaN; the weight is then
    # one half, as for any equal operands.
    same = np.isinf(z) & (x == z)
    return np.where(same, 0.5, power(np.where(same, np.zeros_like(x), x) - np.where(same, np.zeros_like(z), z)))


logaddexp = elementwise(
    "logaddexp", lambda z, x, _y: _log_weight(z, x, np.exp), lambda z, _x, y: _log_weight(z, y, np.exp),
    lower="logaddexp({0}, {1})",
)  # fmt: skip
logaddexp2 = elementwise(
    "logaddexp2", lambda z, x, _y: _log_weight(z, x, np.exp2), lambda z, _x, y: _log_weight(z, y, np.exp2),
    lower="({0} + 1.0 if {0} == {1} else maximum({0}, {1}) + 1.4426950408889634 * log1p(exp2(-fabs({0} - {1}))))",
)  # fmt: skip

# --- trigonometric and hyperbolic ----------------------------------------------------------------------------

sin = elementwise("sin", lambda _z, x: np.cos(x), lower="sin({0})", complex=True)
cos = elementwise("cos", lambda _z, x: -np.sin(x), lower="cos({0})", complex=True)
tan = elementwise("tan", lambda z, _x: 1.0 + z * z, lower="tan({0})", domain=(-1.2, 1.2), complex=True)


def _one_minus_square(x):
    # Of a complex x near the real axis the sign of a zero imaginary part says which side of the branch cut it is on;
    # it must be that of -x * x, and 0.0 - 0.0 has lost it.
    return 1.0 - x * x if x.dtype.kind != "c" else -(x * x) - (-1.0)


def _one_plus_square(x):
    return x * x + 1.0 if x.dtype.kind != "c" else x * x - (-1.0)


_WITHIN_ONE: dict[str, Any] = {"domain": (-0.9, 0.9), "complex": True, "steep": lambda _z, x: _has_unit(x)}
arcsin = elementwise("arcsin", lambda _z, x: 1.0 / np.sqrt(_one_minus_square(x)), lower="arcsin({0})", **_WITHIN_ONE)
arccos = elementwise("arccos", lambda _z, x: -1.0 / np.sqrt(_one_minus_square(x)), lower="arccos({0})", **_WITHIN_ONE)
arctan = elementwise("arctan", lambda _z, x: 1.0 / (1.0 + x * x), lower="arctan({0})", complex=True)
_SINH: dict[str, Any] = {"complex": True, "steep": lambda _z, x: has_overflow(np.cosh(x))}
sinh = elementwise("sinh", lambda _z, x: np.cosh(x), lower="sinh({0})", **_SINH)
cosh = elementwise("cosh", lambda _z, x: np.sinh(x), lower="cosh({0})", **_SINH)
have_strong_zeros(exp, exp2, expm1, sinh, cosh)
tanh = elementwise("tanh", lambda z, _x: 1.0 - z * z, lower="tanh({0})", complex=True, bounds=bounds.be_within_one)
arcsinh = elementwise("arcsinh", lambda _z, x: 1.0 / np.sqrt(_one_plus_square(x)), complex=True, lower="arcsinh({0})")
arccosh = elementwise(
    "arccosh", lambda _z, x: 1.0 / np.sqrt(x - 1.0) / np.sqrt(x - (-1.0)),
    lower="arccosh({0})", domain=(1.2, 3.0), complex=True, steep=lambda _z, x: _has_not_positive(x - 1.0),
)  # fmt: skip
arctanh = elementwise("arctanh", lambda _z, x: 1.0 / (1.0 - x * x), lower="arctanh({0})", **_WITHIN_ONE)


def _promote(x, y):
    # x in the dtype that it has beside y: squares of small integers overflow, and their logarithms are half floats.
    if not hasattr(x, "dtype") or not hasattr(y, "dtype") or x.dtype is y.dtype:
        return x
    dtype = np.result_type(x.dtype, y.dtype)
    return x if x.dtype == dtype else x.astype(dtype)


def _hypotenuse(x, y):
    # x**2 + y**2, with 1 at the origin so that the documented subgradient there is 0.
    x, y = _promote(x, y), _promote(y, x)
    s = x * x + y * y
    return np.where(s == 0, 1.0, s)


def over(x, z):
    return x / np.where(z == 0, np.ones_like(z), z)  # hypot(0, 0) has subgradient 0


arctan2 = elementwise(
    "arctan2", lambda _z, x, y: y / _hypotenuse(x, y), lambda _z, x, y: x / -_hypotenuse(x, y),
    domain=((0.3, 2.0), (0.3, 2.0)), lower="arctan2({0}, {1})",
)  # fmt: skip
hypot = elementwise(
    "hypot", lambda z, x, _y: over(x, z), lambda z, _x, y: over(y, z), lower="hypot({0}, {1})", domain=(0.3, 2.0)
)
_TO_RADIANS, _TO_DEGREES = "({0} * 0.017453292519943295)", "({0} * 57.29577951308232)"
deg2rad = elementwise("deg2rad", lambda _z, _x: math.pi / 180, lower=_TO_RADIANS)
radians = elementwise("radians", lambda _z, _x: math.pi / 180, lower=_TO_RADIANS)
rad2deg = elementwise("rad2deg", lambda _z, _x: 180 / math.pi, lower=_TO_DEGREES)
degrees = elementwise("degrees", lambda _z, _x: 180 / math.pi, lower=_TO_DEGREES)

# --- choosing one of two: ties share the derivative equally ---------------------------------------------------


def _choose(z, x, y):
    # 1 where x was chosen, 1/2 where both were; a NaN is chosen by maximum and counts as a tie with itself only.
    mine = x == z
    return share_at_ties(mine | (x != x), mine & (y == z), z.dtype.type(0.5))


def _choose_but_nan(z, x, y):
    mine = x == z
    return share_at_ties(mine | ((x != x) & (z != z)), mine & (y == z), z.dtype.type(0.5))


# NumPy orders complex numbers by their real parts first.
maximum = elementwise(
    "maximum", lambda z, x, y: _choose(z, x, y), lambda z, x, y: _choose(z, y, x), lower="maximum({0}, {1})",
    lower_for={"b": "({0} or {1})"}, complex=True, cheap=True, bounds=bounds.maximum,
)  # fmt: skip
minimum = elementwise(
    "minimum", lambda z, x, y: _choose(z, x, y), lambda z, x, y: _choose(z, y, x), lower="minimum({0}, {1})",
    lower_for={"b": "({0} and {1})"}, complex=True, cheap=True, bounds=bounds.minimum,
)  # fmt: skip
maximum.choice = np.less
minimum.choice = np.greater
fmax = elementwise(
    "fmax", lambda z, x, y: _choose_but_nan(z, x, y), lambda z, x, y: _choose_but_nan(z, y, x), complex=True,
    lower="(maximum({0}, {1}) if {0} == {0} and {1} == {1} else {0} if {1} != {1} else {1})",
)  # fmt: skip
fmin = elementwise(
    "fmin", lambda z, x, y: _choose_but_nan(z, x, y), lambda z, x, y: _choose_but_nan(z, y, x), complex=True,
    lower="(minimum({0}, {1}) if {0} == {0} and {1} == {1} else {0} if {1} != {1} else {1})",
)  # fmt: skip

# --- sign, steps, and floating-point parts -------------------------------------------------------------------


def _copy_sign(z, x):
    return np.where(np.signbit(z) == np.signbit(x), np.ones_like(x), -1.0)


copysign = elementwise(
    "copysign", lambda z, x, _y: _copy_sign(z, x), None, lower="copysign({0}, {1})", domain=((0.3, 2.0), (-2.0, 2.0))
)
heaviside = elementwise(
    "heaviside", None, lambda _z, x, y: np.where(np.equal(x, np.zeros_like(y)), np.ones_like(y), 0.0),
    samples=lambda s: [
        call(s.real(3, 4), s.real(3, 4)),
        call(s.real(3, 1), s.real(4)),
        call(np.array([0, -1, 2]), s.real(3)),
        call(0, s.real()),
        call(s.real(3), 0.5),
    ],
    lower="({1} if {0} == 0.0 else 0.0 if {0} < 0.0 else 1.0 if {0} > 0.0 else {0})",
)  # fmt: skip
ldexp = elementwise(
    "ldexp", lambda _z, x, n: np.ldexp(np.ones_like(x), n), None,
    samples=lambda s: [call(s.real(3, 4), s.ints(-2, 3, (3, 4))), call(s.real(3), 2)],
)  # fmt: skip
nextafter = elementwise("nextafter", one, None)

# --- flat: the derivative is zero wherever it exists ------------------------------------------------------------


def _elsewhere(ufunc: Any, formula: Callable) -> Callable:
    """Return a ufunc for arrays of the host, and for a device's a formula of what its library has."""

    def forward(*xs: Any, **options: Any) -> Any:
        return (ufunc if backend_of(*xs).name == "numpy" else formula)(*xs, **options)

    return with_notes(forward, host=ufunc)  # for `fad.source`


def _of_truths(ufunc: Any) -> Callable:
    def formula(*xs: Any, **options: Any) -> Any:
        return ufunc(*[x != 0 if hasattr(x, "dtype") and x.dtype.kind == "c" else x for x in xs], **options)

    return _elsewhere(ufunc, formula)


def _spacing(x: Any, **options: Any) -> Any:
    size = np.abs(x)
    return np.copysign(np.nextafter(size, np.inf) - size, x, **options)


floor = elementwise("floor", None, lower="floor({0})")
ceil = elementwise("ceil", None, lower="ceil({0})")
trunc = elementwise("trunc", None, lower="trunc({0})")
rint = elementwise("rint", None, complex=True, lower="rint({0})")
spacing = elementwise("spacing", None, forward=_elsewhere(np.spacing, _spacing))
_ASKING: dict[str, Any] = dict(complex=True, computes_in="operands")
_COMPARING: dict[str, Any] = dict(**_ASKING, cheap=True)
isnan = elementwise("isnan", None, lower="({0} != {0})", **_COMPARING)
isinf = elementwise("isinf", None, lower_for={"f": "(fabs({0}) == 1e999)"}, **_ASKING)
isfinite = elementwise("isfinite", None, lower_for={"f": "(fabs({0}) < 1e999)"}, **_COMPARING)
signbit = elementwise("signbit", None, lower="signbit({0})", computes_in="operands")
less = elementwise("less", None, None, operator="<", lower="({0} < {1})", **_COMPARING)
less_equal = elementwise("less_equal", None, None, operator="<=", lower="({0} <= {1})", **_COMPARING)
greater = elementwise("greater", None, None, operator=">", lower="({0} > {1})", **_COMPARING)
greater_equal = elementwise("greater_equal", None, None, operator=">=", lower="({0} >= {1})", **_COMPARING)
equal = elementwise("equal", None, None, operator="==", lower="({0} == {1})", **_COMPARING)
not_equal = elementwise("not_equal", None, None, operator="!=", lower="({0} != {1})", **_COMPARING)


def _logical(ufunc: Any, lower: str, cheap: bool = True) -> Any:
    none = (None,) * ufunc.nin
    return elementwise(
        ufunc.__name__, *none, forward=_of_truths(ufunc), lower=lower, complex=True, computes_in="booleans", cheap=cheap
    )


logical_and = _logical(np.logical_and, "({0} and {1})")
logical_or = _logical(np.logical_or, "({0} or {1})")
logical_xor = _logical(np.logical_xor, "((not {0}) != (not {1}))", cheap=False)
logical_not = _logical(np.logical_not, "(not {0})")


def _integers(s):
    return [call(s.ints(0, 9, (3, 4)), s.ints(1, 5, (4,)))]


def _integer(s):
    return [call(s.ints(0, 9, (3, 4)))]


bitwise_and = elementwise(
    "bitwise_and", None, None, operator="&", lower_for={"b": "({0} and {1})", "i": "({0} & {1})"}, samples=_integers
)
bitwise_or = elementwise(
    "bitwise_or", None, None, operator="|", lower_for={"b": "({0} or {1})", "i": "({0} | {1})"}, samples=_integers
)
bitwise_xor = elementwise(
    "bitwise_xor", None, None, operator="^", lower_for={"b": "({0} != {1})", "i": "({0} ^ {1})"}, samples=_integers
)
left_shift = elementwise("left_shift", None, None, operator="<<", samples=_integers, lower="left_shift({0}, {1})")
right_shift = elementwise("right_shift", None, None, operator=">>", samples=_integers, lower="right_shift({0}, {1})")
gcd = elementwise("gcd", None, None, samples=_integers, lower="gcd({0}, {1})")
lcm = elementwise("lcm", None, None, samples=_integers, lower="lcm({0}, {1})")
invert = elementwise("invert", None, operator="~", samples=_integer, lower_for={"b": "(not {0})", "i": "(-1 - {0})"})
bitwise_count = elementwise("bitwise_count", None, samples=_integer)
