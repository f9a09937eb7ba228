"""Products of a derivative with vectors: a function at its arguments as a linear map, and the passes that apply it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fad import tree
from fad.backends import like
from fad.core.tracing.tracer import Tracer
from fad.sparse.directions import apply, stack
from fad.sparse.program import Watch
from fad.transforms.arguments.check import as_value
from fad.transforms.arguments.mutation import check_own, own, recording
from fad.transforms.grad import refuse_integers
from fad.transforms.jacobian import check_kinds, chunks
from fad.transforms.jvp import jvp
from fad.transforms.vjp import Tape
from fad.transforms.vmap import vmap

_CACHED = 1 << 16  # numbers of an array that one core's cache holds, beside others
WIDE = 1 << 11  # numbers of a vector from which on each is multiplied with by itself
FEW = 4  # vectors up to which that is done, however short they are
_TOGETHER = 16  # vectors whose products are computed in one run then
_BESIDE = 6  # vectors from which on one more takes little memory beside them
_RECORDED = 8  # vectors up to which that is done in a program of `jit`, which grows with each


class OtherSize(Exception):
    """The output has not the size that it had at another point."""


@dataclass(eq=False)
class Seeds:
    """Vectors to multiply with: one drawn at random, if any, and behind it for each colour its members as ones."""

    colours: Any  # of each element; -1 for none
    count: int
    drawn: Any = None
    origins: Any = None  # which number of the drawn vector each element has, if not the one at its own place
    cut: dict = field(default_factory=dict)  # by the shapes of leaves, what `_cut_colours` finds

    def __len__(self) -> int:
        return self.count + (self.drawn is not None)

    @property
    def length(self) -> int:
        return self.colours.size

    def rows(self, start: int, stop: int) -> Any:
        """Return some of the vectors as rows."""
        drawn = self.drawn is not None
        rows = np.arange(start - drawn, stop - drawn)[:, None] == self.colours
        return np.concatenate([self._draw(slice(None))[None], rows[1:]]) if drawn and start == 0 else rows

    def parts(self, start: int, stop: int, leaves: list) -> list:
        """Return for each leaf what some of the vectors have in its place, as `fad.sparse.directions` takes it."""
        drawn, found = self.drawn is not None, []
        for x, (mine, colours, present) in zip(leaves, self._cut_colours(leaves), strict=True):
            parts = [
                (colours == k).astype(x.dtype) if k in present else None for k in range(start - drawn, stop - drawn)
            ]
            if drawn and start == 0:
                parts[0] = self._draw(mine).reshape(x.shape).astype(x.dtype)
            found.append(parts)
        return found

    def _cut_colours(self, leaves: list) -> list:
        """Return for each leaf which elements are its own, their colours, once where these repeat, and which occur."""
        shapes = tuple([x.shape for x in leaves])
        found = self.cut.get(shapes)
        if found is None:
            found, at = [], 0
            for x in leaves:
                mine = slice(at, at + x.size)
                colours = _shorten(self.colours[mine].reshape(x.shape))
                found.append((mine, colours, set(np.unique(colours).tolist())))
                at += x.size
            self.cut[shapes] = found
        return found

    def _draw(self, some: slice) -> Any:
        return self.drawn[some] if self.origins is None else self.drawn[self.origins[some]]


def _shorten(x: Any) -> Any:
    """Return an array with length 1 along the axes along which it repeats."""
    for axis in range(x.ndim):
        first = x[(slice(None),) * axis + (slice(0, 1),)]
        if x.shape[axis] > 1 and (x == first).all():
            x = first
    return x


class VectorMap:
    """A function of a list of arrays, at these arrays, as a map from one long vector to another.

    The last `own` arrays are held by nobody else. Where they are what is gathered of others, or of computed values,
    `kind` is the dtype of what is differentiated with respect to. Passes note the dtypes of the `results`, and what
    they do is watched.
    """

    def __init__(self, fun: Callable, xs: list, name: str, own: int = 0, kind: Any = None):
        self.fun, self.xs, self.name, self.own, self.kind = fun, xs, name, own, kind
        self.results: list = []
        self.inputs = sum(x.size for x in xs)

    def push(self, seeds: Seeds, chunk_size: Any, watch: Watch) -> Iterator[Any]:
        """Multiply the matrix by each of `seeds`; yield the products, some at a time, as rows of each leaf."""

        def pushed(tangents, keep):
            out, t = jvp(self.fun, tuple(self.xs), tangents)
            self._check_output(tree.leaves(tree.map(as_value, out)))
            return tree.leaves(t) or [np.zeros(0)]  # of no output: a matrix without rows

        return self._map_chunks("push", pushed, seeds, self.xs, chunk_size, watch)

    def pull(self, seeds: Seeds, chunk_size: Any, watch: Watch) -> Iterator[Any]:
        """Multiply each of `seeds` by the matrix; yield the products as `push` does."""
        others = self.xs[: len(self.xs) - self.own]
        copies = own(others)
        leaves, structure = tree.flatten((*copies, *self.xs[len(others) :]))
        tape = Tape(self.fun, structure, leaves, False, own=True)
        check_own(copies, others)
        values = tape.values()
        self._check_output(values)

        def pulled(cts, keep):
            return tree.leaves(tape.pull(list(cts), keep))

        return self._map_chunks("pull", pulled, seeds, values, chunk_size, watch)

    def _check_output(self, ys: list) -> None:
        refuse_integers(ys, self.name)
        check_kinds(ys, False, self.name, "output")
        self.results = [y.dtype for y in ys]

    def _map_chunks(
        self, side: str, run: Callable, seeds: Seeds, leaves: list, chunk_size: Any, watch: Watch
    ) -> Iterator[Any]:
        if sum(x.size for x in leaves) != seeds.length:
            raise OtherSize
        width = max(self.inputs, seeds.length)
        alone = width >= WIDE or seeds.count <= FEW
        if chunk_size == "auto" and alone and not watch.program.loops and _are_few(leaves, len(seeds)):
            yield from self._map_parts(side, run, seeds, leaves, watch)
            return
        watch.miss()
        bounds = np.cumsum([0, *[x.size for x in leaves]])
        for start, stop in _cut_into_chunks(len(seeds), width, chunk_size, leaves):
            cut = np.split(seeds.rows(start, stop), bounds[1:-1], axis=1)
            stacked = [
                like(x, c.reshape(stop - start, *x.shape).astype(x.dtype)) for c, x in zip(cut, leaves, strict=True)
            ]
            if stop - start > 1:
                yield vmap(lambda *rows: _flatten(run(rows, True)))(*stacked)
            else:  # what only the last product needs is dropped as it is read
                yield [y.reshape(1, -1) for y in run(tuple([x[0] for x in stacked]), stop < len(seeds))]

    def _map_parts(self, side: str, run: Callable, seeds: Seeds, leaves: list, watch: Watch) -> Iterator[Any]:
        """Run the passes for each vector by itself; yield what the drawn one gives first, and alone.

        Beside few others it would take much memory more: at a first call, which holds most, it runs alone then.
        """
        start, count, drawn = 0, len(seeds), seeds.drawn is not None
        while start < count:
            alone = drawn and watch.noting and count <= _BESIDE and not start
            stop = 1 if alone else min(start + _TOGETHER, count)
            keep = stop < count
            parts, steps = apply(lambda *xs, keep=keep: run(xs, keep), seeds.parts(start, stop, leaves), leaves)
            watch.meet(side, steps)
            del steps
            if drawn and not start:
                yield [stack(parts, 0, 1)]
            if stop > 1 or not drawn:
                yield [stack(parts, int(drawn and not start), stop - start)]
            start = stop


def _are_few(leaves: list, count: int) -> bool:
    """Return whether so many vectors may be multiplied with by themselves."""
    if recording.get() is None:
        return not is_traced(leaves)
    return count <= _RECORDED and not any(type(x) is Tracer and type(x.wrapped) is Tracer for x in leaves)


def _flatten(leaves: list) -> list:
    return [x.reshape(-1) for x in leaves]


def _cut_into_chunks(n: int, width: int, chunk_size: Any, leaves: list) -> list:
    """Cut n passes into ranges, by themselves so that arrays with a row for each stay in the cache of a core."""
    if chunk_size == "auto" and not is_traced(leaves):
        chunk_size = max(1, _CACHED // max(1, width))
    return list(chunks(n, width, chunk_size))


def is_traced(leaves: list) -> bool:
    return any(type(x) is not np.ndarray and not isinstance(x, np.generic) for x in leaves)
