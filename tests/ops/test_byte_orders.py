"""Results have the byte order that NumPy gives them: every function, called on its samples in the other byte order."""

import warnings

import all_of_fad
import numpy as np
import pytest

import fad
from fad import tree
from fad.core.primitives.primitive import REGISTRY
from fad.core.primitives.samples import Sampler
from fad.core.tracing.numpy_dispatch import FUNCTIONS

all_of_fad.load()
OPERATIONS = {f: REGISTRY[op.__name__] for f, op in FUNCTIONS.items() if getattr(op, "__name__", "") in REGISTRY}
SAMPLED = {f"{f.__module__}.{f.__name__}": f for f, operation in OPERATIONS.items() if operation.samples}
# NumPy asks fad about these only where a function imports or names them itself, and not where they are handed to it.
MAKERS = {
    np.full, np.arange, np.array, np.asarray, np.asanyarray, np.asarray_chkfinite, np.ascontiguousarray,
    np.asfortranarray, np.require,
}  # fmt: skip
TWINS = {np.linalg.outer, np.linalg.cross, np.linalg.diagonal, np.linalg.tensordot, np.linalg.trace}  # they take less
NAMES = [name for name, f in SAMPLED.items() if name.startswith("numpy") and f not in MAKERS | TWINS]


def is_numeric(x):
    return isinstance(x, np.ndarray) and x.dtype.kind in "fiu"


def on_arrays(f, call):
    """Return a function of the arrays among the arguments of a call, and those arrays in the other byte order."""
    places = [k for k, x in enumerate(call.args) if is_numeric(x)]

    def g(*xs):
        args = list(call.args)
        for k, x in zip(places, xs, strict=True):
            args[k] = x
        return f(*args, **call.kwargs)

    return g, [call.args[k].astype(call.args[k].dtype.newbyteorder()) for k in places]


def dtypes(outputs):
    return [np.asarray(y).dtype for y in tree.leaves(outputs)]


@pytest.mark.parametrize("name", NAMES)
def test_results_have_the_byte_order_that_numpy_gives(name):
    f = SAMPLED[name]
    for call in OPERATIONS[f].samples(Sampler(0)):
        g, xs = on_arrays(f, call)
        with np.errstate(all="ignore"), warnings.catch_warnings(action="ignore"):
            assert dtypes(fad.jit(g)(*xs)) == dtypes(g(*xs)), call


def test_most_functions_have_samples():
    assert len(NAMES) > 200
