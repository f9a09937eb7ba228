"""autograd.scipy.stats: the names of :mod:`fad.scipy.stats`."""

from __future__ import annotations

from typing import Any

import fad.scipy.stats as _part


def __getattr__(name: str) -> Any:
    return getattr(_part, name)
