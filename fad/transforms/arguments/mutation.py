"""Snapshots of plain arrays that a transform needs later, and fingerprints of those that are kept by reference.

A derivative's rules and a recorded program read plain arrays after the operation that was given them, and the user
may have refilled them since: a sign that alternates, a mask that grows, a scratch buffer. So an array is copied at the
moment of its use. A copy costs less than most operations, and is made again only when the contents have changed.
Where copies would take too much memory, and for the inputs of a gradient, there are fingerprints instead, compared
before use: a change is an error then.
"""

from __future__ import annotations

import contextlib
import ctypes
import itertools
from collections.abc import Iterable, Iterator
from contextvars import ContextVar
from typing import Any

import numpy as np

from fad import config
from fad.core.tracing.tracer import Tracer
from fad.core.tracing.views import copy_argument, is_writeable, snapshot
from fad.errors import MutationError
from fad.introspect.frames import show_place, user_place

FEW_BYTES = 4096  # bytes up to which an array is copied whole: quicker than to sample it, and it notices everything
_SAMPLES = 32
_BUDGET = 1 << 30  # bytes of large arrays that one tape or recording copies
_PIECE = 1 << 18
_MEDIUM = 1 << 20  # bytes up to which a copy lies in a bytearray, which compares quickest
_BITS = {n: np.dtype(f"u{n}") for n in (1, 2, 4, 8)}


def fingerprint(x: np.ndarray, mode: str) -> Any:
    """Return something that changes when the contents of `x` change."""
    if x.nbytes <= FEW_BYTES:
        return x.tobytes()
    if mode == "full":
        return hash(x.tobytes())
    if x.flags.forc:
        return x.ravel(order="K")[:: sample_step(x.size)].tobytes()
    places = np.unravel_index(np.linspace(0, x.size - 1, _SAMPLES).astype(np.intp), x.shape)
    return x[places].tobytes()


def sample_step(n: int) -> int:
    """Return the step from one sample of n elements in a line to the next; the first is the last element."""
    return -(n // _SAMPLES)


def overlaps(donated: list, others: list) -> bool:
    """Return whether a donated array shares memory with another array of the call."""
    spans = [(*_span(x), True) for x in donated if type(x) is np.ndarray and x.nbytes]
    spans += [(*_span(x), False) for x in others if type(x) is np.ndarray and x.nbytes]
    spans.sort()
    ends = {True: -1, False: -1}  # how far the donated arrays before reach, and the others
    for a, b, gives in spans:
        if a < ends[True] or (gives and a < ends[False]):
            return True
        ends[gives] = max(ends[gives], b)
    return False


def _span(x: np.ndarray) -> tuple[int, int]:
    return np.lib.array_utils.byte_bounds(x)


class Snapshots:
    """Plain arrays as they were when they were used."""

    __slots__ = ("kept", "own", "budget", "loose")

    def __init__(self) -> None:
        self.kept: dict[int, tuple] = {}  # by the array's id: a copy, and its bytes if they are not many
        self.own: dict[int, np.ndarray] = {}  # large copies, by their ids
        self.budget = _BUDGET
        self.loose: dict[int, tuple] = {}  # arrays that are too large to be copied, with their checksums and places

    def take(self, x: np.ndarray) -> np.ndarray:
        """Return what `x` holds now as an array that nobody writes into: one copy for as long as `x` stays as it is.

        An id may be used again, for another array. That does no harm, since the contents decide.
        """
        found = self.kept.get(id(x))
        if found is not None:
            copy, before = found
            if copy.shape == x.shape and copy.dtype is x.dtype and _holds(x, copy, before):
                return copy
        if x.nbytes <= FEW_BYTES:
            before = x.tobytes()
            copy = x.copy() if x.flags.c_contiguous else _compact(x)
            self.kept[id(x)] = copy, before
            return copy
        return self._take_large(x)

    def _take_large(self, x: np.ndarray) -> np.ndarray:
        if self.is_own(x) or not may_be_overwritten(x):
            return x
        known = self.loose.get(id(x))
        if known is not None:
            if checksum(x) != known[1]:
                raise _error(x, show_place(known[2]))
            return x
        if x.nbytes > self.budget:
            self.loose[id(x)] = x, checksum(x), user_place()
            return x
        self.budget -= x.nbytes
        copy, raw = _contiguous(x) if x.nbytes <= _MEDIUM and x.flags.forc else (_compact(x), None)
        self.kept[id(x)] = copy, raw
        self.own[id(copy)] = copy
        return copy

    def is_own(self, x: np.ndarray) -> bool:
        """Whether an array is one of the large copies, or a view of one, as rules of derivatives take them."""
        return id(x) in self.own or id(x.base) in self.own

    def check(self) -> None:
        """Raise MutationError if an array that was too large to be copied has been overwritten."""
        for x, before, place in self.loose.values():
            if checksum(x) != before:
                raise _error(x, show_place(place))


recording: ContextVar[Snapshots | None] = ContextVar("recording", default=None)
"""The snapshots of the program that is being recorded, None if there is none."""


def snapshots() -> Snapshots:
    """Return where a trace keeps its copies: beside those of the recording around it, so that an array has one copy."""
    return recording.get() or Snapshots()


def _compact(x: np.ndarray) -> np.ndarray:
    """Return a copy in the same order of axes, in which a number that stands for many is stored once, as in `x`."""
    if 0 not in x.strides:
        return x.copy(order="K")
    part = x[tuple([slice(0, 1) if step == 0 else slice(None) for step in x.strides])]
    return np.broadcast_to(part.copy(), x.shape)


def _contiguous(x: np.ndarray) -> tuple[np.ndarray, bytearray | None]:
    """Return a copy of an array without gaps, and the bytes that it lies in."""
    if x.dtype.kind not in "fcbiu":
        return _compact(x), None
    order: Any = "C" if x.flags.c_contiguous else "F"
    raw = bytearray(x.data if order == "C" else x.T.data)
    return np.ndarray(x.shape, x.dtype, raw, order=order), raw


def _holds(x: np.ndarray, copy: np.ndarray, before: Any) -> bool:
    if type(before) is bytes:
        return x.tobytes() == before
    if type(before) is bytearray:
        return x.strides == copy.strides and before == (x.data if x.flags.c_contiguous else x.T.data)
    return equal(x, copy)


try:
    _compare: Any = ctypes.CDLL(None).memcmp
    _compare.argtypes = ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t
except (AttributeError, OSError, TypeError):  # a system whose C library has no such name
    _compare = None


def equal(x: np.ndarray, y: np.ndarray) -> bool:
    """Return whether arrays of one shape and dtype hold the same bits."""
    if x.nbytes <= FEW_BYTES:
        return x.tobytes() == y.tobytes()
    if _compare is not None and x.flags.forc and x.strides == y.strides:
        return not _compare(x.ctypes.data, y.ctypes.data, x.nbytes)
    bits = _BITS.get(x.itemsize)
    return bool((x.view(bits) == y.view(bits)).all()) if bits else x.tobytes() == y.tobytes()


def checksum(x: np.ndarray) -> int:
    """Return a number for all the bytes of a large array, in pieces: a copy of it might not fit into memory."""
    line = x.reshape(-1) if x.flags.c_contiguous else x.T.reshape(-1) if x.flags.f_contiguous else None
    if line is None:
        return hash(tuple([checksum(part) if part.nbytes > _PIECE else hash(part.tobytes()) for part in x]))
    step = max(1, _PIECE // x.itemsize)
    return hash(tuple([hash(line[k : k + step].tobytes()) for k in range(0, line.size, step)]))


def may_be_overwritten(x: Any) -> bool:
    """Return whether somebody may write into an array's memory, into that of which it is a read-only view as well."""
    while type(x) is np.ndarray and not is_writeable(x):
        x = x.base
    return x is not None


def own(primals: list) -> list:
    """Return the inputs of a derivative that is taken later, when the user may have refilled them: as copies.

    They lie in memory as the arrays do: on that depends what is a view.
    """
    if np.ndarray not in map(type, primals) or config.check_mutation.get() == "off":
        return primals
    return [copy_argument(x) if type(x) is np.ndarray else x for x in primals]


def check_own(owned: list, primals: list) -> None:
    """Raise MutationError if the function overwrote an input while it ran: the copies do not show that."""
    if owned is primals:
        return
    for x, copy in zip(primals, owned, strict=True):
        if copy is not x and not equal(x, copy):
            raise _error(x, "the call of the transform")


def copy_result(x: Any) -> Any:
    """Return a result in memory of its own, so that writing into it leaves the derivative alone."""
    return x.copy(order="K") if type(x) is np.ndarray else snapshot(x) if type(x) is Tracer else x


class Earlier:
    """Arrays from outside that a function reads, as they were when it ran: it is to run on the same values again."""

    __slots__ = ("small", "large", "mode")

    def __init__(self, arrays: Iterable[np.ndarray], copy_all: bool = False):
        self.mode = "full" if config.check_mutation.get() == "full" else "sample"
        writeable = [x for x in arrays if x.size and may_be_overwritten(x)]
        most = _BUDGET if copy_all else _PIECE
        self.small = [(x, x.copy()) for x in writeable if x.nbytes <= most and is_writeable(x)]
        known = {id(x) for x, _ in self.small}
        self.large = [(x, fingerprint(x, self.mode)) for x in writeable if id(x) not in known]

    def check(self) -> None:
        """Raise MutationError if an array was overwritten of which there is no copy."""
        for x, before in self.large:
            if fingerprint(x, self.mode) != before:
                raise _error(x, "the call of the function")

    def first_written(self) -> np.ndarray | None:
        """Return an array that was overwritten, if there is one."""
        changed = itertools.chain(
            (x for x, then in self.small if not equal(x, then)),
            (x for x, before in self.large if fingerprint(x, self.mode) != before),
        )
        return next(changed, None)

    def find_changed(self) -> list[tuple]:
        """Return the arrays that do not hold any more what they held then, with that."""
        self.check()
        return [(x, then) for x, then in self.small if not equal(x, then)]

    def undo(self) -> bool:
        """Let the arrays hold what they held then, since the function is to run again; return whether any did not."""
        changed = self.find_changed()
        for x, then in changed:
            x[...] = then
        return bool(changed)

    @contextlib.contextmanager
    def restore(self, changed: list[tuple] | None = None, writes: bool = False) -> Iterator[None]:
        """Let the arrays hold for the length of a block what they held then, and undo what it writes, if it may."""
        changed = self.find_changed() if changed is None else changed
        before = [(x, x.copy()) for x, _ in changed]
        try:
            for x, then in changed:
                x[...] = then
            yield
        finally:
            for x, then in self.small if writes else ():
                if not equal(x, then):
                    x[...] = then
            for x, now in before:
                x[...] = now


def take_fingerprints(primals: list) -> list[tuple]:
    """Return the arrays among the inputs of a derivative, which it keeps by reference, with their fingerprints."""
    found: list = []
    mode = None
    for x in primals:
        if type(x) is np.ndarray:
            mode = mode or config.check_mutation.get()
            if mode != "off":
                found.append((x, mode, fingerprint(x, mode)))
    return found


def check_fingerprints(inputs: list[tuple], tape: list) -> None:
    """Raise MutationError if an input that a rule needs is no longer what it was."""
    for x, mode, before in inputs:
        if fingerprint(x, mode) != before and _is_kept(x, tape):
            raise _error(x, "the call of the transform")


class Watch:
    """What one reverse trace keeps of plain arrays: copies of constants."""

    __slots__ = ("mode", "snapshots")

    def __init__(self) -> None:
        self.mode = config.check_mutation.get()
        self.snapshots: Snapshots | None = None

    def take(self, x: np.ndarray) -> np.ndarray:
        """Return what a constant holds now as an array that nobody writes into."""
        store = self.snapshots
        if store is None:
            if self.mode == "off":
                return x
            store = self.snapshots = snapshots()
        return store.take(x)

    def mark(self) -> int:
        return 0 if self.snapshots is None else len(self.snapshots.kept)

    def release(self, mark: int) -> None:
        """Forget the copies made since a mark: the records that had them are gone."""
        store = self.snapshots
        while store is not None and store is not recording.get() and len(store.kept) > mark:
            _, (copy, _) = store.kept.popitem()
            store.budget += copy.nbytes if store.own.pop(id(copy), None) is not None else 0

    def finish(self) -> None:
        """Let go of the copies that no record has: the function has returned."""
        store = self.snapshots
        if store is not None and store is not recording.get():
            store.kept.clear()
            store.own.clear()

    def check(self) -> None:
        """Raise MutationError if an array that a rule needs is no longer what it was."""
        if self.snapshots is not None:
            self.snapshots.check()


def _error(x: np.ndarray, line: str) -> MutationError:
    return MutationError(
        f"an array of shape {x.shape} and dtype {x.dtype} was overwritten after an operation had kept it, at {line}, "
        f"for the derivative. The derivative would be wrong: pass a copy (x.copy()), or write into it later. "
        "Noticed here"
    )


def _root(x: Any) -> Any:
    while type(x) is np.ndarray and x.base is not None:
        x = x.base
    return x


def _is_kept(x: np.ndarray, tape: list) -> bool:
    root = _root(x)
    for record in tape:
        for item in record or ():
            for part in item if type(item) is tuple else (item,):
                if type(part) is np.ndarray and _root(part) is root:
                    return True
    return False
