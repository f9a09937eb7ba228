"""Find the conductivity of a plate from its temperatures: mpiexec -n 2 python examples/distributed/heat.py

The plate is cut in strips, one per rank, and each step of the 2-D heat equation exchanges one row with each neighbour.
The gradient of the misfit by the conductivity of every cell comes by the same messages, backwards.
"""

import argparse

import numpy as np

import fad
from fad import distributed as D


def simulate(k, u, steps, comm):
    """Return the temperatures after explicit steps of the heat equation with conductivity k, fixed to 0 at the rim."""
    k = D.halo(k, comm=comm)
    across = 0.5 * (k[1:-1, 1:] + k[1:-1, :-1])
    along = 0.5 * (k[1:] + k[:-1])
    for _ in range(steps):
        v = D.halo(u, comm=comm)
        flux = along * (v[1:] - v[:-1])
        side = across * (u[:, 1:] - u[:, :-1])
        side = np.pad(side, ((0, 0), (1, 1)))
        u = u + 0.2 * (flux[1:] - flux[:-1] + side[:, 1:] - side[:, :-1])
    return u


def plate(n, comm):
    """Return this rank's strip of the true conductivity and of the first temperatures."""
    rows = np.arange(int(comm.rank) * n // comm.size, (int(comm.rank) + 1) * n // comm.size)
    y, x = (rows[:, None] + 0.5) / n, (np.arange(n) + 0.5) / n
    spot = (x - 0.6) ** 2 + (y - 0.4) ** 2 < 0.04
    return np.where(spot, 0.4, 1.0), np.sin(3 * np.pi * x) ** 2 * np.sin(2 * np.pi * y) ** 2


def solve(comm, n=32, steps=20, iterations=60):
    true, start = plate(n, comm)
    measured = simulate(true, start, steps, comm)

    def misfit(k):
        return comm.all_reduce(np.sum((simulate(k, start, steps, comm) - measured) ** 2))

    step = fad.jit(fad.value_and_grad(D.spmd(misfit, comm, replicated=())))
    k, m, v, values = np.full_like(true, 0.8), 0.0, 0.0, []
    for i in range(1, iterations + 1):  # Adam, on each rank's strip
        value, g = step(k)
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        k = k - 0.03 * (m / (1 - 0.9**i)) / (np.sqrt(v / (1 - 0.999**i)) + 1e-12)
        values.append(float(value))
    return values, k


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cells", type=int, default=32)
    args = parser.parse_args()
    comm = D.init()
    values, _ = solve(comm, args.cells)
    if comm.rank == 0:
        print(f"misfit {values[0]:.3e} at first, {values[-1]:.3e} after {len(values)} steps, on {comm.size} ranks")


if __name__ == "__main__":
    main()
