"""Work divided over ranks: batches, Jacobians, domains with halos, linear systems."""

import numpy as np
import pytest

import fad
from fad import distributed as D


def on_ranks(fun, size=2):
    return D.run_ranks(fun, size, timeout=60)


def part(comm, x):
    n = len(x) // comm.size
    return x[int(comm.rank) * n : (int(comm.rank) + 1) * n]


@pytest.mark.parametrize("size", [1, 2, 3])
def test_map_gives_per_example_gradients_of_a_batch_of_any_length(size):
    x, w = np.linspace(0.1, 1.0, 7), np.array([0.3, 0.7])
    f = lambda x: fad.grad(lambda w: np.sum(np.sin(w * x)))(w)

    def run(comm):
        seen = D.map(lambda x: {"g": f(x), "n": x * 2.0}, x, comm=comm, chunk_size=2)
        # within a derivative over ranks
        g = D.grad(lambda x: np.sum(D.map(lambda x: np.sin(x) * x, x, comm=comm)), comm)(x)
        return seen, g

    for seen, g in on_ranks(run, size):
        np.testing.assert_allclose(seen["g"], fad.vmap(f)(x))
        np.testing.assert_allclose(seen["n"], 2.0 * x)
        np.testing.assert_allclose(g, np.sin(x) + x * np.cos(x))


def test_the_columns_of_a_jacobian_are_computed_on_all_ranks():
    f = lambda x: np.tanh(x[:, None] * x).sum(axis=0)[:2]
    x = np.linspace(0.1, 1.0, 5).reshape(5)
    for found in on_ranks(lambda comm: D.jacobian(f, comm)(x), 3):
        np.testing.assert_allclose(found, fad.jacobian(f)(x))


def step(u, width):
    return u[width:-width] + 0.1 * (u[2 * width :] - 2.0 * u[width:-width] + u[: -2 * width])


@pytest.mark.parametrize("wrap", [False, True])
@pytest.mark.parametrize("size", [1, 2, 4])
def test_a_field_with_halos_moves_as_on_one_rank_and_so_does_its_gradient(size, wrap):
    u0 = np.random.default_rng(0).normal(size=(12, 3))

    def whole(k, u):
        for _ in range(5):
            ends = (u[-1:], u[:1]) if wrap else (np.full((1, 3), 0.5),) * 2
            u = step(np.concatenate([ends[0], np.sin(k * u), ends[1]]) if not wrap else
                     np.concatenate([np.sin(k * u)[-1:], np.sin(k * u), np.sin(k * u)[:1]]), 1)  # fmt: skip
        return np.sum(u**2)

    def run(comm):
        def loss(k, u):
            for _ in range(5):
                u = step(D.halo(np.sin(k * u), wrap=wrap, fill=0.5, comm=comm), 1)
            return comm.all_reduce(np.sum(u**2))

        f = fad.value_and_grad(D.spmd(loss, comm, replicated=0), argnums=(0, 1))
        j = fad.jit(f)
        return [f(0.7, part(comm, u0)), j(0.7, part(comm, u0)), j(0.7, part(comm, u0))]

    value, (gk, gu) = fad.value_and_grad(whole, argnums=(0, 1))(0.7, u0)
    for r, found in enumerate(on_ranks(run, size)):
        for v, (k, u) in found:
            np.testing.assert_allclose(v, value)
            np.testing.assert_allclose(k, gk)
            np.testing.assert_allclose(u, gu[r * 12 // size : (r + 1) * 12 // size], atol=1e-14)


def test_halos_of_another_axis_and_width():
    x = np.arange(24.0).reshape(2, 12)
    padded = np.pad(x, ((0, 0), (2, 2)))
    for r, y in enumerate(on_ranks(lambda c: D.halo(x[:, 4 * c.rank : 4 * c.rank + 4], 2, axis=1, comm=c), 3)):
        np.testing.assert_array_equal(y, padded[:, 4 * r : 4 * r + 8])


@pytest.mark.parametrize("size", [1, 2, 3])
def test_a_linear_system_over_ranks_is_solved_and_differentiated_as_on_one(size):
    n = 12
    b = np.random.default_rng(0).normal(size=n)

    def matrix(k):
        return np.diag(1.0 + k * np.arange(1.0, n + 1)) + k * (2 * np.eye(n) - np.eye(n, k=1) - np.eye(n, k=-1))

    whole = lambda k, b: np.sum(np.sin(np.linalg.solve(matrix(k), b)))

    def run(comm):
        def loss(k, b):
            place = part(comm, np.arange(1.0, n + 1))

            def matvec(x, k):
                y = D.halo(x, comm=comm)
                return (1.0 + k * place) * x + k * (2.0 * x - y[2:] - y[:-2])

            return comm.all_reduce(np.sum(np.sin(D.cg(matvec, b, k, comm=comm, tol=1e-13))))

        f = D.spmd(loss, comm, replicated=0)
        mine = part(comm, b)
        found = fad.value_and_grad(f, argnums=(0, 1))(0.8, mine)
        slope = fad.jvp(lambda k: f(k, mine), (0.8,), (1.0,))[1]
        bent = fad.grad(fad.grad(f))(0.8, mine)
        j = fad.jit(fad.value_and_grad(f, argnums=(0, 1)))
        j(0.8, mine)
        return found, slope, bent, j(0.8, mine)

    value, (gk, gb) = fad.value_and_grad(whole, argnums=(0, 1))(0.8, b)
    for r, (found, slope, bent, again) in enumerate(on_ranks(run, size)):
        for v, (k, mine) in (found, again):
            np.testing.assert_allclose(v, value, rtol=1e-9)
            np.testing.assert_allclose(k, gk, rtol=1e-8)
            np.testing.assert_allclose(mine, gb[r * n // size : (r + 1) * n // size], rtol=1e-8, atol=1e-11)
        np.testing.assert_allclose(slope, gk, rtol=1e-8)
        np.testing.assert_allclose(bent, fad.grad(fad.grad(whole))(0.8, b), rtol=1e-7)


@pytest.mark.parametrize("size", [1, 2, 3])
def test_linear_systems_over_ranks_are_batched_each_until_it_has_converged(size):
    n, e = 12, 12 // size
    b = np.random.default_rng(0).normal(size=n)
    ks, bs = np.array([0.2, 0.8, 3.0]), np.stack([b, 1e8 * b, 0 * b])

    def solve(k, b):
        a = np.diag(1.0 + k * np.arange(1.0, n + 1)) + k * (2 * np.eye(n) - np.eye(n, k=1) - np.eye(n, k=-1))
        return np.linalg.solve(a, b)

    def close(found, expected):
        np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-9)

    def run(comm):
        place, rank = part(comm, np.arange(1.0, n + 1)), int(comm.rank)
        mine, rows = part(comm, b), np.stack([part(comm, x) for x in bs])

        def cg(b, k):
            def matvec(x, k):
                y = D.halo(x, comm=comm)
                return (1.0 + k * place) * x + k * (2.0 * x - y[2:] - y[:-2])

            return D.cg(matvec, b, k, comm=comm, tol=1e-13)

        f = D.spmd(lambda k, b: comm.all_reduce(np.sum(np.tanh(cg(b, k)))), comm, replicated=0)
        whole = lambda k, b: np.sum(np.tanh(solve(k, b)))
        close(fad.vmap(cg, (0, None))(rows, 0.8), fad.vmap(solve, (None, 0))(0.8, bs)[:, rank * e : (rank + 1) * e])
        close(fad.vmap(fad.grad(f))(ks, rows), fad.vmap(fad.grad(whole))(ks, bs))
        close(fad.vmap(fad.grad(f), (0, None))(ks, mine), fad.vmap(fad.grad(whole), (0, None))(ks, b))
        close(fad.hessian(f)(0.8, mine), fad.hessian(whole)(0.8, b))
        compiled = fad.jit(fad.vmap(fad.grad(f)))
        for factor in (1.0, 2.0):
            close(compiled(factor * ks, rows), fad.vmap(fad.grad(whole))(factor * ks, bs))

        def of_one_rank(w, b):  # the right-hand side depends on w[0] on rank 0 alone, which alone reads the solution
            w = comm.varying(w)
            x = comm.varying(cg(b * (w[0] if rank == 0 else 1.0), w[1] + w[2] ** 2))
            return comm.all_reduce(np.sum(np.tanh(x)) if rank == 0 else np.sum(b))

        def of_first_part(w, b):
            x = solve(w[1] + w[2] ** 2, b * np.where(np.arange(n) < e, w[0], 1.0))
            return np.sum(np.tanh(x[:e])) + np.sum(b[e:])

        g, w = D.spmd(of_one_rank, comm, replicated=0), np.linspace(0.5, 1.0, 3)
        close(fad.hessian(g)(w, mine), fad.hessian(of_first_part)(w, b))
        ws = np.stack([w, 2 * w])
        close(fad.vmap(fad.grad(g), (0, None))(ws, mine), fad.vmap(fad.grad(of_first_part), (0, None))(ws, b))

    on_ranks(run, size)


def test_a_system_that_does_not_converge_is_an_error():
    with pytest.raises(fad.errors.DerivativeError, match="did not converge"):
        D.cg(lambda x, d: d * x, np.ones(8), np.arange(1.0, 9.0), maxiter=3)
