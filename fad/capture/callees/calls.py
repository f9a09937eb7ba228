"""Calls from converted code: which functions are converted in their turn, and which a body may call at all.

A body is recorded once for all steps. So what it calls must be seen: NumPy's functions on traced values are operations,
functions of the user's are converted themselves, and of Python's own those are known that change nothing. Any
other call ends the capture, before it is made.
"""

from __future__ import annotations

import builtins
import collections
import copy
import dataclasses
import functools
import math
import operator
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from fad.capture.body.context import current, is_staged, refuse
from fad.capture.body.draws import draw_in_step, is_generator
from fad.capture.body.keyed_looks import DICTIONARIES
from fad.capture.body.places import Variable, content, find_item, find_part, is_exclusive
from fad.capture.body.unseen import find_variables
from fad.capture.body.values import STANDING, as_number, getitem, note_made, setitem
from fad.capture.body.windows import find_window
from fad.capture.callees.messages import SHOWN_IN_STEP, log_in_step
from fad.capture.callees.printing import is_of_logging, print_in_step
from fad.capture.callees.resumable import draw_next, make_resumable
from fad.capture.containers.dict_methods import METHODS, note_deleted
from fad.capture.containers.growing_arrays import GrowingArray, growing_operand
from fad.capture.containers.growing_dicts import GrowingDict
from fad.capture.containers.growing_lists import GrowingList
from fad.capture.containers.number_dicts import NumberDict
from fad.capture.containers.prepended_lists import PrependedList
from fad.capture.rewriting.convert import convert_function, is_users, wants_conversion
from fad.control_flow.lengths.padded import PaddedArray
from fad.core.handles.random_sources import check_draw
from fad.core.runs.transformed import Transformed
from fad.core.tracing.tracer import Tracer, bind
from fad.ops.places.in_place import assign_shape
from fad.ops.python.compiled_functions import Compiled
from fad.ops.python.python_functions import StandIn
from fad.ops.ufuncs.complexes import parts_p
from fad.staging.python_numbers import to_int_p
from fad.staging.record import is_found_by_name, is_variable_found

_PURE = frozenset({
    abs, all, any, bool, bytes, callable, chr, complex, dict, divmod, enumerate, float, format, frozenset, getattr,
    hasattr, hash, id, int, isinstance, issubclass, iter, len, list, max, min, object, ord, pow, range, repr, reversed,
    round, set, slice, sorted, str, sum, tuple, type, zip,
})  # fmt: skip
_PURE_MODULES = frozenset({"math", "cmath", "operator", "_operator"})
_READING = frozenset({
    "copy", "count", "get", "index", "items", "keys", "values", "union", "intersection", "difference", "issubset",
    "issuperset", "isdisjoint", "symmetric_difference",
})  # fmt: skip
_OF_NAMED_TUPLES = frozenset({"_replace", "_asdict"})
_MAKERS = frozenset({list, dict, set, collections.deque})
_CONTAINERS = (list, dict, set, collections.deque)
_MOVING = frozenset({
    "append", "appendleft", "pop", "popleft", "extend", "extendleft", "rotate", "clear", "insert", "reverse",
})  # fmt: skip
_CONSTANT = (str, bytes, tuple, frozenset, int, float, complex, bool, type(None), slice, range)
_WRITING_METHODS = frozenset({
    "sort", "fill", "put", "partition", "itemset", "resize", "setfield", "setflags", "byteswap", "tofile", "dump",
})  # fmt: skip
_WRITING = frozenset({np.copyto, np.put, np.putmask, np.place, np.put_along_axis, np.fill_diagonal})
# Functions that give no view of what they read.
_REDUCING = frozenset({
    np.sum, np.mean, np.std, np.var, np.min, np.max, np.median, np.prod, np.dot, np.vdot, np.inner, np.cumsum,
    np.argmin, np.argmax, np.any, np.all, np.percentile, np.quantile, np.diff, np.sort, np.linalg.norm,
})  # fmt: skip
_MAKING = frozenset({"array", "asarray", "asanyarray", "ascontiguousarray"})
check_draw.append(lambda: None if current() is None else refuse("it draws random numbers"))
make_helpers: list[Callable] = []  # of converted code; put here by `fad.capture.runtime`, which stands above
folds: dict[Callable, Callable] = {}  # what runs in place of sum, max, ...; put here by the same


def prepare_call(f: Any) -> Any:
    """Return a function as converted code is to call it."""
    if type(f) in (types.BuiltinFunctionType, StandIn) and f in folds:
        return folds[f]
    body = current()
    if body is None:
        return run_converted(f)
    stands_in = _stands_in(f) or make_resumable(f, make_helpers[0])
    return stands_in if stands_in is not None else _check_callee(f)


def run_converted(f: Any) -> Any:
    """Return a function converted where it is the user's and may come to a loop, and otherwise as it is."""
    if (resumable := make_resumable(f, make_helpers[0])) is not None:
        return resumable
    if current() is not None and type(f) in (types.FunctionType, types.MethodType):
        return _check_callee(f)
    if type(f) is Compiled:
        return functools.partial(_call_compiled, f, run_converted(f.py_func))
    inner = vars(type(f)).get("__call__")
    if type(inner) is types.FunctionType and is_users(inner):
        f = types.MethodType(inner, f)
    if not wants_conversion(f):
        return f
    found, _ = convert_function(f, make_helpers[0])
    return f if found is None else found


def _call_compiled(f: Compiled, python: Callable, *args: Any, **kwargs: Any) -> Any:
    return f.choose(args, kwargs, python)(*args, **kwargs)


def _stands_in(f: Any) -> Any:
    try:
        return STANDS_IN.get(f)
    except TypeError:  # it cannot be hashed
        return None


def _check_callee(f: Any) -> Any:
    """Return what a body may call; refuse what may change something, or depend on more than its arguments."""
    kind = type(f)
    if kind is types.FunctionType:
        return _function(f)
    if kind is Compiled:  # what compiled code changes is not seen
        return _function(f.py_func)
    if kind is types.MethodType:
        return _method(f)
    if kind in (types.BuiltinFunctionType, types.MethodWrapperType):
        return _builtin(f)
    if isinstance(f, type):
        return _class(f)
    if isinstance(f, np.ufunc) or kind is type(np.sum):
        return _numpys(f)
    if kind is functools.partial:
        return functools.partial(prepare_call(f.func), *f.args, **f.keywords)
    if kind is Transformed or (kind.__module__ or "").partition(".")[0] == "fad":
        return f
    inner = vars(kind).get("__call__")
    if type(inner) is types.FunctionType and is_users(inner):
        return prepare_call(types.MethodType(inner, f))
    if kind in (operator.itemgetter, operator.attrgetter):
        return f
    return refuse(f"it calls a {kind.__name__}, of which it is not known what it does")


def _function(f: types.FunctionType) -> Any:
    if is_users(f):
        if hasattr(f, "__wrapped__") and f.__code__.co_filename == functools.__file__:
            return refuse(f"it calls {f.__name__}, which remembers its calls")
        found, why = convert_function(f, make_helpers[0], everywhere=True)
        if found is None:
            return refuse(f"it calls {f.__qualname__}, and {why}")
        for place in find_variables(f):
            current().note_change(place)  # type: ignore[union-attr]
        return functools.partial(_given, found) if current().growing else found  # type: ignore[union-attr]
    root = (f.__module__ or "").partition(".")[0]
    if root == "fad":
        return f
    if root == "numpy" and not (f.__module__ or "").startswith("numpy.random"):
        return _numpys(f)
    if f in (dataclasses.replace, copy.copy):
        return functools.partial(_make, f)
    if f.__module__ in ("operator", "copy", "statistics", "fractions", "numbers"):
        return f
    return refuse(f"it calls {f.__module__}.{f.__qualname__}, of which it is not known what it does")


def _given(f: Callable, *args: Any, **kwargs: Any) -> Any:
    """Call a function of the user's with arrays that grow as they are now: nobody shall see them grow."""
    args = tuple([x.whole(True) if type(x) is GrowingArray else x for x in args])
    return f(*args, **{name: x.whole(True) if type(x) is GrowingArray else x for name, x in kwargs.items()})


def _numpys(f: Any) -> Any:
    if f in _WRITING or getattr(f, "__wrapped__", None) in _WRITING:
        return functools.partial(_writing, f)
    return functools.partial(_with_out, f)


def _read_whole(x: Any, copy: bool) -> Any:
    """Return what a function of NumPy reads of an argument: of what grows the elements that there are."""
    if type(x) is GrowingList:
        return x.as_array(copy)
    if type(x) is GrowingArray:
        return x.whole(copy)
    if type(x) in (list, tuple) and any(type(y) in (GrowingList, GrowingArray) for y in x):
        return type(x)([_read_whole(y, copy) for y in x])
    return x


def _writing(f: Callable, target: Any, *args: Any, **kwargs: Any) -> Any:
    if type(target) is not Tracer:
        refuse(f"it calls {f.__name__} on a plain array")
    return f(target, *args, **kwargs)


def _with_out(f: Callable, *args: Any, **kwargs: Any) -> Any:
    """Call a function of NumPy, unless it is to write into a plain array."""
    given, args = args, tuple([_read_whole(x, f not in _REDUCING) for x in args])
    if args and args[0] is not given[0] and type(args[0]) is PaddedArray and getattr(f, "__name__", "") in _MAKING:
        return args[0] if len(args) == 1 and not kwargs else refuse(f"it calls {f.__name__} with options")
    out = kwargs.get("out")
    if out is not None and any(
        type(x) is not Tracer and x is not None for x in (out if type(out) is tuple else (out,))
    ):
        refuse(f"it writes the result of {f.__name__} into a plain array")
    if any(callable(x) and type(x) is not Tracer and not isinstance(x, type) for x in (*args, *kwargs.values())):
        refuse(f"it hands a function to {f.__name__}")
    nout = getattr(f, "nout", None)
    if nout is not None and any(type(x) is np.ndarray for x in args[f.nin :]):  # type: ignore[attr-defined]
        refuse(f"it writes the result of {f.__name__} into a plain array")
    return f(*args, **kwargs)


def _method(f: types.MethodType) -> Any:
    owner = f.__self__
    if is_of_logging(f):
        return log_in_step(f)
    if is_generator(owner):
        return functools.partial(draw_in_step, owner, f.__name__)
    if type(owner) is Tracer or type(owner).__module__.partition(".")[0] == "fad":
        return f
    inner = f.__func__
    if type(inner) is types.FunctionType and is_users(inner):
        found = _function(inner)
        return types.MethodType(found, owner)
    if isinstance(owner, tuple) and f.__name__ in _OF_NAMED_TUPLES and f.__module__ == "collections":
        return f
    return refuse(f"it calls {getattr(f, '__qualname__', f)}, of which it is not known what it does")


def _builtin(f: Any) -> Any:
    owner = f.__self__
    name = f.__name__
    if owner is builtins:
        return f if f in _PURE else refuse(f"it calls {name}")
    if type(owner) is types.ModuleType or owner is None:
        module = f.__module__ or getattr(owner, "__name__", "")
        if module in _PURE_MODULES:
            return f
        if module.partition(".")[0] == "numpy" and not module.startswith("numpy.random"):
            return functools.partial(_with_out, f)
        return refuse(f"it calls {module}.{name}")
    if isinstance(owner, (np.ndarray, np.generic)):
        return (
            refuse(f"it calls {name} of a plain array") if name in _WRITING_METHODS else functools.partial(_with_out, f)
        )
    if isinstance(owner, np.ufunc):
        return functools.partial(_with_out, f) if name != "at" else functools.partial(_writing, f)
    if isinstance(owner, _CONSTANT):
        return f
    if isinstance(owner, type):  # a class method, as dict.fromkeys
        return f if issubclass(owner, (*_CONSTANT, dict, float)) else refuse(f"it calls {owner.__name__}.{name}")
    if isinstance(owner, _CONTAINERS):
        what = type(owner).__name__
        if name == "copy":
            return lambda: note_made(f())
        if id(owner) in current().made:  # type: ignore[union-attr]
            return f
        if type(owner) in DICTIONARIES and name in METHODS and (type(owner), name) != (collections.Counter, "update"):
            return functools.partial(METHODS[name], owner)
        if type(owner) is list and name in ("append", "extend") and _is_grown(owner, current()):
            return _ignore
        if type(owner) in (list, collections.deque) and name in _MOVING:
            _note_moved(owner)
            return f
        return f if name in _READING else refuse(f"it changes a {what}, by {name}")
    return refuse(f"it calls {name} of a {type(owner).__name__}, of which it is not known what it does")


def _note_moved(x: Any) -> None:
    """Note that a step changes which elements a list or deque has: a window, a delay line, a queue."""
    body: Any = current()
    window = find_window(x)
    body.windows.add(id(x))
    for place in [place for place in body.grown or () if content(place) is x]:  # what a look has taken it for
        del body.grown[place]
    body.note_change(window)


def delete_item(x: Any, index: Any) -> None:
    """Do ``del x[index]``."""
    body = current()
    if body is not None and type(x) not in STANDING and id(x) not in body.made:
        if type(x) in (list, collections.deque):
            _note_moved(x)
        elif isinstance(x, dict):
            note_deleted(x, index)
        else:
            refuse(f"it deletes an item of a {type(x).__name__}")
    del x[index]


def _class(f: type) -> Any:
    if hasattr(f, "__del__"):
        return refuse(f"it makes a {f.__name__}, which does something when it goes")
    if f in _MAKERS or f is types.SimpleNamespace:
        return functools.partial(_make, f)
    if f is functools.partial:  # what it is to call is looked at when it is called
        return f
    if f in _PURE or issubclass(f, (BaseException, np.generic)) or f in (np.dtype, np.errstate):
        return f
    if issubclass(f, tuple) and hasattr(f, "_fields"):
        return f
    made = getattr(f, "__dataclass_fields__", None)
    if made is not None and not hasattr(f, "__post_init__"):
        return functools.partial(_make, f)
    init = f.__init__
    if type(f) is type and type(init) is types.FunctionType and is_users(init) and f.__new__ is object.__new__:
        return functools.partial(_make_by, _function(init), f)
    if (f.__module__ or "").partition(".")[0] == "fad":
        return f
    return refuse(f"it makes a {f.__name__}, of which it is not known what it does")


def check_context(x: Any) -> Any:
    """Return what a block of a body runs under, if that says how NumPy warns, and refuse anything else."""
    return x if current() is None or type(x) is np.errstate else refuse("it has with")


def _make(f: Callable, *args: Any, **kwargs: Any) -> Any:
    """Return an object of a class whose making changes nothing else."""
    return note_made(f(*args, **kwargs))


def _make_by(init: Callable, f: type, *args: Any, **kwargs: Any) -> Any:
    """Return an object of a class of the user's, whose ``__init__`` is converted."""
    made = note_made(object.__new__(f))
    init(made, *args, **kwargs)
    return made


def set_attribute(value: Any, holder: Any, name: str) -> None:
    """Do ``holder.name = value``."""
    body = current()
    setter = getattr(getattr(type(holder), name, None), "fset", None)
    if body is not None and type(setter) is types.FunctionType and is_users(setter):
        prepare_call(setter)(holder, value)
        return
    if body is not None and not (type(holder) is Tracer and name in ("real", "imag", "flat")):
        place = find_part(holder, name)
        if place is None:
            refuse(f"it sets the attribute {name} of a {type(holder).__name__}, which may do more than that")
        body.note_change(place)
    if type(holder) is Tracer and name == "shape":
        assign_shape(holder, value)  # itself, for `setattr` knows the array by one more name
    else:
        setattr(holder, name, value)


def _set_named(holder: Any, name: Any, value: Any) -> None:
    """Do ``setattr(holder, name, value)``."""
    if current() is not None and type(name) is str:
        set_attribute(value, holder, name)
    else:
        setattr(holder, name, value)


def set_item(value: Any, x: Any, index: Any) -> None:
    """Do ``x[index] = value``."""
    method = getattr(type(x), "__setitem__", None)
    if current() is not None and type(method) is types.FunctionType and is_users(method):
        prepare_call(types.MethodType(method, x))(index, value)
    else:
        setitem(value, x, index)


# --- Python's own functions on traced values --------------------------------------------------------------------------


def _extreme(plain: Callable, traced: np.ufunc) -> Callable:
    """Return min or max: as Python compares, the first of those that are equal."""
    better: Callable = operator.lt if plain is min else operator.gt

    def extreme(*xs: Any, **options: Any) -> Any:
        if len(xs) < 2 or options or not any(map(is_staged, xs)):
            return plain(*xs, **options)
        from fad.capture.choices import branches

        found = xs[0]
        for x in xs[1:]:
            found = branches.choose(better(x, found), lambda x=x: x, lambda found=found: found)
        return found

    return extreme


def _int(x: Any = 0, *args: Any) -> Any:
    if args or not is_staged(x):
        return int(x, *args)
    if x.dtype.kind in "iu" and x.dtype != np.uint64 and not x.shape:  # an int of 64 bits holds it
        return as_number(x)
    if _is_real(x):
        return bind(to_int_p, x)
    return refuse("it makes an int of a value that differs from step to step")


def _is_real(x: Any) -> bool:
    return not x.shape and x.dtype.kind == "f" and x.dtype.itemsize <= 8


def _float(x: Any = 0.0) -> Any:
    if not is_staged(x):
        return float(x)
    if x.dtype.kind in "iu" and not x.shape:
        return as_number(x) * 1.0
    return as_number(x.astype(np.float64)) if _is_real(x) else refuse("it makes a float of an array")


def _complex(*parts: Any) -> Any:
    traced = [x for x in parts if type(x) is Tracer]
    if not any(map(is_staged, parts)) or any(x.shape or not (_is_real(x) or x.dtype.kind in "iu") for x in traced):
        return complex(*parts)
    real, imaginary = (*parts, 0.0)[:2]
    if complex in (type(real), type(imaginary)):
        return as_number(real + imaginary * 1j)
    return as_number(bind(parts_p, *[x * np.float64(1.0) for x in (real, imaginary)]))  # scalars, not Python numbers


def _round_by(original: Callable, whole: np.ufunc) -> Callable:
    """Return round, math.floor or a like function, which gives Python's integers."""

    def round_staged(x: Any, *digits: Any) -> Any:
        if digits not in ((), (None,)) or not is_staged(x) or not (_is_real(x) or x.dtype.kind in "iu"):
            return original(x, *digits)
        return _int(x if x.dtype.kind in "iu" else whole(x))

    return round_staged


def _len(x: Any) -> Any:
    if type(x) in (GrowingList, GrowingArray, GrowingDict, PrependedList, NumberDict):
        return x.length()
    if type(x) is not PaddedArray:
        return len(x)
    n = x.shape[0]
    return _int(n) if type(n) is Tracer else n


def append_to(holder: Any, key: Any, attribute: bool) -> Any:
    """Return ``append`` of a list that is an attribute or an item of something."""
    x = getattr(holder, key) if attribute else getitem(holder, key)
    body = current()
    if body is not None and type(x) is list and body.grown is not None and not body.level:
        place = find_part(holder, key) if attribute else find_item(holder, key)
        other = id(x) in body.made or id(x) in body.windows
        if place is not None and not other and is_exclusive(place, 1) and not is_found_by_name(holder):
            body.grown[place] = None
            return _ignore
    return prepare_call(x.append)


def join(f: Any) -> Any:
    """Return a function that may join arrays as converted code is to call it."""
    found = prepare_call(f)
    return found if current() is None else functools.partial(_join, f, found)


def _join(f: Any, prepared: Callable, *args: Any, **options: Any) -> Any:
    growing = growing_operand(args[0]) if args else None
    if growing is None:
        return prepared(*args, **options)
    if (getattr(f, "__module__", None) or "").partition(".")[0] != "numpy" or "out" in options:
        refuse(f"it hands {growing.rows.name}, which it makes longer, to a function")
    return growing.join(f, *args, **options)


def join_in_brackets(x: Any, index: Any) -> Any:
    """Return ``x[index]`` of what may be ``np.r_`` or ``np.c_``."""
    growing = growing_operand(index)
    if type(x).__module__.partition(".")[0] in ("numpy", "fad") and type(x) not in (np.ndarray, *STANDING):
        return x[index] if growing is None else growing.join(x.__getitem__, index)
    if growing is not None:
        refuse(f"it hands {growing.rows.name}, which it makes longer, to an object")
    return getitem(x, index)


def note_grown(body: Any, places: list[Variable]) -> None:
    """Note the variables that are lists to which a step appends, in the body of a loop over a generator."""
    for place in places if body.grown is not None and not body.level else ():
        x = content(place)
        mine = type(x) is list and id(x) not in body.made and not is_variable_found(place.holder)
        if mine and not is_found_by_name(x):
            body.grown[place] = None


def _is_grown(x: list, body: Any) -> bool:
    """Return whether a first look has found that steps append to a list that is a variable."""
    return any(type(place) is Variable and content(place) is x for place in body.grown or ())


def _ignore(_: Any) -> None:
    """Take what a first look appends to a list; the next one has something in the place of the list."""


STANDS_IN: dict[Any, Callable] = {
    min: _extreme(min, np.minimum), max: _extreme(max, np.maximum), int: _int, float: _float, complex: _complex,
    round: _round_by(round, np.rint), math.floor: _round_by(math.floor, np.floor),
    math.ceil: _round_by(math.ceil, np.ceil), math.trunc: _round_by(math.trunc, np.trunc), len: _len,
    print: print_in_step, **SHOWN_IN_STEP, setattr: _set_named, next: draw_next,
}  # fmt: skip
