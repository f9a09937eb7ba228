"""The history of fad's speed, commit by commit: docs/history.md and its chart, from benchmarks/history.json.

    python benchmarks/history.py --add              # measure this commit, and write page and chart
    python benchmarks/history.py --add v0.1.0 HEAD  # measure these commits, each in a checkout of its own
    python benchmarks/history.py                    # write page and chart from what was measured

A gradient's time is a multiple of a plain run of its function in NumPy: both sides take turns in one process, the least
CPU time of each counts, one thread computes. Such multiples can be compared between machines, as times cannot.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[1]
KEPT, PAGE, CHART = ROOT / "benchmarks" / "history.json", ROOT / "docs" / "history.md", ROOT / "docs" / "history.svg"
ROUNDS, BURST = 25, 0.01  # turns of each side, and the seconds of one
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "FAD_NUM_THREADS"), "1")


def chain(x):
    for _ in range(25):
        y = x * 1.01
        x = np.tanh(y + x) * y
    return np.sum(x)


def rosenbrock(x):
    return np.sum(100.0 * (x[1:] - x[:-1] * x[:-1]) ** 2 + (1.0 - x[:-1]) ** 2)


def network(w1, w2, x):
    return np.mean(np.tanh(np.tanh(x @ w1) @ w2) ** 2)


def recurrence(w, xs):
    h = np.zeros(16)
    for t in range(64):
        h = np.tanh(w @ h + xs[t])
    return np.sum(h * h)


def writes(x):
    y = np.zeros(100)
    y[0] = x[0]
    for i in range(1, 100):
        y[i] = 0.5 * y[i - 1] + x[i] ** 2
    return np.sum(y)


def _numbers(*shapes):
    rng = np.random.default_rng(0)
    return tuple(0.3 * rng.normal(size=s) for s in shapes)


PROGRAMS = {
    "75 small operations on 10 numbers": (chain, _numbers((10,))),
    "Rosenbrock's function of 100 000": (rosenbrock, _numbers((100_000,))),
    "network of 256 × 128 × 64, 64 rows": (network, _numbers((256, 128), (128, 64), (64, 256))),
    "recurrence of 64 steps": (recurrence, _numbers((16, 16), (64, 16))),
    "100 writes into an array": (writes, _numbers((100,))),
}


# --- measuring ----------------------------------------------------------------------------------------------------


def burst(run, arguments, calls: int) -> float:
    start = time.process_time()
    for _ in range(calls):
        run(*arguments)
    return (time.process_time() - start) / calls


def measure() -> dict[str, dict[str, float]]:
    """Return for each program the multiples of its plain run that a gradient takes, without and with jit."""
    import fad

    found = {}
    for title, (function, arguments) in PROGRAMS.items():
        sides = {"numpy": function, "grad": fad.grad(function), "jit": fad.jit(fad.grad(function))}
        calls, least = {}, dict.fromkeys(sides, np.inf)
        try:
            for name, run in sides.items():
                run(*arguments), run(*arguments)  # recorded, and compiled
                calls[name] = max(1, int(BURST / max(burst(run, arguments, 1), 1e-6)))
        except Exception as error:  # an old commit may not be able to differentiate it
            print(f"{title}: {type(error).__name__}: {error}", file=sys.stderr)
            continue
        for _ in range(ROUNDS):
            for name, run in sides.items():
                least[name] = min(least[name], burst(run, arguments, calls[name]))
        found[title] = {name: round(least[name] / least["numpy"], 3) for name in ("grad", "jit")}
    return found


def git(*words: str) -> str:
    return subprocess.run(["git", "-C", str(ROOT), *words], check=True, capture_output=True, text=True).stdout.strip()


def measure_commit(commit: str) -> dict:
    """Return what a commit's programs take, measured on its own files in a process of its own."""
    number = git("rev-parse", "--short=7", commit)
    with tempfile.TemporaryDirectory() as folder:
        git("worktree", "add", "--detach", folder, number)
        try:
            environment = os.environ | ONE_THREAD | {"PYTHONPATH": folder, "FAD_CACHE_DIR": f"{folder}/build"}
            command = [sys.executable, __file__, "--measure"]
            done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
        finally:
            git("worktree", "remove", "--force", folder)
    if done.returncode:
        raise SystemExit(f"{number} cannot be measured: {done.stderr.strip().splitlines()[-1]}")
    date = git("show", "-s", "--format=%cs %cd", "--date=format:%H:%M", number)
    day, _, hour = date.partition(" ")
    return {"commit": number, "date": f"{day} {hour}", "numpy": np.__version__, "programs": json.loads(done.stdout)}


def add(commits: list[str]) -> None:
    """Measure commits, and put them into their places among those that have been."""
    kept = {entry["commit"]: entry for entry in load()}
    for commit in commits:
        entry = measure_commit(commit)
        print(entry["commit"], entry["date"], entry["programs"], flush=True)
        kept[entry["commit"]] = entry
        entries = sorted(kept.values(), key=lambda e: e["date"])
        KEPT.write_text(json.dumps(entries, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def load() -> list[dict]:
    return json.loads(KEPT.read_text(encoding="utf-8")) if KEPT.exists() else []


# --- showing ------------------------------------------------------------------------------------------------------

_ABOUT = """# History of the benchmarks

How long a gradient takes, as a multiple of a plain run of its function in NumPy, commit by commit. Lower is better; the
axis is logarithmic. Both sides take turns in one process on one core, and the least CPU time of each counts.
[Benchmarks of jit](benchmarks.md) compares with other libraries.

![A gradient's time over a plain run's, for five programs, without and with jit, by commit](history.svg)

`python benchmarks/history.py --add` measures the commit that is checked out, adds it to `benchmarks/history.json`, and
writes this page and its chart; `--add COMMIT ...` measures others, each in a checkout of its own. A step of less than a
fifth between neighbours may be the machine.
"""


def table(entries: list[dict], side: str) -> list[str]:
    lines = ["| commit | date | " + " | ".join(PROGRAMS) + " |", "|---|---|" + "---:|" * len(PROGRAMS)]
    for e in entries:
        cells = [f"{e['programs'][title][side]:.3g}" if title in e["programs"] else "–" for title in PROGRAMS]
        lines.append(f"| `{e['commit']}` | {e['date']} | " + " | ".join(cells) + " |")
    return lines


def write(entries: list[dict]) -> None:
    """Write the page and the chart."""
    parts = [_ABOUT, "## Without jit\n", *table(entries, "grad"), "\n## With jit\n", *table(entries, "jit")]
    PAGE.write_text("\n".join(parts) + "\n", encoding="utf-8")
    draw(entries)


def draw(entries: list[dict]) -> None:
    import matplotlib

    matplotlib.use("svg")
    import matplotlib.pyplot as plt

    matplotlib.rcParams["svg.hashsalt"] = "history"
    plt.style.use("fad.style")
    figure, axes = plt.subplots(1, 2, figsize=(10, 4.2), sharey=True)
    for ax, side, title in zip(axes, ("grad", "jit"), ("fad.grad", "fad.jit(fad.grad)"), strict=True):
        for name in PROGRAMS:
            points = [(k, e["programs"][name][side]) for k, e in enumerate(entries) if name in e["programs"]]
            ax.plot(*zip(*points, strict=True), "o-", markersize=4, label=name)
        ax.axhline(1.0, color="#888888", linewidth=1, linestyle=":")
        ax.set(title=title, yscale="log")
        ax.set_xticks(range(len(entries)), [e["commit"] for e in entries], rotation=60, fontsize=8)
    axes[0].set_ylabel("multiples of a plain run")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=2, fontsize=8)
    figure.savefig(CHART, metadata={"Date": None})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--add", nargs="*", metavar="COMMIT", help="measure commits, HEAD if none is named")
    parser.add_argument("--measure", action="store_true", help="print what the fad that is found takes, as JSON")
    options = parser.parse_args()
    if options.measure:
        json.dump(measure(), sys.stdout)
        return
    if options.add is not None:
        add(options.add or ["HEAD"])
    write(load())


if __name__ == "__main__":
    main()
