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

from fad.core.primitive import has_tracer
from fad.core.views import RUNS
from fad.errors import MissingRuleError
from fad.scipy.sparse.array import SparseArray

_PARTS = (
    "special", "linalg", "fft", "signal", "ndimage", "stats", "interpolate", "integrate", "optimize", "sparse",
    "sparse.linalg", "spatial", "spatial.distance",
)  # fmt: skip
_ASKED_LATER = ("splu", "factorized")  # functions whose results take traced values: fad's wherever a transform runs
_OLDER = {"csr_matrix": "csr_array", "csc_matrix": "csc_array", "coo_matrix": "coo_array"}
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
        given = (*args, *kwargs.values())
        if not RUNS.depth:
            return original(*args, **kwargs)
        if _is_traced(given):
            return own(*args, **kwargs)
        if always or any(map(callable, given)):
            return _prefer(own, original, *args, **kwargs)
        return original(*args, **kwargs)

    call.__name__, call.__doc__ = original.__name__, own.__doc__
    return call


def _is_traced(given: Any) -> bool:
    """Return whether arguments hold traced values, or a sparse matrix of fad's."""
    parts = [tuple(x.values()) if type(x) is dict else x for x in given]
    return has_tracer(parts) or any(isinstance(x, SparseArray) for x in given)


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

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        return cls.make(*args, **kwargs) if RUNS.depth else cls.original(*args, **kwargs)

    def __instancecheck__(cls, x: Any) -> bool:
        return isinstance(x, cls.kinds)

    def __subclasscheck__(cls, kind: type) -> bool:
        return issubclass(kind, cls.kinds)

    def __getattr__(cls, name: str) -> Any:
        own = cls.kinds[0]
        return getattr(own if hasattr(own, name) else cls.original, name)


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

    def __call__(self, *args: Any, **kwargs: Any) -> _Distribution:
        return _Distribution(self._original, self._own, args, kwargs)

    def __getattr__(self, name: str) -> Any:
        original, own = getattr(self._original, name), getattr(self._own, name, None)
        if not callable(original):
            return original
        method = original if own is None else _choose(original, own)
        return lambda *args, **kwargs: method(*args, *self._args, **(self._kwargs | kwargs))
