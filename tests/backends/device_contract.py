"""The contract of operations on a device: what they give there must be what NumPy gives, and must stay there."""

from pathlib import Path

import numpy as np

import fad
import fad.nn
import fad.scipy.special  # enters its operations
from fad import tree
from fad.core.primitive import REGISTRY
from fad.testing.cases import cases

KNOWN = {
    line.split("#")[0].strip(): line.partition("#")[2].strip()
    for line in (Path(__file__).parent / "known_differences.txt").read_text().splitlines()
    if line.strip() and not line.startswith("#")
}
NAMES = sorted(n for n in REGISTRY if not n.startswith("scipy."))  # what wraps the rest of SciPy runs on the host


def assert_same(backend, device, host):
    assert len(device) == len(host)
    for d, h in zip(device, host, strict=True):
        assert type(d) is backend.array_type, f"a result left the device as {type(d).__name__}"
        np.testing.assert_allclose(backend.to_host(d), np.asarray(h), rtol=1e-9, atol=1e-9)
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


def check(name, backend):
    """Run every sample of an operation on the device: value by lanes, JVP and VJP."""

    def to_device(x):
        return backend.from_host(x) if isinstance(x, np.ndarray) else x

    operation = REGISTRY[name]
    for case in cases(operation, np.float64):
        operands = list(case.operands)
        if not case.diff or not all(isinstance(operands[k], np.ndarray) for k in case.diff):
            continue
        host = derivatives(case, operands)
        case.leaves = [to_device(x) for x in case.leaves]
        assert_same(backend, derivatives(case, [to_device(x) for x in operands]), host)
