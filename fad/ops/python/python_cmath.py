"""Python's `cmath` of traced numbers, as `python_math` has its `math`: values, branch cuts, errors are its own.

The derivatives are those of NumPy's functions.
"""

from __future__ import annotations

import cmath
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from fad.core.primitives.archetypes import STEEP, make_elementwise
from fad.core.primitives.primitive import Primitive
from fad.core.tracing.trace import Trace
from fad.core.tracing.tracer import Tracer
from fad.ops.python.python_functions import enter, make_forward, of_scalars, stand_for, stand_for_operation
from fad.ops.python.python_math import OPERATIONS as OF_MATH
from fad.ops.python.python_math import make_questions, take_real
from fad.ops.ufuncs import elementwise
from fad.ops.ufuncs.conversion import join_parts


def _take_complex(x: Any) -> Any:
    """Return an argument as a complex number of double precision, or raise as `cmath` does."""
    if type(x) is not Tracer or x.owner is Trace.of_plain:
        return complex(x)
    if x.ndim:
        complex(np.broadcast_to(1.0, x.shape))  # raises as this version of NumPy does, or not
        x = x.reshape(())
    return x if x.dtype == np.complex128 else x.astype(np.complex128)


# --- functions that are operations ------------------------------------------------------------------------------------


def _make(name: str, rules: Primitive) -> Primitive:
    assert rules.partials is not None
    forward = make_forward(getattr(cmath, name), rules.forward)
    (partial,) = rules.partials
    partials = (_PARTIALS.get(name) or of_scalars(partial),)
    return make_elementwise(f"cmath_{name}", forward, partials, symbol=f"cmath.{name}", steep=STEEP.get(partial))


# Derivatives that raise nowhere, by NumPy's functions, and by parts: functions of real numbers are native.
_PARTIALS: dict[str, Callable] = {
    "exp": lambda z, _x: z,
    "sqrt": lambda z, _x: np.divide(0.5, z),
    "log": lambda _z, x: np.divide(1.0, x),
    "log10": lambda _z, x: np.divide(1 / math.log(10), x),
    "sin": lambda _z, x: np.cos(x.real) * np.cosh(x.imag) - 1j * (np.sin(x.real) * np.sinh(x.imag)),
    "cos": lambda _z, x: -(np.sin(x.real) * np.cosh(x.imag)) - 1j * (np.cos(x.real) * np.sinh(x.imag)),
    "sinh": lambda _z, x: np.cosh(x.real) * np.cos(x.imag) + 1j * (np.sinh(x.real) * np.sin(x.imag)),
    "cosh": lambda _z, x: np.sinh(x.real) * np.cos(x.imag) + 1j * (np.cosh(x.real) * np.sin(x.imag)),
}


_SAME = ("sin", "cos", "tan", "sinh", "cosh", "tanh", "exp", "log", "log10", "sqrt")
_RENAMED = {f"a{name}": f"arc{name}" for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh")}
_RULES = {**{name: name for name in _SAME}, **_RENAMED}
OPERATIONS = {name: _make(name, getattr(elementwise, rules)) for name, rules in _RULES.items()}


# --- functions that are made of others --------------------------------------------------------------------------------


def _log(z: Any, *base: Any) -> Any:
    y = OPERATIONS["log"](_take_complex(z)) if type(z) is Tracer else cmath.log(z)
    return y / _log(*base) if base else y


def _phase(z: Any) -> Any:
    z = _take_complex(z)
    return OF_MATH["atan2"](z.imag, z.real)


def _polar(z: Any) -> tuple:
    z = _take_complex(z)
    return OF_MATH["hypot"](z.real, z.imag), _phase(z)


def _rect(r: Any, phi: Any) -> Any:
    r, phi = take_real(r), take_real(phi)
    return join_parts(r * OF_MATH["cos"](phi), r * OF_MATH["sin"](phi))


_MADE: dict[str, Callable] = {
    "log": _log, "phase": _phase, "polar": _polar, "rect": _rect, **make_questions(_take_complex),
}  # fmt: skip


def _stand_for(name: str, original: Callable) -> Callable:
    if name in _MADE:
        return stand_for(original, _MADE[name])
    return stand_for_operation(original, OPERATIONS[name], _take_complex)


enter("cmath", OPERATIONS.keys() | _MADE.keys(), _stand_for)
