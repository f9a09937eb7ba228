"""A loop whose steps may raise is captured, and raises the user's error, at the user's line, with real values."""

import functools
import traceback

import numpy as np
import pytest

import fad
from tests.capture.agreement import agree, report_of

R = np.random.default_rng(0)
FULL = R.random(40) * 0.6


def raises_where_it_diverges(x):
    s = 0.0
    for i in range(len(x)):
        s = s + x[i] * x[i]
        if s > 50:
            raise ArithmeticError(f"over at {i} with {s:.3f}")
    return s


def gives_up_after_some_iterations(x):
    s = 0.0
    for v in x:
        y, k = 1.1 + v, 0
        while abs(y * y * y - v) > 1e-10:
            y = y - (y * y * y - v) / (3 * y * y)
            k += 1
            if k > 12:
                raise RuntimeError("no convergence")
        s = s + y
    return s


def asserts_in_every_step(x):
    y = x * 1.0
    for i in range(1, len(x)):
        assert y[i - 1] < 10, "too large"
        y[i] = y[i] + y[i - 1] * 0.5
    return y @ y


def leaves_in_every_way(x):
    s = 0.0
    for i in range(len(x)):
        if x[i] < 0:
            raise ValueError(float(x[i])) from KeyError("k")
        elif x[i] > 0.9:
            continue
        elif x[i] > 0.8:
            break
        elif x[i] > 0.7:
            return s * 2
        s = s + x[i] ** 2
    else:
        s = s + 1
    return s


def raises_a_class_in_an_else(x):
    s, y = 0.0, 0.0
    for v in x:
        if v < 0.3:
            y = v * 2
        elif v < 2:
            y = v * v
        else:
            raise OverflowError
        s = s + np.sin(y)
    return s


def raises_behind_writes(x):
    y = np.zeros(len(x))
    while True:
        y += x
        if abs(y[0]) > 100:
            break
        if np.max(y) > 200:
            raise ValueError(y[3])
    return np.sum(y * y)


def checked(v):
    if v < 0:
        raise ValueError(f"{v:.2f} is negative")
    return v * v


def check_size(v):
    assert abs(v) < 5, "too large"


def cube_root(v):
    y = 1.0 + v
    for _ in range(12):
        d = (y * y * y - v) / (3 * y * y)
        y = y - d
        if abs(d) < 1e-10:
            return y
    raise RuntimeError("no convergence")


def twice_checked(v):
    check_size(v)
    w = checked(v) if v < 0.5 else 0.5 * v
    return w + 0.1 if v > 0.2 and checked(v) > 0.1 else w


def calls_what_raises(x):
    s = 0.0
    for v in x:
        s = s + checked(v)
    return s


def calls_what_raises_in_some_steps(x):
    s = 0.0
    for v in x:
        if s < 3.0:
            check_size(v)
        elif s < 4.0:
            s = s - 0.1 * twice_checked(v)
        s = s + twice_checked(v)
    return s


def solves_in_a_function(x):
    s = 0.0
    for i, v in enumerate(x):
        s = s + cube_root(v) / (i + 1)
    return s


def runs_over_what_a_function_would_have_given(x):
    s, k = 0.0, 0
    while k < len(x):
        width, t = checked(x[k]) + 0.1 * x[k], 0.0
        while t < 1.0:  # in a step that has raised there is no width
            t = t + width
            s = s + t * x[k]
            check_size(0.1 * t)
        k += 1
    return s


def appends_what_a_function_gives(x):
    ys = [checked(x[0])]
    for v in x:
        ys.append(0.5 * ys[-1] + checked(v))
    return np.sum(np.array(ys) ** 2)


def goes_on_behind_the_loop(x):
    y = x * 1.0
    for i in range(len(x)):
        y[i] = checked(x[i]) + (y[i - 1] if i else 0.0)
        if y[i] > 30:
            return np.sum(y)
    return y @ y


RAISING = [
    raises_where_it_diverges, gives_up_after_some_iterations, asserts_in_every_step, leaves_in_every_way,
    raises_a_class_in_an_else, raises_behind_writes, calls_what_raises, calls_what_raises_in_some_steps,
    solves_in_a_function, runs_over_what_a_function_would_have_given, appends_what_a_function_gives,
    goes_on_behind_the_loop,
]  # fmt: skip


def outcome_of(f, x):
    """Return what a call gives, or its error with the text of the line that raised it."""
    try:
        return f(x)
    except Exception as error:
        cause = error.__cause__ and (type(error.__cause__), str(error.__cause__))
        message = str(error).partition("\n")[0]  # pytest adds lines to that of an assert
        return type(error), message, cause, traceback.extract_tb(error.__traceback__)[-1].line


def one_at(k, value):
    x = FULL + 0.1
    x[k] = value
    return x


CALLS = [
    FULL, FULL[::-1] + 0.05, one_at(7, -1.0), one_at(0, 3.0), FULL, one_at(20, 25.0), one_at(3, 0.95),
    one_at(30, 0.75), one_at(12, 0.85), one_at(39, -2.0), FULL + 9.0, FULL, -FULL,
]  # fmt: skip


@functools.cache
def plain_outcomes(f, transform):
    with np.errstate(all="ignore"):
        return [outcome_of(transform(f), x.copy()) for x in CALLS]


def plain(f):
    return f


def curve(f):
    return fad.grad(lambda x: fad.grad(f)(x)[1])


@pytest.mark.parametrize("f", RAISING, ids=lambda f: f.__name__)
def test_loops_that_may_raise_are_captured(f):
    what, text = report_of(f, FULL + 0.1)
    assert set(what) == {"captured"}, text
    agree(f, FULL + 0.1)


# In second order every other program.
WAYS = [(plain, "auto", 0), (plain, "capture", 5), (fad.grad, "auto", 5), (fad.grad, "capture", 2), (curve, "auto", 2)]
CASES = [(f, *way) for k, f in enumerate(RAISING) for way in WAYS[: 5 - k % 2]]


@pytest.mark.parametrize(
    ("f", "transform", "loops", "start"), CASES, ids=lambda v: getattr(v, "__name__", str(v))
)
def test_errors_are_those_of_the_plain_program_whichever_call_is_first(f, transform, loops, start):
    fast, outcomes = fad.jit(transform(f)), plain_outcomes(f, transform)
    for k in (*range(start, len(CALLS)), *range(start)):
        given, wanted = CALLS[k].copy(), outcomes[k]
        with np.errstate(all="ignore"), fad.config.use(loops=loops):
            found = outcome_of(fast, given)
        if type(wanted) is tuple:
            assert found == wanted
        else:
            np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-12)
        np.testing.assert_array_equal(given, CALLS[k])


def test_what_is_written_before_an_error_is_written():
    def f(x, out):
        for i in range(len(x)):
            if x[i] < 0:
                raise ValueError(i)
            out[i] = x[i] * 2
        return np.sum(out)

    fast = fad.jit(lambda x: f(x, out))
    plain, out = np.zeros(40), np.zeros(40)
    for x in (FULL, one_at(7, -1.0), FULL, one_at(3, -1.0)):
        plain[:], out[:] = 0, 0
        wanted, found = outcome_of(lambda x: f(x, plain), x), outcome_of(fast, x)
        assert found == wanted
        np.testing.assert_array_equal(out, plain)


def test_one_element_of_a_batch_that_raises_is_enough():
    fast, steep = fad.jit(fad.vmap(asserts_in_every_step)), fad.jit(fad.vmap(fad.grad(asserts_in_every_step)))
    good, bad = np.stack([FULL, FULL * 0.5]), np.stack([FULL, FULL + 9.0])
    for g, single in ((fast, asserts_in_every_step), (steep, fad.grad(asserts_in_every_step))):
        for _ in range(2):
            np.testing.assert_allclose(g(good), [single(x) for x in good], rtol=1e-12)
            with pytest.raises(AssertionError, match="too large"):
                g(bad)


def test_an_error_that_the_function_catches_is_caught():
    def f(x):
        try:
            return raises_where_it_diverges(x)
        except ArithmeticError:
            return np.sum(x) * 1000.0

    fast, steep = fad.jit(f), fad.jit(fad.grad(f))
    for x in (FULL, FULL + 9.0, FULL, FULL + 8.0):
        np.testing.assert_allclose(fast(x), f(x), rtol=1e-12)
        np.testing.assert_allclose(steep(x), fad.grad(f)(x), rtol=1e-12)


def test_a_check_that_no_value_decides_leaves_a_loop_of_so_many_steps():
    def f(x, mode="square"):
        y = np.zeros(len(x))
        for i in range(len(x)):
            if mode == "square":
                y[i] = x[i] ** 2
            else:
                raise ValueError(mode)
            assert len(x) > 3
        return np.sum(y)

    assert report_of(f, FULL)[0] == ["captured"]
    prims = {eq.prim.name for eq in fad.make_graph(f)(FULL).equations}
    assert "while_loop" not in prims
    agree(f, FULL)


def test_a_condition_that_calls_what_raises_is_left_to_python():
    def f(x):
        s, k = 0.1, 0
        while k < len(x) and checked(x[k]) < 4.0:
            s = s + x[k]
            k += 1
        return s

    assert "its condition calls a function that may raise an error" in report_of(f, FULL)[1]
    fast = fad.jit(f)
    for x in (FULL, one_at(3, -1.0), FULL):
        assert outcome_of(fast, x) == pytest.approx(f(x)) if x is FULL else outcome_of(fast, x) == outcome_of(f, x)


def raise_it(v):
    raise ValueError(v)


def test_a_function_that_does_nothing_but_raise_is_left_to_python():
    def f(x):
        s = 0.0
        for v in x:
            if v < 0:
                raise_it(float(v))
            s = s + v * v
        return s

    assert "it calls a function that raises an error" in report_of(f, FULL)[1]
    fast = fad.jit(f)
    for x in (FULL, one_at(3, -1.0), FULL):
        assert outcome_of(fast, x) == pytest.approx(f(x)) if x is FULL else outcome_of(fast, x) == outcome_of(f, x)


def limited(v):
    if v > 0.5:
        return 0.5 * v


def found_in(v):
    for k in range(4):
        if v > 0.2 * k + 0.3:
            return 0.1 * k * v


@pytest.mark.parametrize("of", [limited, found_in])
def test_a_function_that_returns_a_value_in_some_steps_alone_returns_none_in_the_others(of):
    def f(x):
        s, t = 0.1, 0.0
        for v in x:
            r = of(v)
            s = s + v * v if r is None else 0.7 * s + r
            t = t + s
        return t

    agree(f, FULL)
