"""The native comparison of what a program has from outside its arguments with what that was when it was recorded.

Places and arrays become rows of a table, which native code goes through in each call of the program. It stops where
something differs. There may be an equal object now, or something that native code does not read; so Python looks at
what the row stands for, and native code goes on behind it.
"""

from __future__ import annotations

import gc
import types
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from fad import config
from fad.compile.codegen.llvm import differing as rows
from fad.compile.runtime.entry_point import builtin
from fad.introspect.outer_values import ABSENT, Place, contents, entry, has_any, look_up, sample, size
from fad.introspect.reachable import PLAIN
from fad.staging.outer_state import Entered, OuterState, is_other, what_is_in
from fad.transforms.arguments.mutation import sample_step

_ROW = 8 * rows.WIDTH  # bytes
_PER_LOOKUP = 2  # entries of a dictionary that are compared one after the other while one is looked up


class StateCheck:
    """Compares what a program depends on: ``differs(address)`` is true if something may have changed since."""

    __slots__ = ("differs", "address", "table")

    def __init__(self, outer: OuterState):
        self.table = _Table(outer)
        self.address: int = self.table.words.ctypes.data + (0 if self.table.asked else _ROW)
        self.differs: Callable[[int], int] = builtin("differing")

    def is_stale(self) -> bool:
        """Whether something is no longer what it was."""
        at = self.differs(self.address)
        if not at or config.check_mutation.get() == "off":
            return False
        while at:
            n = (at - self.table.words.ctypes.data) // _ROW
            if any(map(_has_changed, self.table.meanings[n])):
                return True
            self.table.renew(n)
            at = self.differs(at + _ROW)
        return False


def _has_changed(x: Place | Entered) -> bool:
    return is_other(x) if isinstance(x, Place) else x.is_stale()


class _Dictionary:
    """What is known of one dictionary: values of keys, keys that it lacks, how many there are."""

    __slots__ = ("held", "values", "places", "lacking", "gaps", "size", "sized")

    def __init__(self, held: dict):
        self.held = held
        self.values: dict[Any, Any] = {}
        self.places: dict[Any, list[Place]] = {}  # for each key
        self.lacking: set = set()
        self.gaps: list[Place] = []  # where those that it lacks are asked for: thousands of names, in a large program
        self.size: int | None = None
        self.sized: list[Place] = []

    def note(self, place: Place, key: Any, value: Any) -> None:
        self.values[key] = value
        self.places.setdefault(key, []).append(place)

    def note_gaps(self, place: Place, names: Iterable) -> None:
        self.lacking.update(names)
        self.gaps.append(place)

    def is_quicker_in_turn(self) -> bool:
        """Whether to compare all keys, those of no interest as well, rather than look up some and count them."""
        lookups = len(self.values) + len(self.lacking) + bool(self.sized)
        if lookups == len(self.values) or dict.__len__(self.held) > _PER_LOOKUP * lookups:
            return False
        there = dict.keys(self.held)  # a class of the user's may have keys of its own
        return self.values.keys() <= there and self.lacking.isdisjoint(there) and self.size in (None, len(there))


class _Table:
    """The rows of a table in memory, and what each stands for."""

    __slots__ = ("rows", "further", "meanings", "dictionaries", "asked", "kept", "renewed", "words")

    def __init__(self, outer: OuterState):
        self.rows: list[tuple[int, int, int, int]] = []
        self.further: list[tuple[int, list[int]]] = []  # words that a row points to, and its number
        self.meanings: list[list] = []  # places and arrays that Python looks at where a row differs
        self.dictionaries: dict[int, _Dictionary] = {}
        self.kept: list = []  # what rows point to besides
        self.renewed: dict[int, Any] = {}  # numbers that rows point to instead of equal ones
        self.asked: list = []  # what native code does not read; the first row, for Python looks behind it
        self._add(rows.ASK, None, 0, 0, self.asked)
        self.asked += [place for place in outer.places if not self._add_place(place)]
        self.asked += [array for array in outer.arrays if not self._add_array(array)]
        for dictionary in self.dictionaries.values():
            self._add_dictionary(dictionary)
        self.words = self._in_memory()

    def _add(self, kind: int, held: Any, key: int, value: int, meaning: list) -> None:
        self.rows.append((kind, id(held), key, value))
        self.meanings.append(meaning)

    def _add_with(self, words: list[int], kind: int, held: Any, value: int, meaning: list) -> None:
        """Add a row that has the address of further words instead of a key."""
        self.further.append((len(self.rows), words))
        self._add(kind, held, 0, value, meaning)

    def _in_memory(self) -> np.ndarray:
        words = [word for row in self.rows for word in row] + [rows.END] * rows.WIDTH
        starts = []
        for _, further in self.further:
            starts.append(len(words))
            words += further
        memory = np.array(words, np.int64)
        for (n, _), start in zip(self.further, starts, strict=True):
            memory[n * rows.WIDTH + 2] = memory.ctypes.data + 8 * start
        return memory

    def renew(self, n: int) -> None:
        """Let a row that differs because of an equal number expect that object from now on."""
        if self.rows[n][0] in (rows.ENTRY, rows.CELL):
            now = what_is_in(self.meanings[n][0])
            if type(now) in PLAIN:
                self.words[n * rows.WIDTH + 3] = id(now)
                self.renewed[n] = now  # behind: until then the row expects the one that is let go of here

    # --- places ---------------------------------------------------------------------------------------------------

    def _add_place(self, place: Place) -> bool:
        read, held, key, value = place
        if read is contents:
            self._add(rows.CELL, held, 0, id(value), [place])
        elif read is sample and type(held) is list and len(value) == len(held):
            self._add_with(list(map(id, value)), rows.LIST, held, len(value), [place])
        elif read is entry:
            self._find_dictionary(held).note(place, key, value)
        elif read is size:
            known = self._find_dictionary(held)
            known.size = value
            known.sized.append(place)
        elif read is look_up and look_up(held, key) is not ABSENT:
            for dictionary in held:
                found = key in dictionary
                if found:
                    self._find_dictionary(dictionary).note(place, key, value)
                    break
                self._find_dictionary(dictionary).note_gaps(place, (key,))
        elif read is has_any:
            for dictionary in held:
                self._find_dictionary(dictionary).note_gaps(place, key)
        else:
            return False
        return True

    def _find_dictionary(self, held: Any) -> _Dictionary:
        if type(held) is types.MappingProxyType:
            (held,) = gc.get_referents(held)
        return self.dictionaries.setdefault(id(held), _Dictionary(held))

    def _add_dictionary(self, known: _Dictionary) -> None:
        held, values = known.held, known.values
        if known.is_quicker_in_turn():
            keys = list(dict.keys(held))
            words = [word for k in keys for word in (id(k), id(values[k]) if k in values else 0)]
            noted = [*known.places.values(), known.gaps, known.sized]
            places = {id(place): place for some in noted for place in some}
            self._add_with(words, rows.ALL, held, len(keys), list(places.values()))
            self.kept.append(keys)
            return
        if known.size is not None:
            self._add(rows.SIZE, held, 0, known.size, known.sized)
        for key, value in values.items():
            if type(key) not in PLAIN:
                self.asked += known.places[key]
            else:
                self._add(rows.ENTRY, held, id(key), id(value), known.places[key])
        for key in known.lacking:
            if type(key) not in PLAIN:
                self.asked += known.gaps
            else:
                self._add(rows.LACKS, held, id(key), 0, known.gaps)

    # --- arrays ---------------------------------------------------------------------------------------------------

    def _add_array(self, entered: Entered) -> bool:
        x, _, before = entered
        if x.dtype.kind not in "fcbiu" or type(before) not in (bytes, bytearray):
            return False
        flags, sampled = x.flags, len(before) < x.nbytes
        order = rows.C_ORDER if flags.c_contiguous else rows.FORTRAN_ORDER if flags.f_contiguous else rows.STRIDED
        if order == rows.STRIDED and (sampled or not x[0].flags.c_contiguous):
            return False
        first, step, width = 0, 0, x.nbytes
        if sampled:
            first, step, width = x.nbytes - x.itemsize, sample_step(x.size) * x.itemsize, x.itemsize
        elif order == rows.STRIDED:
            step, width = x.strides[0], x[0].nbytes
        elif order == rows.FORTRAN_ORDER:
            before = np.ndarray(x.shape, x.dtype, before).tobytes("F")
        data = np.frombuffer(before, np.uint8)
        words = [order, x.nbytes, first, step, width, len(before) // width]
        self._add_with(words, rows.BYTES, x, data.ctypes.data, [entered])
        self.kept.append(data)
        return True
