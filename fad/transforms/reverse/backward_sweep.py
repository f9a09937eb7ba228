"""The backward sweep of reverse mode: from the end of the tape down, cotangents of results become ones of operands.

Each record of the tape (`fad.transforms.reverse.tape` says which kinds there are) has the rule of its operation and
what the rule needs. `fad.transforms.reverse.accumulate` adds up what one place receives.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy import float64, ndarray

from fad.core.primitives.archetypes import cast, fit, one
from fad.core.primitives.cotangent import Indexed, Masked, densify
from fad.core.tracing.tracer import Tracer
from fad.core.tracing.views import follow
from fad.errors import ImpureFunctionError
from fad.ops.ufuncs.strong_zero import OVERFLOWING, multiply_strongly
from fad.transforms.reverse.accumulate import accumulate, accumulate_new, own_masked
from fad.transforms.reverse.layered_writes import add_in_place, view_along
from fad.transforms.reverse.operand_cotangents import PULL_BACK, operand_cotangents
from fad.transforms.reverse.overwrites import VIEW, sweep_write
from fad.transforms.reverse.slopes import (
    ALWAYS,
    EVERYWHERE,
    FACTORS,
    NOWHERE,
    WITHIN,
    Steep,
    are_finite,
    are_plain,
    drop_mask,
    find_care,
    is_careful,
    is_infinite_before,
    select_by_constants,
    select_by_factor,
    select_by_product,
)
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
    SEEDS,
    UNARY,
    WRITE,
)


def sweep(
    tape: list, cts: list, own: bytearray, stop: int, keep: bool, care: int | None = None, steep: Any = None
) -> None:
    """Propagate cotangents from the end of the tape down to position `stop`.

    `cts` holds one entry per position and is updated in place; on return, the entries below `stop` are the result.
    `own` holds 1 where ``cts[i]`` is an array made here, that may be added to in place.
    With `keep` false each record is dropped as soon as it has been used. A part of a sweep is told where the
    whole takes `care`, for it may pass on to the parts after it what is zero by selection, and what is `steep` on it.
    """
    if care is None:
        care = find_care(tape) if stop < len(tape) - 1 else NOWHERE
    if care and steep is None:
        steep = Steep(tape, care)
    masked = False  # whether the cotangent at hand is masked, and so NumPy's warnings are off
    errors: Any = None
    try:
        for i in range(len(tape) - 1, stop - 1, -1):
            record = tape[i]
            if record is None:
                continue
            if not keep:
                tape[i] = None
            g: Any = cts[i]
            kind = record[0]
            if kind >= MULTI:
                x = y = z = c = d = p = g = None  # what records before this one read and made is not kept while it runs
                if masked:
                    errors.__exit__(None, None, None)
                    masked = False
                if kind == WRITE:
                    sweep_write(record, i, cts, own, keep, care >= EVERYWHERE)
                elif kind == VIEW:
                    _sweep_view(record, i, cts, own, care >= EVERYWHERE)
                elif kind == RERUN:
                    _sweep_again(record, i, tape, cts, own, care, steep)
                elif kind == EFFECT:
                    _sweep_effect(record, i, cts, own)
                else:
                    _sweep_many(record, i, steep, cts, own, care)
                continue
            if g is None:
                continue
            cts[i] = None
            if masked or type(g) is not ndarray:
                if type(g) is Indexed:
                    g = g.gather()
                elif type(g) is Masked and g.brief and not (care and steep.is_at(record)):
                    g = drop_mask(g)
                now = type(g) is Masked and (kind < PRODUCT or (kind == GENERAL and record[2].moves))
                if now is not masked:
                    masked = now
                    if now:
                        errors = np.errstate(all="ignore")  # an infinite partial may meet what was not selected
                        errors.__enter__()
                    else:
                        errors.__exit__(None, None, None)
            if kind == BOTH:
                _, j, k, px, py, z, x, y, to_x, to_y = record
                if masked:
                    c = g if px is one else g.quietly(px, (z, x, y))
                    d = g if py is one else g.quietly(py, (z, x, y))
                else:
                    c = g if px is one else g * px(z, x, y)
                    d = g if py is one else g * py(z, x, y)
                if to_y is not None:
                    d = fit(d, *to_y)
                p = cts[k]
                if p is None:
                    cts[k] = d
                elif type(p) is ndarray and type(d) is ndarray:
                    if own[k]:
                        p += d
                    else:
                        cts[k] = p + d
                        own[k] = 1
                elif type(p) is float64 and type(d) is float64:
                    cts[k] = p + d
                else:
                    accumulate(cts, own, k, d)
                if to_x is not None:
                    c = fit(c, *to_x)
            elif kind == UNARY:
                _, j, partial, z, x = record
                if (care or type(g) is Tracer) and partial in OVERFLOWING:
                    c = multiply_strongly(g, partial(z, x))
                else:
                    c = g.quietly(partial, (z, x)) if masked else g * partial(z, x)
            elif kind == ONE_OF_TWO:
                _, j, partial, z, x, y, to = record
                if masked:
                    c = g if partial is one else g.quietly(partial, (z, x, y))
                else:
                    c = g if partial is one else g * partial(z, x, y)
                if care and partial in FACTORS:
                    c = select_by_factor(c, y if FACTORS[partial] else x, steep, j)
                if to is not None:
                    c = fit(c, *to)
            elif kind == INDEX:
                j, index = record[1], record[3]
                p = cts[j]
                if own[j] and type(p) is ndarray and (type(g) is ndarray or issubclass(type(g), np.generic)):
                    part = p[index]
                    if type(part) is ndarray:
                        part += g
                    else:
                        p[index] = part + g
                else:
                    _sweep_index(record, g, cts, own, is_careful(care, steep, j))
                continue
            else:
                x = y = z = c = d = p = None
                if kind == PRODUCT:
                    _sweep_product(record, g, cts, own, care, steep)
                else:
                    _sweep_general(record, g, cts, own, care, steep)
                continue
            p = cts[j]
            if p is None:
                cts[j] = c
            elif type(p) is ndarray and type(c) is ndarray:
                if own[j]:
                    p += c
                else:
                    cts[j] = p + c
                    own[j] = 1
            elif type(p) is float64 and type(c) is float64:
                cts[j] = p + c
            else:
                accumulate(cts, own, j, c)
    finally:
        if masked:
            errors.__exit__(None, None, None)


def _sweep_index(record: tuple, g: Any, cts: list, own: bytearray, careful: bool) -> None:
    """Run the record of a slice whose array has no cotangent of the sweep's own yet: all slices of it add up in one."""
    _, j, prim, index, shape, dtype = record
    if careful:
        accumulate(cts, own, j, prim.cotangent(shape, dtype, index, densify(g), _mask_of(g)))
        return
    if cts[j] is None and (type(g) is np.ndarray or issubclass(type(g), np.generic)):
        p = cts[j] = np.zeros(shape, dtype)
        p[index] = g
        own[j] = 1
        return
    g, owned = densify(g), 0 if type(cts[j]) is Masked else own[j]
    if type(g) is Tracer and (added := add_in_place(cts[j], owned, [], index, g, shape, dtype)) is not None:
        cts[j], own[j] = added, 1
    else:
        accumulate(cts, own, j, prim.cotangent(shape, dtype, index, g, None))


def _mask_of(g: Any) -> Any:
    return g.mask() if type(g) is Masked else True


def _sweep_view(record: tuple, i: int, cts: list, own: bytearray, careful: bool) -> None:
    """Add the cotangent of what was read through views to that of the array they are views of."""
    _, j, path, index, shape, dtype = record
    g, p = cts[i], cts[j]
    cts[i] = None
    if g is None:
        return
    if careful and type(p) is not np.ndarray:
        if _add_masked_view(record, g, cts, own):
            return
        pull = PULL_BACK[0](lambda x: view_along(x, path)[index], np.zeros(shape, dtype))[1]
        accumulate(cts, own, j, (Masked(densify(g), _mask_of(g), clean=True)).move(lambda g: pull(g)[0]))
        return
    g, p = densify(g), densify(p)
    if type(g) is Tracer or type(p) is Tracer:
        owned = 0 if type(cts[j]) is Masked else own[j]
        if (added := add_in_place(p, owned, path, index, g, shape, dtype)) is not None:
            cts[j], own[j] = added, 1
            return
        _, pullback = PULL_BACK[0](lambda x: view_along(x, path)[index], np.zeros(shape, dtype))
        accumulate(cts, own, j, pullback(g)[0])
        return
    if p is None:
        p = np.zeros(shape, dtype)
    elif not own[j] or type(p) is not np.ndarray or not p.flags.c_contiguous:
        p = np.array(p, order="C")
    cts[j] = p
    own[j] = 1
    follow(p, path)[index] += g


def _add_masked_view(record: tuple, g: Any, cts: list, own: bytearray) -> bool:
    """Add a cotangent to those of a view of an array, and its mask to theirs, in place; False if any is traced."""
    _, j, path, index, shape, dtype = record
    p = cts[j]
    if type(p) is Indexed:
        p = p.gather() if p.is_plain() else p
    if p is not None and type(p) is not Masked:
        return False
    g, live = (g.dense(), g.live) if type(g) is Masked else (densify(g), True)
    given = (g, live) if p is None else (g, live, p.value, p.live)
    if not all(issubclass(type(x), (ndarray, np.generic, bool)) for x in given):
        return False
    if p is None:
        p = cts[j] = Masked(np.zeros(shape, dtype), np.zeros(shape, bool), clean=True)
        own[j] = 2
    p = own_masked(cts, own, j, p)
    follow(p.value, path)[index] += g
    follow(p.live, path)[index] |= live
    return True


def _sweep_product(record: tuple, g: Any, cts: list, own: bytearray, care: int, steep: Any) -> None:
    """Run the record of a product, which has a rule for each factor that is traced."""
    _, j, k, (left, right), x, y = record
    if care == WITHIN:
        steep.note_product((j, k))
    elif care:
        for i, (rule, parent) in enumerate(((left, j), (right, k))):
            if parent >= 0:
                c = cast(rule(densify(g), None, x, y), (x, y)[i].dtype)
                accumulate(cts, own, parent, select_by_product(c, rule, g, (x, y), i, (j, k), {}, steep))
        return
    if type(g) is Masked:
        g = g.dense()
    if k >= 0:
        d = right(g, None, x, y)
        accumulate_new(cts, own, k, d if d.dtype is y.dtype else cast(d, y.dtype))
    if j >= 0:
        c = left(g, None, x, y)
        accumulate_new(cts, own, j, c if c.dtype is x.dtype else cast(c, x.dtype))


def _sweep_general(record: tuple, g: Any, cts: list, own: bytearray, care: int, steep: Any) -> None:
    _, parents, prim, y, xs, params = record
    if care and prim.partials is not None:
        g = select_by_constants(g, prim.partials, parents, xs, steep)
    found = operand_cotangents(prim, parents, g, y, xs, params)
    for k, parent in enumerate(parents):
        c = found[k]
        if c is None:
            continue
        if type(c) is Indexed and not c.is_masked():
            c.lives = [True if is_careful(care, steep, parents[0]) else None]
        elif prim.updates and type(g) is not Masked and not any(map(np.ndim, xs[prim.indexed :])):
            if not is_careful(care, steep, parents[0]):
                c = densify(c)  # loops over x[t] are to cost nothing more
        elif care >= EVERYWHERE and prim.archetype == "bilinear":
            c = select_by_product(c, prim.vjp[k], g, xs, k, parents, params, steep)
        elif care and prim.archetype == "bilinear":
            steep.note_product(parents)
        accumulate(cts, own, parent, c)


def _sweep_effect(record: tuple, i: int, cts: list, own: bytearray) -> None:
    """Run the record of an operation that others wait for, with a cotangent of zeros where there is none."""
    g, cts[i] = cts[i], None
    ct = record[2].swept(None if g is None else densify(g), record[3], SEEDS.get())
    _sweep_general(record, ct, cts, own, NOWHERE, None)


def _sweep_many(record: tuple, i: int, steep: Any, cts: list, own: bytearray, care: int) -> None:
    """Run a record with several results: gather their cotangents, hand them to its rule."""
    n = record[3] if record[0] == CALL else len(record[3])
    gs = cts[i : i + n]
    if all(g is None for g in gs):
        return
    cts[i : i + n] = [None] * n
    parents = record[1]
    masked = getattr(record[2], "pull_masked", None) if care else None
    if masked is not None:
        results = _pull_masked(record, i, [g.gather() if type(g) is Indexed else g for g in gs], care, steep)
    elif record[0] == CALL:
        results = record[2]([None if g is None else densify(g) for g in gs])
    else:
        _, _, prim, ys, xs, params = record
        gs = [None if g is None else densify(g) for g in gs]
        if not prim.skips_unread:
            gs = [np.zeros_like(y) if g is None else g for g, y in zip(gs, ys, strict=True)]
        results = operand_cotangents(prim, parents, tuple(gs), ys, xs, params)
    for parent, c in zip(parents, results, strict=True):
        if c is not None and parent >= 0:
            accumulate(cts, own, parent, c)


def _pull_masked(record: tuple, i: int, gs: list, care: int, steep: Any) -> list:
    """Run the record of a call that knows which elements of its operands it uses, and may have infinite slopes."""
    pullback = record[2]
    marked = getattr(pullback, "pull_marked", None)
    if care == ALWAYS:
        return pullback.pull_masked(gs, lambda: True) if marked is None else pullback.pull_carefully(gs)
    found = pullback.pull_masked(gs, lambda: steep.is_under_any(record) and is_infinite_before(steep, i, record, care))
    if marked is not None and (pullback.unsure or Masked in map(type, gs)):
        given = [None if c is None else densify(c) for c in found]
        if are_plain(given) and not are_finite(given):
            return pullback.pull_carefully(gs)
        steep.unsure = True
    return found


def _sweep_again(record: tuple, i: int, tape: list, cts: list, own: bytearray, care: int, steep: Any) -> None:
    """Run a checkpoint again at the end of the tape, sweep what it recorded, and drop it."""
    _, trace, run, n, _ = record
    gs = cts[i : i + n]
    cts[i : i + n] = [None] * n
    if all(g is None for g in gs):
        return
    end = len(tape)
    closed, trace.tape = trace.tape, tape
    was, trace.dead = trace.dead, False
    try:
        ys = run()
    finally:
        trace.tape, trace.dead = closed, was
    more = len(tape) - end
    cts.extend([None] * more)
    own.extend(bytes(more))
    for y, g in zip(ys, gs, strict=True):
        if g is not None:
            accumulate(cts, own, y.info, g)
    inner = Steep(tape, care, steep is not None and steep.looks_again)
    trace.sweep(tape, cts, own, end, keep=False, care=care, steep=inner)
    if inner.unsure:
        steep.unsure = True
    if trace.writes and any(g is not None for g in cts[i + n : end]):
        raise ImpureFunctionError(
            "a function under checkpoint reads an array that was written after its call, and it runs again in the "
            "backward pass: pass the array as an argument"
        )
    if was:  # it finished before, and the run has written into arrays that a function keeps
        trace.give_back_adopted()
    del tape[end:], cts[end:], own[end:]
