"""The choice of a lowering: native code where llvmlite is installed, NumPy otherwise."""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import warnings
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Any

from fad.compile.numpy_source import NumPyProgram
from fad.core.graph import Graph
from fad.errors import NativeFallbackWarning

_lowering: ContextVar[str] = ContextVar("lowering", default="auto")
_warned: list[str] = []


@functools.cache
def has_llvm() -> bool:
    return importlib.util.find_spec("llvmlite") is not None


@contextlib.contextmanager
def using(lowering: str) -> Iterator[None]:
    """Compile with one lowering, "auto", "llvm" or "numpy", for the length of a ``with`` block."""
    if lowering not in ("auto", "llvm", "numpy"):
        raise ValueError(f"a lowering is 'auto', 'llvm' or 'numpy', not {lowering!r}")
    token = _lowering.set(lowering)
    try:
        yield
    finally:
        _lowering.reset(token)


def lower(graph: Graph) -> Any:
    """Return a program for an optimised graph: a callable from the list of inputs to the list of outputs."""
    wanted = _lowering.get()
    if wanted == "numpy" or (wanted == "auto" and not has_llvm()):
        return NumPyProgram(graph)
    from fad.compile.native import NativeProgram

    try:
        return NativeProgram(graph)
    except Exception as error:
        if wanted == "llvm":
            raise
        if not _warned:
            _warned.append(str(error))
            warnings.warn(
                f"a program could not be compiled to native code ({type(error).__name__}: {error}); it runs in NumPy",
                NativeFallbackWarning,
                stacklevel=2,
            )
        return NumPyProgram(graph)
