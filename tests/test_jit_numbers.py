"""Python's numbers among the arguments of a jitted function: they stay Python's own, with its types and its answers."""

import operator

import numpy as np
import pytest

import fad
from fad.compile.lowering import has_llvm, using

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


def test_the_program_is_written_with_pythons_operators():
    text = fad.source(lambda n, x: x * abs(~n | 4) * (n << 1))(3, SINGLE)
    space = {}
    exec(text, space)
    np.testing.assert_array_equal(space["program"](3, SINGLE), SINGLE * abs(~3 | 4) * 6)
