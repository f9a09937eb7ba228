"""Python's numbers among the arguments of a jitted function: they stay Python's own, with its types and its answers."""

import math
import operator

import numpy as np
import pytest

import fad
from fad.compile.targets.select import has_llvm, using

LOWERINGS = ["numpy", *(["llvm"] if has_llvm() else [])]
SINGLE = np.ones(2, np.float32)


@pytest.fixture(autouse=True, params=LOWERINGS)
def lowering(request):
    with using(request.param):
        yield request.param


def outcome(f, args):
    """Return the result and its type, or the type of the error."""
    try:
        found = f(*args)
    except ArithmeticError as error:
        return type(error)
    return [(type(x), x) for x in fad.tree.leaves(found)]


def same(f, *calls):
    """Call a jitted function with some arguments, in turn and again, and compare each answer, in kind too."""
    fast = fad.jit(f)
    for _ in range(2):
        for args in calls:
            for _ in range(2):
                assert outcome(fast, args) == outcome(f, args), args


OPERATORS = ["add", "sub", "mul", "truediv", "floordiv", "mod", "lt", "le", "gt", "ge", "eq", "ne"]


@pytest.mark.parametrize("name", OPERATORS)
def test_operators_give_pythons_numbers(name):
    f = getattr(operator, name)
    same(f, (7, 2), (-7, 2), (7, -2), (2, 2))
    same(f, (7.5, 2.0), (-7.5, 2.0), (2.0, 2.0))
    same(f, (7, 2.5), (2, 2.0))
    same(f, (True, True), (False, True))


@pytest.mark.parametrize("name", ["and_", "or_", "xor", "lshift", "rshift"])
def test_operators_on_bits_give_pythons_integers(name):
    f = getattr(operator, name)
    same(f, (13, 2), (-13, 3))
    same(f, (True, True), (False, True), (True, False))


def test_operators_of_one_number_give_pythons_numbers():
    same(lambda x: (-x, +x, abs(x)), (3,), (-3,))
    same(lambda x: (-x, +x, abs(x)), (3.5,), (-3.5,))
    same(lambda x: (-x, abs(x)), (3 + 4j,), (-1j,))
    same(lambda n: ~n, (5,), (-6,))
    same(lambda x: divmod(x, 3), (7,), (-7,))
    same(lambda x: divmod(9.5, x), (7.0,), (-7.0,))


def test_rounding_a_number_gives_pythons_number():
    same(lambda x: round(x, 1), (1.25,), (2.675,), (-0.05,))
    same(lambda x: (round(x, 2), round(x)), (5.015,), (2.5,), (2.675,))
    same(lambda n: (round(n, 1), round(n, -1), round(n)), (125,), (135,), (7,))
    same(lambda b: round(b, 1), (True,))
    same(lambda x, n: round(x, n), (2.345, 1), (2.345, 2))


def test_parts_of_a_number_are_pythons_numbers():
    same(lambda x: (x.real, x.imag, x.conjugate()), (1.5,), (3,), (1 + 2j,), (-0.0 - 1j,))
    same(lambda z: (np.real(z), np.imag(z), np.conjugate(z)), (1 + 2j,))
    same(lambda x: (np.imag(x), x.imag), (np.float64(2.0),))
    assert fad.grad(lambda x: x * x.imag + np.imag(x))(2.0) == 0.0


@pytest.mark.parametrize(
    "scale",
    [
        lambda s: abs(s),
        lambda s: (s < 3) * 2.0,
        lambda s: divmod(s, 2)[0],
        lambda s: -s % 3,
        lambda s: np.add(s, 1.0),  # NumPy's own function makes a number of double precision
        lambda s: np.negative(s),
        lambda s: np.abs(s),
        lambda s: np.power(s, 2),
    ],
)
def test_the_dtype_of_a_result_is_that_without_jit(scale):
    f = lambda x, s: x * scale(s)
    fast = fad.jit(f)
    for s in (2.0, -2.0, 2.0):
        assert fast(SINGLE, s).dtype == f(SINGLE, s).dtype
        np.testing.assert_allclose(fast(SINGLE, s), f(SINGLE, s), rtol=1e-6)


# --- what has no place in 64 bits, or raises -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("f", "calls"),
    [
        (lambda n: n * n, [(3,), (2**40,), (-(2**40),), (3,)]),
        (lambda n: n * n, [(2**40,), (3,)]),
        (lambda n: n + n + n, [(3,), (2**62 - 1,), (-(2**62) + 1,)]),
        (lambda n: n - (-n) * 3, [(3,), (2**61,), (-(2**61),)]),
        (lambda n: n**3 + 1, [(3,), (2**30,)]),
        (lambda n, k: n**k, [(2, 3), (2, -1), (10, 30), (2, 3), (0, -1)]),
        (lambda n, k: n**k, [(2, -1), (2, 3)]),
        (lambda n, k: n << k, [(3, 2), (3, 70), (2**61, 2), (3, 2)]),
        (lambda n: (n << 2) * 2, [(3,), (2**61,)]),
        (lambda n: n, [(2**62,), (2**63,), (-(2**63),), (2**80,), (5,)]),
        (lambda n: abs(n) * 2.0, [(2**61,), (-(2**63),), (2**70,)]),
        (lambda x, y: x**y, [(2.0, 0.5), (-2.0, 0.5), (-2.0, 2.0), (0.0, -1.0), (10.0, 400.0)]),
        (lambda x: x**0.5 + x**2, [(2.0,), (-2.0,), (2.0,)]),
        (lambda x, y: (x + 1) / y, [(1.0, 2.0), (1.0, 0.0), (1.0, 4.0)]),
        (lambda m, n: m / n, [(1, 2), (1, 0), (7, 4)]),
        (lambda x, y: x // y + x % y, [(7.5, 2.0), (7.5, 0.0)]),
        (lambda n: n * n if n % 2 else n + n, [(3,), (2,), (2**41 + 1,), (2**62 - 2,), (3,)]),
    ],
)
def test_pythons_numbers_grow_change_their_kind_and_raise_as_they_do_without_jit(f, calls):
    same(f, *calls)


def test_integers_in_a_loop_grow_as_they_do_without_jit():
    double = lambda n: fad.fori_loop(0, n, lambda i, s: s * 2, 1)
    squares = lambda n: fad.fori_loop(0, 5, lambda i, s: s + i * i + n, 0)
    same(double, (3,), (70,), (3,))
    same(squares, (3,), (2**62 - 1,), (3,))
    same(lambda n: fad.cond(n > 0, lambda m: m * m, lambda m: m + 1, n), (3,), (-3,), (2**40,))


def repeat(step):
    """Return a function of numbers that does ``s = step(s, x, i)`` in a loop that is captured."""

    def f(x, k):
        s = x
        for i in range(500):
            s = step(s, x, i, k)
        return s

    return f


@pytest.mark.parametrize(
    ("step", "calls"),
    [
        (lambda s, x, i, k: 0.9 * x + 0.01 * s**4 + 0.1 * (s + 1) ** -1.5, [(0.7, 1), (-3.0, 1)]),
        (lambda s, x, i, k: s**4.0 + 1, [(0.7, 1)]),  # OverflowError
        (lambda s, x, i, k: 0.9 * (s - 1) ** 0.5, [(1e9, 1), (0.7, 1)]),  # complex from some step on
        (lambda s, x, i, k: (x + 1) ** s * 0.3 + 0.1 * s**i, [(0.7, 1), (-1.5, 1)]),
        (lambda s, x, i, k: (s * 7) % (x - 0.5) + s // (x - 0.5), [(0.75, 1), (0.5, 1)]),
        (lambda s, x, i, k: 1.0 / (s - x) if i else s + 2, [(0.7, 1), (2.0, 1)]),
        (lambda s, x, i, k: 1.0 / s if s != 0 else 2.0, [(0.0, 1), (0.5, 1)]),
        (lambda s, x, i, k: s**-2 if s > 0.1 else (s + 1) ** 2.5, [(0.0, 1), (0.5, 1)]),
        (lambda s, x, i, k: s + i % k + (100 - i) // k, [(0.7, 3), (0.7, -7), (0.7, 0)]),
    ],
)
def test_numbers_in_loops_raise_or_change_their_kind_as_they_do_without_jit(step, calls):
    same(repeat(step), *calls)


def test_powers_quotients_and_remainders_of_numbers_in_loops_are_native(lowering):
    if lowering == "numpy":
        return
    f = repeat(lambda s, x, i, k: 0.5 * x + 0.01 * s**5 / (s + 2) + 0.1 * (s % (x + 1)) ** s + (i % k + 1) ** -0.5)
    fast = fad.jit(f)
    assert fast(0.5, 3) == pytest.approx(f(0.5, 3), rel=1e-13)
    fast(0.5, 3)
    assert "captured" in fast.explain()
    assert "calls of NumPy" not in fast.explain()


def test_an_array_beside_a_number_that_grew_is_computed_all_the_same():
    def f(x, n):
        return np.sin(x) * 2.0, n * n

    fast = fad.jit(f)
    for n in (3, 3, 2**40, 3):
        y, square = fast(SINGLE, n)
        np.testing.assert_allclose(y, np.sin(SINGLE) * 2.0, rtol=1e-6)
        assert square == n * n


def test_integers_beside_complex_numbers_are_checked_too():
    same(lambda z, n: (z * 2.0, n * n), (1 + 2j, 3), (1 + 2j, 2**40))
    fast = fad.jit(lambda z, n: (z * 2.0, n * n))
    for n in (3, 3, 2**40):
        assert fast(np.ones(2, complex), n)[1] == n * n


def test_complex_numbers_of_more_than_double_precision_are_numpys_work():
    z = np.ones(3, np.clongdouble) * (1 + 2j)
    fast = fad.jit(lambda z: z * z + np.sum(z))
    for _ in range(3):  # a warning would be an error here
        np.testing.assert_array_equal(fast(z), z * z + np.sum(z))
        assert fast(z).dtype == z.dtype


def test_counters_need_no_check(lowering):
    if lowering == "numpy":
        return
    from fad.compile.legalize.numbers.integer_overflow import CHECK, with_checks
    from fad.compile.pipeline import optimise

    def checks(f, *args):
        def count(graph):
            bodies = [eq.params["body"] for eq in graph.equations if eq.prim.archetype == "loop"]
            return sum(eq.prim is CHECK for eq in graph.equations) + sum(map(count, bodies))

        return count(with_checks(optimise(fad.make_graph(f)(*args))))

    assert checks(lambda n, x: (n + 1, x * 0.9**n), 3, SINGLE) == 0
    assert checks(lambda x: fad.fori_loop(0, 9, lambda i, s: (s[0] * (2 * i + 1), s[1] + 3), (x, 0)), SINGLE) == 0
    assert checks(lambda n: n * n, 3) == 1
    assert checks(lambda n: fad.fori_loop(0, 9, lambda i, s: s * 2, n), 3) == 1
    assert checks(lambda a, b: a / b, 3.0, 2.0) == 1
    assert checks(lambda a: a / 2.0, 3.0) == 0


def test_the_program_is_written_with_pythons_operators():
    text = fad.source(lambda n, x: x * abs(~n | 4) * (n << 1))(3, SINGLE)
    space = {}
    exec(text, space)
    np.testing.assert_array_equal(space["program"](3, SINGLE), SINGLE * abs(~3 | 4) * 6)

@pytest.mark.parametrize(
    "f",
    [np.linalg.eigvals, lambda x: np.linalg.eigvals(x).real, lambda x: np.linalg.eig(x)[1], lambda x: np.roots(x[0])],
    ids=["eigvals", "parts", "vectors", "roots"],
)
@pytest.mark.parametrize("first", [0, 1])
def test_results_that_are_real_for_some_values_and_complex_for_others_are_numpys(f, first):
    real = np.array([[2.0, 1.0, -3.0], [1.0, 3.0, 0.5], [0.0, 0.0, 1.0]])
    given = [real, np.array([[0.5, 1.0, 2.0], [-1.0, 0.0, 1.0], [0.0, 0.0, 2.0]])]
    fast = fad.jit(f)
    for k in (first, 1 - first, first, 1 - first):
        got, wanted = fast(given[k]), f(given[k])
        assert got.dtype == wanted.dtype
        np.testing.assert_allclose(got, wanted, rtol=1e-12)


@pytest.mark.parametrize("n", [3, np.int64(2), np.uint8(2)])
def test_sequences_are_repeated_by_traced_whole_numbers(n):
    def f(c, n):
        return [c] * n, n * [c, 1.0], (2.0,) * n, "ab" * n

    for _ in range(3):
        assert fad.jit(lambda c, n: f(c, n)[:3])(1.5, n) == f(1.5, n)[:3]
    assert fad.jit(lambda c, n: c * len(f(c, n)[3]))(1.5, n) == 1.5 * 2 * n


def test_a_list_times_a_traced_array_is_an_array():
    x = np.array(3)
    np.testing.assert_array_equal(fad.jit(lambda x: [1, 2] * x)(x), [3, 6])


def test_a_grid_has_a_traced_number_of_points():
    def f(c, n):
        a = np.zeros(n)
        a[:] = c * np.linspace(-1, 1, n) + np.logspace(0, 1, n) + np.linspace(0.0, 2, num=n, endpoint=False)
        return a

    jitted = fad.jit(f)
    for n in (5, 5, 4, 1):
        np.testing.assert_allclose(jitted(2.0, n), f(2.0, n), rtol=1e-15)


@pytest.mark.parametrize("order", [1, 2])
def test_the_derivative_of_a_power_that_is_complex_to_python_for_other_numbers_is_recorded_again(order):
    def slope(v):
        z = v**0.5
        return z.real + 0.5 * z.imag

    for _ in range(order):
        slope = fad.grad(slope)
    fast = fad.jit(slope)
    given = (2.0, 3.0, -2.0, -3.0, 2.0)
    np.testing.assert_allclose([fast(v) for v in given], [slope(v) for v in given], rtol=1e-14)
    assert fast.cache_info().paths == 2


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize(
    ("power", "given"),
    [
        (lambda v: v ** math.cos(v), [0.7, -0.7, -2.0, 0.7]),
        (lambda v: v ** math.cos(v), [-0.7, 0.7, -2.0]),
        (lambda v: math.sin(v) ** (v / 3), [0.7, -0.7, 0.7]),
        (lambda v: (v**0.5).imag + (v - 1.0) ** v, [2.5, 0.5, 2.5, -2.5]),
    ],
)
def test_the_derivative_of_a_power_with_a_traced_exponent_is_that_of_pythons_power(power, given, order):
    def slope(v):
        z = power(v)
        return z.real + 0.5 * z.imag

    for _ in range(order):
        slope = fad.grad(slope)
    fast = fad.jit(slope)
    for _ in range(2):
        np.testing.assert_allclose([fast(v) for v in given], [slope(v) for v in given], rtol=1e-12)


def test_a_power_by_another_argument_is_pythons_where_it_is_complex():
    f = fad.value_and_grad(lambda v, p: (v**p).real)
    fast = fad.jit(f)
    for args in [(2.0, 0.5), (-2.0, 0.75), (-2.0, 2.0), (2.0, 0.5), (math.inf, 0.5), (-2.0, 0.75)]:
        np.testing.assert_allclose(fast(*args), f(*args), rtol=1e-14)


def _is_close(x):
    return np.sum(x) if np.allclose(x, 1.0) is not False else 2.0 * np.sum(x)


def _is_large(x):
    return np.sum(x) if np.any(x > 1) is np.True_ else 2.0 * np.sum(x)


def _is_small(x):
    found = np.any(x > 1) is not np.False_
    return 2.0 * np.sum(x) if found or np.isfinite(x).all() is True else np.sum(x)


def _is_large_at_some_steps(x):
    total = 0.0
    for k in range(12):
        if (x[0] * k > 5.0) is np.True_:
            total = total + x[1] * k
    return total


@pytest.mark.parametrize("f", [_is_close, _is_large, _is_small, _is_large_at_some_steps], ids=lambda f: f.__name__)
def test_a_traced_flag_is_the_boolean_that_it_stands_for(f):
    fast, slope = fad.jit(f), fad.jit(fad.grad(f))
    for x in ([1.0, 2.0], [1.0, 1.0], [-1.0, 0.5], [1.0, 2.0]):
        x = np.array(x)
        assert fast(x) == f(x)
        np.testing.assert_array_equal(slope(x), fad.grad(f)(x))
    rows = np.array([[1.0, 2.0], [1.0, 1.0], [-1.0, 0.5]])
    np.testing.assert_array_equal(fad.jit(fad.vmap(f))(rows), [f(x) for x in rows])


@pytest.mark.parametrize("around", [lambda f: f, fad.jit])
def test_the_flag_of_allclose_is_a_bool_inside_vmap(around):
    kinds = []

    def f(x):
        flag = np.allclose(x, 1.0)
        kinds.append([isinstance(v, bool) for v in (flag, np.all(x == 1.0))])
        return np.where(flag, x, 0.0)

    np.testing.assert_array_equal(around(fad.vmap(f))(np.array([[1.0, 1.0], [1.0, 2.0]])), [[1.0, 1.0], [0.0, 0.0]])
    assert kinds == [[True, False]] * len(kinds)


def test_the_power_modulo_a_number_is_pythons():
    same(lambda a, n, m: pow(a, n, m), (13, 3, 7), (13, -1, 7), (2, 1000, 13), (True, 3, 2))
    same(lambda a: pow(a, 3, 7), (13,), (2**70,), (13,))
    for transform in (fad.grad, fad.jit):
        with pytest.raises(TypeError, match="3rd argument not allowed unless all arguments are integers"):
            transform(lambda x: pow(x, 2, 3))(2.0)


def test_a_number_of_numpys_is_converted_and_rounded_as_without_jit():
    same(lambda a: float(a), (np.int64(3),), (3,), (np.bool_(True),))
    same(lambda a, n: round(a / 3, n), (np.int64(13), np.int64(3)), (13.0, 2), (np.float32(13.0), 1))


MADE_ARRAYS_OF = {
    "append": lambda n, x: np.append(n, x),
    "clip": lambda n, x: np.clip(n, x, 9),
    "clip below": lambda n, x: np.clip(n, None, x),
    "frexp": lambda n, x: np.frexp(n)[0] * x,
}


@pytest.mark.parametrize("f", MADE_ARRAYS_OF.values(), ids=MADE_ARRAYS_OF)
def test_a_number_that_numpy_makes_an_array_of_counts_with_its_dtype(f):
    for n in (1000003, 3, 2.5, True):
        for x in (np.float32(2), SINGLE, np.uint8(3)):
            want, jitted = f(n, x), fad.jit(f)
            for _ in range(2):
                got = jitted(n, x)
                assert (type(got), got.dtype) == (type(want), want.dtype), (n, x)
                np.testing.assert_array_equal(got, want)


def test_a_plain_number_that_is_clipped_by_a_traced_limit_counts_with_its_dtype():
    limit = np.float32(1.5)
    value, slope = fad.value_and_grad(lambda x: np.clip(2.5, None, x))(limit)
    assert (value.dtype, slope) == (np.float64, 1.0)
