"""Operations that raise for some values: jitted calls raise, and catch, where plain ones do."""

import math

import numpy as np
import pytest

import fad
from fad import control
from fad.compile.pipeline import optimise
from fad.compile.targets.select import has_llvm, using

LOWERINGS = ["numpy", *(["llvm"] if has_llvm() else [])]
I, Z, X, AT = np.eye(2), np.zeros((2, 2)), np.arange(4.0), np.array([1, 2])
STACK, WITH_ZERO, ZERO_FIRST = np.stack([I, 2 * I, 3 * I]), np.stack([I, Z, 3 * I]), np.stack([Z, I, 3 * I])


@pytest.fixture(autouse=True, params=LOWERINGS)
def lowering(request):
    with using(request.param):
        yield request.param


def outcome(f, args):
    try:
        return f(*args)
    except (ValueError, ArithmeticError, IndexError) as error:
        return type(error), str(error)


def factor_unread(a):
    np.linalg.cholesky(a)
    return np.sum(a)


def is_definite(a):
    try:
        np.linalg.cholesky(a)
    except np.linalg.LinAlgError:
        return 0.0 * np.sum(a)
    return np.sum(a)


def or_sum(a):
    try:
        return np.sum(np.linalg.inv(a))
    except np.linalg.LinAlgError:
        return 100 * np.sum(a) + 7.0


def element_unread(x, at):
    x[at]
    return np.sum(x)


def is_inside(x, at):
    try:
        np.take_along_axis(x, at, 0)
    except IndexError:
        return x * 0
    return x * 2


def power_unread(n, k):
    n**k
    return n


def quotient_unread(a, b):
    try:
        a / b
    except ZeroDivisionError:
        return 0.0
    return 1.0


def whole(x):
    try:
        return np.ones(2) * int(x)
    except ValueError:
        return np.zeros(2)


def caught_in_steps(xs):
    def body(c, a):
        try:
            y = np.sum(np.linalg.inv(a))
        except np.linalg.LinAlgError:
            y = np.sum(a) - 5.0
        return c + y, y

    return control.scan(body, 0.0, xs)[1]


def unread_in_steps(xs):
    def body(c, a):
        np.linalg.inv(a)
        return c + a[0, 0], a[0]

    return control.scan(body, 0.0, xs)[1]


def inverted_if_large(a):
    return control.cond(np.trace(a) > 1, np.linalg.inv, lambda a: a * 2, a)


def looked_up_if_inside(x, i):
    return control.cond(i < len(x), lambda x: x[i], lambda x: x[0] * 0 - 1.0, x)


def inverted_n_times(a, n):
    return control.fori_loop(0, n, lambda i, s: np.linalg.inv(s), a)


def product_unread(a, n):
    a * n
    return a


NAN, SOME_NAN, ROWS = np.full(4, np.nan), np.array([[np.nan, 1.0], [2.0, 3.0]]), np.array([[1.0, 1.0], [np.nan, 3.0]])
ALL_NAN = np.array([[np.nan, np.nan], [2.0, 3.0]])
BYTES, SHORT = np.array([2, 3], np.uint8), np.array([2, 3], np.int32)


@pytest.mark.parametrize(
    ("f", "calls"),
    [
        (np.nanargmax, [(X,), (NAN,)]),
        (np.nanargmin, [(X,), (NAN,)]),
        (lambda a: np.nanargmax(a, axis=1), [(ROWS,), (ALL_NAN,), (SOME_NAN,)]),
        (fad.vmap(lambda a: np.nanargmin(a)), [(ROWS,), (ALL_NAN,), (SOME_NAN,)]),
        (lambda a: (np.nanargmax(a), a)[1], [(X,), (NAN,)]),
        (fad.grad(lambda a: a[np.nanargmax(a)]), [(X,), (NAN,)]),
        (lambda a, w: np.average(a, weights=w), [(X, X), (X, 0 * X)]),
        (lambda n, k: n**k, [(AT, AT), (AT, -AT), (AT.astype("i4"), -AT.astype("i4"))]),
        (lambda k: 2**k, [(AT,), (-AT,)]),
        (lambda k: np.power(np.int64(2), k), [(np.int64(3),), (np.int64(-3),)]),
        (lambda a, n: a * n, [(BYTES, 1), (BYTES, -1), (BYTES, 300)]),
        (lambda a, n: n + a, [(SHORT, 1), (SHORT, 2**40), (SHORT, -(2**31)), (SHORT, 2**31)]),
        (lambda a, n: a * (n - 2), [(SHORT, 3), (SHORT, 2**35)]),
        (lambda a, n: np.where(a > 2, a, n), [(SHORT, 1), (SHORT, 2**40)]),
        (lambda a, n: a < n, [(SHORT, 1), (SHORT, 2**40), (BYTES, -1)]),
        (product_unread, [(BYTES, 1), (BYTES, -1), (SHORT, 1), (SHORT, 2**40)]),
        (factor_unread, [(I,), (-I,)]),
        (is_definite, [(I,), (-I,)]),
        (fad.grad(is_definite), [(I,), (-I,)]),
        (or_sum, [(I,), (Z,)]),
        (fad.grad(or_sum), [(I,), (Z,)]),
        (element_unread, [(X, AT), (X, AT + 9)]),
        (fad.grad(element_unread), [(X, AT), (X, AT + 9)]),
        (is_inside, [(X, AT), (X, AT + 9)]),
        (power_unread, [(AT, AT), (AT, -AT)]),
        (quotient_unread, [(1.0, 2.0), (1.0, 0.0)]),
        (whole, [(np.float64(2.0),), (np.float64(np.nan),)]),
        (caught_in_steps, [(STACK,), (WITH_ZERO,), (ZERO_FIRST,)]),
        (fad.jacobian(caught_in_steps), [(STACK,), (WITH_ZERO,), (ZERO_FIRST,)]),
        (unread_in_steps, [(STACK,), (WITH_ZERO,), (ZERO_FIRST,)]),
        (inverted_if_large, [(I,), (Z,)]),
        (fad.jacobian(inverted_if_large), [(I,), (Z,)]),
        (looked_up_if_inside, [(X, 1), (X, 9)]),
        (fad.grad(looked_up_if_inside), [(X, 1), (X, 9)]),
        (inverted_n_times, [(I, 2), (Z, 0), (Z, 1)]),
    ],
)
def test_whichever_call_comes_first_later_ones_raise_or_not_as_plain_ones_do(f, calls):
    for turn in range(len(calls)):
        fast = fad.jit(f)
        for args in [*calls[turn:], *calls[:turn]] * 2:
            for _ in range(2):
                want, found = outcome(f, args), outcome(fast, args)
                assert type(want) is type(found)
                if type(want) is tuple:
                    assert want == found
                else:
                    np.testing.assert_allclose(found, want, rtol=1e-12)


def names(f, *args):
    return [eq.prim.name for eq in optimise(fad.make_graph(f)(*args)).equations]


def test_an_unread_operation_is_dropped_where_another_one_raises_for_the_same_values():
    weight = np.array([2.0, 3.0])
    assert names(fad.grad(lambda x, at: np.sum(x[at] * weight)), X, AT).count("getitem") == 0
    found = names(fad.grad(lambda b, a: np.sum(np.linalg.solve(a, b))), X[:2], I)
    assert (found.count("lu_factor"), found.count("lu_solve")) == (1, 1)


def test_an_unread_order_or_element_at_a_constant_place_is_dropped():
    assert "getitem" not in names(fad.grad(lambda x: np.sum(x[np.array([1, 2])])), X)
    assert "getitem" not in names(lambda x: (np.take_along_axis(x, np.argsort(x), 0), np.sum(x))[1], X)


def test_a_recording_in_which_an_operation_raised_raises_its_error():
    with pytest.raises(np.linalg.LinAlgError, match="Singular"):
        fad.make_graph(np.linalg.inv)(Z)


# --- answers that depend on the last bit --------------------------------------------------------------------------


def test_zeros_of_different_signs_are_different_answers():
    fast = fad.jit(lambda x: x * 0.0 + math.copysign(2.0, float(x)))
    assert [float(fast(np.float64(x))) for x in (0.0, 0.0, -0.0, -0.0, 0.0)] == [2.0, 2.0, -2.0, -2.0, 2.0]


def rounded(x):
    return np.sum(np.exp(np.sin(x)) * x / 3.0)


def test_a_number_that_native_code_rounds_otherwise_makes_no_function_impure():
    f = lambda x: x * float(rounded(x))
    fast, rng = fad.jit(f), np.random.default_rng(0)
    for _ in range(8):
        x = rng.normal(size=1000)
        np.testing.assert_allclose(fast(x), f(x), rtol=1e-12)


def test_a_decision_that_native_code_rounds_otherwise_makes_no_function_impure_and_no_path_twice():
    f = lambda x, bound: x * 2.0 if rounded(x) >= bound else x * 3.0
    fast, rng = fad.jit(f), np.random.default_rng(0)
    for _ in range(40):
        x = rng.normal(size=1000)
        bound = rounded(x)
        assert fast(x, bound)[0] in (x[0] * 2.0, x[0] * 3.0)
        fast(x, bound + 1.0)
    assert fast.cache_info().paths == 2
