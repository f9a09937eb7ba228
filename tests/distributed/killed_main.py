"""A training run that saves checkpoints, goes on from the last one, and may kill itself: run by test_checkpoints.py.

``killed_main.py FOLDER STEPS [RANK STEP]``: the rank kills itself in that step, half-way between two collectives or
within the writing of a checkpoint. Prints the loss of each step.
"""

import os
import signal
import sys

import numpy as np

import fad
from fad import distributed as D
from fad import nn, optim
from fad.nn import functional as F

EVERY = 3


def loss(model, x, y):
    return F.cross_entropy(model(x), y)


def entries():
    rng = np.random.default_rng(0)
    return rng.normal(size=(48, 6)), rng.integers(0, 3, 48)


def train(comm, folder, steps, victim=None, when=None):
    with nn.seed(0):
        model = nn.Sequential(nn.Linear(6, 12), nn.Tanh(), nn.Linear(12, 3))
    opt = optim.sharded(optim.Adam(model, lr=0.05), comm)
    first, losses = 0, {}
    found = D.load(folder, comm=comm)
    if found is not None:
        first, kept = found
        model.load_state_dict(kept["model"])
        opt.load_state_dict(kept["opt"])
    x, y = entries()
    for step in range(first, steps):
        order = fad.random.permutation(fad.random.fold_in(fad.random.key(1), step), len(x))[:12]
        n = len(order) // comm.size
        mine = order[comm.rank * n : (comm.rank + 1) * n]
        dies = comm.rank == victim and step == when
        value, grads = D.value_and_grad(loss, comm)(model, x[mine], y[mine])
        if dies and step % EVERY:
            os.kill(os.getpid(), signal.SIGKILL)
        opt.step(grads)
        losses[step] = float(value)
        if (step + 1) % EVERY == 0:
            if dies:
                kill_while_writing(step)
            D.save(folder, {"model": model, "opt": opt.shards()}, step=step + 1, comm=comm)
        if dies:
            os.kill(os.getpid(), signal.SIGKILL)
    return losses


def kill_while_writing(step):
    """Die at the first, second or later call of fsync, as files are written and named."""
    left, fsync = [step % 4], os.fsync

    def dying(handle):
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        left[0] -= 1
        return fsync(handle)

    os.fsync = dying


def main(folder, steps, *death):
    comm = D.init(timeout=20)
    losses = train(comm, folder, int(steps), *map(int, death))
    if comm.rank == 0:
        print("losses", *[f"{step}:{value:.12e}" for step, value in losses.items()])


if __name__ == "__main__":
    main(*sys.argv[1:])
