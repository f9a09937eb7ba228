"""autograd.scipy.integrate: the names of :mod:`fad.scipy.integrate`."""

from __future__ import annotations

from typing import Any

import fad.scipy.integrate as _part


def __getattr__(name: str) -> Any:
    return getattr(_part, name)
