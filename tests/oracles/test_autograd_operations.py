"""Every operation that HIPS autograd differentiates too gives the same derivatives there."""

import numpy as np
import pytest

from .peers import close, derivative_cases, directions, lookup, numpy_names, ours, same_dtypes, same_values

autograd = pytest.importorskip("autograd", reason="HIPS autograd, the oracle of this test, is not installed")
anp = pytest.importorskip("autograd.numpy", reason="HIPS autograd, the oracle of this test, is not installed")

pytestmark = pytest.mark.oracle

# Where the two differ: the operation, and why. The contract has compared each with differences of values.
DIFFERENT = {
    **dict.fromkeys(["full", "full_like"], "autograd sums over all axes, though the fill value may be an array"),
    **dict.fromkeys(
        ["fft.rfft2", "fft.rfftn", "fft.irfft2", "fft.irfftn"], "autograd's rules do not know norm='forward'"
    ),
    "tile": "autograd adds up the wrong copies of an array of two axes tiled along the last one",
    "sign": "autograd calls the sign of complex numbers flat; it is z / abs(z), which turns with z",
    "sinc": "autograd gives NaN at 0",
}
SHARED = {
    path: op
    for path, op in numpy_names().items()
    if lookup(anp, path) is not None and op.flat is not True and path not in DIFFERENT
}


def _theirs(case, function):
    """Return the sample as an autograd function from one tuple of operands to one array."""

    def f(xs):
        operands = list(case.operands)
        for k, x in zip(case.diff, xs, strict=True):
            operands[k] = x
        return case.call(function, *operands)

    return f


@pytest.mark.filterwarnings("ignore")  # its own deprecations, and rules that divide by zero
@pytest.mark.parametrize("path", list(SHARED))
def test_derivatives_agree_with_autograd(path):
    function = lookup(anp, path)
    for case in derivative_cases(SHARED[path]):
        f = _theirs(case, function)
        tangents, cts = directions(case)
        if len(cts) != 1:
            continue
        try:
            pullback, value = autograd.core.make_vjp(lambda xs, f=f: f(xs), tuple(case.points))
            pulled = pullback(cts[0])
        except Exception:  # autograd has no rule for it, or not for this call
            continue
        if not same_values(case, (value,)) or not same_dtypes(case, (np.asarray(value),)):
            continue
        _, _, back = ours(case, tangents, cts)
        # autograd forgets that a real operand takes the real part only
        pulled = [c if x.dtype.kind == "c" else np.real(c) for c, x in zip(pulled, case.points, strict=True)]
        if [np.shape(c) for c in pulled] != [c.shape for c in back]:
            continue
        close(f"vjp of {path} {case}", back, pulled, 1e-8)


def test_there_is_something_to_compare():
    assert len(SHARED) > 100
