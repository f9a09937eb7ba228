"""Programs that ask what they were given: a traced value answers as the array or number that it stands for."""

import collections.abc
import functools
import numbers

import numpy as np
import pytest
from numpy_versions import BEFORE_2_4

import fad

X = np.array([0.5, 1.5, 2.5])
KINDS = (
    np.ndarray,
    np.generic,
    np.floating,
    np.float32,
    np.float64,
    np.integer,
    float,
    int,
    complex,
    list,
    numbers.Real,
)
# Of arrays, of arrays before NumPy 2 (until 2.4 they had them to say so), and of numbers.
ATTRIBUTES = (
    "__len__", "data", "ctypes", "strides", "tobytes", "view", "T", "flat",
    *([] if BEFORE_2_4 else ["ptp", "newbyteorder", "itemset", "tostring"]),
    "is_integer", "as_integer_ratio", "hex", "bit_length", "bit_count", "numerator", "conjugate",
)  # fmt: skip


def answers(x):
    """Return what a program may ask of an array or number."""
    return (
        [isinstance(x, kind) for kind in KINDS],
        x.__class__,
        np.isscalar(x),
        np.iterable(x),
        [hasattr(x, name) for name in ATTRIBUTES],
        isinstance(x, numbers.Number),
    )


def asking(seen):
    """Return a function that notes what its argument answers, and that of numbers and arrays computed from it."""

    def f(x):
        for y in (x, x * 1.0, np.sum(x), np.sum(x) * 2.0, np.atleast_1d(x)[0], np.atleast_1d(x)):
            seen.append(answers(y))
        return np.sum(x * x)

    return f


def _batch(transform):
    def run(f, x):
        return transform(f)(np.stack([x, x]))

    return run


TRANSFORMS = {
    "grad": lambda f, x: fad.grad(f)(x),
    "jvp": lambda f, x: fad.jvp(f, (x,), (x,)),
    "jit": lambda f, x: fad.jit(f)(x),
    "linearize": lambda f, x: fad.linearize(f, x),
    "jet": lambda f, x: fad.jet(f, (x,), ((x,),)),
    "checkpoint": lambda f, x: fad.grad(fad.checkpoint(f))(x),
    "vmap": _batch(fad.vmap),
    "vmap of grad": _batch(lambda f: fad.vmap(fad.grad(f))),
    "vmap of vmap": lambda f, x: fad.vmap(fad.vmap(f))(np.stack([np.stack([x, x])] * 2)),
    "jit of grad": lambda f, x: fad.jit(fad.grad(f))(x),
    "jit of vmap": _batch(lambda f: fad.jit(fad.vmap(f))),
    "hessian": lambda f, x: fad.hessian(f)(x),
    "grad of grad": lambda f, x: fad.grad(lambda y: np.sum(fad.grad(f)(y)))(x),
    "grad of vmap": lambda f, x: fad.grad(lambda y: np.sum(fad.vmap(f)(y)))(np.stack([x, x])),
}


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize(
    "x", [X, np.float64(2.0), np.float32(2.0), X.astype(np.float32)], ids=lambda x: f"{x.dtype}{x.shape}"
)
def test_a_traced_value_is_an_instance_of_what_it_stands_for(transform, x):
    plain, traced = [], []
    asking(plain)(x)
    TRANSFORMS[transform](asking(traced), x)
    assert traced[: len(plain)] == plain


def test_an_array_without_axes_is_an_array():
    seen = []
    fad.grad(asking(seen))(np.array(2.0))
    plain = []
    asking(plain)(np.array(2.0))
    assert seen == plain


def test_a_python_number_given_to_jit_is_one():
    seen = []

    @fad.jit
    def f(x, n, flag, z):
        for y in (x, n, flag, z, x * 2.0, n + 1):
            seen.append(answers(y))
        return x * n

    f(0.5, 3, True, 1j)
    numbers = (0.5, 3, True, 1j, 1.0, 4)
    of_numbers = [ATTRIBUTES.index(name) for name in ATTRIBUTES if name not in dir(np.ndarray)]
    for found, y in zip(seen, numbers, strict=True):
        (*classes, has, last), (*known, having, known_last) = found, answers(y)
        assert (*classes, last) == (*known, known_last)
        assert [has[k] for k in of_numbers] == [having[k] for k in of_numbers]


def test_a_program_that_treats_arrays_otherwise_takes_their_branch():
    def f(x):
        x = x if isinstance(x, np.ndarray) else np.zeros(3)
        return np.sum(x * x)

    assert np.array_equal(fad.grad(f)(X), 2 * X)
    assert fad.jit(f)(X) == f(X)
    assert np.array_equal(fad.vmap(f)(np.stack([X, X])), [f(X), f(X)])


def test_single_dispatch_finds_the_method_for_arrays():
    @functools.singledispatch
    def f(x):
        raise TypeError(type(x))

    f.register(np.ndarray, lambda x: np.sum(x * x))
    f.register(float, lambda x: x * x * x)
    assert np.array_equal(fad.grad(f)(X), 2 * X)
    assert fad.grad(f)(np.float64(2.0)) == 12.0


def test_a_match_statement_finds_the_case_for_arrays():
    def f(x):
        match x:
            case float():
                return x * x * x
            case np.ndarray():
                return np.sum(x * x)

    assert np.array_equal(fad.grad(f)(X), 2 * X)
    assert fad.grad(f)(np.float64(2.0)) == 12.0


def test_a_traced_number_has_no_length():
    def f(x):
        with pytest.raises(TypeError, match="object of type 'float64' has no len"):
            len(x)
        return x * x

    assert fad.grad(f)(np.float64(3.0)) == 6.0
    assert fad.vmap(f)(np.array([3.0])) == [9.0]
    with pytest.raises(TypeError, match="unsized"):
        fad.grad(len)(np.array(3.0))
    assert fad.grad(lambda x: x[0] * len(x))(X).tolist() == [3.0, 0.0, 0.0]


def test_the_class_of_a_traced_value_that_outlived_its_transform_can_be_asked():
    kept = []
    fad.grad(lambda x: kept.append(x) or np.sum(x))(X)
    assert isinstance(kept[0], np.ndarray)


def _answers(x):
    try:
        elements = len(list(iter(x)))
    except TypeError:
        elements = -1
    return (
        hasattr(x, "__iter__"), getattr(x, "__iter__", None) is None, np.iterable(x), elements,
        *(isinstance(x, getattr(collections.abc, kind)) for kind in ("Iterable", "Sized", "Collection", "Hashable")),
    )  # fmt: skip


@pytest.mark.parametrize("x", [2.0, np.float64(2.0), np.array(2.0), X], ids=["float", "float64", "0-d", "array"])
def test_a_number_cannot_be_iterated_over_and_an_array_can(x):
    found = []

    def f(x):
        found.append(_answers(x))
        return x * x

    wanted = _answers(x)
    fad.jvp(f, (x,), (x,))
    fad.jit(f)(x)
    fad.vjp(f, x)
    fad.jvp(lambda x: fad.jvp(f, (x,), (x,)), (x,), (x,))
    assert set(found) == {wanted}


def test_a_number_becomes_a_list_of_one_where_it_cannot_be_iterated_over():
    def f(x):
        x = x if hasattr(x, "__iter__") else [x]
        return sum(v * v for v in x)

    assert fad.grad(f)(np.float64(3.0)) == 6.0
    assert fad.grad(f)(3.0) == 6.0
    np.testing.assert_array_equal(fad.grad(f)(X), 2 * X)
    with pytest.raises(AttributeError, match="no attribute '__iter__'"):
        fad.grad(lambda x: x.__iter__())(3.0)
