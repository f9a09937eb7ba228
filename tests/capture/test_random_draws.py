"""Loops that draw random numbers: each step draws its own, and a transform draws no more than the function does."""

import functools
import operator
import random
import warnings

import numpy as np
import pytest

import fad

MODULES = np.random.default_rng(7)
METHODS = {
    "normal": lambda r: r.normal(),
    "uniform": lambda r: r.uniform(),
    "integers": lambda r: r.integers(10),
    "choice": lambda r: r.choice(5),
    "permutation": lambda r: r.permutation(5)[0],
    "spawn": lambda r: r.spawn(1)[0].normal(),
    "raw": lambda r: r.bit_generator.random_raw() / 2.0**64,
    "a class's function": lambda r: np.random.Generator.normal(r),
    "methodcaller": lambda r: operator.methodcaller("normal")(r),
    "partial": lambda r: functools.partial(r.normal, 0.0, 1.0)(),
    "key": lambda r: sorted(range(4), key=lambda _: r.random())[0],
    "max": lambda r: max(range(4), key=lambda _: r.random()),
    "comprehension": lambda r: sum([r.normal() for _ in range(2)]),
}


def walk(x, draw, steps=60):
    seen = np.zeros(steps)
    for t in range(steps):
        x = 0.9 * x + draw()
        seen[t] = x
    return np.sum(seen * np.arange(1.0, steps + 1.0))


def shuffled(shuffle):
    p = np.arange(6.0)
    shuffle(p)
    return p[0]


def agrees(f, *, settle=lambda: None):
    """Check the value and the slope of a function of a number under every transform."""

    def fresh(g, *args):
        settle()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", fad.errors.ImpureFunctionWarning)
            warnings.simplefilter("ignore", fad.errors.LoopFallbackWarning)
            return g(*args)

    value = fresh(f, 0.5)
    slope = fresh(f, 1.5) - value
    for loops in ("auto", "capture", "record"):
        with fad.config.use(loops=loops):
            np.testing.assert_allclose(fresh(fad.jit(f), 0.5), value, rtol=1e-12)
            np.testing.assert_allclose(fresh(fad.jit(fad.value_and_grad(f)), 0.5), (value, slope), rtol=1e-9)
            np.testing.assert_allclose(fresh(fad.jit(fad.vmap(f)), np.array([0.5, 1.5]))[0], value, rtol=1e-12)
    np.testing.assert_allclose(fresh(fad.value_and_grad(f), 0.5), (value, slope), rtol=1e-9)


@pytest.mark.parametrize("name", METHODS)
def test_each_step_of_a_loop_draws_from_a_generator(name):
    def f(x):
        r = np.random.default_rng(0)
        return walk(x, lambda: METHODS[name](r))

    agrees(f)


@pytest.mark.parametrize("name", ["default_rng", "RandomState"])
def test_each_step_of_a_loop_shuffles(name):
    def f(x):
        r = np.random.default_rng(3) if name == "default_rng" else np.random.RandomState(3)
        return walk(x, functools.partial(shuffled, r.shuffle))

    agrees(f)


def test_each_step_of_a_loop_shuffles_by_numpys_global_state():
    agrees(lambda x: walk(x, lambda: shuffled(np.random.shuffle)), settle=lambda: np.random.seed(3))


def test_each_step_draws_by_a_bound_method_in_a_while_loop():
    def f(x):
        draw, seen, t = np.random.default_rng(0).normal, np.zeros(60), 0
        while t < 60:
            x = 0.9 * x + draw()
            seen[t] = x
            t += 1
        return np.sum(seen)

    agrees(f)


def test_each_step_draws_from_a_generator_of_the_module():
    state = MODULES.bit_generator.state
    agrees(lambda x: walk(x, MODULES.normal), settle=lambda: setattr(MODULES.bit_generator, "state", state))


def test_each_step_draws_from_a_generator_in_a_closure():
    r = np.random.default_rng(3)
    state = r.bit_generator.state
    agrees(lambda x: walk(x, lambda: r.normal()), settle=lambda: setattr(r.bit_generator, "state", state))


class Noise:
    def __init__(self):
        self.r = np.random.default_rng(2)

    @property
    def value(self):
        return self.r.normal()

    def __getitem__(self, i):
        return self.r.normal()


def test_each_step_draws_by_an_objects_attribute_and_by_its_item():
    def f(x):
        noise = Noise()
        return walk(x, lambda: noise.value + noise[0])

    agrees(f)


OUT_OF_SIGHT = {
    "a property": lambda p: p.value,
    "an item": lambda p: p[0],
    "the key of a sort": lambda p: sorted(range(4), key=lambda _: p.r.random())[0],
    "the key of a maximum": lambda p: max(range(4), key=lambda _: p.r.random()),
    "operator.call": lambda p: operator.call(p.r.normal) if hasattr(operator, "call") else p.r.normal(),
    "Python's generator": lambda p: max(range(4), key=lambda _: random.random()),
}


@pytest.mark.parametrize("name", OUT_OF_SIGHT)
def test_each_step_draws_where_no_call_shows_it(name):
    noise = Noise()
    state = noise.r.bit_generator.state

    def settle():
        noise.r.bit_generator.state = state
        random.seed(0)

    agrees(lambda x: walk(x, lambda: OUT_OF_SIGHT[name](noise)), settle=settle)


def filter_particles(x):
    """Return the log-likelihood of a particle filter of four steps."""
    r = np.random.default_rng(1)
    seen, p, total = np.zeros((4, 30)), x + r.normal(size=30), 0.0
    for t in range(4):
        p = 0.9 * p + 0.1 * r.normal(size=30)
        w = np.exp(-0.5 * (p - 0.3 * t) ** 2)
        total = total + np.log(np.sum(w))
        seen[t] = p
        p = p[r.choice(30, size=30, p=np.full(30, 1 / 30))]
        for k in range(30):
            p[k] = p[k] + 0.01 * r.normal()
    return total + 0 * np.sum(seen)


def test_a_loop_that_is_not_captured_has_drawn_nothing_in_the_attempt():
    wanted = filter_particles(0.5)
    for f in (fad.jit(filter_particles), lambda x: fad.jit(fad.value_and_grad(filter_particles))(x)[0]):
        np.testing.assert_allclose(f(0.5), wanted, rtol=1e-12)
    after = np.random.default_rng(1)

    def last(x, r):
        walk(x, r.normal, 4)
        return x * r.normal()

    wanted = last(1.0, np.random.default_rng(1))
    with pytest.warns(fad.errors.ImpureFunctionWarning):
        assert fad.jit(lambda x: last(x, after))(1.0) == wanted


def metropolis(x):
    r, y, accepted, seen = np.random.default_rng(0), x, 0, []
    for _ in range(500):
        p = y + 0.1 * r.normal()
        if np.exp(y * y - p * p) > r.uniform():
            y, accepted = p, accepted + 1
            seen.append(y)
    return y * accepted + sum(seen) + r.normal()


def noise_that_is_changed(x):
    r, u, s = np.random.default_rng(0), np.ones(4) * x, 0.0
    for _ in range(500):
        z = r.normal(0.0, 0.1, size=4)
        z *= 2.0
        z[0] += x
        u = 0.9 * u + z
        s = s + np.sum(u) * r.choice([1.0, 2.0, 3.0])
    return s + r.normal()


def older_generators_and_whole_numbers(x):
    r, a, y = np.random.RandomState(1), np.arange(7.0) * x, 0.0
    for _ in range(500):
        y = 0.9 * y + a[r.randint(7)] + 0.1 * r.randn() + r.randint(3) / 2
    return y + r.rand()


@pytest.mark.parametrize("f", [metropolis, noise_that_is_changed, older_generators_and_whole_numbers])
def test_a_loop_whose_steps_all_draw_alike_is_captured(f):
    compiled = fad.jit(fad.value_and_grad(f))
    for x in (0.4, 0.9):
        np.testing.assert_allclose(compiled(x), (f(x), fad.grad(f)(x)), rtol=1e-9)
    assert "captured: 500 steps" in compiled.explain()
    batch = np.array([0.4, 0.4])
    np.testing.assert_allclose(fad.jit(fad.vmap(f))(batch), [f(0.4)] * 2, rtol=1e-12)


def test_what_a_step_draws_has_numpys_type():
    def f(x):
        r, old = np.random.default_rng(0), np.random.RandomState(0)
        for _ in range(500):
            found = r.normal(), r.integers(5), r.choice([1.0, 2.0]), old.randint(5), old.rand(2)
            x = x * 0.9 + found[0]
        return x, found

    for a, b in zip(fad.jit(f)(0.3)[1], f(0.3)[1], strict=True):
        assert type(a) is type(b)
        np.testing.assert_array_equal(a, b)


def test_steps_may_draw_texts_and_arrays_without_axes():
    def f(x):
        r, s = np.random.default_rng(0), 0
        for _ in range(500):
            x, s = 0.9 * x + r.normal(size=())[()], s + (r.choice(["heads", "tails"]) == "heads")
        return x, s

    assert fad.jit(f)(0.3) == f(0.3)


@pytest.mark.parametrize("fill", [lambda r, z: r.random(out=z), lambda r, z: r.random(None, "d", z)])
def test_steps_may_fill_an_array_from_outside(fill):
    given = np.zeros(3)

    def f(x):
        r = np.random.default_rng(0)
        for _ in range(500):
            fill(r, given)
            x = x * 0.9 + given[0]
        return x

    wanted = f(0.3)
    given[:] = 0.0
    assert fad.jit(f)(0.3) == wanted


def test_a_function_that_is_recorded_again_draws_what_it_drew():
    r = np.random.default_rng(5)
    state = r.bit_generator.state

    def f(x):
        u = best = np.ones(3) * x
        for _ in range(500):
            u = u * 0.9 + 0.1 * r.normal()
            if u[0] > 0.3:
                best = u
        best[0] = 5.0  # the array may be u's
        return np.sum(best) + np.sum(u) + r.normal()

    wanted, after = f(0.3), r.bit_generator.state
    r.bit_generator.state = state
    with pytest.warns(fad.errors.ImpureFunctionWarning):
        assert fad.jit(f)(0.3) == wanted
    assert r.bit_generator.state == after
