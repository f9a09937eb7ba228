"""States that are texts or members of enumerations, in captured loops."""

import enum
import warnings

import numpy as np
import pytest
from agreement import report_of

import fad

N = 60
X = np.random.default_rng(0).normal(size=20) * 0.5


class P(enum.Enum):
    A = 1
    B = 2
    C = 3


class Number(enum.IntEnum):
    A = 1
    B = 2


class Text(enum.StrEnum):
    A = "a"
    B = "b"


def a_state_that_is_read_behind(x):
    state = "up"
    s = x[0]
    for _i in range(N):
        if state == "up":
            s = s + 0.1
            if s > 1.0:
                state = "down"
        elif s < -1.0:
            state = "up"
        else:
            s = s - 0.07
    return s * (2.0 if state == "up" else 3.0)


def a_state_that_is_a_key_behind(x):
    state = "up"
    s = x[0]
    for _i in range(N):
        s = s + 0.1 * abs(x[1])
        if s > 1.0:
            state = "high"
    return {"up": 1.0, "high": 2.0}[state] * s


def a_match(x):
    mode = "a"
    s = x[0]
    for _i in range(N):
        match mode:
            case "a":
                s = s + 0.1
                mode = "b"
            case "b" | "c":
                s = s - 0.05
                mode = "a" if s < 0.5 else "c"
            case _:
                s = 0.0
    return s


def tables_of_rates_and_of_states(x):
    RATE = {"a": 0.1, "b": -0.2, "c": 0.3}
    NEXT = {"a": "b", "b": "c", "c": "a"}
    m = "a"
    s = x[0]
    for i in range(N):
        s = 0.9 * s + RATE[m] * x[1]
        if s > 0.0 or i % 3 == 0:
            m = NEXT[m]
    return s


def an_attribute(x):
    class M:
        def __init__(self, x):
            self.phase, self.v = P.A, x

        def step(self, h):
            if self.phase is P.A:
                self.v = self.v + h
                if self.v > 1.0:
                    self.phase = P.B
            elif self.phase is P.B:
                self.v = self.v * 0.5
                self.phase = P.C
            elif self.phase in (P.C,):
                self.v = self.v - h
                if self.v < 0:
                    self.phase = P.A

    m = M(x[0])
    for _i in range(N):
        m.step(0.1 + 0.01 * x[1] ** 2)
    return m.v * (1 + (m.phase is P.A))


def a_missing_key(x):
    T = {"a": 1.0}
    m = "a"
    s = x[0]
    for _i in range(N):
        s = s + T[m] * 0.1
        if s > 3.0:
            m = "b"
    return s


def one_of_several(x):
    m = "a"
    s = x[0]
    for _i in range(N):
        if m in ("a", "b"):
            s = s + 0.1
        if m not in {"a", "c"}:
            s = s * 0.9
        m = "b" if s > 0.5 else ("a" if s > 0.2 else "c")
    return s


def a_key_to_write_by(x):
    m = "a"
    s = x[0]
    d = {}
    for _i in range(N):
        s = s + 0.1
        if s > 1.0:
            m = "b"
        d[m] = s
    return d["a"] + d["b"]


def arithmetic(x):
    m = Number.A
    s = x[0]
    for _i in range(N):
        s = s + 0.1 * m
        m = Number.B if s > 1.0 else Number.A
    return s


def a_member_beside_an_integer(x):
    m = Number.A
    s = x[0]
    for _i in range(N):
        s = s + (0.1 if m == 1 else -0.2)
        m = Number.B if s > 1.0 else Number.A
    return s


def a_member_beside_a_text(x):
    m = Text.A
    s = x[0]
    for _i in range(N):
        s = s + (0.1 if m == "a" else -0.2)
        m = Text.B if s > 1.0 else Text.A
    return s


def a_while_loop(x):
    m = "go"
    s = x[0]
    i = 0
    while m != "stop":
        s = s + 0.1
        i += 1
        if s > 2.0:
            m = "stop"
        elif s > 1.0:
            m = "slow"
        if m == "slow":
            s = s - 0.05
        if i > 500:
            break
    return s * i


def a_nest(x):
    m = "a"
    s = x[0]
    for _i in range(12):
        for _j in range(5):
            if m == "a" and s > 0.5:
                m = "b"
            elif m == "b" and s < 0:
                m = "a"
            s = s + (0.1 if m == "a" else -0.15)
        if m == "b":
            s = s * 0.9
    return s


def none_or_a_text(x):
    m = None
    s = x[0]
    for _i in range(N):
        s = s + 0.1
        if m is None and s > 1.0:
            m = "hit"
    return s * (1 if m is None else 2)


def two_of_them(x):
    a, b = "x", "y"
    s = x[0]
    for i in range(N):
        s = 0.9 * s + (0.1 if a == b else -0.1) + 0.1 * x[i % 20]
        a, b = (b, a) if s > 0 else ("x", "x")
    return s


def an_append(x):
    m = "a"
    s = x[0]
    seen = []
    for i in range(20):
        s = 0.9 * s + 0.3 * x[i % 20]
        m = "p" if s > 0 else "n"
        seen.append(m)
    return s * seen.count("p")


def whether_it_is_empty(x):
    m = ""
    s = x[0]
    for _i in range(N):
        s = s + 0.1
        if s > 1.0:
            m = "x"
        if m:
            s = s * 0.99
    return s


def no_step(x):
    m = "a"
    s = x[0]
    for _i in range(int(x[1] * 0 + 0)):
        m = "b"
    return s * (1 if m == "a" else 2)


def a_return(x):
    m = "a"
    s = x[0]
    for _i in range(N):
        s = s + 0.1
        if m == "b":
            return s * 2
        if s > 1.0:
            m = "b"
    return s


def a_tuple(x):
    st = ("a", x[0])
    for _i in range(N):
        k, s = st
        st = ("b" if s > 1.0 else "a", s + (0.1 if k == "a" else -0.3))
    return st[1]


def what_kind_it_is(x):
    m = "a"
    s = x[0]
    for i in range(N):
        s = s + (0.1 if isinstance(m, str) and not isinstance(m, P) else 5.0)
        m = "b" if s > 1.0 + 0.1 * (i % 3) else "a"
        if m == "b":
            s = s * 0.7
    return s


def a_function_that_returns_one(x):
    def advance(m, s):
        if m == "a":
            return ("b", s + 0.1)
        return ("a", s - 0.05)

    m, s = "a", x[0]
    for _i in range(N):
        m, s = advance(m, s)
    return s


def a_comprehension(x):
    m = "a"
    tot = 0.0
    for _i in range(N):
        tot = tot + sum(v if m == "a" else -v for v in x[:4])
        if tot > 1.0:
            m = "b"
        if tot < -1.0:
            m = "a"
    return tot


CAPTURED = [
    a_state_that_is_read_behind,
    a_state_that_is_a_key_behind,
    a_match,
    tables_of_rates_and_of_states,
    an_attribute,
    one_of_several,
    a_while_loop,
    a_nest,
    two_of_them,
    a_return,
    a_tuple,
    a_function_that_returns_one,
    what_kind_it_is,
    a_comprehension,
]
LEFT = [
    a_missing_key,
    a_key_to_write_by,
    arithmetic,
    a_member_beside_an_integer,
    a_member_beside_a_text,
    none_or_a_text,
    an_append,
    whether_it_is_empty,
    no_step,
]


def result(f, x):
    """Return what a call gives, or the type of the error that it raises."""
    try:
        return f(x)
    except KeyError as error:
        return type(error)


def check(got, wanted, rtol):
    if isinstance(wanted, type):
        assert got is wanted
    else:
        assert np.asarray(got).dtype == np.asarray(wanted).dtype
        np.testing.assert_allclose(got, wanted, rtol=rtol, atol=1e-10)


@pytest.mark.parametrize("f", [*CAPTURED, *LEFT], ids=lambda f: f.__name__)
def test_a_loop_with_labels_gives_what_python_gives(f):
    slope = fad.grad(f)
    curve = fad.grad(lambda x: np.sum(slope(x) * np.cos(x)))
    batch = np.stack([X, X * 1.1, -X])
    with fad.config.use(loops="capture"), warnings.catch_warnings():
        warnings.simplefilter("ignore", fad.errors.LoopFallbackWarning)
        fast, steep = fad.jit(f), fad.jit(slope)
        for x in (X, X, X * 1.1, -X, X):
            check(result(fast, x), result(f, x), 1e-10)
            check(result(steep, x), result(slope, x), 1e-8)
        check(result(fad.jit(fad.vmap(slope)), batch), result(fad.vmap(slope), batch), 1e-8)
        check(result(fad.jit(curve), X), result(curve, X), 1e-7)


@pytest.mark.parametrize("f", CAPTURED, ids=lambda f: f.__name__)
def test_a_loop_whose_labels_are_compared_is_captured(f):
    report, text = report_of(f, X)
    assert set(report) <= {"captured", "inside"}, text


def test_a_state_that_ends_otherwise_is_another_path():
    fast = fad.jit(a_state_that_is_a_key_behind)
    with fad.config.use(loops="capture"):
        for x in (X, X + 1.0, X, X + 1.0):
            np.testing.assert_allclose(fast(x), a_state_that_is_a_key_behind(x))
    assert fast.cache_info().paths == 2
