"""Tangents and cotangents that are not plain arrays: `Masked`, zero by selection, and `Indexed`, at an index.

They exist only between two steps of forward mode or of a backward sweep; no user ever sees one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fad.backends import backend_of, is_on_device, made_like
from fad.core.tracing.tracer import Tracer
from fad.core.tracing.views import unwrap

FEW = 4  # entries that are added one by one into an array that is there, and not all at once into one of zeros


class Masked:
    """A tangent or cotangent that is zero *by selection* where `live` is false, as `where` and `maximum` make them.

    An elementwise rule multiplies it by a partial derivative, and at an element that was not selected the partial may
    be infinite: ``where(x > 0, sqrt(x), 0)`` at 0. There 0 * inf must be 0, for the value was never used,
    while everywhere else 0 * inf stays what NumPy makes of it. So the mask travels along.

    What `value` holds where `live` is false is arbitrary unless `clean`; `dense` replaces it. With `zero_or_nan` it is
    zero, or NaN where that met an infinite slope, and there is nothing to replace in finite values. `live` broadcasts
    to the shape of `value`, and may be given as a function that computes it: most masks are never looked at again.
    With `brief` the mask is for slopes that are infinite, and of no use where none is left.
    """

    __slots__ = ("value", "clean", "zero_or_nan", "brief", "_live", "places")
    __array_ufunc__ = None  # operators between an array and a Masked are those below

    def __init__(self, value: Any, live: Any, clean: bool = False):
        self.value = value
        self.clean = clean
        self.zero_or_nan = clean
        self.brief = False
        self._live = live
        self.places: _Later | None = None  # of a sum at places: its mask, to which more of them can be added

    @property
    def live(self) -> Any:
        if callable(self._live):
            self._live = self._live()
        return self._live

    def mask(self) -> Any:
        """Return the mask, or what computes it when it is looked at."""
        return self._live

    def dense(self) -> Any:
        """Return the plain array or tracer."""
        if not self.clean:
            if not (self.zero_or_nan and is_finite(self.value)):
                self.value = _select(self.live, self.value)
            self.clean = self.zero_or_nan = True
        return self.value

    def with_value(self, value: Any) -> Masked:
        """Return the same with its values in another array."""
        return Masked(value, self._live, self.clean)

    def times(self, partial: Any, saved: tuple) -> Masked:
        """Return the product with a partial derivative, which may be anything where not live."""
        with np.errstate(all="ignore"):
            return self.quietly(partial, saved)

    def quietly(self, partial: Any, saved: tuple) -> Masked:
        """Return the product with a partial derivative; NumPy's warnings are off already, which takes time."""
        slope = partial(*saved)
        kind = type(slope)
        if kind is Selection:
            return slope * self
        clean = self.clean and (kind is float or kind is np.float64) and slope - slope == 0.0
        return self.with_product(self.value * slope, clean)

    def with_product(self, value: Any, clean: bool = False) -> Masked:
        """Return its product with a slope, of which the values are given."""
        product = Masked(value, self._live, clean)
        product.zero_or_nan = self.zero_or_nan
        product.brief = self.brief
        return product

    def move(self, function: Any) -> Masked:
        """Apply a function that moves, drops and adds up elements: what it makes of live ones is live."""
        moved = Masked(function(self.dense()), self.later(function), True)
        moved.brief = self.brief
        return moved

    def later(self, function: Any) -> _Later:
        """Return the mask of what a function makes of the live elements, to be computed when it is looked at."""
        return mask_later([self], function)

    def __add__(self, other: Any) -> Any:
        if type(other) is not Masked:
            return self.dense() + other
        if self._live is other._live:
            with np.errstate(all="ignore"):
                total = Masked(self.value + other.value, self._live, self.clean and other.clean)
            total.zero_or_nan = self.zero_or_nan and other.zero_or_nan
            total.brief = self.brief
            return total
        live = np.logical_or(self.live, other.live)  # now: a sum of many is no deep nest of functions
        total = self.dense() + other.dense()
        return total if _is_all(live) else Masked(total, live, True)

    def __radd__(self, other: Any) -> Any:
        return other + self.dense()


def is_finite(value: Any) -> bool:
    """Return whether values, and their squares, are known to be finite: to read all of them once is cheap."""
    plain = type(value) is np.ndarray or issubclass(type(value), np.inexact)
    return plain and value.dtype.kind in "fc" and bool(np.isfinite(np.vdot(value, value)))


def _is_all(live: Any) -> bool:
    """Return whether a mask is known to be true everywhere."""
    return type(live) is np.ndarray and bool(live.all())


class _Later:
    """A mask that is computed when it is first looked at: where a function makes something of the ones of others.

    A chain of them is computed step by step, from its beginning; none keeps the values beside it.
    """

    __slots__ = ("mask", "below", "function", "indices")

    def __init__(self, below: list[tuple[Any, tuple, Any]], function: Callable, indices: Any = None):
        self.mask: Any = None
        self.below = below  # each mask, with the shape and dtype of its ones
        self.function: Callable | None = function
        self.indices = indices  # of what was added up at places: there may come more

    def __call__(self) -> Any:
        waiting = [self]
        while waiting:
            last = waiting[-1]
            deeper = [m for m, *_ in last.below if type(m) is _Later and m.function is not None]
            if deeper:
                waiting += deeper
                continue
            if last.function is not None:
                ones = [np.broadcast_to(_find_mask(m), shape).astype(dtype) for m, shape, dtype in last.below]
                last.mask, last.function, last.below = last.function(*ones) != 0, None, []
            waiting.pop()
        return self.mask


def _find_mask(mask: Any) -> Any:
    while callable(mask):
        mask = mask.mask if type(mask) is _Later and mask.function is None else mask()
    return mask


def mask_later(operands: list, function: Callable) -> _Later:
    """Return the mask of what ``function(*ones)`` makes of ones where some masked values are live, when it is read."""
    return _Later([(t._live, t.value.shape, t.value.dtype) for t in operands], function)


def without_numbers(x: Any) -> Any:
    """Return an array that takes no memory in place of numbers that a mask does not depend on; indices are kept."""
    return np.broadcast_to(x.dtype.type(0), x.shape) if type(x) is np.ndarray and x.dtype.kind in "fc" else x


def join_masks(a: Any, b: Any, shape: tuple) -> _Later:
    """Return the mask of what is live by two masks, when it is read."""
    return _Later([(mask, shape, np.dtype(bool)) for mask in (a, b)], np.logical_and)


_BITS = {np.dtype(np.float64): np.int64, np.dtype(np.float32): np.int32}


def _select(live: Any, value: Any) -> Any:
    """Return ``where(live, value, 0.0)``, which for large arrays is five times as fast by a mask of bits."""
    if type(value) is np.ndarray and value.size > 1000 and type(live) is np.ndarray:
        bits = _BITS.get(value.dtype)
        if bits is not None:
            mask = live.astype(bits)
            return (value.view(bits) & np.negative(mask, out=mask)).view(value.dtype)
    return np.where(live, value, 0.0)


class Selection:
    """The partial derivative of an operation that selects: 0 where not `live`, else 1, or `weight` if one is given."""

    __slots__ = ("live", "weight")
    __array_ufunc__ = None

    def __init__(self, live: Any, weight: Any = None):
        self.live = live
        self.weight = weight

    def __mul__(self, t: Any) -> Masked:
        live = self.live
        if type(t) is Masked:
            live = np.logical_and(live, t.live)
            t = t.value
        if t.shape != live.shape and t.shape != (shape := np.broadcast_shapes(t.shape, live.shape)):
            t = np.broadcast_to(t, shape)
        return Masked(t if self.weight is None else t * self.weight, live)

    __rmul__ = __mul__


def share_at_ties(live: Any, ties: Any, half: Any) -> Selection:
    """Return the partial derivative of a choice between two operands, of which each has one half at ties."""
    plain = type(ties) in (np.ndarray, np.bool_)
    if plain and not np.count_nonzero(ties):
        return Selection(live)  # the fast path for most arrays; to look at a device's would wait for them
    return Selection(live, np.where(ties, half, 1.0))


class Masking:
    """The pullback of an operation that can say which elements of its operands it uses.

    ``find_uses(marks, when)`` returns for each operand an array that is zero where nothing is used, or None, of such
    arrays for the results. Where `when` is traced and false, nobody needs to know. It is called when a mask of what is
    pulled back is looked at.

    ``pull_marked(cts, marks)`` returns the cotangents of the operands and such marks of them, from a rule that knows
    in all its steps what is zero by selection. `care` says where a sweep has to be careful for the operation's own
    slopes, and `leaves_out` whether it may use a part of its operands only. With `unsure` it selects something itself
    of which `pull` does not know.
    """

    __slots__ = ("pull", "find_uses", "pull_marked", "care", "unsure", "leaves_out")

    def __init__(
        self, pull: Callable, find_uses: Callable, pull_marked: Callable | None = None, care: int = 0,
        unsure: bool = False, leaves_out: bool = True,
    ):  # fmt: skip
        self.pull = pull
        self.find_uses = find_uses
        self.pull_marked = pull_marked
        self.care = care
        self.unsure = unsure
        self.leaves_out = leaves_out

    def __call__(self, cts: list) -> list:
        return self.pull(cts)

    def pull_carefully(self, cts: list) -> list:
        """Return the cotangents of the operands with masks, by a rule that knows masks in all that it does."""
        if self.pull_marked is None:
            return self.pull_masked(cts, lambda: True)
        marks = [None if ct is None else ones_where_live(ct) for ct in cts]
        found, live = self.pull_marked([None if ct is None else densify(ct) for ct in cts], marks)
        pairs = zip(found, live, strict=True)
        return [None if c is None else Masked(c, np.not_equal(mark, 0), clean=True) for c, mark in pairs]

    def pull_masked(self, cts: list, ask: Callable) -> list:
        """Return the cotangents of the operands with masks, which are needed where the answer of ``ask()`` is true."""
        found = self.pull([None if ct is None else densify(ct) for ct in cts])
        when = ask()
        if when is False:
            return found
        uses: list = []

        def live(k: int) -> Any:
            if not uses:
                uses.extend(self.find_uses([None if ct is None else ones_where_live(ct) for ct in cts], when))
            return np.not_equal(uses[k], 0)

        return [None if c is None else mask_result(densify(c), lambda k=k: live(k)) for k, c in enumerate(found)]


def mask_result(c: Any, live: Callable) -> Masked:
    """Return what a pullback gives of plain cotangents, which is zero where nothing is used; not so its tangents."""
    x = c
    while type(x) is Tracer and (x.owner.compiled or x.owner.batched):
        x = x.wrapped
    return Masked(c, live, clean=type(x) is not Tracer)


class Indexed:
    """A cotangent of shape `shape` that is zero but for ``at index: values``, one pair per indexing operation.

    A loop over ``x[t]`` makes T of these. On arrays they are added into one buffer as they come;
    on tracers they are collected, and summed by one operation: linear cost at every order of derivative.

    `lives` says of each entry which of its values are live, as `Masked` does, and then it is zero by selection at all
    places that none of them names; where one is None nobody needs to know.
    """

    __slots__ = ("shape", "dtype", "entries", "lives", "size", "add", "beside")

    def __init__(self, shape: tuple, dtype: Any, index: Any, values: Any, add: Any, live: Any = None):
        self.shape = shape
        self.dtype = dtype
        self.entries = [(index, values)]
        self.lives = [live]
        self.size = values.size  # of all entries
        self.add = add  # (shape, dtype, entries[, onto]) -> array, for traced values
        self.beside: Any = None  # a cotangent of all places, to which traced entries are added in the end, all at once

    def append(self, other: Indexed) -> None:
        """Take the entries of another one."""
        self.entries += other.entries
        self.lives += other.lives
        self.size += other.size

    def is_plain(self) -> bool:
        """Return whether no tracer is among the values and indices."""
        if len(self.entries) == 1:
            index, values = self.entries[0]
            return type(values) is not Tracer and (type(index) is not tuple or not _has_tracer(index))
        return all(
            type(values) is not Tracer and not any(type(i) is Tracer for i in _parts(index))
            for index, values in self.entries
        )

    def is_masked(self) -> bool:
        """Return whether it is known which places are zero by selection."""
        return not any(live is None for live in self.lives)

    def add_to(self, buffer: Any) -> Any:
        """Add plain entries into an array that the caller owns."""
        for index, values in self.entries:
            if is_basic(index):
                buffer[index] += values
            else:
                backend_of(buffer).scatter_add(buffer, index, values)
        return buffer

    def dense(self) -> Any:
        if self.beside is not None:
            return densify(self.added_to(self.beside))
        if self.is_plain():
            return self.add_to(made_like(np.zeros_like, self.entries[0][1], self.shape, self.dtype))
        return self.add(self.shape, self.dtype, self.entries)

    def added_to(self, other: Any) -> Any:
        """Return the sum with another traced cotangent, into which a few small entries are added one by one."""
        total = self.add(self.shape, self.dtype, self.entries, densify(other))
        if type(other) is not Masked:
            return total
        ours, theirs = other.live, self.mask()()  # now: a sum of many is no deep nest of functions
        if type(ours) is Tracer or type(theirs) is Tracer:
            return Masked(total, lambda: np.logical_or(ours, theirs), True)
        live = np.logical_or(ours, theirs)
        return total if _is_all(live) else Masked(total, live, True)

    def mask(self) -> _Later:
        """Return the mask of the places that entries name, and where these are live."""
        indices, add, shape, dtype = self.indices(), self.add, self.shape, self.dtype
        add_up = lambda *ones: add(shape, dtype, list(zip(indices, ones, strict=True)))
        return _Later(self.marks(), add_up, indices)

    def marks(self) -> list:
        """Return the mask of the values of each entry, with their shape and dtype."""
        return [
            (_mark_all(values) if live is None or live is True else live, values.shape, values.dtype)
            for (_, values), live in zip(self.entries, self.lives, strict=True)
        ]

    def indices(self) -> list:
        return [index for index, _ in self.entries]

    def gather(self) -> Any:
        """Return the sum of the entries, masked if it is known which places are zero by selection."""
        if self.beside is not None:
            return self.added_to(self.beside)
        if not self.is_masked():
            return self.dense()
        if self.is_plain():
            masked = Masked(self.dense(), self.mask(), clean=True)
            masked.places = masked.mask()
            return masked
        live = self.mask()
        return self.dense() if self._have_plain_places() and _is_all(live()) else Masked(self.dense(), live, clean=True)

    def _have_plain_places(self) -> bool:
        """Return whether it is known where traced values stand, and which of them are live: some fill an array."""
        known = all(live is None or live is True or type(live) is np.ndarray for live in self.lives)
        return known and not any(type(part) is Tracer for index, _ in self.entries for part in _parts(index))


def ones_where_live(g: Any) -> Any:
    """Return ones where a cotangent is live, and zeros elsewhere."""
    live, value = (g.live, g.value) if type(g) is Masked else (_mark_all(g), g)
    return np.broadcast_to(live, value.shape).astype(value.dtype)


def _mark_all(values: Any) -> Any:
    return np.ones_like(values, dtype=bool) if is_on_device(unwrap(values)) else True


def mark_live(mask: Any, index: Any, live: Any) -> None:
    """Note in a mask what is live at an index."""
    if live is None or live is True:
        mask[index] = True
        return
    live = _find_mask(live)
    if is_basic(index):
        mask[index] |= live
    else:
        np.logical_or.at(mask, index, live)


def _has_tracer(index: tuple) -> bool:
    return any(type(part) is Tracer for part in index)


def _parts(index: Any) -> tuple:
    return index if type(index) is tuple else (index,)


_BASIC = {int, slice, type(None), type(Ellipsis)}


def is_basic(index: Any) -> bool:
    """Return whether an index selects every element at most once, by slices and integers alone."""
    if type(index) is tuple and len(index) == 1:
        index = index[0]
    if type(index) is not tuple:
        return type(index) in _BASIC or issubclass(type(index), np.integer)
    return all(type(part) in _BASIC or issubclass(type(part), np.integer) for part in index)


def densify(ct: Any) -> Any:
    """Return a cotangent as a plain array or tracer."""
    if type(ct) is Masked:
        return ct.dense()
    return ct.dense() if type(ct) is Indexed else ct
