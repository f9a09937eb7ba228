"""Tracers, traces and ``bind``: how a call finds the transform that it belongs to.

A transform makes a `Trace`, wraps its inputs in `Tracer` objects and runs the user's function.
Every operation looks for tracers among its arguments and hands the call to the *youngest* trace;
with none it runs on plain arrays. Youngest first is the whole of nesting: an inner transform is always born
later than an outer one, so there is no stack to push, pop or leak, and no perturbation confusion.

One tracer class serves every transform, so that the hot path asks one question, ``type(x) is Tracer``.
What `info` means is the trace's business: a tape position (vjp), a tangent (jvp), nothing (vmap).
"""

from __future__ import annotations

import math
import operator
import sys
from collections.abc import Callable
from types import CodeType
from typing import TYPE_CHECKING, Any

import numpy as np

from fad import tree
from fad.backends import DEVICE_ARRAYS, host
from fad.backends.counterparts import explain
from fad.core.tracing.array_likes import open_array_like
from fad.core.tracing.conversions import (
    as_computed,
    same_size,
    written_into,
)
from fad.core.tracing.lengths import Iteration, Length, Seen
from fad.core.tracing.like_users import find_written
from fad.core.tracing.numpy_dispatch import (
    FUNCTIONS,
    UFUNC_METHODS,
    UFUNCS,
    add_context,
    full_name,
    load_rules,
    raise_missing,
)
from fad.core.tracing.views import (
    is_array,
    link,
    refresh,
    refuse,
    snapshot,
)
from fad.core.tracing.weak import ENTRIES, WEAK, are_numbers, on_numbers
from fad.introspect.reachable import TRACED

if TYPE_CHECKING:
    from fad.core.tracing.trace import Trace

# Code of other libraries that leaves an operation to an operand which is no array of NumPy's.
LEAVING: set[CodeType] = set()
_ALONG = ("reduce", "accumulate", "reduceat")  # methods that compute in a dtype which counts that of an output, too


class Tracer(metaclass=Seen):
    """A value on its way through a transform: an array that remembers which trace it belongs to.

    It has ndarray's attributes, methods and operators (installed by the operation modules),
    and answers NumPy's dispatch protocols, so ``np.sin(tracer)`` works.
    """

    __slots__ = ("wrapped", "owner", "info", "memory", "element_of", "__weakref__")
    wrapped: Any  # the value as the traces below know it; programs take the `value` of what has one: units, variables
    owner: Trace
    info: Any
    memory: Any  # what it is a view of, and how often it was written: `fad.core.tracing.views`
    element_of: Any  # of some: the array that it was taken of, and where it stands there: `fad.ops.layout.elements`

    if TYPE_CHECKING:  # the operation modules install ndarray's methods, attributes and operators

        def __getattr__(self, name: str) -> Any: ...
        def __setitem__(self, index: Any, value: Any) -> None: ...

        def __add__(self, other: Any) -> Any: ...

        __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = __add__
        __matmul__ = __rmatmul__ = __pow__ = __rpow__ = __mod__ = __rmod__ = __floordiv__ = __rfloordiv__ = __add__
        __lt__ = __le__ = __gt__ = __ge__ = __and__ = __or__ = __xor__ = __getitem__ = __add__

        def __neg__(self) -> Any: ...

        __pos__ = __abs__ = __invert__ = __neg__

    # --- what an array says of itself -------------------------------------------------------------------------

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        """The class of the value that the tracer stands for: what isinstance sees. ``type(x)`` is Tracer itself.

        For an array of a device it is Tracer, too: its library reads the memory of what isinstance calls its array.
        """
        kind = self.owner.class_of(self)
        if kind in DEVICE_ARRAYS or (LEAVING and sys._getframe(1).f_code in LEAVING):
            return Tracer
        return np.ndarray if self.memory is not None and issubclass(kind, np.generic) and is_array(self) else kind

    @property
    def shape(self) -> tuple[int, ...]:
        return self.owner.shape(self)

    @property
    def ndim(self) -> int:
        return len(self.owner.shape(self))

    @property
    def size(self) -> int:
        return math.prod(self.owner.shape(self))

    @property
    def dtype(self) -> np.dtype:
        return self.wrapped.dtype

    @property
    def itemsize(self) -> int:
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        return self.size * self.dtype.itemsize

    __len__ = Length()
    __iter__ = Iteration()

    def __repr__(self) -> str:
        return f"Tracer[{up_to_date(self).owner.kind}]({self.owner.value_to_print(self)!r})"

    def __str__(self) -> str:
        return up_to_date(self).owner.show(self)

    def __format__(self, spec: str) -> str:
        return up_to_date(self).owner.format(self, spec) if spec else str(self)

    # --- questions that need a plain value --------------------------------------------------------------------

    def __bool__(self) -> bool:
        return up_to_date(self).owner.concrete(self, bool)

    def __int__(self) -> int:
        return up_to_date(self).owner.concrete(self, int)

    def __index__(self) -> int:
        return up_to_date(self).owner.concrete(self, operator.index)

    def __float__(self) -> float:
        return up_to_date(self).owner.number(self, float)

    def __complex__(self) -> complex:
        return up_to_date(self).owner.number(self, complex)

    def __hash__(self) -> int:
        """Hash by value what has no derivative; an equal float may have another one, so it is another key."""
        if self.shape or is_array(self) or not up_to_date(self).owner.is_flat(self):
            return object.__hash__(self)
        return hash(self.owner.concrete(self, int if self.dtype.kind in "biu" else float))

    def __copy__(self) -> Tracer:
        return snapshot(self)

    def __deepcopy__(self, memo: dict) -> Tracer:
        return snapshot(self)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        caller = sys._getframe(1).f_code
        if LEAVING and caller in LEAVING:
            return np.array(None)  # of an object, which is no number
        if dtype is None and "__array__" in caller.co_names:
            return self  # Python code calls it by name, and an array gives itself; NumPy would not take that
        return up_to_date(self).owner.as_array(self, dtype, copy)

    # --- NumPy's dispatch protocols -----------------------------------------------------------------------------

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if kwargs:
            out = kwargs.get("out")
            if out is not None and any(type(x) is Tracer for x in out):
                return self._into(out, ufunc, method, inputs, kwargs)
        if method == "__call__":
            operation = UFUNCS.get(ufunc) or load_rules(ufunc)
            if operation is not None:
                return operation(*inputs, **kwargs) if kwargs else operation(*inputs)
            return raise_missing(ufunc, ufunc.__name__)
        operation = UFUNC_METHODS.get((ufunc, method))
        if operation is not None:
            return operation(*inputs, **kwargs)
        return raise_missing((ufunc, method), f"{ufunc.__name__}.{method}")

    def _into(self, outs: tuple, ufunc: np.ufunc, method: str, inputs: tuple, kwargs: dict) -> Any:
        """Write the results of a ufunc into traced arrays, where a mask is true."""
        if any(type(x) is Tracer and not is_array(x) for x in outs):
            raise TypeError("return arrays must be of ArrayType")
        options = {k: v for k, v in kwargs.items() if k != "out"}
        where = options.pop("where", True) if method == "__call__" else True
        if method in _ALONG and options.get("dtype") is None and hasattr(inputs[0], "dtype"):
            inputs = (as_computed(ufunc, inputs[0], outs[0].dtype), *inputs[1:])
        try:
            values = getattr(ufunc, method)(*inputs, **options)
        except ValueError:  # of the shapes; NumPy looks at the dtypes first, and says it if they do not fit
            if method == "__call__":
                dtypes = [x.dtype if hasattr(x, "dtype") else np.asarray(x).dtype for x in (*inputs, *outs)]
                ufunc.resolve_dtypes(tuple(dtypes), casting=kwargs.get("casting", "same_kind"))
            raise
        values = values if ufunc.nout > 1 else (values,)
        if any(x is not None and type(x) is not Tracer for x in outs):
            raise refuse(written_into("a plain array, which cannot carry a derivative"))
        if method != "__call__":
            same_size(outs[0], values[0], ufunc.__name__)
        casting = kwargs.get("casting", "same_kind" if method in ("__call__", "outer") else "unsafe")
        written = [
            y if out is None else out.receive(y, casting, where, ufunc.__name__)
            for out, y in zip(outs, values, strict=True)
        ]
        return tuple(written) if ufunc.nout > 1 else written[0]

    def __array_function__(self, func: Callable, types: Any, args: tuple, kwargs: dict) -> Any:
        if len(types) > 1 and any(hasattr(kind, "__fad_function__") for kind in types):
            return NotImplemented
        operation = FUNCTIONS.get(func)
        operation = operation or find_written(func)
        if operation is None:
            return raise_missing(func, full_name(func))
        try:
            return operation(*args, **kwargs) if kwargs else operation(*args)
        except (ValueError, IndexError, TypeError) as error:
            add_context(error, func, args)
            raise


tree._BARE.add(Tracer)
ENTRIES[id(Tracer.__array_ufunc__.__code__)] = False


def add_methods(**methods: Any) -> None:
    """Give traced arrays methods and properties of ndarray, which the operation modules hold."""
    for name, method in methods.items():
        setattr(Tracer, name, method)


def up_to_date(x: Tracer) -> Tracer:
    """Return a tracer after taking it again, if it is a view of an array that was written."""
    if x.memory is not None:
        refresh(x)
    return x


def stack_list(x: Any) -> Any:
    """Return a list or tuple, which may hold traced values, or what stands for an array, as an array; else `x`."""
    return FUNCTIONS[np.array](x) if type(x) in (list, tuple) else open_array_like(x)


def tracer(value: Any, trace: Trace, info: Any) -> Tracer:
    """Make a tracer. The class has no ``__init__``, so that the hot path saves a call by writing the same out."""
    x = Tracer()
    x.wrapped = value
    x.owner = trace
    x.info = info
    x.memory = None
    return x


TRACED.add(Tracer)


def youngest(args: Any) -> Any:
    """Return the youngest trace among the arguments, or None if all are plain."""
    top: Any = None
    for x in args:
        if type(x) is Tracer:
            if x.memory is not None:
                refresh(x)
            trace = x.owner
            if top is None or trace.birth > top.birth:
                top = trace
    return top


def bind(prim: Any, *args: Any, **params: Any) -> Any:
    """Run an operation: on the youngest trace among its positional arguments, or on plain arrays."""
    top = None
    for x in args:
        if type(x) is Tracer:
            if x.memory is not None:
                refresh(x)
            trace = x.owner
            if top is None or trace.birth > top.birth:
                top = trace
    if top is None:
        try:
            if type(prim.forward) is np.ufunc and are_numbers(args):
                return on_numbers(prim.forward, *args)
            return prim.forward(*args, **params)
        except (TypeError, ValueError) as error:
            explain(error)
            raise
    out = top.process(prim, args, params)
    if prim.view is not None and type(out) is Tracer and type(args[0]) is Tracer:
        link(args[0], out, prim, params)
    return _handed_over(prim, args, params) if out is NotImplemented else out


def _handed_over(prim: Any, args: tuple, params: dict) -> Any:
    """Let an operand that is no array run the operation, if it says how (``__fad_bind__``, as tensors do)."""
    for x in args:
        run = getattr(type(x), "__fad_bind__", None)
        if run is not None:
            return run(prim, args, params)
    kinds = ", ".join(type(x).__name__ for x in args)
    raise TypeError(f"{prim.name} takes arrays and numbers, but was called with operands of type {kinds}")


def outcome(x: Any) -> Any:
    """Return the plain array behind a value on which the *shape* of a result depends: a mask, a count.

    Only for what is piecewise constant. Elements of a vmap that disagree are split, as a Python ``if`` splits them.
    """
    return up_to_date(x).owner.outcome(x) if type(x) is Tracer else host(x)


def any_of(x: Any) -> bool:
    """Return whether any element of a flat condition holds, on which it depends whether an operation is an error."""
    return up_to_date(x).owner.any_of(x) if type(x) is Tracer else bool(np.any(x))


def strong(x: Any) -> Any:
    """Return a value as what NumPy's conversion to an array makes of it: a Python number's dtype counts from now on."""
    if type(x) is Tracer:
        return up_to_date(x).owner.convert_to_array(x)
    return x[()] if type(x) in WEAK else x


def stop(x: Any) -> Any:
    """Return what `stop_gradient` leaves of one value."""
    return up_to_date(x).owner.stop(x) if type(x) is Tracer else x
