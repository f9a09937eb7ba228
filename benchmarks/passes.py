"""What the passes of jit take for long programs: seconds for each, for 5 000, 10 000 and 20 000 equations.

    python benchmarks/passes.py

The programs are unrolled loops, a chain of tiny operations and the gradient of a recurrent network. The seconds are
those of the processor, the least of several runs; the last column is the growth from the middle size to the largest,
2 where a pass is linear. The aim: all passes over 20 000 equations in less than a second.
"""

from __future__ import annotations

import time

import numpy as np

import fad
from fad.compile.passes.hoist_loop_matmuls import hoist_loop_matmuls
from fad.compile.pipeline import OPTIMISE, optimise, schedule
from fad.compile.schedule.numpy_buffers import plan_memory
from fad.compile.targets.numpy_program import NumPyProgram

SIZES = (5_000, 10_000, 20_000)
ROUNDS = 3
PASSES = (*OPTIMISE, hoist_loop_matmuls)


def chain(equations):
    def f(x):
        for k in range(equations // 4):
            x = np.sin(x) * 0.5 + x * (k * 1e-4)
        return x

    return fad.make_graph(f)(np.zeros(10))


def recurrent(equations):
    n = equations // 24

    def f(w, xs):
        h = np.zeros_like(xs[0])
        for t in range(n):
            h = np.tanh(h @ w + xs[t]) * 1.5 + np.sum(h[::2]) * 0.1
        return np.sum(h**2)

    return fad.make_graph(fad.grad(f, argnums=(0, 1)))(np.eye(6), np.ones((n, 3, 6)))


def seconds(work, graph):
    times = []
    for _ in range(ROUNDS):
        start = time.process_time()
        work(graph)
        times.append(time.process_time() - start)
    return min(times)


def table(name, make):
    graphs = [make(n) for n in SIZES]
    optimised = [optimise(g) for g in graphs]
    print(f"\n{name:22s}" + "".join(f"{len(g):>10d}" for g in graphs) + "    growth")
    rows = [(f.__name__, f, graphs) for f in PASSES]
    rows += [
        ("all passes (optimise)", optimise, graphs),
        ("schedule", schedule, optimised),
        ("plan_memory", plan_memory, optimised),
        ("NumPyProgram", NumPyProgram, optimised),
        ("optimise, schedule", lambda g: schedule(optimise(g)), graphs),
    ]
    for title, work, programs in rows:
        found = [seconds(work, g) for g in programs]
        print(f"{title:22s}" + "".join(f"{s:10.4f}" for s in found) + f"{found[-1] / max(found[-2], 1e-9):10.2f}")


if __name__ == "__main__":
    table("chain", chain)
    table("gradient of an RNN", recurrent)
