"""What is not used of a jitted function's results has no part in the derivative, though a slope in it be infinite."""

import numpy as np
import pytest

import fad

X = np.array([0.0, 1.0, 4.0])
MASK = np.array([0.0, 1.0, 1.0])
POINTS = np.array([[0.0, 0.1], [1.0, 0.3], [0.2, 2.0]])


def double(r):
    return 2.0 * r


def norms(d):
    return np.sqrt(np.sum(d * d, axis=-1))


def distances(x):
    return norms(x[:, None] - x[None, :])


# programs of x and a function, which is jitted or not
AROUND = {
    "a mask after": (np.sqrt, lambda f, x: np.sum(f(x) * MASK)),
    "a comparison after": (np.sqrt, lambda f, x: np.sum((x > 0) * f(x))),
    "a slice": (np.sqrt, lambda f, x: np.sum(f(x)[1:])),
    "a choice": (np.sqrt, lambda f, x: np.sum(np.where(x > 0, f(x), 0.0))),
    "an index by a mask": (np.sqrt, lambda f, x: np.sum(f(x)[x > 0])),
    "a product": (np.sqrt, lambda f, x: MASK @ f(x)),
    "a root before": (double, lambda f, x: np.sum(f(np.sqrt(x)) * MASK)),
    "a root before a slice": (double, lambda f, x: np.sum(f(np.sqrt(x))[1:])),
}
root = fad.jit(np.sqrt)
AFTER_ANOTHER = {  # what another jitted call leaves out
    "a slice in a call": (lambda r: np.sum(r[1:] ** 2), lambda f, x: f(root(x))),
    "a choice in a call": (lambda r: np.sum(np.where(MASK > 0, r, 0.0) ** 2), lambda f, x: f(2.0 * root(x))),
    "a mask in a call": (lambda r, m: np.sum(np.exp(-r * m)), lambda f, x: f(root(x), MASK)),
    "a product in a call": (lambda r, m: r @ m, lambda f, x: f(root(x), MASK)),
}
OF_POINTS = {
    "distances of others": (distances, lambda f, x: np.sum(f(x) * (1.0 - np.eye(3)))),
    "distances above the diagonal": (distances, lambda f, x: np.sum(np.triu(f(x), 1) ** 3)),
    "norms of differences": (norms, lambda f, x: np.sum((f(x[:, None] - x[None, :]) * (1.0 - np.eye(3)))[0])),
}
PROGRAMS = {name: (*p, X) for name, p in {**AROUND, **AFTER_ANOTHER}.items()}
PROGRAMS.update({name: (*p, POINTS) for name, p in OF_POINTS.items()})


def push_all(g):
    return lambda x: np.array([fad.jvp(g, (x,), (t.reshape(x.shape),))[1] for t in np.eye(x.size)]).reshape(x.shape)


def follow_curves(g):
    zero = lambda t: np.zeros_like(t)
    series = lambda x, t: ([t, zero(t)],)
    return lambda x: np.array([
        fad.jet(g, (x,), series(x, t.reshape(x.shape)))[1][0] for t in np.eye(x.size)
    ]).reshape(x.shape)  # fmt: skip


HOW = {
    "grad": fad.grad, "jacfwd": fad.jacfwd, "jvp": push_all, "hessian": fad.hessian, "jet": follow_curves,
    "reverse over reverse": lambda g: fad.jacrev(fad.grad(g)),
    "linearize": lambda g: lambda x: fad.linearize(g, x)[1](np.cos(x)),
    "vmap": lambda g: lambda x: fad.vmap(fad.grad(g))(np.stack([x, x])),
    "jit": lambda g: fad.jit(fad.grad(g)),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore:(invalid value|divide by zero) encountered:RuntimeWarning")
@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_jitted_call_absorbs_what_the_function_itself_does(name, how):
    f, program, x = PROGRAMS[name]
    wanted = HOW[how](lambda x: program(f, x))(x)
    assert np.isfinite(wanted).all()
    fast = fad.jit(f)
    found = HOW[how](lambda x: program(fast, x))
    for _ in range(3):
        np.testing.assert_allclose(found(x), wanted, rtol=1e-12, atol=1e-14)


@pytest.mark.filterwarnings("ignore:(invalid value|divide by zero) encountered:RuntimeWarning")
def test_a_zero_that_is_computed_still_meets_an_infinite_slope_in_a_jitted_call():
    root = fad.jit(np.sqrt)
    assert np.isnan(fad.grad(lambda x: np.sum(root(x) ** 2))(X)[0])
    assert np.isnan(fad.grad(lambda x: np.sum(root(x) * (x * MASK)))(X)[0])


def test_a_jitted_call_with_finite_slopes_is_not_run_again():
    runs = []

    def f(x):
        runs.append(1)
        return np.sqrt(x) * 2.0

    fast = fad.jit(f)
    slope = fad.grad(lambda x: np.sum(fast(x)[1:] * MASK[1:]))
    for _ in range(4):
        np.testing.assert_allclose(slope(X + 1.0), [0.0, 0.5**0.5, 0.2**0.5])
    assert len(runs) == 1
    with np.errstate(all="ignore"):
        for _ in range(4):
            np.testing.assert_allclose(slope(X), [0.0, 1.0, 0.5])
    assert len(runs) == 1


@pytest.mark.filterwarnings("ignore:(invalid value|divide by zero) encountered:RuntimeWarning")
def test_what_a_jitted_call_leaves_out_of_a_checkpoint_has_no_part():
    later = fad.jit(lambda r: np.sum(r[1:] ** 2))
    np.testing.assert_allclose(fad.grad(lambda x: later(fad.checkpoint(np.sqrt)(x)))(X), [0.0, 1.0, 1.0])
