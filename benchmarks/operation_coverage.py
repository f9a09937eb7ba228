"""What JAX, PyTorch and HIPS autograd cover of fad's operations, found by running them; writes docs/coverage.md.

    python benchmarks/operation_coverage.py [-o docs/coverage.md] [-a answers.json]

Every operation of the registry that answers for a function of NumPy or SciPy is called on its own samples in each
library that is installed, in value, gradient, forward mode and second order, and compared with fad, whose own rules the
contract measures against differences. What iterates or integrates has a program of its own instead of samples
(tests/oracles/solvers.py). A library that is missing keeps no column, and the script says so. It takes about half an
hour; with -a the answers are kept in a file, and a page of other words is made from them at once.
"""

from __future__ import annotations

import argparse
import datetime
import importlib.metadata
import json
import sys
import time
import warnings
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))  # the libraries are called as the oracle tests ask them
from oracles import libraries, peers, solvers  # noqa: E402

SOLVERS = "Solvers, integrals, sparse matrices"
# heading -> the files of the operations below it
HEADINGS = {
    "Elementwise": "elementwise complexes asking predicates scimath activation functional",
    "Shape, indexing, creation": "structural arranging padding diagonals indexing taking creation mapping",
    "Reductions, scans, statistics": "reduction scans statistics differences norms quantiles histograms",
    "Products, polynomials, curves": "contraction einsum polynomials convolution curves",
    "Selection, sorting, sets": "selection sorting sets",
    "Linear algebra": "solving decompositions eigen singular functions equations structured triangular common",
    "Fourier and cosine transforms": "fft scipy.fft",
    "Convolution and pooling": "conv pooling",
    "Special functions": "scipy.special",
    "Distributions": "scipy.stats",
    "Integrals of samples": "scipy.integrate",
    "Signals and images": "scipy.signal scipy.ndimage",
    "Interpolation": "scipy.interpolate",
    "Distances": "scipy.spatial",
    SOLVERS: "",
}
MARKS = {
    "yes": "✓", "value": "value", "forward": "no forward mode", "second": "no second order",
    "gradient": "gradient only", "pushed": "forward mode only", "part": "in part", "NaN": "NaN", "wrong": "differs",
    "absent": "–", "call": "another call",
}  # fmt: skip


def heading_of(path: str, operation: Any) -> str:
    """Return the heading that an operation stands below: that of its file, or of its part of SciPy."""
    if isinstance(operation, solvers.Program):
        return SOLVERS
    for heading, files in HEADINGS.items():
        if any(path.startswith(f + ".") for f in files.split() if "." in f):
            return heading
    prefixes = {"linalg.": "Linear algebra", "scipy.linalg.": "Linear algebra", "fft.": "Fourier and cosine transforms"}
    for prefix, heading in prefixes.items():
        if path.startswith(prefix):
            return heading
    file = _file(operation)
    return next((heading for heading, files in HEADINGS.items() if file in files.split()), "Elementwise")


def _file(operation: Any) -> str:
    functions = [getattr(operation, slot, None) for slot in ("function", "samples", "jvp", "forward")]
    for f in functions:
        while hasattr(f, "__wrapped__"):
            f = f.__wrapped__
        name = getattr(getattr(f, "__code__", None), "co_filename", "")
        if "/fad/ops/" in name:
            return Path(name).stem
    return "elementwise"


def summary(answer: Any, flat: bool) -> str:
    """Return one word for what a library said about an operation."""
    if answer == "absent":
        return "absent"
    if isinstance(answer, str):
        return "call"
    said = {stage: text.split(":")[0] for stage, text in answer.items()}
    if "wrong" in said.values():
        return "wrong"
    if "NaN" in said.values():
        return "NaN"
    right = {stage for stage in ("gradient", "forward", "second") if said.get(stage) == "yes"}
    if "some" in said.values():
        return "part"
    if len(right) == len(said) - 1:
        return "value" if flat or not right else "yes"
    names = {
        ("gradient", "second"): "forward", ("forward", "gradient"): "second", ("gradient",): "gradient",
        ("forward",): "pushed", (): "value",
    }  # fmt: skip
    return names.get(tuple(sorted(right)), "part")


def ours(operation: Any) -> str:
    """Return the same word for fad, from the registry."""
    if operation.flat is True:
        return "value"
    return "second" if operation.order == 1 else "yes"


def compare_all(found: dict, others: list) -> dict[str, dict[str, Any]]:
    answers: dict[str, dict[str, Any]] = {path: {} for path in found}
    for peer in others:
        start = time.perf_counter()
        for k, (path, operation) in enumerate(found.items()):
            is_program = isinstance(operation, solvers.Program)
            answer = peer.try_program(operation) if is_program else peer.try_operation(path, operation)
            answers[path][peer.name] = answer
            if k % 60 == 0:
                peer.rest()
        print(f"{peer.name} {peer.version}: {len(found)} operations in {time.perf_counter() - start:.0f} s", flush=True)
    return answers


def installed() -> list:
    here = []
    for kind in (libraries.Jax, libraries.Torch, libraries.Autograd):
        try:
            here.append(kind())
        except ImportError as error:
            print(f"{kind.name} is not installed, so its column is missing: {error}")
    return here


def page(found: dict, others: list, answers: dict) -> str:
    """Return the page as Markdown."""
    words = {
        path: {"fad": ours(op)} | {p.name: summary(answers[path][p.name], op.flat is True) for p in others}
        for path, op in found.items()
    }
    names = ["fad", *[p.name for p in others]]
    by_heading = defaultdict(list)
    for path, op in found.items():
        by_heading[heading_of(path, op)].append(path)
    versions = ", ".join(f"{p.name} {p.version}" for p in others)
    numpy_, scipy_ = importlib.metadata.version("numpy"), importlib.metadata.version("scipy")
    parts = [
        HEAD.format(versions=versions, numpy=numpy_, scipy=scipy_, date=datetime.date.today(), count=len(found)),
        *_totals(found, words, answers, names),
        *_by_heading(by_heading, words, found, names),
        "## Every function\n\n" + LEGEND,
        *[_details(heading, by_heading[heading], words, names) for heading in HEADINGS if heading in by_heading],
        *_differences(others, words),
    ]
    return "\n\n".join(parts) + "\n"


HEAD = """# What is differentiated, here and elsewhere

Made by `python benchmarks/operation_coverage.py` on {date} from fad's registry and by running the other libraries:
{versions}, with NumPy {numpy} and SciPy {scipy}.

{count} public functions of fad are called in each library that has a function of that name: operations on the samples
on which they pass fad's contract, solvers in a program each. Value, gradient (reverse mode), forward mode and second
derivative are compared with fad's. Where fad refuses an argument (the order of some Bessel functions, degrees, counts:
the error names it), the samples hold it fast. What a library has under another name or in another form is not seen
here: PyTorch's distributions are objects, its pooling in one dimension and its fills are methods, JAX has much in
`jax.lax`, and libraries built on these (Optimistix, Diffrax, torchdiffeq …) have solvers of their own."""

LEGEND = """| mark | meaning |
|---|---|
| ✓ | value, gradient, forward mode and second order are there and agree with fad |
| value | the value alone; so it is for counts, places and comparisons, which have no derivative |
| no forward mode, no second order | the rest is there and agrees |
| gradient only, forward mode only | the value and this are there and agree, the other mode and second order are not |
| in part | right for some of the samples; others raise |
| NaN | a derivative is NaN where fad's is a number |
| differs | a derivative is another one; the reasons stand at the end |
| another call | a function of that name takes other arguments, or computes something else; see the end too |
| – | there is no function of that name |"""


def _table(head: list, rows: list) -> str:
    lines = [head, ["---", *["---:" if row_is_number(rows, k) else "---" for k in range(1, len(head))]], *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)


def row_is_number(rows: list, k: int) -> bool:
    return all(isinstance(row[k], int) for row in rows)


def _totals(found, words, answers, names):
    smooth = [path for path, op in found.items() if op.flat is not True]
    rows = [["value", *[sum(words[p][n] not in ("absent", "call") for p in found) for n in names]]]
    for stage, text in (("gradient", "gradient"), ("forward", "forward mode"), ("second", "second order")):
        rows.append([text, *[sum(_has(words, answers, p, n, stage) for p in smooth) for n in names]])
    text = f"Of {len(found)} functions, {len(smooth)} have a derivative. So many are right, for some samples at least:"
    return ["## In numbers", text, _table(["", *names], rows)]


def _has(words, answers, path, name, stage):
    if name == "fad":
        return stage != "second" or words[path]["fad"] == "yes"
    answer = answers[path][name]
    if stage == "second" and not _has(words, answers, path, name, "gradient"):
        return False
    return isinstance(answer, dict) and answer.get(stage, "").startswith(("yes", "some"))


def _by_heading(by_heading, words, found, names):
    rows = []
    for heading in HEADINGS:
        paths = [p for p in by_heading.get(heading, ()) if found[p].flat is not True]
        if paths:
            rows.append([heading, len(paths), *[sum(words[p][n] == "yes" for p in paths) for n in names]])
    text = "Right to second order in both modes, for every sample, heading by heading:"
    return [text, _table(["", "functions", *names], rows)]


def _details(heading, paths, words, names):
    rows = defaultdict(list)
    for path in paths:
        rows[tuple(words[path][n] for n in names)].append(path)
    order = sorted(rows.items(), key=lambda item: (-Counter(item[0])["yes"], -len(item[1])))
    body = [[" ".join(f"`{peers.shown(p)}`" for p in sorted(group)), *[MARKS[w] for w in key]] for key, group in order]
    return f"### {heading}\n\n" + _table(["function", *names], body)


def _differences(others, words):
    other = _reasons(others, words, "different", ("wrong", "NaN"))
    calls = _reasons(others, words, "not_comparable", ("call",))
    return [
        *(["## Where another library gives another derivative", *other] if other else []),
        *(["## Where a function of the same name was not compared", *calls] if calls else []),
    ]


def _reasons(others, words, kind, marks):
    """Return a list of reasons for each library, of those that stand in `tests/oracles/libraries.py`."""
    parts = []
    for peer in others:
        reasons = defaultdict(list)
        for path, reason in getattr(peer, kind).items():
            if words.get(path, {}).get(peer.name) in marks:
                reasons[reason].append(path)
        lines = [f"- {' '.join(f'`{p}`' for p in paths)}: {reason}" for reason, paths in reasons.items()]
        if lines:
            parts.append(f"### {peer.name}\n\n" + "\n".join(lines))
    return parts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=Path, default=ROOT / "docs" / "coverage.md")
    parser.add_argument("-a", "--answers", type=Path, help="where the answers are kept, and read again if it exists")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    others, found = installed(), {**peers.operations(), **solvers.programs()}
    if options.answers and options.answers.exists():
        answers = json.loads(options.answers.read_text(encoding="utf-8"))
    else:
        answers = compare_all(found, others)
    if options.answers:
        options.answers.write_text(json.dumps(answers), encoding="utf-8")
    options.output.write_text(page(found, others, answers), encoding="utf-8")
    for path, peer in ((p, q) for p in found for q in others):
        said = answers[path][peer.name]
        if path not in peer.different and summary(said, False) in ("wrong", "NaN"):
            print(f"no reason is written down why {path} differs in {peer.name}: {said}")
    print(f"wrote {options.output}")


if __name__ == "__main__":
    main()
