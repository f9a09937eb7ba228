"""What sparse matrices do with their entries alone: sums, parts, elementwise functions, and writes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse

from fad.core.tracing.tracer import Tracer
from fad.errors import ItemAssignmentError
from fad.ops.arrangement.structural import as_array
from fad.ops.places.indexing import pick
from fad.ops.places.taking import at
from fad.scipy.sparse.products import Pattern

# Functions that are 0 at 0: SciPy's matrices have them as methods.
_KEEP_ZERO = (
    "sin", "tan", "arcsin", "arctan", "sinh", "tanh", "arcsinh", "arctanh", "rint", "sign", "expm1", "log1p", "deg2rad",
    "rad2deg", "floor", "ceil", "trunc", "sqrt",
)  # fmt: skip


def make_floating(data: Any) -> Any:
    """Return entries that can be differentiated: floating-point ones."""
    data = as_array(data)
    return data if data.dtype.kind in "fc" else data.astype(float)


class Entries:
    """The entries of a sparse matrix, and where they lie."""

    ndim = 2
    format = "csr"  # the form of SciPy's that it stands for: what shares memory with what depends on it
    _shared = False  # whether a transposed matrix has the same entries

    def __init__(self, data: Any, pattern: Pattern):
        self.data = data
        self.pattern = pattern

    def _like(self, data: Any, pattern: Pattern) -> Any:
        """Return a matrix of the same class."""
        return type(self)(data, pattern)

    @property
    def shape(self) -> tuple:
        return self.pattern.shape

    @property
    def dtype(self) -> Any:
        return self.data.dtype

    @property
    def nnz(self) -> int:
        return self.pattern.rows.size

    @property
    def indptr(self) -> Any:
        """Where each row begins in `data` and `indices`, and where the last one ends."""
        return self._by_rows().indptr.copy()

    @property
    def indices(self) -> Any:
        """The column of each entry."""
        return self._by_rows().columns.copy()

    def _by_rows(self) -> Pattern:
        if self.pattern.order is not None:
            raise ValueError("the entries of this sparse array are not in the order of rows: write a.tocsr()")
        return self.pattern

    def _sort_by_rows(self) -> Any:
        places = self.pattern.find_places()
        if np.all(places[1:] > places[:-1]):
            return self
        kept, inverse = np.unique(places, return_inverse=True)
        data = at(np.zeros_like(self.data, shape=kept.shape))[inverse].add(self.data)
        return self._like(data, Pattern(*np.divmod(kept, self.shape[1]), self.shape))

    # --- parts ----------------------------------------------------------------------------------------------------

    @property
    def T(self) -> Any:
        """The transposed matrix."""
        turned = self._turn()
        if self.format not in ("lil", "dok"):
            self._shared = turned._shared = True
        return turned

    def _turn(self) -> Any:
        turned = self._like(self.data, self.pattern.transpose())
        turned.format = {"csr": "csc", "csc": "csr"}.get(self.format, self.format)
        return turned

    def transpose(self, axes: Any = None, copy: bool = False) -> Any:
        """Return the transposed matrix."""
        if axes not in (None, (1, 0)):
            raise ValueError("a sparse matrix is transposed by exchanging its two axes: axes=(1, 0) or None")
        return self._turn() if copy else self.T

    def __getitem__(self, key: Any) -> Any:
        """Return what SciPy's matrix gives at an index: a part of the matrix, or one entry."""
        a = self._sort_by_rows()
        numbers = a.pattern.matrix(np.arange(1, a.nnz + 1))  # which entries are there; 0 where none is
        numbers = self._in_scipys_class(numbers)[key]
        if not scipy.sparse.issparse(numbers):
            numbers = np.asarray(numbers)
            if not numbers.ndim:
                return pick(a.data, (numbers - 1,)) if numbers else a.dtype.type(0)
            found = np.concatenate([a.data, np.zeros_like(a.data, shape=(1,))])
            return pick(found, (numbers - 1,))  # where none is, the last one
        numbers = numbers.tocoo()
        if numbers.ndim == 1:
            raise TypeError("a row or column of a sparse array of traced entries is a matrix: write a[i : i + 1]")
        rows, columns = numbers.coords
        return self._like(pick(a.data, (numbers.data - 1,)), Pattern(rows, columns, numbers.shape))

    def _in_scipys_class(self, matrix: Any) -> Any:
        return matrix

    def __setitem__(self, key: Any, value: Any) -> None:
        """Write entries, as into SciPy's matrix: those that were there are replaced."""
        rows, columns = find_places(key, self.shape)
        if hasattr(value, "toarray"):
            value = value.toarray()
        value = as_array(value)
        if value.dtype.kind == "c" and self.dtype.kind != "c":
            raise ItemAssignmentError(f"complex entries were to be written into a sparse matrix of dtype {self.dtype}")
        self._write(rows.ravel(), columns.ravel(), np.broadcast_to(value.astype(self.dtype), rows.shape).reshape(-1))

    def _write(self, rows: Any, columns: Any, values: Any) -> None:
        """Replace the entries at places; of values for one place the last one counts."""
        if self._shared:
            raise ItemAssignmentError(
                "a sparse matrix of traced entries was to be written, of which a transposed one shares the memory: "
                "write into a copy, b = a.copy(), or transpose after the writing"
            )
        places = rows * np.int64(self.shape[1]) + columns
        new, last = np.unique(places[::-1], return_index=True)
        (kept,) = np.nonzero(~np.isin(self.pattern.find_places(), new))
        data = np.concatenate([pick(self.data, (kept,)), pick(values, (places.size - 1 - last,))])
        new_rows, new_columns = np.divmod(new, self.shape[1])
        self.pattern = Pattern(
            np.concatenate([self.pattern.rows[kept], new_rows]),
            np.concatenate([self.pattern.columns[kept], new_columns]), self.shape,
        )  # fmt: skip
        self.data = data

    def setdiag(self, values: Any, k: int = 0) -> None:
        """Write a diagonal: a number fills it, a shorter vector its beginning."""
        n = min(self.shape[0] + min(k, 0), self.shape[1] - max(k, 0))
        if n <= 0:
            raise ValueError("k exceeds array dimensions")
        values = as_array(values)
        if values.ndim:
            n = min(n, values.shape[0])
            values = values[:n]
        along = np.arange(n)
        self[along + max(-k, 0), along + max(k, 0)] = values

    def diagonal(self, k: int = 0) -> Any:
        """Return the main diagonal, or the k-th."""
        n = max(min(self.shape[0] + min(k, 0), self.shape[1] - max(k, 0)), 0)
        (on,) = np.nonzero(self.pattern.rows + k == self.pattern.columns)
        zero = np.zeros_like(self.data, shape=(n,))
        return at(zero)[self.pattern.rows[on] + min(k, 0)].add(pick(self.data, (on,)))

    def reshape(self, *shape: Any, order: str = "C", copy: bool = False) -> Any:
        """Return the entries in a matrix of another shape."""
        if order == "F":
            turned = shape[0] if len(shape) == 1 else shape
            return self._turn().reshape(tuple(turned)[::-1])._turn()
        new = _find_shape(self.shape, shape)
        rows, columns = np.divmod(self.pattern.find_places(), max(new[1], 1))
        return self._like(self.data, Pattern(rows, columns, new))

    def nonzero(self) -> tuple:
        """Return the rows and the columns of the entries that are not 0."""
        a = self._sort_by_rows()
        (kept,) = np.nonzero(np.asarray(a.data != 0))
        return a.pattern.rows[kept], a.pattern.columns[kept]

    def sum_duplicates(self) -> None:
        """Add up entries at one place, and order them by rows."""
        a = self._sort_by_rows()
        self.data, self.pattern = a.data, a.pattern

    sort_indices = sum_duplicates

    def eliminate_zeros(self) -> None:
        """Keep all entries: one that is 0 now has a derivative."""

    prune = eliminate_zeros

    # --- sums -------------------------------------------------------------------------------------------------------

    def sum(self, axis: Any = None, dtype: Any = None) -> Any:
        """Return the sum of all entries, or over the rows (axis 0) or columns (axis 1)."""
        data = self.data if dtype is None else self.data.astype(dtype)
        if axis is None or axis in ((0, 1), (1, 0)):
            return np.sum(data)
        over_rows = axis in (0, -2)
        if not over_rows and axis not in (1, -1):
            raise ValueError(f"axis {axis!r} is not one of a matrix: 0 or 1")
        places = self.pattern.columns if over_rows else self.pattern.rows
        zero = np.zeros_like(data, shape=(self.shape[1 if over_rows else 0],))
        return self._turn_sum(at(zero)[places].add(data), over_rows)

    def _turn_sum(self, sums: Any, over_rows: bool) -> Any:
        return sums

    def mean(self, axis: Any = None, dtype: Any = None) -> Any:
        """Return the mean of all elements, or over the rows (axis 0) or columns (axis 1)."""
        n = self.shape[0] * self.shape[1] if axis is None or axis in ((0, 1), (1, 0)) else self.shape[axis]
        return self.sum(axis, dtype) / n

    def trace(self, offset: int = 0) -> Any:
        """Return the sum of a diagonal."""
        return np.sum(self.diagonal(offset))

    # --- functions of each entry --------------------------------------------------------------------------------------

    def conj(self, copy: bool = True) -> Any:
        """Return the complex conjugate."""
        return self._like(np.conj(self.data), self.pattern)

    conjugate = conj

    @property
    def real(self) -> Any:
        """The real parts."""
        return self._like(np.real(self.data), self.pattern)

    @property
    def imag(self) -> Any:
        """The imaginary parts."""
        return self._like(np.imag(self.data), self.pattern)

    def astype(self, dtype: Any, casting: str = "unsafe", copy: bool = True) -> Any:
        """Return the entries in another dtype."""
        a = self._sort_by_rows()
        return self._like(a.data.astype(dtype), a.pattern)

    def copy(self) -> Any:
        """Return a sparse array with entries of its own."""
        return self._like(self.data.copy(), self.pattern)

    def power(self, n: Any, dtype: Any = None) -> Any:
        """Return the powers of the entries."""
        if np.ndim(n):
            raise NotImplementedError("the exponent of a sparse matrix's entries is a number")
        a = self._sort_by_rows()
        return self._like((a.data if dtype is None else a.data.astype(dtype)) ** n, a.pattern)

    def __abs__(self) -> Any:
        a = self._sort_by_rows()
        return self._like(np.abs(a.data), a.pattern)

    def __neg__(self) -> Any:
        return self._like(-self.data, self.pattern)

    def max(self, axis: Any = None) -> Any:
        """Return the greatest element."""
        return self._choose(np.max, axis)

    def min(self, axis: Any = None) -> Any:
        """Return the least element."""
        return self._choose(np.min, axis)

    def _choose(self, choice: Callable, axis: Any) -> Any:
        if axis is not None:
            raise NotImplementedError(
                f"{choice.__name__} of traced entries along an axis is dense: write a.toarray().{choice.__name__}(axis)"
            )
        a = self._sort_by_rows()
        if a.nnz == self.shape[0] * self.shape[1]:
            return choice(a.data)
        return choice(np.concatenate([a.data, np.zeros_like(a.data, shape=(1,))]))


def _elementwise(name: str) -> Callable:
    def apply(self: Any) -> Any:
        a = self._sort_by_rows()
        return self._like(getattr(np, name)(a.data), a.pattern)

    apply.__name__, apply.__doc__ = name, f"Return {name} of each element."
    return apply


for _name in _KEEP_ZERO:
    setattr(Entries, _name, _elementwise(_name))


def _find_shape(old: tuple, given: tuple) -> tuple:
    """Return a shape of as many elements, in which one length may be -1."""
    new = [int(n) for n in (given[0] if len(given) == 1 and np.ndim(given[0]) else given)]
    size = old[0] * old[1]
    if len(new) == 2 and new.count(-1) == 1:
        known = -new[0] * new[1]
        new = [size // known if n == -1 else n for n in new] if known else new
    if len(new) != 2 or new[0] * new[1] != size:
        raise ValueError(f"cannot reshape a sparse matrix of shape {old} into shape {tuple(new)}")
    return tuple(new)


def find_places(key: Any, shape: tuple) -> tuple[Any, Any]:
    """Return the rows and the columns of the elements that an index means, arrays of one shape."""
    if type(key) is Tracer or any(type(part) is Tracer and part.dtype.kind in "fc" for part in _parts(key)):
        raise TypeError("where a sparse matrix is written is constant: its index cannot be traced")
    if scipy.sparse.issparse(key) or (isinstance(key, np.ndarray) and key.ndim == 2 and key.dtype.kind == "b"):
        return np.nonzero(key.toarray() if scipy.sparse.issparse(key) else key)  # type: ignore[return-value]
    parts = _parts(key)
    if len(parts) > 2:
        raise IndexError("too many indices for a sparse matrix")
    first, second = (*parts, slice(None))[:2]
    rows, columns = np.arange(shape[0])[first], np.arange(shape[1])[second]
    if isinstance(first, slice) or isinstance(second, slice):
        rows, columns = np.expand_dims(rows, tuple(range(rows.ndim, rows.ndim + columns.ndim))), columns
    rows, columns = np.broadcast_arrays(rows, columns)
    return rows, columns


def _parts(key: Any) -> tuple:
    return key if type(key) is tuple else (key,)
