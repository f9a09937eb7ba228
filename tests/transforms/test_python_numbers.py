"""A Python number that is differentiated promotes as the plain run's number does, in every transform."""

import operator

import numpy as np
import pytest
from each import each

import fad
from fad import control

ONES = np.ones(3, "f4")

# Each maps a number to an array or number; the dtype is that of the plain run.
PROGRAMS = {
    "a factor": lambda n: ONES * n,
    "a factor in front": lambda n: n * ONES,
    "Python's arithmetic": lambda n: ((n * 2 + 1) ** 2 / 3 - n % 2.0 + n // 0.3) * ONES,
    "Python's functions": lambda n: sum([abs(-n), +n, max(n, 0.1)]) * ONES,
    "parts": lambda n: (n.real + n.imag + n.conjugate()) * ONES,
    "a power": lambda n: ONES**n + n**ONES + n**0.5 * ONES,
    "NumPy's function of a number": lambda n: np.sin(n) * ONES,
    "NumPy's arithmetic of numbers": lambda n: np.multiply(n, 2.0) * ONES,
    "NumPy's arithmetic with arrays": lambda n: np.maximum(np.hypot(ONES, n), np.arctan2(n, ONES)),
    "half precision": lambda n: n * np.ones(3, "f2"),
    "double precision": lambda n: n * np.ones(3),
    "whole numbers": lambda n: n * np.arange(3),
    "a NumPy scalar": lambda n: n * np.float32(2),
    "complex numbers": lambda n: np.real(n * np.ones(3, "c8") * 2j),
    "a complex number of it": lambda n: np.abs(ONES * (n * 1j)),
    "where": lambda n: np.where(ONES > 0, n, ONES),
    "clip": lambda n: np.clip(ONES, n, 2.0),
    "an array of it": lambda n: np.array(n) * ONES,
    "a stack": lambda n: np.stack([n, np.float32(1)]),
    "a product with an array": lambda n: np.dot(n, ONES),
    "a reduction of it": lambda n: np.sum(n) * ONES,
    "linspace": lambda n: np.linspace(ONES, n, 3),
    "a quantile": lambda n: np.quantile(ONES, n),
    "real_if_close": lambda n: np.real_if_close(n) * ONES,
    "a norm": lambda n: np.linalg.norm(n) * ONES,
    "augmented assignment": lambda n: _augmented(ONES.copy(), n),
    "assignment": lambda n: _assigned(np.zeros(3, "f4"), n),
    "a value of a gradient": lambda n: fad.value_and_grad(lambda m: np.sum(ONES * m))(n)[0] * ONES,
    "a gradient": lambda n: fad.grad(lambda m: np.sum(ONES * m * m))(n) * ONES,
    "a closure of a gradient": lambda n: fad.grad(lambda x: np.sum(x * x * n))(ONES),
    "a closure of a batch": lambda n: fad.vmap(lambda x: x * n)(ONES),
    "what a batch has in common": lambda n: fad.vmap(lambda x, m: x * m, in_axes=(0, None))(ONES, n),
    "jit": lambda n: fad.jit(lambda m: ONES * m)(n),
    "a checkpoint": lambda n: fad.checkpoint(lambda m: ONES * m)(n),
    "a loop": lambda n: control.fori_loop(0, 3, lambda i, x: x * n, ONES),
    "a branch": lambda n: control.cond(n > 0, lambda m: ONES * m, lambda m: ONES, n),
    "a constant of it": lambda n: fad.stop_gradient(n) * ONES * n,
}  # fmt: skip


def _augmented(y, n):
    y = y * n
    y += n
    return y


def _assigned(y, n):
    y[0] = n
    y[1] = n * n
    return y


TRANSFORMS = {
    "value_and_grad": lambda f: lambda n: fad.value_and_grad(f)(n)[0],
    "vjp": lambda f: lambda n: fad.vjp(f, n)[0],
    "jvp": lambda f: lambda n: fad.jvp(f, (n,), (1.0,))[0],
    "linearize": lambda f: lambda n: fad.linearize(f, n)[0],
    "jet": lambda f: lambda n: fad.jet(f, (n,), ((1.0,),))[0],
    "jit": fad.jit,
}


@each("inner", TRANSFORMS)
@each("outer", [*TRANSFORMS, None])
@pytest.mark.parametrize("program", PROGRAMS)
def test_a_value_has_the_dtype_of_the_plain_run(program, inner, outer):
    def f(n):
        return np.sum(PROGRAMS[program](n))

    run = TRANSFORMS[inner](f)
    run = run if outer is None else TRANSFORMS[outer](run)
    with np.errstate(all="ignore"):
        wanted, got = f(0.5), run(0.5)
    assert got.dtype == np.asarray(wanted).dtype
    np.testing.assert_allclose(got, wanted, rtol=1e-3)
    assert type(got) in (np.float16, np.float32, np.float64, np.ndarray)


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_gradient_of_a_number_is_a_float64(program):
    def f(n):
        return np.sum(PROGRAMS[program](n))

    for g in (fad.grad(f)(0.5), fad.jit(fad.grad(f))(0.5), fad.grad(fad.jit(f))(0.5), fad.jacrev(f)(0.5)):
        assert (g.dtype, g.shape) == (np.float64, ())


def test_the_gradient_of_a_complex_number_is_a_complex128():
    for f in (lambda z: np.sum(np.abs(z * ONES) ** 2), lambda z: abs(z * 2 + 1) ** 2):
        value, g = fad.value_and_grad(f)(1 + 2j)
        assert value.dtype == f(1 + 2j).dtype if hasattr(f(1 + 2j), "dtype") else value.dtype == np.float64
        assert type(g) is np.complex128


def test_an_array_has_its_own_dtype_in_a_gradient_beside_a_number():
    f = lambda n, x: np.sum(n * x * x)
    value, (dn, dx) = fad.value_and_grad(f, argnums=(0, 1))(0.5, ONES)
    assert (value.dtype, type(dn), dx.dtype) == (np.float32, np.float64, np.float32)


def test_the_gradient_of_a_float32_scalar_beside_a_number_is_a_float32():
    for f in (lambda x, n: x * n, lambda x, n: n - x, lambda x, n: n / x, lambda x, n: x**n, np.arctan2, np.maximum):
        value, (dx, dn) = fad.value_and_grad(f, argnums=(0, 1))(np.float32(0.5), 0.25)
        assert (type(value), type(dx), type(dn)) == (np.float32, np.float32, np.float64)
        dx, dn = fad.jit(fad.grad(f, argnums=(0, 1)))(np.float32(0.5), 0.25)
        assert (dx.dtype, dn.dtype) == (np.float32, np.float64)


def test_an_integer_beside_single_precision_stays_one_with_allow_int():
    value, (dx, dn) = fad.value_and_grad(lambda x, n: np.sum(x * n), argnums=(0, 1), allow_int=True)(ONES, 3)
    assert (value.dtype, dx.dtype, dn) == (np.float32, np.float32, 0)


def test_what_a_transform_hands_out_is_no_python_number():
    value, g = fad.value_and_grad(lambda n: n)(0.5)
    assert (value * ONES).dtype == (g * ONES).dtype == np.float64
    (value, aux), _ = fad.value_and_grad(lambda n: (n * n, n), has_aux=True)(0.5)
    assert type(value) is type(aux) is np.float64
    assert type(fad.jvp(lambda n: n + n, (0.5,), (1.0,))[0]) is np.float64


def test_a_traced_number_is_an_instance_of_float_and_of_no_array():
    seen = []
    fad.grad(lambda n: seen.append((n.__class__, isinstance(n, float), isinstance(n, np.ndarray))) or n)(0.5)
    assert seen == [(float, True, False)]


LISTS = {
    "an array of a list": lambda x: np.array([v * v for v in x.tolist()]),
    "a product with an element of a list": lambda x: x * x.tolist()[1],
    "Python's arithmetic of a list": lambda x: x * sum(x.tolist()) ** 2,
    "NumPy's function of an element": lambda x: x * np.sin(x.tolist()[1]),
    "the list of a number": lambda x: x * np.sum(x).tolist(),
}


@each("dtype", ["f2", "f4", "f8", "c8"])
@pytest.mark.parametrize("program", LISTS)
def test_elements_of_a_list_are_python_numbers(program, dtype):
    x = np.array([0.5, 1.5, 2.0], dtype)
    with np.errstate(all="ignore"):
        wanted = LISTS[program](x)
        for got in (
            fad.vjp(LISTS[program], x)[0],
            fad.jvp(LISTS[program], (x,), (x,))[0],
            fad.jit(LISTS[program])(x),
            fad.jit(lambda x: fad.vjp(LISTS[program], x)[0])(x),
            fad.vjp(lambda x: fad.jvp(LISTS[program], (x,), (x,))[0], x)[0],
        ):
            assert got.dtype == wanted.dtype
            np.testing.assert_allclose(got, wanted, rtol=8 * np.finfo(dtype).eps)
        assert fad.grad(lambda x: np.sum(np.abs(LISTS[program](x))))(x).dtype == dtype


@each("choose", [np.maximum, np.minimum, np.fmax, np.fmin])
@each("swapped", [False, True])
def test_a_number_chosen_beside_a_narrower_array_has_its_derivative(choose, swapped):
    y = np.array([0.2, 0.5, 0.962, -1.0], np.float32)
    f = lambda z: np.sum(choose(z + 1, y) if swapped else choose(y, z + 1))
    chosen = float(np.sum(choose(y, np.float32(0.946)) == np.float32(0.946)))
    for derivative in (fad.grad(f), fad.jit(fad.grad(f)), lambda z: fad.jvp(f, (z,), (1.0,))[1]):
        assert derivative(-0.054) == chosen > 0


@each("compare", [operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge])
@each("other", [np.array([0.1, 0.3], "f4"), np.float32(0.1), np.float64(0.1), 0.1, 0.2, 1])
def test_a_number_compares_as_pythons_does(compare, other):
    found = []

    def f(z):
        found.extend([np.asarray(compare(z, other)).tolist(), np.asarray(compare(other, z)).tolist()])
        return z * 2.0

    fad.grad(f)(0.1)
    assert found == [np.asarray(compare(0.1, other)).tolist(), np.asarray(compare(other, 0.1)).tolist()]


@pytest.mark.parametrize(
    "f", [lambda v: np.array([2.0 * x for x in v.tolist()]), lambda v: v.sum().item() * v[0].item()], ids=("list", "x")
)
def test_python_numbers_of_a_batch_are_a_batch_under_jit(f):
    x = np.array([[0.1, 0.2], [0.3, 0.5]])
    fast = fad.jit(fad.vmap(f))
    for rows in (x, x, x[:1]):
        np.testing.assert_allclose(fast(rows), [f(row) for row in rows])


REAL = np.array([2.0, -3.0])


@each("transform", ["jit", "jvp", "vjp", "jet", "jitted jvp"])
@each("compute", [operator.add, operator.sub, operator.mul, operator.truediv, operator.pow])
def test_a_complex_number_of_pythons_before_a_scalar_of_double_precision_stays_pythons(compute, transform):
    """To Python's complex numbers it is a float; after it, or beside a scalar of another dtype, NumPy's rules hold."""

    def f(x):
        single = x.astype("f4")
        return compute(1j, x[0]) * ONES, compute(x[0], 1j) * ONES, compute(1j, single[0]) * x, compute(1j, x[:1])

    run = {
        "jit": fad.jit(f),
        "jvp": lambda x: fad.jvp(f, (x,), (x,))[0],
        "vjp": lambda x: fad.vjp(f, x)[0],
        "jet": lambda x: fad.jet(f, (x,), ((x,),))[0],
        "jitted jvp": lambda x: fad.jit(fad.jvp, static_argnums=0)(f, (x,), (x,))[0],
    }[transform]
    for found, wanted in zip(run(REAL), f(REAL), strict=True):
        assert found.dtype == wanted.dtype
        np.testing.assert_allclose(found, wanted, rtol=1e-6)


@each("compute", [operator.add, operator.sub, operator.mul, operator.truediv, operator.pow])
@each("traced", [False, True])
def test_pythons_complex_number_and_a_scalar_are_a_number_of_pythons_under_jit(compute, traced):
    f = (lambda x, z: compute(z, x[0])) if traced else (lambda x, z: compute(1j, x[0]))
    fast = fad.jit(f)
    for x in (REAL, REAL, 2 * REAL):
        assert type(fast(x, 1j)) is complex
        np.testing.assert_allclose(fast(x, 1j), f(x, 1j), rtol=1e-14)
    if compute is operator.truediv:
        with pytest.raises(ZeroDivisionError):
            fast(0 * REAL, 1j)


ASKED = {
    "comparisons are counted": lambda v: ((v > 1) + (v < 5) + (v >= 1)) * v,
    "a comparison is added to a boolean": lambda v: ((v == v) + True) * v,
    "sum counts comparisons": lambda v: sum([v > k for k in range(3)]) * v,
    "rounded as Python rounds": lambda v: (round(v, 1) + round(v * 1.5, np.int64(2)) + v.__round__(2)) * v,
}
AROUND = {
    "grad": fad.grad,
    "jitted grad": lambda f: fad.jit(fad.grad(f)),
    "jvp": lambda f: lambda v: fad.jvp(f, (v,), (1.0,))[1],
    "jvp of grad": lambda f: lambda v: fad.jvp(lambda w: fad.vjp(f, w)[1](1.0)[0], (v,), (1.0,))[0],
    "jet": lambda f: lambda v: fad.jet(f, (v,), ((1.0,),))[1][0],
}


@each("around", AROUND)
@pytest.mark.parametrize("name", ASKED)
def test_what_is_asked_of_a_number_is_answered_as_python_does(name, around):
    f = ASKED[name]
    for v in (2.3, 0.45, -1.75, 2.3):
        np.testing.assert_allclose(AROUND[around](f)(v), f(v) / v, rtol=1e-14)


def test_numpys_comparison_of_a_number_is_numpys_boolean():
    f = lambda v: (np.greater(v, 1) + np.less(v, 5)) * v
    assert fad.grad(f)(2.3) == 1.0 == f(1.0 + 1e-9) - 1e-9
