"""``import fad.compat.array_api`` lets array-API code of SciPy and scikit-learn mix traced and plain arrays.

Each library has its own copy of array_api_compat, whose `array_namespace` knows a namespace of its own for NumPy's
arrays and, by the standard, `fad.numpy` for traced ones: where both meet it raises "Multiple namespaces". `fad.numpy`
takes both, so here it is the namespace of a call in which any array is traced. And SciPy's special functions are its
ufuncs, which traced arrays answer, where for arrays that it does not know SciPy makes NumPy's of them.
"""

from __future__ import annotations

import functools
import importlib
import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import fad.numpy
from fad.backends import is_numpy
from fad.core.tracing.tracer import Tracer

__all__: list[str] = []


def _namespace_of(own: Callable) -> Callable:
    """Return a library's `array_namespace` that leaves NumPy's arrays out of account beside traced ones."""

    def array_namespace(*arrays: Any, **options: Any) -> Any:
        if any(type(x) is Tracer for x in arrays):
            arrays = tuple(x for x in arrays if not is_numpy(x))
        return own(*arrays, **options)

    return array_namespace


def _scipy_for(own: Callable) -> Callable:
    """Return SciPy's function from a namespace of arrays to that of SciPy's functions for them."""
    ufuncs = importlib.import_module("scipy.special._ufuncs")

    def scipy_namespace_for(xp: Any) -> Any:
        return SimpleNamespace(special=ufuncs) if xp is fad.numpy else own(xp)

    return scipy_namespace_for


def _replace(home: Any, name: str, extend: Callable) -> None:
    """Put an extended function in the place of a module's own, in every module that imported it."""
    own = getattr(home, name, None)
    if own is None or hasattr(own, "__fad__"):
        return
    new: Any = functools.wraps(own)(extend(own))
    new.__fad__ = True
    for module in list(sys.modules.values()):
        for alias, value in list(getattr(module, "__dict__", {}).items()):
            if value is own:
                setattr(module, alias, new)


def install() -> None:
    """Extend every copy of array_api_compat that is loaded; importing this module does it."""
    for name, module in list(sys.modules.items()):
        if name.endswith("array_api_compat.common._helpers"):
            _replace(module, "array_namespace", _namespace_of)
        elif name == "scipy._lib._array_api":
            _replace(module, "scipy_namespace_for", _scipy_for)


install()
