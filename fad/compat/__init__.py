"""Entry points for people who come from another library."""

import importlib
from typing import Any

_NAMES = ("autograd", "einops")


def __getattr__(name: str) -> Any:
    if name not in _NAMES:
        raise AttributeError(f"module 'fad.compat' has no attribute {name!r}")
    return importlib.import_module(f"fad.compat.{name}")


def __dir__() -> list[str]:
    return list(_NAMES)
