"""GradBench's programs for JAX and PyTorch behind its protocol, each evaluation timed until its result is there.

    python benchmarks/gradbench_sides.py PATH jax|pytorch

PATH is a checkout of GradBench, whose package is imported from there. GradBench's own `run.py` stops the clock when JAX
has begun to compute; here it stops when the result is there.
"""

from __future__ import annotations

import importlib
import json
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any


def evaluate(tool: str, message: dict[str, Any], finish: Callable[[Any], Any]) -> dict[str, Any]:
    """Return a function's result and the times of its runs."""
    given = message["input"]
    program = importlib.import_module(f"gradbench.tools.{tool}.{message['module']}")
    function = getattr(program, message["function"])
    prepare = getattr(program, "prepare", None) or program.prepare_input
    args = prepare(given)
    timings: list[dict[str, Any]] = []
    elapsed = 0
    while len(timings) < given["min_runs"] or elapsed < given["min_seconds"] * 1e9:
        start = time.perf_counter_ns()
        finish(function.function(args))
        taken = time.perf_counter_ns() - start
        timings.append({"name": "evaluate", "nanoseconds": taken})
        elapsed += taken
    output = function.wrapped(given | {"min_runs": 1, "min_seconds": 0})["output"]
    return {"success": True, "output": output, "timings": timings}


def main() -> None:
    root, tool = Path(sys.argv[1]), sys.argv[2]
    sys.path[0] = str(root / "python" / "gradbench")  # instead of this folder, which has a gradbench.py of its own
    if tool == "jax":
        import jax

        finish = jax.block_until_ready
    else:
        import torch

        torch.set_num_threads(1)
        finish = lambda result: result
    for line in sys.stdin:
        message = json.loads(line)
        try:
            answer = evaluate(tool, message, finish)
        except Exception as error:
            answer = {"success": False, "error": "".join(traceback.format_exception(error))}
        print(json.dumps({"id": message["id"]} | answer), flush=True)


if __name__ == "__main__":
    main()
