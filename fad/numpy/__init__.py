"""NumPy's names, with derivatives: ``import fad.numpy as fnp``.

Plain ``import numpy as np`` works too, since traced arrays answer NumPy's dispatch. This is the faster way, for it
needs no dispatch (``fnp.sin`` *is* the operation), and the one that always works, for NumPy does not always dispatch:
``fnp.take(table, i)`` with a plain table and a traced ``i``, ``fnp.array([x, 1.0])`` where no transform runs.

Functions that need no rule (dtypes, constants, ``zeros``, ``eye`` …) are NumPy's own. Beyond NumPy's names there are
``at``, to update a copy of an array, and ``top_k``, the largest elements and their places; ``put_along_axis`` returns
the changed array instead of changing it in place, and ``vectorize`` runs all elements at once.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

import numpy as _np

from fad.core.runs.overlay import replace as _replace
from fad.core.tracing.tracer import Tracer as _Tracer
from fad.numpy.creation import makers as _makers
from fad.numpy.joiners import c_ as _c_
from fad.numpy.joiners import r_ as _r_
from fad.numpy.surface import namespace as _namespace
from fad.numpy.tapers import TAPERS as _TAPERS
from fad.numpy.vectorized import vectorize as _vectorize
from fad.ops.ordering.sorting import top_k as _top_k
from fad.ops.places.taking import at as _at
from fad.ops.places.taking import put_along_axis as _put_along_axis

if TYPE_CHECKING:  # what editors and type checkers show: NumPy's own signatures, and what is added to them
    from numpy import *  # noqa: F403

    from fad.ops.ordering.sorting import top_k as top_k
    from fad.ops.places.taking import at as at
    from fad.ops.places.taking import put_along_axis as put_along_axis

_names = _namespace(_np)
globals().update(_names | _makers(_names), at=_at, top_k=_top_k, r_=_r_, c_=_c_)
globals().update(put_along_axis=_put_along_axis, vectorize=_vectorize)
for _name in ("r_", "c_", "select", "vectorize"):  # NumPy does not dispatch on all that is traced there
    _replace(_name, globals()[_name])
for _name, _taper in _TAPERS.items():
    _replace(_name, _taper)
_OWN = ("annotations", "importlib", "Any", "surface", "joiners", "vectorized", "creation", "tapers")
__all__ = sorted(n for n in globals() if not n.startswith("_") and n not in _OWN)

# The version of the array API standard that these names follow: NumPy's own (2.0 has no such name yet).
__array_api_version__ = getattr(_np, "__array_api_version__", "2022.12")
_SUBMODULES = ("linalg", "fft", "emath")


def __getattr__(name: str) -> Any:
    if name in _SUBMODULES:
        return importlib.import_module(f"fad.numpy.{name}")
    if name == "random":
        raise AttributeError("fad.numpy has no random; use fad.random, or numpy.random outside of the derivative")
    raise AttributeError(f"module 'fad.numpy' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, *_SUBMODULES]


def _array_namespace(self: Any, *, api_version: str | None = None) -> Any:
    """Return fad.numpy, by the array API standard; it has the versions that NumPy has, and raises for others."""
    if api_version is not None:
        _np.empty(0).__array_namespace__(api_version=api_version)  # type: ignore[arg-type]
    return importlib.import_module("fad.numpy")


_Tracer.__array_namespace__ = _array_namespace  # type: ignore[attr-defined]
