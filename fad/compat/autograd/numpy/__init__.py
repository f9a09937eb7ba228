"""autograd.numpy: NumPy's names. Those of :mod:`fad.numpy` first, the rest are NumPy's own."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as _np

import fad.numpy as _fnp
from fad.core.tracer import Tracer as ArrayBox  # noqa: F401  (what autograd calls its traced array)

_PARTS = ("fft", "linalg", "random")


def __getattr__(name: str) -> Any:
    if name in _PARTS:
        return importlib.import_module(f"{__name__}.{name}")
    return getattr(_fnp, name) if hasattr(_fnp, name) else getattr(_np, name)


def __dir__() -> list[str]:
    return sorted({*dir(_fnp), *_PARTS})
