"""Shared by linear algebra: transposes, stacks of matrices, Hermitian matrices, repeated values."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from fad.backends import like
from fad.core.primitives.archetypes import align
from fad.core.primitives.limits import Crowded, asks_in_bodies, line, other_choice
from fad.core.primitives.primitive import Primitive
from fad.core.tracing.tracer import bind
from fad.core.tracing.values import may_ask, most_derivatives, stop_gradient
from fad.errors import GaugeDependenceWarning
from fad.ops.arrangement.structural import as_array


def t(x: Any) -> Any:
    """Return the transposed matrices of a stack."""
    return x.swapaxes(-1, -2)


def h(x: Any) -> Any:
    """Return the conjugate transposed matrices of a stack."""
    return np.conjugate(t(x)) if x.dtype.kind == "c" else t(x)


def conj(x: Any) -> Any:
    return np.conjugate(x) if x.dtype.kind == "c" else x


def column(x: Any) -> Any:
    """Return a stack of vectors as columns, to scale rows with."""
    return x[..., :, None]


def row(x: Any) -> Any:
    """Return a stack of vectors as rows, to scale columns with."""
    return x[..., None, :]


def diagonal(x: Any) -> Any:
    return np.diagonal(x, axis1=-2, axis2=-1)


def trace(x: Any) -> Any:
    return np.sum(diagonal(x), -1)


def eye_like(x: Any, n: int) -> Any:
    """Return the identity matrix in the dtype, and at the place, of an array."""
    return np.diag(np.ones_like(x, shape=(n,)))


def real_dtype(x: Any) -> np.dtype:
    return np.empty((), x.dtype).real.dtype


def eps(x: Any) -> float:
    return float(np.finfo(x.dtype).eps)


def inexact(x: Any) -> Any:
    """Return what NumPy's linear algebra makes of an operand: integers become float64."""
    return x if x.dtype.kind in "fc" else x.astype(np.float64)


def matrices(a: Any) -> Any:
    """Return an operand of NumPy's linear algebra: a matrix or a stack of them.

    Asked here and not by the forward function, to which a batch of vectors would look like a matrix.
    """
    a = inexact(as_array(a))
    if a.ndim < 2:
        raise np.linalg.LinAlgError(f"{a.ndim}-dimensional array given. Array must be at least two-dimensional")
    return a


def batch_stacks(prim: Any) -> Any:
    """Return the batching rule of an operation that NumPy applies to each matrix of a stack."""

    def batch(size, batched, xs, params):
        return bind(prim(), *align(batched, xs), **params)

    return batch


def over_stacks(function: Callable, results: int = 1) -> Callable:
    """Return a function of matrices that runs on each matrix of its operands' stacks, broadcast together."""

    def forward(*xs: Any, **params: Any) -> Any:
        if all(x.ndim == 2 for x in xs):
            return function(*xs, **params)
        lead = np.broadcast_shapes(*[x.shape[:-2] for x in xs])
        wide = [np.broadcast_to(x, (*lead, *x.shape[-2:])) for x in xs]
        found = [function(*[x[i] for x in wide], **params) for i in np.ndindex(*lead)]
        if not found:  # an empty stack: results have the shapes that those of any matrices would have
            ys = function(*[eye_like(x, max(x.shape[-2:]))[: x.shape[-2], : x.shape[-1]] for x in xs], **params)
            empty = [np.empty((*lead, *y.shape), y.dtype) for y in ((ys,) if results == 1 else ys)]
            return empty[0] if results == 1 else tuple(empty)
        if results == 1:
            return _restack(found, lead)
        return tuple(_restack(list(column), lead) for column in zip(*found, strict=True))

    return forward


def _restack(parts: list, lead: tuple) -> Any:
    y = np.stack(parts)
    return y.reshape((*lead, *y.shape[1:]))


def make_known(name: str, forward: Any, batch: Any, **facts: Any) -> Primitive:
    """Make the operation that finds a decomposition, to be handed to one that knows how it is differentiated.

    It is constant for every derivative; on a line of matrices (`fad.core.primitives.limits`) it decomposes the one in
    the middle.
    """
    return Primitive(name, forward, flat=True, multi=True, batch=batch, archetype="flat", at_limit=True, **facts)


def broadcast_batch(size: int, batched: tuple, xs: Any) -> tuple:
    """Return operands that all have the batch axis."""
    return tuple(x if b else np.broadcast_to(x, (size, *x.shape)) for x, b in zip(xs, batched, strict=True))


def rule_batch(prim: Any) -> Any:
    """Return the batching rule of an operation that is given the decomposition of its first operand."""
    return lambda size, batched, xs, params: bind(prim(), *broadcast_batch(size, batched, xs))


def flag(name: str, test: Any) -> Primitive:
    """Make an operation that answers yes or no for whole operands: in a batch, for each element of it."""

    def batch(size, batched, xs, params):
        each = zip(*broadcast_batch(size, batched, xs), strict=True)
        return np.stack([bind(prim, *x) for x in each]) if size else np.zeros_like(xs[0], shape=(0,), dtype=bool)

    prim = Primitive(name, test, flat=True, batch=batch, archetype="flat")
    return prim


# --- Hermitian matrices ------------------------------------------------------------------------------------------


ROUNDING = 1e-4  # of the largest element: how far a matrix may be from a Hermitian one


def _largest(x):
    return np.abs(x).max() if x.size else 0.0


def _is_hermitian(a):
    """Whether matrices are Hermitian but for rounding; most are to the last bit, which takes a tenth of the time."""
    return np.bool_(bool((a == h(a)).all() or _largest(a - h(a)) <= ROUNDING * _largest(a)))


hermitian_p = flag("is_hermitian", _is_hermitian)


def hermitian_part(a: Any, uplo: str = "L") -> Any:
    """Return the Hermitian matrices that NumPy reads from `a`, in a way that makes gradients Hermitian.

    NumPy reads one triangle. Of a matrix that is Hermitian the derivative is taken among the Hermitian matrices, so
    that its gradient is one too; of any other, that of the triangle.
    """
    if a.ndim < 2 or a.shape[-1] != a.shape[-2]:
        raise np.linalg.LinAlgError(f"Last 2 dimensions of the array must be square, but the shape is {a.shape}")
    c = stop_gradient(a)
    if may_ask(a):
        return _middle(a) if bool(bind(hermitian_p, c)) else _from_triangle(a, uplo)
    apart, size = (np.abs(x).max((-2, -1), keepdims=True, initial=0.0) for x in (c - h(c), c))
    return np.where(apart <= ROUNDING * size, _middle(a), _from_triangle(a, uplo))


def _middle(a):
    return 0.5 * (a + h(a))


def _from_triangle(a, uplo):
    """Return the Hermitian matrices that have one triangle of `a`."""
    inner = np.tril(a, -1) if uplo == "L" else np.triu(a, 1)
    on = diagonal(a)
    return inner + h(inner) + column(on.real if a.dtype.kind == "c" else on) * eye_like(a, a.shape[-1])


# --- repeated values ---------------------------------------------------------------------------------------------


def scale_of(w: Any) -> Any:
    """Return the largest absolute value in each stack, and 1 where all are 0."""
    size = np.abs(w)
    size = size.max(-1, keepdims=True) if w.shape[-1] else size.sum(-1, keepdims=True)
    return np.where(size == 0, 1.0, size)


def _is_crowded(w, zero, wide=False):
    """Whether any values are repeated; `wide`: or so near each other that second derivatives lose their digits."""
    gaps = _distances(w, zero)
    if not (gaps < _tolerance(w, _WIDEST if wide else 0.5)).any():
        return np.bool_(False)
    if not wide:
        return np.bool_(True)
    together = _clusters(w, wide)
    return np.bool_(bool((together.sum(-1) > 1).any() or (zero and _at_zero(w, together, wide).any())))


# How far values may be apart, in powers of the rounding error, to count as repeated. Formulas with gaps g lose digits
# as rounding / g for first derivatives and rounding / g**2 for second ones: there wider clusters count too.
_LEVELS = (0.5, 0.375, 0.25)
_WIDEST = _LEVELS[-1]


def tolerance_of(dtype: np.dtype, wide: bool) -> float:
    """Return from which share of the largest value on values do not count as repeated, whatever lies around them."""
    return float(np.finfo(dtype).eps) ** (_WIDEST if wide else _LEVELS[0])


def _tolerance(w, power=0.5):
    return eps(w) ** power * scale_of(w)


def _stride(w):
    """Return how far repeated values are moved, relative to the distance to the next ones.

    Of a smooth function the extrapolation leaves an error of stride**8, and rounding one of eps / stride**2.
    """
    return 0.025 if eps(w) < 1e-10 else 0.2


def _least(x):
    return x.min(-1) if x.shape[-1] else x.sum(-1)  # without elements there is nothing in either


def _distances(w, zero):
    """Return the distance of each value to the nearest other one, and with `zero` to 0."""
    n = w.shape[-1]
    gaps = np.abs(column(w) - row(w)) + like(w, np.where(np.eye(n, dtype=bool), np.inf, 0.0))
    nearest = _least(gaps)
    return np.minimum(nearest, np.abs(w)) if zero else nearest


_KINDS = [(zero, wide) for zero in (False, True) for wide in (False, True)]
_crowded_p = {kind: flag("has_repeated_values", lambda w, kind=kind: _is_crowded(w, *kind)) for kind in _KINDS}


def _clusters(w, wide=False):
    """Return which values count as equal: pairs closer than rounding may part them, and what they link.

    With `wide`, further ones that are near each other beside the steps that would part them.
    """
    together = _find_linked(w, _LEVELS[0])
    for power in _LEVELS[1:] if wide else ():
        wider = _find_linked(w, power)
        width = np.where(wider, np.abs(column(w) - row(w)), 0.0).max(-1)
        together = together | (wider & column(width <= _least_step(w, wider, _spacing(w, wider))))
    return together


def _find_linked(w, power):
    tolerance = _tolerance(w, power)
    return _closure(np.abs(column(w) - row(w)) <= np.maximum(column(tolerance), row(tolerance)))


def _spacing(w, together, small=None):
    """Return for each value how far its cluster is from the next one, and from 0 unless it counts as 0."""
    apart = _least(np.where(together, np.inf, np.abs(column(w) - row(w))))
    size = np.abs(w)
    small = size <= _tolerance(w) if small is None else small
    spacing = np.minimum(apart, np.where(small, np.inf, size))
    return np.where(np.isfinite(spacing), spacing, scale_of(w))


def _least_step(w, together, spacing):
    """Return a quarter of the least distance to which the line parts the values of a cluster."""
    return _stride(w) / 16.0 * _least(np.where(together, row(spacing), np.inf)) / together.sum(-1)


def _at_zero(w, together, wide):
    """Return which singular values count as 0."""
    size = np.abs(w)
    small = size <= _tolerance(w)
    if not wide:
        return small
    near = size <= _tolerance(w, _WIDEST)
    largest = np.where(together, row(size), 0.0).max(-1)
    return small | (near & (largest <= _least_step(w, together, _spacing(w, together, near))))


def _closure(together):
    """Return the transitive closure of a symmetric relation, by squaring."""
    n = together.shape[-1]
    for _ in range(max(n - 1, 1).bit_length()):
        together = together @ together
    return together


def _directions(w, zero, wide):
    """Return in which direction each value is moved so that repeated values part, each cluster within its surroundings.

    Clusters move by at most a stride of their size and of their distance to the next one, in equal steps around their
    middle; with `zero`, values at 0 move upwards from it.
    """
    n = w.shape[-1]
    together = _clusters(w, wide)
    small = _at_zero(w, together, wide and zero)
    place = (together & like(w, np.tri(n, n, -1, dtype=bool))).sum(-1)
    count = together.sum(-1)
    step = np.where(small & zero, (place + 1) / count, 2 * (place + 0.5) / count - 1)
    moved = _stride(w) * _spacing(w, together, small) * step
    return np.where((count > 1) | (small & zero), moved, 0.0).astype(real_dtype(w))


def _turn(w, zero, wide):
    """Return orthogonal matrices that mix the vectors of repeated values, and leave all others."""
    n = w.shape[-1]
    i, j = like(w, np.indices((n, n)))
    q, r = np.linalg.qr(np.diag(np.ones_like(w, shape=(n,), dtype=float)) + _clusters(w) * np.cos(1.0 + i + 2.0 * j))
    return (q * row(np.sign(diagonal(r)))).astype(real_dtype(w))


def _mirror(w, zero, wide):
    """Return -1 for values at 0, whose pairs of singular vectors may be turned apart, and 1 for all others."""
    return np.where(np.abs(w) <= _tolerance(w), -1.0, 1.0).astype(real_dtype(w))


def _flat_of_values(name: str, function: Any) -> dict:
    """Make the constant operations ``function(w, zero, wide)`` of values, one for each `zero` and `wide`."""

    def make(kind):
        prim = Primitive(
            name,
            lambda w: function(w, *kind),
            flat=True,
            batch=lambda size, batched, xs, params: bind(prim, xs[0]),
            archetype="flat",
        )
        return prim

    return {kind: make(kind) for kind in _KINDS}


def _refuse_crowded(kind):
    def forward(w):
        if _is_crowded(w, *kind):
            raise Crowded("values are repeated in a step of a loop")
        return w

    return forward


# Values in order, which are not repeated: in the body of a loop, where that cannot be asked.
apart_p: dict[tuple[bool, bool], Primitive] = {
    kind: Primitive(
        "values_apart",
        _refuse_crowded(kind),
        flat=True,
        batch=lambda size, batched, xs, params, kind=kind: bind(apart_p[kind], xs[0]),
        archetype="bare",  # it may refuse
        at_limit=True,
    )
    for kind in _KINDS
}
_directions_p = _flat_of_values("directions_apart", _directions)
_turn_p = _flat_of_values("other_basis", _turn)
_mirror_p = _flat_of_values("other_signs", _mirror)


def _may_ask(w: Any) -> bool:
    return asks_in_bodies.get() or may_ask(w)


def part(w: Any, v: Any, a: Any) -> tuple:
    """Return values and vectors of `a` known without their derivative, repeated ones followed along a line.

    On the other line, the vectors of repeated values are mixed. See `fad.core.primitives.limits`. In the body of a loop
    values are taken to be apart, and a step in which they are not raises `Crowded`.
    """
    kind = (False, most_derivatives(a) > 1)
    if not _may_ask(w):
        return bind(apart_p[kind], w), v
    if not bool(bind(_crowded_p[kind], w)):
        return w, v
    moved = w + line(w) * bind(_directions_p[kind], w)
    other = v @ bind(_turn_p[kind], w)
    return moved, v + other_choice(w) * (other - v)


def part_pairs(u: Any, s: Any, vh: Any, a: Any) -> tuple:
    """Do the same with singular values and pairs of vectors; values at 0, their own images, count as repeated."""
    kind = (True, most_derivatives(a) > 1)
    if not _may_ask(s):
        return u, bind(apart_p[kind], s), vh
    if not bool(bind(_crowded_p[kind], s)):
        return u, s, vh
    moved = s + line(s) * bind(_directions_p[kind], s)
    turn = bind(_turn_p[kind], s)
    other_u, other_vh = (u @ turn) * row(bind(_mirror_p[kind], s)), t(turn) @ vh
    choice = other_choice(s)
    return u + choice * (other_u - u), moved, vh + choice * (other_vh - vh)


def warn_if_repeated(w: Any, zero: bool = False) -> None:
    """Warn where a rule is applied to repeated values as they are, by an engine that cannot follow a line."""
    if bool(bind(_crowded_p[zero, False], stop_gradient(w))):
        warnings.warn(
            "a derivative was taken through vectors of repeated values step by step, where it is right only for what "
            "treats the repeated values alike; fad.grad and the other transforms are exact there",
            GaugeDependenceWarning,
            stacklevel=2,
        )


def reciprocal_gaps(w: Any) -> Any:
    """Return 1 / (w_j - w_i) in row i, column j, and 0 where the two are equal to rounding."""
    gaps = row(w) - column(w)
    same = np.abs(gaps) <= 4 * eps(w) * row(scale_of(w))
    return np.where(same, 0.0, 1.0 / np.where(same, 1.0, gaps))
