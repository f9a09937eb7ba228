"""Python numbers inside a transform: scalars that compute as NumPy's, and promote as Python's do (NEP 50).

``0.5 * x`` stays float32 with a float32 x, and ``np.float64(0.5) * x`` does not. A transform needs scalars with a shape
and a dtype, so it takes a Python number as a `WeakFloat` or `WeakComplex`: in every ufunc and function of NumPy a
Python number stands for it, and Python's arithmetic between such numbers gives one again.
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

# Code by id, as it is slow to hash: true for the operators of tracers, false for what answers for NumPy's ufuncs.
ENTRIES: dict[int, bool] = {}
_ARITHMETIC = {
    np.add, np.subtract, np.multiply, np.divide, np.floor_divide, np.remainder, np.power, np.negative, np.positive,
    np.absolute, np.conjugate,
}  # fmt: skip
# What scalars do as ufuncs do it, to the bit, in a tenth of the time.
QUICK: dict[Any, Any] = {
    np.add: operator.add, np.subtract: operator.sub, np.multiply: operator.mul, np.divide: operator.truediv,
    np.negative: operator.neg,
}  # fmt: skip


def note_operators(*functions: Any) -> None:
    """Note functions as operators of tracers."""
    ENTRIES.update(dict.fromkeys([id(f.__code__) for f in functions], True))


def from_operator(depth: int = 2) -> bool:
    """Return whether Python's operator is running, and not NumPy's function, which makes NumPy's numbers of Python's.

    `depth` is the number of frames between the caller and what may have been called so.
    """
    frame: Any = sys._getframe(depth)
    while frame is not None:
        found = ENTRIES.get(id(frame.f_code))
        if found is not None:
            return found
        frame = frame.f_back
    return True


def _ufunc(self: Any, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
    quick = QUICK.get(ufunc)
    called = method == "__call__" and not options
    if quick is not None and called and type(inputs[0]) in _FLOATS and type(inputs[-1]) in _FLOATS:
        y = quick(*inputs)
        near = ENTRIES.get(id(sys._getframe(2).f_code))  # most often the operator is two calls away
        return WeakFloat(y) if (from_operator() if near is None else near) else y
    numbers = map(number, inputs)
    if not called:
        return getattr(ufunc, method)(*numbers, **options)
    y = ufunc(*numbers)
    return weaken(y) if type(y) in _WEAK and ufunc in _ARITHMETIC and _alone(inputs) and from_operator() else y


def on_numbers(ufunc: np.ufunc, x: Any, y: Any, depth: int = 3) -> Any:
    """Return what a ufunc gives for two operands, weak scalars among them; the same in less time than through NumPy.

    `depth` is the number of calls between this one and that of Python's operator, if there is one.
    """
    operation = QUICK.get(ufunc)
    if ufunc in _RAISING and type(y) in _ALONE and (_may_overflow(x, y) if ufunc is np.power else not y):
        _raise_as_python(ufunc, x, y)
    if operation is None or type(x) not in _ARITHMETIC_TYPES or type(y) not in _ARITHMETIC_TYPES:
        z = ufunc(number(x), number(y))
        return weaken(z) if type(z) in _WEAK and ufunc in _ARITHMETIC and _alone((x, y)) and from_operator(depth) else z
    z = operation(x, y)
    if type(x) is np.float64 or type(y) is np.float64:
        return z
    near = ENTRIES.get(id(sys._getframe(depth).f_code))
    return WeakFloat(z) if (from_operator(depth) if near is None else near) else z


# What Python's operators raise an error for, division by zero and powers that overflow, and NumPy gives inf or NaN.
_RAISING: dict[Any, Any] = {
    np.divide: operator.truediv, np.floor_divide: operator.floordiv, np.remainder: operator.mod,
    np.power: operator.pow,
}  # fmt: skip


def _raise_as_python(ufunc: np.ufunc, x: Any, y: Any) -> None:
    """Raise what an operator of Python's raises for two numbers of Python's, where a function of the user's has it."""
    if may_raise(ufunc, x, y):
        _RAISING[ufunc](number(x), number(y))


def _may_overflow(x: Any, y: Any) -> bool:
    """Return whether a power of two numbers may be no finite number: a quick test that spares most of them more."""
    return type(x) in _ALONE and not (1e-5 < abs(x) < 1e5 and abs(y) < 60)


def may_raise(ufunc: Any, x: Any, y: Any) -> bool:
    """Return whether an operation is Python's, in a function of the user's, and raises for some numbers."""
    return ufunc in _RAISING and type(x) in _ALONE and type(y) in _ALONE and _is_operator_of_user()


def _is_operator_of_user() -> bool:
    """Return whether the operator that is running stands in a function of the user's, and not in a rule of fad's."""
    frame: Any = sys._getframe(3)
    while (found := ENTRIES.get(id(frame.f_code))) is None:
        frame = frame.f_back
        if frame is None or _is_of_fad(frame, "fad.ops."):
            return False
    while ENTRIES.get(id(frame.f_code)) is not None:  # one operator may be made of others
        frame = frame.f_back
    return found and not _is_of_fad(frame, "fad.")


def _is_of_fad(frame: Any, part: str) -> bool:
    return str(frame.f_globals.get("__name__")).startswith(part)


def on_number(ufunc: np.ufunc, x: Any) -> Any:
    """Return what a ufunc gives for a weak scalar."""
    y = ufunc(number(x))
    return weaken(y) if ufunc in _ARITHMETIC and type(y) in _WEAK and from_operator(3) else y


def _function(self: Any, function: Any, types: Any, args: tuple, kwargs: dict) -> Any:
    y = function(*map(_numbers, args), **{name: _numbers(x) for name, x in kwargs.items()})
    return weaken(y) if type(y) in _ALONE else y


# Two classes without a base in common besides NumPy's: a scalar with a second base is not safe in NumPy.
class WeakFloat(np.float64):
    """A Python float inside a transform."""

    __slots__ = ()
    __class__ = property(lambda self: float)  # type: ignore[assignment]  # what isinstance sees
    __array_ufunc__ = _ufunc  # type: ignore[assignment]
    __array_function__ = _function


class WeakComplex(np.complex128):
    """A Python complex number inside a transform."""

    __slots__ = ()
    __class__ = property(lambda self: complex)  # type: ignore[assignment]
    __array_ufunc__ = _ufunc  # type: ignore[assignment]
    __array_function__ = _function


def _install_comparisons(kind: Any) -> None:
    """Let weak scalars compare as Python's numbers: NumPy's would widen a narrower array, and tell 0.1 from its 0.1."""

    def define(name: str, compare: Any) -> None:
        setattr(kind, name, lambda self, other: compare(number(self), number(other)))

    for name in ("eq", "ne", "lt", "le", "gt", "ge"):
        define(f"__{name}__", getattr(operator, name))
    kind.__hash__ = kind.__base__.__hash__  # which Python drops beside an own __eq__


_NUMBERS: dict[type, Any] = {WeakFloat: float, WeakComplex: complex}
for _kind in _NUMBERS:
    _install_comparisons(_kind)
WEAK = frozenset(_NUMBERS)
_ALONE = {*_NUMBERS, bool, int, float, complex}
_FLOATS = {WeakFloat, float, int}
_COMPLEX = {WeakComplex, complex}
_ARITHMETIC_TYPES = {*_FLOATS, np.float64}
# Scalars on which `on_numbers` is quicker than a ufunc, or takes Python's rules of promotion.
NUMPY_SCALARS = {WeakFloat, WeakComplex, np.float64}
_WEAK: dict[type, Any] = {
    np.float64: WeakFloat, np.complex128: WeakComplex, float: WeakFloat, complex: WeakComplex
}  # fmt: skip


def _alone(inputs: tuple) -> bool:
    return _ALONE.issuperset(map(type, inputs)) or is_pythons_complex(inputs)


def is_pythons_complex(operands: Sequence) -> bool:
    """Return whether Python's complex number computes with a scalar of NumPy's on its right, which is a float to it."""
    return len(operands) == 2 and type(operands[0]) in _COMPLEX and type(operands[1]) is np.float64


def are_numbers(operands: Sequence) -> bool:
    """Return whether two operands are Python's numbers, of which one is traced, or are taken for such."""
    if len(operands) != 2:
        return False
    return type(operands[0]) in WEAK or type(operands[1]) in WEAK or is_pythons_complex(operands)


def number(x: Any) -> Any:
    """Return the Python number that a weak scalar stands for; anything else as it is."""
    convert = _NUMBERS.get(type(x))
    return x if convert is None else convert(x)


def _numbers(x: Any) -> Any:
    """Return an argument of a function of NumPy with the Python numbers that weak scalars in it stand for."""
    return type(x)(map(_numbers, x)) if type(x) in (list, tuple) else number(x)


def weaken(x: Any) -> Any:
    """Return a scalar in double precision as the Python number of its value; anything else as it is."""
    make = _WEAK.get(type(x))
    return x if make is None else make(x)


def is_weak(x: Any) -> bool:
    """Return whether a value is a weak scalar."""
    return type(x) in WEAK
