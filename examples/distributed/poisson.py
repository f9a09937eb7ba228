"""Fit a coefficient of a linear system whose unknowns are divided over ranks: mpiexec -n 2 python
examples/distributed/poisson.py

A chain of springs is held at both ends. Its displacements solve a linear system, by conjugate
gradients over all ranks; the stiffness is found by Newton's method, with exact first and second derivatives.
"""

import numpy as np

import fad
from fad import distributed as D


def solve(comm, n=48):
    each = n // comm.size
    place = np.arange(int(comm.rank) * each, (int(comm.rank) + 1) * each)
    load = np.sin(np.pi * (place + 1) / (n + 1))

    def matvec(x, k):
        y = D.halo(x, comm=comm)
        return 0.1 * x + k * (2.0 * x - y[2:] - y[:-2])

    def displacement(k):
        return D.cg(matvec, load, k, comm=comm, tol=1e-12)

    measured = displacement(2.5)
    misfit = D.spmd(lambda k: comm.all_reduce(np.sum((displacement(k) - measured) ** 2)), comm, replicated=0)
    k = 1.8
    for _ in range(8):
        k = k - fad.grad(misfit)(k) / fad.grad(fad.grad(misfit))(k)
    return k


def main():
    comm = D.init()
    k = solve(comm)
    if comm.rank == 0:
        print(f"stiffness {k:.9f}, of which the measurement was made with 2.5, on {comm.size} ranks")


if __name__ == "__main__":
    main()
