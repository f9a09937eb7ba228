"""SciPy's functions, differentiable: ``fad.scipy.special``, ``linalg``, ``stats``, ``optimize``, ``integrate``.

Each part is loaded when it is first used, since it needs SciPy (``pip install "fad[scipy]"``), and fad does not.
"""

from __future__ import annotations

import importlib
from typing import Any

__all__ = ["integrate", "linalg", "optimize", "special", "stats"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        return importlib.import_module(f"fad.scipy.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}; it has {', '.join(__all__)}")


def __dir__() -> list[str]:
    return __all__
