"""The whole digits training in fad and in PyTorch, in turn: 5 epochs, batch 64, 64-128-10, Adam, float32.

    python benchmarks/training.py [--rounds 15] [--threads 1]

Both sides start from the same weights, shuffle with the same orders and do the same arithmetic; the final losses
are compared. Printed are the median times of each side and their ratio.
"""

import argparse
import os
import statistics
import time

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--rounds", type=int, default=15)
parser.add_argument("--threads", type=int, default=1)
parser.add_argument("--epochs", type=int, default=5)
options = parser.parse_args()
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = str(options.threads)  # before NumPy is loaded

import numpy as np  # noqa: E402
from sklearn.datasets import load_digits  # noqa: E402

import fad  # noqa: E402
from fad import nn, optim  # noqa: E402
from fad.nn import functional as F  # noqa: E402

BATCH, RATE = 64, 1e-3
digits = load_digits()
IMAGES = (digits.data / 16).astype("float32")
LABELS = digits.target.astype("int64")
ORDERS = [np.random.default_rng(i).permutation(len(LABELS)) for i in range(options.epochs)]


def network():
    return nn.Sequential(
        nn.Linear(64, 128, key=0, dtype="float32"), nn.ReLU(), nn.Linear(128, 10, key=1, dtype="float32")
    )


def loss(model, x, y):
    return F.cross_entropy(model(x), y)


def train_fad():
    model = network()
    opt = optim.Adam(model, lr=RATE)
    value_and_grad = fad.value_and_grad(loss)
    for order in ORDERS:
        for i in range(0, len(order), BATCH):
            batch = order[i : i + BATCH]
            value, grads = value_and_grad(model, IMAGES[batch], LABELS[batch])
            opt.step(grads)
    return float(value)


def train_torch():
    import torch
    from torch.nn.functional import cross_entropy

    torch.set_num_threads(options.threads)
    model = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Linear(128, 10))
    model.load_state_dict({k: torch.from_numpy(v) for k, v in network().state_dict().items()})
    opt = torch.optim.Adam(model.parameters(), lr=RATE)
    images, labels = torch.from_numpy(IMAGES), torch.from_numpy(LABELS)
    for order in ORDERS:
        order = torch.from_numpy(order)
        for i in range(0, len(order), BATCH):
            batch = order[i : i + BATCH]
            opt.zero_grad()
            value = cross_entropy(model(images[batch]), labels[batch])
            value.backward()
            opt.step()
    return float(value.detach())


def main():
    sides = {"fad": train_fad}
    try:
        import torch
    except ImportError:
        print("PyTorch is not installed: fad alone")
    else:
        sides[f"PyTorch {torch.__version__}"] = train_torch
    times = {name: [] for name in sides}
    for round_ in range(options.rounds + 2):  # two to warm up
        for name, train in sides.items():
            start = time.perf_counter()
            value = train()
            if round_ >= 2:
                times[name].append(time.perf_counter() - start)
            if round_ == 0:
                print(f"{name:<16} last loss {value:.6f}")
    steps = options.epochs * -(-len(LABELS) // BATCH)
    medians = {name: statistics.median(ts) for name, ts in times.items()}
    print(f"median of {options.rounds} trainings of {steps} steps, {options.threads} thread(s):")
    for name, seconds in medians.items():
        print(f"{name:<16} {1e3 * seconds:8.1f} ms  {1e6 * seconds / steps:8.1f} us a step")
    if len(medians) == 2:
        mine, theirs = medians.values()
        print(f"fad / PyTorch    {mine / theirs:8.2f}")


if __name__ == "__main__":
    main()
