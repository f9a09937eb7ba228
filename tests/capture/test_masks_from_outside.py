"""Captured loops that read and write by masks which no step changes: so are their derivatives, and batches of them."""

import numpy as np
import pytest
from capture.agreement import agree, report_of

import fad

MASK = np.array([True, False, True, True, False, False])
GRID = np.arange(6).reshape(3, 2) % 3 == 1
X = np.linspace(0.2, 1.1, 6)


def sums_of_a_part(x):
    for _ in range(30):
        x = x - 0.1 * x * np.sum(x[MASK] ** 2)
    return np.sum(x)


def walls(x):
    u = x.copy()
    for _ in range(30):
        u[~MASK] = 0.1 * u[0]
        u[MASK] *= np.cos(u[MASK])
    return np.sum(u**2)


def places_and_masks(x):
    u = x.reshape(3, 2).copy()
    for _ in range(30):
        u[GRID] = np.sin(u[GRID])
        u[MASK[:3], 1] += 0.01 * u[MASK[3:], 0]
    return np.sum(u**2)


def stops_when_a_part_is_small(x):
    for _ in range(100):
        if np.sum(x[MASK]) < 1.0:
            break
        x = 0.95 * x
    return np.sum(x**2)


PROGRAMS = [sums_of_a_part, walls, places_and_masks, stops_when_a_part_is_small]


@pytest.mark.parametrize("f", PROGRAMS)
def test_loops_by_masks_are_right_in_every_transform(f):
    assert all("captured" in what for what in report_of(f, X)[0])
    agree(f, X)


@pytest.mark.parametrize("f", PROGRAMS)
def test_their_derivatives_and_batches_are_loops_too(f):
    with fad.config.use(loops="capture"):
        for transformed, x in ((fad.grad(f), X), (fad.vmap(f), np.stack([X, X])), (fad.vmap(fad.grad(f)), X[None])):
            assert len(fad.make_graph(transformed)(x).equations) < 40


def test_a_mask_that_has_changed_is_seen():
    mask = MASK.copy()

    def f(x):
        for _ in range(30):
            x = x - 0.1 * x * np.sum(x[mask] ** 2)
        return np.sum(x)

    with fad.config.use(loops="capture"):
        slope = fad.jit(fad.grad(f))
        for _ in range(2):
            assert np.allclose(slope(X), fad.grad(f)(X), rtol=1e-12)
        mask[:] = ~mask
        for _ in range(2):
            assert np.allclose(slope(X), fad.grad(f)(X), rtol=1e-12)


def test_a_mask_of_another_shape_is_refused_in_numpys_words():
    def f(x):
        for _ in range(30):
            x = x - np.sum(x[np.ones(7, dtype=bool)])
        return np.sum(x)

    with fad.config.use(loops="capture"), pytest.raises(IndexError, match="boolean index did not match"):
        fad.jit(fad.grad(f))(X)
