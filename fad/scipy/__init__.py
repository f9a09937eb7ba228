"""SciPy's functions, differentiable: ``fad.scipy.special``, ``linalg``, ``fft``, ``signal``, ``ndimage`` and others.

Each part is loaded when it is first used, since it needs SciPy (``pip install "fad[scipy]"``), and fad does not.
"""

from __future__ import annotations

import importlib
import sys
from typing import Any

from fad.core.numpy_dispatch import LOADERS
from fad.errors import load_with_scipy

__all__ = [
    "fft", "integrate", "interpolate", "linalg", "ndimage", "optimize", "signal", "sparse", "spatial", "special",
    "stats",
]  # fmt: skip


def _load_rules(ufunc: Any) -> None:
    """Bring in the rules of SciPy's ufuncs, the first time that one may have met a traced value."""
    if "scipy.special" in sys.modules:
        importlib.import_module("fad.scipy.special")


LOADERS.append(_load_rules)


def __getattr__(name: str) -> Any:
    if name in __all__:
        return load_with_scipy(f"fad.scipy.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}; it has {', '.join(__all__)}")


def __dir__() -> list[str]:
    return __all__
