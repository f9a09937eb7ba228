"""A model that a loop carries is a copy: its buffers change from step to step, the caller's stay, whoever runs it."""

import numpy as np
import pytest

import fad
from fad import nn


class Counter(nn.Module):
    def __init__(self):
        self.w = np.array(2.0)
        self.calls = nn.Buffer(np.array(0.0))

    def forward(self, x):
        self.calls = self.calls + 1
        return self.w * x


def scan(model, x):
    model, ys = fad.scan(lambda m, x: (m, m(x)), model, np.arange(4.0) * x)
    return np.sum(ys) * model.calls


def fori_loop(model, x):
    model, total = fad.fori_loop(0, 4, lambda i, state: (state[0], state[1] + state[0](i * x)), (model, 0.0 * x))
    return total * model.calls


def while_loop(model, x):
    def body(state):
        i, m, total = state
        return i + 1, m, total + m(i * x)

    _, model, total = fad.while_loop(lambda state: state[0] < 4, body, (0, model, 0.0 * x))
    return total * model.calls


MODES = {
    "plain": lambda f: f,
    "value_and_grad": lambda f: lambda m, x: fad.value_and_grad(f)(m, x)[0],
    "grad of x": lambda f: lambda m, x: fad.value_and_grad(f, argnums=1)(m, x)[0],
    "jvp": lambda f: lambda m, x: fad.jvp(lambda x: f(m, x), (x,), (1.0,))[0],
    "jit": fad.jit,
    "jit of grad": lambda f: fad.jit(lambda m, x: fad.value_and_grad(f)(m, x)[0]),
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("loop", [scan, fori_loop, while_loop], ids=lambda f: f.__name__)
def test_the_callers_buffers_stay_as_they_were(loop, mode):
    model = Counter()
    assert MODES[mode](loop)(model, 3.0) == 2.0 * 6.0 * 3.0 * 4.0
    assert model.calls == 0.0
    gradient = fad.grad(loop)(model, 3.0)
    assert (gradient.w, model.calls) == (72.0, 0.0)
