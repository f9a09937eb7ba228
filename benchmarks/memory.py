"""The gradient of a long Python loop within a memory limit: what it takes, beside what `explain` expects, and how long.

    python benchmarks/memory.py [--steps 1000000] [--state 1000] [--limits 200MB,3GB] [--rounds 3]

The loop's state is an array of `--state` numbers, of which the backward pass needs two arrays a step. Measured is how
far the process grows in a call, by Linux's own count; the program's kernels were made before, in a smaller call. The
last line of a run without a limit that fits would take 16 GB for the default sizes: the time of one is that of the
largest limit.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import time

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("MALLOC_MMAP_THRESHOLD_", "65536")  # what is freed goes back to the system at once

import numpy as np

import fad


def gradient_of(steps: int):
    def f(w, x):
        for _ in range(steps):
            x = np.sin(w * x) + 0.1 * x
        return np.sum(x)

    return fad.jit(fad.grad(f, argnums=(0, 1)))


def status(name: str) -> int:
    """Return an amount of memory of this process, in bytes."""
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith(name))


def measure(limit: str, steps: int, state: int, rounds: int) -> None:
    """Print the line of one limit."""
    rng = np.random.default_rng(0)
    w, x = rng.uniform(0.5, 1.0, state), rng.normal(size=state)
    with fad.config.use(memory_limit=limit):
        other = gradient_of(4000)
        for _ in range(2):
            other(w[:10], x[:10])  # the compiler, and what it needs, is loaded
        gradient = gradient_of(steps)
        gradient(w, x)
        before = status("VmRSS")
        with open("/proc/self/clear_refs", "w") as file:
            file.write("5")  # the peak starts again
        gradient(w, x)
        grown = status("VmHWM") - before
        expected = int(re.search(r"expected to take (\d+)", gradient.explain())[1])
        times = []
        for _ in range(rounds):
            start = time.process_time()
            gradient(w, x)
            times.append(time.process_time() - start)
    found = f"{expected / 1e6:12.1f} {grown / 1e6:12.1f} {grown / expected:8.2f} {min(times):8.2f}"
    print(f"{limit:>8} {found}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=10**6)
    parser.add_argument("--state", type=int, default=1000)
    parser.add_argument("--limits", default="200MB,3GB")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--one", help="one limit, in this process")
    options = parser.parse_args()
    if options.one:
        measure(options.one, options.steps, options.state, options.rounds)
        return
    print(f"{'limit':>8} {'expected MB':>12} {'measured MB':>12} {'ratio':>8} {'time s':>8}", flush=True)
    for limit in options.limits.split(","):
        same = ["--steps", str(options.steps), "--state", str(options.state), "--rounds", str(options.rounds)]
        subprocess.run([sys.executable, __file__, *same, "--one", limit], check=True)


if __name__ == "__main__":
    main()
