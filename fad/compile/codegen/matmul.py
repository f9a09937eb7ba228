"""Matrix products in native programs: small ones by own code, large ones by BLAS, batches in one call.

Operands may be transposed, strided or broadcast; nothing is copied. What BLAS cannot read as it lies is left to NumPy.
"""

from __future__ import annotations

import math
import struct

import numpy as np

from fad.compile.codegen.llvm import dot_products, matmul_kernels, packed_matmul
from fad.compile.codegen.program import Program
from fad.compile.ir.slice_writes import data_address
from fad.compile.ir.types import F32, F64, LLVM_TYPE
from fad.compile.machine import blas
from fad.compile.machine.cpu import LONG_DOT, SMALL_GATHERED, is_small, register_bytes, thinnest
from fad.compile.machine.thread_pool import count_threads, pool
from fad.compile.schedule.parallelize import GRAIN, MOST_PARTS, SMALLEST
from fad.core.programs.graph import Equation

_ROWS = (1, 2, 4, 6, 8)
_SUMS = 24  # vectors of sums that a block may have
_FEW_DOTS = 3  # rows or columns of products that are dot products however short these are
_PAGE = 4096  # bytes of the least width of a part of a product with few rows, each of which reads such pieces of rows
# A product is done by panels if they are filled by so much, and the rows of the left factor not too far from each other
# (those at a distance of a page have the same place in the nearest cache) and not more than this in all.
_FULL, _FARTHEST, _MOST_OF_ROWS = 0.75, 4096, 1 << 20
_TALLEST = 85 * packed_matmul.ROWS  # rows of a part, so that what is read of them at a time stays in the second cache
_COST_PANELS = {F32: 0.016, F64: 0.032}  # nanoseconds of a multiplication
SMALLEST_PANELS = 10_000.0  # nanoseconds of work
_NEAR = 1 << 14  # bytes of either factor that stay in the nearest cache
_FAR = 1 << 19  # bytes from which on a factor does not lie in one
_TRANSPOSED = ord("T")
_COST = 0.06  # nanoseconds of a multiplication by own code, for the decision where a product is cut
_COST_BLAS = {F32: 0.02, F64: 0.04}  # and by BLAS,
_COST_READ = {F32: 0.2, F64: 0.4}  # with a vector, where all of the matrix is read for it;
_COST_EACH = 2_000.0  # and each product of a batch costs that much besides
SMALLEST_BLAS, LARGE_BLAS = 100_000.0, 2_000_000.0  # nanoseconds from which on one is cut in two, and in four
_MOST_OF_BLAS = 2**31 - 1  # rows, columns and steps between them: the integers of some BLAS have 32 bits
_LEAST_SIDE = 32  # and the fewest rows or columns of a part: each part packs the other factor again,
_SIDE = 384  # which takes less than a tenth of the time of a part with so many


class Product:
    """One product or a batch: arrays a (..., m, k), b (..., k, n) and c (..., m, n) with equal batch axes."""

    __slots__ = ("batch", "shape", "a", "b", "c", "size", "swapped")

    def __init__(self, x: np.ndarray, y: np.ndarray, out: np.ndarray):
        a = x if x.ndim > 1 else x[None, :]
        b = y if y.ndim > 1 else y[:, None]
        c = out if x.ndim > 1 else out[..., None, :] if y.ndim > 1 else out[..., None]
        c = c[..., None] if y.ndim == 1 else c
        m, k, n = a.shape[-2], a.shape[-1], b.shape[-1]
        lead = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
        a, b = np.broadcast_to(a, (*lead, m, k)), np.broadcast_to(b, (*lead, k, n))
        strides = [tuple(z.strides) for z in (a, b, c.reshape(*lead, m, n))]
        self.size = x.itemsize
        self.shape = (m, k, n)
        self.a, self.b, self.c = (s[-2:] for s in strides)
        self.batch = _even(lead, tuple(s[:-2] for s in strides))
        self.swapped = False  # whether the second operand comes first by now
        if n == 1:
            self.flip()
        self._take_in()

    def _take_in(self) -> None:
        """Let the last batch axis be rows of one larger product where all of it has the same right factor."""
        while self.batch:
            count, (sa, sb, sc) = self.batch[-1]
            m, k, n = self.shape
            if sb or (m > 1 and (sa != m * self.a[0] or sc != m * self.c[0])):
                return
            if m == 1:
                self.a, self.c = (sa, self.a[1]), (sc, self.c[1])
            self.shape = (count * m, k, n)
            self.batch = self.batch[:-1]

    def flip(self) -> None:
        """Make it the product of the transposes, whose result is the transpose."""
        m, k, n = self.shape
        self.shape = (n, k, m)
        self.a, self.b, self.c = self.b[::-1], self.a[::-1], self.c[::-1]
        self.batch = [(count, (sb, sa, sc)) for count, (sa, sb, sc) in self.batch]
        self.swapped = not self.swapped


def _even(shape: tuple, strides: tuple) -> list[tuple[int, tuple]]:
    """Collapse batch axes; return ``(length, strides of a, b, c)`` of each that is left."""
    axes: list[tuple[int, tuple]] = []
    for d, n in enumerate(shape):
        mine = tuple(s[d] for s in strides)
        if n == 1:
            continue
        if axes and all(before == n * now for before, now in zip(axes[-1][1], mine, strict=True)):
            axes[-1] = (axes[-1][0] * n, mine)
        else:
            axes.append((n, mine))
    return axes


def add_product(program: Program, eq: Equation) -> bool:
    """Add a product to a program's table, whole or in blocks; return false if NumPy must do it."""
    x, y, *base = eq.ins
    at = program.memory.at
    arrays, factor = [at[i] for i in (x, y, eq.outs[0])], eq.params.get("factor")
    pieces = [_block(arrays, b, eq.params["of"]) for b in eq.params["blocks"]] if "blocks" in eq.params else [arrays]
    plans = [_find_plan(program, piece, factor) for piece in pieces]
    if None in plans or (base and not program.table.copy((at[base[0]], base[0]), eq.outs[0])):
        return False
    for piece, (name, text, swapped, parts) in zip(pieces, plans, strict=True):  # type: ignore[misc]
        starts = [data_address(some) - data_address(a) if a.size else 0 for some, a in zip(piece, arrays, strict=True)]
        operands = [*zip((x, y, eq.outs[0]), starts, strict=True)]
        operands[:2] = operands[1::-1] if swapped else operands[:2]
        if len(parts) == 1:
            program.table.begin_row(name, text)
        else:
            program.table.in_parts(name, text, len(parts), 3 + len(parts[0][1]))
        for offsets, words in parts:
            for (i, start), offset in zip(operands, offsets, strict=True):
                program.table.point_to(i, start + offset)
            program.table.words += words
    return True


def _block(arrays: list[np.ndarray], block: tuple, of: str) -> list[np.ndarray]:
    """Return the parts of the factors and of the result that a block of a product stands for."""
    (x, y, out), (a, b, c, d) = arrays, block
    return [x[a:b, c:d], y[c:d], out[a:b]] if of == "terms" else [x[a:b], y[:, c:d], out[a:b, c:d]]


def _find_plan(program: Program, arrays: list[np.ndarray], factor: float | None) -> tuple | None:
    key = ("product", arrays[0].dtype, factor, *[(a.shape, a.strides) for a in arrays])
    layouts = program.table.layouts
    if key not in layouts:  # unrolled steps have the same products over and over
        x, y, out = arrays
        layouts[key] = _plan_product(x, y, out, factor)
    return layouts[key]


def _plan_product(x: np.ndarray, y: np.ndarray, out: np.ndarray, factor: float | None = None) -> tuple | None:
    """Return a product's function by name and text, whether its operands are swapped, and its parts.

    With a factor, the product times that is added to what is there. A part is where in the three arrays it begins, in
    bytes, and its words but addresses.
    """
    if 0 in (*x.shape, *y.shape):
        return None
    p = Product(x, y, out)
    if len(p.batch) > 2:
        return None
    t = LLVM_TYPE[out.dtype]
    m, k, n = p.shape
    if factor is not None:
        found = _by_blas(p, t, factor, 1.0)
    elif register_bytes() and (is_small(m, k, n) or _is_thin(p)):
        found = _by_own_code(p, t)
    else:
        found = _by_panels(p, t) or _by_blas(p, t)
    if found is not None and "gather" in found[0] and m * k * n > SMALL_GATHERED:
        p = Product(x, y, out)
        found = _by_panels(p, t) or _by_blas(p, t)
    if found is None:
        return None
    name, text, words = found
    batch = [(1, (0, 0, 0))] * (2 - len(p.batch)) + p.batch
    if name.startswith("mm_panels"):
        parts = _parts_of_panels(p, t, batch, words)
    else:
        parts = _parts(p, batch, words) if name.startswith("mm_") else _parts_of_blas(name, p, t, batch, words)
    return name, text, p.swapped, [(offsets, [*_lead(some), *rest]) for offsets, some, rest in parts]


def _lead(batch: list) -> list[int]:
    return [count for count, _ in batch] + [strides[z] for z in range(3) for _, strides in batch]


def _parts(p: Product, batch: list, words: list) -> list[tuple]:
    """Cut what takes long: along the longer axis of the batch, or else along the rows, or columns if rows are few."""
    m, k, n = p.shape
    work = batch[0][0] * batch[1][0] * m * k * n * _COST
    if work < SMALLEST:
        return [((0, 0, 0), batch, words)]
    count = max(1, min(MOST_PARTS, int(work / GRAIN)))
    if _longer(batch)[1] > 1:
        return _parts_of_batch(batch, words, count)
    if m <= 2 * _ROWS[-1] < n:
        wide = 2 * register_bytes() // p.size
        step = max(-(-n // (count * wide)) * wide, _PAGE // p.size if p.b[1] == p.size else 0)
        return _parts_along(n, step, (0, p.b[1], p.c[1]), batch, words, 1)
    step = -(-m // (count * _ROWS[-1])) * _ROWS[-1]
    return _parts_along(m, step, (p.a[0], 0, p.c[0]), batch, words, 0)


def _longer(batch: list) -> tuple[int, int]:
    """Return the longer axis of a batch, and its length."""
    d = int(batch[1][0] >= batch[0][0])
    return d, batch[d][0]


def _parts_of_batch(batch: list, words: list, count: int) -> list[tuple]:
    d, many = _longer(batch)
    strides = batch[d][1]
    step = -(-many // count)
    found = []
    for start in range(0, many, step):
        some = [*batch]
        some[d] = (min(step, many - start), strides)
        found.append((tuple(start * s for s in strides), some, words))
    return found


def _parts_along(length: int, step: int, strides: tuple, batch: list, words: list, word: int) -> list[tuple]:
    """Cut an axis of one product, whose length is that word of the row; `strides` are those of a, b and c along it."""
    return [
        (
            tuple(start * s for s in strides),
            batch,
            [*words[:word], min(step, length - start), *words[word + 1 :]],
        )
        for start in range(0, length, step)
    ]


def _parts_of_blas(name: str, p: Product, t: str, batch: list, words: list) -> list[tuple]:
    """Cut a call of BLAS, as it will be made: along the batch, or else along the longer side of the result.

    The parts are few, for they share no work: each packs the factor that they have in common. So their number is that
    of the threads or twice as many, and one thread makes one call.
    """
    m, k, n = p.shape
    vector = name == "blas_gemv"
    work = batch[0][0] * batch[1][0] * (m * k * n * (_COST_READ if vector else _COST_BLAS)[t] + _COST_EACH)
    threads = count_threads()
    if work < SMALLEST_BLAS or threads == 1 or blas.threads() is None:
        return [((0, 0, 0), batch, words)]
    if _longer(batch)[1] > 1:
        return _parts_of_batch(batch, words, min(MOST_PARTS, int(work / GRAIN)))
    length, strides = (m, (p.a[0], 0, p.c[0])) if vector or m >= n else (n, (0, p.b[1], p.c[1]))
    count = 2
    if work > LARGE_BLAS:
        wanted = min(MOST_PARTS, 4 << int(math.log(work / LARGE_BLAS, 4)))
        count = min(wanted, max(threads, min(2 * threads, length // _SIDE)))
    step = max(_LEAST_SIDE, -(-length // (count * _ROWS[-1])) * _ROWS[-1])
    word = (3 if words[1] == _TRANSPOSED else 2) if vector else 3 if m >= n else 4
    return _parts_along(length, step, strides, batch, words, word)


def _is_thin(p: Product) -> bool:
    """Return whether own code is as fast as memory, however large the factors: BLAS packs even what is read once."""
    m, k, n = p.shape if p.c[1] == p.size else p.shape[::-1]
    along = (p.a if p.c[1] == p.size else p.b[::-1])[1] == p.size
    if 1 < m <= thinnest() or (1 < n <= thinnest() and along):
        return True
    return 1 < k <= thinnest() and register_bytes() == 64


def _by_own_code(p: Product, t: str) -> tuple:
    size = p.size
    m, k, n = p.shape
    if p.c[1] != size and n > 1:
        p.flip()
        m, k, n = p.shape
    if _are_dots(p):
        return _by_dots(p, t)
    if p.b[1] != size and p.a[0] == size and p.c[0] == size:
        p.flip()
        m, k, n = p.shape
    gathered = p.b[1] != size and n > 1
    # two vectors of columns at a time where there are registers for their sums
    columns = 2 if m > 1 and not gathered and register_bytes() == 64 and n * size > 64 else 1
    rows = _rows_at_a_time(m, columns)
    far = not gathered and k * n * size > _FAR
    name = matmul_kernels.rows_name(t, rows, gathered, columns, far)
    text = lambda: matmul_kernels.rows_module(t, rows, gathered, columns, far)
    return name, text, [m, n, k, *p.a, *p.b, p.c[0], _at_a_time(n, k, size)]


def _are_dots(p: Product) -> bool:
    """Return whether both factors lie along the axis that is added up, and one has few rows, or columns."""
    m, k, n = p.shape
    lie = (p.a[1] == p.size or k == 1) and (p.b[0] == p.size or k == 1) and (p.b[1] != p.size or n == 1)
    return lie and min(m, n) <= (thinnest() if k >= LONG_DOT else _FEW_DOTS)


def _by_dots(p: Product, t: str) -> tuple:
    """Return own code for dot products of a few rows with all columns, each of which is read once."""
    if p.shape[0] > p.shape[2]:
        p.flip()
    m, k, n = p.shape
    rows, far = dot_products.choose_rows(m), k * n * p.size > _FAR
    words = [m, n, k, p.a[0], p.b[1], *p.c]
    return dot_products.dots_name(t, rows, far), lambda: dot_products.dots_module(t, rows, far), words


def _rows_at_a_time(m: int, columns: int) -> int:
    """Return how many rows a block has. A few more than the usual block are one, if there are registers for their sums.

    Two blocks would compute rows twice, and read, or gather, the right factor twice.
    """
    most = _SUMS // columns if register_bytes() == 64 else 0
    rows = (*_ROWS, *range(_ROWS[-1] + 2, min(most, 2 * _ROWS[-1]) + 1, 2))
    return next((r for r in rows if m <= r), _ROWS[-1])


def _at_a_time(n: int, k: int, size: int) -> int:
    """Return how much of the axis that is added up is read for all blocks before the next of it."""
    if k * n * size <= _NEAR and k * _ROWS[-1] * size <= _NEAR:
        return k
    return min(max(_NEAR // (n * size), 32), 256)


def _by_panels(p: Product, t: str) -> tuple | None:
    """Return own code for a large product; None where BLAS is as good or the matrices do not lie as it needs."""
    size = p.size
    if register_bytes() != 64:
        return None
    if p.c[1] != size:
        p.flip()
    m, k, n = p.shape
    wide = 2 * register_bytes() // size
    full = n >= _FULL * -(-n // wide) * wide
    lies = p.c[1] == size and p.a[1] == size and p.a[0] < _FARTHEST and size in p.b
    if not lies or not full or m < packed_matmul.ROWS or m * k * size > _MOST_OF_ROWS:
        return None
    transposed = p.b[1] != size
    words = [m, n, k, *p.a, *p.b, p.c[0], k]
    return packed_matmul.panels_name(t, transposed), lambda: packed_matmul.panels_module(t, transposed), words


def _parts_of_panels(p: Product, t: str, batch: list, words: list) -> list[tuple]:
    """Cut by whole panels, which takes nothing, or by rows, for each part of which the panels are packed again."""
    m, k, n = p.shape
    work = batch[0][0] * batch[1][0] * m * k * n * _COST_PANELS[t]
    if work < SMALLEST_PANELS:
        return [((0, 0, 0), batch, words)]
    count = max(2, min(MOST_PARTS, int(work / GRAIN)))
    if _longer(batch)[1] > 1:
        return _parts_of_batch(batch, words, count)
    wide = 2 * register_bytes() // p.size
    count = min(count, -(-n // wide))
    if count >= 4 and m <= _TALLEST:
        return _parts_along(n, -(-n // (count * wide)) * wide, (0, p.b[1], p.c[1]), batch, words, 1)
    step = min(_TALLEST, -(-m // (count * packed_matmul.ROWS)) * packed_matmul.ROWS)
    return _parts_along(m, step, (p.a[0], 0, p.c[0]), batch, words, 0)


# --- BLAS, which sees matrices by columns: what lies by rows is a transpose to it ----------------------------------


def _by_blas(p: Product, t: str, alpha: float = 1.0, beta: float = 0.0) -> tuple | None:
    """Return the call of BLAS for ``C = alpha A B + beta C``; None where it cannot read the matrices as they lie."""
    if p.shape[0] == 1 and p.shape[2] > 1:
        p.flip()
    m, k, n = p.shape
    f = blas.pointer(("d" if t == F64 else "s") + ("gemv" if n == 1 else "gemm"))
    a, b = _lying(p.a, (m, k), p.size), _lying(p.b, (k, n), p.size)
    if f is None or a is None:
        return None
    alpha, beta = (struct.unpack("<q", struct.pack("<d" if t == F64 else "<fxxxx", v))[0] for v in (alpha, beta))
    if n == 1:
        if p.b[0] <= 0 or p.c[0] <= 0:
            return None
        by_rows, lda = a
        inner, outer = (k, m) if by_rows else (m, k)
        how = _TRANSPOSED if by_rows else ord("N")
        incx, incy = p.b[0] // p.size, p.c[0] // p.size
        if max(m, k, lda, incx, incy) > _MOST_OF_BLAS:
            return None
        words = [f, how, inner, outer, alpha, lda, incx, beta, incy, _find_pool()]
        return "blas_gemv", matmul_kernels.gemv_module, words
    if b is None or p.c[1] != p.size:
        return None
    # C by rows is C transposed by columns: B comes first
    p.flip()
    ldc = max(p.c[1] // p.size, n)
    if max(m, k, n, a[1], b[1], ldc) > _MOST_OF_BLAS:
        return None
    words = [
        f,
        ord("N" if b[0] else "T"),
        ord("N" if a[0] else "T"),
        n,
        m,
        k,
        alpha,
        b[1],
        a[1],
        beta,
        ldc,
        _find_pool(),
    ]
    return "blas_gemm", matmul_kernels.gemm_module, words


def _find_pool() -> int:
    """Return where the pool is, which knows how BLAS is set to use one thread; 0 if it cannot be."""
    found = blas.threads()
    if found is None:
        return 0
    pool().silences(*found)
    return pool().address


def _lying(strides: tuple, shape: tuple, size: int) -> tuple[bool, int] | None:
    """Return whether a matrix lies by rows (else by columns), and the distance of its rows or columns in elements."""
    for by_rows in (True, False):
        (outer, inner), (many, length) = (strides, shape) if by_rows else (strides[::-1], shape[::-1])
        if (inner == size or length == 1) and (many == 1 or (outer % size == 0 and outer >= length * size)):
            return by_rows, max(outer // size, length, 1)
    return None
