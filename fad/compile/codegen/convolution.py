"""Convolutions in native programs: products of the weights with windows that are read where they lie.

`fad/compile/legalize/layouts/conv_layout.py` writes a convolution and its two derivatives as the operations below,
which have kernels. They take an input that is padded already, and arrays whose innermost axis is long enough for
vectors: the examples where there are many (arrays are then (C, *spatial, N), and every window is contiguous), or the
last spatial axis. Where the elements of a window lie, a kernel reads in tables of offsets, which are made here from the
arrays' strides.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np

from fad.compile.codegen.llvm import conv_matmul
from fad.compile.codegen.program import Program
from fad.compile.ir.kernel import Kernel
from fad.compile.ir.lowered_ops import FORWARD, INPUT, KERNEL
from fad.compile.ir.slice_writes import data_address
from fad.compile.ir.types import BYTES, LLVM_TYPE
from fad.compile.machine.cpu import register_bytes
from fad.compile.schedule.parallelize import GRAIN, MOST_PARTS, SMALLEST
from fad.core.programs.graph import Equation
from fad.ops.products.windows import find_taps

MOST_PLACES = 1 << 20  # entries of a table
MOST_WRITTEN = 1 << 22  # elements of the sums of parts
LONGEST = 2048  # vectors that a sum adds up before it begins another
_COST = 0.03  # nanoseconds of a multiplication, for the decision where one is cut
_NANOS = 0.5  # and of reading a vector for a dot product


def is_convolution(eq: Equation) -> bool:
    """Return whether an operation is one of those above."""
    return eq.prim in (FORWARD, INPUT, KERNEL)


# --- tables ----------------------------------------------------------------------------------------------------------


def _table(axes: Iterable[tuple[int, tuple]]) -> np.ndarray:
    """Return the offsets at all indices of some axes, each a length and the strides of several arrays along it."""
    found = np.zeros((1, 1), np.int64)
    for n, strides in axes:
        steps = np.arange(n, dtype=np.int64)[:, None] * np.array(strides, np.int64)
        found = (found[:, None] + steps[None]).reshape(-1, len(strides))
    return np.ascontiguousarray(found)


class _Lay(NamedTuple):
    """Strides of an array in bytes: along channels, spatial axes and examples."""

    c: int
    spatial: tuple[int, ...]
    n: int


def _lay(x: np.ndarray, inner: str) -> _Lay:
    if inner == "examples":
        return _Lay(x.strides[0], x.strides[1:-1], x.strides[-1])
    return _Lay(x.strides[1], x.strides[2:], x.strides[0])


class _Products(NamedTuple):
    """One call of the product's kernel: tables, the length along vectors, and where in A, B and C it begins."""

    q: np.ndarray
    m: np.ndarray
    k: np.ndarray
    v: int
    starts: tuple[int, int, int]


def _outer(inner: str, extents: tuple, n: int) -> tuple[list[int], int]:
    """Return the extents of the axes that are not along vectors, outermost first, and of the one that is."""
    return (list(extents), n) if inner == "examples" else ([n, *extents[:-1]], extents[-1])


def _places(inner: str, extents: tuple, n: int, *steps: tuple[tuple, int]) -> list[tuple[int, tuple]]:
    """Return the axes over all outputs but those along vectors; `steps` are arrays' strides, spatial and by example."""
    outer, _ = _outer(inner, extents, n)
    per_axis = [spatial if inner == "examples" else (by_n, *spatial[:-1]) for spatial, by_n in steps]
    return [(m, tuple(s[d] for s in per_axis)) for d, m in enumerate(outer)]


def _forward_products(x: np.ndarray, w: np.ndarray, y: np.ndarray, p: dict) -> list[_Products]:
    inner, groups = p["inner"], p["groups"]
    a, c = _lay(x, inner), _lay(y, inner)
    rows, channels = w.shape[0] // groups, w.shape[1]
    out = y.shape[1:-1] if inner == "examples" else y.shape[2:]
    n = x.shape[-1 if inner == "examples" else 0]
    steps = tuple(s * t for s, t in zip(a.spatial, p["stride"], strict=True))
    places = _places(inner, out, n, ((0,) * len(out), 0), (steps, a.n), (c.spatial, c.n))
    q = _table([(groups, (rows * w.strides[0], channels * a.c, rows * c.c)), *places])
    taps = [(k, (w.strides[2 + d], a.spatial[d] * p["dilation"][d])) for d, k in enumerate(w.shape[2:])]
    k = _table([(channels, (w.strides[1], a.c)), *taps])
    return [_Products(q, _table([(rows, (w.strides[0], c.c))]), k, _outer(inner, out, n)[1], (0, 0, 0))]


def _input_products(c: np.ndarray, w: np.ndarray, x: np.ndarray, p: dict) -> list[_Products]:
    """Return a call for each remainder of a place in the result divided by the stride: the same taps meet all of it."""
    inner, groups, stride = p["inner"], p["groups"], p["stride"]
    a, z = _lay(c, inner), _lay(x, inner)
    (channels, rows), (by_group, by_channel, by_row, *by_tap) = w.shape[1:3], w.strides
    n = x.shape[-1 if inner == "examples" else 0]
    m = _table([(channels, (by_channel, z.c))])
    steps = tuple(s * t for s, t in zip(z.spatial, stride, strict=True))
    found = []
    for first in itertools.product(*[range(min(s, n)) for s, n in zip(stride, p["size"], strict=True)]):
        extents = tuple(-(-(n - r) // s) for n, r, s in zip(p["size"], first, stride, strict=True))
        places = _places(inner, extents, n, ((0,) * len(extents), 0), (a.spatial, a.n), (steps, z.n))
        q = _table([(groups, (by_group, rows * a.c, channels * z.c)), *places])
        k = _table([(rows, (by_row, a.c))])
        for d, r in enumerate(first):
            taps = find_taps(r + p["low"][d], w.shape[3 + d], p["dilation"][d], stride[d])
            steps_d = [(by_tap[d] * i, a.spatial[d] * (t + p["shift"][d])) for i, t in taps]
            k = (k[:, None] + np.array(steps_d, np.int64).reshape(1, -1, 2)).reshape(-1, 2)
        start = sum(r * s for r, s in zip(first, z.spatial, strict=True))
        found.append(_Products(q, m, np.ascontiguousarray(k), _outer(inner, extents, n)[1], (0, 0, start)))
    return found


# --- rows of the program's table -------------------------------------------------------------------------------------


def add_convolution(program: Program, eq: Equation) -> bool:
    """Add one of the operations above to a program's table; return false if NumPy must do it."""
    if not register_bytes():
        return False
    if eq.prim is KERNEL:
        return _add_dots(program, eq)
    x = _even(program, eq.ins[0])
    arrays = (program.memory.at[x], program.memory.at[eq.ins[1]], program.memory.at[eq.outs[0]])
    calls = (_forward_products if eq.prim is FORWARD else _input_products)(*arrays, eq.params)
    if any(len(t) > MOST_PLACES for call in calls for t in call[:3]):
        return False
    for call in calls:
        _add_products(program, call, (eq.ins[1], x, eq.outs[0]), LLVM_TYPE[arrays[0].dtype])
    return True


def _even(program: Program, i: int) -> int:
    """Return a value that is contiguous along its last axis, a copy if need be."""
    a = program.memory.at[i]
    return i if a.shape[-1] == 1 or a.strides[-1] == a.itemsize else program.table.contiguous(i)


def _keep_tables(program: Program, *tables: np.ndarray) -> list[int]:
    program.table.kept += tables
    return [data_address(t) for t in tables]


def _parts(length: int, count: int) -> list[tuple[int, int]]:
    step = -(-length // max(1, min(count, MOST_PARTS, length)))
    return [(a, min(step, length - a)) for a in range(0, length, step)]


def _start(program: Program, name: str, text: Callable, parts: int, words: int) -> None:
    if parts == 1:
        program.table.begin_row(name, text)
    else:
        program.table.in_parts(name, text, parts, words)


def _add_products(program: Program, call: _Products, values: tuple, t: str) -> None:
    """Add a product to the table, in parts of its places."""
    rows = next((r for r in (1, 4, 8) if len(call.m) <= r), 8)
    if register_bytes() < 64:
        rows = min(rows, 4)
    columns = 2 if call.v * BYTES[t] > register_bytes() else 1
    name = conv_matmul.product_name(t, rows, columns)
    nanos = len(call.q) * len(call.m) * max(1, len(call.k)) * call.v * _COST
    parts = _parts(len(call.q), int(nanos / GRAIN) if nanos >= SMALLEST else 1)
    q, m, k = _keep_tables(program, call.q, call.m, call.k)
    _start(program, name, lambda: conv_matmul.product_module(t, rows, columns), len(parts), len(conv_matmul.PRODUCT))
    for first, count in parts:
        for i, offset in zip(values, call.starts, strict=True):
            program.table.point_to(i, offset)
        program.table.words += [q + 24 * first, count, m, len(call.m), k, len(call.k), call.v]


def _add_dots(program: Program, eq: Equation) -> bool:
    p, (x, c), o = eq.params, eq.ins, eq.outs[0]
    x, c = _even(program, x), _even(program, c)
    inner, groups, w = p["inner"], p["groups"], program.memory.at[o]
    a, b = _lay(program.memory.at[c], inner), _lay(program.memory.at[x], inner)
    out = program.memory.at[c].shape[1:-1] if inner == "examples" else program.memory.at[c].shape[2:]
    n = program.memory.at[c].shape[-1 if inner == "examples" else 0]
    rows, channels = w.shape[0] // groups, w.shape[1]
    steps = tuple(s * t for s, t in zip(b.spatial, p["stride"], strict=True))
    g = _table([(groups, (rows * a.c, channels * b.c, rows * w.strides[0]))])
    m = _table([(rows, (a.c, w.strides[0]))])
    taps = [(k, (b.spatial[d] * p["dilation"][d], w.strides[2 + d])) for d, k in enumerate(w.shape[2:])]
    j = _table([(channels, (b.c, w.strides[1])), *taps])
    q = _table(_places(inner, out, n, (a.spatial, a.n), (steps, b.n)))
    if max(map(len, (g, m, j, q))) > MOST_PLACES:
        return False
    _dots(program, (c, x, o), (g, m, j, q), _outer(inner, out, n)[1])
    return True


def _dots(program: Program, values: tuple, tables: tuple, v: int) -> None:
    """Add dot products to the table: in parts of their terms, which are added up after, and of the taps."""
    (c, x, o), (g, m, j, q) = values, tables
    w = program.memory.at[o]
    t = LLVM_TYPE[w.dtype]
    vectors = -(-v * w.itemsize // register_bytes())
    nanos = len(g) * len(m) * len(j) * len(q) * vectors * _NANOS / 4
    wanted = int(nanos / GRAIN) if nanos >= SMALLEST else 1
    sums = max(-(-len(q) * vectors // LONGEST), min(wanted, 8, len(q) * vectors // 64))
    terms = _parts(len(q), max(1, min(sums, MOST_WRITTEN // w.size)))
    taps = _parts(len(j), -(-wanted // len(terms)) if len(j) >= 64 else 1)
    rows, columns = _block(len(m), len(j))
    partial = np.empty((len(terms), *w.shape), w.dtype) if len(terms) > 1 else None
    pg, pm, pj, pq = _keep_tables(program, g, m, j, q)
    text = lambda: conv_matmul.dots_module(t, rows, columns)
    _start(program, conv_matmul.dots_name(t, rows, columns), text, len(terms) * len(taps), len(conv_matmul.DOTS))
    for k, (first, count) in enumerate(terms):
        for tap, many in taps:
            for i in (c, x):
                program.table.point_to(i)
            if partial is None:
                program.table.point_to(o)
            else:
                program.table.words.append(data_address(partial[k:]))
            program.table.words += [pg, len(g), pm, len(m), pj + 16 * tap, many, pq + 16 * first, count, v]
    if partial is not None:
        program.table.kept.append(partial)
        _add_up(program, partial, o, t)


def _block(rows: int, taps: int) -> tuple[int, int]:
    """Return how many sums are computed side by side, for which there are registers: by rows and by taps."""
    if register_bytes() < 64:
        return 4, 2
    if taps % 3:
        return 4, 4
    return (8, 3) if rows > 4 else (4, 3)


def _add_up(program: Program, partial: np.ndarray, o: int, t: str) -> None:
    total = Kernel(2, (t,), ("c",), (), (), (0,), "axis0")
    flat = partial.reshape(len(partial), -1)
    memory, words = program.memory, program.table.words
    places = lambda k, offset, _: data_address(partial) if k == 0 else memory.address(o, len(words))
    program.table.add_kernel(total, flat.shape, (flat.strides, (0, flat.itemsize)), places)
