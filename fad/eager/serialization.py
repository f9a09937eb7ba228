"""``torch.save`` and ``torch.load``: safetensors files, never pickle."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from fad import files, tree
from fad.eager.nn.module import Module
from fad.eager.ops.creation import as_tensor
from fad.eager.tensor import Tensor


def save(obj: Any, f: Any) -> None:
    """Write a state dict, or another tree of tensors, numbers and strings, to a file: whole or not at all.

    `f` is its path, or something with ``write``: an open file, or a buffer of the module ``io``.

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
    if not hasattr(f, "write"):
        files.save(f, plain)
        return
    with _temporary_path() as path:
        files.save(path, plain)
        f.write(path.read_bytes())


def load(f: Any, map_location: Any = None, weights_only: bool = True) -> Any:
    """Read what :func:`save` wrote; arrays become tensors. The only device is the host's memory.

    `f` is the path of a file, or something with ``read``, which is read to its end.
    """
    if not hasattr(f, "read"):
        return _as_tensors(files.load(f))
    with _temporary_path() as path:
        path.write_bytes(f.read())
        return _as_tensors(files.load(path))


def _as_tensors(value: Any) -> Any:
    return tree.map(lambda x: as_tensor(x) if isinstance(x, np.ndarray) else x, value)


@contextlib.contextmanager
def _temporary_path() -> Iterator[Path]:
    """Give the path of a file for what is read from or written to something else than a path."""
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder) / "open_file"


def _is_tensor(x: Any) -> bool:
    return isinstance(x, Tensor)
