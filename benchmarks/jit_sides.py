"""One library at one workload, in a process of its own: ``python benchmarks/jit_sides.py LIBRARY WORKLOAD``.

Prints a line of JSON when it has called the derivative twice, and then answers each line it is sent with the seconds
that one call takes. ``jit.py`` starts these processes and lets them take turns.
"""

from __future__ import annotations

import json
import os
import sys
import time
import warnings

import numpy as np
from jit_workloads import GROWTH, WORKLOADS

BURST = 0.05  # seconds
CLOCK = time.process_time if os.environ.get("FAD_BENCH_CLOCK") == "cpu" else time.perf_counter
RATE = 0.01  # of the gradient descent


# --- the names of each library -----------------------------------------------------------------------------------


class Names:
    """NumPy's names, and those that NumPy has not."""

    def __init__(self, names, **more):
        self.names = names
        self.__dict__.update(more)

    def __getattr__(self, name):
        return getattr(self.names, name)

    @staticmethod
    def constant(x):
        return x


def _folded(step, h, xs):
    for t in range(xs.shape[0]):
        h = step(h, xs[t])
    return h


def fad_names():
    import scipy.special

    import fad

    return Names(
        np, erf=scipy.special.erf, conv=lambda x, w, b: fad.nn.functional.conv2d(x, w, b),
        max_pool=lambda x: fad.nn.functional.max_pool(x, 2),
        scan=lambda step, h, xs: fad.scan(lambda h, x: (step(h, x), None), h, xs)[0],
    )  # fmt: skip


def autograd_names():
    import autograd.numpy as anp
    from autograd.scipy.special import erf

    return Names(anp, erf=erf, scan=_folded)


def jax_names():
    import jax
    import jax.numpy as jnp

    def conv(x, w, b):
        return jax.lax.conv_general_dilated(x, w, (1, 1), "VALID") + b.reshape(1, -1, 1, 1)

    def max_pool(x):
        window = (1, 1, 2, 2)
        return jax.lax.reduce_window(x, -np.float32(np.inf), jax.lax.max, window, window, "VALID")

    return Names(
        jnp, erf=jax.scipy.special.erf, conv=conv, max_pool=max_pool,
        scan=lambda step, h, xs: jax.lax.scan(lambda h, x: (step(h, x), None), h, xs)[0],
    )  # fmt: skip


def torch_names():
    import torch

    return Names(
        torch, constant=torch.tensor, scan=_folded, conv=torch.nn.functional.conv2d, transpose=torch.permute,
        max_pool=lambda x: torch.nn.functional.max_pool2d(x, 2), maximum=lambda x, y: torch.clamp(x, min=y),
        max=torch.amax,
    )  # fmt: skip


# --- derivatives ---------------------------------------------------------------------------------------------------


def functional(workload, xp, value_and_grad, grad, hessian):
    """Return the derivative that a workload computes, by transforms as JAX, HIPS autograd and fad have them."""
    n = workload.derived
    argnums = tuple(range(n))

    def f(*args):
        return workload.function(xp, *args)

    if workload.kind == "hessian":
        return hessian(f)
    if workload.kind == "gradient":
        return grad(f, argnums)
    both = value_and_grad(f, argnums)

    def step(*args):
        value, slopes = both(*args)
        return value, *[p - RATE * g for p, g in zip(args, slopes, strict=False)]

    return step


def by_fad(workload, args, compiled):
    import fad
    from fad.errors import NativeFallbackWarning

    warnings.simplefilter("error", NativeFallbackWarning)  # what is measured must be native code
    run = functional(workload, fad_names(), fad.value_and_grad, fad.grad, fad.hessian)
    run = fad.jit(run) if compiled else run
    return lambda: run(*args)


def by_jax(workload, args):
    import jax

    jax.config.update("jax_enable_x64", True)
    run = jax.jit(functional(workload, jax_names(), jax.value_and_grad, jax.grad, jax.hessian))
    args = jax.block_until_ready([jax.numpy.asarray(a) for a in args])
    return lambda: jax.block_until_ready(run(*args))


def by_autograd(workload, args):
    import autograd

    def both(f, argnums):
        # value_and_grad there takes one argument: a tuple
        run = autograd.value_and_grad(lambda some, rest: f(*some, *rest))
        return lambda *args: run(args[: len(argnums)], args[len(argnums) :])

    def grad(f, argnums):
        run = autograd.grad(lambda some, rest: f(*some, *rest))
        return lambda *args: run(args[: len(argnums)], args[len(argnums) :])

    run = functional(workload, autograd_names(), both, grad, autograd.hessian)
    return lambda: run(*args)


def by_torch(workload, args, compiled):
    import torch

    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", os.cpu_count())))
    xp, n = torch_names(), workload.derived
    xs = [torch.tensor(a) for a in args]

    def f(*args):
        return workload.function(xp, *args)

    if workload.kind == "hessian":
        run = torch.func.hessian(f)
        run = torch.compile(run) if compiled else run
        return lambda: run(*xs)
    f = torch.compile(f) if compiled else f
    xs = [x.requires_grad_(k < n) for k, x in enumerate(xs)]

    def gradient():
        return torch.autograd.grad(f(*xs), xs[:n])

    def step():
        value = f(*xs)
        slopes = torch.autograd.grad(value, xs[:n])
        with torch.no_grad():
            return value.detach(), *[p - RATE * g for p, g in zip(xs, slopes, strict=False)]

    return step if workload.kind == "step" else gradient


SIDES = {
    "fad jit": lambda w, args: by_fad(w, args, True),
    "fad": lambda w, args: by_fad(w, args, False),
    "JAX jit": by_jax,
    "PyTorch": lambda w, args: by_torch(w, args, False),
    "torch.compile": lambda w, args: by_torch(w, args, True),
    "autograd": by_autograd,
}


# --- measuring ---------------------------------------------------------------------------------------------------


def first(result):
    """Return a number that tells results apart: the norm of the last array."""
    last = result[-1] if isinstance(result, (tuple, list)) else result
    return float(np.linalg.norm(np.asarray(last, float).reshape(-1)))


def burst(run):
    """Return the seconds of one call, the best of as many as fit into the length of a burst."""
    best, spent = float("inf"), 0.0
    while spent < BURST:
        start = CLOCK()
        run()
        took = CLOCK() - start
        best, spent = min(best, took), spent + took
    return best


def main():
    side, name = sys.argv[1:3]
    workload = {**WORKLOADS, **GROWTH}[name]
    args = workload.arguments(np.random.default_rng(0))
    run = SIDES[side](workload, args)
    start = CLOCK()
    run()
    result = run()
    print(json.dumps({"two": CLOCK() - start, "norm": first(result)}), flush=True)
    del result
    for _ in sys.stdin:
        print(json.dumps(burst(run)), flush=True)


if __name__ == "__main__":
    main()
