"""np.pad: every mode whose values are determined by the array.

Zeros are a primitive, whose transpose cuts them off again. All other modes go axis by axis, as NumPy does, so that the
corners are NumPy's: what is added is a constant, a ramp, a statistic, or elements taken from inside.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fad.backends import like
from fad.core.primitives.archetypes import linear
from fad.core.primitives.cotangent import Masked
from fad.core.primitives.primitive import public
from fad.core.primitives.samples import call
from fad.core.tracing.tracer import Tracer, bind, outcome
from fad.errors import MissingRuleError
from fad.ops.arrangement.structural import as_array, beside
from fad.ops.layout.memory_order import lay_out_like


def _inside(ct, x, *, widths):
    return ct[tuple(slice(before, before + n) for (before, _), n in zip(widths, x.shape, strict=True))]


pad_p: Any = linear(
    "pad_zeros",
    lambda x, *, widths: np.pad(x, widths),
    _inside,
    lambda size, batched, xs, params: bind(pad_p, *xs, widths=((0, 0), *params["widths"])),
    samples=lambda s: [call(s.real(3, 2), widths=((1, 2), (0, 1))), call(s.real(3), widths=((0, 0),))],
    moves=True,
    doc="The array with zeros before and after each axis.",
)


def _pad_jvp(tangents, y, xs, params):
    t = bind(pad_p, tangents[0], **params)
    return Masked(t, lambda: bind(pad_p, np.ones_like(tangents[0]), **params) != 0, clean=True)


pad_p.jvp = _pad_jvp

_DEFAULTS: dict[str, dict] = {
    "constant": {"constant_values": 0},
    "edge": {},
    "linear_ramp": {"end_values": 0},
    "maximum": {"stat_length": None},
    "mean": {"stat_length": None},
    "median": {"stat_length": None},
    "minimum": {"stat_length": None},
    "reflect": {"reflect_type": "even"},
    "symmetric": {"reflect_type": "even"},
    "wrap": {},
}
_STATISTICS: dict[str, Callable] = {"maximum": np.max, "minimum": np.min, "mean": np.mean, "median": np.median}


def _pad_samples(s):
    x, wide = s.real(3, 4), ((1, 2), (2, 0))
    return [
        call(x, 1),
        call(x, wide, constant_values=((0.5, 1.0), (-1.0, 0.0))),
        call(x, wide, "edge"),
        call(x, wide, "linear_ramp", end_values=(0.5, 1.5)),
        call(x, ((1, 3), (4, 2)), "reflect"),
        call(x, ((1, 7), (9, 2)), "reflect", reflect_type="odd"),
        call(x, ((4, 3), (1, 2)), "symmetric"),
        call(x, ((4, 9), (1, 6)), "symmetric", reflect_type="odd"),
        call(x, ((4, 3), (1, 2)), "wrap"),
        call(s.real(1, 2), 2, "reflect"),
    ] + [call(x, wide, m, stat_length=n) for m in _real_modes(s) for n in (None, (1, 2))]


def _real_modes(s):
    return ["mean"] if s.dtype.kind == "c" else ["mean", "maximum", "minimum"]


@public(np.pad, samples=_pad_samples)
def pad(array, pad_width, mode="constant", **kwargs):
    """Widen an array at its edges, in any of NumPy's modes but "empty" (undefined values) and functions (in place).

    `constant_values` and `end_values` may be traced too, through ``fad.numpy.pad``.

    >>> fad.numpy.pad(np.array([1.0, 2.0]), 1)
    array([0., 1., 2., 0.])
    >>> fad.grad(lambda x: fad.numpy.pad(x, 1, mode="edge").sum())(np.array([1.0, 2.0]))
    array([2., 2.])
    """
    array = as_array(array)
    widths = _widths(pad_width, array.ndim)
    if callable(mode) or mode == "empty":
        raise MissingRuleError(
            "numpy.pad of a traced array does not take a function as mode, which works in place, nor 'empty', which "
            "leaves values undefined; join the parts with np.concatenate"
        )
    if mode not in _DEFAULTS:
        raise ValueError(f"mode {mode!r} is not supported by pad; there are {sorted(_DEFAULTS)}")
    unknown = set(kwargs) - set(_DEFAULTS[mode])
    if unknown:
        raise ValueError(f"unsupported keyword arguments for mode '{mode}': {unknown}")
    options = {**_DEFAULTS[mode], **kwargs}
    if not any(before or after for before, after in widths):
        return lay_out_like(np.copy(array), array)
    if mode == "constant" and _is_zero(options["constant_values"]):
        return lay_out_like(bind(pad_p, array, widths=widths), array)
    given = array
    for axis, (before, after) in enumerate(widths):
        if (before or after) and not given.shape[axis] and mode != "constant":
            raise ValueError(f"can't extend empty axis {axis} using modes other than 'constant' or 'empty'")
    for axis, (before, after) in enumerate(widths):
        if before or after:
            array = _MODES[mode](array, axis, before, after, mode, **options)
    return lay_out_like(array.astype(given.dtype, copy=False), given)  # in its byte order


def _widths(pad_width: Any, ndim: int) -> tuple:
    if isinstance(pad_width, dict):
        pairs = [(0, 0)] * ndim
        for axis, width in pad_width.items():
            pairs[axis] = tuple(np.broadcast_to(_as_plain(width), (2,)))
        pad_width = pairs or np.zeros((0, 2), int)
    pad_width = np.asarray(_as_plain(pad_width))
    if pad_width.dtype.kind not in "iu":
        raise TypeError("`pad_width` must be of integral type.")
    if pad_width.size and pad_width.min() < 0:
        raise ValueError("index can't contain negative values")
    return tuple((int(i), int(j)) for i, j in np.broadcast_to(pad_width, (ndim, 2)))


def _as_plain(width: Any) -> Any:
    """Return widths without traced whole numbers, which say how large a result is."""
    if type(width) in (list, tuple):
        return type(width)(map(_as_plain, width))
    return outcome(width) if type(width) is Tracer and width.dtype.kind in "iu" else width


def _is_zero(value: Any) -> bool:
    return type(value) is not Tracer and type(value) in (int, float) and value == 0


def _pair(value: Any, axis: int, ndim: int) -> tuple:
    """Return the two entries of an option for the two ends of an axis."""
    pairs = np.broadcast_to(value, (ndim, 2))
    return pairs[axis, 0], pairs[axis, 1]


def _part(x: Any, axis: int, start: int, stop: int) -> Any:
    return x[(slice(None),) * axis + (slice(start, stop),)]


def _spread(x: Any, shape: tuple, axis: int, n: int) -> Any:
    return np.broadcast_to(x, (*shape[:axis], n, *shape[axis + 1 :]))


def _constant(x, axis, before, after, mode, *, constant_values):
    ends = [v.astype(x.dtype) for v in _pair(beside(x, constant_values), axis, x.ndim)]
    first, last = (_spread(v, x.shape, axis, n) for v, n in zip(ends, (before, after), strict=True))
    return np.concatenate((first, x, last), axis)


def _ramp(x, axis, before, after, mode, *, end_values):
    n = x.shape[axis]
    start, end = _pair(beside(x, end_values), axis, x.ndim)
    first = _line(start, _part(x, axis, 0, 1), before, axis)
    last = np.flip(_line(end, _part(x, axis, n - 1, n), after, axis), axis)
    if x.dtype.kind in "iu":
        first, last = np.floor(first), np.floor(last)
    return np.concatenate((first.astype(x.dtype), x, last.astype(x.dtype)), axis)


def _line(start, edge, n, axis):
    """Return n steps from a value up to an edge, which is not reached."""
    steps = like(edge, np.arange(n, dtype=np.float64).reshape((n,) + (1,) * (edge.ndim - axis - 1)))
    steps = steps if edge.dtype.kind not in "fc" else steps.astype(np.finfo(edge.dtype).dtype)
    return start + steps * ((edge - start) / n) if n else _part(edge, axis, 0, 0)


def _statistic(x, axis, before, after, mode, *, stat_length):
    n = x.shape[axis]
    given = (n, n) if stat_length is None else _pair(outcome(as_array(stat_length)), axis, x.ndim)
    lengths = tuple(min(int(m), n) for m in given)
    if min(lengths) < 1:
        raise ValueError("stat_length of 0 yields no value for padding")
    measure = _STATISTICS[mode]
    ends = (_part(x, axis, 0, lengths[0]), _part(x, axis, n - lengths[1], n))
    first, last = (measure(end, axis=axis, keepdims=True) for end in ends)
    if x.dtype.kind in "iu":
        first, last = np.rint(first), np.rint(last)
    first, last = first.astype(x.dtype), last.astype(x.dtype)
    wide = (_spread(first, x.shape, axis, before), x, _spread(last, x.shape, axis, after))
    return np.concatenate(wide, axis)


def _take(x, axis, before, after, mode, *, reflect_type="even"):
    n = x.shape[axis]
    if reflect_type == "odd" and n > 1:
        whole = x if x.dtype.kind != "b" else x.astype(np.int8)
        return _odd(whole, axis, before, after, n - 1 if mode == "reflect" else n).astype(x.dtype)
    # One element reflects to itself.
    index = np.pad(np.arange(n), (before, after), "edge" if mode == "reflect" and n == 1 else mode)
    return x[(slice(None),) * axis + (index,)]


def _odd(x, axis, before, after, period):
    """Reflect in value too: beyond an edge, twice the edge minus the mirror image, over and over.

    With m = `period` the extension f has f(j + 2m) = f(j) + 2 (f(end) - f(start)), and over one double period it is
    first the array and then twice its end minus its mirror image.
    """
    n = x.shape[axis]
    turns, place = np.divmod(np.arange(-before, n + after), 2 * period)
    image = place >= n
    place = np.where(image, 2 * period - place - (period == n), place)
    # Seen from the left edge the mirror image is that of the edge itself.
    left = (turns < 0) & image
    turns = turns + left
    column = (-1,) + (1,) * (x.ndim - axis - 1)
    first, last = _part(x, axis, 0, 1), _part(x, axis, n - 1, n)
    mirror = np.where(like(x, left.reshape(column)), first, last)
    inside = x[(slice(None),) * axis + (place,)]
    inside = np.where(like(x, image.reshape(column)), 2 * mirror - inside, inside)
    if not turns.any():
        return inside
    rise = 2 * (last - first)
    turns = turns.astype(np.finfo(x.dtype).dtype if x.dtype.kind in "fc" else x.dtype).reshape(column)
    return inside + like(x, turns) * rise


_MODES: dict[str, Callable] = {
    "constant": _constant,
    "linear_ramp": _ramp,
    **dict.fromkeys(("maximum", "minimum", "mean", "median"), _statistic),
    **dict.fromkeys(("edge", "reflect", "symmetric", "wrap"), _take),
}
