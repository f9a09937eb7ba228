"""Backends: where arrays live. NumPy always; CuPy when the user has it.

A backend is a module with the short closed list of what NumPy and CuPy spell differently.
Everything else goes through NumPy's own functions, which a CuPy array answers by protocol.
No derivative rule knows a backend.
"""

from __future__ import annotations

import contextlib
import importlib
import sys
from contextvars import ContextVar
from typing import Any

import numpy as np

from fad import tree
from fad.backends import numpy as _numpy
from fad.errors import BackendMismatchError, BackendNotFoundError
from fad.introspect.frames import note_machinery
from fad.introspect.reachable import OPAQUE
from fad.typing import PyTree

_BY_NAME: dict[str, Any] = {"numpy": _numpy}
_BY_TYPE: dict[type, Any] = {}
DEVICE_ARRAYS: set[type] = set()  # the types of arrays that live elsewhere than on the host
ARRAYS: set[type] = {np.ndarray}  # and those with NumPy's
AVOIDED: set[str] = set()  # functions that some device in use has, but that fad's own formulas do better
_INSTALL = {"cupy": "pip install 'cupy-cuda12x[ctk]' (or cupy-cuda13x, for CUDA 13)"}
_default: ContextVar[str] = ContextVar("default_backend", default="numpy")


def register(backend: Any) -> None:
    """Add a backend; its arrays are recognised by `backend.array_type`."""
    note_machinery(backend)
    _BY_NAME[backend.name] = backend
    _BY_TYPE[backend.array_type] = backend
    if backend is not _numpy:
        DEVICE_ARRAYS.add(backend.array_type)
        ARRAYS.add(backend.array_type)
        OPAQUE.append(backend.array_type)
    AVOIDED.update(backend.avoided)


def get(name: str) -> Any:
    """Return a backend by name, loading it if need be.

    Raises BackendNotFoundError if its package is not installed or finds no device, ValueError for an unknown name.
    """
    if name not in _BY_NAME:
        if name not in _INSTALL:
            raise ValueError(f"no backend {name!r}; there are {sorted({*_BY_NAME, *_INSTALL})}")
        try:
            module = importlib.import_module(f"fad.backends.{name}")
        except BackendNotFoundError:
            raise  # the package is there, and its device is not
        except ImportError as error:
            raise BackendNotFoundError(f"the backend {name!r} needs its package: {_INSTALL[name]} ({error})") from None
        register(module)
    return _BY_NAME[name]


def devices() -> list:
    """Return the backends in use whose arrays do not live on the host."""
    return [backend for backend in _BY_NAME.values() if backend is not _numpy]


def _of(x: Any) -> Any:
    """Return the backend of one array, or None for numbers, which live everywhere."""
    kind = type(x)
    found = _BY_TYPE.get(kind)
    if found is None and "cupy" in sys.modules and kind.__module__.split(".")[0] == "cupy":
        found = get("cupy")
    return found


def is_numpy_array(x: Any) -> bool:
    """Return whether `x` is an array of NumPy itself: isinstance is true of a tracer that stands for one as well."""
    return issubclass(type(x), np.ndarray)


def open_memmap(x: Any) -> Any:
    """Return an array in a file, ``np.memmap``, as the plain array that it computes as; anything else as it is."""
    return np.ndarray.view(x, np.ndarray) if type(x) is np.memmap else x


def is_numpy_scalar(x: Any) -> bool:
    """Return whether `x` is a scalar of NumPy itself, and no tracer that stands for one."""
    return issubclass(type(x), np.generic)


def is_numpy(x: Any) -> bool:
    """Return whether `x` is an array or scalar of NumPy itself, and no tracer that stands for one."""
    return issubclass(type(x), (np.ndarray, np.generic))


def backend_of(*arrays: Any) -> Any:
    """Return the one backend of these arrays; numbers belong to any.

    Raises BackendMismatchError if arrays of two backends are mixed.
    """
    found = None
    for x in arrays:
        backend = _of(x)
        if backend is None or backend is found:
            continue
        if found is not None:
            device, other = (backend, found) if found is _numpy else (found, backend)
            raise BackendMismatchError(
                f"arrays of two backends were mixed, {device.name} and {other.name}; "
                f"move one with fad.device_put(x, {device.name!r}) or fad.device_get(x)"
            )
        found = backend
    return found or _numpy


def behind(x: Any) -> Any:
    """Return the backend of an array, or of the array that a traced value stands for."""
    while type(x) not in _BY_TYPE and hasattr(x, "wrapped"):
        x = x.wrapped
    return _of(x) or _numpy


def is_on_device(x: Any) -> bool:
    """Return whether an array lives elsewhere than on the host."""
    backend = _of(x)
    return backend is not None and backend is not _numpy


def like(x: Any, constant: Any) -> Any:
    """Return a constant of the host where the array `x` lives, so that the two can meet in an operation.

    Numbers live everywhere, and traced values and arrays of a device stay what they are.
    """
    if type(constant) is not np.ndarray:
        return constant
    backend = behind(x)
    return constant if backend is _numpy else backend.from_host(constant)


def made_like(make: Any, x: Any, shape: tuple, dtype: Any = None) -> Any:
    """Return ``make(x, shape=shape, dtype=dtype)`` for ``np.zeros_like`` and related functions.

    CuPy takes an empty shape for none, and would return an array of the shape of `x`.
    """
    if len(shape) == 0:
        return make(x, shape=(1,), dtype=dtype).reshape(())
    return make(x, shape=shape, dtype=dtype)


def host(x: Any) -> Any:
    """Return the same values in host memory; for an array of a device this waits until they are there."""
    backend = _of(x)
    return x if backend is None else backend.to_host(x)


def default() -> Any:
    """Return the backend that creation functions and random numbers use where no array says otherwise."""
    return get(_default.get())


def is_numpy_default() -> bool:
    """Return whether new arrays are NumPy's."""
    return _default.get() == "numpy"


class _Use(contextlib.AbstractContextManager):
    def __init__(self, token):
        self._token = token

    def __exit__(self, *_):
        _default.reset(self._token)


def use(name: str) -> Any:
    """Set the default backend, for good or for a ``with`` block.

    New parameters, random numbers and what `device_put` places are made there, and, inside a transform, the arrays that
    a function makes by ``np.zeros`` and its like.

    >>> with use("numpy"):
    ...     default().name
    'numpy'
    """
    get(name)
    return _Use(_default.set(name))


def device_put(x: PyTree, backend: str | None = None) -> PyTree:
    """Copy every array of a tree to a backend (the default one if not named).

    Parameters
    ----------
    x : array or tree of arrays
        On any backend.
    backend : str or backend
        Where the arrays shall live: "numpy" or "cupy"; by default the default backend.

    Returns
    -------
    array or tree of arrays
        On that backend.

    Raises
    ------
    ValueError
        if there is no such backend.

    Examples
    --------
    >>> import numpy as np
    >>> device_put({"w": np.ones(2)}, "numpy")
    {'w': array([1., 1.])}
    """
    target = get(backend) if backend else default()
    return tree.map(lambda leaf: leaf if _of(leaf) is target else target.from_host(host(leaf)), x)


def device_get(x: PyTree) -> PyTree:
    """Copy every array of a tree to host memory, as NumPy arrays.

    Parameters
    ----------
    x : array or tree of arrays
        On any backend.

    Returns
    -------
    array or tree of numpy.ndarray

    Examples
    --------
    >>> import numpy as np
    >>> device_get([np.ones(2), 3.0])
    [array([1., 1.]), 3.0]
    """
    return tree.map(host, x)


register(_numpy)
