"""A linear function of several vectors at once gives what it gives for each, and leaves out what is zero."""

import numpy as np
import pytest

import fad
from fad.sparse import directions
from fad.sparse.directions import NotByDirections, apply, stack

RNG = np.random.default_rng(0)
X, W = RNG.normal(size=(3, 4)), RNG.normal(size=(4, 5))
ROWS = np.array([2, 0, 2, 1, 1])

LINEAR = {
    "sums and multiples": lambda x, y: [2.0 * x - y[:3, :4] / 3, -x + x * X],
    "of other shapes": lambda x, y: [x * np.ones((2, 1, 4)), y[:, 0] + x, np.float64(2.0) * y],
    "moved": lambda x, y: [x.T, x[1:, ::-1], y.reshape(2, 2, 5), np.concatenate([x, y[:3, 1:]]), np.roll(y, 1, 0)],
    "gathered and added up": lambda x, y: [x[ROWS], np.bincount(ROWS, y[0], 4), np.sum(x, axis=1), np.cumsum(y, 1)],
    "by a matrix": lambda x, y: [x @ W, W.T @ y, np.einsum("ij,kj->ki", x, W.T)],
    "chosen": lambda x, y: [np.where(X > 0, x, 0.0), np.where(X > 0, 0.0, x), np.where(X > 0, x, y[:3, 1:])],
    "written": lambda x, y: [_written(x)],
    "constant": lambda x, y: [np.zeros(3), x[0]],
    "one number": lambda x, y: [x[0, 0], y.sum(), x[1, 1] * 2.0 + y[0, 0]],
}


def _written(x):
    out = fad.numpy.at(np.zeros((3, 4)))[1].set(x[0])
    return fad.numpy.at(out)[ROWS].add(x[ROWS[::-1]])


def _seeds():
    one = np.zeros((3, 1))
    one[1] = 1.0
    xs = [None, np.ones((1, 1)), one, RNG.normal(size=(3, 4)), None]
    ys = [RNG.normal(size=(4, 5)), None, np.ones((1, 5)), None, None]
    return xs, ys


@pytest.mark.parametrize("name", LINEAR)
def test_each_vector_gives_what_it_gives_alone(name):
    f, (xs, ys) = LINEAR[name], _seeds()
    parts, _ = apply(f, [xs, ys], [np.zeros((3, 4)), np.zeros((4, 5))])
    assert [ts[-1] is None or not np.any(ts[-1]) for _, _, ts in parts] == [True] * len(parts)
    rows = np.concatenate([stack(parts, 0, 2), stack(parts, 2, 5)])
    for row, x, y in zip(rows, xs, ys, strict=True):
        full = [np.broadcast_to(0.0 if t is None else t, shape) for t, shape in ((x, (3, 4)), (y, (4, 5)))]
        np.testing.assert_allclose(row, np.concatenate([np.reshape(z, -1) for z in f(*full)]), rtol=1e-13, atol=1e-14)


def test_what_is_zero_is_not_computed():
    def f(x, y):
        return [x[0] * X[0], y[:2] * 2.0 - y[1:3] * 3.0, x[1:] * X[1:]]

    first = np.zeros((3, 1))
    first[0] = 1.0
    parts, _ = apply(f, [[first, None], [None, np.ones((1, 1))]], [X, X])
    assert [[t is None for t in ts] for _, _, ts in parts] == [[False, True], [True, False], [True, True]]
    assert parts[1][2][1].size == 1


@pytest.mark.parametrize("f", [
    lambda x: [x if x[0, 0] > 0 else 2.0 * x], lambda x: [x * float(x[0, 0])],
    lambda x: [sum([x * k for k in range(5000)])], lambda x: [np.asarray(x)],
])  # fmt: skip
def test_what_asks_for_numbers_and_loops_are_left_to_vmap(f):
    with pytest.raises(NotByDirections):
        apply(f, [[np.ones((3, 4)), None]], [X])


I, J = RNG.integers(0, 6, (2, 20))
POINT = RNG.normal(size=6)
FUNCTIONS = {
    "a loop": lambda x: fad.scan(lambda c, a: (0.5 * c + a, c * a), x[0], x[I])[1] * x[J],
    "infinite slopes that are not chosen": lambda x: np.where(x[I] > 0, np.sqrt(np.abs(x[I])), 0.0) * x[J],
    "the largest": lambda x: np.maximum(x[I], x[J]) * np.sort(x)[I],
    "complex on the way": lambda x: np.real(np.exp(1j * x[I]) * x[J]),
    "repeated singular values": lambda x: np.append(np.linalg.cond(x[:4] + 3 * np.eye(4)), x[I]) * 2.0,
    "single precision": lambda x: np.sin(x[I].astype(np.float32)) * x[J].astype(np.float32),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_derivatives_by_themselves_are_the_dense_ones(name, by_themselves):
    f = FUNCTIONS[name]
    for mode in ("fwd", "rev"):
        jacobian = fad.sparse.jacobian(f, mode=mode)
        for x in (POINT, np.round(POINT, 0), POINT + 1):
            with np.errstate(divide="ignore", invalid="ignore"):
                found, wanted = jacobian(x).toarray(), fad.jacobian(f)(x)
            tolerance = 1e-5 if wanted.dtype == np.float32 else 1e-12
            np.testing.assert_allclose(found, wanted, rtol=tolerance, atol=tolerance)


def test_what_gives_up_on_the_way_is_computed_by_vmap(by_themselves, monkeypatch):
    monkeypatch.setattr(directions, "_MANY", 3)
    for mode in ("fwd", "rev"):
        jacobian = fad.sparse.jacobian(FUNCTIONS["a loop"], mode=mode)
        for x in (POINT, POINT + 1):
            np.testing.assert_allclose(jacobian(x).toarray(), fad.jacobian(FUNCTIONS["a loop"])(x), rtol=1e-12)
