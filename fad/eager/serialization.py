"""``torch.save`` and ``torch.load``: safetensors files, never pickle."""

from __future__ import annotations

from typing import Any

import numpy as np

from fad import files, tree
from fad.eager.nn.module import Module
from fad.eager.ops.creation import as_tensor
from fad.eager.tensor import Tensor


def save(obj: Any, f: Any) -> None:
    """Write a state dict, or another tree of tensors, numbers and strings, to a file: whole or not at all.

    >>> import os, tempfile
    >>> import fad.eager as torch
    >>> path = os.path.join(tempfile.mkdtemp(), "state.safetensors")
    >>> torch.save({"weight": torch.ones(2), "epoch": 3}, path)
    >>> torch.load(path)
    {'weight': tensor([1., 1.]), 'epoch': 3}
    """
    if isinstance(obj, Module):
        raise TypeError("a module is saved as its state: torch.save(model.state_dict(), path)")
    plain = tree.map(lambda x: x.detach().value if isinstance(x, Tensor) else x, obj, is_leaf=_is_tensor)
    files.save(f, plain)


def load(f: Any, map_location: Any = None, weights_only: bool = True) -> Any:
    """Read what :func:`save` wrote; arrays become tensors. The only device is the host's memory."""
    return tree.map(lambda x: as_tensor(x) if isinstance(x, np.ndarray) else x, files.load(f))


def _is_tensor(x: Any) -> bool:
    return isinstance(x, Tensor)
