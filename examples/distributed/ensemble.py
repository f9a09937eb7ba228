"""Per-example gradients, an ensemble and a Jacobian, shared out over ranks:
mpiexec -n 2 python examples/distributed/ensemble.py
"""

import numpy as np

import fad
from fad import distributed as D


def model(w, x):
    return np.tanh(w[:4] @ x) * w[4]


def run(comm, members=20):
    key = fad.random.key(0)
    x, y = fad.random.normal(key, (50, 4)), fad.random.normal(fad.random.fold_in(key, 1), (50,))
    loss = lambda w, x, y: (model(w, x) - y) ** 2
    w = np.linspace(-1.0, 1.0, 5)
    each = D.map(lambda x, y: fad.grad(loss)(w, x, y), x, y, comm=comm)  # (50, 5)

    def train(start):
        whole = lambda w: np.mean(fad.vmap(loss, (None, 0, 0))(w, x, y))
        return fad.fori_loop(0, 50, lambda _, w: w - 0.1 * fad.grad(whole)(w), start)

    starts = fad.random.normal(fad.random.fold_in(key, 2), (members, 5))
    ensemble = D.map(train, starts, comm=comm, chunk_size=10)
    slopes = D.jacobian(lambda w: fad.vmap(model, (None, 0))(w, x), comm)(w)
    return each, ensemble, slopes


def main():
    comm = D.init()
    each, ensemble, slopes = run(comm)
    if comm.rank == 0:
        print(f"largest gradient of one example {np.linalg.norm(each, axis=1).max():.4f}")
        print(f"spread of the ensemble {np.std(ensemble, axis=0).round(3)}; Jacobian {slopes.shape}")


if __name__ == "__main__":
    main()
