"""The tools that GradBench's workloads are measured with: C++ programs that are built here, and processes that answer.

Both say what GradBench's protocol says: `evaluate` returns the result and the nanoseconds of each run.
"""

from __future__ import annotations

import json
import os
import resource
import select
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
PROGRAMS = HERE / "gradbench_programs"
THREADS = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "FAD_NUM_THREADS"), "1")
FLAGS = ["-O3", "-march=native", "-w"]
# Tapenade wrote C: for each workload the files that its program consists of, beside its own two for the tape.
TAPENADE = {
    "gmm": ("evals/gmm/gmm.c", "evals/gmm/gmm_b.c"), "ba": ("evals/ba/ba.c", "evals/ba/ba_b.c"),
    "lstm": ("evals/lstm/lstm.c", "evals/lstm/lstm_b.c"), "ht": ("evals/hand/hand.c", "evals/hand/hand_d.c"),
}  # fmt: skip
# GradBench's finite differences are measured where no exact tool of its builds with g++ alone.
SEARCHES = ("particle", "saddle")
MEMORY = 8 << 30  # bytes that a tape may take


class Failed(Exception):
    """What a tool answers instead of a result."""


def checked(command: list[str], **options: Any) -> None:
    done = subprocess.run(command, capture_output=True, text=True, **options)
    if done.returncode:
        raise Failed(f"{' '.join(command)}: {done.stderr.strip()[-400:]}")


class Compiled:
    """One of GradBench's tools in C++: a program for each workload, built when it is first asked for."""

    def __init__(self, name: str, root: Path, headers: list[Path], build: Path):
        self.name, self.root, self.build = name, root, build / name
        self.include = [f"-I{folder}" for folder in (root / "cpp", *headers)]
        self.build.mkdir(parents=True, exist_ok=True)

    def has(self, workload: str) -> bool:
        known = {"tapenade": workload in TAPENADE, "finite": workload in SEARCHES}.get(self.name, True)
        return known and (self.root / "tools" / self.name / f"{workload}.cpp").exists()

    def program(self, workload: str) -> Path:
        made = self.build / workload
        if made.exists():
            return made
        folder = self.root / "tools" / self.name
        objects = []
        if self.name == "tapenade":
            for source in (*TAPENADE[workload], "utils/adBuffer.c", "utils/adStack.c"):
                objects.append(str(self.build / f"{workload}-{Path(source).stem}.o"))
                flags = ["-std=c11", *FLAGS, f"-I{self.root / 'cpp'}", "-c", "-o", objects[-1]]
                checked(["gcc", *flags, source], cwd=folder)
        flags = ["-std=c++17", *FLAGS, "-DCODI_ForcedInlines=1", *self.include]
        checked(["g++", *flags, "-o", str(made), f"{workload}.cpp", *objects, "-lm"], cwd=folder)
        return made

    def evaluate(self, message: dict[str, Any], limit: float) -> dict[str, Any]:
        program = self.program(message["module"])
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            json.dump(message["input"], file)
            file.flush()
            try:
                done = subprocess.run(
                    [str(program), file.name, message["function"]], capture_output=True, text=True, timeout=limit,
                    preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY)),
                )  # fmt: skip
            except subprocess.TimeoutExpired:
                raise Failed(f"> {limit:.0f} s") from None
        if done.returncode:
            raise Failed(done.stderr.strip()[-200:] or f"ended with {done.returncode}")
        first, *rest = done.stdout.splitlines()
        timings = [t for t in map(json.loads, rest) if t["name"] == "evaluate"]
        return {"output": json.loads(first), "timings": timings}

    def close(self) -> None:
        pass


class Process:
    """A program that answers GradBench's messages, a line each, in a process that is started when it is needed."""

    def __init__(self, name: str, command: list[str], environment: dict[str, str] | None = None):
        self.name, self.command, self.environment = name, command, environment or {}
        self.process: subprocess.Popen | None = None
        self.folder: Path | None = None

    def start(self) -> subprocess.Popen:
        self.folder = Path(tempfile.mkdtemp(prefix="fad-bench-"))
        environment = {**os.environ, **THREADS, "FAD_CACHE_DIR": str(self.folder), **self.environment}
        return subprocess.Popen(
            self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment
        )

    def has(self, workload: str) -> bool:
        return True

    def evaluate(self, message: dict[str, Any], limit: float) -> dict[str, Any]:
        self.process = self.process or self.start()
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps({"id": 0, "kind": "evaluate"} | message).encode() + b"\n")
        self.process.stdin.flush()
        ready, _, _ = select.select([self.process.stdout], [], [], limit)
        line = self.process.stdout.readline() if ready else b""
        if not line:
            self.close()
            raise Failed("its process ended" if ready else f"> {limit:.0f} s")
        answer = json.loads(line)
        if not answer["success"]:
            raise Failed(answer["error"].strip().splitlines()[-1][:200])
        return answer

    def close(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.communicate()
            self.process = None
        if self.folder is not None:
            shutil.rmtree(self.folder, ignore_errors=True)
            self.folder = None


def fad() -> Process:
    return Process("fad", [sys.executable, str(PROGRAMS / "protocol.py")])


class Library(Process):
    """GradBench's programs for a Python library, of those workloads that it has one for."""

    def __init__(self, name: str, root: Path, python: str):
        command = [python, str(HERE / "gradbench_sides.py"), str(root), name]
        flags = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
        super().__init__(name, command, {"JAX_PLATFORMS": "cpu", "JAX_ENABLE_X64": "1", "XLA_FLAGS": flags})
        self.programs = root / "python" / "gradbench" / "gradbench" / "tools" / name

    def has(self, workload: str) -> bool:
        return (self.programs / f"{workload}.py").exists()
