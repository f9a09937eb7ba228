"""Of a 0-d array NumPy and PyTorch let axis 0 and -1 pass for none: of traced ones too, one per example in vmap."""

import numpy as np
import pytest

import fad
import fad.eager as torch
import fad.nn.functional as F
import fad.scipy.special as special

FUNCTIONS = {
    "sum": lambda x, axis: np.sum(x, axis=axis),
    "x.sum": lambda x, axis: x.sum(axis),
    "max": lambda x, axis: np.max(x, axis=axis),
    "cumsum": lambda x, axis: np.cumsum(x, axis=axis),
    "squeeze": lambda x, axis: 2.0 * np.squeeze(x, axis=axis),
    "x.squeeze": lambda x, axis: 2.0 * x.squeeze(axis),
    "take": lambda x, axis: np.take(x, 0, axis=axis),
    "repeat": lambda x, axis: np.repeat(x, 2, axis=axis),
    "logsumexp": lambda x, axis: special.logsumexp(x, axis=axis),
    "softmax": lambda x, axis: F.softmax(x, axis),
    "log_softmax": lambda x, axis: F.log_softmax(x, axis),
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("axis", [0, -1])
def test_traced_0d_arrays_take_the_axes_that_plain_ones_take(name, axis):
    f = lambda x: FUNCTIONS[name](x, axis)
    x = np.array(2.0)
    wanted = f(x)
    values = {
        "jvp": fad.jvp(f, (x,), (x,))[0],
        "jit": fad.jit(f)(x),
        "vmap": fad.vmap(f)(x[None])[0],
        "linearize": fad.linearize(f, x)[0],
    }
    for mode, y in values.items():
        np.testing.assert_array_equal(y, wanted, err_msg=mode)
        assert np.shape(y) == np.shape(wanted), mode
    g = fad.grad(lambda x: np.sum(f(x)))
    np.testing.assert_allclose(g(x), np.sum(f(x + 0.5) - f(x - 0.5)), atol=1e-12)
    np.testing.assert_allclose(fad.vmap(g)(x[None])[0], g(x))


@pytest.mark.parametrize("dim", [0, -1])
def test_0d_tensors_take_dim_0(dim):
    x = torch.tensor(2.0, requires_grad=True)
    for f, slope in (
        (torch.sum, 1.0), (torch.mean, 1.0), (torch.softmax, 0.0), (torch.log_softmax, 0.0), (torch.squeeze, 1.0),
    ):  # fmt: skip
        y = f(x, dim)
        assert y.shape == ()
        (g,) = torch.autograd.grad(y, x)
        assert g.item() == slope
    assert torch.var(x, dim, unbiased=False).item() == 0.0
    with pytest.raises((IndexError, np.exceptions.AxisError)):
        torch.sum(x, 1)
