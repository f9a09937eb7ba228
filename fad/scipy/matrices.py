"""SciPy's sparse matrices while a transform runs: what stands for them takes traced values.

``A * s``, ``A.multiply(x)``, ``A[i, j] = x``: SciPy's methods make plain arrays of their arguments. A `Matrix` has the
matrix's place (`fad.core.runs.outside.lend`), and what SciPy's functions make has one, too. It asks a `SparseArray` of
the same entries where a traced value is among the arguments, and becomes one where a traced value is written into it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse

from fad.core.handles.buffers import buffer, plain
from fad.core.runs.stand_ins import stand_for
from fad.core.tracing.like_users import sees_overlay
from fad.core.tracing.tracer import Tracer, up_to_date
from fad.core.tracing.views import RUNS, Memory
from fad.errors import ItemAssignmentError
from fad.scipy.choosing import is_traced
from fad.scipy.holders import HOLDERS, take_plain
from fad.scipy.proxies import Standing
from fad.scipy.sparse.array import SparseArray, SparseMatrix, from_scipy
from fad.scipy.sparse.products import Pattern

_OPERATORS = (
    "__add__", "__radd__", "__sub__", "__rsub__", "__mul__", "__rmul__", "__truediv__", "__matmul__", "__rmatmul__",
    "__pow__", "__neg__", "__abs__", "__getitem__",
)  # fmt: skip
_OWN = frozenset({"stands_for", "_written", "_handle", "_mine"})


class Matrix(Standing):
    """What stands for a sparse matrix of SciPy's.

    `mine` says that the transformed function made the matrix: into one from outside no traced value is written.
    """

    __array_ufunc__ = None  # NumPy's operators leave it to this class
    _written: Any  # the matrix with the traced values that were written into it, from then on
    _handle: Any  # what a program was given as the entries, into which it may write
    _mine: bool

    def __init__(self, original: Any, mine: bool = False):
        vars(self).update(stands_for=original, _written=None, _handle=None, _mine=mine)

    def __repr__(self) -> str:
        return repr(self.stands_for if self._find_written() is None else self._written)

    def is_written(self) -> bool:
        """Return whether a traced value was written into the matrix."""
        return self._find_written() is not None

    def _find_written(self) -> SparseArray | None:
        handle = self._handle
        if handle is not None and type(plain(up_to_date(handle))) is Tracer:
            self._write_entries(handle)
        return self._written

    def _write_entries(self, data: Any) -> None:
        """Go on as a matrix of traced entries in the places of this one."""
        self._check_mine()
        rows, columns = _find_order(self.stands_for)
        own = SparseMatrix if isinstance(self.stands_for, scipy.sparse.spmatrix) else SparseArray
        if data.shape != rows.shape:
            raise ValueError(f"{rows.size} entries were needed for the places of the matrix, not shape {data.shape}")
        written = own(data, Pattern(rows, columns, self.stands_for.shape))
        written.format = self.stands_for.format
        vars(self).update(_written=written, _handle=None)

    def _check_mine(self) -> None:
        if not self._mine:
            raise ItemAssignmentError(
                "a traced value was to be written into a sparse matrix that others know, too: one from outside of the "
                "transformed function, or a part of another. Write into a copy, made in the function: b = a.copy()"
            )

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(f"a sparse matrix of SciPy's has no {name}")
        written = self._find_written()
        if written is not None:
            return getattr(written, name)
        found = getattr(self.stands_for, name)
        if callable(found):
            return self._choose(name, found)
        if name == "data" and type(found) is np.ndarray and RUNS.buffers:
            return self._lend_entries(found) if sees_overlay(sys._getframe(1).f_code.co_filename) else found
        return self._stand(found, False)

    def _lend_entries(self, data: np.ndarray) -> Any:
        """Return the entries behind a handle, so that a program can write traced values into them."""
        if data.dtype.kind not in "fc" or not hasattr(_ORDERS, self.stands_for.format):
            return data
        if self._handle is None:
            handle = buffer(data)
            if not self._mine:
                handle.memory = Memory()
                handle.memory.outside = True
            vars(self)["_handle"] = handle
        return self._handle

    def _choose(self, name: str, method: Callable) -> Callable:
        def call(*args: Any, **kwargs: Any) -> Any:
            args, kwargs = take_plain(args), take_plain(kwargs)
            if name == "setdiag" and is_traced((args, kwargs)):
                return self._write(lambda a: a.setdiag(*args, **kwargs))
            if is_traced((args, kwargs)):
                return getattr(from_scipy(self.stands_for), name)(*args, **kwargs)
            given = {name: _take_own(value) for name, value in kwargs.items()}
            return self._stand(method(*map(_take_own, args), **given), name != "transpose")

        return call

    def _stand(self, y: Any, mine: bool) -> Any:
        """Return what stands for a matrix that this one made: its own one, if it shares no memory with this."""
        if not scipy.sparse.issparse(y) or not RUNS.depth:
            return y
        made = stand_for(y)
        if not mine and y is not self.stands_for and _share_memory(y, self.stands_for):
            self._mine = False  # a write would be one into both
        if mine and type(made) is Matrix and y is not self.stands_for and not _share_memory(y, self.stands_for):
            vars(made)["_mine"] = True
        return made

    def _write(self, write: Callable) -> None:
        """Write traced values: the matrix has them from then on."""
        self._check_mine()
        if self.stands_for.dtype.kind not in "fc":
            raise ItemAssignmentError(
                f"a traced value was to be written into a sparse matrix of dtype {self.stands_for.dtype}, which would "
                "round it: make the matrix with dtype=float"
            )
        written = from_scipy(self.stands_for)
        written.format = self.stands_for.format
        write(written)
        vars(self)["_written"] = written

    def __setattr__(self, name: str, value: Any) -> None:
        if name in _OWN:
            vars(self)[name] = value
        elif self.is_written():
            setattr(self._written, name, value)
        elif name == "data" and is_traced(taken := take_plain(value)):
            if value is not self._handle:
                self._write_entries(taken)
        else:
            setattr(self.stands_for, name, take_plain(value))

    def __setitem__(self, key: Any, value: Any) -> None:
        key, value = take_plain(key), take_plain(value)
        written = self._find_written()
        if written is not None:
            written[key] = value
        elif is_traced((key, value)):
            self._write(lambda a: a.__setitem__(key, value))
        else:
            self.stands_for[key] = _take_own(value)

    def __len__(self) -> int:
        return len(self.stands_for)

    def __bool__(self) -> bool:
        return bool(self.stands_for)

    def __iter__(self) -> Any:
        return (self.__getitem__(i) for i in range(self.stands_for.shape[0]))

    def __copy__(self) -> Any:
        return self.copy()

    def __deepcopy__(self, memo: dict) -> Any:
        return self.copy()


def _take_own(x: Any) -> Any:
    return x.stands_for if type(x) is Matrix else x


def _operator(name: str) -> Callable:
    def apply(self: Matrix, *args: Any) -> Any:
        args = take_plain(args)
        written = self._find_written()
        if written is not None or is_traced(args):
            own = from_scipy(self.stands_for) if written is None else written
            return getattr(own, name)(*args)
        y = getattr(self.stands_for, name)(*map(_take_own, args))
        return y if y is NotImplemented else self._stand(y, True)

    apply.__name__ = name
    return apply


for _name in _OPERATORS:
    setattr(Matrix, _name, _operator(_name))


class _ORDERS:
    """Where the entries of matrices in a form lie, in the order of their attribute ``data``."""

    @staticmethod
    def csr(a: Any) -> tuple:
        return np.repeat(np.arange(a.shape[0]), np.diff(a.indptr)), a.indices

    @staticmethod
    def csc(a: Any) -> tuple:
        return a.indices, np.repeat(np.arange(a.shape[1]), np.diff(a.indptr))

    @staticmethod
    def coo(a: Any) -> tuple:
        return a.coords


def _find_order(a: Any) -> tuple:
    """Return the rows and the columns of the entries of a matrix of SciPy's, in the order of its data."""
    if not hasattr(_ORDERS, a.format):
        raise TypeError(f"the entries of a matrix of the form {a.format!r} are not a vector: write those of a.tocsr()")
    return getattr(_ORDERS, a.format)(a)


def _share_memory(a: Any, b: Any) -> bool:
    """Return whether a matrix has its entries in memory of another one, or of an array."""
    ours, theirs = (x if type(x) is np.ndarray else getattr(x, "data", None) for x in (a, b))
    return type(ours) is np.ndarray and type(theirs) is np.ndarray and np.may_share_memory(ours, theirs)


def make_own(make: Callable) -> Callable:
    """Return a function of SciPy's that makes a matrix as one whose matrix takes traced values."""

    def create(*args: Any, **kwargs: Any) -> Any:
        given = [_take_own(x) for x in args]
        y = make(*given, **{name: _take_own(value) for name, value in kwargs.items()})
        made = stand_for(y) if RUNS.depth else y
        if type(made) is Matrix and not any(_share_memory(y, x) for x in (*given, *_parts(given)) if x is not y):
            vars(made)["_mine"] = True
        return made

    create.__name__, create.__doc__ = make.__name__, make.__doc__
    return create


def _parts(given: list) -> list:
    return list(given[0]) if given and type(given[0]) is tuple else []


def enter_matrices(theirs: Any) -> dict:
    """Return how SciPy's sparse matrices are stood for, by their classes."""
    forms = ("bsr", "coo", "csc", "csr", "dia", "dok", "lil")
    return {getattr(theirs, f"{form}_{kind}"): Matrix for form in forms for kind in ("array", "matrix")}


HOLDERS.append(Matrix)
