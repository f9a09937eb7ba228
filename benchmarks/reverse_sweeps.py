"""What a record costs in the reverse sweeps: of the tape of `fad.vjp`, of the graph of the eager API, and a shared one.

The shared one is the eager sweep with a call for each record, as it runs where a graph of the gradient is requested:
what a sweep comes to that knows neither how its records are ordered nor how they hold what rules read.

    python benchmarks/reverse_sweeps.py
"""

import time

import numpy as np

import fad
from fad import eager as torch
from fad.eager.core.engine import Sweep

STEPS = 500
RUNS = 60


def chain(x, w):
    for _ in range(STEPS):
        x = x * w + x
    return x


def by_tape():
    _, pullback = fad.vjp(chain, np.full(4, 0.5), np.full(4, 0.01))
    start = time.process_time()
    pullback(np.ones(4))
    return time.process_time() - start


def by_graph():
    x, w = (torch.tensor([v] * 4, requires_grad=True) for v in (0.5, 0.01))
    y = chain(x, w)
    start = time.process_time()
    y.backward(torch.ones(4))
    return time.process_time() - start


def by_shared():
    run = Sweep.run
    Sweep.run = lambda self: self.run_traced(None)
    try:
        return by_graph()
    finally:
        Sweep.run = run


if __name__ == "__main__":
    runs = [[run() / (2 * STEPS) * 1e6 for run in (by_tape, by_graph, by_shared)] for _ in range(RUNS)]
    tape, graph, shared = np.min(runs, axis=0)
    print(f"per record: {tape:.2f} µs by the tape, {graph:.2f} µs by the graph, {shared:.2f} µs with a call for each")
