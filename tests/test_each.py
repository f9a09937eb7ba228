"""A test of many cases in one item runs all of them, and names each that fails."""

import pytest
from each import CasesFail, each


def test_all_cases_that_fail_are_named_with_their_errors():
    ran = []

    @each("x", [1, 2, 3])
    @each("name, y", [("one", 1), ("two", 2)], ids=["a", "b"])
    def product(x, name, y):
        ran.append((x, name, y))
        assert x * y != 2, f"{x} by {name}"
        if x == 3:
            pytest.fail("three")

    with pytest.raises(CasesFail, match="4 cases fail") as caught:
        product()
    assert ran == [(x, *case) for x in (1, 2, 3) for case in (("one", 1), ("two", 2))]
    assert [at for at, _ in caught.value.failures] == ["1-b", "2-a", "3-a", "3-b"]
    assert "AssertionError in line" in str(caught.value)
    assert "1 by two" in str(caught.value)
    assert "Failed in line" in str(caught.value)


def test_what_is_left_is_given_by_the_caller():
    ran = []

    @each("y", "ab")
    def pair(x, y):
        ran.append((x, y))

    pair(x=0)
    assert ran == [(0, "a"), (0, "b")]


def test_a_name_that_the_test_does_not_take_is_refused():
    with pytest.raises(AssertionError, match="product does not take all of"):

        @each("z", [1])
        def product(x):
            pass
