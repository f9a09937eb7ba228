"""Five problems whose derivatives are sparse and whose functions gather: each written for fad, by hand and for CasADi.

Each is a `Problem`: ``derivative()`` makes the function of fad that is timed, ``by_hand()`` one that makes SciPy's
matrix from formulas or from a vmap of small derivatives, and ``casadi()`` one of CasADi. All three start from the
function and its data: what the formulas need beside these, as index arrays or a matrix of admittances, is made by
``by_hand()``, and a first call counts it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse
import scipy.spatial

import fad


@dataclass
class Problem:
    name: str
    size: str
    derivative: Callable
    args: tuple
    by_hand: Callable
    casadi: Callable | None = None


def _assemble(blocks: Any, places: Any, n: int) -> Any:
    """Add up the matrices of elements, as finite-element codes do."""
    rows = np.repeat(places, places.shape[1], axis=1).reshape(-1)
    columns = np.tile(places, (1, places.shape[1])).reshape(-1)
    return scipy.sparse.coo_array((blocks.reshape(-1), (rows, columns)), shape=(n, n)).tocsr()


def finite_elements(n: int) -> Problem:
    """Return the Hessian of the energy of a hyperelastic sheet on a Delaunay mesh of random points."""
    rng = np.random.default_rng(0)
    rest = rng.uniform(size=(n, 2))
    corners = scipy.spatial.Delaunay(rest).simplices
    edges = rest[corners[:, 1:]] - rest[corners[:, :1]]
    area = np.abs(np.linalg.det(edges)) / 2
    keep = area > 0.1 * np.mean(area)
    corners, area, inverse = corners[keep], area[keep], np.linalg.inv(edges[keep])
    start = rest + 1e-3 / np.sqrt(n) * rng.normal(size=rest.shape)

    def density(x, inverse, area):
        """Return the energy of one triangle, or of all: their axis comes last."""
        a, b = x[1] - x[0], x[2] - x[0]
        (p, q), (r, s) = inverse
        f, g = p * a[0] + q * b[0], r * a[0] + s * b[0]
        h, k = p * a[1] + q * b[1], r * a[1] + s * b[1]
        volume = np.log(np.abs(f * k - g * h))
        return area * (0.5 * (f * f + g * g + h * h + k * k - 2) - volume + volume**2)

    across = inverse.transpose(1, 2, 0)

    def energy(x):
        return np.sum(density(x.reshape(-1, 2)[corners].transpose(1, 2, 0), across, area))

    def find_places():
        return (2 * corners[:, :, None] + np.arange(2)).reshape(-1, 6)

    def by_hand():
        places, small = find_places(), fad.vmap(fad.hessian(density))

        def hessian(x):
            blocks = small(x.reshape(-1, 2)[corners], inverse, area)
            return _assemble(blocks.reshape(-1, 6, 6), places, x.size)

        return hessian

    def casadi():
        import casadi as ca

        x = ca.SX.sym("x", 2 * n)
        each = x[find_places().reshape(-1)].reshape((6, -1))  # a column for each triangle
        part = [[each[2 * i + j, :].T for j in range(2)] for i in range(3)]
        a, b = [[part[i][j] - part[0][j] for j in range(2)] for i in (1, 2)]
        (p, q), (r, s) = [[ca.DM(across[i, j]) for j in range(2)] for i in range(2)]
        f, g, h, k = p * a[0] + q * b[0], r * a[0] + s * b[0], p * a[1] + q * b[1], r * a[1] + s * b[1]
        volume = ca.log(ca.fabs(f * k - g * h))
        total = ca.sum1(ca.DM(area) * (0.5 * (f * f + g * g + h * h + k * k - 2) - volume + volume**2))
        return ca.Function("f", [x], [ca.hessian(total, x)[0]])

    return Problem("finite elements", f"{n} points", lambda: fad.sparse.hessian(energy), (start.reshape(-1),), by_hand,
                   casadi)  # fmt: skip


def graph_laplacian(n: int) -> Problem:
    """Return the Hessian of an energy of the edges of a graph in which a few nodes have very many."""
    rng = np.random.default_rng(1)
    i = np.minimum(n - 1, (n * rng.uniform(size=4 * n) ** 3).astype(int))
    j = rng.integers(0, n, 4 * n)
    i, j = i[i != j], j[i != j]
    x, target = rng.normal(size=n), rng.normal(size=n)

    def energy(x):
        return np.sum(np.sqrt(1 + (x[i] - x[j]) ** 2)) + 0.5 * np.sum((x - target) ** 2)

    def by_hand():
        def hessian(x):
            second = (1 + (x[i] - x[j]) ** 2) ** -1.5
            diagonal = 1 + np.bincount(i, second, n) + np.bincount(j, second, n)
            rows, columns = np.concatenate([i, j, np.arange(n)]), np.concatenate([j, i, np.arange(n)])
            entries = np.concatenate([-second, -second, diagonal])
            return scipy.sparse.coo_array((entries, (rows, columns)), (n, n)).tocsr()

        return hessian

    def casadi():
        import casadi as ca

        x = ca.SX.sym("x", n)
        total = ca.sum1(ca.sqrt(1 + (x[i] - x[j]) ** 2)) + 0.5 * ca.sumsqr(x - ca.DM(target))
        return ca.Function("f", [x], [ca.hessian(total, x)[0]])

    return Problem("graph Laplacian", f"{n} nodes", lambda: fad.sparse.hessian(energy), (x,), by_hand, casadi)


def bundle_adjustment(count: int) -> Problem:
    """Return the Jacobian of what cameras see of points."""
    rng = np.random.default_rng(2)
    n, m = max(4, count // 400), max(10, count // 5)
    cameras, points = 0.1 * rng.normal(size=(n, 9)), rng.normal(size=(m, 3))
    cameras[:, 5] -= 8.0
    i, j, seen = rng.integers(0, n, count), rng.integers(0, m, count), rng.normal(size=(count, 2))

    def project(camera, point, cross, stack):
        turn, shift = camera[:3], camera[3:6]
        x, y, z = [p + c + s for p, c, s in zip(point, cross(turn, point), shift, strict=True)]
        x, y = -x / z, -y / z
        square = x * x + y * y
        scale = (5.0 + camera[6]) * (1 + square * (camera[7] + camera[8] * square))
        return stack([x * scale, y * scale])

    def cross(a, b):
        return a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]

    def residual(camera, point, seen):
        return project(camera, point, cross, np.stack) - seen

    def residuals(cameras, points):
        return fad.vmap(residual)(cameras[i], points[j], seen)

    def find_columns():
        return np.concatenate([9 * i[:, None] + np.arange(9), 9 * n + 3 * j[:, None] + np.arange(3)], axis=1)

    def by_hand():
        columns, small = find_columns(), fad.vmap(fad.jacrev(residual, argnums=(0, 1)))

        def jacobian(cameras, points):
            blocks = np.concatenate(small(cameras[i], points[j], seen), axis=2)
            indices, indptr = np.repeat(columns, 2, axis=0).reshape(-1), 12 * np.arange(2 * count + 1)
            return scipy.sparse.csr_array((blocks.reshape(-1), indices, indptr), shape=(2 * count, 9 * n + 3 * m))

        return jacobian

    def casadi():
        import casadi as ca

        x = ca.SX.sym("x", 9 * n + 3 * m)
        each = x[find_columns().reshape(-1)].reshape((12, -1))
        parts = [each[k, :].T for k in range(12)]
        out = project(parts[:9], parts[9:], cross, lambda pair: ca.horzcat(*pair)) - ca.DM(seen)
        return ca.Function("f", [x], [ca.jacobian(ca.vec(out.T), x)])

    return Problem("bundle adjustment", f"{count} observations", lambda: fad.sparse.jacobian(residuals, (0, 1)),
                   (cameras, points), by_hand, casadi)  # fmt: skip


def power_flow(n: int) -> Problem:
    """Return the Jacobian of the balance of active and reactive power in a network."""
    rng = np.random.default_rng(3)
    near = np.maximum(0, np.arange(1, n) - 1 - rng.integers(0, 30, n - 1))
    i = np.concatenate([np.arange(1, n), rng.integers(0, n, n // 2)])
    j = np.concatenate([near, np.clip(i[n - 1 :] + rng.integers(1, 40, n // 2), 0, n - 1)])
    i, j = i[i != j], j[i != j]
    g, b = rng.uniform(0.5, 1.0, i.size), -rng.uniform(5.0, 9.0, i.size)
    angles, volts = 0.1 * rng.normal(size=n), 1 + 0.05 * rng.normal(size=n)

    def flows(a, c, v, w, cos, sin):
        real, imag = v * w * cos(a - c), v * w * sin(a - c)
        return (g * (v * v - real) - b * imag, g * (w * w - real) + b * imag,
                -b * (v * v - real) - g * imag, -b * (w * w - real) + g * imag)  # fmt: skip

    def balance(angles, volts):
        p, p_back, q, q_back = flows(angles[i], angles[j], volts[i], volts[j], np.cos, np.sin)
        active = np.bincount(i, p, n) + np.bincount(j, p_back, n)
        return np.concatenate([active, np.bincount(i, q, n) + np.bincount(j, q_back, n)])

    def by_hand():  # the formulas of MATPOWER's dSbus_dV
        ends = np.concatenate([i, j]), np.concatenate([j, i])
        admittance = scipy.sparse.coo_array((np.tile(g + 1j * b, 2), ends), (n, n)).tocsr()
        admittance = scipy.sparse.diags_array(admittance.sum(axis=1)).tocsr() - admittance
        diagonal = scipy.sparse.diags_array

        def jacobian(angles, volts):
            volt, phase = volts * np.exp(1j * angles), np.exp(1j * angles)
            current = admittance @ volt
            by_volts = diagonal(volt) @ (admittance @ diagonal(phase)).conj() + diagonal(np.conj(current) * phase)
            by_angles = 1j * diagonal(volt) @ (diagonal(current) - admittance @ diagonal(volt)).conj()
            return scipy.sparse.block_array(
                [[by_angles.real, by_volts.real], [by_angles.imag, by_volts.imag]], format="csr"
            )

        return jacobian

    def casadi():
        import casadi as ca

        x = ca.SX.sym("x", 2 * n)
        a, v = x[:n], x[n:]
        p, p_back, q, q_back = flows(a[i], a[j], v[i], v[j], ca.cos, ca.sin)
        to, back = [scipy.sparse.csc_matrix((np.ones(k.size), (k, np.arange(k.size))), (n, k.size)) for k in (i, j)]
        out = ca.vertcat(ca.DM(to) @ p + ca.DM(back) @ p_back, ca.DM(to) @ q + ca.DM(back) @ q_back)
        return ca.Function("f", [x], [ca.jacobian(out, x)])

    return Problem("power flow", f"{n} buses", lambda: fad.sparse.jacobian(balance, (0, 1)), (angles, volts), by_hand,
                   casadi)  # fmt: skip


def sparse_network(n: int) -> Problem:
    """Return the Jacobian of two sparse layers, in the weights of both."""
    rng = np.random.default_rng(4)
    degree = 4
    first, second = [np.sort((np.arange(n)[:, None] + rng.integers(-8, 9, (n, degree))) % n, axis=1) for _ in range(2)]
    x, weights, more = rng.normal(size=n), rng.normal(size=(n, degree)), rng.normal(size=(n, degree))

    def outputs(weights, more):
        hidden = np.tanh(np.sum(weights * x[first], axis=1))
        return np.tanh(np.sum(more * hidden[second], axis=1))

    def by_hand():
        rows, own, bounds = np.repeat(np.arange(n), degree), np.arange(n * degree), degree * np.arange(n + 1)

        def jacobian(weights, more):
            hidden = np.tanh(np.sum(weights * x[first], axis=1))
            out = np.tanh(np.sum(more * hidden[second], axis=1))
            slope = 1 - out * out
            entries = [(1 - hidden**2)[:, None] * x[first], slope[:, None] * more, slope[:, None] * hidden[second]]
            inner, outer, direct = [e.reshape(-1) for e in entries]
            inner = scipy.sparse.csr_array((inner, own, bounds), (n, n * degree))
            outer = scipy.sparse.coo_array((outer, (rows, second.reshape(-1))), (n, n)).tocsr()
            direct = scipy.sparse.csr_array((direct, own, bounds), (n, n * degree))
            return scipy.sparse.hstack([outer @ inner, direct], format="csr")

        return jacobian

    def casadi():
        import casadi as ca

        w = ca.SX.sym("w", 2 * n * degree)
        a = w[: n * degree].reshape((degree, n))
        b = w[n * degree :].reshape((degree, n))
        hidden = ca.tanh(ca.sum1(a * ca.DM(x[first].T)).T)
        out = ca.tanh(ca.sum1(b * hidden[second.reshape(-1)].reshape((degree, n))).T)
        return ca.Function("f", [w], [ca.jacobian(out, w)])

    return Problem("sparse network", f"{n} neurons a layer", lambda: fad.sparse.jacobian(outputs, (0, 1)),
                   (weights, more), by_hand, casadi)  # fmt: skip


PROBLEMS = (finite_elements, graph_laplacian, bundle_adjustment, power_flow, sparse_network)
