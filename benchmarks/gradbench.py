"""GradBench's eleven workloads: gradients of NumPy programs beside its tools in C++, JAX and PyTorch.

    python benchmarks/gradbench.py PATH --json FOLDER [--codipack FOLDER] [--python PYTHON] [--only gmm,ba]
                                   [--limit SECONDS] [--rounds N] [--build FOLDER] [--growth] [--write]

PATH is a checkout of github.com/gradbench/gradbench; nothing of it is copied. `--json` is a folder with json.hpp of
nlohmann/json, `--codipack` CoDiPack's folder include, `--python` an interpreter that has JAX, PyTorch and
dataclasses_json, if this one has not. The C++ tools are built with g++ -O3 -march=native into a temporary folder, or
into `--build`. All run on one thread, in turns; of each the best run counts. Results are compared with the first
C++ tool's. `--write` puts the table and a picture into docs/benchmarks.md. `--growth` measures fad alone, each workload
at sizes from small to large, for a table of its own.
"""

from __future__ import annotations

import argparse
import datetime
import itertools
import os
import platform
import re
import statistics
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gradbench_tools
import numpy as np
from gradbench_inputs import growing, inputs
from gradbench_tools import SEARCHES, Compiled, Failed, Library

PAGE = Path(__file__).parents[1] / "docs" / "benchmarks.md"
HEADING, GROWTH, NEXT = "## GradBench", "## GradBench at other sizes", "## NPBench"
COLUMNS = ("fad", "manual", "tapenade", "codipack", "finite", "jax", "pytorch")
TITLES = {"manual": "C++ by hand", "tapenade": "Tapenade", "codipack": "CoDiPack", "finite": "differences",
          "jax": "JAX", "pytorch": "PyTorch"}  # fmt: skip
AGREE = 1e-10
# GradBench's own tolerance, where the only C++ that it has for g++ alone is finite differences.
OF_SEARCHES = 1e-4
# Not compared with: the solution's derivative in closed form, without solving the equations.
SHORTCUTS = {("ode", "manual")}


def numbers(output: Any) -> Iterator[float]:
    """Yield the numbers of a result, dictionaries in the order of their keys."""
    if isinstance(output, dict):
        for key in sorted(output):
            yield from numbers(output[key])
    elif isinstance(output, list):
        for part in output:
            yield from numbers(part)
    else:
        yield float(output)


def difference(output: Any, reference: Any) -> float:
    """Return how far a result is from another, as a part of the other's largest number."""
    found, wanted = (np.fromiter(numbers(of), float) for of in (output, reference))
    if found.shape != wanted.shape:
        return float("inf")
    return float(np.max(np.abs(found - wanted)) / max(np.max(np.abs(wanted)), 1e-300))


class Row:
    """What is known of one workload at one size: each tool's best time, or why there is none."""

    def __init__(self, workload: str, size: str):
        self.workload, self.size = workload, size
        self.best: dict[str, float] = {}
        self.why: dict[str, str] = {}
        self.outputs: dict[str, Any] = {}
        self.first = float("nan")

    @property
    def name(self) -> str:
        return f"{self.workload}, {self.size}"

    def add(self, tool: str, answer: dict[str, Any]) -> None:
        seconds = [t["nanoseconds"] / 1e9 for t in answer["timings"]]
        if tool == "fad" and tool not in self.best:
            self.first = sum(seconds[:2]) - 2 * min(seconds[2:], default=0.0)
        self.best[tool] = min(seconds + [self.best.get(tool, float("inf"))])
        self.outputs.setdefault(tool, answer["output"])

    def differences(self) -> dict[str, float]:
        """Return how far each tool's result is from the first C++ tool's."""
        reference = next((self.outputs[t] for t in COLUMNS[1:] if t in self.outputs), None)
        return {} if reference is None else {t: difference(out, reference) for t, out in self.outputs.items()}

    @property
    def others(self) -> dict[str, float]:
        compared = {tool for tool in self.best if tool != "fad" and (self.workload, tool) not in SHORTCUTS}
        return {tool: self.best[tool] for tool in compared}

    @property
    def ratio(self) -> float:
        return self.best.get("fad", float("nan")) / min(self.others.values(), default=float("nan"))


def measure(row: Row, function: str, given: dict[str, Any], tools: list, options: argparse.Namespace) -> None:
    """Let the tools take turns; one that fails or takes too long is left out from then on."""
    message = {"module": row.workload, "function": function}
    for turn in range(options.rounds):
        for tool in tools:
            if tool.name in row.why or not tool.has(row.workload):
                continue
            runs = 4 if tool.name == "fad" and turn == 0 else 2
            asked = {**given, "min_runs": runs, "min_seconds": options.seconds}
            try:
                row.add(tool.name, tool.evaluate({**message, "input": asked}, options.limit))
            except Failed as error:
                row.why[tool.name] = str(error)
    tools[0].close()  # the next program finds no kernels of this one


def cell(row: Row, tool: str) -> str:
    if tool in row.best:
        milliseconds = row.best[tool] * 1e3
        return f"{milliseconds:.4f}" if milliseconds < 0.1 else f"{milliseconds:.3g}"
    why = row.why.get(tool)
    return "–" if why is None else why if why.startswith(">") else "fails"


def agreement(row: Row) -> str:
    """Return how far fad is from the first C++ tool, and who else is not where they are."""
    found = row.differences()
    least = OF_SEARCHES if row.workload in SEARCHES else AGREE
    apart = [f"{TITLES.get(tool, tool)} differs by {by:.0e}" for tool, by in found.items() if not by <= least]
    return f"{found['fad']:.0e}" + "".join(f"; {said}" for said in apart) if "fad" in found else "–"


def shown(row: Row) -> str:
    cells = [cell(row, tool) for tool in COLUMNS]
    return " | ".join([f"| {row.name}", *cells, f"{row.ratio:.2f}", f"{row.first:.2f}", f"{agreement(row)} |"])


def head() -> str:
    titles = [TITLES.get(tool, tool) for tool in COLUMNS]
    line = "| " + " | ".join(["", *titles, "fad / best other", "first calls, s", "difference"]) + " |"
    return line + "\n|---|" + "---:|" * (len(COLUMNS) + 3)


def page(rows: list[Row]) -> str:
    """Return the section of the page, as Markdown."""
    known = [row.ratio for row in rows if row.ratio == row.ratio]
    ahead = sum(ratio <= 1 for ratio in known)
    mean = f"fad is ahead of the best other in {ahead} of {len(known)}; the geometric mean of the ratios is " \
           f"{statistics.geometric_mean(known):.2f}." if known else ""  # fmt: skip
    table = "\n".join([head(), *map(shown, rows)])
    return f"""{HEADING}

The workloads of [GradBench](https://github.com/gradbench/gradbench), as NumPy programs: milliseconds of a gradient (a
Jacobian for ba and ht, a step of Newton's method for kmeans; particle and saddle search with gradients in gradients).
Beside them its tools that g++ builds alone and its programs for JAX and PyTorch, – where it has none; one thread, the
best of all runs. The first of the C++ tools is what *difference* is from, relative to the largest number.
*First calls* is recording and compiling, with no kernels on disk. C++ by hand has ode's solution in closed form, which
the ratio leaves out, and *differences* are not exact derivatives. At these sizes ode's derivative is below what
float64 can hold: every tool finds zeros, and the tests compare it at four components.
`python benchmarks/gradbench.py PATH --json FOLDER --codipack FOLDER --write` makes this section.

![Milliseconds of each tool as multiples of fad's](gradbench.svg)

{table}

{mean} {platform.machine()}, Python {platform.python_version()}, NumPy {np.__version__}.
"""


def insert(text: str, section: str) -> str:
    """Return a page with a section in place of the one that it has under the same heading, or before the others."""
    before, heading, after = text.partition(f"\n{NEXT}")
    parts = re.split(r"\n(?=## GradBench)", before)
    kept = {part.split("\n", 1)[0]: part for part in [*parts[1:], section]}
    found = [kept[title].rstrip() for title in (HEADING, GROWTH) if title in kept]
    return "\n\n".join([parts[0].rstrip(), *found]) + f"\n{heading}{after}"


def piece(row: Row, work: int) -> str:
    """Return the row of a table on growth: what one piece of the work costs."""
    each = row.best.get("fad", float("nan")) / work * 1e9
    return f"| {row.name} | {cell(row, 'fad')} | {each:.3g} | {row.first:.2f} |"


def steepest(rows: list[tuple[Row, int]]) -> str:
    """Return in words where one piece of the work costs the most, beside the next smaller size."""
    each = [(row, row.best.get("fad", float("nan")) / work) for row, work in rows]
    steps = [(b / a, late) for (early, a), (late, b) in itertools.pairwise(each) if early.workload == late.workload]
    if not steps:
        return ""
    ratio, row = max(steps, key=lambda step: step[0])
    bound = f"No piece costs more than {ratio:.2f} times one of the next smaller size ({row.name})"
    return f"{bound}; measured on {datetime.date.today()}."


def grown(rows: list[tuple[Row, int]]) -> str:
    """Return the section on how fad's times grow, as Markdown."""
    table = "\n".join(
        ["| | ms | ns for each | first calls, s |", "|---|---:|---:|---:|", *[piece(*row) for row in rows]]
    )
    return f"""{GROWTH}

The same programs by fad, from small to large. *For each* divides by what there is to do: clusters times points (gmm),
observations (ba), points (ht, kmeans, llsq), characters (lstm), steps (ode), numbers (lse), products in the expansion
(det). It falls while the overhead of a call is shared by more, and rises by what no longer fits into a cache; the
searches have no size. `python benchmarks/gradbench.py PATH --json FOLDER --growth --write` makes this section.

{table}

{steepest(rows)}
"""


def measure_growth(options: argparse.Namespace, only: set) -> list[tuple[Row, int]]:
    tool, rows = gradbench_tools.fad(), []
    for workload, function, size, work, make in growing(options.path):
        if not only or workload in only:
            rows.append((Row(workload, size), work))
            measure(rows[-1][0], function, make(), [tool], options)
            print(piece(*rows[-1]), file=sys.stderr, flush=True)
    return rows


def tools_of(options: argparse.Namespace, build: Path) -> list:
    headers = [options.json, *([options.codipack] if options.codipack else [])]
    compiled = ["manual", "tapenade", *(["codipack"] if options.codipack else []), "finite"]
    every = [gradbench_tools.fad(), *[Compiled(name, options.path, headers, build) for name in compiled],
             *[Library(name, options.path, options.python) for name in ("jax", "pytorch")]]  # fmt: skip
    return [tool for tool in every if not options.tools or tool.name in options.tools.split(",")]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("path", type=Path)
    parser.add_argument("--json", type=Path, required=True, help="the folder of json.hpp")
    parser.add_argument("--codipack", type=Path, help="CoDiPack's folder include")
    parser.add_argument("--python", default=sys.executable, help="an interpreter that has JAX and PyTorch")
    parser.add_argument("--build", type=Path, help="where the C++ programs are and stay")
    parser.add_argument("--only", default="", help="workloads, separated by commas")
    parser.add_argument("--tools", default="", help=f"of {', '.join(COLUMNS)}, separated by commas")
    parser.add_argument("--limit", type=float, default=60.0, help="seconds for one tool's turn")
    parser.add_argument("--seconds", type=float, default=0.3, help="seconds that a tool repeats in its turn")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--growth", action="store_true", help="measure fad alone, at other sizes")
    parser.add_argument("--write", action="store_true", help="write the table into docs/benchmarks.md")
    options = parser.parse_args()
    options.path = options.path.resolve()
    only = set(filter(None, options.only.split(",")))
    os.environ.update(gradbench_tools.THREADS)
    if options.growth:
        section = grown(measure_growth(options, only))
        print(section)
        if options.write:
            PAGE.write_text(insert(PAGE.read_text(encoding="utf-8"), section), encoding="utf-8")
        return
    rows = []
    print(head(), flush=True)
    with tempfile.TemporaryDirectory(prefix="fad-bench-") as folder:
        tools = tools_of(options, (options.build or Path(folder)).resolve())
        for workload, function, size, make in inputs(options.path):
            if only and workload not in only:
                continue
            rows.append(Row(workload, size))
            measure(rows[-1], function, make(), tools, options)
            print(shown(rows[-1]), flush=True)
            for tool, why in rows[-1].why.items():
                print(f"  {rows[-1].name}, {tool}: {why}", file=sys.stderr, flush=True)
        for tool in tools:
            tool.close()
    if options.write:
        import gradbench_picture

        PAGE.write_text(insert(PAGE.read_text(encoding="utf-8"), page(rows)), encoding="utf-8")
        gradbench_picture.write()


if __name__ == "__main__":
    main()
