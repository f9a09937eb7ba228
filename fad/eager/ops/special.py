"""``torch.special``: functions of `fad.scipy.special`, by their names there or in PyTorch."""

from __future__ import annotations

import importlib
from collections.abc import Callable

from fad.eager.ops.nodes import as_node, special_function
from fad.eager.ops.reduction import softmax


class _Specials:
    """``torch.special``: functions of `fad.scipy.special`, by their names there or in PyTorch."""

    def __getattr__(self, name: str) -> Callable:
        if name == "softmax":
            return softmax
        if name.startswith("__") or not hasattr(importlib.import_module("fad.scipy.special"), name):
            raise AttributeError(f"torch.special has no {name!r} here: see fad.scipy.special for what there is")
        return as_node(f"special_{name}", special_function(name))


special = _Specials()
