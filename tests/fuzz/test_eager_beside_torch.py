"""Random programs run by the eager API and by PyTorch: values, gradients, histories, shapes, dtypes and errors agree.

``FUZZ_PROGRAMS=5000 FUZZ_SEED=1 pytest tests/fuzz/test_eager_beside_torch.py`` runs more, from another seed on.
"""

import os
import re
import warnings

import numpy as np
import pytest

import fad.eager
from fad.errors import MutationError

from .eager_programs import program

torch = pytest.importorskip("torch", reason="PyTorch, the oracle of these tests, is not installed")

COUNT, FIRST = int(os.environ.get("FUZZ_PROGRAMS", "300")), int(os.environ.get("FUZZ_SEED", "0"))
CHUNK = 100
LOUD = (MutationError, fad.eager.InPlaceError)

# PyTorch refuses these for the sake of its version counters and view tracking; here they have their right meaning.
STRICTER = (
    "modified by an inplace operation", "A view was created in no_grad mode", "is a view and is being modified inplace",
    "is a view and its base or another view", "a view of a leaf Variable", "more than one element of the written-to",
    "some elements of the input tensor and the written-to", "backward through the graph a second time",
    "view size is not compatible",
)  # fmt: skip


def run(api, statements):
    """Return the variables of a program and the error that ended it, with the number of its statement."""
    env = {"torch": api}
    for i, statement in enumerate(statements):
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                exec(statement, env)
        except Exception as error:
            return env, i, error
    return env, len(statements), None


def described(x):
    """Return what is compared of a tensor."""
    grad = x.grad if x.is_leaf or x.retains_grad else None
    return {
        "shape": tuple(x.shape),
        "dtype": str(x.dtype).rpartition(".")[2],
        "requires_grad": x.requires_grad,
        "is_leaf": x.is_leaf,
        "value": np.asarray(x.detach().tolist(), float),
        "grad": None if grad is None else np.asarray(grad.detach().tolist(), float),
        "grad shape": None if grad is None else tuple(grad.shape),
    }


def close(a, b):
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        return a.shape == b.shape and np.allclose(a, b, rtol=2e-3, atol=1e-4, equal_nan=True)
    return type(a) is type(b) and a == b


def _is_of_a_view_made_tracked(statement, env, refusal):
    """Return whether PyTorch calls a leaf what is none: a view of a plain tensor into which a tracked value went."""
    target = re.match(r"(?:with [^:]*:\s*)?(t\d+)", statement)
    x = env.get(target[1]) if target else None
    return "a leaf Variable that requires grad" in str(refusal) and x is not None and not x.is_leaf


def difference(statements):
    """Return in what the two differ, or None."""
    ours, i, error = run(fad.eager, statements)
    theirs, j, refusal = run(torch, statements)
    if refusal is not None and any(text in str(refusal) for text in STRICTER):
        return None
    loud = isinstance(error, LOUD) and "a leaf that requires grad" not in str(error)
    if loud or "values were freed by the first" in str(error):
        return None  # some nodes keep more than PyTorch's, and some memory is not written that PyTorch writes
    if refusal is not None and error is None and _is_of_a_view_made_tracked(statements[j], ours, refusal):
        return None
    if (error is None) != (refusal is None) or i != j:
        return f"errors: {error!r} at {i}, PyTorch {refusal!r} at {j}"
    if error is not None:
        return None
    for name, x in theirs.items():
        if isinstance(x, torch.Tensor):
            try:
                mine, other = described(ours[name]), described(x)
            except RuntimeError as error:
                if "is a view" in str(error):
                    continue
                raise
            for what, value in other.items():
                if not close(mine[what], value):
                    return f"{name}, {what}: {mine[what]}, PyTorch {value}"
    return None


def shrunk(statements):
    """Return the program without the statements that the difference does not need."""
    found, i = list(statements), len(statements) - 1
    while i >= 0:
        less = found[:i] + found[i + 1 :]
        said = difference(less)
        if said is not None and "NameError" not in said and "KeyError" not in said:
            found = less
            i = min(i, len(found))
        i -= 1
    return found


@pytest.mark.oracle
@pytest.mark.parametrize("start", range(FIRST, FIRST + COUNT, CHUNK))
def test_random_programs_agree_with_pytorch(start):
    for seed in range(start, min(start + CHUNK, FIRST + COUNT)):
        statements = program(seed, fad.eager)
        said = difference(statements)
        if said is not None:
            found = shrunk(statements)
            pytest.fail(f"seed {seed}: {difference(found) or said}\n" + "\n".join(found))
