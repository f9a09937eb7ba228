"""How a function of SciPy becomes public here, and what a module says of names that it has not."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np

from fad.backends import backend_of
from fad.core.primitives.archetypes import flat
from fad.core.primitives.primitive import public
from fad.core.tracing.tracer import bind
from fad.errors import BackendFunctionError
from fad.ops.layout.memory_order import in_order


def registrar(module: str, order: str | None = None) -> Callable:
    """Return a decorator maker for a module of SciPy: ``register_function(name, samples=...)`` makes a function public.

    Plain arguments go to SciPy's function of that name. `order` is the one in memory of the matrices that SciPy's
    functions return: "C", or "F" for those of LAPACK; None where it depends.
    """
    scipy_module = importlib.import_module(f"scipy.{module}")

    def register_function(name: str, order: str | None = order, **notes: Any) -> Callable:
        decorate = public(getattr(scipy_module, name), name=f"scipy.{module}.{name}", **notes)
        return decorate if order is None else lambda function: decorate(in_order(function, order))

    return register_function


def missing(module: str) -> Callable:
    """Return a module's ``__getattr__``: it says what a name of SciPy's that has no rule needs."""

    def lookup(name: str) -> Any:
        if hasattr(importlib.import_module(f"scipy.{module}"), name):
            raise AttributeError(
                f"fad.scipy.{module} has no {name}: it has no derivative rule. "
                f"For plain arrays use scipy.{module}.{name}; for a rule of your own, fad.custom_jvp"
            )
        raise AttributeError(f"neither scipy.{module} nor fad.scipy.{module} has {name!r}")

    return lookup


def flat_on_host(name: str, run: Callable, samples: Callable, doc: str, **notes: Any) -> Any:
    """Make an operation without a derivative that SciPy computes, one example of a batch after the other."""

    def forward(*xs: Any, **params: Any) -> Any:
        on_host(name, *xs)
        return run(*map(np.ascontiguousarray, xs), **params)

    def batch(size: int, batched: list, xs: list, params: dict) -> Any:
        examples = [[x[i] if b else x for x, b in zip(xs, batched, strict=True)] for i in range(size)]
        return np.stack([bind(prim, *example, **params) for example in examples])

    prim: Any = flat(f"scipy.{name}", forward, batch=batch, samples=samples, doc=doc, **notes)
    return prim


def on_host(name: str, *xs: Any) -> None:
    """Raise if a function that SciPy itself computes got an array of a device."""
    backend = backend_of(*xs)
    if backend.name != "numpy":
        raise BackendFunctionError(
            f"{name} is computed by SciPy, on the host, and got arrays of the backend {backend.name}. "
            "Compute it on the host with fad.device_get(x)"
        )
