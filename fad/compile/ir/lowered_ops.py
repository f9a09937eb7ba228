"""Operations of lowered programs alone: what legalization writes and code generation has kernels for."""

from __future__ import annotations

from typing import Any

import numpy as np

from fad.core.primitives.primitive import Primitive
from fad.ops.arrangement.structural import concatenate_p
from fad.ops.linalg.factors import triangular_p
from fad.ops.places.indexing import index_add_p, index_set_p, scatter_p
from fad.ops.products.conv import conv_input_p, conv_kernel_p, conv_p
from fad.ops.reductions.reduction import max_p, min_p, sum_p

# --- sets of operations that several stages know ----------------------------------------------------------------------

PIECES = frozenset({scatter_p, concatenate_p, index_set_p, index_add_p})
# Reductions that are loops, and how these combine two elements.
REDUCTIONS: dict[Primitive, Primitive] = {p: p.combines for p in (sum_p, max_p, min_p)}

# --- copies, sums and parts -------------------------------------------------------------------------------------------

# A result that is somebody else's memory is copied; the copy is fused with what is computed beside it.
copy_p = Primitive(
    "materialise", lambda x: x.copy() if isinstance(x, np.ndarray) else x, archetype="elementwise", lower="{0}",
    cheap=True,
)  # fmt: skip

# ``base + factor * (x @ y)``; an operation of lowered programs alone.
ADDED_PRODUCT = Primitive(
    "added_product", lambda x, y, base, factor: base + np.asarray(factor, base.dtype) * (x @ y), flat=True,
    archetype="product",
)  # fmt: skip



# ``x @ y``, of which not all is wanted: a block is ``(first row, end, first, end)``, and stands for columns of the
# result that are wanted in these rows (`of` is "results"), or for columns of x beside which it is zero ("terms").
BLOCK_PRODUCT = Primitive("block_product", lambda x, y, *, blocks, of: x @ y, flat=True, archetype="product")


def _multiply_chosen(x: np.ndarray, mask: np.ndarray, y: np.ndarray, blocks: tuple | None) -> np.ndarray:
    z = np.where(mask, x, 0) @ y
    if not np.isfinite(z).all():  # zero times infinity
        for row, some, to in zip(x, mask, z, strict=True):
            to[...] = row[some] @ y[some]
    return z


# ``where(mask, x, 0) @ y``, but that nothing of y is read that the mask does not choose: it may be infinite. Blocks say
# where the mask is true at all.
CHOSEN_PRODUCT = Primitive("chosen_product", _multiply_chosen, flat=True, archetype="product")

# The solution of a system of a factor, whose diagonal has no zeros.
FACTOR_SYSTEM = Primitive("factor_system", lambda a, b, *, lower: triangular_p.forward(a, b, lower=lower, unit=False))

_PRIMES = (2, 3, 5, 7, 11, 13)


def find_radices(n: int) -> list[int] | None:
    """Return the radices of a Fourier transform's passes; None if its length has a prime factor that is too large."""
    found = []
    for r in (4, *_PRIMES):
        while n % r == 0:
            found.append(r)
            n //= r
    return (found or [1]) if n == 1 else None


def _transform(re: np.ndarray, im: np.ndarray, *, inverse: bool, scale: float) -> tuple:
    z = (np.fft.ifft if inverse else np.fft.fft)(re + 1j * im, norm="forward" if inverse else "backward")
    return (z.real * scale).astype(re.dtype), (z.imag * scale).astype(re.dtype)


# The Fourier transform along the last axis of a complex array, of which the parts are given; its length has radices.
FOURIER = Primitive("fourier_of_parts", _transform, flat=True, multi=True)

# The elements along the last axis in ascending order.
SORTED = Primitive("sorted_rows", lambda x, *, kind: np.sort(x, axis=-1, kind=kind), flat=True)

# The elements along an axis, some of them where sorting puts them.
PARTITIONED = Primitive("partitioned", lambda x, *, axis, kth: np.partition(x, kth, axis=axis), flat=True)

# Slices that are written into an array, or added to it, one after the other: in one pass where they overlap.
WRITE_PIECES = Primitive("write_pieces", lambda x, *pieces, **params: _write_pieces(x, pieces, **params))

# Zero, if no element is negative. If one is, a native program stops: `of` is the result that then has no value.
NOT_NEGATIVE = Primitive("not_negative", lambda x, *, of: np.asarray(x).dtype.type(0))

# An integer to the power of one that is not negative. The third operand says so: it is what a check gives.
INTEGER_POWER = Primitive(
    "integer_power", lambda x, n, _: np.power(x, n), lower="integer_power({0}, {1})", archetype="elementwise"
)

# Where along the last axis an extreme, of the same rank, is first.
PLACE = Primitive("place_of_extreme", lambda x, m, *, keepdims: np.argmax((x == m) | (x != x), -1, keepdims=keepdims))


def _write_pieces(x: np.ndarray, pieces: tuple, templates: tuple, adds: tuple) -> np.ndarray:
    y = x.copy()
    for piece, index, add in zip(pieces, templates, adds, strict=True):
        y[index] = y[index] + piece if add else piece
    return y


def _together(re: Any, im: Any) -> Any:
    z = np.empty(np.shape(re), np.result_type(re, np.complex64))
    z.real, z.imag = re, im
    return z


# Puts a complex array together from its parts; an operation of lowered programs alone.
COMPLEX = Primitive("complex_of", _together, flat=True, archetype="complex")


# --- convolutions, of an input that is padded already, with the examples or the last spatial axis innermost -----------


def _plain(x: Any, inner: str) -> Any:
    """Return an array as (N, C, *spatial)."""
    return np.moveaxis(x, -1, 0) if inner == "examples" else x


def _lay_out(x: Any, inner: str) -> Any:
    return np.moveaxis(x, 0, -1) if inner == "examples" else x


def _valid(params: dict, spatial: int, **more: Any) -> dict:
    return {**{k: params[k] for k in ("stride", "dilation", "groups")}, "padding": ((0, 0),) * spatial, **more}


def _forward(x, w, *, inner, **params):
    y = conv_p.forward(_plain(x, inner), w, **_valid(params, w.ndim - 2))
    return _lay_out(y, inner)


def _input(c, w, *, inner, size, low, shift, **params):
    """The cotangent c begins `shift` zeros before its own first place, and the input `low` places before its own.

    The weights are (groups, C / groups, O / groups, *kernel).
    """
    c = _plain(c, inner)
    w = w.swapaxes(1, 2).reshape(-1, w.shape[1], *w.shape[3:])
    start = [lo + s * p for lo, s, p in zip(low, params["stride"], shift, strict=True)]
    sizes = zip(params["stride"], c.shape[2:], params["dilation"], w.shape[2:], start, size, strict=True)
    whole = tuple([max(s * (m - 1) + d * (k - 1) + 1, a + n) for s, m, d, k, a, n in sizes])
    x = conv_input_p.forward(c, w, **_valid(params, w.ndim - 2, size=whole))
    return _lay_out(x[(..., *[slice(a, a + n) for a, n in zip(start, size, strict=True)])], inner)


def _kernel(x, c, *, inner, kernel, **params):
    return conv_kernel_p.forward(_plain(x, inner), _plain(c, inner), **_valid(params, len(kernel), kernel=kernel))


FORWARD = Primitive("convolution_of_windows", _forward)
INPUT = Primitive("convolution_input_of_windows", _input)
KERNEL = Primitive("convolution_kernel_of_windows", _kernel)
