"""autograd.numpy.linalg: the names of numpy.linalg."""

from __future__ import annotations

from typing import Any

import fad.numpy as _fnp


def __getattr__(name: str) -> Any:
    return getattr(_fnp.linalg, name)
