"""The clauses of the contract: each a small function of one case that raises GradientCheckError where it does not hold.

The tolerance is relative to the largest number compared: 1e-9 between two computations of one thing, 1e-6 against
differences, 2e-4 where single precision is involved.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fad import tree
from fad.core.primitives.cotangent import densify
from fad.core.primitives.primitive import Primitive
from fad.core.tracing.tracer import Tracer
from fad.errors import FadError, GradientCheckError
from fad.testing.cases import Case, inexact, reference
from fad.testing.gradcheck import against, along, difference, pairing, random_like
from fad.testing.numerical import numerical_jvp
from fad.transforms.jvp import jvp
from fad.transforms.push_tangents import transposed_vjp
from fad.transforms.reverse.operand_cotangents import operand_cotangents, transpose_jvp
from fad.transforms.vjp import vjp
from fad.transforms.vmap import vmap

EXACT = 1e-9
_SINGLE = (np.float32, np.complex64, np.float16)


def agree(what: str, got: Any, wanted: Any, tolerance: float = EXACT) -> None:
    """Raise unless two arrays have one shape and nearly the same elements."""
    if np.shape(got) != np.shape(wanted):
        raise GradientCheckError(f"{what}: the shape is {np.shape(got)}, but should be {np.shape(wanted)}")
    size = np.abs(wanted)[np.isfinite(wanted)] if np.size(wanted) else np.zeros(0)
    off = difference(got, wanted)
    if _is_single(got) or _is_single(wanted):
        tolerance = max(tolerance, 2e-4)
    if not off <= tolerance * max(1.0, float(size.max()) if size.size else 0.0):
        raise GradientCheckError(f"{what}: off by {off:.2g}\n      got    {_short(got)}\n      wanted {_short(wanted)}")


def agree_all(what: str, got: tuple, wanted: tuple, tolerance: float = EXACT) -> None:
    if len(got) != len(wanted):
        raise GradientCheckError(f"{what}: {len(got)} results, but there should be {len(wanted)}")
    for i, (g, w) in enumerate(zip(got, wanted, strict=True)):
        agree(what if len(got) == 1 else f"{what}, part {i}", g, w, tolerance)


def _is_single(x: Any) -> bool:
    return getattr(x, "dtype", None) in _SINGLE


def same_kind(what: str, got: Any, wanted: Any) -> None:
    """Raise unless both have one dtype, and both are arrays or both scalars."""
    if got.dtype != wanted.dtype:
        raise GradientCheckError(f"{what}: the dtype is {got.dtype}, but should be {wanted.dtype}")
    if isinstance(got, np.ndarray) != isinstance(wanted, np.ndarray):
        raise GradientCheckError(f"{what}: the result is of type {type(got).__name__}, not {type(wanted).__name__}")


def _short(x: Any) -> str:
    return np.array2string(np.asarray(x), threshold=12, edgeitems=3).replace("\n", "")


def _as_array(x: Any) -> Any:
    return x if hasattr(x, "dtype") else np.asarray(x)[()]


# --- values ------------------------------------------------------------------------------------------------------


def value_is_numpys(case: Case) -> None:
    """The operation gives what NumPy gives, structure, shape, dtype and kind, under no transform and under each."""
    wanted = case.call(reference(case), *case.operands)
    noisy = case.operation.rounding == "single" and any(_is_single(x) for x in case.operands)
    tolerance = 1e-6 if noisy else 1e-12
    _same_result("the value of a plain call", case.call(case.function, *case.operands), wanted, tolerance)
    if case.diff:
        for name, run in (("jvp", _under_jvp), ("vjp", _under_vjp), ("vjp of jvp", _under_both)):
            _same_result(f"the value under {name}", run(case), wanted, tolerance)


def _same_result(what: str, got: Any, wanted: Any, tolerance: float) -> None:
    structures = [str(tree.structure(x)) if isinstance(x, (list, tuple)) else "" for x in (got, wanted)]
    if structures[0] != structures[1]:
        raise GradientCheckError(f"{what}: the result is {structures[0]}, but should be {structures[1]}")
    for g, w in zip(tree.leaves(got), tree.leaves(wanted), strict=True):
        if not isinstance(w, (np.ndarray, np.generic, bool, int, float, complex)):
            if g != w:
                raise GradientCheckError(f"{what}: {g!r} instead of {w!r}")
            continue
        g, w = _as_array(g), _as_array(w)
        same_kind(what, g, w)
        agree(what, g, w, tolerance)


def _under_jvp(case: Case) -> Any:
    kept = []

    def f(*xs):
        kept.append(case.of(case.diff, lambda *ops: case.call(case.function, *ops))(*xs))
        kept[0] = tree.map(_lower, kept[0])
        return ()

    jvp(f, case.points, case.tangents)
    return kept[0]


def _under_vjp(case: Case) -> Any:
    kept = []

    def f(*xs):
        kept.append(tree.map(_lower, case.of(case.diff, lambda *ops: case.call(case.function, *ops))(*xs)))
        return ()

    vjp(f, *case.points)
    return kept[0]


def _under_both(case: Case) -> Any:
    kept = []

    def f(*xs):
        kept.append(tree.map(_lower, case.of(case.diff, lambda *ops: case.call(case.function, *ops))(*xs)))
        return ()

    vjp(lambda *xs: jvp(f, xs, case.tangents)[0], *case.points)
    return kept[0]


def _lower(x: Any) -> Any:
    while type(x) is Tracer:
        x = x.owner.stop(x)  # which knows what its tracers stand for: those near repeated singular values, a limit
    return x


def nothing_is_mutated(case: Case) -> None:
    """No operand, constant, tangent or cotangent is written to, and no derivative shares memory with one."""
    arrays = [x for x in case.leaves if type(x) is np.ndarray]
    before = [x.tobytes() for x in arrays]
    case.whole(*case.operands)
    if case.differentiable():
        tangents, cts = case.tangents, case.cotangents
        given = [x for x in (*tangents, *cts) if type(x) is np.ndarray]
        copies = [x.tobytes() for x in given]
        jvp(case.of(case.diff), case.points, tangents)
        pullback = vjp(case.of(case.diff), *case.points)[1]
        found = [*pullback(cts), *pullback(cts)]
        if [x.tobytes() for x in given] != copies:
            raise GradientCheckError("a tangent or a cotangent was written to")
        _share_nothing(found, [*arrays, *given])
    if [x.tobytes() for x in arrays] != before:
        raise GradientCheckError("an operand was written to")


def _share_nothing(found: list, given: list) -> None:
    found = [x for x in found if type(x) is np.ndarray]
    for i, x in enumerate(found):
        if any(np.may_share_memory(x, y) for y in (*given, *found[i + 1 :])):
            raise GradientCheckError("a derivative shares memory with an operand, a cotangent or another derivative")


# --- first derivatives -------------------------------------------------------------------------------------------


def jvp_is_numerical(case: Case) -> None:
    """The JVP is the derivative: it equals differences of values along a random direction."""
    if not case.differentiable() or not case.operation.numerical:
        return
    wanted = numerical_jvp(case.of(case.diff), case.points, case.tangents, method="central")
    agree_all("jvp against differences", case.pushed[1], wanted, 1e-6)


def vjp_is_the_transpose(case: Case) -> None:
    """The VJP is the JVP's transpose, <ct, J t> = <J^T ct, t>; its cotangents have their operands' shape and dtype."""
    if not case.differentiable():
        return
    (ys, found), (values, back) = case.pushed, case.pulled
    agree_all("the value under vjp", values, ys, 1e-12)
    for c, x in zip(back, case.points, strict=True):
        if c.shape != x.shape:
            raise GradientCheckError(f"a cotangent has the shape {c.shape}, its operand {x.shape}")
    _same_kinds(case)
    single = any(_is_single(y) for y in (*ys, *case.points))
    what = "<J^T ct, t> (vjp) against <ct, J t> (jvp)"
    agree(what, pairing(back, case.tangents), pairing(case.cotangents, found), 1e-4 if single else 1e-8)


def _same_kinds(case: Case) -> None:
    """Raise unless tangents have the dtypes of the values, and cotangents those of the operands."""
    for t, y in zip(case.pushed[1], case.pushed[0], strict=True):
        same_kind("a tangent", t, y)
    for c, x in zip(case.pulled[1], case.points, strict=True):
        same_kind("a cotangent", c, x)


def each_operand_alone(case: Case) -> None:
    """Operands differentiated one at a time give the same as all together: symbolic zeros are zeros."""
    if not case.differentiable() or len(case.diff) < 2:
        return
    back, parts = case.pulled[1], []
    for i, (k, x, t) in enumerate(zip(case.diff, case.points, case.tangents, strict=True)):
        alone = case.of([k])
        parts.append(jvp(alone, (x,), (t,))[1])
        agree(f"the vjp of operand {k} alone", vjp(alone, x)[1](case.cotangents)[0], back[i])
    agree_all("the sum of the jvps of single operands", tuple(map(_sum, zip(*parts, strict=True))), case.pushed[1])


def _sum(parts: tuple) -> Any:
    total = parts[0]
    for p in parts[1:]:
        total = total + p
    return total


def written_rules_are_the_derived_ones(case: Case) -> None:
    """Where a primitive has both rules written by hand, each equals what the engine derives from the other."""
    prim = case.operation
    if not isinstance(prim, Primitive) or prim.flat or not case.diff or prim.multi:
        return
    if prim.jvp is None or (prim.vjp is None and prim.vjp_of_all is None):
        return
    if prim.partials is not None:  # both rules come from the same partial derivatives
        return
    args, params = tree.unflatten(case.tree, case.leaves)
    xs = [_as_array(x) for x in args]
    y = prim(*args, **params)
    if y.dtype.kind not in "fc":
        return
    parents = [0 if hasattr(x, "dtype") and x.dtype.kind in "fc" else -1 for x in args]
    ct = random_like(y, case.rng)
    tangents = [random_like(x, case.rng) if p == 0 else None for x, p in zip(xs, parents, strict=True)]
    written = operand_cotangents(prim, parents, ct, y, tuple(xs), params)
    derived = transpose_jvp(prim, parents, ct, y, tuple(xs), params)
    for k, (w, d) in enumerate(zip(written, derived, strict=True)):
        if parents[k] == 0:
            zero = np.zeros_like(xs[k])
            agree(f"the vjp of operand {k} against the one derived from the jvp", _dense(w, zero), _dense(d, zero))
    t = prim.jvp(list(tangents), y, xs, params)
    derived = transposed_vjp(prim, tangents, y, xs, params)
    agree("the jvp against the one derived from the vjp", _dense(t, np.zeros_like(y)), derived)


def _dense(ct: Any, zero: Any) -> Any:
    return zero if ct is None else densify(ct)


def flat_operations_are_constant(case: Case) -> None:
    """A flat operation gives an untraced result, with derivative zero in both modes."""
    if not case.diff or not case.is_flat():
        return
    seen = []

    def f(*xs):
        ys = case.of(case.diff, case.whole)(*xs)
        seen.extend(ys)
        return inexact(ys)

    ys, found = jvp(f, case.points, case.tangents)
    _, pullback = vjp(f, *case.points)
    if any(type(y) is Tracer for y in seen):
        raise GradientCheckError("a flat operation gave a traced result")
    cts = tuple(random_like(y, case.rng) for y in ys)
    for z in (*found, *pullback(cts)):
        if np.any(z):
            raise GradientCheckError("a flat operation has a derivative that is not zero")


# --- second derivatives ------------------------------------------------------------------------------------------


def second_derivatives(case: Case) -> None:
    """The rules are themselves differentiable, forward and reverse over forward and reverse.

    Along directions t and u, with f the operation, J its derivative and c a cotangent: J(x) t is differenced along u,
    which tells forward over forward; paired with c, it tells the gradient of <c, J(x) t>, reverse over forward; and
    since second derivatives commute, that is the derivative of J(x)^T c along t, forward over reverse, and the
    gradient of <J(x)^T c, t>, reverse over reverse.
    """
    if not (case.differentiable() and case.operation.order > 1 and case.operation.numerical):
        return
    if case.number and not isinstance(case.operation, Primitive):
        return  # it is a formula of primitives, each of which is tried on all of its samples
    f, xs, ts, cts = case.of(case.diff), case.points, case.tangents, case.cotangents
    us = tuple(random_like(x, case.rng) for x in xs)
    forward, reverse = along(f, ts), against(f, cts)
    numerical = numerical_jvp(forward, xs, us, method="central")
    single = any(_is_single(x) for x in (*xs, *numerical, *case.pushed[0]))
    tolerance = 1e-3 if single else 1e-6
    pushed, found = jvp(forward, xs, us)
    agree_all("the value of the jvp under jvp", pushed, case.pushed[1], tolerance)
    agree_all("jvp of jvp against differences", found, numerical, tolerance)
    pushed, pullback = vjp(forward, *xs)
    agree_all("the value of the jvp under vjp", pushed, case.pushed[1], tolerance)
    gradient = pullback(cts)
    agree("vjp of jvp, paired with a direction", pairing(gradient, us), pairing(cts, numerical), tolerance)
    pulled, found = jvp(reverse, xs, ts)
    agree_all("the value of the vjp under jvp", pulled, case.pulled[1], tolerance)
    agree_all("jvp of vjp against vjp of jvp", found, gradient, tolerance)
    pulled, pullback = vjp(reverse, *xs)
    agree_all("the value of the vjp under vjp", pulled, case.pulled[1], tolerance)
    agree_all("vjp of vjp against vjp of jvp", pullback(ts), gradient, tolerance)


# --- batching ----------------------------------------------------------------------------------------------------


def vmap_is_a_loop(case: Case) -> None:
    """vmap equals a loop, for every choice of operands that are batched and for axes other than the first.

    All operands at once are tried along both axes, each other choice along one, which the next sample changes.
    """
    for i, chosen in enumerate(_choices(len(case.operands))):
        draws = [[operands[k] for k in chosen] for operands in case.batch]
        if len(draws) > 1:
            all_at_once = len(chosen) == len(case.operands)
            _compare_with_loop(case, chosen, draws, _AXES if all_at_once else (_AXES[(case.number + i) % 2],))


def _choices(n: int) -> list[list[int]]:
    if n <= 3:
        return [[k for k in range(n) if bits >> k & 1] for bits in range(1, 2**n)]
    return [list(range(n)), *[[k] for k in range(n)]]


def vmap_stays_single(case: Case) -> None:
    """In single precision, too, vmap gives the dtypes and the numbers of a loop."""
    if len(case.batch) > 1:
        # SciPy rounds to single precision on the way to some double results.
        _compare_with_loop(case, list(range(len(case.operands))), case.batch, ((0, 0),), 1e-6)


_AXES = ((0, 0), (-1, -1))  # in_axes, out_axes


def _compare_with_loop(
    case: Case, chosen: list[int], draws: list, axes: tuple = _AXES, tolerance: float = EXACT
) -> None:
    f = case.of(chosen, case.whole)
    rows = [[_as_array(y) for y in f(*operands)] for operands in draws]
    if any(a.shape != b.shape for row in rows for a, b in zip(row, rows[0], strict=True)):
        return  # results of different shapes cannot be stacked, and are refused with an error of their own
    wanted = [np.stack(column) for column in zip(*rows, strict=True)]
    what = f"vmap over operands {chosen}"
    smooth = all(case.operands[k].dtype.kind in "fc" for k in chosen)
    for in_axes, out_axes in axes:
        batch = [np.stack(column, axis=in_axes) for column in zip(*draws, strict=True)]
        try:
            found = vmap(f, in_axes=in_axes, out_axes=out_axes)(*batch)
        except FadError as error:
            if smooth:
                raise GradientCheckError(f"{what} failed: {error}") from error
            return  # an index or a count that differs between batch elements may be refused, in so many words
        for g, w in zip(found, wanted, strict=True):
            if g.dtype != w.dtype:
                raise GradientCheckError(f"{what}: the dtype is {g.dtype}, but a loop gives {w.dtype}")
            agree(f"{what}, in_axes={in_axes}, out_axes={out_axes}", np.moveaxis(g, out_axes, 0), w, tolerance)


def vmap_and_derivatives(case: Case) -> None:
    """vmap of jvp and vjp, and jvp and vjp of vmap, equal a loop of jvp and vjp.

    So for all operands, and for the first and the last one alone; of the samples after the first, for one of these.
    """
    if not case.differentiable() or len(case.batch) < 2:
        return
    alone = [case.diff[:1], case.diff[-1:]] if len(case.diff) > 1 else []
    for chosen in [case.diff, *(alone[case.number % 2 :: 2] if case.number else alone)]:
        _compare_batched_derivatives(case, chosen, [[operands[k] for k in chosen] for operands in case.batch])


def _compare_batched_derivatives(case: Case, chosen: list[int], draws: list) -> None:
    f = case.of(chosen)
    tangents = [tuple(random_like(x, case.rng) for x in operands) for operands in draws]
    rows = [jvp(f, tuple(operands), t) for operands, t in zip(draws, tangents, strict=True)]
    if any(a.shape != b.shape for row in rows for a, b in zip(row[0], rows[0][0], strict=True)):
        return
    cts = [tuple(random_like(y, case.rng) for y in row[0]) for row in rows]
    pushed = _columns([row[1] for row in rows])
    pulled = _columns([vjp(f, *operands)[1](ct) for operands, ct in zip(draws, cts, strict=True)])
    xs, ts, cs = _columns(draws), _columns(tangents), _columns(cts)
    what = f"over operands {chosen}"
    agree_all(f"vmap of jvp {what}", vmap(lambda x, t: jvp(f, x, t)[1])(xs, ts), pushed, 1e-8)
    agree_all(f"vmap of vjp {what}", vmap(lambda x, c: vjp(f, *x)[1](c))(xs, cs), pulled, 1e-8)
    agree_all(f"jvp of vmap {what}", jvp(vmap(f), xs, ts)[1], pushed, 1e-8)
    agree_all(f"vjp of vmap {what}", vjp(vmap(f), *xs)[1](cs), pulled, 1e-8)


def _columns(rows: list) -> tuple:
    return tuple(np.stack(column) for column in zip(*rows, strict=True))


# --- dtypes ------------------------------------------------------------------------------------------------------


def single_precision_stays_single(case: Case) -> None:
    """Value and derivatives in float32 or complex64 have NumPy's dtypes, and the double derivative's numbers."""
    value_is_numpys(case)
    if not case.differentiable():
        return
    _same_kinds(case)
    f, wide = case.of(case.diff), tuple(map(_wide, case.points))
    values, exact = jvp(f, wide, tuple(map(_wide, case.tangents)))
    wide_cts = tuple(c.astype(v.dtype) for c, v in zip(case.cotangents, values, strict=True))
    agree_all("the tangent against double precision", case.pushed[1], exact, 1e-3)
    agree_all("the cotangent against double precision", case.pulled[1], vjp(f, *wide)[1](wide_cts), 1e-3)


def _wide(x: Any) -> Any:
    return x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)


# --- errors ------------------------------------------------------------------------------------------------------


def unknown_keywords_are_refused(case: Case) -> None:
    """A keyword that NumPy's function does not have is an error for traced arguments too, never ignored."""
    if not case.diff or not case.operation.numpy:
        return

    def f(*xs):
        return case.of(case.diff, lambda *ops: case.call(_with(case.function, no_such_keyword=1), *ops))(*xs)

    try:
        vjp(f, *case.points)
    except (TypeError, ValueError):
        return
    raise GradientCheckError("an unknown keyword argument was ignored")


def out_is_refused(case: Case) -> None:
    """`out=` cannot take a traced result: an error of fad's own says so, where NumPy's function has `out` at all."""
    if not case.diff or case.is_flat() or not _takes_out(reference(case)):
        return
    ys = case.whole(*case.operands)
    if len(ys) != 1 or not isinstance(ys[0], np.ndarray):
        return

    def f(*xs):
        return case.of(case.diff, lambda *ops: case.call(_with(case.function, out=np.empty_like(ys[0])), *ops))(*xs)

    try:
        vjp(f, *case.points)
    except FadError:
        return
    except TypeError as error:
        raise GradientCheckError(f"out= gives an unclear error: {error}") from error
    raise GradientCheckError("out= was ignored: the array that the user gave stays empty")


def _takes_out(function: Any) -> bool:
    if isinstance(function, np.ufunc):
        return True
    code = getattr(getattr(function, "__wrapped__", function), "__code__", None)
    return code is not None and "out" in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]


def _with(function: Any, **more: Any) -> Any:
    return lambda *args, **kwargs: function(*args, **{**kwargs, **more})


def misfits_are_refused(case: Case) -> None:
    """An array of objects is refused beside a traced operand, and shapes that do not broadcast raise as in NumPy."""
    if case.operation.archetype != "elementwise" or len(case.diff) != 2 or case.is_flat() or not case.points[0].size:
        return
    x, y = case.points
    _must_raise(case, x, y.astype(object), (FadError, TypeError, AttributeError))
    if x.shape not in ((), (1,)):
        _must_raise(case, x, np.ones((7, 5, 9)), (ValueError,))


def _must_raise(case: Case, x: Any, bad: Any, errors: tuple) -> None:
    try:
        vjp(lambda x: case.of(case.diff)(x, bad), x)
    except errors:
        return
    except Exception as error:
        raise GradientCheckError(f"an operand {bad.dtype}{bad.shape} gives an unclear error: {error!r}") from error
    raise GradientCheckError(f"an operand {bad.dtype}{bad.shape} was accepted")
