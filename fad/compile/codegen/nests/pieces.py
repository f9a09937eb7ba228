"""Slices that are written into an array, one after the other, in one pass over its rows.

The backward pass of a stencil adds what each neighbour contributes. Done one after the other, every neighbour would be
a pass over the array; seen from the result an element is a sum of neighbours, as in an adjoint written by hand.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import ExitStack
from typing import NamedTuple

from fad.compile.codegen.nests.arrays import by_strides, put
from fad.compile.codegen.nests.values import Stored, Value, element, stored_view
from fad.compile.codegen.nests.writer import Index, Number, Writer

Range = tuple[int, int]  # where something begins and ends along an axis
_LEAST = 64  # elements that all pieces must reach
_SHARE = 2  # a piece has at most so many times the elements that all of them reach


class Piece(NamedTuple):
    """What is written to a box of an array, or added to what is there; the value has the shape of the box."""

    value: Value
    box: tuple[Range, ...]
    adds: bool


def write_pieces(w: Writer, place: Stored, pieces: list[Piece]) -> None:
    """Write pieces into an array in their order, element by element; none may be computed from the array itself."""
    run: list[Piece] = []
    for piece in pieces:
        if run and not _fit([*run, piece]):
            _write_run(w, place, run)
            run = []
        run.append(piece)
    _write_run(w, place, run)


def _fit(pieces: list[Piece]) -> bool:
    """Return whether pieces have most of their places in common."""
    size = _size(_common(pieces))
    return size >= _LEAST and all(_size(p.box) <= _SHARE * size for p in pieces)


def _common(pieces: list[Piece]) -> tuple[Range, ...]:
    ranges = zip(*[p.box for p in pieces], strict=True)
    return tuple([(max(a for a, _ in ends), min(b for _, b in ends)) for ends in ranges])


def _size(box: tuple[Range, ...]) -> int:
    return math.prod([max(0, b - a) for a, b in box])


def _write_run(w: Writer, place: Stored, pieces: list[Piece]) -> None:
    if len(pieces) > 1:
        _Rows(w, place, pieces).write()
        return
    (piece,) = pieces
    target = stored_view(w, place, tuple([b - a for a, b in piece.box]), _from([a for a, _ in piece.box]))
    put(w, piece.value, target, _adder(w, place.t) if piece.adds else None)


def _from(starts: list[int]) -> list:
    return [("axis", d, a, 1) for d, a in enumerate(starts)]


def _adder(w: Writer, t: str) -> Callable:
    return lambda old, new: Number(w.add(old.name, new.name, t), t)


class _Rows:
    """A loop over the rows of an array: rows that all pieces reach are one loop, others one for each piece."""

    def __init__(self, w: Writer, place: Stored, pieces: list[Piece]):
        self.w = w
        self.place = place
        self.pieces = pieces
        *self.outer, self.inner = by_strides(place)
        self.common = _common(pieces)

    def write(self) -> None:
        w, (low, high) = self.w, self.common[self.inner]
        at: list[Index] = [0] * len(self.place.shape)
        with ExitStack() as stack:
            for d in self.outer:
                first, last = min(p.box[d][0] for p in self.pieces), max(p.box[d][1] for p in self.pieces)
                at[d] = w.plus(stack.enter_context(w.loop(last - first)), first)
            reached = [self._reaches(p, at) for p in self.pieces]
            every = self._every(reached)
            if every is None:
                self._write_whole_row(at, low, high)
                return
            whole, parts, on = w.label(), w.label(), w.label()
            w.do(f"br i1 {every}, label %{whole}, label %{parts}")
            w.begin(whole)
            with w.block():
                self._write_whole_row(at, low, high)
            w.do(f"br label %{on}")
            w.begin(parts)
            with w.block():
                for piece, condition in zip(self.pieces, reached, strict=True):
                    self._write_part(piece, condition, at)
            w.do(f"br label %{on}")
            w.begin(on)

    def _reaches(self, piece: Piece, at: list[Index]) -> str | None:
        """Return the condition that a piece reaches a row; None if it reaches all."""
        w, found = self.w, None
        for d in self.outer:
            (a, b), first = piece.box[d], min(p.box[d][0] for p in self.pieces)
            if (a, b) != (first, max(p.box[d][1] for p in self.pieces)):
                inside = w.new(f"icmp ult i64 {w.plus(at[d], -a)}, {b - a}")
                found = inside if found is None else w.new(f"and i1 {found}, {inside}")
        return found

    def _every(self, conditions: list[str | None]) -> str | None:
        found = None
        for c in conditions:
            if c is not None:
                found = c if found is None else self.w.new(f"and i1 {found}, {c}")
        return found

    def _write_part(self, piece: Piece, condition: str | None, at: list[Index]) -> None:
        """Write one piece's part of a row."""
        w = self.w
        if condition is None:
            self._loop([piece], at, *piece.box[self.inner])
            return
        do, skip = w.label(), w.label()
        w.do(f"br i1 {condition}, label %{do}, label %{skip}")
        w.begin(do)
        with w.block():
            self._loop([piece], at, *piece.box[self.inner])
        w.do(f"br label %{skip}")
        w.begin(skip)

    def _write_whole_row(self, at: list[Index], low: int, high: int) -> None:
        """Write all pieces where they all are, and what each has before and behind."""
        self._loop(self.pieces, at, low, high)
        for piece in self.pieces:
            first, last = piece.box[self.inner]
            self._loop([piece], at, first, low)
            self._loop([piece], at, high, last)

    def _loop(self, pieces: list[Piece], at: list[Index], first: int, last: int) -> None:
        """Write a stretch of a row."""
        if last - first == 1:
            self._write_element(pieces, at, first)
        elif first < last:
            with self.w.loop(last - first) as j:
                self._write_element(pieces, at, self.w.plus(j, first))

    def _write_element(self, pieces: list[Piece], at: list[Index], j: Index) -> None:
        w, place = self.w, self.place
        index = [*at]
        index[self.inner] = j
        total = place.at(w, tuple(index)).name if pieces[0].adds else ""
        for piece in pieces:
            own = tuple([w.plus(i, -a) for i, (a, _) in zip(index, piece.box, strict=True)])
            new = element(w, piece.value, own).name
            total = w.add(total, new, place.t) if piece.adds else new
        w.write(place.t, total, place.address(w, tuple(index)))
