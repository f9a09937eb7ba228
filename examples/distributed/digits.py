"""Train the digits on several ranks: mpiexec -n 2 python examples/distributed/digits.py [--epochs 20] [--folder runs]

Each rank computes the gradient on its part of each batch, and keeps its part of the optimiser's state. Started again,
on any number of ranks, the run goes on from its last checkpoint in the folder.
"""

import argparse
import sys
from pathlib import Path

import numpy as np

import fad
from fad import data, nn, optim
from fad import distributed as D

sys.path.insert(0, str(Path(__file__).parent.parent))
from digits import accuracy, load, loss  # the same program on one rank


def train(comm, epochs=20, folder=None, seed=0):
    training, held_out = load()
    with nn.seed(seed):
        model = nn.Sequential(nn.Linear(64, 256, dtype="float32"), nn.ReLU(), nn.Linear(256, 10, dtype="float32"))
    batches = data.batches(training, 64, key=seed, rank=comm.rank, size=comm.size)
    opt = optim.sharded(optim.Adam(model, lr=2e-3), comm, reduced=False)
    step = fad.jit(D.value_and_grad(loss, comm, reduce=False))
    first, found = 0, D.load(folder, comm=comm) if folder else None
    if found:
        first, kept = found
        model.load_state_dict(kept["model"])
        opt.load_state_dict(kept["opt"])
    for epoch in range(first, epochs):
        batches.passes = epoch
        losses = []
        for images, labels in batches:
            value, grads = step(model, images, labels)
            opt.step(grads)
            losses.append(value)
        if folder:
            D.save(folder, {"model": model, "opt": opt.shards()}, step=epoch + 1, comm=comm)
        if comm.rank == 0 and epoch % 5 == 4:
            print(f"epoch {epoch + 1:3d}  loss {np.mean(losses):.4f}")
    return accuracy(model, *held_out)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--folder", help="of the checkpoints")
    args = parser.parse_args()
    comm = D.init()
    found = train(comm, args.epochs, args.folder)
    if comm.rank == 0:
        print(f"held-out accuracy {found:.4f} on {comm.size} ranks")


if __name__ == "__main__":
    main()
