"""The same program on arrays that refuse NumPy: what fails here would fail on a GPU, or copy to the host in silence."""

import warnings
from pathlib import Path

import numpy as np
import pytest
import standin
from standin import DeviceArray

import fad
import fad.nn
import fad.scipy.special  # enters its operations
from fad import backends, tree
from fad.core.primitive import REGISTRY
from fad.testing.cases import cases

backends.register(standin)
KNOWN = {
    line.split("#")[0].strip(): line.partition("#")[2].strip()
    for line in (Path(__file__).parent / "known_differences.txt").read_text().splitlines()
    if line.strip() and not line.startswith("#")
}


def to_device(x):
    return DeviceArray(x) if isinstance(x, np.ndarray) else x


def to_host(x):
    return x._a if type(x) is DeviceArray else np.asarray(x)


def assert_same(device, host):
    assert len(device) == len(host)
    for d, h in zip(device, host, strict=True):
        assert type(d) is DeviceArray, f"a result left the device as {type(d).__name__}"
        np.testing.assert_allclose(to_host(d), to_host(h), rtol=1e-9, atol=1e-9)
        assert d.dtype == np.asarray(h).dtype


def smooth(out):
    """Return the floating-point and complex arrays and numbers of a result, flat."""
    return tuple(x for x in tree.leaves(out) if hasattr(x, "dtype") and x.dtype.kind in "fc")


def derivatives(case, operands):
    """Return value, cotangents, tangents and batched values of a case, flat."""
    chosen = [operands[k] for k in case.diff]

    def f(*xs):
        full = list(operands)
        for k, x in zip(case.diff, xs, strict=True):
            full[k] = x
        return smooth(case.call(case.function, *full))

    out = list(fad.vmap(f)(*[np.stack([x, x]) for x in chosen]))
    if not case.is_flat() and out:
        ys, pullback = fad.vjp(f, *chosen)
        out += [*ys, *pullback(tree.map(np.ones_like, ys))]
        out += fad.jvp(f, tuple(chosen), tuple(np.ones_like(x) for x in chosen))[1]
    return out


def check(name):
    operation = REGISTRY[name]
    for case in cases(operation, np.float64):
        operands = list(case.operands)
        if not case.diff or not all(isinstance(operands[k], np.ndarray) for k in case.diff):
            continue
        host = derivatives(case, operands)
        case.leaves = [to_device(x) for x in case.leaves]
        assert_same(derivatives(case, [to_device(x) for x in operands]), host)


NAMES = sorted(n for n in REGISTRY if not n.startswith("scipy."))  # what wraps the rest of SciPy runs on the host


@pytest.mark.parametrize("name", NAMES)
def test_an_operation_and_its_derivatives_stay_on_the_device(name):
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        if name not in KNOWN:
            check(name)
            return
        try:
            check(name)
        except Exception:
            return
    pytest.fail(f"{name} works now: take it off the list of known differences")
