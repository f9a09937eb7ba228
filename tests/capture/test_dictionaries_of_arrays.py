"""Dictionaries of arrays by texts: what their methods change in a step, and the order that their items have then."""

import copy

import numpy as np
import pytest
from capture.agreement import agree_briefly, report_of

X = np.array([0.71, -0.42, 1.13, 0.33, 0.89])


def popped(x):
    state = {"k": 0.1 * x, "u": x}
    for _ in range(20):
        k = state.pop("k")
        state["u"] = state["u"] - 0.1 * k + state.pop("none", 0.01)
        state["k"] = np.sin(state["u"])
    return np.sum(state["u"] * x) + np.sum(np.stack(list(state.values()))[0] ** 2)


def updated(x):
    state = {"u": x, "v": 0.1 * x, "t": 0.0}
    for _ in range(20):
        state.update(u=state["u"] + 0.1 * state["v"], v=state["v"] - 0.1 * state["u"])
        state.update({"t": state["t"] + 0.1})
        state.update([("u", state["u"] * 0.9)])
    return np.sum(state["u"] * state["v"]) * state["t"]


def merged(x):
    state = {"u": x, "v": 0.1 * x}
    for _ in range(20):
        state |= {"v": state["v"] - 0.1 * state["u"]}
        state = state | {"u": state["u"] + 0.1 * state["v"]}
    return np.sum(state["u"] * state["v"])


def copied(x):
    state = {"u": x, "v": 0.1 * x}
    for _ in range(20):
        new = state.copy()
        for k in state:
            new[k] = 0.9 * state[k] + 0.1 * state["u"]
        state = copy.copy(new)
    return np.sum(state["u"] * state["v"])


def adam(x):
    params, m = {"w": x * 1.0, "b": np.ones(5)}, {"w": np.zeros(5), "b": np.zeros(5)}
    for i in range(1, 21):
        grads = {"w": 2 * params["w"] * params["b"], "b": params["w"] ** 2 + params["b"]}
        for k in params:
            m[k] = 0.9 * m[k] + 0.1 * grads[k]
            params[k] -= 0.1 * m[k] / (1 - 0.9**i)
    return np.sum(params["w"] ** 2 * params["b"])


def elements_by_a_slice(x):
    us = [x, 0.1 * x, x * x]
    for _ in range(20):
        us[:] = [0.9 * u for u in us]
        us[1:] = us[2], 0.5 * us[1]
    return np.sum(us[0] * us[1] + us[2])


def by_names(x):
    class State:
        def __init__(self):
            self.u, self.v = x, 0.1 * x

    s = State()
    for i in range(20):
        for name in ("u", "v"):
            setattr(s, name, 0.9 * getattr(s, name) + 0.01 * i)
    return np.sum(s.u * s.v)


CAPTURED = [popped, updated, merged, copied, adam, elements_by_a_slice, by_names]


@pytest.mark.parametrize("f", CAPTURED, ids=lambda f: f.__name__)
def test_a_loop_that_changes_its_state_by_methods_is_captured(f):
    what, text = report_of(f, X)
    assert what[0] == "captured", text  # the outer loop
    agree_briefly(f, X)


def an_order_that_values_decide(x):
    state = {"a": x, "b": 2.0 * x}
    for i in range(20):
        if i > 3 and np.sum(state["a"]) > 1.0:
            state["a"] = 0.9 * state.pop("a")
    return np.sum(np.stack(list(state.values()))[0])


def a_list_that_a_slice_makes_longer(x):
    us = [x]
    for _ in range(5):
        us[len(us) :] = [0.9 * us[-1]]
    return np.sum(us[-1] * len(us))


@pytest.mark.parametrize("f", [an_order_that_values_decide, a_list_that_a_slice_makes_longer], ids=lambda f: f.__name__)
def test_another_change_is_left_to_python(f):
    assert "step by step" in report_of(f, X)[1]
    agree_briefly(f, X)
