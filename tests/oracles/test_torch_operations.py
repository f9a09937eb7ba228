"""Elementwise operations and linear algebra that PyTorch has too give the same derivatives there."""

import numpy as np
import pytest

from fad.core.primitive import Primitive

from .peers import close, derivative_cases, directions, lookup, numpy_names, ours, same_dtypes, same_values

torch = pytest.importorskip("torch", reason="PyTorch, the oracle of this test, is not installed")

pytestmark = pytest.mark.oracle

# NumPy's name -> PyTorch's, where they differ.
NAMES = {
    "arcsin": "asin", "arccos": "acos", "arctan": "atan", "arctan2": "atan2", "arcsinh": "asinh", "arccosh": "acosh",
    "arctanh": "atanh", "absolute": "abs", "power": "pow", "conjugate": "conj_physical", "linalg.inv": "linalg.inv",
}  # fmt: skip
# Where the two differ: the operation, and why.
DIFFERENT = {
    **dict.fromkeys(["nextafter", "heaviside"], "PyTorch has no rule"),
    "ldexp": "PyTorch multiplies by 2**n in integers, so that a negative n gives 0",
    "linalg.eig": "PyTorch refuses a loss that depends on the phase of eigenvectors, as a random cotangent does",
}


def _elementwise(operation):
    return isinstance(operation, Primitive) and operation.archetype == "elementwise"


FOUND = {
    path: (op, lookup(torch, NAMES.get(path, path)))
    for path, op in numpy_names().items()
    if op.flat is not True and (_elementwise(op) or path.startswith("linalg."))
}
SHARED = {path: pair for path, pair in FOUND.items() if pair[1] is not None and path not in DIFFERENT}


def _theirs(case, function):
    def f(*xs):
        operands = [torch.as_tensor(x) for x in case.operands]
        for k, x in zip(case.diff, xs, strict=True):
            operands[k] = x
        out = case.call(function, *operands)
        leaves = out if isinstance(out, (tuple, list)) else (out,)
        return tuple(y for y in leaves if torch.is_tensor(y) and (y.is_floating_point() or y.is_complex()))

    return f


@pytest.mark.parametrize("path", list(SHARED))
def test_derivatives_agree_with_pytorch(path):
    operation, function = SHARED[path]
    for case in derivative_cases(operation):
        f = _theirs(case, function)
        points = tuple(torch.as_tensor(x) for x in case.points)
        try:
            values = tuple(y.resolve_conj().numpy() for y in f(*points))
        except Exception:  # PyTorch does not take this call: another signature
            continue
        if not same_values(case, values) or not same_dtypes(case, values):
            continue
        tangents, cts = directions(case)
        # PyTorch's cotangents are the conjugates of those that pair as Re(sum(ct * t)).
        _, pulled = torch.autograd.functional.vjp(f, points, tuple(torch.as_tensor(np.conj(c)) for c in cts))
        _, _, back = ours(case, tangents, cts)
        close(f"vjp of {path} {case}", back, [c.resolve_conj().numpy().conj() for c in pulled], 1e-8)


def test_there_is_something_to_compare():
    assert len(SHARED) > 40
