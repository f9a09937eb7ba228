"""The flags of a traced array are read as in NumPy; to ask for an array that cannot be written is an error."""

import numpy as np
import pytest

import fad
from fad.errors import MissingRuleError

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


@pytest.mark.parametrize("transform", TRANSFORMS.values(), ids=TRANSFORMS)
@pytest.mark.parametrize("protect", [protect_attribute, protect_item, protect_letter, protect_method])
@pytest.mark.parametrize("take", [lambda x: x.view(), lambda x: x[1:], lambda x: np.zeros(4) + x])
def test_a_traced_array_that_is_made_read_only_is_an_error(transform, protect, take):
    def f(x):
        y = take(x)
        protect(y)
        y[0] = 2.0
        return y.sum()

    with pytest.raises(ValueError, match="read-only"):
        f(X.copy())
    with pytest.raises(MissingRuleError, match="a traced array's memory is not its value"):
        transform(f)(X.copy())


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
