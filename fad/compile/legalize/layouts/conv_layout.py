"""Batch-innermost layout: where convolutions run in vectors along the examples, which lie last in memory.

A convolution's operands and results of shape (N, C, *spatial) are kept as (C, *spatial, N), and so is what elementwise
operations, slices, scatters and sums make of them. In that order every window of an image, and every second pixel, is
contiguous for N elements, and a sum for each channel is one over neighbours in memory. Only what does not fit in (a
reshape, an output) gets the arrays in their own order: as views.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fad.compile.ir.builder import Builder
from fad.compile.ir.expressions import template
from fad.compile.ir.lowered_ops import FORWARD, INPUT, KERNEL, REDUCTIONS
from fad.compile.ir.slice_writes import as_slices
from fad.compile.machine.cpu import register_bytes
from fad.core.primitives.primitive import Primitive
from fad.core.programs.graph import Equation, Graph
from fad.ops.arrangement.structural import concatenate_p, reshape_p, transpose_p
from fad.ops.places.indexing import getitem_p, scatter_p
from fad.ops.products.conv import conv_input_p, conv_kernel_p, conv_p
from fad.ops.products.windows import margins

_CONVOLUTIONS = (conv_p, conv_input_p, conv_kernel_p)
MOST_AXES = 4
_REAL = (np.dtype(float), np.dtype(np.float32))
MOST_WEIGHTS = 1 << 19  # bytes, from which on places of one vector each are done by BLAS
SMALL = 10**6  # multiplications that are done here even if most of each vector stays empty


def move_batch_innermost(graph: Graph) -> Graph:
    """Write convolutions as operations with kernels, and what stands around them in the same order of axes."""
    if not any(eq.prim in _CONVOLUTIONS for eq in graph.equations):
        return graph
    work = _Rewriter(graph)
    for eq in graph.equations:
        work.equation(eq)
    for o in graph.outputs:
        work.plain(o)
    return work.finish()


class _Rewriter(Builder):
    def __init__(self, graph: Graph):
        super().__init__(graph)
        self.outputs = set(graph.outputs)
        self.permuted: dict[int, tuple[tuple, int]] = {}  # value -> (axes, the one whose permutation by these it is)
        self.missing: set[int] = set()  # values that exist only in permuted form
        self.known: dict[tuple, int] = {}

    def equation(self, eq: Equation) -> None:
        rule = _RULES.get(eq.prim)
        if eq.prim not in _CONVOLUTIONS and not any(i in self.permuted for i in eq.ins):
            rule = None
        elif rule is None and len(eq.outs) == 1 and template(self.graph, eq, self.graph.constants) is not None:
            rule = _elementwise
        if rule is None or not rule(self, eq):
            for i in eq.ins:
                self.plain(i)
            self.equations.append(eq)

    def plain(self, i: int) -> int:
        """Materialise a value in its original layout, and return it."""
        if i in self.missing:
            self.missing.discard(i)
            axes, j = self.permuted[i]
            found = self.transpose(j, axes)
            if i in self.outputs:  # a result is no view
                found = self.astype(found, self.types[i].dtype)
            self.define(i, found)
        return i

    def result(self, eq: Equation, prim: Primitive, ins: tuple, params: dict, axes: tuple) -> bool:
        """Compute a result permuted: by `axes` it becomes what it should be."""
        (o,) = eq.outs
        if axes == tuple(range(len(axes))):
            self.equations.append(Equation(prim, ins, params, eq.outs, eq.place))
            return True
        t = self.types[o]
        self.permuted[o] = (axes, self.new(prim, ins, params, _turn(t.shape, axes), t.dtype))
        self.missing.add(o)
        return True

    def like(self, i: int, axes: tuple) -> int:
        """Return a value such that permuted by `axes` it is value i, made of as many axes by ones in front."""
        t = self.types[i]
        if not t.shape:
            return i
        if axes == tuple(range(len(t.shape))):
            return self.plain(i)
        if self.permuted.get(i, (None,))[0] == axes:
            return self.permuted[i][1]
        key = (i, axes)
        if key not in self.known:
            x = self.plain(i)
            shape = (1,) * (len(axes) - len(t.shape)) + t.shape
            if shape != t.shape:
                x = self.reshape(x, shape)
            self.known[key] = self.transpose(x, [axes.index(d) for d in range(len(axes))])
        return self.known[key]

    def even(self, i: int, axes: tuple) -> int:
        """Return the same, in that order in memory as well: copied once, lest loops read it element by element."""
        x = self.like(i, axes)
        if i in self.graph.constants or x == i or self.permuted.get(i, (None,))[0] == axes:
            return x
        key = (i, axes, "even")
        if key not in self.known:
            self.known[key] = self.concatenate([x], 0)  # a join is not fused with what reads it
        return self.known[key]

    def axes(self, i: int) -> tuple:
        return self.permuted[i][0]


def _turn(parts: Any, axes: tuple) -> tuple:
    """Bring what belongs to a value's axes into the order of the value that it is a permutation of."""
    found = [None] * len(axes)
    for part, a in zip(parts, axes, strict=True):
        found[a] = part
    return tuple(found)


# --- convolutions ----------------------------------------------------------------------------------------------------


def _convolution(work: _Rewriter, eq: Equation) -> bool:
    types, p = work.types, eq.params
    x, prim, rank = types[eq.ins[0]], eq.prim, len(types[eq.ins[0]].shape)
    last = (rank - 1, *range(rank - 1))
    if not is_real(work.graph, eq):
        return False
    if _is_pointwise(p, types[eq.outs[0] if prim is conv_kernel_p else eq.ins[1]].shape[2:]):
        return _pointwise(work, eq, last)
    inner = can_lay(work.graph, eq)
    if inner is None:
        return False
    axes = last if inner == "examples" else tuple(range(rank))
    options = {"inner": inner, **{k: p[k] for k in ("stride", "dilation", "groups")}}
    if prim is conv_kernel_p:
        ins = (_pad(work, eq.ins[0], axes, p["padding"]), _pad(work, eq.ins[1], axes))
        work.equations.append(Equation(KERNEL, ins, {**options, "kernel": p["kernel"]}, eq.outs, eq.place))
        return True
    work.plain(eq.ins[1])
    if prim is conv_p:
        ins = (_pad(work, eq.ins[0], axes, p["padding"]), eq.ins[1])
        return work.result(eq, FORWARD, ins, options, axes)
    wide = margins(p["size"], x.shape[2:], types[eq.ins[1]].shape[2:], p)
    options |= {"size": p["size"], "low": tuple([lo for lo, _ in p["padding"]]), "shift": tuple([lo for lo, _ in wide])}
    ins = (_pad(work, eq.ins[0], axes, wide), _by_channel(work, eq.ins[1], p["groups"]))
    return work.result(eq, INPUT, ins, options, axes)


def _by_channel(work: _Rewriter, w: int, groups: int) -> int:
    """Return weights of shape (O, C / groups, *kernel) copied to (groups, C / groups, O / groups, *kernel)."""
    key = (w, groups, "by channel")
    if key not in work.known:
        t = work.types[w]
        rows, channels, *kernel = t.shape
        y = work.reshape(w, (groups, rows // groups, channels, *kernel))
        y = work.transpose(y, (0, 2, 1, *range(3, 3 + len(kernel))))
        work.known[key] = work.astype(y, t.dtype)
    return work.known[key]


def _is_pointwise(p: dict, kernel: tuple) -> bool:
    return {*kernel, *p["stride"], p["groups"]} == {1} and not any(lo or hi for lo, hi in p["padding"])


def _pointwise(work: _Rewriter, eq: Equation, last: tuple) -> bool:
    """Write a convolution with windows of one place as a matrix product: of all places, or for each example."""
    types, prim, o = work.types, eq.prim, eq.outs[0]
    together = any(i in work.permuted and work.axes(i) == last for i in eq.ins)
    axes = last if together else tuple(range(len(last)))
    if prim is conv_kernel_p:
        x, c = (_matrix(work, work.like(i, axes), together) for i in eq.ins)
        z = work.matmul(c, work.matrix_transpose(x))
        z = z if together else work.sum(z, (0,))
        return work.result(eq, reshape_p, (z,), {"shape": types[o].shape}, tuple(range(len(last))))
    w = _matrix(work, work.plain(eq.ins[1]), True)
    w = work.matrix_transpose(w) if prim is conv_input_p else w
    z = work.matmul(w, _matrix(work, work.like(eq.ins[0], axes), together))
    return work.result(eq, reshape_p, (z,), {"shape": _turn(types[o].shape, axes)}, axes)


def _matrix(work: _Rewriter, i: int, together: bool) -> int:
    """Return a value as one matrix, or as one for each of the first axis."""
    shape, kept = work.types[i].shape, 1 if together else 2
    return work.reshape(i, (*shape[:kept], math.prod(shape[kept:])))


def _pad(work: _Rewriter, i: int, axes: tuple, padding: Any = ()) -> int:
    """Return a permuted value with zeros around its spatial axes, in memory of its own unless it is there already."""
    key = (i, axes, tuple(map(tuple, padding)), "padded")
    if key not in work.known:
        t = work.types[i]
        wide = any(lo or hi for lo, hi in padding)
        # a loop over a piece of what is wide has no more axes
        x = work.even(i, axes) if not wide or len(axes) > MOST_AXES else work.like(i, axes)
        if wide:
            frame = ((0, 0), (0, 0), *padding)
            whole = [lo + n + hi for n, (lo, hi) in zip(t.shape, frame, strict=True)]
            index = [slice(lo, lo + n) if lo or hi else slice(None) for n, (lo, hi) in zip(t.shape, frame, strict=True)]
            x = work.scatter([x], [_turn(index, axes)], _turn(whole, axes))
        work.known[key] = x
    return work.known[key]


# --- what stands around them -----------------------------------------------------------------------------------------


def _elementwise(work: _Rewriter, eq: Equation) -> bool:
    shape = work.types[eq.outs[0]].shape
    axes = next((work.axes(i) for i in eq.ins if i in work.permuted and work.types[i].shape == shape), None)
    if axes is None:
        return False
    ins = [work.even(i, axes) if work.types[i].shape == shape else work.like(i, axes) for i in eq.ins]
    return work.result(eq, eq.prim, tuple(ins), eq.params, axes)


def _reduction(work: _Rewriter, eq: Equation) -> bool:
    axes, p = work.axes(eq.ins[0]), eq.params
    reduced = tuple(sorted(axes[d] for d in p["axis"]))
    ins = (work.like(eq.ins[0], axes),)
    if p["keepdims"]:
        return work.result(eq, eq.prim, ins, {"axis": reduced, "keepdims": True}, axes)
    left = [a for d, a in enumerate(axes) if d not in p["axis"]]
    rest = tuple([sorted(left).index(a) for a in left])
    return work.result(eq, eq.prim, ins, {"axis": reduced, "keepdims": False}, rest)


def _getitem(work: _Rewriter, eq: Equation) -> bool:
    axes = work.axes(eq.ins[0])
    index = as_slices(eq.params["template"], len(axes))
    if index is None or len(eq.ins) > 1:
        return False
    return work.result(eq, eq.prim, (work.like(eq.ins[0], axes),), {"template": _turn(index, axes)}, axes)


def _scatter(work: _Rewriter, eq: Equation) -> bool:
    axes = next(work.axes(i) for i in eq.ins if i in work.permuted)
    shape = eq.params["shape"]
    indices = [as_slices(index, len(shape)) for index in eq.params["indices"]]
    if len(axes) != len(shape) or None in indices or any(len(work.types[i].shape) != len(shape) for i in eq.ins):
        return False
    params = {**eq.params, "shape": _turn(shape, axes), "indices": tuple([_turn(index, axes) for index in indices])}
    return work.result(eq, eq.prim, tuple([work.like(i, axes) for i in eq.ins]), params, axes)


def _join(work: _Rewriter, eq: Equation) -> bool:
    axes = next(work.axes(i) for i in eq.ins if i in work.permuted)
    ins = tuple([work.like(i, axes) for i in eq.ins])
    return work.result(eq, eq.prim, ins, {"axis": axes[eq.params["axis"]]}, axes)


def _permute(work: _Rewriter, eq: Equation) -> bool:
    axes, j = work.permuted[eq.ins[0]]
    work.permuted[eq.outs[0]] = (tuple([axes[a] for a in eq.params["axes"]]), j)
    work.missing.add(eq.outs[0])
    return True


_RULES = {
    **dict.fromkeys(_CONVOLUTIONS, _convolution), **dict.fromkeys(REDUCTIONS, _reduction), getitem_p: _getitem,
    scatter_p: _scatter, concatenate_p: _join, transpose_p: _permute,
}  # fmt: skip


def is_real(graph: Graph, eq: Equation) -> bool:
    """Return whether all that an operation reads and computes is of one real dtype, and not empty."""
    types = [graph.types[i] for i in (*eq.ins, *eq.outs)]
    return types[0].dtype in _REAL and all(t.size and t.dtype == types[0].dtype for t in types)


def can_lay(graph: Graph, eq: Equation) -> str | None:
    """Return along which axis a convolution runs in vectors: "examples", "last", or None if NumPy does it."""
    types = [graph.types[i] for i in (*eq.ins, *eq.outs)]
    if not register_bytes():
        return None
    lanes = register_bytes() // types[-1].dtype.itemsize
    output = types[{conv_p: 2, conv_input_p: 0, conv_kernel_p: 1}[eq.prim]].shape
    n, last = output[0], output[-1]
    filled = last / (-(-last // lanes) * lanes) if eq.params["stride"][-1] == 1 else 0.0  # of the vectors
    kernel = types[2 if eq.prim is conv_kernel_p else 1]
    many = kernel.nbytes > MOST_WEIGHTS  # they are read once for each row of vectors
    if 2 * n >= lanes and n / (-(-n // lanes) * lanes) >= 0.8 * filled:
        return "examples" if n > lanes or not many else None
    small = math.prod(output) * math.prod(kernel.shape[1:]) < SMALL
    wide = filled >= 0.5 and (last > lanes or not many)
    return "last" if wide or (filled and small) else None
