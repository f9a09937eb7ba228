"""Sets of inputs of which each lies in one block: what elementwise work on gathered arrays depends on.

Observation or element number k gathers its own numbers and works on those, so that each of its results depends on some
of a few inputs: the block of k. Such a set is the number of a block and some bits, one for each input in it. That takes
a fifth of the memory of the inputs' numbers, and to unite two sets is one operation on integers. What mixes blocks is
left to `fad.sparse.sets`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse

BITS = 64
NONE = -1  # the block of an empty set


@dataclass(eq=False)
class Blocks:
    """Sets of inputs, one for each element of an array, each of which lies in one block.

    ``inside[a]`` says for the blocks from number a on how many they are, and for each bit which input it is: number
    ``base + stride * k`` in the k-th of them.
    """

    block: Any
    bits: Any
    inside: dict
    inputs: int

    def gather(self, places: Any) -> Blocks:
        """Return the sets of the elements at `places`; those of place -1 are empty."""
        if places.size == self.block.size and np.array_equal(places, np.arange(places.size)):
            return self
        some = np.flatnonzero(places >= 0)
        if some.size < places.size:
            return self._place(some, places[some], places.size)
        return self._with(self.block[places], self.bits[places])

    def move(self, run: Callable, sets: list, shapes: list) -> Blocks:
        """Return what an operation that moves numbers makes of sets, of arrays of some shapes; None are empty."""

        def apply(name: str, empty: int) -> Any:
            kind = getattr(self, name).dtype
            parts = [
                np.broadcast_to(kind.type(empty), shape) if s is None else getattr(s, name).reshape(shape)
                for s, shape in zip(sets, shapes, strict=True)
            ]
            return run(*parts).reshape(-1)

        return self._with(apply("block", NONE), apply("bits", 0))

    def scatter(self, rows: Any, columns: Any, size: int) -> Blocks | None:
        """Return sets of `size` elements, number ``rows[i]`` that of element ``columns[i]``; None if one has two."""
        if rows.size and np.bincount(rows, minlength=size).max() > 1:
            return None
        return self._place(rows, columns, size)

    def _place(self, rows: Any, columns: Any, size: int) -> Blocks:
        block, bits = np.full(size, NONE, self.block.dtype), np.zeros(size, self.bits.dtype)
        block[rows], bits[rows] = self.block[columns], self.bits[columns]
        return self._with(block, bits)

    def join(self, other: Blocks) -> Blocks | None:
        """Return the union with other sets, element by element; None if one would reach into two blocks."""
        block = self.block
        if block is not other.block:
            differ = block != other.block
            if differ.any():
                differ &= (block >= 0) & (other.block >= 0)
                if differ.any():
                    return None
                block = np.maximum(block, other.block)
        bits = self.bits | other.bits
        for one in (self, other):
            if np.array_equal(bits, one.bits):
                return one
        return self._with(block, bits)

    def over(self, shape: tuple, axes: tuple) -> Blocks | None:
        """Return the union over axes; None if it would reach into two blocks."""
        block = self.block.reshape(shape)
        highest = block.max(axis=axes, keepdims=True, initial=NONE)
        if ((block != highest) & (block >= 0)).any():
            return None
        bits = np.bitwise_or.reduce(self.bits.reshape(shape), axis=axes, initial=0)
        return self._with(highest.reshape(-1), bits.reshape(-1))

    def count(self) -> int:
        """Return how many members all sets together have."""
        return int(np.bitwise_count(self.bits).sum(dtype=np.int64))

    def expand(self, kind: Any) -> Any:
        """Return the same sets as a sparse matrix of booleans, element by input, with indices of a dtype."""
        every = self._expand_alike(kind)
        if every is not None:
            return every
        indptr = np.zeros(self.bits.size + 1, kind)
        np.cumsum(np.bitwise_count(self.bits), out=indptr[1:])
        columns, at = np.empty(indptr[-1], kind), indptr[:-1].copy()
        for first, (length, members) in self.inside.items():
            mine = self.block >= first
            mine &= self.block < first + length
            for n, (base, stride) in enumerate(members):
                some = np.flatnonzero(mine & (self.bits & self.bits.dtype.type(1 << n)).astype(bool))
                columns[at[some]] = base + stride * (self.block[some] - first)
                at[some] += 1
        return scipy.sparse.csr_array((np.ones(columns.size, bool), columns, indptr), (self.bits.size, self.inputs))

    def _expand_alike(self, kind: Any) -> Any:
        """Return the matrix if all sets have the same bits, of blocks of the same inputs; else None."""
        if not self.bits.size or self.bits.min() != self.bits.max():
            return None
        lowest = self.block.min()
        first = max([f for f in self.inside if f <= lowest], default=None)
        if first is None or self.block.max() >= first + self.inside[first][0]:
            return None
        members = [m for n, m in enumerate(self.inside[first][1]) if self.bits[0] >> self.bits.dtype.type(n) & 1]
        if not members:
            return None
        columns = np.empty((self.bits.size, len(members)), kind)
        block = self.block - self.block.dtype.type(first)
        for n, (base, stride) in enumerate(members):
            np.multiply(block, stride, out=columns[:, n], casting="unsafe")
            columns[:, n] += base
        indptr = np.arange(0, columns.size + 1, len(members), dtype=kind)
        return scipy.sparse.csr_array(
            (np.ones(columns.size, bool), columns.reshape(-1), indptr), (self.bits.size, self.inputs)
        )

    def _with(self, block: Any, bits: Any) -> Blocks:
        return Blocks(block, bits, self.inside, self.inputs)


def number_blocks(starts: list, shapes: list, inputs: int, kind: Any) -> list:
    """Return the sets of arrays of inputs themselves; None for those of which a block would have too many.

    The elements of array number i are the inputs from ``starts[i]`` on. Its longest axis counts the blocks: arrays in
    which that is of one length have them in common.
    """
    found: list = []
    firsts: dict = {}
    inside: dict = {}
    first = 0
    for start, shape in zip(starts, shapes, strict=True):
        length = max(shape, default=1)
        axis = shape.index(length) if shape else 0
        before, behind = math.prod(shape[:axis]), math.prod(shape[axis + 1 :])
        if length not in firsts:
            firsts[length], inside[first] = first, (length, [])
            first += length
        members = inside[firsts[length]][1]
        bit = len(members)
        if not length or bit + before * behind > BITS:
            found.append(None)
            continue
        members += [(start + p * length * behind + q, behind) for p in range(before) for q in range(behind)]
        bits = np.uint64(1) << np.arange(bit, len(members), dtype=np.uint64).reshape(before, 1, behind)
        block = np.arange(firsts[length], firsts[length] + length, dtype=kind)[:, None]
        found.append([np.broadcast_to(x, (before, length, behind)) for x in (block, bits)])
    most = max([len(members) for _, members in inside.values()], default=0)
    width = next(np.dtype(f"u{size}") for size in (1, 2, 4, 8) if 8 * size >= most)
    return [p and Blocks(p[0].reshape(-1), p[1].astype(width).reshape(-1), inside, inputs) for p in found]
