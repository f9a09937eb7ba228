"""Anomaly mode: the backward pass stops at the first rule that makes a NaN, and names the line of its forward call."""

from __future__ import annotations

from typing import Any

import numpy as np

from fad.core.cotangent import densify
from fad.core.tracer import Tracer
from fad.eager.engine import observer
from fad.eager.records import BackwardError, line, name


class AnomalyError(BackwardError):
    """Under anomaly mode, a backward rule returned NaN where its cotangent had none.

    The message names the forward line. The remedy is there: keep the argument out of the places where the derivative
    is infinite (``torch.where``, ``torch.clamp``), or scale it.
    """


def _watch(rec: list, g: Any, run: Any) -> list:
    found = run()
    for k, (_, c) in enumerate(found):
        if _has_nan(c) and not _has_nan(g):
            raise AnomalyError(
                f"{name(rec)} returned NaN for its operand {k}.\n  The forward call was at {line(rec)}\n"
                f"  the cotangent had {_range(g)}"
            )
    return found


def _plain(x: Any) -> Any:
    x = densify(x)
    while type(x) is Tracer:
        x = x.value
    return x


def _has_nan(x: Any) -> bool:
    if type(x) in (list, tuple):
        return any(map(_has_nan, x))
    x = _plain(x)
    return x is not None and x.dtype.kind in "fc" and bool(np.isnan(x).any())


def _range(g: Any) -> str:
    g = _plain(g[0] if type(g) is list else g)
    if g is None or not g.size:
        return "no elements"
    return f"shape {g.shape} and values from {np.min(g):.4g} to {np.max(g):.4g}"


class detect_anomaly:
    """Stop a backward pass at the first NaN and name the forward line: ``with torch.autograd.detect_anomaly():``."""

    def __init__(self, check_nan: bool = True):
        self._check = check_nan

    def __enter__(self) -> None:
        self._token = observer.set(_watch if self._check else None)

    def __exit__(self, *_: Any) -> None:
        observer.reset(self._token)


class set_detect_anomaly(detect_anomaly):
    """The same by a boolean: at once when called, or as a context manager."""

    def __init__(self, mode: bool, check_nan: bool = True):
        super().__init__(check_nan)
        self._token = observer.set(_watch if mode and check_nan else None)

    def __enter__(self) -> None:
        pass
