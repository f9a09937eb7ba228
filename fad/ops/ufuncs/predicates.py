"""Predicates, and conversions that depend on one: isreal, isposinf, array_equal and related functions."""

from __future__ import annotations

from typing import Any

import numpy as np

from fad.backends import is_on_device
from fad.core.primitives.archetypes import COMPARISON_METHODS
from fad.core.primitives.options import refuse_out
from fad.core.primitives.primitive import Primitive, public, register
from fad.core.primitives.samples import call
from fad.core.tracing.numpy_dispatch import FUNCTIONS
from fad.core.tracing.tracer import Tracer, add_methods, bind, outcome, stack_list, strong
from fad.core.tracing.values import number_behind
from fad.core.tracing.views import as_one_array, is_array
from fad.core.tracing.weak import WeakFloat
from fad.ops.arrangement.structural import as_array
from fad.ops.ufuncs.selection import sample_close


def _either(s):
    return [call(s.real(3, 4)), call(np.array([1.0 + 0j, 1j, -2.0])), call(np.array([0.0, np.inf, -np.inf, np.nan]))]


@public(np.isreal, flat=True, samples=_either)
def isreal(x):
    """Return elementwise whether the imaginary part is zero; flat.

    >>> fad.numpy.isreal(np.array([1 + 1j, 2]))
    array([False,  True])
    """
    return np.imag(as_array(x)) == 0


@public(np.iscomplex, flat=True, samples=_either)
def iscomplex(x):
    """Return elementwise whether the imaginary part is not zero; flat.

    >>> fad.numpy.iscomplex(np.array([1 + 1j, 2]))
    array([ True, False])
    """
    return np.imag(as_array(x)) != 0


def _infinities(s):
    return [call(s.real(3, 4)), call(np.array([0.0, np.inf, -np.inf, np.nan]))]


def _infinite(x, out, sign, name):
    refuse_out(out)
    x = as_array(x)
    if x.dtype.kind == "c":
        raise TypeError(f"This operation is not supported for {x.dtype} values because it would be ambiguous: {name}")
    return np.isinf(x) & (np.signbit(x) if sign < 0 else ~np.signbit(x))


@public(np.isposinf, flat=True, samples=_infinities, complex=False, raises="TypeError: The operand is complex.")
def isposinf(x, out=None):
    """Return elementwise whether a number is plus infinity; flat.

    >>> fad.numpy.isposinf(np.array([np.inf, 1.0]))
    array([ True, False])
    """
    return _infinite(x, out, 1, "isposinf")


@public(np.isneginf, flat=True, samples=_infinities, complex=False, raises="TypeError: The operand is complex.")
def isneginf(x, out=None):
    """Return elementwise whether a number is minus infinity; flat.

    >>> fad.numpy.isneginf(np.array([-np.inf, 1.0]))
    array([ True, False])
    """
    return _infinite(x, out, -1, "isneginf")


@public(
    np.real_if_close, samples=lambda s: [call(s.real(3)), call(s.real(3) + 1j * s.real(3)), call(s.real(3), tol=0.5)]
)
def real_if_close(a, tol=100):
    """Return the real part if all imaginary parts are within `tol` of zero (above 1: in machine epsilons).

    >>> fad.numpy.real_if_close(np.array([1 + 1e-17j]))
    array([1.])
    """
    a = as_array(a)
    if a.dtype.kind != "c":
        return as_one_array(strong(a))
    tol = np.finfo(a.dtype).eps.item() * tol if tol > 1 else tol
    return a.real if outcome(np.all(np.abs(a.imag) < tol)) else a


@public(
    np.array_equal,
    flat=True,
    samples=lambda s: [
        call(s.real(3), s.real(3)),
        call(s.real(3), s.real(2)),
        call(s.real(3), np.ones(3), equal_nan=True),
    ],
)
def array_equal(a1, a2, equal_nan=False):
    """Return whether two arrays have one shape and the same elements.

    >>> fad.numpy.array_equal(np.array([1.0, 2.0]), np.array([1.0, 2.0]))
    True
    """
    a1, a2 = as_array(a1), as_array(a2)
    if a1.shape != a2.shape:
        return False
    same = a1 == a2
    if equal_nan:
        same = same | (np.isnan(a1) & np.isnan(a2))
    return bool(outcome(np.all(same)))


@public(np.array_equiv, flat=True, samples=lambda s: [call(s.real(3), s.real(3)), call(s.real(3), s.real(2))])
def array_equiv(a1, a2):
    """Return whether two arrays have the same elements once broadcast against each other.

    >>> fad.numpy.array_equiv(np.array([1.0, 1.0]), 1.0)
    True
    """
    a1, a2 = as_array(a1), as_array(a2)
    try:
        np.broadcast_shapes(a1.shape, a2.shape)
    except ValueError:
        return False
    return bool(outcome(np.all(a1 == a2)))


def _boolean(x):
    return x if is_on_device(x) or np.ndim(x) else bool(x)


# Python's bool of a scalar, as a value: nothing is asked before a program branches on it. Under vmap there are many.
python_bool_p: Any = register(
    Primitive(
        "python_bool",
        _boolean,
        flat=True,
        batch=lambda size, batched, xs, params: xs[0],
        archetype="flat",
        samples=lambda s: [call(s.real() > 0)],
        lower="({0})",
        text=lambda x: f"bool({x})",
        cheap=True,
        doc="A boolean of no axes as Python's, which widens nothing.",
    )
)


@public(
    np.allclose,
    flat=True,
    samples=sample_close,
    raises="ValueError: The operands cannot be broadcast against each other.",
)
def allclose(a, b, rtol=1e-5, atol=1e-8, equal_nan=False):
    """Return whether all elements agree within tolerances; flat.

    >>> fad.numpy.allclose(1.0, 1.0 + 1e-9)
    True
    """
    found = bind(python_bool_p, np.all(np.isclose(stack_list(a), stack_list(b), rtol, atol, equal_nan)))
    if type(found) is Tracer and found.owner.batched:
        found.info = bool  # what isinstance says of it
    return found


def _as_python(compare):
    """Return a comparison that gives a boolean of Python's for its numbers: True + True is 2, and True of NumPy's."""

    def compared(x, y):
        out = compare(x, y)
        kind = type(out)
        if kind is not np.bool_ and (kind is not Tracer or type(number_behind(out)) is bool):
            return out
        kinds = {type(number_behind(x)), type(number_behind(y))}
        return bind(python_bool_p, out) if WeakFloat in kinds and kinds <= _NUMBERS else out

    return compared


_NUMBERS = {bool, int, float, WeakFloat}
add_methods(**{f"__{name}__": _as_python(getattr(Tracer, f"__{name}__")) for name in COMPARISON_METHODS.values()})


def _contains(self, value):
    """Return whether an element equals a value."""
    if not is_array(self):
        raise TypeError(f"argument of type 'numpy.{self.dtype.name}' is not iterable")
    return bool(outcome(np.any(self == value)))


add_methods(__contains__=_contains)


# --- as text -----------------------------------------------------------------------------------------------------


def _behind(x: Any) -> Any:
    while type(x) is Tracer:
        x = x.owner.value_to_print(x)
    return x


def _as_text(f: Any) -> Any:
    """Return a printing function for traced arrays: it shows the numbers behind them, of all batch elements."""

    def text(a, *args, **kwargs):
        return f(np.asarray(_behind(a)), *args, **kwargs)

    return text


FUNCTIONS.update({f: _as_text(f) for f in (np.array2string, np.array_str, np.array_repr)})
