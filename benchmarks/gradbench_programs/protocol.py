"""GradBench's protocol on standard input and output: the programs of this folder as a tool of GradBench's.

    python benchmarks/gradbench_programs/protocol.py

Each line is a message: `start`, `define`, `evaluate` with a module, a function and its input, `analysis`. The answer is
a line with the same id; an evaluation's has the result and the times of as many runs as the input requests.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("FAD_NUM_THREADS", "1")

import importlib
import json
import sys
import time
import traceback
from typing import Any

FUNCTIONS = {
    "gmm": ("objective", "jacobian"), "ba": ("objective", "jacobian"), "ht": ("objective", "jacobian"),
    "lstm": ("objective", "jacobian"), "kmeans": ("cost", "dir"), "ode": ("primal", "gradient"),
    "llsq": ("primal", "gradient"), "lse": ("primal", "gradient"), "det": ("primal", "gradient"),
    "particle": ("ff", "fr", "rf", "rr"), "saddle": ("ff", "fr", "rf", "rr"),
}  # fmt: skip


def define(module: str) -> dict[str, Any]:
    """Return whether there is a program of this name, and load it."""
    if module not in FUNCTIONS:
        return {"success": False, "error": f"there is no module {module!r}; there are {', '.join(FUNCTIONS)}"}
    importlib.import_module(module)
    return {"success": True}


def evaluate(module: str, function: str, given: dict[str, Any]) -> dict[str, Any]:
    """Return a function's result and the times of its runs."""
    if function not in FUNCTIONS.get(module, ()):
        return {"success": False, "error": f"there is no function {function!r} in {module!r}"}
    program = importlib.import_module(module)
    run, args = getattr(program, function), program.prepare(given)
    runs, seconds = given.get("min_runs", 1), given.get("min_seconds", 0)
    timings: list[dict[str, Any]] = []
    elapsed = 0
    while len(timings) < runs or elapsed < seconds * 1e9:
        start = time.perf_counter_ns()
        output = run(*args)
        taken = time.perf_counter_ns() - start
        timings.append({"name": "evaluate", "nanoseconds": taken})
        elapsed += taken
    return {"success": True, "output": program.answer(output), "timings": timings}


def respond(message: dict[str, Any]) -> dict[str, Any]:
    """Return the answer to a message."""
    answer: dict[str, Any] = {}
    try:
        if message["kind"] == "start":
            answer = {"tool": "fad"}
        elif message["kind"] == "define":
            answer = define(message["module"])
        elif message["kind"] == "evaluate":
            answer = evaluate(message["module"], message["function"], message["input"])
    except Exception as error:
        answer = {"success": False, "error": "".join(traceback.format_exception(error))}
    return {"id": message["id"]} | answer


def main() -> None:
    for line in sys.stdin:
        print(json.dumps(respond(json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
