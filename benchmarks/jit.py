"""jit beside JAX's jit, PyTorch with and without torch.compile, and HIPS autograd: run time and warm-up.

    python benchmarks/jit.py [workload ...] [--threads N] [--limit SECONDS] [--rounds N] [--libraries A,B] [--write]

Each library runs each workload in a fresh process, with empty caches on disk. The *warm-up* is the time of its first
two calls less two steady ones. Then the processes take turns, a burst each, and the table shows the medians. A library
that needs longer than the limit for its first two calls is stopped, and the table says so. `--write` puts the tables
into docs/benchmarks.md and draws them.
"""

from __future__ import annotations

import argparse
import compileall
import contextlib
import json
import os
import platform
import select
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from jit_workloads import GROWTH, WORKLOADS

HERE = Path(__file__).parent
PAGE = HERE.parent / "docs" / "benchmarks.md"
LIBRARIES = ("fad jit", "fad", "JAX jit", "PyTorch", "torch.compile", "autograd")
MODULES = {"JAX jit": "jax", "PyTorch": "torch", "torch.compile": "torch", "autograd": "autograd"}
OTHERS = ("\n## GradBench", "\n## NPBench")  # the sections that gradbench.py and npbench.py write, after this one's
STEADY = 6.0  # seconds that one library may take for all its bursts


class Side:
    """A process that runs one workload in one library."""

    def __init__(self, library: str, workload: str, options: argparse.Namespace):
        self.folder = tempfile.TemporaryDirectory(prefix="fad-bench-", ignore_cleanup_errors=True)
        threads = str(options.threads)
        flags = "" if options.threads > 1 else "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
        environment = {
            **{k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"},
            **dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "FAD_NUM_THREADS"), threads),
            "JAX_PLATFORMS": "cpu", "XLA_FLAGS": flags, "FAD_CACHE_DIR": self.folder.name,
            "TORCHINDUCTOR_CACHE_DIR": options.shared, "TORCHINDUCTOR_COMPILE_THREADS": threads,
            "FAD_BENCH_CLOCK": options.clock,
        }  # fmt: skip
        self.errors = tempfile.TemporaryFile("w+")  # noqa: SIM115  (read when the process has ended)
        self.process = subprocess.Popen(
            [sys.executable, str(HERE / "jit_sides.py"), library, workload],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors, env=environment, start_new_session=True,
        )  # fmt: skip
        self.times: list[float] = []
        self.why = ""
        started = self.answer(options.limit * (2 if library == "torch.compile" else 1))
        self.two, self.norm = (started["two"], started["norm"]) if started else (float("nan"), None)
        if started:
            self.signal(signal.SIGSTOP)
        else:
            self.close()

    def answer(self, limit: float):
        """Return what the process says next, or None if it says nothing in time."""
        pipe = self.process.stdout
        ready, _, _ = select.select([pipe], [], [], limit)
        line = pipe.readline() if ready else b""
        if not line:
            self.why = f"> {limit:.0f} s" if not ready else "error: " + self.last_error()
            return None
        return json.loads(line)

    def last_error(self) -> str:
        self.errors.seek(0)
        lines = self.errors.read().strip().splitlines()
        return lines[-1][:200] if lines else "no message"

    def burst(self) -> None:
        self.signal(signal.SIGCONT)
        self.process.stdin.write(b"go\n")
        self.process.stdin.flush()
        self.times.append(self.answer(60.0))
        self.signal(signal.SIGSTOP)  # its idle threads would go on spinning for work, on the next one's cores

    def signal(self, which: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, which)

    @property
    def steady(self) -> float:
        return statistics.median(self.times)

    @property
    def warm_up(self) -> float:
        return max(0.0, self.two - 2 * self.steady)

    def close(self) -> None:
        self.signal(signal.SIGKILL)
        self.process.communicate()
        self.folder.cleanup()


def measure(name: str, libraries: tuple, options: argparse.Namespace) -> dict:
    """Return a side per library: first the warm-ups one after the other, then bursts in turn."""
    sides = {}
    for library in libraries:
        side = sides[library] = Side(library, name, options)
        print(f"  {name}, {library}: {side.why or f'{side.two:.2f} s for two calls'}", file=sys.stderr, flush=True)
    running = [s for s in sides.values() if not s.why]
    spent = dict.fromkeys(running, 0.0)
    for _ in range(options.rounds):
        for side in running:
            if spent[side] < STEADY / 2 or len(side.times) < 3:
                start = time.perf_counter()
                side.burst()
                spent[side] += time.perf_counter() - start
    for side in running:
        side.close()
    return sides


# --- tables ------------------------------------------------------------------------------------------------------


def shown(value: float) -> str:
    return f"{value:.4f}" if value < 0.1 else f"{value:.3g}" if value < 100 else f"{value:.0f}"


def ratio(value: float, other: float) -> str:
    return f"{value / other:.2f}" if other else ""


def agree(sides: dict) -> bool:
    norms = [s.norm for s in sides.values() if s.norm is not None]
    return all(abs(n - norms[0]) <= 1e-3 * abs(norms[0]) for n in norms)


def rows(title: str, sides: dict, missing: tuple) -> tuple[list[str], list[str]]:
    """Return a workload's rows of the two tables: run time in ms, and warm-up in s."""
    fad = sides["fad jit"]
    others = [s for k, s in sides.items() if k not in ("fad jit", "fad") and not s.why]
    best = min((s.steady for s in others), default=0.0)
    jax = sides.get("JAX jit")
    run, warm = [title], [title]
    for library in LIBRARIES:
        side = sides.get(library)
        if side is None or side.why:
            why = "—" if library in missing or side is None else side.why if side.why[0] == ">" else "fails"
            run.append("" if why[0] == ">" else why)
            warm.append(why)
            continue
        run.append(shown(side.steady * 1e3))
        warm.append(f"{side.warm_up:.2f}")
    measured = not fad.why and jax is not None and not jax.why
    run.append(ratio(fad.steady, jax.steady) if measured else "")
    run.append(ratio(fad.steady, best) if not fad.why else "")
    warm.append(ratio(fad.warm_up, jax.warm_up) if measured else "")
    return run, warm


def table(head: list[str], body: list[list[str]]) -> str:
    widths = [max(len(r[k]) for r in [head, *body]) for k in range(len(head))]
    lines = [[c.ljust(w) if k == 0 else c.rjust(w) for k, (c, w) in enumerate(zip(r, widths, strict=True))]
             for r in [head, ["-" * w for w in widths], *body]]  # fmt: skip
    return "\n".join("| " + " | ".join(r) + " |" for r in lines)


def compare(chosen: dict, libraries: tuple, options: argparse.Namespace) -> str:
    run_rows, warm_rows, notes = [], [], []
    for name, workload in chosen.items():
        wanted = tuple(k for k in libraries if k not in workload.without)
        sides = measure(name, wanted, options)
        run, warm = rows(workload.title, sides, workload.without)
        run_rows.append(run)
        warm_rows.append(warm)
        notes += [f"{workload.title}, {k}: {s.why}" for k, s in sides.items() if s.why.startswith("error")]
        if not agree(sides):
            notes.append(f"{workload.title}: the results differ: { ({k: s.norm for k, s in sides.items()}) }")
    head = ["", *LIBRARIES]
    return "\n\n".join([
        "Run time, ms per call:", table([*head, "jit / JAX", "jit / best other"], run_rows),
        f"Warm-up, s (`> {options.limit:.0f} s`: stopped there, and not measured further):",
        table([*head, "jit / JAX"], warm_rows), *notes,
    ])  # fmt: skip


def machine(options: argparse.Namespace) -> str:
    import importlib.metadata as known

    def version(name: str) -> str:
        with contextlib.suppress(known.PackageNotFoundError):
            return f"{name} {known.version(name)}"
        return f"no {name}"

    packages = ", ".join(version(n) for n in ("numpy", "llvmlite", "jax", "torch", "autograd"))
    head = f"Python {platform.python_version()}, {packages}"
    return f"{head}; {options.threads} thread(s) each, {os.cpu_count()} CPUs, {options.clock} time."


INTRODUCTION = """# Benchmarks of jit

How long a gradient takes, beside JAX, PyTorch and autograd. Lower is better in every table. This first part has
programs that were written once for each library; below are [programs of NPBench](#npbench) as they are. [Beside other
libraries](comparison.md) has what else there is to choose by.

**How to read the tables.** A line is one program, and unless it says otherwise numbers are float64 and what is
measured is the gradient. A *step* returns the loss and the parameters after a step of gradient descent.

- *fad jit* and *JAX jit* are the gradient under `fad.jit` and `jax.jit`; *torch.compile* is PyTorch's, compiled.
- *fad*, *PyTorch* and *autograd* compile nothing.
- *jit / JAX* is the first column over JAX's, *jit / best other* over the quickest of the other libraries: below 1 fad
  is quicker.

The *warm-up* is what a user waits before calls are quick: the time of the first two calls less two steady ones.

**How it is measured.** Each library runs each program in a process of its own, with empty caches on disk
(`torch.compile` keeps its compiled headers between programs). The processes take turns, a burst of calls each, and
the medians of the bursts are shown; those that wait are stopped. Loading a library does not count: JAX loads its
compiler when it is imported, fad when `fad.jit` is given a function; it then compiles what every program needs (some
40 ms, and a fifth of that once it is on disk). A library that does not get through two calls within the limit is
stopped; `torch.compile` may take twice as long.

**To repeat it:** `make bench`, or `python benchmarks/jit.py`; with `--write` it writes this page, but for the
sections on other collections of programs. `--clock cpu` counts seconds of the processor, which on a busy machine mean
more than those of the clock.

![Run times and warm-ups of the workloads below](benchmarks.svg)
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("workloads", nargs="*", help=f"of {', '.join(WORKLOADS)}, growth; all without")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument(
        "--clock", choices=("wall", "cpu"), default="wall", help="cpu: seconds of the processor, for a busy machine"
    )
    parser.add_argument("--limit", type=float, default=30.0, help="seconds that two first calls may take")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--libraries", help="of " + ", ".join(LIBRARIES) + ", separated by commas")
    parser.add_argument("--write", action="store_true", help="write the tables into docs/benchmarks.md")
    options = parser.parse_args()
    unknown = [w for w in options.workloads if w not in WORKLOADS and w != "growth"]
    if unknown:
        parser.error(f"there is no workload {unknown[0]}; there are {', '.join(WORKLOADS)} and growth")
    import importlib.util

    wanted = options.libraries.split(",") if options.libraries else LIBRARIES
    libraries = tuple(k for k in LIBRARIES if k in wanted and importlib.util.find_spec(MODULES.get(k, "fad")))
    compileall.compile_dir(HERE.parent / "fad", quiet=2)  # as an installed package is
    options.shared = tempfile.mkdtemp(prefix="fad-bench-torch-")  # what it compiles once for all workloads
    chosen = {k: w for k, w in WORKLOADS.items() if not options.workloads or k in options.workloads}
    parts = [machine(options)]
    if chosen:
        parts.append(compare(chosen, libraries, options))
    if not options.workloads or "growth" in options.workloads:
        few = tuple(k for k in libraries if k in ("fad jit", "fad", "JAX jit", "PyTorch"))
        parts += ["## How cost grows with size", compare(GROWTH, few, options)]
    text = "\n\n".join(parts)
    print(text)
    if options.write:
        import jit_picture

        page = PAGE.read_text(encoding="utf-8")
        kept = min([page.find(heading) for heading in OTHERS if heading in page], default=len(page))
        PAGE.write_text(f"{INTRODUCTION}\n{text}\n{page[kept:]}", encoding="utf-8")
        jit_picture.write()


if __name__ == "__main__":
    main()
