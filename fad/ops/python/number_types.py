"""Classes of numbers as programs call them on traced values, which stay what they are: ``float(x)``, ``np.float32(x)``.

Python and NumPy make plain numbers of what they convert, which would lose the derivative. Where a program failed by
that, the names stand for these classes in its module while a transform runs (`fad.core.runs.overlay`). Python's two
convert traced numbers to traced Python numbers, NumPy's to traced values of their dtype, and they are what they stand
for to all else: to NumPy as dtypes, in ``isinstance``, as keys, to pickle.
"""

from __future__ import annotations

import copyreg
import pkgutil
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from fad.core.primitives.primitive import bind
from fad.core.runs.overlay import BUILTINS, NAMES_OF_NUMBERS, NUMBERS, is_number_class
from fad.core.tracing.conversions import OFFERED
from fad.core.tracing.trace import Trace
from fad.core.tracing.tracer import Tracer, stack_list, strong
from fad.core.tracing.views import is_array
from fad.ops.ufuncs.conversion import join_parts, python_number_p


class _Kind(type):
    """The class of what stands for one of the classes of numbers."""

    original: Any
    convert: Callable

    def __new__(cls, name: str, bases: tuple, space: dict, stands: bool = False) -> Any:
        """Make a class that stands in; of a program's own that derives from one, derive it from the true class."""
        if stands:
            return super().__new__(cls, name, bases, space)
        true = tuple([base.original if type(base) is _Kind else base for base in bases])
        return types.new_class(name, true, None, lambda names: names.update(space))

    def __init__(cls, *args: Any, stands: bool = False):
        super().__init__(*args)

    def __call__(cls, *args: Any, **options: Any) -> Any:
        args = tuple(map(cls._open, args))
        traced = any(map(_is_traced, (*args, *options.values())))
        return (cls.convert if traced else cls.original)(*args, **options)

    def _open(cls, x: Any) -> Any:
        """Return the traced number that an object of the user's gives for itself, ``__float__``: Python takes none."""
        for name in ("__complex__", "__float__") if issubclass(cls.original, complex) else ("__float__",):
            method = getattr(type(x), name, None)
            if type(method) is types.FunctionType and type(x) is not Tracer:
                y = method(x)
                return y if _is_traced(y) or isinstance(y, (float, complex)) else x
        return x

    def __instancecheck__(cls, x: Any) -> bool:
        return isinstance(x, cls.original)

    def __subclasscheck__(cls, kind: type) -> bool:
        return issubclass(kind, cls.original)

    def __eq__(cls, other: object) -> bool:
        return True if other is cls or other is cls.original else NotImplemented  # a dtype knows the class

    def __hash__(cls) -> int:
        return hash(cls.original)

    def __repr__(cls) -> str:
        return repr(cls.original)


copyreg.pickle(_Kind, lambda kind: (pkgutil.resolve_name, (f"{kind.__module__}:{kind.__name__}",)))


def _is_traced(x: Any) -> bool:
    if type(x) in (list, tuple):
        return any(map(_is_traced, x))
    return type(x) is Tracer and x.owner is not Trace.of_plain


def _take_scalar(x: Any) -> Any:
    if x.size != 1:
        raise TypeError("only length-1 arrays can be converted to Python scalars")
    return x.reshape(()) if x.shape else x


def _to_float(x: Any) -> Any:
    x = _take_scalar(x)
    if x.dtype.kind == "c":
        raise TypeError("float() argument must be a string or a real number, not 'complex'")
    return bind(python_number_p, x if x.dtype.kind == "f" else x * 1.0)


def _to_complex(real: Any = 0.0, imag: Any = None) -> Any:
    if imag is None:
        real = _take_scalar(real)
        return bind(python_number_p, real) if real.dtype.kind == "c" else join_parts(real, 0.0)
    (re, more_im), (im, less_re) = [_split(_take_scalar(x) if type(x) is Tracer else x) for x in (real, imag)]
    re = re if less_re is None else re - less_re
    im = im if more_im is None else im + more_im
    return join_parts(re, im)


def _split(x: Any) -> tuple:
    """Return the parts of a number; of a real one None for the second, which is not added, for the sign of zero."""
    return (x.real, x.imag) if np.iscomplexobj(x) else (x, None)


def _to_dtype(dtype: np.dtype) -> Callable:
    """Return the function that converts as NumPy's class for the dtype: what has axes becomes an array."""

    def convert(x: Any) -> Any:
        y = strong(stack_list(x)).astype(dtype)
        return y[()] if not y.shape and is_array(y) else y

    return convert


def _make(original: type, convert: Callable) -> type:
    space = {"original": original, "convert": staticmethod(convert), "dtype": np.dtype(original)}
    space |= {"__doc__": original.__doc__, "__module__": original.__module__}
    return _Kind(original.__name__, (original,), space, stands=True)


BUILTINS.update(float=_make(float, _to_float), complex=_make(complex, _to_complex))
_NUMPYS = [kind for kind in set(np.sctypeDict.values()) if issubclass(kind, np.inexact)]
NUMBERS.update({id(float): BUILTINS["float"], id(complex): BUILTINS["complex"]})
NUMBERS.update({id(kind): _make(kind, _to_dtype(np.dtype(kind))) for kind in _NUMPYS})
NAMES_OF_NUMBERS.update(BUILTINS, [name for name, value in vars(np).items() if id(value) in NUMBERS])
OFFERED.append(is_number_class)
