"""The table of a native program: rows of compiled functions and the words that each of them gets.

A kernel's row holds its extents, and the address and the strides of each array. Loops, sums and copies are written
here; `assemble.py` decides which of them a program needs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from fad.compile.codegen.llvm.loop_nest import kernel_text
from fad.compile.codegen.llvm.worker_pool import pool_text
from fad.compile.ir.kernel import Kernel, Node, facts
from fad.compile.ir.slice_writes import data_address
from fad.compile.ir.types import LLVM_TYPE
from fad.compile.machine.thread_pool import pool
from fad.compile.schedule.buffers import Memory
from fad.compile.schedule.parallelize import cut, summed_axis
from fad.compile.schedule.strides import broadcast_strides, collapse, mode
from fad.core.graph import Equation, Graph, Type

MOST_AXES = 4


class Table(Memory):
    """The rows of a program on its memory."""

    def __init__(self, graph: Graph, inner: bool = False, index: int = -1, carried: Iterable = ()):
        super().__init__(graph, inner, index, carried)
        self.kernels: dict[str, Callable] = {}
        self.words: list[int] = []  # all arguments of all kernels
        self.table: list[tuple[str, int]] = []  # (function, first word)
        self.layouts: dict[Any, tuple] = {}
        self.kept: list = []  # constants made on the way
        self.late: list[tuple[int, str]] = []  # (word, the function whose address it will be)

    def _function(self, name: str, text: Callable) -> None:
        self.kernels.setdefault(name, text)
        self.table.append((name, len(self.words)))

    def in_parts(self, name: str, text: Callable, count: int, length: int) -> None:
        """Begin the row of a function that the pool's threads run in parts, whose words follow; see `pool_text`."""
        self.kernels.setdefault(name, text)
        self._function("pool_run", pool_text)
        self.late.append((len(self.words) + 1, name))
        self.words += [count, 0, length, pool().address]

    def _layout(self, shape: tuple, arrays: list, kept: tuple = ()) -> tuple:
        """Collapse the axes over which all arrays run evenly; return the extents and each array's strides.

        Axes below ``kept`` belong to another group than the rest, with which they do not merge.
        """
        strides = tuple([broadcast_strides(a, shape) for a in arrays])
        key = (shape, strides, kept)
        found = self.layouts.get(key)
        if found is None:
            found = self.layouts[key] = collapse(shape, strides, kept)
        return found

    def _kernel(self, nodes, types, operands, outs, values, extents, strides, reduce="", stored=0) -> None:
        graph = self.graph
        kinds = tuple(LLVM_TYPE[graph.types[i].dtype] for i in operands)
        modes = tuple(mode(self.at[i], s, extents) for i, s in zip(operands, strides[: len(operands)], strict=True))
        kernel = Kernel(len(extents), kinds, modes, nodes, types, tuple(values), reduce, False, stored)
        everything = [*operands, *outs]
        split = cut(kernel, extents, strides)
        if split is None or split[0] != summed_axis(kernel):
            self._rows(kernel, extents, strides, lambda k, offset, _: self._point(everything[k], offset), split)
        else:
            self._sum_of_parts(kernel, everything, extents, strides, split)

    def _sum_of_parts(self, kernel: Kernel, everything: list, extents, strides, split: tuple) -> None:
        """Add up in parts: the parts' sums go into an array of their own, and are added after."""
        first, n = len(kernel.modes) + kernel.stored, len(split[1])
        outs, rest = everything[first:], extents[1:]
        sums = [np.empty((n, *rest), self.graph.types[o].dtype) for o in outs]
        self.kept += sums
        numbers = {start: k for k, (start, _) in enumerate(split[1])}
        own = [(0, *p.strides[1:]) for p in sums]

        def point(k: int, offset: int, start: int) -> int:
            if k < first:
                return self._point(everything[k], offset)
            return data_address(sums[k - first][numbers[start] :])

        self._rows(kernel, extents, (*strides[:first], *own), point, split)
        how = ("inner" if len(extents) == 1 else "axis0") + kernel.reduce[len(kernel.reduce.split(" ")[0]) :]
        for o, partial, steps in zip(outs, sums, strides[first:], strict=True):
            t = LLVM_TYPE[partial.dtype]
            total = Kernel(len(extents), (t,), ("c",), (), (), (0,), how)
            places = lambda k, offset, _, o=o, p=partial: data_address(p) if k == 0 else self._point(o, 0)
            self._rows(total, (n, *rest), (partial.strides, steps), places)

    def _point(self, i: int, offset: int) -> int:
        return self.address(i, len(self.words), offset)

    def _rows(self, kernel: Kernel, extents, strides, point: Callable, split: Any = None) -> None:
        """Add a kernel to the table, whole or in parts; ``point(k, offset, start)`` gives the address of array k."""
        name, words = facts(kernel)
        if split is None:
            self._function(name, lambda: kernel_text(kernel))
            self._row(words, extents, strides, point, 0, (0, extents[0]))
            return
        axis, bounds = split
        self.in_parts(name, lambda: kernel_text(kernel), len(bounds), len(words))
        for part in bounds:
            self._row(words, extents, strides, point, axis, part)

    def _row(self, words, extents, strides, point, axis: int, part: tuple[int, int]) -> None:
        start, stop = part
        for word in words:
            if word[0] == "n":
                self.words.append(stop - start if word[1] == axis else extents[word[1]])
            elif word[0] == "p":
                offset = start * strides[word[1]][axis] if start else 0
                self.words.append(point(word[1], offset, start))
            else:
                self.words.append(strides[word[1]][word[2]])

    # --- copies ------------------------------------------------------------------------------------------------------

    def _write(self, source, i, place, o, add, extents, strides) -> None:
        t = LLVM_TYPE[place.dtype]
        kind = mode(source, strides[0], extents)
        spread = extents[-1] > 1 and strides[1][-1] != place.itemsize
        if add:
            modes = (kind, "s" if spread else "c")
            node = (Node("({0} + {1})", (0, 1), t, False),)
            kernel = Kernel(len(extents), (t, t), modes, node, (t,), (2,), "", spread)
            arrays = [(source, i), (place, o), (place, o)]
            strides = (strides[0], strides[1], strides[1])
        else:
            kernel = Kernel(len(extents), (t,), (kind,), (), (), (0,), "", spread)
            arrays = [(source, i), (place, o)]

        def point(k: int, offset: int, _: int) -> int:
            array, value = arrays[k]
            if value is None:
                return data_address(array) + offset
            return self.address_in(value, len(self.words), data_address(array) + offset)

        self._rows(kernel, extents, strides, point, cut(kernel, extents))

    def _reshape(self, eq: Equation) -> bool:
        """Copy an array that does not lie evenly into a new shape; false if it has too many axes."""
        (x,), (o,) = eq.ins, eq.outs
        source, place = self.at[x], self.at[o]
        if place.dtype not in LLVM_TYPE or not place.size or not place.flags.c_contiguous:
            return False
        place = place.reshape(source.shape)
        extents, strides = self._layout(source.shape, [source, place])
        if len(extents) > MOST_AXES:
            return False
        self._write(source, x, place, o, False, extents, strides)
        return True

    def copy(self, source: tuple, o: int) -> bool:
        """Copy an array, or one element everywhere, into a value; `source` is the array and the value it is, if any."""
        extents, strides = self._layout(self.at[o].shape, [source[0], self.at[o]])
        if len(extents) > MOST_AXES:
            return False
        if source[1] is None:
            self.kept.append(source[0])
        self._write(*source, self.at[o], o, False, extents, strides)
        return True

    def expanded(self, array: np.ndarray, i: int | None, shape: tuple) -> tuple[np.ndarray, int | None]:
        """Return an array, value i if it is one, broadcast to a shape in memory without gaps."""
        if i is None or i in self.graph.constants:
            return np.ascontiguousarray(np.broadcast_to(array, shape)), None
        v = len(self.graph.types)
        self.graph.types.append(Type(shape, array.dtype))
        self.base[v] = v
        self.at[v] = np.empty(shape, array.dtype)
        extents, strides = self._layout(shape, [array, self.at[v]])
        self._write(array, i, self.at[v], v, False, extents, strides)
        return self.at[v], v

    def contiguous(self, i: int, rows: bool = False) -> int:
        """Return a value that lies in memory without gaps, a copy if need be; with `rows`, each of its rows does."""
        a = self.at[i]
        if a.flags.c_contiguous or (rows and (a.ndim == 1 or (len(a) and a[0].flags.c_contiguous))):
            return i
        v = len(self.graph.types)
        self.graph.types.append(self.graph.types[i])
        self.base[v] = v
        if i in self.graph.constants:
            self.at[v] = np.ascontiguousarray(a)
            return v
        self.at[v] = np.empty(a.shape, a.dtype)
        extents, strides = self._layout(a.shape, [a, self.at[v]])
        self._write(a, i, self.at[v], v, False, extents, strides)
        return v
