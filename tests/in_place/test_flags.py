"""The flags of a traced array are read as in NumPy, and an array that is made read-only is not written."""

import numpy as np
import pytest
from numpy_versions import WITH_SET_SHAPES

import fad
from fad.errors import MissingRuleError
from fad.testing import check_grads

X = np.arange(1.0, 5.0)
TRANSFORMS = {
    "grad": fad.grad,
    "jvp": lambda f: lambda x: fad.jvp(f, (x,), (x,)),
    "vmap": lambda f: lambda x: fad.vmap(f)(x[None]),
    "jit": fad.jit,
    "hessian": fad.hessian,
}


def protect_attribute(y):
    y.flags.writeable = False


def protect_item(y):
    y.flags["WRITEABLE"] = False


def protect_letter(y):
    y.flags["W"] = False


def protect_method(y):
    y.setflags(write=False)


PROTECTS = [protect_attribute, protect_item, protect_letter, protect_method]
TAKES = [lambda x: x.view(), lambda x: x[1:], lambda x: np.zeros(4) + x, lambda x: np.array([x[0], 1.0])]


def set_item(y):
    y[0] = 2.0


def add_in_place(y):
    y += 1.0


def give_as_out(y):
    np.add(y, 1.0, out=y)


def write_a_view(y):
    y[1:][0] = 2.0


def write_a_mask(y):
    y[y > 1.5] = 0.0


WRITES = [
    set_item, add_in_place, give_as_out, write_a_view, write_a_mask, lambda y: y.fill(0.0), lambda y: y.sort(),
    lambda y: np.copyto(y, 0.0),
]  # fmt: skip


@pytest.mark.parametrize("transform", TRANSFORMS.values(), ids=TRANSFORMS)
@pytest.mark.parametrize("turn", range(len(TAKES)))
def test_a_traced_array_that_is_made_read_only_is_not_written(transform, turn):
    take = TAKES[turn]
    for write, protect in zip(WRITES, (PROTECTS * 3)[turn:], strict=False):  # each write meets each way over the turns

        def f(x, write=write, protect=protect):
            y = take(x)
            protect(y)
            assert not y.flags.writeable
            write(y)
            return y.sum()

        with pytest.raises(ValueError, match="read-only"):
            f(X.copy())
        with pytest.raises(ValueError, match="read-only"):
            transform(f)(X.copy())


@pytest.mark.parametrize("protect", PROTECTS)
@pytest.mark.parametrize("take", TAKES)
def test_a_traced_array_that_is_made_read_only_is_read(protect, take):
    def f(x):
        y = take(x)
        protect(y)
        protect(y)
        return np.sum(y**3) + np.sum(y[1:] * y[:-1])

    check_grads(f, (X,), order=2)
    np.testing.assert_allclose(fad.vmap(f)(np.stack([X, 2 * X])), [f(X), f(2 * X)])
    np.testing.assert_allclose(fad.jit(fad.grad(f))(X), fad.grad(f)(X))


def test_a_read_only_array_shows_what_is_written_into_the_one_that_it_is_a_view_of():
    def f(x):
        y = x * 1.0
        shown = y[1:]
        shown.flags.writeable = False
        y[2] = x[0] ** 2
        y *= x[1]
        return np.sum(shown**2)

    check_grads(f, (X,), order=2)
    np.testing.assert_allclose(fad.jit(fad.grad(f))(X), fad.grad(f)(X))
    np.testing.assert_allclose(fad.vmap(f)(np.stack([X, 2 * X])), [f(X), f(2 * X)])


def test_an_array_is_written_again_that_is_read_only_no_longer():
    def f(x):
        y = x * 1.0
        y.flags.writeable = False
        y.setflags(write=True)
        assert y.flags.writeable
        y[0] = x[1] ** 2
        y.setflags()
        return np.sum(y**2)

    check_grads(f, (X,), order=2)
    np.testing.assert_allclose(fad.jit(fad.grad(f))(X), fad.grad(f)(X))


@pytest.mark.parametrize("flag", ["aligned", "writebackifcopy"])
def test_flags_of_memory_are_not_set(flag):
    with pytest.raises(MissingRuleError, match="a traced array's memory is not its value"):
        fad.grad(lambda x: setattr(x.flags, flag, True))(X)


@pytest.mark.parametrize("transform", TRANSFORMS.values(), ids=TRANSFORMS)
def test_flags_are_read_as_in_numpy(transform):
    def f(x):
        A = np.outer(x, x)
        assert A.flags.c_contiguous
        assert not A.T.flags["C_CONTIGUOUS"]
        assert A.flags == A.copy().flags
        assert A.flags != A.T.flags
        assert "F_CONTIGUOUS : False" in repr(A.flags)
        A.flags.writeable = True
        with pytest.raises(AttributeError):
            A.flags.contiguity = True
        with pytest.raises(KeyError):
            A.flags["nothing"] = True
        A[0] = 2.0
        return A.sum()

    transform(f)(X)


class Owner:
    """An object that is kept, with an array that it made and that has no other name."""

    def __init__(self, x):
        self.y = np.zeros(4)
        self.y[:] = x


def protect(owner):
    owner.y.flags.writeable = False


def set_shape(owner):
    owner.y.shape = (2, 2)


def set_shape_and_protect(owner):
    set_shape(owner)
    protect(owner)


@WITH_SET_SHAPES
@pytest.mark.parametrize("change", [protect, set_shape, set_shape_and_protect])
@pytest.mark.parametrize("transform", TRANSFORMS.values(), ids=TRANSFORMS)
def test_a_kept_array_that_became_a_view_of_itself_holds_plain_numbers_after_the_transform(transform, change):
    kept = []

    def f(x):
        owner = Owner(x)
        change(owner)
        kept.append(owner)
        return np.sum(owner.y**2)

    f(X)
    transform(f)(X)
    fad.vjp(f, X)[1](1.0)
    for owner in kept if transform in (fad.grad, fad.hessian, TRANSFORMS["jvp"]) else (kept[0], kept[-1]):
        np.testing.assert_array_equal(np.asarray(owner.y), kept[0].y)


@pytest.mark.parametrize("transform", TRANSFORMS.values(), ids=TRANSFORMS)
def test_a_write_into_a_protected_array_that_the_function_made_is_numpys_error(transform):
    def f(x):
        y = np.zeros(4)
        y[:] = x
        y.flags.writeable = False
        y.sort()
        return np.sum(y)

    with pytest.raises(ValueError, match="read-only"):
        transform(f)(X)


def test_plain_flags_are_changed_by_those_of_an_array_of_the_function():
    def f(x):
        inside = np.zeros(4)
        inside[1:] = 1.0
        large = x > 1.5  # of traced values, but plain: a comparison has no derivative
        large &= inside > 0.5
        counts = np.where(large, 2, 1)
        counts += np.arange(4) * (inside < 0.5)
        np.add(counts, inside.astype(int), out=counts, where=large)
        return np.sum(x[large] ** 2) + np.sum(x * counts)

    slope = 2 * X * (X > 1.5) + np.array([1.0, 3.0, 3.0, 3.0])
    assert np.array_equal(fad.grad(f)(X), slope)
    assert fad.vmap(f)(np.stack([X, 2 * X])) == pytest.approx([f(X), f(2 * X)])
    jitted = fad.jit(fad.grad(f))
    assert np.array_equal(jitted(X), slope)
    assert np.array_equal(jitted(X), slope)


def test_an_array_asked_for_itself_by_name_is_the_traced_one():
    def total(y):
        return np.sum(y.__array__() ** 2)  # as statsmodels does

    assert np.array_equal(fad.grad(total)(X), 2 * X)
    assert np.array_equal(fad.jit(fad.grad(total))(X), 2 * X)
