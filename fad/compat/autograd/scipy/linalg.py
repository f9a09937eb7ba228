"""autograd.scipy.linalg: the names of :mod:`fad.scipy.linalg`."""

from __future__ import annotations

from typing import Any

import fad.scipy.linalg as _part


def __getattr__(name: str) -> Any:
    return getattr(_part, name)
