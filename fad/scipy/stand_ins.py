"""SciPy as programs name it: while a transform runs, those of its functions that fad has are fad's for traced values.

``scipy.signal.welch(x)`` makes a plain array of a traced x, and raises. The transform runs its function again then
(`fad.core.runs.overlay`), with what is made here under SciPy's names in the modules of the user's functions. SciPy
itself is left untouched, and plain arguments go to it as ever.
"""

from __future__ import annotations

import functools
import importlib
import sys
import types
from typing import Any

import numpy as np

from fad.core.tracing.views import RUNS
from fad.scipy.choosing import choose, is_traced, prefer
from fad.scipy.matrices import enter_matrices, make_own
from fad.scipy.proxies import ENTRIES, Distribution
from fad.scipy.sparse.array import SparseArray, SparseMatrix
from fad.scipy.sparse.forms import older

_PARTS = (
    "special", "linalg", "fft", "fftpack", "signal", "signal.windows", "ndimage", "stats", "interpolate", "integrate",
    "optimize", "sparse", "sparse.linalg", "spatial", "spatial.distance", "spatial.transform",
)  # fmt: skip
_ASKED_LATER = ("splu", "factorized")  # functions whose results take traced values: fad's wherever a transform runs
# SciPy's functions and classes that make sparse matrices, and take traced values later.
_MATRICES = (
    "eye", "eye_array", "identity", "random", "random_array", "rand", "lil_array", "lil_matrix", "dok_array",
    "dok_matrix", "load_npz",
)  # fmt: skip
_FORMS = ("bsr", "coo", "csc", "csr", "dia")
_ENTRIES = ENTRIES | {"sparse": enter_matrices}
_paired: set[str] = set()


def pair_names(stand_ins: dict[int, Any], objects: dict[type, Any]) -> None:
    """Enter what stands in for the public names of those of SciPy's modules that are loaded by now.

    And, by their classes, what makes a stand-in for objects that they have made before.
    """
    for part in _PARTS:
        theirs = sys.modules.get(f"scipy.{part}")
        if theirs is not None and part not in _paired:
            _paired.add(part)
            ours = importlib.import_module(f"fad.scipy.{part}")
            _pair(theirs, ours, stand_ins)
            if part in _ENTRIES:
                objects.update(_ENTRIES[part](theirs))
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] == "scipy" and "._" not in name and id(module) not in stand_ins:
            stand_ins[id(module)] = _Part(module, stand_ins, objects)


def _pair(theirs: types.ModuleType, ours: Any, stand_ins: dict[int, Any]) -> None:
    if ours.__name__ == "fad.scipy.sparse":
        _pair_matrices(theirs, ours, stand_ins)
    for name in ours.__all__:
        original, own = getattr(theirs, name, None), getattr(ours, name)
        if id(original) in stand_ins:
            continue
        if original is None or original is own or isinstance(original, (np.ufunc, types.ModuleType)):
            continue  # ufuncs ask their arguments
        stand_ins[id(original)] = _stand_for(original, own)


def _pair_matrices(theirs: types.ModuleType, ours: Any, stand_ins: dict[int, Any]) -> None:
    """Enter the classes of sparse matrices, and the functions that make plain ones."""
    for form in _FORMS:
        make = getattr(ours, f"{form}_array")
        for name, own in ((f"{form}_array", make), (f"{form}_matrix", older(make))):
            original = getattr(theirs, name)
            stand_ins[id(original)] = _make_matrices(original, choose(make_own(original), own))
    for name in _MATRICES:
        original = getattr(theirs, name, None)
        if isinstance(original, type):
            stand_ins[id(original)] = _make_matrices(original, make_own(original))
        elif original is not None:
            stand_ins[id(original)] = make_own(original)
    for original in (theirs.spmatrix, theirs.sparray):
        stand_ins[id(original)] = _make_matrices(original, original)
    stand_ins[id(theirs.isspmatrix)] = choose(theirs.isspmatrix, lambda x: isinstance(x, SparseMatrix))


def _make_matrices(original: type, make: Any) -> _Kind:
    """Return a class in the place of one of SciPy's for sparse matrices, which `make` makes."""
    kinds = (SparseMatrix if issubclass(original, sys.modules["scipy.sparse"].spmatrix) else SparseArray, original)
    space = {"make": staticmethod(make), "original": original, "kinds": kinds, "__doc__": original.__doc__}
    return _Kind(original.__name__, (), space)


def _stand_for(original: Any, own: Any) -> Any:
    if isinstance(original, type):
        return _make_class(original, own)
    if type(own) is not types.FunctionType:
        return Distribution(original, own)
    return choose(original, own, own.__name__ in _ASKED_LATER)


class _Part(types.ModuleType):
    """A module of SciPy's in which fad's functions have the names of those that they stand in for."""

    def __init__(self, module: types.ModuleType, stand_ins: dict[int, Any], objects: dict[type, Any]):
        super().__init__(module.__name__, module.__doc__)
        self._module, self._stand_ins, self._objects = module, stand_ins, objects

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._module, name)
        if type(found) is types.ModuleType and id(found) not in self._stand_ins:
            pair_names(self._stand_ins, self._objects)  # it was loaded by this
        return self._stand_ins.get(id(found), found)


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
        runs = RUNS.depth or is_traced((args, kwargs))
        return cls.make(*args, **kwargs) if runs else cls.original(*args, **kwargs)

    def __instancecheck__(cls, x: Any) -> bool:
        return isinstance(x, cls.kinds) and (type(x) is not SparseMatrix or cls.kinds[0] is not SparseArray)

    def __subclasscheck__(cls, kind: type) -> bool:
        return any(issubclass(k, cls.kinds) for k in getattr(kind, "kinds", (kind,)))

    def __getattr__(cls, name: str) -> Any:
        own = cls.kinds[0]
        return getattr(own if hasattr(own, name) else cls.original, name)


def _base_of(kind: type) -> type:
    """Return the class to derive from: SciPy's for matrices, whose stand-ins are made by functions."""
    if type(kind) is not _Kind:
        return kind
    return kind.original if issubclass(kind.kinds[0], SparseArray) else kind.kinds[0]


def _make_class(original: type, own: Any) -> _Kind:
    """Return a class in the place of SciPy's. An interpolator takes traced values later, so that it is always fad's."""
    make, kinds = staticmethod(functools.partial(prefer, own, original)), (own, original)
    return _Kind(original.__name__, (), {"make": make, "original": original, "kinds": kinds, "__doc__": own.__doc__})
