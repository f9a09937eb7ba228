"""SciPy's functions, differentiable: ``fad.scipy.special``, ``linalg``, ``fft``, ``signal``, ``ndimage`` and others.

It needs SciPy (``pip install "fad[scipy]"``), and fad does not: so each part is loaded when it is first used.
"""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any

from fad.errors import ExtraNotInstalledError

# Here, since every part is imported after this: `from fad.scipy.stats import norm`, or by `fad.eager`.
if importlib.util.find_spec("scipy") is None:
    raise ExtraNotInstalledError("fad.scipy and fad.sparse need SciPy: pip install 'fad[scipy]'")

__all__ = [
    "fft", "fftpack", "integrate", "interpolate", "linalg", "ndimage", "optimize", "signal", "sparse", "spatial",
    "special", "stats",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name in __all__:
        return importlib.import_module(f"fad.scipy.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}; it has {', '.join(__all__)}")


def __dir__() -> list[str]:
    return __all__
