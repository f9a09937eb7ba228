"""What programs of several ranks cost: mpiexec -n 2 python benchmarks/distributed.py [--write]

One thread per rank: OMP_NUM_THREADS=1. It measures all_reduce beside mpi4py's own, a step of training beside the same
step without communication on each rank, and the constants of the network for benchmarks/loggp.py; all sides in one
run, in turn.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

import numpy as np

import fad
from fad import distributed as D
from fad import nn, optim
from fad.nn import functional as F


def in_turn(comm, sides, calls, rounds=15):
    """Return the shortest and the median time of a call of each side, the longest of the ranks', in seconds."""
    found = {name: [] for name in sides}
    for _ in range(rounds):
        for name, call in sides.items():
            comm.barrier()
            start = time.perf_counter()
            for _ in range(calls):
                call()
            found[name].append((time.perf_counter() - start) / calls)
    times = comm.exchange(found)
    each = {name: [max(t[name][k] for t in times) for k in range(rounds)] for name in sides}
    return {name: (min(t), sorted(t)[rounds // 2]) for name, t in each.items()}


def one_by_one(comm, sides, rounds):
    """Return the shortest time of a call of each side on the first rank, while the others wait."""
    found = dict.fromkeys(sides, float("inf"))
    for _ in range(rounds):
        for name, call in sides.items():
            comm.barrier()
            start = time.perf_counter()
            if comm.rank == 0:
                call()
                found[name] = min(found[name], time.perf_counter() - start)
    return comm.exchange(found)[0]


def overhead(comm, show):
    mpi = comm.mpi
    for nbytes, calls, rounds in ((8, 200, 150), (8192, 100, 150), (1 << 20, 5, 60), (8 << 20, 2, 40)):
        x = np.ones(nbytes // 8)

        def raw(x=x):
            out = np.empty_like(x)
            mpi.Allreduce(x, out)
            return out

        found = in_turn(comm, {"mpi4py": raw, "fad": lambda x=x: comm.all_reduce(x)}, calls, rounds)
        (a, _), (b, _) = found["mpi4py"], found["fad"]
        more = f"{(b - a) * 1e6:+7.1f} us, {b / a - 1:+.1%}"
        show(f"all_reduce of {nbytes:8d} bytes: mpi4py {a * 1e6:9.1f} us, fad {b * 1e6:9.1f} us: {more}")


def digits(rank, size=32):
    """The MLP of examples/digits.py, and half of its batch."""
    with nn.seed(0):
        model = nn.Sequential(nn.Linear(64, 256, dtype="float32"), nn.ReLU(), nn.Linear(256, 10, dtype="float32"))
    rng = np.random.default_rng(rank)
    batch = rng.uniform(size=(size, 64)).astype("float32"), rng.integers(0, 10, size)
    return model, batch, lambda m, x, y: F.cross_entropy(m(x), y)


def transformer(rank):
    """The model of examples/transformer.py, and half of its batch."""
    sys.path.insert(0, str(Path(__file__).parent.parent / "examples"))
    import transformer as source

    with nn.seed(0), fad.config.use(default_dtype="float32"):
        model = source.Transformer(len(source.LETTERS), 48, 64)
    return model, (source.windows(source.CODES, np.arange(8) * 10 + rank, 48),), source.loss


def training(comm, show):
    """A step on this rank's half of the batch, with and without the other rank; what a step of the first is made of.

    Both ranks take the step without the other at the same time, so that they share what two cores of the machine share;
    what that costs is said, too: the same step while the other core does nothing.
    """
    alone = D.init("alone")
    facts = {}
    cases = (
        ("digits MLP", digits, 150), ("digits MLP, batch 512", lambda rank: digits(rank, 256), 100),
        ("transformer", transformer, 30),
    )  # fmt: skip
    for name, make, rounds in cases:
        model, batch, loss = make(int(comm.rank))
        sides = {}
        for who, world in (("alone", alone), ("ranks", comm)):
            for how, wrap in (("eager", lambda f: f), ("jit", fad.jit)):
                opt, step = optim.Adam(model, lr=1e-4), wrap(D.value_and_grad(loss, world))

                def run(step=step, opt=opt, model=model, batch=batch):
                    _, grads = step(model, *batch)
                    opt.step(grads)

                run(), run()
                sides[f"{how}, {who}"] = run
        found = in_turn(comm, sides, 1, rounds)
        idle = one_by_one(comm, {how: sides[f"{how}, alone"] for how in ("eager", "jit")}, rounds)
        for how in ("eager", "jit"):
            (a, am), (b, bm) = found[f"{how}, alone"], found[f"{how}, ranks"]
            ratio = f"{b / a:.3f} (shortest), {bm / am:.3f} (median)"
            show(f"{name}, {how}: one rank on half the batch {a * 1e3:.2f} ms, two ranks {b * 1e3:.2f} ms: {ratio}")
            floor = f"{idle[how] * 1e3:.2f} ms, both at once {a / idle[how]:.3f} of it"
            show(f"    without a message, while the other core does nothing {floor}")
        grads = fad.grad(loss)(model, *batch)
        parts = {"loss": lambda m=model, b=batch, f=loss: f(m, *b),
                 "gradient": lambda m=model, b=batch, f=loss: fad.value_and_grad(f)(m, *b),
                 "optimiser": lambda opt=opt, g=grads: opt.step(g)}  # fmt: skip
        times = {k: t for k, (t, _) in in_turn(comm, parts, 1, rounds).items()}
        facts = facts if name != "transformer" else {
            "forward": times["loss"], "backward": times["gradient"] - times["loss"],
            "rest": times["optimiser"],
            "buckets": [x.nbytes for x in reversed(fad.tree.leaves(model))],
        }  # fmt: skip
    return facts


def constants(comm, show):
    """The latency and the time per byte of a message, and what it takes to add up."""
    mpi, other = comm.mpi, 1 - int(comm.rank)
    times = {}
    for nbytes, calls in ((8, 50), (8 << 20, 2)):
        x, y = np.ones(nbytes // 8), np.empty(nbytes // 8)
        exchange = lambda x=x, y=y: mpi.Sendrecv(x, other, 0, y, other, 0)
        times[nbytes] = in_turn(comm, {"message": exchange}, calls, 150)["message"][0]
    x, y = np.ones(1 << 20), np.ones(1 << 20)
    add = in_turn(comm, {"add": lambda: np.add(x, y, out=y)}, 20)["add"][0]
    found = {"latency": times[8], "gap": (times[8 << 20] - times[8]) / (8 << 20), "reduce": add / x.nbytes}
    latency, speed, sums = found["latency"] * 1e6, 1e-9 / found["gap"], 1e-9 / found["reduce"]
    show(f"a message: {latency:.1f} us and {speed:.2f} GB/s; sums {sums:.2f} GB/s")
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="keep what was measured for benchmarks/loggp.py")
    args = parser.parse_args()
    comm = D.init("mpi")
    show = print if comm.rank == 0 else lambda text: None
    overhead(comm, show)
    if comm.size > 1:
        found = {**constants(comm, show), **training(comm, show)}
        if args.write and comm.rank == 0:
            (Path(__file__).parent / "distributed.json").write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
