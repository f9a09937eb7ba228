"""What goes into a transform and what comes out: conversions, and the checks that bad input meets."""

from __future__ import annotations

import dataclasses
import functools
import numbers
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy import float64, ndarray

from fad import tree
from fad.backends import ARRAYS, backend_of, is_numpy_array, is_on_device, open_memmap
from fad.backends import _of as backend_or_none
from fad.core.handles.buffers import borrow, plain
from fad.core.handles.structured_arrays import is_structured, open_structured
from fad.core.primitives.cotangent import densify
from fad.core.primitives.limits import take_derivative, take_limit
from fad.core.runs.running import Running
from fad.core.runs.stand_ins import stand_for_given
from fad.core.tracing.trace import Trace
from fad.core.tracing.tracer import Tracer, up_to_date
from fad.core.tracing.values import same_structure
from fad.core.tracing.views import RUNS, copy_layout, is_array, is_writeable, snapshot, unwrap
from fad.core.tracing.weak import WeakFloat, weaken
from fad.errors import (
    ArgnumsError,
    DtypeMismatchError,
    IntegerInputError,
    ShapeMismatchError,
    UnsupportedInputError,
)
from fad.tree.nodes import LEAF, SINGLE

_NUMBERS = (bool, int, float, complex)


def lend(x: Any) -> Any:
    """Return what a function is given besides what is transformed: an array that it may write into, or a function.

    Where traced values are written, what stands for a library's function or object is given in its place.
    """
    if RUNS.structured and is_structured(x):
        return open_structured(x)
    return borrow(x if not RUNS.buffers or type(x) is Tracer or type(x) in ARRAYS else stand_for_given(x))


def _as_plain(x: np.ndarray) -> str:
    """Return how to write an array of a subclass as a plain one."""
    if isinstance(x, np.ma.MaskedArray):
        return "x.filled(0.0), and np.mean(y, where=~mask) of a mask, np.ma.getmaskarray(x), for what leaves some out"
    if isinstance(x, np.matrix):
        return "np.asarray(x), with x @ y for the product x * y"
    return "a field is one, np.asarray(x['name'])" if x.dtype.names else "np.asarray(x)"


def as_operand(x: Any, beside: Any = ()) -> Any:
    """Return the constant operand of an operation as an array or number; NotImplemented if it is neither.

    Raises BackendMismatchError if it lives elsewhere than the traced operands `beside` it.
    """
    kind = type(x)
    if kind is Tracer:
        return up_to_date(x).owner.freeze(x)
    if kind in _NUMBERS or isinstance(x, np.generic):
        return x
    if kind is np.ndarray:
        if x.dtype.kind == "O":
            raise _error_of_objects()
        return x
    if kind in (list, tuple):
        x = np.asarray(x)
        return as_operand(x)
    if hasattr(kind, "__fad_function__"):
        return NotImplemented
    if hasattr(kind, "__fad_number__"):  # a number that is more than Python's, and counts as that
        return kind.__fad_number__(x)
    if kind is np.memmap:
        return as_operand(open_memmap(x))
    if isinstance(x, np.ndarray):
        raise UnsupportedInputError(
            f"a {kind.__name__} met a traced value; fad takes plain arrays: {_as_plain(x)}"
        )
    if backend_or_none(x) is not None:
        backend_of(x, *[unwrap(other) for other in beside])
        return x
    if isinstance(x, Sequence) and not isinstance(x, (str, bytes, bytearray)):  # a range, an array.array, a deque
        return as_operand(np.asarray(x))
    return _as_number(x)


def is_inexact(x: Any) -> bool:
    """Return whether something is an array or scalar of a dtype that has derivatives."""
    return hasattr(x, "dtype") and x.dtype.kind in "fc"


def as_flat(y: Any) -> Any:
    """Return a result of a dtype without derivatives as it is; of Python's objects nobody knows if they have one."""
    if not hasattr(y, "dtype") or y.dtype.kind == "O":
        raise _error_of_objects()
    return y


def _error_of_objects() -> UnsupportedInputError:
    return UnsupportedInputError(
        "an array of Python objects met a traced value; make numbers of the objects, x.astype(float), or objects of "
        "the traced value, x.astype(object)"
    )


def split_operands(trace: Trace, args: Any) -> tuple[list, list] | None:
    """Return the values of an operation's operands, and for each its tracer of this trace, None for a constant.

    It is None if one of them is no operand that fad knows: it may know what to do itself. The traces of `vjp`, `jvp`
    and `vmap`, where it was measured to be some 5 % of an operation on small arrays, have this loop written out.
    """
    values: list = []
    tracers: list = []
    for x in args:
        if type(x) is Tracer and x.owner is trace:
            values.append(x.wrapped)
            tracers.append(x)
        else:
            x = as_operand(x, args)
            if x is NotImplemented:
                return None
            values.append(x)
            tracers.append(None)
    return values, tracers


def split_as_kept(trace: Trace, args: Any, constant: Any) -> tuple[list, list]:
    """Return values of the operands for a rule that keeps them, and their places on the tape, `constant` where none.

    Arrays that only older traces know are taken as they are now: the program may write into them afterwards.
    """
    values = [x.wrapped if type(x) is Tracer and x.owner is trace else _freeze(x) for x in args]
    parents = [x.info if type(x) is Tracer and x.owner is trace else constant for x in args]
    return values, parents


def _freeze(x: Any) -> Any:
    return up_to_date(x).owner.freeze(x) if type(x) is Tracer else x


def _as_number(x: Any) -> Any:
    """Return the NumPy scalar that a subclass of Python's numbers is to NumPy; NotImplemented for what is none.

    A fraction, of which NumPy makes an array of objects, becomes a Python number.
    """
    if isinstance(x, (int, float, complex)):
        return np.asarray(x)[()]
    return float(x) if isinstance(x, numbers.Rational) else NotImplemented


def as_primal(x: Any, what: str = "the argument to differentiate") -> Any:
    """Return a differentiable input as an array, scalar or tracer; a Python number stays one where it meets arrays.

    Raises IntegerInputError for integers and booleans, UnsupportedInputError for anything that is no number.
    """
    kind = type(x)
    if kind is float64 or (kind is ndarray and x.dtype.kind in "fc"):
        return x
    if kind is float:
        return WeakFloat(x)
    if kind is complex:
        return weaken(x)
    x = up_to_date(x).owner.primal(x) if kind is Tracer else as_value(x, what)
    if x.dtype.kind not in "fc":
        raise IntegerInputError(
            f"{what} has dtype {x.dtype}, and a derivative needs floating-point or complex numbers. "
            "Write 3.0 for 3 or x.astype(float); grad takes allow_int=True for a zero gradient"
        )
    return x


def flatten_primals(given: tuple, what: str = "the argument to differentiate") -> tuple[list, Any]:
    """Return the leaves of differentiable inputs, a tuple of trees, by `as_primal`, and their structure.

    The error of one that has no derivative says where in its tree it stands: ``at ['layers'][0]['name']``.
    """
    if len(given) == 1:
        (x,) = given
        kind = type(x)
        if kind is float:
            return [WeakFloat(x)], SINGLE
        if kind is float64 or (kind is ndarray and x.dtype.kind in "fc"):
            return [x], SINGLE
    leaves, structure = tree.flatten(given)
    if any(map(is_structured, leaves)):
        leaves, structure = tree.flatten(open_fields(given))
    try:
        return [as_primal(x, what) for x in leaves], structure
    except (IntegerInputError, UnsupportedInputError):
        placed, _ = tree.flatten_with_path(open_fields(given))
    return [as_primal(x, what + _place(path[1:])) for path, x in placed], structure


def open_fields(given: Any) -> Any:
    """Return a tree in which structured arrays have leaves of their own, their fields."""
    return tree.map(lambda x: open_structured(x) if is_structured(x) else x, given)


def flatten_like(given: Any, structure: Any, what: str) -> list:
    """Return the leaves of tangents or cotangents, which have the structure of the values they belong to."""
    leaves, found = tree.flatten(given)
    if found != structure and any(map(is_structured, leaves)):
        leaves, found = tree.flatten(open_fields(given))
    same_structure(structure, found, what)
    return leaves


def _place(path: tuple) -> str:
    return " at " + "".join([f"[{key!r}]" for key in path]) if path else ""


def as_value(x: Any, what: str = "the argument") -> Any:
    """Return an array, NumPy scalar or tracer; Python numbers become NumPy scalars."""
    kind = type(x)
    if kind is np.ndarray:
        if x.dtype.kind not in "fcbiu":
            raise _not_of_numbers(x, what)
        return x
    if kind is Tracer:
        return up_to_date(x).owner.strong(x)
    if kind is float:
        return np.float64(x)
    if kind in _NUMBERS:
        return np.asarray(x)[()]
    if isinstance(x, np.generic) and x.dtype.kind in "fcbiu":
        return x
    if isinstance(x, (np.timedelta64, np.datetime64, np.void)):
        raise _not_of_numbers(x, what)
    if kind is np.memmap:
        return as_value(open_memmap(x), what)
    if isinstance(x, np.ndarray):
        raise UnsupportedInputError(
            f"{what} is a {kind.__name__}; fad takes plain arrays: {_as_plain(x)}"
        )
    if backend_or_none(x) is not None:
        return x
    if (number := _as_number(x)) is not NotImplemented:
        return np.asarray(number)[()]
    raise UnsupportedInputError(
        f"{what} has a leaf of type {kind.__name__} ({x!r:.60}); fad takes arrays and numbers, in lists, tuples, "
        f"dictionaries and classes known to it: {_how_to_register(kind)}"
    )


_NUMBERS_OF = {
    "O": ": x.astype(float), if its elements are numbers", "S": ": x.astype(float), if its text is of numbers",
    "U": ": x.astype(float), if its text is of numbers", "M": ": (x - start) / np.timedelta64(1, 's') counts seconds",
    "m": ": x / np.timedelta64(1, 's') counts seconds", "V": ": a field is one, x['name']",
}  # fmt: skip


def _not_of_numbers(x: Any, what: str) -> UnsupportedInputError:
    kind = "an array" if type(x) is np.ndarray else "a scalar"
    return UnsupportedInputError(
        f"{what} is {kind} of dtype {x.dtype}; fad takes arrays of numbers{_NUMBERS_OF.get(x.dtype.kind, '')}"
    )


def _how_to_register(kind: type) -> str:
    name = kind.__name__
    if issubclass(kind, (str, bytes)):
        return "keep it out of the tree, as an argument of its own, in a closure or in meta_fields of a dataclass"
    if issubclass(kind, Iterable) and kind.__module__ in ("builtins", "array", "collections"):
        return f"np.array(list(x)) for a {name}"
    if hasattr(kind, "__array__"):
        return f"np.asarray(x) for a {name}"
    if dataclasses.is_dataclass(kind):
        return f"write @fad.tree.register_dataclass above @dataclass of {name}, or fad.tree.register_dataclass({name})"
    return f"fad.tree.register_node({name}, flatten, unflatten)"


def check_function(fun: Any, what: str, argnums: Any = 0) -> None:
    """Raise at once if a transform was given the value of a function, or the function's argument too."""
    if not callable(fun):
        kind = type(fun).__name__
        raise TypeError(f"{what} takes a function, and was given a {kind}: write fad.{what}(f)(x) for fad.{what}(f(x))")
    if getattr(argnums, "ndim", 0) or isinstance(argnums, (float, complex)):
        given = f"a {type(argnums).__name__}" if getattr(argnums, "ndim", 0) else repr(argnums)
        raise ArgnumsError(
            f"argnums of {what} says which arguments to differentiate, as 0 or (0, 1), and was given {given}: "
            f"write fad.{what}(f)(x) for fad.{what}(f, x)"
        )


def finish_output(x: Any) -> Any:
    """Check one output leaf of a transformed function, and return it as an array, NumPy scalar or tracer."""
    return as_value(x, "the output of the function")


def _result(x: Any, trace: Trace) -> Any:
    """Return an output without the history of tensors that the function itself gave it, around a tracer of `trace`."""
    if type(x) is Tracer and x.owner is trace and x.memory is None:
        return x
    x = finish_output(x)
    if type(x) is Tracer and type(x.wrapped) is Tracer and x.wrapped.owner is trace and x.owner.birth < trace.birth:
        return x.wrapped
    return x


def _pair(out: Any) -> tuple:
    """Take apart what a function with has_aux=True returned."""
    if type(out) is not tuple or len(out) != 2:
        raise TypeError(
            f"with has_aux=True the function must return a pair (output, aux), but it returned {type(out).__name__}"
        )
    return out


def run(
    fun: Callable, trace: Trace, call: Callable, has_aux: bool, user: Callable | None = None
) -> tuple[list, Any, Any]:
    """Run a transformed function on tracers of `trace`, which ends with it: ``call()`` makes them and calls it.

    A second run makes them again, for the first may have written into them. `user` is the function of the user's, if
    `fun` only calls it with further arguments.
    Return the leaves of its output, their structure, and what else it returned, as plain values.
    """
    aux = None
    running = Running(fun, user, order=trace.order)
    try:
        out = running.run(call, trace.own_error)
        if has_aux:
            out, aux = _pair(out)
            aux = tree.map(functools.partial(_hand_out, trace), aux)
        if type(out) is Tracer and out.owner is trace and out.memory is None:
            leaves, structure = [out], LEAF
        else:
            leaves, structure = tree.flatten(out)
            leaves = [_result(x, trace) for x in leaves]
    except Exception as error:
        trace.clarify(error)
        raise
    finally:
        trace.finish()
        running.__exit__()
    return leaves, structure, aux


def plain_values(outputs: list, trace: Trace) -> list:
    """Return the leaves of the output of a function as the values that leave the transform."""
    values = []
    for x in outputs:
        if type(x) is Tracer:
            if x.owner is trace:
                x = x.wrapped
            if type(x) is Tracer:
                x = take_limit(x, derivative=False)
        if type(x) is not float64:
            x = float64(x) if type(x) is WeakFloat else trace.hand_out(x)
        values.append(x)
    return values


def _hand_out(trace: Trace, x: Any) -> Any:
    """Return a leaf of auxiliary output as a plain value."""
    x = up_to_date(x) if type(x) is Tracer else x
    return trace.hand_out(plain(take_limit(trace.lower(x), derivative=False)))


def check_like(given: list, expected: list, what: str) -> list:
    """Check tangents or cotangents against the values they belong to, and return them as arrays.

    Raises ShapeMismatchError or DtypeMismatchError. A Python number goes with any real dtype if the shape is ().
    """
    out = []
    for t, x in zip(given, expected, strict=True):
        if type(x) is int:  # beyond 64 bits: NumPy has no number for it, and there is no derivative
            out.append(t)
            continue
        weak = type(t) in _NUMBERS
        t = as_value(t, what)
        if t.shape != x.shape:
            raise ShapeMismatchError(f"{what} must have the shape {x.shape} of its value, but has {t.shape}")
        if t.dtype != x.dtype:
            dtype = x.dtype.newbyteorder("=")  # derivatives have the machine's byte order, whatever their value has
            if t.dtype.newbyteorder("=") != dtype and (not weak or (t.dtype.kind == "c" and dtype.kind != "c")):
                raise DtypeMismatchError(
                    f"{what} must have the dtype {dtype} of its value, but has {t.dtype}: "
                    f"write t.astype({str(dtype)!r})"
                )
            t = t.astype(dtype)
        out.append(t)
    return out


def check_cotangent(ct: Any, out_tree: Any, values: list) -> list:
    """Check a cotangent given by the user against the output of the function."""
    what = "the cotangent given to a pullback"
    return check_like(flatten_like(ct, out_tree, what), values, what)


def settle(cts: list, primals: list, given: list) -> list:
    """Make cotangents fit to be handed out: dense, of their primal's kind, and sharing no memory with anything."""
    out: list = []
    taken = None
    for k, x in enumerate(primals):
        ct = cts[k]
        if type(ct) is float64:
            kind = type(x)
            out.append(np.asarray(ct) if kind is ndarray or (kind is Tracer and is_array(x)) else ct)
            continue
        if taken is None:
            taken = {id(root(g)) for g in given if type(g) is ndarray}
        if ct is None:
            ct = zeros_like(x)
        elif type(ct) is not np.ndarray:
            ct = take_derivative(densify(ct))
        if not ct.dtype.isnative:
            ct = ct.astype(ct.dtype.newbyteorder("="))
        if type(ct) is np.ndarray:
            if ct.ndim == 0 and not stands_for_array(x):
                ct = ct[()]
            else:
                base = root(ct)
                if id(base) in taken or not is_writeable(ct) or base is x:
                    ct = ct.copy()
                    base = ct
                taken.add(id(base))
        elif type(ct) is Tracer:
            ct = kind_of_traced(snapshot(ct), x)
        elif isinstance(ct, np.generic) and stands_for_array(x):
            ct = np.asarray(ct)
        out.append(ct)
    return out


def stands_for_array(x: Any) -> bool:
    """Return whether a value is an array, and no number: a traced one, whether it stands for an array."""
    return is_array(x) if type(x) is Tracer else type(x) is ndarray


def kind_of_traced(ct: Any, x: Any) -> Any:
    """Return a traced derivative without axes as an array or as a scalar, as the value that it belongs to is."""
    if ct.shape or is_array(ct) == stands_for_array(x):
        return ct
    return ct[()] if is_array(ct) else ct[...]


def root(x: Any) -> Any:
    """Return the array that owns the memory of `x`."""
    while type(x) is np.ndarray and x.base is not None:
        x = x.base
    return x


def was_changed(given: Any, structure: Any, before: list, made_of: list) -> bool:
    """Return whether a function put something else into lists, dictionaries and objects that it was given.

    Leaves that are not those of which it was made are no sign: an object may make its leaves when asked for them.
    """
    after, now = tree.flatten(given)
    return now != structure or any(
        old is x and new is not x for old, new, x in zip(before, after, made_of, strict=True)
    )


def separate(ys: list, given: list) -> list:
    """Return results that share memory neither with what a function was given nor with one another.

    A traced one is a value of its own, too: so the function means the same plainly and within another transform.
    """
    owners = {id(root(x)) for x in given if type(x) is ndarray}
    out = []
    for y in ys:
        if type(y) is Tracer:
            y = snapshot(y)
        elif type(y) is ndarray:
            owner = id(root(y))
            y = copy_layout(y) if owner in owners else y
            owners.add(owner)
        out.append(y)
    return out


def separate_aux(aux: Any, given: Any) -> Any:
    """Return what a function returned beside its value, likewise."""
    leaves, structure = tree.flatten(aux)
    return tree.unflatten(structure, separate(leaves, tree.leaves(given)))


def kind_of(t: Any, x: Any) -> Any:
    """Return a tangent as an array, or as a scalar, as its value is."""
    if not is_on_device(t):
        return np.asarray(t) if is_numpy_array(x) else np.asarray(t)[()]
    return t


def zeros_like(x: Any) -> Any:
    """Return zeros of the same kind: an array for an array, a NumPy scalar for a scalar."""
    z = np.zeros_like(x)
    return z if type(x) is np.ndarray or z.ndim else z[()]
