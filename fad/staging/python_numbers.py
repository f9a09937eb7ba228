"""Python's numbers in a recording: what its operators and `math` do with them gives a Python number again."""

from __future__ import annotations

import math
import operator
import pkgutil
from collections.abc import Callable
from typing import Any

import numpy as np

from fad.core.primitives.archetypes import make_elementwise
from fad.core.primitives.primitive import Primitive
from fad.core.programs.refusals import OF_MATH
from fad.core.tracing.weak import from_operator, is_pythons_complex

# A Python number becomes a NumPy scalar, whose dtype counts in promotion.
to_scalar_p = Primitive(
    "to_scalar",
    lambda x: np.asarray(x)[()],
    jvp=lambda tangents, y, xs, params: tangents[0],
    vjp=(lambda ct, y, x: ct,),
    batch=lambda size, batched, xs, params: xs[0],
    saves="none",
    lower="({0})",
    cheap=True,
    archetype="linear",
)


def _batch_number(size: int, batched: tuple, xs: tuple, params: dict) -> Any:
    """Return a batch of Python numbers: an array of their own dtype, in which no narrower integer's product wraps."""
    x = xs[0]
    return x.astype(np.int64) if x.dtype.kind in "iu" and x.dtype != np.int64 else x


# A scalar becomes a Python number: ``float(x)``, one of the state of a loop, one that was kept for the reverse pass.
to_number_p = Primitive(
    "to_number", lambda x: x.item() if hasattr(x, "item") else x, lower="({0})", cheap=True, archetype="linear",
    jvp=lambda tangents, y, xs, params: tangents[0], vjp=(lambda ct, y, x: ct,), saves="none",
    batch=_batch_number,
)  # fmt: skip

# What Python's operators do with Python numbers: their result is a Python number still.
_ARITHMETIC: dict[str | None, Callable] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "//": operator.floordiv,
    "%": operator.mod, "**": operator.pow, "neg": operator.neg, "pos": operator.pos, "abs": operator.abs,
    "&": operator.and_, "|": operator.or_, "^": operator.xor, "~": operator.invert, "<<": operator.lshift,
    ">>": operator.rshift, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
    "==": operator.eq, "!=": operator.ne, ".real": operator.attrgetter("real"), ".imag": operator.attrgetter("imag"),
    ".conjugate()": operator.methodcaller("conjugate"),
}  # fmt: skip
_number_prims: dict[Primitive, Primitive] = {}
_of_kinds: dict[tuple[Primitive, type], Primitive] = {}


def gives_number(symbol: str, values: list, numbers: bool) -> bool:
    """Return whether an operation gives a Python number; `numbers`, whether all its operands are such."""
    if symbol.startswith(OF_MATH):
        return not any(map(np.ndim, values))
    return (numbers or is_pythons_complex(values)) and symbol in _ARITHMETIC and from_operator()


def on_numbers(prim: Primitive) -> Primitive:
    """Return the operation as Python does it on its own numbers, with the rules of the array operation."""
    found = prim if prim.array_form is not None else _number_prims.get(prim)
    if found is None:
        found = _number_prims[prim] = _make(prim, _find_function(prim.symbol))
    return found


def keep_kind(prim: Primitive, kind: type) -> Primitive:
    """Return an operation on Python's numbers as one that raises where its result is a number of another kind.

    A power of integers may be a fraction, and one of a negative number complex: what follows was recorded for others.
    """
    if prim.symbol != "**" or prim.array_form is None:
        return prim
    found = _of_kinds.get((prim.array_form, kind))
    if found is None:

        def forward(x: Any, y: Any) -> Any:
            z = x**y
            if type(z) is not kind and not hasattr(z, "dtype"):
                raise ArithmeticError(f"the power is a number of type {type(z).__name__}, not {kind.__name__}")
            return z

        found = _of_kinds[prim.array_form, kind] = _make(prim.array_form, forward)
    return found


def _make(prim: Primitive, forward: Callable) -> Primitive:
    return Primitive(
        f"python_{prim.name}", forward, partials=prim.partials, jvp=prim.jvp, vjp=prim.vjp,
        batch=prim.batch, flat=prim.flat, keep=prim.keep, lower=prim.lower, lower_for=prim.lower_for,
        computes_in=prim.computes_in, symbol=prim.symbol, array_form=prim, archetype="elementwise",
    )  # fmt: skip


def _find_function(symbol: str | None) -> Callable:
    if symbol == "math.fsum":
        return lambda *xs: math.fsum(xs)
    return pkgutil.resolve_name(symbol) if symbol and symbol.startswith(OF_MATH) else _ARITHMETIC[symbol]


def _to_integers(x: Any) -> Any:
    """Return the whole numbers of an array, those of a batch; raise where an element has none in 64 bits."""
    if not np.all(np.abs(x) < 2.0**63):
        for value in np.ravel(x).tolist():
            np.int64(math.trunc(value))
    return np.trunc(x).astype(np.int64)


# Python's integer of a real number, which in native code has 64 bits (`fad.compile.legalize.numbers.integer_overflow`).
to_int_p = make_elementwise("to_int", _to_integers, (None,), symbol="math.trunc", lower="({0})")
