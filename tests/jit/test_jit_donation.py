"""Donated arguments of jit: their memory is used again, and never before they were read."""

import functools

import numpy as np
import pytest

import fad
from fad import tree
from fad.errors import DonatedArrayError
from fad.jitting.donated_arrays import DONATED, donate

pytest.importorskip("llvmlite")
rng = np.random.default_rng(0)


def descend(p, g):
    return p - 0.1 * g


def address(x):
    return x.__array_interface__["data"][0]


def test_results_take_over_the_memory_of_donated_arguments():
    f, plain = fad.jit(descend, donate_argnums=0), fad.jit(descend)
    p, g = np.ones((100, 80)), rng.normal(size=(100, 80))
    want = p.copy()
    for n in range(4):
        before = address(p)
        want = plain(want, g)
        given, p = p, f(p, g)
        np.testing.assert_array_equal(p, want)
        assert (address(p) == before) is (n > 0)  # the first call records
        with pytest.raises(DonatedArrayError, match="array 0 among the arguments"):
            f(given, g)
    assert "memory of donated arguments" in f.explain()


@pytest.mark.parametrize("size", [5, 9000])
def test_an_argument_that_is_returned_as_it_is_may_be_donated_again(size):
    f = fad.jit(lambda frozen, p: (frozen, p + frozen, frozen * 1.0), donate_argnums=(0, 1))
    frozen, p, want = np.ones(size), np.zeros(size), 0.0
    for n in range(5):
        before, want = address(frozen), want + 1.0
        frozen, p, again = f(frozen, p)
        assert (address(frozen) == before) is (n > 0)
        assert not np.shares_memory(frozen, again)
        for x, value in ((frozen, 1.0), (p, want), (again, 1.0)):
            np.testing.assert_array_equal(x, np.full(size, value))


def test_a_whole_tree_may_be_donated_and_each_array_serves_one_result():
    @functools.partial(fad.jit, donate_argnums=(0, 1))
    def step(params, moments, x):
        grads = fad.grad(lambda p: np.sum(np.tanh(x @ p["w"]) ** 2))(params)
        moments = {"w": 0.9 * moments["w"] + grads["w"]}
        return {"w": params["w"] - 0.1 * moments["w"]}, moments

    x = rng.normal(size=(20, 90))
    state = ({"w": rng.normal(size=(90, 90))}, {"w": np.zeros((90, 90))})
    want = ({"w": state[0]["w"].copy()}, {"w": state[1]["w"].copy()})
    for _ in range(4):
        want = step.fun(*want, x)
        state = step(*state, x)
        np.testing.assert_allclose(state[0]["w"], want[0]["w"], rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(state[1]["w"], want[1]["w"], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    "f",
    [
        lambda p, g: (p - g, p * 2.0),  # read by both results
        lambda p, g: p[::-1] - g,  # not place by place
        lambda p, g: np.sin(p * 1e6) + g,  # a loop that may run twice
        lambda p, g: (p - g) @ p,  # read after
        lambda p, g: p if np.sum(g) > 1e9 else p + g,  # a guard
        lambda p, g: (p, p + g),  # returned itself
    ],
)
def test_a_donated_array_is_not_written_before_it_was_read(f):
    given = fad.jit(f, donate_argnums=0)
    g = rng.normal(size=(90, 90))
    for _ in range(3):
        p = rng.normal(size=(90, 90))
        want = tree.leaves(f(p.copy(), g))
        for a, b in zip(tree.leaves(given(p, g)), want, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)


def test_a_donated_array_that_is_another_argument_too_is_left_alone():
    f = fad.jit(lambda p, g: (p + 1.0, g * 2.0), donate_argnums=0)
    for make in (lambda: np.ones((100, 100)),) * 3:
        f(make(), make())
        both = make()
        p, g = f(both, both)
        for x, value in ((p, 2.0), (g, 2.0), (both, 1.0)):
            assert (x == value).all()
        base = np.ones((101, 100))
        f(base[1:], base[:-1])
        assert (base == 1.0).all()


@pytest.mark.parametrize("check", ["sample", "full", "off"])
def test_a_donated_array_that_is_a_constant_too_is_left_alone(check):
    w = np.arange(10_000.0)
    f = fad.jit(lambda p: p * 2.0 + w[::-1] * p, donate_argnums=0)
    with fad.config.use(check_mutation=check):
        for _ in range(3):
            f(w.copy())
        assert "memory of donated arguments" in f.explain()
        want = f.fun(w)
        np.testing.assert_array_equal(f(w), want)
        np.testing.assert_array_equal(w, np.arange(10_000.0))


@pytest.mark.parametrize("when", ["recording", "compiling"])
def test_a_call_that_fails_before_anything_runs_gives_donated_arrays_back(when, monkeypatch):
    pressed = []

    def press():
        if not pressed:
            pressed.append(True)
            raise KeyboardInterrupt

    f = fad.jit(lambda p, g: (when == "recording" and press()) or descend(p, g), donate_argnums=0)
    p, g = np.ones((100, 80)), np.ones((100, 80))
    if when == "compiling":
        p = f(p, g)
        path = next(iter(f._signatures.values())).paths[0]
        compiled = type(path).compile
        monkeypatch.setattr(type(path), "compile", lambda self: press() or compiled(self))
    with pytest.raises(KeyboardInterrupt):
        f(p, g)
    want = p - 0.1
    np.testing.assert_array_equal(f(p, g), want)
    with pytest.raises(DonatedArrayError):
        f(p, g)


def test_no_jitted_function_takes_an_array_that_was_donated_to_another():
    step = fad.jit(descend, donate_argnums=0)
    plain, named = fad.jit(lambda x: np.sum(x)), fad.jit(lambda g, p: np.sum(p["w"]) + g)
    p, g = np.ones((100, 80)), np.ones((100, 80))
    for _ in range(3):
        plain(p)
        named(1.0, {"w": p})
    step(p, g)
    for f, args in ((plain, (p,)), (named, (1.0, {"w": p})), (step, (g, p))):
        with pytest.raises(DonatedArrayError, match=r"shape \(100, 80\)"):
            f(*args)


def test_an_array_that_is_gone_is_forgotten():
    x = np.ones(3)
    donate(x)
    number = id(x)
    assert number in DONATED
    del x
    assert number not in DONATED


def looked_up(p, g, at):
    return p - 0.1 * g, np.exp(np.sin(g) @ g.T)[at]


def inverted(p, g, a):
    return p - 0.1 * g, np.linalg.inv(a @ a)


def raised(p, g, n):
    return p - 0.1 * g, (n @ n) ** n


@pytest.mark.parametrize(
    ("f", "good", "bad"),
    [
        (looked_up, np.array([1, 2]), np.array([1, 999])),
        (fad.grad(lambda p, g, at: np.sum(p * g) + np.sum((p[at] @ g.T) ** 2)), np.array([1, 2]), np.array([1, 999])),
        (inverted, np.eye(3), np.zeros((3, 3))),
        (raised, np.eye(3, dtype=int), -np.eye(3, dtype=int)),
    ],
)
def test_a_program_that_refuses_its_values_leaves_donated_arguments_alone_and_gives_them_back(f, good, bad):
    fast = fad.jit(f, donate_argnums=0)
    p, g = rng.normal(size=(100, 80)), rng.normal(size=(100, 80))
    for _ in range(3):
        fast(p.copy(), g, good)
    before, want = p.copy(), tree.leaves(f(p, g, good))
    for _ in range(2):
        with pytest.raises((IndexError, np.linalg.LinAlgError, ValueError)):
            fast(p, g, bad)
        np.testing.assert_array_equal(p, before)
    for a, b in zip(tree.leaves(fast(p, g, good)), want, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)
    with pytest.raises(DonatedArrayError):
        fast(p, g, good)


def test_memory_is_taken_over_after_the_last_operation_that_may_refuse_its_values():
    def f(p, m, w, at):
        loss = lambda w: np.sum(np.tanh(p[at] @ w) ** 2)
        w = w - 0.1 * fad.grad(loss)(w)
        return p * 0.9, m * 0.9, w

    fast = fad.jit(f, donate_argnums=(0, 1, 2))
    state = tuple(rng.normal(size=(90, 90)) for _ in range(3))
    for _ in range(3):
        state = fast(*state, np.array([1, 2]))
    assert "3 results take over" in fast.explain()


def test_an_interrupted_program_that_took_memory_over_keeps_what_it_was_given(monkeypatch):
    fast = fad.jit(descend, donate_argnums=0)
    p, g = np.ones((100, 80)), np.ones((100, 80))
    for _ in range(2):
        p = fast(p, g)
    path = next(iter(fast._signatures.values())).paths[0]

    def stopped(xs, run=path.entry):
        run(xs)
        raise KeyboardInterrupt

    monkeypatch.setattr(path, "entry", stopped)
    with pytest.raises(KeyboardInterrupt):
        fast(p, g)
    with pytest.raises(DonatedArrayError):
        fast(p, g)
