"""Whether a backward sweep may meet an infinite slope: only then does it matter which zeros are zero by selection.

The derivative of a value that nobody reads is zero, though its slope be infinite: of ``np.sqrt(x)[1:]`` at
``x[0] == 0``, or where ``r[0] = 1.0`` has replaced it. But a cotangent that is zero as it happens must not absorb an
infinite slope: ``np.sqrt(x) ** 2`` has derivative 1 at 0. So masks have to say which is which
(`fad.core.primitives.cotangent.Masked`), and they cost more than many a program's whole sweep. The slopes are looked at
before: a sweep is careful if one is infinite, or if that is not known yet, in a program that is compiled.
"""

from __future__ import annotations

import cmath
import functools
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from fad.backends import is_on_device
from fad.core.primitives.archetypes import STEEP
from fad.core.primitives.cotangent import Masked, densify, is_finite, ones_where_live
from fad.core.primitives.primitive import Primitive
from fad.core.tracing.tracer import Tracer, any_of, bind, tracer
from fad.core.tracing.values import traces_of
from fad.core.tracing.views import unwrap
from fad.ops.ufuncs.elementwise import divide, has_zero, multiply
from fad.transforms.reverse.overwrites import VIEW
from fad.transforms.reverse.tape import (
    BOTH,
    CALL,
    EFFECT,
    GENERAL,
    INDEX,
    MULTI,
    ONE_OF_TWO,
    PRODUCT,
    RERUN,
    UNARY,
    WRITE,
)

FACTORS: dict[Any, int] = {partial: k for k, partial in zip((1, 0), multiply.partials or (), strict=True)}
FACTORS.update(dict.fromkeys((divide.partials or ())[1:], 0))
"""Of each partial derivative that is zero where an operand is: which one, the other factor or the numerator."""


NOWHERE, WITHIN, EVERYWHERE, ALWAYS = 0, 1, 2, 3
"""Where a sweep is careful: in the body of a loop only with arrays that a step computes, and not with those it carries,
of which a step may touch but few elements: masks are as large as the arrays. Loops have masks of their operands only
where a slope before them is infinite, or always if it is the masks that the sweep is for."""


def find_care(tape: Any, begin: int = 0) -> int:
    """Return where a sweep has to be careful: a slope on the tape, from a position on, may be infinite."""
    found, selects = NOWHERE, False
    factors: dict[int, Any] = {}
    for i in range(begin, len(tape)):
        record = tape[i]
        if record is None:
            continue
        kind = record[0]
        if kind < PRODUCT:
            partial = record[3 if kind == BOTH else 2]
            if partial in STEEP:
                start, stop = _SAVED[kind]
                found = max(found, _look(STEEP[partial], record[start:stop]))
            elif kind == ONE_OF_TWO and partial in FACTORS:
                factor = record[4 + FACTORS[partial]]
                factors[id(factor)] = factor
        elif kind == GENERAL and record[2].partials is not None:
            partial = record[2].partials[0]
            if partial in STEEP:
                found = max(found, _look(STEEP[partial], (record[3], *record[4])))
        elif kind == RERUN:
            found = max(found, record[4])
        elif kind == CALL:
            found = max(found, getattr(record[2], "care", NOWHERE))
        elif kind in _SELECTING or (kind == GENERAL and record[2].indexed):
            selects = True
        if found == EVERYWHERE:
            return found
    return EVERYWHERE if selects and any(map(_has_infinity, factors.values())) else found


_SELECTING = frozenset({INDEX, WRITE, VIEW})
_SAVED = {UNARY: (3, 5), ONE_OF_TWO: (3, 6), BOTH: (5, 8)}  # where a record has what its partial derivative reads


_PLAIN = frozenset({np.ndarray, np.float64, np.float32, np.complex128, np.complex64, float, int, type(None)})


def _look(test: Callable, saved: tuple) -> int:
    """Return where a sweep has to be careful for a slope, by a test of what its partial derivative reads."""
    if not _is_plain(saved):
        return _look_at_traced(test, saved)
    return EVERYWHERE if test(*saved) else NOWHERE


def is_steep_now(tape: Any) -> bool:
    """Return whether a slope on a tape is infinite; of a program that is recorded, for the values at hand."""
    for record in tape:
        for _, test, saved in _slopes_of(record) if record is not None else ():
            looks = all(trace.answers for x in saved for trace in traces_of(x))
            saved = tuple(map(unwrap, saved))
            if looks and not any(map(is_on_device, saved)) and test(*saved):
                return True
    return False


def find_care_of_call(values: list) -> int:
    """Return where a sweep has to be careful for a call with slopes that may be infinite, by its operands."""
    return EVERYWHERE if all(trace.answers for x in values for trace in traces_of(x)) else WITHIN


def is_compiled(x: Any) -> bool:
    """Return whether a value is one of a program that is being recorded."""
    return any(trace.compiled for trace in traces_of(x))


def are_plain(cts: list) -> bool:
    return all(type(x) is not Tracer for x in cts)


def _is_plain(saved: tuple) -> bool:
    return _PLAIN.issuperset(map(type, saved))


def _has_infinity(factor: Any) -> bool:
    """Return whether a constant factor is infinite or NaN somewhere: 0 by selection, times that, is to be 0."""
    if type(factor) is np.ndarray:
        factor = np.vdot(factor, factor) if factor.dtype.kind in "fc" else 0.0  # the quickest way to read all of it
    return issubclass(type(factor), (float, complex, np.inexact)) and not cmath.isfinite(factor)


def _look_at_traced(test: Callable, saved: tuple) -> int:
    known = True
    for x in saved:
        if is_on_device(unwrap(x)):
            return NOWHERE  # to look at it would wait for the device
        for trace in traces_of(x):
            if not trace.answers:
                return WITHIN
            known = known and not trace.compiled
    return NOWHERE if known and not test(*map(unwrap, saved)) else EVERYWHERE


def is_careful(care: int, steep: Steep, i: int) -> bool:
    """Return whether a sweep is careful with what is read from an array, or written into it."""
    if care == EVERYWHERE:
        return steep.is_under(i)
    return care == ALWAYS or (care == WITHIN and _is_computed(steep.tape, i))


def _is_computed(tape: Any, i: int) -> bool:
    """Return whether an array was computed by what is on the tape, and is no view or version of one from outside."""
    while i >= 0 and (record := tape[i]) is not None:
        if record[0] == INDEX:
            i = record[1]
        elif record[0] == GENERAL and (record[2].updates or record[2].view is not None):
            i = record[1][0]
        else:
            return True
    return False


def select_by_constant(t: Any, constant: Any) -> Any:
    """Return a tangent times a partial derivative that is zero where a constant is, dropped there."""
    if not (is_chosen_later(constant) or has_zeros(constant)):
        return t
    if type(t) is not Masked and not is_infinite(t, unknown=True):
        return t
    t = densify(_select(t, constant))
    return t if t.shape else t[()]  # np.where gives an array without axes, and a product a scalar


def is_infinite(t: Any, unknown: bool = False) -> bool:
    """Return whether a tangent is infinite or NaN somewhere, or the answer for one of a program or another derivative.

    Of that a slope may be infinite where this one is not: the first derivative of ``x**1.5`` at 0 is 0.
    """
    traces = list(traces_of(t))
    if any(trace.compiled or not trace.answers for trace in traces):
        return unknown
    if unknown and not all(trace.batched for trace in traces):
        return True
    t = unwrap(t)
    return not is_on_device(t) and _has_infinity(t)


def select_by_constants(g: Any, partials: tuple, parents: Any, xs: tuple, steep: Steep) -> Any:
    """Return the cotangent of a result as the one operand gets it that a constant factor multiplies."""
    for k, (partial, parent) in enumerate(zip(partials, parents, strict=True)):
        if parent >= 0 and partial in FACTORS and parents[1 - k] < 0:
            return select_by_factor(g, xs[1 - k], steep, parent)
    return g


def are_finite(cts: list) -> bool:
    """Return whether cotangents, and their tangents, are finite; False if there is more of them.

    In the body of a loop it is the values of a first step that are looked at: to ask in each step would make a loop
    of few operations slow. So a body does without masks where a slope is infinite in later steps alone.
    """
    leaves: list = []
    if not all(_collect_parts(densify(ct), leaves) for ct in cts if ct is not None):
        return False
    leaves = [x for x in leaves if not is_on_device(unwrap(x))]  # to look at those would wait for the device
    if not all(trace.answers for x in leaves for trace in traces_of(x)):
        leaves = list(map(unwrap, leaves))
    if are_plain(leaves):
        return all(map(is_finite, leaves))
    with np.errstate(all="ignore"):
        total = functools.reduce(operator.add, [np.sum(x) for x in leaves])
        return not any_of(np.logical_not(np.isfinite(total)))


def _collect_parts(x: Any, leaves: list) -> bool:
    """Collect what a value consists of in forward mode and in batches; false if that is not all of it."""
    while type(x) is Tracer and not x.owner.compiled:
        if "info" in x.owner.parts:
            if not _collect_parts(densify(x.info), leaves):
                return False
        elif not x.owner.batched:
            return False
        x = x.wrapped
    leaves.append(x)
    return True


def has_effect(tape: Any) -> bool:
    """Return whether a sweep of a tape does what must not be done twice."""
    return any(record is not None and record[0] == EFFECT for record in tape)


def parents_of(record: Any) -> list[int]:
    """Return the tape positions of a record's operands."""
    kind = record[0]
    if kind in (UNARY, ONE_OF_TWO, INDEX, VIEW):
        return [record[1]]
    if kind in (BOTH, PRODUCT, WRITE):
        return [p for p in record[1:3] if p >= 0]
    return [] if kind == RERUN else [p for p in record[1] if p >= 0]


class Steep:
    """Which values on a tape depend on a slope that may be infinite; it is found when one is first asked for.

    Of a sweep that is for the masks all may do so.
    """

    __slots__ = ("tape", "care", "marks", "looks_again", "unsure", "before", "sloped")

    def __init__(self, tape: Any, care: int, looks_again: bool = False):
        self.tape = tape
        self.care = care
        self.looks_again = looks_again  # whether the tape is swept once more where a sweep is `unsure`
        self.unsure = False  # whether something was left out that is zero by selection, for the sake of speed
        self.marks: Any = b"\1" * len(tape) if care == ALWAYS else None
        self.before: dict[int, tuple[int, bool]] = {}  # what `_find_before` has found
        self.sloped: list[int] = []  # the records with slopes among it

    def is_under(self, i: int) -> bool:
        """Return whether the value at a position of the tape depends on a slope that may be infinite."""
        if self.marks is None:
            self.marks = _mark_steep(self.tape)
        return bool(self.marks[i])

    def note_product(self, parents: Any) -> None:
        """Note that a product with a constant was pulled back as if that had no zeros."""
        if min(parents) < 0 and self.is_under(max(parents)):
            self.unsure = True

    def is_under_any(self, record: Any) -> bool:
        """Return whether an operand of a record depends on such a slope."""
        return any(map(self.is_under, parents_of(record)))

    def is_at(self, record: Any) -> bool:
        """Return whether a record has such a slope itself, or an operand that depends on one."""
        return _may_be_steep(record) or self.is_under_any(record)


def _mark_steep(tape: Any) -> bytearray:
    marks = bytearray(len(tape))
    for i in range(len(tape)):
        record = tape[i]
        if record is None:
            continue
        if any(marks[p] for p in parents_of(record)) or _may_be_steep(record):
            marks[i : i + _count_results(record)] = b"\1" * _count_results(record)
    return marks


def _is_steep_call(record: Any) -> bool:
    """Return whether a record is that of a call or checkpoint with slopes that may be infinite."""
    care = record[4] if record[0] == RERUN else getattr(record[2], "care", NOWHERE) if record[0] == CALL else NOWHERE
    return care > NOWHERE


def _may_be_steep(record: Any) -> bool:
    if record[0] == RERUN or _is_steep_call(record):
        return True
    if record[0] == ONE_OF_TWO and record[2] in FACTORS and _has_infinity(record[4 + FACTORS[record[2]]]):
        return True
    return any(not _is_plain(saved) or test(*saved) for _, test, saved in _slopes_of(record))


def _count_results(record: Any) -> int:
    return record[3] if record[0] in (CALL, RERUN) else len(record[3]) if record[0] == MULTI else 1


def is_infinite_before(steep: Steep, i: int, record: Any, care: int) -> Any:
    """Return whether a slope is infinite that a record at position i of a tape depends on.

    Values that are traced are asked: the program is for slopes like those at hand. Within the body of a loop they
    cannot be asked, and the answer is traced: there what a step computes is looked at alone, and not what it carries.
    Slopes within a call are not at hand.
    """
    tape, pullback = steep.tape, record[2]
    bits, called = 0, False
    for p in parents_of(record):
        if care >= EVERYWHERE or _is_computed(tape, p):
            more, calls = _find_before(steep, p)
            bits, called = bits | more, called or calls
    called = called and getattr(pullback, "leaves_out", True)
    if called and not steep.looks_again:
        return True
    steep.unsure = steep.unsure or called
    # In their order, so that programs of several loops begin with the same questions.
    there = sorted(steep.sloped[n] for n, bit in enumerate(reversed(bin(bits))) if bit == "1")
    slopes = [slope for k in there if tape[k] is not None for slope in _slopes_of(tape[k])]
    return any(test(*saved) for _, test, saved in slopes if _is_plain(saved)) or _ask_traced(slopes)


def _find_before(steep: Steep, place: int) -> tuple[int, bool]:
    """Return which records with slopes a value depends on, as bits of their numbers, and whether on a call with such.

    It is found once for each value: a program may have hundreds of loops, one after the other.
    """
    tape, known = steep.tape, steep.before
    waiting = [place]
    while waiting:
        k = waiting[-1]
        start = k if k in known else _find_record(tape, k)
        if k in known or start < 0:
            known.setdefault(waiting.pop(), (0, False))
            continue
        needed = parents_of(tape[k]) if start == k else [start]
        missing = [p for p in needed if p not in known]
        waiting += missing
        if missing:
            continue
        bits, called = 0, start == k and _is_steep_call(tape[k])
        for p in needed:
            bits, called = bits | known[p][0], called or known[p][1]
        if start == k and _slopes_of(tape[k]):
            bits |= 1 << len(steep.sloped)
            steep.sloped.append(k)
        known[k] = bits, called
    return known[place]


def _find_record(tape: Any, place: int) -> int:
    """Return where the record stands that has its result at a place of a tape; -1 if it is gone."""
    k = place
    while k >= 0 and tape[k] is None:
        k -= 1
    return k if k >= 0 and k + _count_results(tape[k]) > place else -1


def _slopes_of(record: Any) -> list[tuple]:
    """Return what may be infinite of a record: partial derivatives, each with its test and what it reads."""
    kind = record[0]
    if kind < PRODUCT:
        partials = record[3:5] if kind == BOTH else record[2:3]
        start, stop = _SAVED[kind]
        saved = record[start:stop]
    elif kind == GENERAL and record[2].partials is not None:
        partials, saved = record[2].partials, (record[3], *record[4])
    else:
        return []
    return [(p, STEEP[p], saved) for p in partials if p in STEEP]


def _ask_traced(slopes: list[tuple]) -> Any:
    found, answers = False, True
    for partial, _, saved in slopes:
        if _is_plain(saved):
            continue
        if any(is_on_device(unwrap(x)) for x in saved):
            return False
        answers = answers and all(trace.answers for x in saved for trace in traces_of(x))
        with np.errstate(all="ignore"):
            found = np.logical_or(found, np.any(np.logical_not(np.isfinite(partial(*saved)))))
    return any_of(found) if answers else found


def select_by_factor(c: Any, factor: Any, steep: Steep, j: int) -> Any:
    """Return the cotangent of a value, at position j, that passed a constant factor: times zero it was not used."""
    if has_zeros(factor):
        return _select(c, factor)
    if not (is_chosen_later(factor) and steep.is_under(j)):
        return c
    was_masked, c = type(c) is Masked, _select(c, factor)
    c.brief = not was_masked
    return c


def drop_mask(c: Masked) -> Any:
    """Return a cotangent without its mask, nor one of its tangent, for what has no infinite slope below."""
    g = c.dense()
    return tracer(g.wrapped, g.owner, g.info.dense()) if type(g) is Tracer and type(g.info) is Masked else g


def _select(c: Any, factor: Any) -> Masked:
    live = bind(has_part_p, factor, np.not_equal(factor, 0))
    if type(c) is Masked:
        return Masked(c.value, np.logical_and(c.live, live))
    return Masked(c, live)


def select_by_product(
    c: Any, rule: Callable, g: Any, xs: tuple, k: int, parents: Any, params: dict, steep: Steep
) -> Any:
    """Return the cotangent of operand `k` of a product, by its VJP: what met only zeros of a constant was not used."""
    other = xs[1 - k]
    constant = parents[1 - k] < 0 and _may_drop(other, parents[k], steep)
    if not constant and type(g) is not Masked:
        return c

    def live() -> Any:
        marks = list(xs)
        marks[1 - k] = (np.not_equal(other, 0) if constant else np.ones(other.shape)).astype(other.dtype)
        return densify(rule(ones_where_live(g), None, *marks, **params)) != 0

    return Masked(densify(c), live, clean=True)


def _may_drop(other: Any, j: int, steep: Steep) -> bool:
    """Return whether it matters that a constant factor of a product with the value at position j may have zeros.

    Of one that a program is given it is asked where a sweep gave numbers that are not finite.
    """
    if has_zeros(other):
        return True
    if not steep.is_under(j) or not is_chosen_later(other):
        return False
    if steep.care == ALWAYS:
        return True
    found = is_mask(other)
    steep.unsure = steep.unsure or not found
    return found


def is_chosen_later(factor: Any) -> bool:
    """Return whether a factor is a constant of which a program knows where it is zero as it runs."""
    if type(factor) is not Tracer:
        return False
    traces = list(traces_of(factor))
    return factor.dtype.kind in "biu" or (traces[-1].compiled and all(t.compiled or t.batched for t in traces))


def has_zeros_now(factor: Any) -> bool:
    """Return whether a factor that a program gets or computes has zeros as it is recorded.

    To ask for it in each call would take as long as many a product: weights of a layer have none.
    """
    known = all(trace.answers for trace in traces_of(factor))
    return known and not is_on_device(unwrap(factor)) and bool(has_zero(unwrap(factor)))


# Of a constant factor, where it is not zero: what it multiplies has a part in a derivative there. A program that is
# differentiated in its turn, by the factor as well, must not lose that derivative: there all has a part.
has_part_p: Any = Primitive(
    "has_part", lambda factor, nonzero: nonzero, flat=True, archetype="rule",
    differentiated=lambda factor, nonzero: np.ones_like(factor, dtype=bool),
    batch=lambda size, batched, xs, params: bind(has_part_p, *xs),
)  # fmt: skip


def is_mask(factor: Any) -> bool:
    """Return whether a program computes a factor of comparisons, signs and the like alone: it has no derivative.

    Of other factors of a product, as the weights of a layer, nobody asks where they are zero: it takes a product more.
    """
    if type(factor) is not Tracer:
        return False
    *around, innermost = traces_of(factor)
    while type(factor.wrapped) is Tracer:
        factor = factor.wrapped
    return innermost.compiled and all(trace.batched for trace in around) and _is_flat(innermost, factor.info)


def _is_flat(recording: Any, number: int) -> bool:
    made = {o: eq for eq in recording.equations for o in eq.outs}
    waiting = [number]
    while waiting:
        i = waiting.pop()
        if i in recording.constants or recording.types[i].dtype.kind in "biu" or (i in made and made[i].prim.flat):
            continue
        if i not in made:
            return False
        eq = made[i]
        partials = eq.prim.partials or (eq,) * len(eq.ins)  # of an operation without them all operands count
        waiting += [n for n, partial in zip(eq.ins, partials, strict=True) if partial is not None]
    return True


def has_zeros(factor: Any) -> bool:
    """Return whether a factor is a constant, or the constants of a batch, and known to have zeros."""
    if type(factor) is Tracer:
        if not all(trace.batched and trace.answers and not trace.compiled for trace in traces_of(factor)):
            return False
        factor = unwrap(factor)
    return type(factor) is not Tracer and not is_on_device(factor) and has_zero(factor)
