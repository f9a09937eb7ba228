"""A traced array is compared with objects as NumPy compares it, and computes with every sequence of numbers."""

import array
import collections
import decimal

import numpy as np
import pytest

import fad

X = np.array([1.0, 2.0, 3.0])
RUN = {
    "grad": lambda f: fad.value_and_grad(f)(X)[0],
    "jvp": lambda f: fad.jvp(f, (X,), (X,))[0],
    "jit": lambda f: fad.jit(f)(X),
    "vmap": lambda f: fad.vmap(f)(X[None])[0],
}
SEQUENCES = [
    range(1, 4), array.array("d", [1.0, 5.0, 3.0]), memoryview(np.array([4.0, 2.0, 3.0])), collections.deque([1, 2, 4]),
    collections.namedtuple("Three", "a b c")(1.0, 1.0, 3.0),
]  # fmt: skip


@pytest.mark.parametrize("run", RUN.values(), ids=RUN)
@pytest.mark.parametrize("other", [None, "text", b"text", np.str_("text"), np.sin, {1.0}, {}, ...])
def test_of_an_array_and_what_is_no_number_each_element_is_compared(run, other):
    def f(x):
        own = np.zeros(2)  # of the function, no trace's yet
        assert (x == other).shape == (3,)
        assert (own != other).shape == (2,)
        assert not np.any(x == other)
        assert np.all(own != other)
        return np.sum(x[x != other] * 2.0)  # a mask, and no new axis

    assert run(f) == f(X) == 12.0


@pytest.mark.parametrize("run", RUN.values(), ids=RUN)
def test_a_number_is_no_object_and_says_so_with_one_answer(run):
    assert run(lambda x: x[0] * (1.0 if x[0] == None or x[0] != "a" else 2.0)) == 1.0  # noqa: E711


@pytest.mark.parametrize("run", RUN.values(), ids=RUN)
@pytest.mark.parametrize("other", SEQUENCES, ids=lambda s: type(s).__name__)
@pytest.mark.parametrize(
    "f",
    [
        lambda x, y: x * (x == y), lambda x, y: x * (x != y), lambda x, y: x * y, lambda x, y: y - x,
        lambda x, y: np.maximum(x, y), lambda x, y: np.where(x > 1.5, x, y), lambda x, y: np.dot(y, x),
    ],
)  # fmt: skip
def test_a_sequence_of_numbers_is_an_operand_as_it_is_to_numpy(run, other, f):
    assert np.sum(f(X, other)) == run(lambda x: np.sum(f(x, other)))


@pytest.mark.parametrize("run", RUN.values(), ids=RUN)
def test_a_decimal_that_was_equal_to_no_traced_value_is_refused(run):
    with pytest.raises(TypeError, match=r"Decimal.*write float\(y\)"):
        run(lambda x: np.sum(x * (x == decimal.Decimal(2))))
