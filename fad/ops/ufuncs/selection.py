"""Choosing between values: where, clip, select, and what is made of them."""

from __future__ import annotations

import builtins
import operator

import numpy as np

from fad.backends import behind, is_numpy, like
from fad.core.primitives.archetypes import align, fit, flat, spread
from fad.core.primitives.cotangent import Masked, Selection
from fad.core.primitives.options import refuse_options
from fad.core.primitives.primitive import Primitive, answer, public, register
from fad.core.primitives.samples import call
from fad.core.tracing.tracer import Tracer, add_methods, bind, stack_list, strong
from fad.core.tracing.values import number_behind, stop_gradient
from fad.core.tracing.views import as_one_array, is_array, pin_index
from fad.core.tracing.weak import WeakFloat, note_operators, number
from fad.ops.layout.asking import result_type
from fad.ops.layout.memory_order import lay_out, lay_out_like
from fad.ops.ufuncs.elementwise import at_multiples


def _where_vjp(k, ct, y, cond, *branches):
    x = branches[k - 1]
    c = Selection(cond if k == 1 else np.logical_not(cond)) * ct
    return fit(c, x.shape, x.dtype)


def _where_jvp(tangents, y, xs, params):
    cond, (_, a, b) = xs[0], tangents
    if a is None or b is None:
        if a is b:
            return None
        t = a if b is None else b
        return Selection(pin_index(cond) if b is None else np.logical_not(cond)) * spread(t, y)
    if type(a) is not Masked and type(b) is not Masked:
        return spread(np.where(cond, a, b), y)
    a, b = (t if type(t) is Masked else Masked(t, np.True_, clean=True) for t in (a, b))
    live = np.where(cond, a.live, b.live)
    return spread(Masked(np.where(cond, a.value, b.value), live, a.clean and b.clean), y)


def _where_samples(s):
    return [
        call(s.bools(3, 4), s.real(3, 4), s.real(3, 4)),
        call(s.bools(4), s.real(3, 1), s.real(4)),
        call(s.bools(3), s.real(3), 0.5),
        call(True, s.real(), s.real(2)),
    ]


where_p: Primitive = register(
    Primitive(
        "where_select",
        np.where,
        jvp=_where_jvp,
        vjp=lambda k, ct, y, *xs: None if k == 0 else _where_vjp(k, ct, y, *xs),
        batch=lambda size, batched, xs, params: bind(where_p, *align(batched, xs)),
        archetype="selection",
        selects=True,
        dependence="elementwise",
        cheap=True,
        lower="select({0}, {1}, {2})",
        # of arrays: of one Python bool `where` makes one where a device needs it
        samples=lambda s: [call(np.asarray(c.args[0]), *c.args[1:]) for c in _where_samples(s)],
        doc="The elements of x where the condition holds, and of y elsewhere.",
    )
)


@public(
    np.where,
    samples=_where_samples,
    raises="ValueError: Only one of `x` and `y` is given, or the operands cannot be broadcast against each other.",
)
def where(condition, x=None, y=None, /):
    """Choose elementwise from `x` where `condition` is true, else from `y`.

    The derivative of what is not chosen is zero even where the branch not taken is infinite or NaN.

    >>> fad.grad(lambda x: fad.numpy.where(x > 0, x * x, 0).sum())(np.array([-1.0, 2.0]))
    array([0., 4.])
    """
    if x is None and y is None:
        return np.nonzero(condition)
    if x is None or y is None:
        raise ValueError("either both or neither of x and y should be given")
    if type(condition) in (bool, int, float, complex):  # which a device does not take
        near = next((v for v in (x, y) if hasattr(v, "dtype")), 0.0)
        condition = np.bool_(condition)
        condition = condition if behind(near).name == "numpy" else like(near, np.asarray(condition))
    return as_one_array(where_p(stack_list(condition), stack_list(x), stack_list(y)))


@public(
    np.clip,
    methods=("clip",),
    samples=lambda s: [
        call(s.real(3, 4), -1.0, 1.0),
        call(s.real(3, 4), s.real(4, low=-1.5, high=-0.5), 1.0),
        call(s.real(5), None, 0.5),
        call(s.real(5), a_min=-0.5, a_max=None),
    ],
    raises="ValueError: The bounds cannot be broadcast to the array.",
)
def clip(a, a_min=None, a_max=None, out=None, *, min=None, max=None, **options):
    """Limit values to an interval; at a limit hit exactly, value and limit share the derivative equally.

    >>> fad.grad(lambda x: fad.numpy.clip(x, 0, 1).sum())(np.array([-0.5, 0.5, 2.0]))
    array([0., 1., 0.])
    """
    if options or out is not None:
        refuse_options("clip", {"out": out, **options})
    # A Python number is made an array of, and its dtype counts; a limit stays one.
    low, high = stack_list(a_min if min is None else min), stack_list(a_max if max is None else max)
    a = stack_list(a)
    a = strong(a) if hasattr(a, "dtype") else np.asarray(a)[()]
    if low is None and high is None:
        return np.copy(a)
    # Of two zeros the second counts: the array's between two numbers, and that of the limit elsewhere, as in NumPy.
    if low is not None and high is not None and np.size(low) == np.size(high) == 1:
        return np.minimum(high, np.maximum(low, a))
    a = a if low is None else np.maximum(a, low)
    return a if high is None else np.minimum(a, high)


answer(np._core.umath.clip, clip)  # type: ignore[attr-defined]  # what the method of a plain array calls


@public(np.nan_to_num, samples=lambda s: [call(s.real(3, 4)), call(np.array([1.0, np.nan, -np.inf, np.inf])),
    call(np.array([1.0, np.nan, -np.inf, np.inf]), nan=0.5, posinf=2.0, neginf=-3.0)],
    raises="ValueError: `copy` is false, and a number cannot be written into.")  # fmt: skip
def nan_to_num(x, copy=True, nan=0.0, posinf=None, neginf=None):
    """Replace NaN and infinities by numbers; the derivative there is zero.

    >>> fad.grad(lambda x: fad.numpy.nan_to_num(x).sum())(np.array([np.nan, 2.0]))
    array([0., 1.])
    """
    x = stack_list(x)
    if not copy and is_array(x):
        x[...] = nan_to_num(x, True, nan, posinf, neginf)
        return x[()]
    if not copy and type(x) is Tracer:
        raise ValueError("Unable to avoid copy while creating an array as requested.")  # of a NumPy scalar
    if x.dtype.kind == "c":
        z = np.nan_to_num(x.real, True, nan, posinf, neginf) + 1j * np.nan_to_num(x.imag, True, nan, posinf, neginf)
        return z.astype(x.dtype, copy=False)
    if x.dtype.kind != "f":
        return np.copy(x)[()]
    limits = np.finfo(x.dtype)
    posinf = limits.max.item() if posinf is None else posinf
    neginf = limits.min.item() if neginf is None else neginf
    numbers = np.where(np.isnan(x), nan, x).astype(x.dtype)
    finite = np.where(np.isinf(x), np.where(x > 0, posinf, neginf).astype(x.dtype), numbers)[()]
    return finite.astype(x.dtype, copy=False)


@public(
    np.select,
    samples=lambda s: [call([s.bools(4), s.bools(4)], [s.real(4), s.real(4)], 0.5)],
    raises="ValueError: There are not as many choices as conditions.",
)
def select(condlist, choicelist, default=0):
    """Choose from the first entry of `choicelist` whose condition holds, else `default`.

    >>> fad.numpy.select([np.array([True, False])], [np.array([1.0, 2.0])], default=9.0)
    array([1., 9.])
    """
    if len(condlist) != len(choicelist):
        raise ValueError("list of cases must be same length as list of conditions")
    conditions = [np.bool_(x) if type(x) is bool else stack_list(x) for x in condlist]
    for i, cond in enumerate(conditions):
        if cond.dtype.kind != "b":
            raise TypeError(f"invalid entry {i} in condlist: should be boolean ndarray")
    choices = [x if type(x) in (int, float, complex) else stack_list(x) for x in choicelist]
    out = default if type(default) in (int, float, complex) else stack_list(default)
    dtype = result_type(*choices, out)
    for cond, choice in zip(reversed(conditions), reversed(choices), strict=True):
        out = np.where(cond, choice, out)
    out = out.astype(dtype, copy=False)
    return lay_out(out, "C") if type(out) is Tracer else out


round_p: Primitive = flat(
    "round_to",
    lambda x, *, decimals: np.round(x, decimals),
    batch=lambda size, batched, xs, params: bind(round_p, *xs, **params),
    samples=lambda s: [call(s.real(3, 4), decimals=1)],
    doc="Each element rounded to so many decimals.",
)


@public(
    np.round,
    np.around,
    flat=True,
    methods=("round",),
    samples=lambda s: [call(s.real(3, 4), 1), call(s.real())],
    raises="TypeError: `decimals` is no integer.",
)
def round(a, decimals=0, out=None):
    """Round to a number of decimals; flat.

    >>> fad.numpy.round([1.26, 2.71], 1)
    array([1.3, 2.7])
    """
    a = stack_list(a)
    y = bind(round_p, a, decimals=decimals)
    return lay_out_like(y, a) if decimals and type(y) is Tracer else y


# Python's own numbers are rounded by Python, and stay its own.
round_number_p = Primitive(
    "round_number",
    lambda x, *, ndigits: builtins.round(number(x), ndigits),
    flat=True,
    batch=lambda size, batched, xs, params: bind(round_p, *xs, decimals=params["ndigits"]),
    archetype="flat",
    text=lambda x, ndigits: f"round({x}, {ndigits})",
)


def _round_to(x, ndigits=None):
    if x.ndim or x.dtype.kind == "c":
        name = "ndarray" if x.ndim else x.dtype.name
        raise TypeError(f"type numpy.{name} doesn't define __round__ method")
    if ndigits is None:
        return int(np.rint(x))
    ndigits = operator.index(ndigits)
    if type(number_behind(x)) in (bool, int, float, WeakFloat):
        return bind(round_number_p, x, ndigits=ndigits)
    return round(x, ndigits)


# What Python's round, math.floor and related functions call; whole numbers are piecewise constant.
add_methods(
    __round__=_round_to,
    __floor__=lambda self: int(np.floor(self)),
    __ceil__=lambda self: int(np.ceil(self)),
    __trunc__=lambda self: int(np.trunc(self)),
)


@public(flat=True, samples=lambda s: [call(s.real(3, 4))])
def fix(x, out=None):
    """Round towards zero; flat. NumPy gives up this name of trunc, so plain arguments do not go to it either."""
    if out is not None:
        refuse_options("fix", {"out": out})
    return np.trunc(x)


if "fix" in np.__all__:
    answer(np.fix, fix)


@public(np.sinc, samples=lambda s: [call(s.real(3, 4)), call(np.array([0.0, 1.0, 0.5]))])
def sinc(x):
    """Return sin(pi x) / (pi x), which is 1 at 0, by its Taylor series near 0 so that every derivative is right.

    >>> fad.grad(fad.numpy.sinc)(0.5).round(6)
    np.float64(-1.27324)
    """
    x = stack_list(x)
    y = np.pi * x
    small = np.abs(stop_gradient(y)) < 1e-1
    if is_numpy(small) and not small.any():
        return (np.sin(y) / y)[()]
    y = np.where(small, 1.0, y)
    s = np.where(small, np.pi * x, 0.0)
    s = s * s
    series = 1 - s / 6 * (1 - s / 20 * (1 - s / 42 * (1 - s / 72 * (1 - s / 110 * (1 - s / 156)))))
    return np.where(small, series, np.sin(y) / y)[()]


def _modf(x, /, **options):
    """Return the fractional part, with derivative 1, and the integral part, which is flat.

    >>> fad.numpy.modf(2.5)
    (np.float64(0.5), np.float64(2.0))
    """
    refuse_options("modf", options)
    x = x.astype(np.modf(x.dtype.type(0))[0].dtype)
    sign = np.where(np.signbit(x), -1, 1).astype(x.dtype)  # that of a fraction of zero too
    size = np.where(np.isinf(x), 0.0, sign * x)
    return sign * (size - np.trunc(size)), np.trunc(x)


modf = public(
    np.modf, name="modf", samples=lambda s: [call(s.real(3, 4))], raises="TypeError: The operand is complex."
)(_modf)


exponent_p: Primitive = flat(
    "exponent",
    lambda x: np.frexp(x)[1],
    batch=lambda size, batched, xs, params: bind(exponent_p, *xs),
    samples=lambda s: [call(s.positive(3, 4))],
    complex=False,
    doc="The exponent of each element: x = mantissa * 2**exponent.",
)


def _frexp(x, /, **options):
    """Return mantissa and exponent: x = mantissa * 2**exponent; the exponent is flat.

    >>> fad.numpy.frexp(6.0)
    (np.float64(0.75), np.int32(3))
    """
    refuse_options("frexp", options)
    x = x.astype(np.frexp(x.dtype.type(0))[0].dtype)  # an integer, which ldexp would make half a float of
    exponent = bind(exponent_p, x)
    return np.ldexp(x, -exponent), exponent


frexp = public(
    np.frexp, name="frexp", samples=lambda s: [call(s.positive(4))], raises="TypeError: The operand is complex."
)(_frexp)


@public(
    np.divmod,
    name="divmod",
    samples=lambda s: [call(s.real(3, 4), s.positive(4))],
    kinks=at_multiples,
    raises="ValueError: The operands cannot be broadcast against each other.",
)
def divmod(x, y, /, **options):
    """Return floor quotient (flat) and remainder.

    >>> fad.numpy.divmod(7.0, 2.0)
    (np.float64(3.0), np.float64(1.0))
    >>> fad.jvp(lambda x: fad.numpy.divmod(x, 2.0), (7.0,), (1.0,))[1]
    (np.float64(0.0), np.float64(1.0))
    """
    refuse_options("divmod", options)
    return np.floor_divide(x, y), np.remainder(x, y)


# By operators, so that Python's numbers stay Python's.
def _divmod(x, y):
    return x // y, x % y


def _divmod_of_number(y, x):
    return x // y, x % y


add_methods(__divmod__=_divmod, __rdivmod__=_divmod_of_number)
note_operators(_divmod, _divmod_of_number)


def sample_close(s):
    x = np.array([2.0, 200.0, np.nan, np.inf, np.inf, 0.0])
    near = x, np.array([2.0001, 200.001, np.nan, np.inf, -np.inf, 1e-9])
    return [
        call(s.real(3), s.real(3)),
        call(*near),
        call(*near, equal_nan=True),
        call(*near, rtol=1e-3, atol=0.0),
        call(x[:2], x[:2]),
        call(x[:4], x[:4], equal_nan=True),
    ]


@public(
    np.isclose,
    flat=True,
    samples=sample_close,
    raises="ValueError: The operands cannot be broadcast against each other.",
)
def isclose(a, b, rtol=1e-5, atol=1e-8, equal_nan=False):
    """Return elementwise whether two arrays agree within tolerances; flat.

    >>> fad.numpy.isclose(np.array([1.0, 2.0]), 1.0)
    array([ True, False])
    """
    a, b = stack_list(a), stack_list(b)
    b = b if hasattr(b, "dtype") else np.asarray(b)
    b = b.astype(np.result_type(b.dtype, 1.0))  # no difference of integers without signs, nor of booleans
    finite = np.isfinite(b)
    size = np.where(finite, b, 0.0).astype(b.dtype)  # infinity less infinity would warn
    close = np.where(finite, np.abs(a - size) <= atol + rtol * np.abs(size), a == b)
    close = (close | (np.isnan(a) & np.isnan(b))) if equal_nan else close
    return close if close.ndim else close[()]  # as of numbers, whose comparison is none of arrays
