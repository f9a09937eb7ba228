"""NPBench's programs, unchanged, differentiated: right or wrong, and what a gradient costs beside the plain NumPy run.

    python benchmarks/npbench.py PATH [--preset S] [--only adi,lu] [--jit] [--limit SECONDS]

PATH is a checkout of github.com/spcl/npbench; nothing of it is copied. Every array of floating-point or complex numbers
that a program takes is differentiated; the loss is a weighted sum of everything that the program returns or leaves in
its arguments. The gradient (and the derivative along a direction, in forward mode) is compared with extrapolated
central differences of the plain NumPy program.
"""

from __future__ import annotations

import argparse
import importlib.util
import inspect
import json
import os
import signal
import statistics
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

import fad

# Without a derivative: they count, compare or compress.
NOT_DIFFERENTIABLE = {"compute", "mandelbrot1", "mandelbrot2", "crc16"}
# The radius chooses the bins of these: the derivative in it is zero, and differences jump.
ACTIVE = {"azimint_hist": ["data"], "azimint_naive": ["data"]}
# A Cholesky factor is a function of symmetric matrices.
SYMMETRIC = {"cholesky2"}
# Python loops over single elements, or over products of two vectors: the others compute with whole arrays.
LOOPS = {
    "cholesky", "durbin", "gramschmidt", "lu", "ludcmp", "seidel_2d", "spmv", "symm", "syr2k", "syrk", "trisolv",
    "trmm",
}  # fmt: skip
TOLERANCE = 2e-5


def load(path: Path, name: str) -> Any:
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def program(root: Path, info: dict, preset: str) -> SimpleNamespace:
    """Return a program's function, its arguments, and which of them are arrays, written, differentiated."""
    folder = root / "npbench" / "benchmarks" / info["relative_path"]
    name = info["module_name"]
    module = load(folder / f"{name}_numpy.py", f"{name}_numpy")
    values = dict(info["parameters"][preset])
    if info.get("init"):
        init = load(folder / f"{name}.py", name)
        make = getattr(init, info["init"]["func_name"])
        made = make(*[values[k] for k in info["init"]["input_args"]])
        outputs = info["init"]["output_args"]
        values.update(zip(outputs, made if len(outputs) > 1 else (made,), strict=True))
    function = getattr(module, info["func_name"])
    args = {k: values[k] for k in info["input_args"]}
    active = [k for k, v in args.items() if isinstance(v, np.ndarray) and v.dtype.kind in "fc"]
    active = ACTIVE.get(info["module_name"], active)
    return SimpleNamespace(
        name=info["module_name"], function=function, args=args, active=active, outputs=info["output_args"]
    )


def loss_of(p: SimpleNamespace) -> tuple[Callable, list]:
    """Return the loss as a function of the active arrays, and the point."""
    rng = np.random.default_rng(0)
    weights: list = []
    names = list(inspect.signature(p.function).parameters)

    def loss(*arrays):
        args = {k: v.copy() if isinstance(v, np.ndarray) else v for k, v in p.args.items() if k not in p.active}
        args.update(zip(p.active, arrays, strict=True))
        returned = p.function(*[args[k] for k in p.args]) if len(names) == len(p.args) else p.function(**args)
        found = [args[k] for k in p.outputs if k in args]
        found += list(returned) if isinstance(returned, tuple) else [] if returned is None else [returned]
        found = [y for y in found if (y.dtype.kind if hasattr(y, "dtype") else np.asarray(y).dtype.kind) in "fc"]
        if not weights:
            weights.extend(rng.standard_normal(np.shape(y)) for y in found)
        parts = [y.real + 0.5 * y.imag if np.iscomplexobj(y) else y for y in found]
        return sum([np.sum(w * y) for w, y in zip(weights, parts, strict=True)], start=0.0)

    return loss, [p.args[k] for k in p.active]


def differences(loss: Callable, point: list, direction: list) -> tuple[float, float]:
    """Return the derivative along a direction by extrapolated differences, and how far two of them are apart."""

    def central(h):
        ends = [float(loss(*[x + s * h * d for x, d in zip(point, direction, strict=True)])) for s in (1, -1)]
        return (ends[0] - ends[1]) / (2 * h)

    single = any(x.dtype.itemsize // (2 if x.dtype.kind == "c" else 1) < 8 for x in point)
    best = (np.inf, 0.0)
    for h in (1e-2, 2e-3) if single else (1e-3, 1e-4, 1e-5, 1e-7, 1e-9, 1e-11):
        if h < 1e-7 and best[0] < 1e-4:
            break  # the steps below are for programs that are all but chaotic
        try:
            a, b = central(h), central(h / 2)
        except np.linalg.LinAlgError:  # too far from where the program is defined
            continue
        value = b + (b - a) / 3
        best = min(best, (abs(value - b) / (abs(value) + 1e-30), value))
    return best[1], best[0]


class TimeIsUp(Exception):
    pass


def within(seconds: float, run: Callable) -> Any:
    """Run a function; raise TimeIsUp if it takes longer."""

    def stop(*_):
        raise TimeIsUp

    was = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        return run()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, was)


def timed(run: Callable, least: float = 0.3, most: int = 7) -> float:
    run()
    times, start = [], time.perf_counter()
    while len(times) < most and (not times or time.perf_counter() - start < least):
        before = time.perf_counter()
        run()
        times.append(time.perf_counter() - before)
    return statistics.median(times)


def judge(found: float, wanted: float, doubt: float) -> str:
    error = abs(found - wanted) / (abs(wanted) + 1e-12)
    return "right" if error < max(TOLERANCE, 10 * doubt) else f"WRONG ({error:.1e})"


def inner(gradient: Any, direction: list) -> float:
    return float(sum(np.sum((g * d).real) for g, d in zip(gradient, direction, strict=True)))


def attempt(run: Callable, limit: float) -> str:
    try:
        return within(limit, run)
    except TimeIsUp:
        return f"over {limit:.0f} s"
    except Exception as error:
        return f"{type(error).__name__}: {str(error)[:90]}"


def _draw(rng: np.random.Generator, x: np.ndarray) -> np.ndarray:
    d = rng.standard_normal(x.shape)
    return (d + 1j * rng.standard_normal(x.shape) if x.dtype.kind == "c" else d).astype(x.dtype)


def examine(p: SimpleNamespace, jit: bool, limit: float) -> dict:
    """Compare and time the derivatives of one program."""
    loss, point = loss_of(p)
    rng = np.random.default_rng(1)
    direction = [_draw(rng, x) for x in point]
    if p.name in SYMMETRIC:
        direction = [d + np.swapaxes(d, -1, -2) for d in direction]
    fresh = lambda: [x.copy() for x in point]
    value = float(loss(*fresh()))
    wanted, doubt = differences(loss, point, direction)
    row: dict = {"numpy": timed(lambda: loss(*fresh()))}
    every = tuple(range(len(point)))
    gradient = fad.value_and_grad(loss, argnums=every)

    def reverse(of):
        def run():
            found, g = of(*fresh())
            if not np.allclose(found, value, rtol=1e-6 if doubt > 1e-6 else 1e-9):
                return "WRONG value"
            return judge(inner(g, direction), wanted, doubt)

        return run

    row["grad"] = attempt(reverse(gradient), limit)
    if row["grad"] == "right":
        row["fad"] = timed(lambda: gradient(*fresh()), 0.2, 3)
    row["jvp"] = attempt(lambda: judge(float(fad.jvp(loss, fresh(), direction)[1]), wanted, doubt), limit)
    if jit:
        compiled = fad.jit(gradient)
        start = time.perf_counter()
        row["jit grad"] = attempt(lambda: (compiled(*fresh()), reverse(compiled)())[1], limit)
        row["first"] = time.perf_counter() - start
        if row["jit grad"] == "right":
            row["jit"] = timed(lambda: compiled(*fresh()), 0.2, 3)
    return row


def show(name: str, row: dict) -> str:
    plain = row["numpy"]
    ratio = lambda key: f"{row[key] / plain:8.2f}" if key in row else "       –"
    states = f"{row['grad']:14} {row['jvp']:14} {row.get('jit grad', ''):14}"
    return f"{name:18} {plain * 1e3:9.2f} {ratio('fad')} {ratio('jit')}   {states}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("path", type=Path)
    parser.add_argument("--preset", default="S")
    parser.add_argument("--only", default="")
    parser.add_argument("--jit", action="store_true")
    parser.add_argument("--limit", type=float, default=60.0)
    options = parser.parse_args()
    sys.path.insert(0, str(options.path))
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    only = set(filter(None, options.only.split(",")))
    print(f"{'program':18} {'NumPy ms':>9} {'fad/np':>8} {'jit/np':>8}   {'gradient':14} {'jvp':14} jit")
    ratios: dict[str, float] = {}
    right = total = 0
    for file in sorted((options.path / "bench_info").glob("*.json")):
        name = file.stem
        info = json.loads(file.read_text())["benchmark"]
        if name in NOT_DIFFERENTIABLE or (only and name not in only):
            continue
        p = program(options.path, info, options.preset)
        row = examine(p, options.jit, options.limit)
        print(show(name, row), flush=True)
        total += 1
        right += row["grad"] == "right" and row["jvp"] == "right"
        if "fad" in row and p.active:  # else there is nothing to differentiate
            ratios[name] = row["fad"] / row["numpy"]
    print(f"{right} of {total} right")
    arrays, loops = ({k: r for k, r in ratios.items() if (k in LOOPS) is want} for want in (False, True))
    for group, found in (("array programs", arrays), ("loops over elements", loops), ("all", ratios)):
        if found:
            print(f"gradient over NumPy's run, {group}: {statistics.geometric_mean(found.values()):.2f}")


if __name__ == "__main__":
    main()
