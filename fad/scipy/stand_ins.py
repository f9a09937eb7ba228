"""SciPy as programs name it: while a transform runs, those of its functions that fad has are fad's for traced values.

``scipy.signal.welch(x)`` makes a plain array of a traced x, and raises. The transform runs its function again then
(`fad.core.overlay`), with what is made here under SciPy's names in the modules of the user's functions. SciPy itself is
left untouched, and plain arguments go to it as ever.
"""

from __future__ import annotations

import functools
import importlib
import sys
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from fad.core.buffers import plain
from fad.core.makers import wrap_made
from fad.core.tracer import Tracer, up_to_date
from fad.core.views import RUNS
from fad.errors import MissingRuleError
from fad.scipy.sparse.array import SparseArray

_PARTS = (
    "special", "linalg", "fft", "signal", "ndimage", "stats", "interpolate", "integrate", "optimize", "sparse",
    "sparse.linalg", "spatial", "spatial.distance",
)  # fmt: skip
_ASKED_LATER = ("splu", "factorized")  # functions whose results take traced values: fad's wherever a transform runs
_OLDER = {
    "csr_matrix": "csr_array", "csc_matrix": "csc_array", "coo_matrix": "coo_array", "isspmatrix": "issparse",
}  # fmt: skip
_paired: set[str] = set()


def pair_names(stand_ins: dict[int, Any]) -> None:
    """Enter what stands in for the public names of those of SciPy's modules that are loaded by now."""
    for part in _PARTS:
        theirs = sys.modules.get(f"scipy.{part}")
        if theirs is not None and part not in _paired:
            _paired.add(part)
            _pair(theirs, importlib.import_module(f"fad.scipy.{part}"), stand_ins)
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] == "scipy" and "._" not in name and id(module) not in stand_ins:
            stand_ins[id(module)] = _Part(module, stand_ins)


def _pair(theirs: types.ModuleType, ours: Any, stand_ins: dict[int, Any]) -> None:
    names = {name: name for name in ours.__all__} | {old: new for old, new in _OLDER.items() if new in ours.__all__}
    for name, other in names.items():
        original, own = getattr(theirs, name, None), getattr(ours, other)
        if original is None or original is own or isinstance(original, (np.ufunc, types.ModuleType)):
            continue  # ufuncs ask their arguments
        stand_ins[id(original)] = _stand_for(original, own)


def _stand_for(original: Any, own: Any) -> Any:
    if isinstance(original, type):
        return _make_class(original, own)
    if type(own) is not types.FunctionType:
        return _Distribution(original, own)
    return _choose(original, own, own.__name__ in _ASKED_LATER)


class _Part(types.ModuleType):
    """A module of SciPy's in which fad's functions have the names of those that they stand in for."""

    def __init__(self, module: types.ModuleType, stand_ins: dict[int, Any]):
        super().__init__(module.__name__, module.__doc__)
        self._module, self._stand_ins = module, stand_ins

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._module, name)
        if type(found) is types.ModuleType and id(found) not in self._stand_ins:
            pair_names(self._stand_ins)  # it was loaded by this
        return self._stand_ins.get(id(found), found)


def _choose(original: Callable, own: Callable, always: bool = False) -> Callable:
    """Return a function that is fad's for traced values and for functions, which may hold some, and else SciPy's."""

    def call(*args: Any, **kwargs: Any) -> Any:
        if not _is_traced((args, kwargs)):
            if RUNS.depth and (always or any(map(callable, (*args, *kwargs.values())))):
                return _prefer(own, original, *args, **kwargs)
            return original(*args, **kwargs)
        given, options = _take_plain(args), _take_plain(kwargs)
        if _is_traced((given, options)):
            return own(*args, **kwargs)
        return _wrap(call(*given, **options))

    call.__name__, call.__doc__ = original.__name__, own.__doc__
    return call


def _is_traced(x: Any) -> bool:
    """Return whether arguments hold traced values, or a sparse matrix of fad's."""
    if type(x) in (list, tuple, dict):
        return any(map(_is_traced, x.values() if type(x) is dict else x))
    return type(x) in (Tracer, SparseArray)


def _take_plain(x: Any) -> Any:
    """Return arguments with the arrays that the program made, and wrote no traced value into, as plain ones."""
    if type(x) in (list, tuple):
        return type(x)(map(_take_plain, x))
    if type(x) is dict:
        return {name: _take_plain(value) for name, value in x.items()}
    held = plain(up_to_date(x)) if type(x) is Tracer else x
    return held if type(held) is np.ndarray else x


def _wrap(y: Any) -> Any:
    """Return what SciPy made of such arrays behind handles, as NumPy's functions do, for the program may write it."""
    return tuple(map(wrap_made, y)) if type(y) is tuple else wrap_made(y)


def _prefer(own: Callable, original: Callable, *args: Any, **kwargs: Any) -> Any:
    """Call fad's function, or SciPy's where an option is not fad's."""
    try:
        return own(*args, **kwargs)
    except (MissingRuleError, NotImplementedError):
        return original(*args, **kwargs)


class _Kind(type):
    """The class of a class that makes fad's objects, and knows SciPy's as its instances, too."""

    make: Any
    original: Any
    kinds: tuple

    def __new__(cls, name: str, bases: tuple, space: dict) -> Any:
        """Make a class that stands in; of a program's own that derives from one, derive it from fad's class."""
        if not bases:
            return super().__new__(cls, name, bases, space)
        return types.new_class(name, tuple([_base_of(base) for base in bases]), None, lambda names: names.update(space))

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        runs = RUNS.depth or _is_traced((args, kwargs))
        return cls.make(*args, **kwargs) if runs else cls.original(*args, **kwargs)

    def __instancecheck__(cls, x: Any) -> bool:
        return isinstance(x, cls.kinds)

    def __subclasscheck__(cls, kind: type) -> bool:
        return any(issubclass(k, cls.kinds) for k in getattr(kind, "kinds", (kind,)))

    def __getattr__(cls, name: str) -> Any:
        own = cls.kinds[0]
        return getattr(own if hasattr(own, name) else cls.original, name)


def _base_of(kind: type) -> type:
    """Return the class to derive from: SciPy's for matrices, whose stand-ins are made by functions."""
    if type(kind) is not _Kind:
        return kind
    return kind.original if kind.kinds[0] is SparseArray else kind.kinds[0]


def _make_class(original: type, own: Any) -> _Kind:
    """Return a class in the place of SciPy's. An interpolator takes traced values later, so that it is always fad's."""
    if isinstance(own, type):
        make, kinds = staticmethod(functools.partial(_prefer, own, original)), (own, original)
    else:
        make, kinds = staticmethod(_choose(original, own)), (SparseArray, original)
    return _Kind(original.__name__, (), {"make": make, "original": original, "kinds": kinds, "__doc__": own.__doc__})


class _Distribution:
    """A distribution of SciPy's whose methods are fad's for traced values, as those of what it is frozen to are."""

    def __init__(self, original: Any, own: Any, args: tuple = (), kwargs: dict | None = None):
        self._original, self._own, self._args, self._kwargs = original, own, args, kwargs or {}
        frozen = kwargs is not None and not _is_traced((args, kwargs))
        self._scipys = original(*args, **self._kwargs) if frozen else original

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        """The class of SciPy's distribution: what isinstance sees."""
        return type(self._scipys)

    def __call__(self, *args: Any, **kwargs: Any) -> _Distribution:
        return _Distribution(self._original, self._own, _take_plain(args), _take_plain(kwargs))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(f"a distribution of SciPy's has no {name}")
        found, own = getattr(self._scipys, name), getattr(self._own, name, None)
        if not callable(found):
            return found
        method = self._with_parameters(found) if self._scipys is self._original else found
        if own is None:
            return method
        own = self._with_parameters(own)
        return own if _is_traced((self._args, self._kwargs)) else _choose(method, own)

    def _with_parameters(self, method: Callable) -> Callable:
        return lambda *args, **kwargs: method(*args, *self._args, **(self._kwargs | kwargs))
