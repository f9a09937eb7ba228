"""The same sample calls in another library: what the operation tests against JAX, PyTorch and autograd share."""

import numpy as np

import fad
from fad.core.primitive import REGISTRY
from fad.testing.cases import cases
from fad.testing.gradcheck import random_like

SPACES = {"": np, "linalg.": np.linalg, "fft.": np.fft}


def numpy_names():
    """Return ``{path of a NumPy function: operation}`` for the operations that answer for one."""
    found = {}
    for prefix, space in SPACES.items():
        for name in dir(space):
            f = getattr(space, name)
            for operation in REGISTRY.values():
                if any(f is g for g in operation.numpy if callable(g)):
                    found[prefix + name] = operation
    return found


def lookup(space, path):
    """Return the function of that dotted path in a library's namespace, or None."""
    for part in path.split("."):
        space = getattr(space, part, None)
        if space is None:
            return None
    return space


def derivative_cases(operation, limit=3):
    """Return the first samples of an operation that have a derivative to compare."""
    kept = [case for case in cases(operation, np.float64) if case.differentiable()]
    return kept[:limit]


def ours(case, tangents, cts):
    """Return values, tangents and cotangents that fad finds for a sample."""
    f = case.of(case.diff)
    values, pushed = fad.jvp(f, case.points, tangents)
    return values, pushed, fad.vjp(f, *case.points)[1](cts)


def directions(case):
    rng = np.random.default_rng(case.number)
    ys = case.smooth(*case.operands)
    return tuple(random_like(x, rng) for x in case.points), tuple(random_like(y, rng) for y in ys)


def same_values(case, got):
    """Tell whether another library computes the same thing for this call; names alone do not say so."""
    wanted = case.smooth(*case.operands)
    if len(wanted) != len(got):
        return False
    pairs = [(np.asarray(a), np.asarray(b)) for a, b in zip(wanted, got, strict=True)]
    return all(
        b.dtype.kind in "fc" and a.shape == b.shape and np.allclose(a, b, rtol=1e-6, atol=1e-6) for a, b in pairs
    )


def same_dtypes(case, got):
    """Tell whether both results are of one kind: NumPy makes real what is real by chance, which JAX cannot."""
    return all(a.dtype == b.dtype for a, b in zip(case.smooth(*case.operands), got, strict=True))


def close(what, got, wanted, tolerance):
    for g, w in zip(got, wanted, strict=True):
        np.testing.assert_allclose(g, w, rtol=tolerance, atol=tolerance, err_msg=what)
