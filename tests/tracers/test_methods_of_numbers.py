"""Methods that numbers have and arrays lack, on traced numbers."""

import numpy as np
import pytest

import fad

VALUES = [0.0, 2.0, -3.0, 2.5, 1e300, 5e-324, float("inf"), float("-inf"), float("nan")]


def ask(seen):
    def f(x):
        y = x.is_integer()
        seen.append(isinstance(y, bool))
        return x * 2.0 if y else x * 3.0

    return f


@pytest.mark.parametrize("kind", [float, np.float64, np.float32])
@pytest.mark.parametrize("value", VALUES)
def test_is_integer_answers_as_for_the_plain_number(kind, value):
    seen = []
    with np.errstate(all="ignore"):
        x = kind(value)
        expected, slope = ask(seen)(x), 2.0 if x.is_integer() else 3.0
    with np.errstate(over="ignore", under="ignore"):
        assert np.array_equal(fad.jit(ask(seen))(x), expected, equal_nan=True)
        assert fad.grad(ask(seen))(x) == slope
        assert fad.jit(fad.grad(ask(seen)))(x) == slope
        assert fad.jvp(ask(seen), (x,), (kind(1.0),))[1] == slope
        assert np.array_equal(fad.vmap(ask(seen))(np.array([x])), [expected], equal_nan=True)
    assert all(seen)


def test_the_answer_of_is_integer_is_a_result_and_counts_in_sums():
    def count(x):
        n = 0
        for i in range(600):
            n += (x * i).is_integer()
        return n, (x * 4.0).is_integer()

    for x in (0.5, 0.3, 2.0, 0.25):
        found, plain = fad.jit(count)(x), count(x)
        assert found == plain
        assert list(map(type, found)) == list(map(type, plain))


@pytest.mark.parametrize("name", ["as_integer_ratio", "hex"])
def test_digits_of_a_number_would_lose_the_derivative_and_are_refused(name):
    with pytest.raises(fad.errors.TracerConversionError, match="stop_gradient"):
        fad.grad(lambda x: x * len(str(getattr(x, name)())))(0.5)
    f = lambda x: x * len(str(getattr(x, name)()))
    J = fad.jit(f)
    assert [J(x) for x in (0.5, 0.5, 0.1)] == [f(x) for x in (0.5, 0.5, 0.1)]


def test_an_integer_has_its_numerator_and_its_bits():
    def f(n):
        return n.numerator + n.denominator, n.bit_length(), n.is_integer() if hasattr(n, "is_integer") else True

    J = fad.jit(f)
    assert [J(n) for n in (5, 5, 300)] == [f(n) for n in (5, 5, 300)]


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.uint64, np.bool_])
def test_lists_and_items_of_integers_are_pythons_integers(dtype):
    whole = np.array([100, 101], dtype)
    x = np.ones(2, np.float32)

    def from_list(x, whole):
        a, b = whole.tolist()
        return x * (a - b - a * 100), np.array(whole.tolist()), a - b

    def from_items(x, whole):
        a, b = np.array(whole).item(0), np.array(whole).item(1)
        return x * (a - b - a * 100), np.array([a, b]), a - b

    for f in (from_list, from_items):
        wanted = f(x, whole)
        found = [
            fad.jvp(lambda x, f=f: f(x, whole), (x,), (x,))[0], fad.vjp(lambda x, f=f: f(x, whole), x)[0],
            fad.jit(f)(x, whole),
        ]  # fmt: skip
        np.testing.assert_array_equal(fad.vmap(f)(x[None], whole[None])[2], [wanted[2]])
        for ys in found:
            assert [np.asarray(y).dtype for y in ys] == [np.asarray(y).dtype for y in wanted]
            for y, want in zip(ys, wanted, strict=True):
                np.testing.assert_array_equal(y, want)
