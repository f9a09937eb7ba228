"""The table of a native program: rows of compiled functions and the words that each of them gets.

A kernel's row holds its extents, and the address and the strides of each array. Loops, sums and copies are written
here; `selection.py` says which of them an operation becomes.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from fad.compile.codegen.llvm.loop_nest import kernel_module
from fad.compile.codegen.llvm.worker_pool import pool_module
from fad.compile.ir.kernel import Kernel, Node, facts
from fad.compile.ir.slice_writes import data_address
from fad.compile.ir.types import BYTES, LLVM_TYPE
from fad.compile.machine.thread_pool import pool
from fad.compile.schedule.buffers import Memory
from fad.compile.schedule.parallelize import cut, summed_axis
from fad.compile.schedule.strides import broadcast_strides, collapse, is_spread, mode
from fad.compile.schedule.tiles import find_tiles
from fad.core.programs.graph import Equation, Type

MOST_AXES = 4
_MANY = 1 << 13  # elements of a loop for which it pays to compile longer


def _read_as(kernel: Kernel, extents: tuple, strides: tuple) -> Kernel:
    """Return a kernel for arrays that lie otherwise."""
    every, n = (*kernel.types, *kernel.node_types), len(kernel.modes)
    modes = tuple([mode(BYTES[kernel.types[k]], strides[k], extents) for k in range(n)])
    outs = [BYTES[every[o]] for o in kernel.outs]
    spread = tuple([k for k, size in enumerate(outs) if is_spread(size, strides[n + k], extents)])
    return kernel._replace(rank=len(extents), modes=modes, spread=spread)


class Table:
    """The rows of a program: functions, and the words that each of them gets."""

    def __init__(self, memory: Memory):
        self.memory = memory
        self.graph = memory.graph
        self.kernels: dict[str, Callable] = {}
        self.words: list[int] = []  # all arguments of all kernels
        self.rows: list[tuple[str, int]] = []  # (function, first word)
        self.layouts: dict[Any, Any] = {}
        self.kept: list = []  # constants made on the way
        self.late: list[tuple[int, str]] = []  # (word, the function whose address it will be)

    def begin_row(self, name: str, text: Callable) -> None:
        """Begin the row of a function, whose words follow; ``text()`` gives its module."""
        self.kernels.setdefault(name, text)
        self.rows.append((name, len(self.words)))

    def point_to(self, i: int, offset: int = 0) -> None:
        """Append the address of a value, or of what lies some bytes behind its beginning."""
        self.words.append(self.memory.address(i, len(self.words), offset))

    def in_parts(self, name: str, text: Callable, count: int, length: int) -> None:
        """Begin the row of a function that the pool's threads run in parts, whose words follow; see `pool_module`."""
        self.kernels.setdefault(name, text)
        self.begin_row("pool_run", pool_module)
        self.late.append((len(self.words) + 1, name))
        self.words += [count, 0, length, pool().address]

    def layout(self, shape: tuple, arrays: list, kept: tuple = ()) -> tuple:
        """Collapse the axes over which all arrays run evenly; return the extents and each array's strides.

        Axes below ``kept`` belong to another group than the rest, with which they do not merge.
        """
        strides = tuple([broadcast_strides(a, shape) for a in arrays])
        key = (shape, strides, kept)
        found = self.layouts.get(key)
        if found is None:
            found = self.layouts[key] = collapse(shape, strides, kept)
        return found

    def add_loop(self, nodes, types, operands, outs, values, extents, strides, reduce="", stored=0) -> None:
        """Add a fused loop, whole or in parts; its operands and results are numbers of values."""
        graph = self.graph
        kinds = tuple(LLVM_TYPE[graph.types[i].dtype] for i in operands)
        at = self.memory.at
        modes = tuple(mode(at[i].itemsize, s, extents) for i, s in zip(operands, strides[: len(operands)], strict=True))
        moves = strides[len(operands) :]
        spread = tuple([n for n, o in enumerate(outs) if is_spread(at[o].itemsize, moves[n], extents)])
        spread = spread if not reduce else tuple([n for n in spread if n < stored])
        kernel = Kernel(len(extents), kinds, modes, nodes, types, tuple(values), reduce, spread, stored)
        everything = [*operands, *outs]
        split = cut(kernel, extents, strides)
        if split is None or split[0] != summed_axis(kernel):
            self.add_kernel(kernel, extents, strides, lambda k, offset, _: self._point(everything[k], offset), split)
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

        self.add_kernel(kernel, extents, (*strides[:first], *own), point, split)
        how = ("inner" if len(extents) == 1 else "axis0") + kernel.reduce[len(kernel.reduce.split(" ")[0]) :]
        for o, partial, steps in zip(outs, sums, strides[first:], strict=True):
            t = LLVM_TYPE[partial.dtype]
            total = Kernel(len(extents), (t,), ("c",), (), (), (0,), how)
            places = lambda k, offset, _, o=o, p=partial: data_address(p) if k == 0 else self._point(o, 0)
            self.add_kernel(total, (n, *rest), (partial.strides, steps), places)

    def _point(self, i: int, offset: int) -> int:
        return self.memory.address(i, len(self.words), offset)

    def add_kernel(self, kernel: Kernel, extents, strides, point: Callable, split: Any = None) -> None:
        """Add a kernel to the table, whole or in parts; ``point(k, offset, start)`` gives the address of array k."""
        tiles = [] if kernel.reduce else find_tiles(extents, strides, MOST_AXES)
        tiled = len(tiles) > 1 or (bool(tiles) and tiles[0][0] != extents)
        kernel = _read_as(kernel, *tiles[0][:2]) if tiled else kernel
        kernel = kernel._replace(apart=("s" in kernel.modes or bool(kernel.spread)) and math.prod(extents) >= _MANY)
        if not tiled:
            self._add_part(kernel, extents, strides, point, split)
            return
        for lengths, moves, starts in tiles:
            there = lambda k, offset, start, starts=starts: point(k, starts[k] + offset, start)
            self._add_part(kernel, lengths, moves, there, cut(kernel, lengths, moves))

    def _add_part(self, kernel: Kernel, extents, strides, point: Callable, split: Any) -> None:
        name, words = facts(kernel)
        if split is None:
            self.begin_row(name, lambda: kernel_module(kernel))
            self._row(words, extents, strides, point, 0, (0, extents[0]))
            return
        axis, bounds = split
        self.in_parts(name, lambda: kernel_module(kernel), len(bounds), len(words))
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

    def write(self, source, i, place, o, add, extents, strides) -> None:
        """Copy an array, value i if it is one, into a place in the memory of value o, or add it there."""
        t = LLVM_TYPE[place.dtype]
        kind = mode(source.itemsize, strides[0], extents)
        spread = is_spread(place.itemsize, strides[1], extents)
        if add:
            modes = (kind, "s" if spread else "c")
            node = (Node("({0} + {1})", (0, 1), t, False),)
            kernel = Kernel(len(extents), (t, t), modes, node, (t,), (2,), "", (0,) * spread)
            arrays = [(source, i), (place, o), (place, o)]
            strides = (strides[0], strides[1], strides[1])
        else:
            kernel = Kernel(len(extents), (t,), (kind,), (), (), (0,), "", (0,) * spread)
            arrays = [(source, i), (place, o)]

        def point(k: int, offset: int, _: int) -> int:
            array, value = arrays[k]
            if value is None:
                return data_address(array) + offset
            return self.memory.address_in(value, len(self.words), data_address(array) + offset)

        self.add_kernel(kernel, extents, strides, point, cut(kernel, extents))

    def reshape(self, eq: Equation) -> bool:
        """Copy an array that does not lie evenly into a new shape; false if it has too many axes."""
        (x,), (o,) = eq.ins, eq.outs
        source, place = self.memory.at[x], self.memory.at[o]
        if place.dtype not in LLVM_TYPE or not place.size or not place.flags.c_contiguous:
            return False
        place = place.reshape(source.shape)
        extents, strides = self.layout(source.shape, [source, place])
        if len(extents) > MOST_AXES:
            return False
        self.write(source, x, place, o, False, extents, strides)
        return True

    def copy(self, source: tuple, o: int) -> bool:
        """Copy an array, or one element everywhere, into a value; `source` is the array and the value it is, if any."""
        extents, strides = self.layout(self.memory.at[o].shape, [source[0], self.memory.at[o]])
        if len(extents) > MOST_AXES:
            return False
        if source[1] is None:
            self.kept.append(source[0])
        array, value = source
        self.write(array, value, self.memory.at[o], o, False, extents, strides)
        return True

    def expand(self, array: np.ndarray, i: int | None, shape: tuple) -> tuple[np.ndarray, int | None]:
        """Return an array, value i if it is one, broadcast to a shape in memory without gaps."""
        if i is None or i in self.graph.constants:
            return np.ascontiguousarray(np.broadcast_to(array, shape)), None
        v = len(self.graph.types)
        self.graph.types.append(Type(shape, array.dtype))
        self.memory.base[v] = v
        self.memory.at[v] = np.empty(shape, array.dtype)
        extents, strides = self.layout(shape, [array, self.memory.at[v]])
        self.write(array, i, self.memory.at[v], v, False, extents, strides)
        return self.memory.at[v], v

    def contiguous(self, i: int, rows: bool = False) -> int:
        """Return a value that lies in memory without gaps, a copy if need be; with `rows`, each of its rows does."""
        a = self.memory.at[i]
        if a.flags.c_contiguous or (rows and (a.ndim == 1 or (len(a) and a[0].flags.c_contiguous))):
            return i
        return self.copy_view(a, i)

    def copy_view(self, a: np.ndarray, i: int) -> int:
        """Return a value that is a copy, in memory without gaps, of a view of value i."""
        v = len(self.graph.types)
        self.graph.types.append(Type(a.shape, a.dtype))
        self.memory.base[v] = v
        if i in self.graph.constants:
            self.memory.at[v] = np.ascontiguousarray(a)
            return v
        self.memory.at[v] = np.empty(a.shape, a.dtype)
        extents, strides = self.layout(a.shape, [a, self.memory.at[v]])
        self.write(a, i, self.memory.at[v], v, False, extents, strides)
        return v
