"""What the library of a device has of NumPy's and SciPy's functions, and what it says where it has none."""

from __future__ import annotations

import difflib
import functools
import importlib
import re
from collections.abc import Callable
from typing import Any

import numpy as np

from fad.backends import backend_of, devices
from fad.errors import BackendFunctionError, BackendMismatchError

# --- functions of SciPy, and what a device has in their place --------------------------------------------------------


def with_notes(function: Callable, **notes: Any) -> Callable:
    """Return a function with what others read of it as attributes: `host`, `parameters`, `written`, `derives`."""
    vars(function).update(notes)
    return function


def scipy_function(name: str, formula: Callable | None = None) -> Callable:
    """Return SciPy's function of a name below ``scipy`` (``"linalg.expm"``), for arrays of any backend.

    On a device it is what the backend has in its place, or else `formula`.
    Raises BackendFunctionError where there is neither.
    """
    module, _, short = name.partition(".")
    function = getattr(importlib.import_module(f"scipy.{module}"), short, None)

    @functools.wraps(function or scipy_function)
    def run(*xs: Any, **options: Any) -> Any:
        backend = backend_of(*xs)
        found = backend.scipy_function(name) or formula
        if found is None:
            raise _missing(backend, "scipy", name)
        return found(*xs, **options)

    return with_notes(run, host=function)  # what it is where there is no device, as in `fad.source`


class ScipyModule:
    """A module of SciPy whose functions run on arrays of any backend that has them, or by `formulas` of their names."""

    def __init__(self, name: str, formulas: Any = None):
        self._name = name
        self._formulas = formulas

    def __getattr__(self, name: str) -> Any:
        run = scipy_function(f"{self._name}.{name}", getattr(self._formulas, name, None))
        setattr(self, name, run)
        return run


def _missing(backend: Any, library: str, name: str) -> BackendFunctionError:
    module, _, short = name.rpartition(".")
    offered = sorted(backend.list_offered(library, module))
    near = difflib.get_close_matches(short, offered, 4)
    nearest = f"The nearest names: {', '.join(near)}. " if near else ""
    what = f"Of {library}{'.' * bool(module)}{module} it has {', '.join(offered)}. " if library == "scipy" else ""
    return BackendFunctionError(
        f"arrays of the backend {backend.name} have no {library}.{name}. {nearest}{what}"
        "Compute it on the host with fad.device_get(x), or give a function of your own a rule with fad.custom_jvp"
    )


# --- what a device does not say --------------------------------------------------------------------------------------


def definite(low: Any, a: Any) -> Any:
    """Return Cholesky factors of a device, NaN where the matrix is not positive definite.

    Its library stops there, and says so to those who wait. The factor's diagonal has no positive number then, or its
    row does not give the matrix's diagonal: a square is not negative, and what is left for it is not positive.
    """
    on = np.diagonal(a, axis1=-2, axis2=-1).real
    within = 4.0 * (a.shape[-1] + 1) * float(np.finfo(low.dtype).eps)
    right = np.abs(np.sum(np.abs(low) ** 2, -1) - on) <= within * on
    right = right & (np.diagonal(low, axis1=-2, axis2=-1).real > 0)
    return np.where(np.all(right, -1)[..., None, None], low, np.nan)


# --- what array libraries say, in fad's words -------------------------------------------------------------------------

_MIXED = (
    "Unsupported type", "no implementation found", "has incorrect type", "Only cupy arrays", "of type cupy.ndarray",
    "must be cupy", "must be a cupy", "only supports cupy.ndarray", "cannot be used for fill",
    "Implicit conversion to a NumPy array",
)  # fmt: skip
_LACKING = re.compile(r"all returned NotImplemented from __array_ufunc__\(<ufunc '(\w+)'>|found for 'numpy\.([\w.]+)'")


def is_mixture(error: BaseException) -> bool:
    """Return whether an array library refused arrays of another one."""
    said = str(error)
    return isinstance(error, BackendMismatchError) or (
        any(words in said for words in _MIXED)
        and any(words in said for words in ("numpy.ndarray", "NumPy array", "cupy", "Tracer"))
    )


def explain(error: BaseException) -> None:
    """Raise fad's error for what an array library says of arrays of another, or of a function that it lacks.

    Each library says it in its own words, and only when it computes; so looking at its words costs nothing before.
    """
    others = devices()
    if not others:
        return
    said = str(error)
    named = [b for b in others if f"'{b.array_type.__name__}'" in said or f"{b.array_type.__name__}'>" in said]
    if is_mixture(error):
        names = " or ".join(b.name for b in others)
        raise BackendMismatchError(
            f"arrays of two backends were mixed, {names} and numpy; "
            f"move one with fad.device_put(x, {others[0].name!r}) or fad.device_get(x). Arrays that the function makes "
            f"are made there where it runs in a block of fad.backends.use({others[0].name!r})"
        ) from error
    lacking = _LACKING.search(said)
    if lacking and named:
        name = lacking[1] or lacking[2]
        special = lacking[1] and not hasattr(np, name)
        raise _missing(named[0], *(("scipy", f"special.{name.lstrip('_')}") if special else ("numpy", name))) from error
