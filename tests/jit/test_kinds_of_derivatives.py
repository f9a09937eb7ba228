"""A jitted derivative is a number or an array exactly where the derivative without jit is one."""

import numpy as np
import pytest

import fad

HUGE = 2**70  # an int that has no place in 64 bits


def _assigned(a):
    y = np.zeros(3)
    y[1] = a
    return np.sum(y * y)


PROGRAMS = {
    "array": lambda a: np.sum(np.array([a, 1.0]) * 0.9),
    "stack": lambda a: np.sum(np.stack([a, 1.0])),
    "concatenate": lambda a: np.sum(np.concatenate([[a], [1.0]])),
    "r_": lambda a: np.sum(np.r_[a, 1.0] ** 2),
    "full": lambda a: np.sum(np.full(3, a)),
    "atleast_1d": lambda a: np.sum(np.atleast_1d(a)),
    "repeat": lambda a: np.sum(np.repeat(a, 3)),
    "append": lambda a: np.sum(np.append(np.ones(2), a)),
    "assignment": _assigned,
    "element": lambda a: np.array([a, 1.0])[0] * 2,
    "broadcast": lambda a: np.sum(np.ones(3) * a),
}
TRANSFORMS = {
    "grad": lambda f: fad.grad(f),
    "value_and_grad": lambda f: fad.value_and_grad(f),
    "grad of grad": lambda f: fad.grad(fad.grad(f)),
    "jvp": lambda f: lambda x: fad.jvp(f, (x,), (x,)),
    "pullback": lambda f: lambda x: fad.vjp(f, x)[1](f(x) * 0 + 1),
    "vmap": lambda f: lambda x: fad.vmap(f)(np.stack([x, x])),
    "jacfwd": lambda f: fad.jacfwd(f),
    "jacrev": lambda f: fad.jacrev(f),
    "hessian": lambda f: fad.hessian(f),
    "value": lambda f: f,
}


def _kinds(out):
    return [(type(x), x.dtype) for x in fad.tree.leaves(out)]


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("x", [1.5, np.float64(1.5), np.float32(1.5), np.array(1.5)], ids=lambda x: type(x).__name__)
def test_a_jitted_derivative_is_a_number_where_it_is_one_without_jit(x, program, transform):
    plain = TRANSFORMS[transform](PROGRAMS[program])
    jitted = fad.jit(plain)
    assert _kinds(jitted(x)) == _kinds(plain(x))
    assert _kinds(jitted(x)) == _kinds(plain(x))  # from the program


def test_a_jitted_function_may_return_an_int_beyond_64_bits_beside_what_is_differentiated():
    J = fad.jit(lambda x: (x * x, HUGE, [HUGE + 1]))
    assert fad.grad(lambda x: J(x)[0])(3.0) == 6.0
    assert fad.value_and_grad(lambda x: J(x)[:2], has_aux=True)(3.0) == ((9.0, HUGE), 6.0)
    assert fad.grad(fad.checkpoint(lambda x: J(x)[0]))(3.0) == 6.0
    assert fad.jacobian(lambda x: J(x)[0])(3.0) == 6.0
    assert fad.jvp(J, (3.0,), (1.0,))[0] == (9.0, HUGE, [HUGE + 1])


def test_vmap_repeats_an_int_beyond_64_bits_and_a_program_of_jit_refuses_the_array_of_them():
    found = fad.vmap(lambda x: (x, HUGE))(np.ones(2))[1]
    assert found.dtype == object
    assert found.tolist() == [HUGE, HUGE]
    with pytest.raises(fad.errors.NonArrayOutputError, match="dtype object"):
        fad.vmap(fad.jit(lambda x: (x, HUGE)))(np.ones(2))
