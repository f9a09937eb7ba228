"""Fourier transforms of complex arrays as transforms of their parts, which have machine code.

A transform of real numbers is one of half as many complex ones, whose parts are the numbers at even and at odd places
(Press et al., Numerical Recipes, 2007, section 12.3).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fad.compile.ir.lowered_ops import FOURIER, copy_p, find_radices
from fad.core.programs.graph import Equation, Type
from fad.ops.arrangement.structural import broadcast_p, concatenate_p, transpose_p
from fad.ops.fft import fft_p, irfft_p, rfft_p, scale_of
from fad.ops.places.indexing import getitem_p, scatter_p
from fad.ops.ufuncs.elementwise import add, multiply, negative, positive, subtract

_REAL = {np.dtype(t): np.dtype(real) for real in ("f4", "f8") for t in (real, np.result_type(real, np.complex64))}
_LONGEST = 1 << 18  # the length of a transform; for larger ones NumPy is as fast
Pair = tuple[int, int]


class _Parts:
    """Operations on both parts of a complex array, of which the axis of the transform is the last."""

    def __init__(self, work: Any, dtype: np.dtype):
        self.work, self.dtype = work, dtype

    def do(self, prim: Any, ins: tuple, shape: tuple, params: dict | None = None) -> int:
        return self.work.do(prim, ins, shape, self.dtype, params)

    def shape(self, i: int) -> tuple:
        return self.work.types[i].shape

    def add(self, x: int, y: int) -> int:
        return self.do(add, (x, y), self.shape(x))

    def subtract(self, x: int, y: int) -> int:
        return self.do(subtract, (x, y), self.shape(x))

    def times(self, x: int, factors: np.ndarray) -> int:
        """Multiply by numbers along the last axis."""
        return self.do(multiply, (x, self.work.constant(factors.astype(self.dtype))), self.shape(x))

    def take(self, x: int, start: int | None, stop: int | None, step: int) -> int:
        part, shape = slice(start, stop, step), self.shape(x)
        n = len(range(shape[-1])[part])
        return self.do(getitem_p, (x,), (*shape[:-1], n), {"template": (Ellipsis, part)})

    def join(self, *parts: int) -> int:
        shape = self.shape(parts[0])
        n = sum(self.shape(i)[-1] for i in parts)
        return self.do(concatenate_p, parts, (*shape[:-1], n), {"axis": len(shape) - 1})

    def zeros(self, shape: tuple) -> int:
        return self.do(broadcast_p, (self.work.constant(np.zeros((), self.dtype)),), shape, {"shape": shape})

    def move(self, x: int, axis: int, last: bool) -> int:
        """Move an axis to the end, or back from there."""
        rank = len(self.shape(x))
        if axis == rank - 1:
            return x
        order = [d for d in range(rank) if d != axis] + [axis]
        axes = order if last else [order.index(d) for d in range(rank)]
        moved = self.do(transpose_p, (x,), tuple([self.shape(x)[a] for a in axes]), {"axes": tuple(axes)})
        if not last or self.work.types[x].size < self.work.fewest_copied:
            return moved
        return self.do(copy_p, (moved,), self.shape(moved))  # row by row columns are slow to read

    def transform(self, x: Pair, inverse: bool, scale: float) -> Pair:
        """Transform along the last axis."""
        re, im = [self.work.add_value(Type(self.shape(x[0]), self.dtype)) for _ in x]
        self.work.equations.append(Equation(FOURIER, x, {"inverse": inverse, "scale": scale}, (re, im)))
        return re, im


def _begin(work: Any, eq: Equation, lengths: list[int]) -> _Parts | None:
    """Return what writes the operations; None if a length has none, or NumPy is as fast."""
    size = max(work.types[i].size for i in (*eq.ins, *eq.outs))
    rows = size // max(lengths) > 2  # of a real array there are half as many complex numbers
    most = work.most_transformed if eq.prim is fft_p else work.most_real
    if not size or size > (most if rows else _LONGEST) or None in map(find_radices, lengths):
        return None
    dtype = work.types[eq.ins[0]].dtype
    real = _REAL.get(dtype)
    return None if real is None else _Parts(work, real)


def _parts_of(parts: _Parts, i: int) -> Pair:
    """Return the real and imaginary part of an operand as arrays."""
    re, im = parts.work.parts(i)
    shape = parts.shape(re)
    return re, im if parts.shape(im) == shape else parts.zeros(shape)


def _fourier(work: Any, eq: Equation) -> bool:
    axes, inverse, norm = (eq.params[name] for name in ("axes", "inverse", "norm"))
    shape = work.types[eq.ins[0]].shape
    parts = _begin(work, eq, [shape[a] for a in axes])
    if parts is None:
        return False
    re, im = _parts_of(parts, eq.ins[0])
    for axis in axes:
        moved = parts.move(re, axis, True), parts.move(im, axis, True)
        found = parts.transform(moved, inverse, scale_of(shape[axis], norm, inverse))
        re, im = (parts.move(x, axis, False) for x in found)
    return work.keep(eq, re, im)


def _fourier_of_real(work: Any, eq: Equation) -> bool:
    axis, n, norm = (eq.params[name] for name in ("axis", "n", "norm"))
    parts = _begin(work, eq, [n if n % 2 else n // 2])
    if parts is None or work.types[eq.ins[0]].shape[axis] != n:
        return False
    x, scale = parts.move(eq.ins[0], axis, True), scale_of(n, norm, False)
    if n % 2:
        found = parts.transform((x, parts.zeros(parts.shape(x))), False, scale)
        re, im = (parts.take(y, None, n // 2 + 1, 1) for y in found)
    else:
        z = parts.transform((parts.take(x, 0, None, 2), parts.take(x, 1, None, 2)), False, 1.0)
        re, im = _untangle(parts, z, scale)
    return work.keep(eq, parts.move(re, axis, False), parts.move(im, axis, False))


def _turns(h: int, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return cosines and sines of ``pi k / h``: exact at the ends, so that what is real has no imaginary part."""
    angles = np.pi * np.arange(count) / h
    cosines, sines = np.cos(angles), np.sin(angles)
    sines[np.arange(count) % h == 0] = 0.0
    return cosines, sines


def _untangle(parts: _Parts, z: Pair, scale: float) -> Pair:
    """Return the frequencies of real numbers, from the transform of those at even and at odd places as complex ones."""
    h = parts.shape(z[0])[-1]
    zr, zi = (parts.join(y, parts.take(y, 0, 1, 1)) for y in z)
    br, bi = (parts.take(y, None, None, -1) for y in (zr, zi))
    cosines, sines = (0.5 * scale * y for y in _turns(h, h + 1))
    half = np.full(h + 1, 0.5 * scale)
    odd_r, odd_i = parts.add(zi, bi), parts.subtract(br, zr)
    re = parts.add(parts.times(odd_r, cosines), parts.times(odd_i, sines))
    im = parts.subtract(parts.times(odd_i, cosines), parts.times(odd_r, sines))
    return (
        parts.add(parts.times(parts.add(zr, br), half), re),
        parts.add(parts.times(parts.subtract(zi, bi), half), im),
    )


def _fourier_to_real(work: Any, eq: Equation) -> bool:
    axis, n, norm = (eq.params[name] for name in ("axis", "n", "norm"))
    count, scale = n // 2 + 1, scale_of(n, norm, True)
    parts = _begin(work, eq, [n if n % 2 else n // 2])
    if parts is None or work.types[eq.ins[0]].shape[axis] != count:
        return False
    re, im = (parts.move(y, axis, True) for y in _parts_of(parts, eq.ins[0]))
    none = parts.zeros((*parts.shape(re)[:-1], 1))  # what is the imaginary part of a real frequency counts nothing
    if n % 2:
        found = _transform_spectrum(parts, re, parts.join(none, parts.take(im, 1, None, 1)) if n > 1 else none, scale)
    else:
        inner = [parts.take(im, 1, count - 1, 1)] if n > 2 else []
        found = _tangle(parts, re, parts.join(none, *inner, none), 2.0 * scale)
    work.equations.append(Equation(positive, (parts.move(found, axis, False),), {}, eq.outs))
    return True


def _transform_spectrum(parts: _Parts, re: int, im: int, scale: float) -> int:
    """Return the real numbers, an odd number of them, that have some frequencies."""
    if parts.shape(re)[-1] > 1:
        back = parts.take(im, None, 0, -1)
        re = parts.join(re, parts.take(re, None, 0, -1))
        im = parts.join(im, parts.do(negative, (back,), parts.shape(back)))
    return parts.transform((re, im), True, scale)[0]


def _tangle(parts: _Parts, re: int, im: int, scale: float) -> int:
    """Return the real numbers that have some frequencies: those at even and at odd places are parts of complex ones."""
    h = parts.shape(re)[-1] - 1
    fr, fi = (parts.take(y, None, h, 1) for y in (re, im))
    br, bi = (parts.take(y, None, 0, -1) for y in (re, im))
    half = np.full(h, 0.5)
    cosines, sines = (0.5 * y for y in _turns(h, h))
    odd_r, odd_i = parts.subtract(fr, br), parts.add(fi, bi)  # of each frequency less the one that mirrors it
    turned_r = parts.subtract(parts.times(odd_r, cosines), parts.times(odd_i, sines))
    turned_i = parts.add(parts.times(odd_r, sines), parts.times(odd_i, cosines))
    zr = parts.subtract(parts.times(parts.add(fr, br), half), turned_i)
    zi = parts.add(parts.times(parts.subtract(fi, bi), half), turned_r)
    pieces = parts.transform((zr, zi), True, scale)
    shape = (*parts.shape(zr)[:-1], 2 * h)
    indices = tuple([(Ellipsis, slice(k, 2 * h, 2)) for k in (0, 1)])
    return parts.do(scatter_p, pieces, shape, {"shape": shape, "dtype": parts.dtype, "indices": indices})


FOURIER_RULES = {fft_p: _fourier, rfft_p: _fourier_of_real, irfft_p: _fourier_to_real}
