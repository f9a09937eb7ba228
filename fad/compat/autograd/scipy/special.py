"""autograd.scipy.special: the names of :mod:`fad.scipy.special`."""

from __future__ import annotations

from typing import Any

import fad.scipy.special as _part


def __getattr__(name: str) -> Any:
    return getattr(_part, name)
