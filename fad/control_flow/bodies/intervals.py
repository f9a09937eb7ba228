"""What is known of the integers of a recorded program, for all its steps: the least and the most that one can be.

A traced integer is written as a linear form of symbols, `i - j + 2`, by going through the equations that made it. A
symbol is a value that is no sum: the counter of a loop, an argument, a maximum. It has lower and upper bounds, which
are forms of older symbols: of ``for j in range(i, n)`` it is known that ``i <= j <= n - 1``, so that ``n - 1 - j``
is never negative, and ``j - i + 1`` at least 1.

Bounds of loops, lengths of slices and places of windows are decided by this, and no value is ever read.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from fad.control_flow.bodies.subgraph import BodyTrace, example, stopped_p, to_number_p
from fad.core.primitives.primitive import Primitive
from fad.core.programs.graph import Equation
from fad.core.tracing.tracer import Tracer
from fad.ops.places.indexing import getitem_p
from fad.ops.ufuncs.conversion import astype_flat_p, astype_p
from fad.ops.ufuncs.elementwise import maximum, minimum, square
from fad.ops.ufuncs.selection import where_p
from fad.staging.python_numbers import to_scalar_p
from fad.staging.record_trace import RecordTrace
from fad.transforms.batching.batch_trace import BatchTrace

_births = itertools.count()
_DEEP = 12  # symbols that are replaced by their bounds, one after the other, before constants alone count
_WORD = np.iinfo(np.int64)
_MOST_STEPS = 1 << 24  # of a loop for which memory is taken before it runs


class Symbol:
    """An integer that is no sum of others, and the forms of older symbols that lie below and above it."""

    __slots__ = ("birth", "lower", "upper", "maximum_of")

    def __init__(self, lower: Iterable[Form] = (), upper: Iterable[Form] = (), maximum_of: tuple = ()):
        self.birth = next(_births)
        self.lower = list(lower)
        self.upper = list(upper)
        self.maximum_of = maximum_of


class Form:
    """A sum of symbols times integers, and a constant."""

    __slots__ = ("constant", "terms")

    def __init__(self, constant: int = 0, terms: dict[Symbol, int] | None = None):
        self.constant = constant
        self.terms = {s: c for s, c in (terms or {}).items() if c}

    def __add__(self, other: Form | int) -> Form:
        if not isinstance(other, Form):
            return Form(self.constant + other, self.terms)
        terms = dict(self.terms)
        for s, c in other.terms.items():
            terms[s] = terms.get(s, 0) + c
        return Form(self.constant + other.constant, terms)

    def __mul__(self, k: int) -> Form:
        return Form(self.constant * k, {s: c * k for s, c in self.terms.items()})

    def __sub__(self, other: Form | int) -> Form:
        return self + other * -1

    def key(self) -> tuple:
        """Return what is equal for equal forms."""
        return self.constant, frozenset(self.terms.items())

    @property
    def fixed(self) -> int | None:
        """The value, if it is the same whatever the symbols are."""
        return None if self.terms else self.constant

    @property
    def least(self) -> int | None:
        """A number that the value is never below; None if none is known."""
        most = (self * -1).most
        return None if most is None else -most

    @property
    def most(self) -> int | None:
        """A number that the value is never above; None if none is known."""
        return _most(self, _DEEP)


def _most(form: Form, depth: int) -> int | None:
    """Replace the youngest symbol by its bounds, until constants are left; return the best of them."""
    if not form.terms:
        return form.constant
    s = max(form.terms, key=lambda s: s.birth)
    c = form.terms[s]
    rest = form - Form(0, {s: c})
    bounds = s.upper if c > 0 else s.lower
    found = [_most(rest + bound * c, depth - 1) for bound in bounds if depth > 0 or not bound.terms]
    return min((x for x in found if x is not None), default=None)


def opaque(least: int | None = None, most: int | None = None) -> Form:
    """Return a form of a new symbol, of which two numbers at most are known."""
    lower = [] if least is None else [Form(least)]
    return Form(0, {Symbol(lower, [] if most is None else [Form(most)]): 1})


def interval(x: Any) -> tuple[int | None, int | None]:
    """Return the least and the most that an integer can be in any step and any call; None where that is not known."""
    form = form_of(x)
    return form.least, form.most


def interval_at_hand(x: Any) -> tuple[int | None, int | None]:
    """Return the same as far as it is known, or else the least and the most in the array that an element is taken of.

    In another call, or another step, there may be other numbers in that array.
    """
    found = interval(x)
    if None not in found or type(x) is not Tracer or not isinstance(x.owner, BodyTrace):
        return found
    known, captured = _integers_of(x.owner), {i: array for array, i in x.owner.captured}
    eq = known.maker(x.owner, x.info)
    while eq is not None and eq.prim in (to_number_p, to_scalar_p, astype_p, astype_flat_p):
        eq = known.maker(x.owner, eq.ins[0])
    array = captured.get(eq.ins[0]) if eq is not None and eq.prim is getitem_p else None
    array = array if isinstance(array, np.ndarray) or (type(array) is Tracer and array.owner.physical) else None
    shown = np.asarray(example(array))
    return (int(shown.min()), int(shown.max())) if shown.dtype.kind in "iu" and shown.size else found


def interval_of(trace: RecordTrace, number: int) -> tuple[int | None, int | None]:
    """Return the same of a value of a recording, by its number."""
    form = _of_number(trace, number) if _is_integer(trace, number) else opaque()
    return form.least, form.most


def most_steps(n: Any) -> int | None:
    """Return how many steps a loop of n steps can have, None where that is not known or more than memory is taken for.

    Of the numbers in an array of int32 nothing else is known than that they are below 2**31.
    """
    most = interval(n)[1]
    return most if most is not None and most <= _MOST_STEPS else None


def fits(x: Any, dtype: np.dtype) -> bool:
    """Return whether a number goes into a dtype without loss: integers into floating-point numbers up to 2**53."""
    if dtype.kind not in "fc" or not isinstance(x, (int, np.integer)):
        return True
    low, high = interval(x) if type(x) is Tracer else (int(x), int(x))
    most = 2 ** (np.finfo(dtype).nmant + 1)
    return low is not None and high is not None and -most <= low and high <= most


def assume(x: Any, least: Any, below: Any) -> None:
    """Note of a traced integer that it is at least `least` and less than `below`, integers that may be traced.

    This is for those who make the traced integer: a loop, of its counter.
    """
    if type(x) is not Tracer or not isinstance(x.owner, RecordTrace):
        return
    low, high = form_of(least), form_of(below)
    uppers = [high - 1, *[f - 1 for f in _maximum_without(high, low)]]
    _integers_of(x.owner).forms[x.info] = Form(0, {Symbol([low], uppers): 1})


def _maximum_without(form: Form, low: Form) -> list[Form]:
    """Return what is above a value that is at least `low` and below a maximum: those of its operands that can be."""
    if form.constant or len(form.terms) != 1:
        return []
    ((symbol, c),) = form.terms.items()
    operands = symbol.maximum_of if c == 1 else ()
    possible = [f for f in operands if (most := (f - low).most) is None or most > 0]
    return possible if len(possible) == 1 else []


def form_of(x: Any) -> Form:
    """Return the linear form of a traced or plain integer."""
    while type(x) is Tracer and not isinstance(x.owner, (RecordTrace, BatchTrace)):
        x = x.wrapped
    if type(x) is Tracer:
        trace = x.owner
        if isinstance(trace, RecordTrace) and _is_integer(trace, x.info):
            return _of_number(trace, x.info)
        return opaque(*_of_dtype(x.dtype))
    plain = isinstance(x, (bool, int, np.integer, np.bool_))
    return Form(int(x)) if plain else opaque()


def _of_dtype(dtype: np.dtype) -> tuple[int | None, int | None]:
    if dtype.kind == "b":
        return 0, 1
    if dtype.kind == "u" or (dtype.kind == "i" and dtype.itemsize < 8):
        limits = np.iinfo(dtype)
        return int(limits.min), int(limits.max)
    return None, None


class _Known:
    """What was found of the integers of one recording: their forms, and the equations that values come from."""

    __slots__ = ("forms", "results", "makers", "seen")

    def __init__(self) -> None:
        self.forms: dict[int, Form] = {}
        self.results: dict[tuple, Form] = {}  # of operations: one that is written twice gives one symbol
        self.makers: dict[int, Equation] = {}
        self.seen = 0

    def maker(self, trace: RecordTrace, v: int) -> Equation | None:
        """Return the equation that a value comes from; None for inputs and constants."""
        for eq in trace.equations[self.seen :]:
            self.makers.update(dict.fromkeys(eq.outs, eq))
        self.seen = len(trace.equations)
        return self.makers.get(v)


def _integers_of(trace: RecordTrace) -> _Known:
    if trace.integers is None:
        trace.integers = _Known()
    return trace.integers


def _of_number(trace: RecordTrace, number: int) -> Form:
    """Return the form of a value of a recording, by its number."""
    known = _integers_of(trace)
    waiting = [number]
    while waiting:
        v = waiting[-1]
        if v in known.forms:
            waiting.pop()
            continue
        eq = known.maker(trace, v)
        rule = None if eq is None else _RULES.get(eq.prim.symbol or eq.prim)
        taken = eq.ins[:1] if eq is not None and eq.prim is getitem_p else ()  # the array of an element
        if eq is None or (rule is None and not taken) or not all(_is_integer(trace, i) for i in eq.ins[len(taken) :]):
            known.forms[v] = _form_of(trace, v)
            continue
        places = eq.ins[len(taken) :]
        missing = [i for i in places if i not in known.forms]
        waiting += missing
        if not missing:
            forms = [known.forms[i] for i in places]
            key = (eq.prim.name, trace.types[v].dtype, *taken, str(eq.params), *[form.key() for form in forms])
            if key not in known.results:
                dtype = trace.types[v].dtype
                known.results[key] = _in_range(rule(*forms), dtype) if rule else _form_of(trace, v)
            known.forms[v] = known.results[key]
    return known.forms[number]


def _is_integer(trace: RecordTrace, v: int) -> bool:
    return trace.types[v].dtype.kind in "iub" and not trace.types[v].shape


def _form_of(trace: RecordTrace, v: int) -> Form:
    """Return the form of a constant, of a value from outside of a body, or of what is a symbol from here on."""
    if v in trace.constants:
        return form_of(trace.constants[v])
    captured = trace.captured if isinstance(trace, BodyTrace) else []
    outside = next((x for x, i in captured if i == v), None)
    return opaque(*_of_dtype(trace.types[v].dtype)) if outside is None else form_of(outside)


def _in_range(form: Form, dtype: np.dtype) -> Form:
    """Return a form of a dtype's values: of what may not fit in nothing is known, for it wraps around."""
    if dtype.kind == "b":
        return opaque(0, 1)
    limits = np.iinfo(dtype)
    low, high = form.least, form.most
    wraps = (low is not None and low < limits.min) or (high is not None and high > limits.max)
    unknown = low is None or high is None
    # Where 64 bits are not enough, an index is out of range anyway.
    if wraps or (unknown and limits.min != _WORD.min):
        return opaque(*_of_dtype(dtype))
    return form


# --- one rule for each operation: forms to a form --------------------------------------------------------------------


def _if_known(choose: Callable, *numbers: int | None) -> int | None:
    """Return what `choose` (min, max, a sum) gives of numbers, or None if one of them is not known."""
    return None if None in numbers else choose(*numbers)


def _product(x: Form, y: Form) -> Form:
    if x.fixed is not None:
        return y * x.fixed
    if y.fixed is not None:
        return x * y.fixed
    corners = [_if_known(operator.mul, a, b) for a in (x.least, x.most) for b in (y.least, y.most)]
    return opaque(_if_known(min, *corners), _if_known(max, *corners))


def _monotonous(op: Callable) -> Callable:
    """Return the rule of an operation that grows with its first operand, if the second is a number above zero."""

    def rule(x: Form, y: Form) -> Form:
        k = y.fixed
        if k is None or k <= 0:
            return opaque()
        if x.fixed is not None:
            return Form(op(x.fixed, k))
        low, high = x.least, x.most
        return opaque(None if low is None else op(low, k), None if high is None else op(high, k))

    return rule


def _remainder(x: Form, y: Form) -> Form:
    k, low, high = y.fixed, x.least, x.most
    if k is None or k <= 0:
        return opaque()
    if low is not None and high is not None and low // k == high // k:
        return x - low // k * k
    return opaque(0, k - 1)


def _maximum(x: Form, y: Form) -> Form:
    low, high = (x - y).least, (x - y).most
    if low is not None and low >= 0:
        return x
    if high is not None and high <= 0:
        return y
    most = _if_known(max, x.most, y.most)
    return Form(0, {Symbol([x, y], [] if most is None else [Form(most)], maximum_of=(x, y)): 1})


def _minimum(x: Form, y: Form) -> Form:
    low, high = (x - y).least, (x - y).most
    if low is not None and low >= 0:
        return y
    if high is not None and high <= 0:
        return x
    least = _if_known(min, x.least, y.least)
    return Form(0, {Symbol([] if least is None else [Form(least)], [x, y]): 1})


def _either(_: Form, x: Form, y: Form) -> Form:
    if (x - y).fixed == 0:
        return x
    return opaque(_if_known(min, x.least, y.least), _if_known(max, x.most, y.most))


def _absolute(x: Form) -> Form:
    low, high = x.least, x.most
    if low is not None and low >= 0:
        return x
    if high is not None and high <= 0:
        return x * -1
    return opaque(0, _if_known(lambda a, b: max(-a, b), low, high))


def _masked_bits(x: Form, y: Form) -> Form:
    masks = [f.fixed for f in (x, y) if f.fixed is not None and f.fixed >= 0]
    return opaque(0, min(masks)) if masks else opaque()


_COMPARISONS = ("<", "<=", ">", ">=", "==", "!=")
# By what Python calls an operation, or by itself if there is no operator.
_RULES: dict[str | Primitive, Callable] = {
    "+": operator.add, "-": operator.sub, "*": _product, "neg": lambda x: x * -1, "pos": lambda x: x,
    "//": _monotonous(operator.floordiv), ">>": _monotonous(operator.rshift), "%": _remainder, "abs": _absolute,
    "&": _masked_bits, **dict.fromkeys(_COMPARISONS, lambda x, y: opaque(0, 1)),
    **dict.fromkeys((to_number_p, to_scalar_p, astype_p, astype_flat_p, stopped_p), lambda x: x),
    maximum: _maximum, minimum: _minimum, where_p: _either, square: lambda x: _product(x, x),
}  # fmt: skip
