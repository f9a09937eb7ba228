"""What traced values do not do, and why: functions that write in place, files, memory, and methods of that kind.

Each error says what to write instead. Here too is the advice for a function without a rule: the nearest that has one.
This is the last module, for it knows all the others.
"""

from __future__ import annotations

import builtins
import difflib
from collections.abc import Callable
from types import MethodType
from typing import Any

import numpy as np

from fad.core.tracing.numpy_dispatch import FUNCTIONS, REFUSED, UFUNC_METHODS, UFUNCS, _suggest
from fad.core.tracing.own_attributes import OwnAttribute
from fad.core.tracing.trace import Trace
from fad.core.tracing.tracer import Tracer, add_methods, up_to_date
from fad.core.tracing.views import Memory, root_of
from fad.errors import MissingRuleError, TracerConversionError
from fad.ops.ufuncs.pairs import view_parts

_FILE = "it writes numbers to a file; write those of fad.stop_gradient(x), or return x and save it then"
_OBJECTS = "it works on Python objects one by one; write the function with NumPy's own operations"
_DATES = "it works on dates, which have no derivative"
_MATRIX = "np.matrix is an array subclass of old; write np.asarray, np.atleast_2d or np.block"

# name in numpy -> why it cannot take a traced value, and what to write instead
FUNCTION_REASONS = {
    **dict.fromkeys(("save", "savez", "savez_compressed", "savetxt"), _FILE),
    **dict.fromkeys(("busday_count", "busday_offset", "is_busday", "datetime_as_string", "isnat"), _DATES),
    **dict.fromkeys(("asmatrix", "bmat"), _MATRIX),
    **dict.fromkeys(("frompyfunc", "fromiter"), _OBJECTS),
    "nested_iters": _OBJECTS,
    "frombuffer": "it reads memory, and a traced array's memory is not its value; write x.reshape or x.astype",
    "from_dlpack": "another library would get the numbers without their derivative; hand it fad.stop_gradient(x)",
    "in1d": "NumPy has given it up; write np.isin(x.ravel(), values)",
    "isfortran": "the layout of a traced array in memory cannot be seen",
}

_MEMORY = "a traced array's memory is not its value"
_BYTES = "bytes carry no derivative; take fad.stop_gradient(x), or return x from the function and convert it then"

# method -> why traced arrays do not have it, and what to write instead
METHOD_REASONS = {
    "resize": "it changes the size of memory in place; write x = np.resize(x, shape)",
    "setfield": "it writes bytes; write x[i] = v",
    "getfield": _MEMORY + "; write x.astype(dtype), x.real or x.imag",
    "newbyteorder": _MEMORY + "; change the byte order of the array that you differentiate by",
    "byteswap": _MEMORY + "; swap the bytes of the array that you differentiate by",
    "tostring": _BYTES,
    "__dlpack__": "another library would get the numbers without their derivative; hand it fad.stop_gradient(x)",
    "__dlpack_device__": "another library would get the numbers without their derivative; hand it fad.stop_gradient(x)",
}
# methods that give or write the bytes of an array, which lose no derivative where it holds plain or whole numbers
_OF_BYTES = ("tobytes", "tofile", "dump", "dumps")
# attribute -> why what it gives cannot be used
ATTRIBUTE_REASONS = {
    "data": _MEMORY + "; for the numbers write fad.stop_gradient(x)",
    "ctypes": _MEMORY + "; give foreign code a rule with fad.custom_vjp",
}
# method that NumPy's arrays had once -> what to write instead
REMOVED_METHODS = {
    "ptp": "write np.ptp(x)",
    "itemset": "write x[i] = v",
    "newbyteorder": "change the byte order of the array that you differentiate by",
    "tostring": _BYTES,
}


def _refuse_functions() -> None:
    for name, reason in FUNCTION_REASONS.items():
        if hasattr(np, name):
            REFUSED[getattr(np, name)] = reason

    for ufunc in {f for f in vars(np).values() if isinstance(f, np.ufunc)}:
        if (ufunc, "at") not in UFUNC_METHODS:
            REFUSED[ufunc, "at"] = f"it has several results; write x[i] = np.{ufunc.__name__}(x[i])[0]"


def _refuse_ufunc_methods() -> None:
    reason = "that use of it has no rule; write the loop, np.ufunc(x[:, None], y) for an outer table"
    for ufunc in {f for f in vars(np).values() if isinstance(f, np.ufunc)}:
        for method in ("reduce", "accumulate", "reduceat", "outer"):
            if ufunc.nin == 2 and (ufunc, method) not in UFUNC_METHODS:
                REFUSED[ufunc, method] = reason.replace("ufunc", ufunc.__name__)


def _refuse_method(name: str, reason: str) -> Callable:
    def method(self: Tracer, *args: Any, **kwargs: Any) -> Any:
        raise MissingRuleError(f"x.{name}() cannot be called on a traced array: {reason}")

    method.__name__, method.__doc__ = name, f"Refused: {reason}."
    return method


def _take_bytes(name: str) -> Callable:
    def method(self: Tracer, *args: Any, **kwargs: Any) -> Any:
        if self.owner is Trace.of_plain or self.dtype.kind in "biu":
            return getattr(np.asarray(self, self.dtype), name)(*args, **kwargs)
        raise MissingRuleError(f"x.{name}() cannot be called on a traced array: {_BYTES}")

    method.__name__, method.__doc__ = name, f"Refused of what is differentiated: {_BYTES}."
    return method


class _Memory:
    """What ``x.data`` and ``x.ctypes`` give for a traced array, which has them as any array has: any use is refused."""

    __slots__ = ("_why",)

    def __init__(self, why: str):
        self._why = why

    def _refuse(self, *_: Any, **__: Any) -> Any:
        raise MissingRuleError(self._why)

    __getattr__ = __getitem__ = __setitem__ = __len__ = __iter__ = __bytes__ = __array__ = __buffer__ = _refuse
    __eq__ = __ne__ = _refuse  # type: ignore[assignment]
    __hash__ = _refuse  # type: ignore[assignment]


def _refuse_attribute(name: str, reason: str) -> OwnAttribute:
    return OwnAttribute(name, lambda _: _Memory(f"x.{name} cannot be used of a traced array: {reason}"))


def _refuse_methods() -> None:
    for name, reason in METHOD_REASONS.items():
        setattr(Tracer, name, _refuse_method(name, reason))
    for name in _OF_BYTES:
        setattr(Tracer, name, _take_bytes(name))
    for name, reason in ATTRIBUTE_REASONS.items():
        setattr(Tracer, name, _refuse_attribute(name, reason))
    for name, instead in REMOVED_METHODS.items():
        method: Any = vars(Tracer)[name] if name in vars(Tracer) else _refuse_method(name, instead)
        bound = lambda x, method=method: MethodType(method, x)
        setattr(Tracer, name, OwnAttribute(name, bound, f"NumPy has given it up; {instead}"))


def _share_memory(x: Tracer) -> np.ndarray | None:
    """Return the plain array behind a handle, of which others know the memory from now on; None if there is none.

    Traced values cannot be written there any more: an array of another class, or dtype, would not show them.
    """
    x, root = up_to_date(x), root_of(x)
    if x.owner is not Trace.of_plain or root.owner is not Trace.of_plain or type(x.wrapped) is not np.ndarray:
        return None
    root.memory = root.memory or Memory()
    if root.memory.borrowed:
        return None
    root.memory.outside = True
    return x.wrapped


def _view(self: Tracer, dtype: Any = None, type: Any = None) -> Tracer:
    """Return the array itself, or its pairs as complex numbers; other dtypes are refused of traced values."""
    if dtype in (None, np.ndarray, self.dtype) and type in (None, np.ndarray):
        return self
    of_class = isinstance(dtype, builtins.type) and issubclass(dtype, np.ndarray)
    if type is None and not of_class and (parts := view_parts(self, dtype)) is not None:
        return parts
    if (plain := _share_memory(self)) is not None:
        return plain.view(*[kind for kind in (dtype, type) if kind is not None])
    for kind in (dtype, type):
        if isinstance(kind, builtins.type) and issubclass(kind, np.ndarray):
            raise MissingRuleError(
                f"x.view({kind.__name__}) makes an array of another class, and traced values are in none but NumPy's "
                f"own. Leave the array as it is, and make a {kind.__name__} of what the transform returns"
            )
    raise MissingRuleError(
        "x.view(dtype) reads the memory of an array as something else, which is not its value; "
        "write x.astype(dtype), x.real, x.imag or np.stack([x.real, x.imag], -1)"
    )


def _to_device(self: Tracer, device: str, /, *, stream: Any = None) -> Tracer:
    """Return the array itself; it lives where its values live."""
    if device != self.device:
        raise ValueError(f"a traced array lives on {self.device!r}; move the inputs with fad.device_put")
    return self


def _reduce(self: Tracer, *_: Any) -> Any:
    raise TracerConversionError(
        "a traced value was about to be pickled (to a file, another process or a cache), without its derivative; "
        "return it from the function, or take fad.stop_gradient(x)"
    )


add_methods(
    view=_view,
    to_device=_to_device,
    device=property(lambda self: self.wrapped.device, doc="Where the values live."),
    __reduce__=_reduce,
    __reduce_ex__=_reduce,
)
_refuse_functions()
_refuse_ufunc_methods()
_refuse_methods()


# --- advice ------------------------------------------------------------------------------------------------------


def list_known() -> dict[str, str]:
    """Return the names of all NumPy functions that take traced values, and how each is called in full."""
    found: dict[str, str] = {}
    for f in (*UFUNCS, *FUNCTIONS):
        name = getattr(f, "__name__", "")
        module = getattr(f, "__module__", None) or ("numpy" if getattr(np, name, None) is f else "scipy.special")
        found.setdefault(name, f"{module}.{name}")
    return found


def suggest(name: str) -> str:
    """Return a sentence with the nearest functions that have a rule, or nothing.

    >>> suggest("moveaxes")
    'The nearest with a rule: numpy.moveaxis. '
    """
    names = list_known()
    near = difflib.get_close_matches(name.split(".")[-1], names, n=3, cutoff=0.75)
    return f"The nearest with a rule: {', '.join(names[n] for n in near)}. " if near else ""


_suggest[:] = [suggest]
