"""The memory of a native program: where each value lives, and which values are views of others.

All intermediate values lie in one arena, and memory that is free again goes to the next value of its size. Large
arguments and results live outside, where the caller's arrays are, and are known at each call only.
"""

from __future__ import annotations

import functools
import math
from collections import Counter
from typing import Any, NamedTuple

import numpy as np

from fad.compile.ir.slice_writes import data_address, find_placed_pieces, view_of, with_ellipsis
from fad.compile.schedule.fusion import Step
from fad.compile.schedule.inplace_updates import Updates
from fad.core.primitives.primitive import Primitive
from fad.core.programs.graph import ARRAY, Equation, Graph
from fad.ops.arrangement.structural import reshape_p

LARGE = 1 << 15  # bytes above which an argument or result is pointed to, not copied
SAME = Primitive("same", lambda x: x, archetype="bare")  # a later version of an array in the same memory
_ANYWHERE = ("loop", "sum", "matmul", "pieces")  # steps that write into a given buffer
_STRIDED = ("loop", "pieces")  # and those that may leave gaps between the elements


class Wanted(NamedTuple):
    """Where a value is wanted: as `piece`, which is the value or a view of its shape alone, at a place in an array.

    `alone`: nothing else reads it.
    """

    piece: int
    whole: int
    place: tuple
    alone: bool


class Place:
    """The memory of one value that is no view: offset in the arena, or an outside array known at each call."""

    __slots__ = ("value", "nbytes", "first", "last", "outside", "offset", "slots")

    def __init__(self, value: int, nbytes: int):
        self.value = value
        self.nbytes = nbytes
        self.first = -1
        self.last = -1
        self.outside = False
        self.offset = 0
        self.slots: list[tuple[int, int]] = []  # (word in the argument table, offset in bytes)

    @property
    def reserved(self) -> int:
        return _round_up(self.nbytes)


@functools.cache
def _round_up(nbytes: int) -> int:
    """Return the bytes set aside: sizes in few classes, so that memory fits again."""
    if nbytes > 1 << 16:
        # not a multiple of the page size: many arrays of one alignment would fight for the same cache lines
        return -(-nbytes // 4096) * 4096 + 1088
    return 64 * max(1, 1 << max(0, math.ceil(math.log2(max(1, nbytes) / 64))))


def _evenly(a: np.ndarray) -> np.ndarray:
    """Return an array whose elements lie whole elements apart, a copy of what is a field among others, say."""
    even = a.flags.aligned and not any(stride % max(1, a.itemsize) for stride in a.strides)
    return a if even else a.copy()


class Body(NamedTuple):
    """What a program that is the body of a loop or branch knows of it."""

    step: int = -1  # the input that is the number of the step: the driver writes it into the body's memory
    carried: tuple[tuple[int, int], ...] = ()  # inputs that may be overwritten, with the outputs that follow them


class Memory:
    """Where the values of a graph live, step by step."""

    def __init__(self, graph: Graph, steps: list[Step], updates: Updates, body: Body | None = None):
        self.graph = graph
        self.steps = steps
        self.over, self.version = updates  # result -> the operand in whose memory it is; view -> what it is a view of
        self.roots: dict[int, int] = {}  # later version -> the first one, if it is the same array
        self.owners: dict[int, int] = {}  # likewise, if it may be a part of that array
        self.sharing: dict[int, list[int]] = {}  # value -> values in its memory, which may not have been overwritten
        self.overwritten = {i for i, _ in body.carried} if body else set()  # inputs that may be
        self.within = body is not None  # its inputs and outputs all lie outside
        self.index = body.step if body else -1
        self.at: dict[int, Any] = {}  # value -> array, or view of one
        self.base: dict[int, int] = {}  # value -> value whose memory it is in
        self.places: dict[int, Place] = {}
        self.views: list[tuple[Equation, int]] = []
        self.addresses: dict[int, int] = {}
        self.fixed: dict[int, int] = {}  # the addresses that are the same in each call
        self.reshaped: dict[int, int] = {}  # result -> the large value that it is in another shape
        self.direct: dict[int, tuple[int, tuple]] = {}  # value -> the array and index at which it is computed

    def arrange(self) -> None:
        """Find what must be stored, give it a place, and make the arrays."""
        self._find_stored()
        self._find_places()
        self._lay_out()
        self._make_arrays()

    def _find_stored(self) -> None:
        """Find what each loop must store: what a later step, an output or a guard reads."""
        reads = set(self.graph.outputs)
        for step in self.steps:
            if len(step.equations) == 1:
                reads.update(step.equations[0].ins)
            else:
                reads.update([i for eq in step.equations for i in eq.ins if i not in step.members | step.again])
        for step in self.steps:
            if step.kind in ("loop", "sum"):
                step.members &= reads

    def _model(self, i: int) -> np.ndarray:
        t = self.graph.types[i]
        return np.empty(t.shape, t.dtype)

    def _find_places(self) -> None:
        graph = self.graph
        for i, c in graph.constants.items():
            if graph.types[i].dtype.kind != "O":
                self.at[i] = _evenly(np.asarray(c))
                self.base[i] = i
        for i in graph.inputs:
            self._new(i, -1, outside=graph.types[i].kind == ARRAY)
            if self.within and i != self.index:
                self.places[i].outside = True
        wanted = self._find_direct()
        base, places = self.base, self.places
        last = self._last_reads()
        for k, step in enumerate(self.steps):
            for eq in step.equations:
                for i in eq.ins:
                    place = places.get(base.get(i, -1))
                    if place is not None:
                        place.last = k
            if step.kind == "view":
                self._find_view(step, k)
            else:
                for o in self.stored_by(step):
                    if o in self.over and self._take_over(o, k, last):
                        continue
                    if o not in self.base:
                        strided = step.kind in _STRIDED and graph.types[o].dtype != bool
                        self._new_or_inside(o, wanted if step.kind in _ANYWHERE else {}, k, strided)
        end, results = len(self.steps), Counter([self.base.get(i, -1) for i in {*graph.outputs}])
        for i in graph.outputs:
            place = self.places.get(self.base.get(i, -1))
            if place is not None:
                whole = place.nbytes > LARGE and graph.types[i].kind == ARRAY
                if whole and place.value != self.root(i):
                    whole = place.first >= 0 and results[place.value] == 1 and self._is_all_of(i, place)
                    if whole:
                        self.reshaped[i] = place.value
                place.outside = place.outside or self.within or (whole and place.first >= 0)
                place.last = end

    def _is_all_of(self, i: int, place: Place) -> bool:
        """Return whether a view has all elements of an array as they lie, in another shape at most."""
        x, whole = self.at[i], self.at[place.value]
        return x.dtype == whole.dtype and x.size == whole.size and x.flags.c_contiguous and whole.flags.c_contiguous

    # --- updates in place -----------------------------------------------------------------------------------------

    def root(self, i: int) -> int:
        """Return the value that memory was taken from, version by version, for a value to be in it."""
        return self.roots.get(i, i)

    def in_place(self, x: int | None, o: int) -> bool:
        """Return whether a result is in the memory of a value as a later version of it."""
        return x is not None and o in self.over and self.base[o] == self.base[x] and self.root(o) == self.root(x)

    def _last_reads(self) -> dict[int, int]:
        """Return for each value the number of the last step that reads it."""
        found = {i: k for k, step in enumerate(self.steps) for eq in step.equations for i in eq.ins}
        found.update(dict.fromkeys(self.graph.outputs, len(self.steps)))
        return found

    def _take_over(self, o: int, k: int, last: dict[int, int]) -> bool:
        """Let the result of step k be in the memory of its operand, if no later step reads what is there now."""
        x = self.over[o]
        r, v = self.base[x], self.version.get(x, x)
        owner = self.owners.get(v, v)  # the value that memory was taken from, unless x is a copy in spite of itself
        place = self.places.get(r)
        mine = place is not None and (place.first >= 0 or r in self.overwritten) and r in (x, owner)
        # an update can be in an array in any order, a loop's state cannot
        mine = mine and (self.steps[k].equations[0].prim.archetype != "loop" or self.at[x].flags.c_contiguous)
        if not mine or any(last.get(i, -1) > k for i in self.sharing[r]):
            del self.over[o]
            return False
        self.sharing[r] = [o]  # the others are not read any more
        self.at[o] = self.at[x]
        self.base[o] = r
        self.roots[o] = self.root(x)
        self.owners[o] = owner
        self.views.append((Equation(SAME, (self.root(x),), {}, (o,)), o))
        return True

    def _find_direct(self) -> dict[int, Wanted]:
        """Return what may be computed where it is wanted, in a piece of a larger array."""
        counts = self._count_outside_reads()
        viewed = {eq.outs[0]: eq for step in self.steps if step.kind == "view" for eq in step.equations}
        found: dict[int, Wanted] = {}
        for step in reversed(self.steps):  # the largest arrays come last, and what they hold may hold pieces itself
            if step.kind == "pieces":
                eq = step.equations[0]
                whole = eq.outs[0]
                outer = whole
                while outer in found:
                    outer = found[outer].whole
                pieces = find_placed_pieces(self.graph, eq)
                shared = len(pieces) == len(eq.ins)  # nothing is added to them
                for i, index in pieces:
                    piece, alone = i, counts[i] == 1
                    while alone and i in viewed and viewed[i].prim is reshape_p and i not in self.graph.outputs:
                        (i,) = viewed[i].ins
                        alone = counts[i] == 1
                    # what else reads it must find it there: not where a result is, which is elsewhere in each call
                    fits = alone or (shared and i == piece and outer not in self.graph.outputs and i not in found)
                    if fits and i not in self.graph.outputs and len(self.graph.types[i].shape) <= 4:
                        found[i] = Wanted(piece, whole, index, alone)
        return found

    def _count_outside_reads(self) -> Counter[int]:
        """Count how often each value is read by steps other than its own; being an output counts once more."""
        counts = Counter(set(self.graph.outputs))
        for step in self.steps:
            own = {o for eq in step.equations for o in eq.outs} if len(step.equations) > 1 else ()
            counts.update([i for eq in step.equations for i in eq.ins if i not in own])
        return counts

    def _new_or_inside(self, i: int, wanted: dict[int, Wanted], k: int, strided: bool = False) -> None:
        """Give a value its place; if it is wanted in a larger one, that.

        There it is contiguous along its last axis, or `strided` says that it need not be.
        """
        if i in wanted:
            piece, whole, index, alone = wanted[i]
            if whole not in self.base:
                self._new_or_inside(whole, wanted, k, strided=True)
            place = self.at[whole][index]
            even = place.size == 1 or (place.strides[-1] == place.itemsize and place.shape[-1] > 1)
            if place.shape == self.graph.types[piece].shape and (even or (strided and alone)):
                inside = place.reshape(self.graph.types[i].shape)
                if np.may_share_memory(inside, place):
                    self.at[i] = inside
                    self.base[i] = self.base[whole]
                    self.sharing[self.base[i]].append(i)
                    self.direct[i] = self.direct[piece] = (whole, index)
                    return
        self._new(i, k, outside=False)

    def is_there(self, i: int | None, whole: int, index: Any) -> bool:
        """Return whether a value was computed in its place in a larger one."""
        found = self.direct.get(i) if i is not None else None
        return found is not None and found[0] == whole and found[1] in (index, with_ellipsis(index))

    def stored_by(self, step: Step) -> Any:
        """Return the values of a step that are stored."""
        if step.kind in ("loop", "sum"):
            return sorted(step.members)
        return step.equations[0].outs

    def _new(self, i: int, k: int, outside: bool) -> None:
        model = self._model(i)
        self.at[i] = model
        self.base[i] = i
        self.sharing[i] = [i]
        place = Place(i, model.nbytes)
        place.first = place.last = k
        place.outside = outside and model.nbytes > LARGE
        self.places[i] = place

    def _find_view(self, step: Step, k: int) -> None:
        (eq,) = step.equations
        x, o = eq.ins[0], eq.outs[0]
        y = view_of(eq, self.at[x])
        if isinstance(y, np.ndarray) and np.may_share_memory(y, self.at[x]) and (y.size or not self.at[x].size):
            self.at[o] = y
            self.base[o] = self.base[x]
            self.sharing.setdefault(self.base[o], []).append(o)
            self.views.append((eq, o))
        else:
            step.kind = "call"
            if y is not None and not isinstance(y, np.ndarray):
                y = np.asarray(y)
            self._new(o, k, outside=False)

    def _lay_out(self) -> None:
        """Give every inside place an offset, using freed memory again for values of the same size class."""
        starting: dict[int, list[Place]] = {}
        ending: dict[int, list[Place]] = {}
        for place in self.places.values():
            if not place.outside:
                starting.setdefault(place.first, []).append(place)
                ending.setdefault(place.last, []).append(place)
        free: dict[int, list[int]] = {}
        top = 0
        for k in range(-1, len(self.steps) + 1):
            for place in starting.get(k, ()):
                waiting = free.get(place.reserved)
                if waiting:
                    place.offset = waiting.pop()
                else:
                    place.offset, top = top, top + place.reserved
            for place in ending.get(k, ()):
                free.setdefault(place.reserved, []).append(place.offset)
        raw = np.zeros(top + 64, np.uint8)
        shift = -raw.ctypes.data % 64
        self.arena = raw[shift : shift + top]
        self.raw = raw

    def _make_arrays(self) -> None:
        start = data_address(self.arena)
        for i, place in self.places.items():
            if not place.outside:
                t = self.graph.types[i]
                self.at[i] = np.ndarray(t.shape, t.dtype, self.arena, place.offset)
                self.addresses[i] = start + place.offset
        for i, (whole, index) in self.direct.items():
            self.at[i] = self.at[whole][index].reshape(self.graph.types[i].shape)
        for eq, o in self.views:
            self.at[o] = view_of(eq, self.at[eq.ins[0]])

    # --- steps --------------------------------------------------------------------------------------------------

    def address(self, i: int, word: int, offset: int = 0) -> int:
        """Return an address in a value's memory, and remember the word if it is known at each call only."""
        address = self.fixed.get(i)
        if address is not None:
            return address + offset
        address = self.addresses.get(i)
        if address is None:
            address = self.addresses[i] = data_address(self.at[i])
        place = self.places.get(self.base[i])
        if place is not None and place.outside:
            return self.address_in(i, word, address + offset)
        self.fixed[i] = address
        return address + offset

    def address_in(self, i: int, word: int, address: int) -> int:
        """Remember likewise an address in a value's memory that is known, and return it."""
        place = self.places.get(self.base[i])
        if place is not None and place.outside:
            place.slots.append((word, address - data_address(self.at[place.value])))
        return address
