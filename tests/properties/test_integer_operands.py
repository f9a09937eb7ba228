"""Integers and booleans, which have no derivative: recorded and batched operations give what NumPy gives."""

import warnings

import numpy as np
import pytest
from each import each

import fad
from fad.core.primitives.primitive import REGISTRY
from fad.core.primitives.samples import Sampler
from fad.errors import DerivativeError, MissingRuleError, TracerConversionError

# What gives something else on purpose, or where NumPy itself does what nobody would expect.
APART = {
    "allclose": "an array's boolean, where NumPy gives Python's",
    "gradient": "NumPy refuses booleans, and lets integers without signs wrap round",
    "trapezoid": "NumPy lets integers without signs wrap round",
    "unwrap": "NumPy lets integers without signs wrap round",
    "ediff1d": "NumPy refuses numbers of another dtype at the ends",
    "digitize": "NumPy refuses what wraps round",
    "pad": "NumPy refuses numbers that the dtype does not hold",
    "quantile": "NumPy interpolates between integers at integer levels as integers",
    "nanquantile": "NumPy interpolates between integers at integer levels as integers",
    "unique_values": "NumPy gives them in no order",
    "histogram": "NumPy takes booleans for bytes, with a warning",
    "histogram2d": "NumPy takes booleans for bytes, with a warning",
    "logaddexp.reduce": "in half precision, NumPy rounds each step",
}


def _whole(x, dtype):
    if isinstance(x, (list, tuple)):
        return type(x)(_whole(y, dtype) for y in x)
    if not (isinstance(x, np.ndarray) and x.dtype.kind == "f"):
        return x
    x = np.clip(np.nan_to_num(x), -100, 100)
    if np.dtype(dtype).kind == "b":
        return np.asarray(x > 0)
    return np.rint(np.abs(x) if np.dtype(dtype).kind == "u" else x).astype(dtype)


def _outcome(f, xs):
    try:
        found = f(*xs)
    except (ValueError, TypeError, ArithmeticError, IndexError) as error:
        return error
    return [np.asarray(y) for y in fad.tree.leaves(tuple(found) if isinstance(found, tuple) else found)]


def _callable(op):
    first = op.numpy[0]
    return getattr(*first) if type(first) is list else first


NAMES = sorted(
    name
    for name, op in REGISTRY.items()
    if getattr(op, "samples", None) and getattr(op, "numpy", ()) and "scipy" not in name and name not in APART
)


@pytest.mark.parametrize("dtype", [np.int64, np.int8, np.uint8, bool])
@each("name", NAMES)
def test_a_recorded_and_a_batched_operation_on_integers_gives_what_numpy_gives(name, dtype):
    op = REGISTRY[name]
    function = _callable(op)
    for sample in op.samples(Sampler(1)):
        args = [_whole(x, dtype) for x in sample.args]
        places = [i for i, x in enumerate(args) if isinstance(x, np.ndarray) and x.dtype == dtype]
        xs = [args[i] for i in places]

        def call(*xs, args=args, places=places, kwargs=sample.kwargs):
            given = dict(zip(places, xs, strict=True))
            return function(*[given.get(i, x) for i, x in enumerate(args)], **kwargs)

        with warnings.catch_warnings(action="ignore"), np.errstate(all="ignore"):
            wanted = _outcome(call, xs)
            if not xs or isinstance(wanted, Exception):
                continue
            recorded = _outcome(fad.jit(call), xs)
            batched = _outcome(lambda *xs, call=call: fad.vmap(call)(*[x[None] for x in xs]), xs)
        for found, element in ((recorded, ()), (batched, 0)):
            if isinstance(found, (TracerConversionError, MissingRuleError, DerivativeError, np.linalg.LinAlgError)):
                continue
            assert not isinstance(found, Exception), found
            for y, w in zip(found, wanted, strict=True):
                assert y.dtype == w.dtype
                tolerance = 1e-3 if w.dtype.itemsize < 4 or w.dtype == np.float32 else 1e-9
                y, w = np.asarray(y[element], complex), np.asarray(w, complex)
                np.testing.assert_allclose(y, w, tolerance, tolerance)
