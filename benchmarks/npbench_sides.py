"""Other tools' own versions of NPBench's programs: the gradient of JAX's, and the plain run of Numba's."""

from __future__ import annotations

import importlib.util
import os
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np


def load(path: Path, name: str) -> Any:
    """Return the module that a file holds."""
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def timed(run: Callable, least: float = 0.3, most: int = 7, make: Callable = tuple) -> float:
    """Return the median of the seconds that a call takes, after a first one.

    `make` makes its arguments anew for each call, which is not timed: a program may write into them.
    """
    run(*make())
    times, start = [], time.perf_counter()
    while len(times) < most and (not times or time.perf_counter() - start < least):
        args = make()
        before = time.perf_counter()
        run(*args)
        times.append(time.perf_counter() - before)
    return statistics.median(times)


def version_of(p: SimpleNamespace, suffix: str) -> Callable | None:
    """Return a program as NPBench has it for another tool, or None if it has none."""
    path = p.folder / f"{p.module}_{suffix}.py"
    return getattr(load(path, path.stem), p.entry) if path.exists() else None


def time_jax(p: SimpleNamespace) -> float | None:
    """Return the seconds that a gradient of JAX's own version of a program takes, of all that it returns."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    import jax

    jax.config.update("jax_enable_x64", True)
    function = version_of(p, "jax")
    if function is None:
        return None
    rng = np.random.default_rng(0)
    weights: list = []

    def loss(*arrays):
        args = dict(p.args)
        args.update(zip(p.active, arrays, strict=True))
        found = [y for y in jax.tree.leaves(function(*args.values())) if y.dtype.kind in "fc"]
        if not weights:
            weights.extend(rng.standard_normal(y.shape) for y in found)
        return sum((w * (y.real + 0.5 * y.imag)).sum() for w, y in zip(weights, found, strict=True))

    compiled = jax.jit(jax.value_and_grad(loss, argnums=tuple(range(len(p.active)))))
    point = [jax.numpy.array(p.args[k]) for k in p.active]
    return timed(lambda: jax.block_until_ready(compiled(*point)), 0.2, 3)


def time_numba(p: SimpleNamespace) -> float | None:
    """Return the seconds of a plain run of Numba's version, the fastest of those on one thread: no derivative."""
    found = []
    for suffix in ("numba_n", "numba_o"):
        function = version_of(p, suffix)
        if function is None:
            continue
        fresh = lambda: [v.copy() if isinstance(v, np.ndarray) else v for v in p.args.values()]
        try:
            found.append(timed(function, 0.2, 5, fresh))
        except Exception:  # some of NPBench's versions do not compile with today's Numba
            continue
    return min(found, default=None)
