"""NPBench's programs, unchanged, differentiated: right or wrong, and what a gradient costs beside the plain NumPy run.

    python benchmarks/npbench.py PATH [--preset S] [--only adi,lu] [--jit] [--hvp] [--jax] [--numba] [--limit SECONDS]
                                 [--write]

PATH is a checkout of github.com/spcl/npbench; nothing of it is copied. Every array of floating-point or complex numbers
that a program takes is differentiated; the loss is a weighted sum of everything that the program returns or leaves in
its arguments. The gradient (and the derivative along a direction, in forward mode) is compared with extrapolated
central differences of the plain NumPy program. `--jit` does the same under ``fad.jit``, `--hvp` compares Hessians times
a vector, forward over reverse and reverse over reverse, with differences of the gradient, `--jax` times the gradient of
JAX's own version of each program, and `--numba` the plain run of Numba's. A compiled gradient finds no kernels on disk
at its first call. `--write` puts the table and a picture into docs/benchmarks.md.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import inspect
import json
import math
import os
import resource
import signal
import statistics
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ["FAD_CACHE_DIR"] = tempfile.mkdtemp(prefix="fad-bench-")

import numpy as np
from npbench_sides import load, time_jax, time_numba, timed

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
# Programs whose cost is that of their loops: those that a C++ programmer would write by hand.
SOLVERS = {
    "jacobi_2d", "heat_3d", "seidel_2d", "adi", "lu", "trmm", "syrk", "symm", "trisolv", "durbin", "nbody",
    "cavity_flow",
}  # fmt: skip
TOLERANCE = 2e-5
ILL_CONDITIONED = "ill-conditioned"  # the last bit of the point decides
TIMED = ("right", ILL_CONDITIONED)
PAGE = Path(__file__).parents[1] / "docs" / "benchmarks.md"
HEADING = "## NPBench"


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
    found = SimpleNamespace(
        name=name, module=name, entry=info["func_name"], folder=folder, function=function, args=args, active=active
    )  # fmt: skip
    found.outputs = sorted({*written(found), *(k for k in info["output_args"] if k in args)}, key=list(args).index)
    return found


def call(p: SimpleNamespace, args: dict) -> Any:
    """Call a program with arguments by name, in its order if it takes them all."""
    whole = len(inspect.signature(p.function).parameters) == len(p.args)
    return p.function(*[args[k] for k in p.args]) if whole else p.function(**args)


def written(p: SimpleNamespace) -> list[str]:
    """Return the arguments that a program changes: of trisolv NPBench names another one."""
    args = {k: v.copy() if isinstance(v, np.ndarray) else v for k, v in p.args.items()}
    call(p, args)
    arrays = [k for k, v in p.args.items() if isinstance(v, np.ndarray)]
    return [k for k in arrays if not np.array_equal(args[k], p.args[k], equal_nan=args[k].dtype.kind in "fc")]


def loss_of(p: SimpleNamespace) -> tuple[Callable, list]:
    """Return the loss as a function of the active arrays, and the point."""
    rng = np.random.default_rng(0)
    weights: list = []

    def loss(*arrays):
        args = {k: v.copy() if isinstance(v, np.ndarray) else v for k, v in p.args.items() if k not in p.active}
        args.update(zip(p.active, arrays, strict=True))
        returned = call(p, args)
        found = [args[k] for k in p.outputs]
        found += list(returned) if isinstance(returned, tuple) else [] if returned is None else [returned]
        found = [y for y in found if (y.dtype.kind if hasattr(y, "dtype") else np.asarray(y).dtype.kind) in "fc"]
        if not weights:
            weights.extend(rng.standard_normal(np.shape(y)) for y in found)
        parts = [y.real + 0.5 * y.imag if np.iscomplexobj(y) else y for y in found]
        return sum([np.sum(w * y) for w, y in zip(weights, parts, strict=True)], start=0.0)

    return loss, [p.args[k] for k in p.active]


def differences(function: Callable, point: list, direction: list) -> tuple[float, float]:
    """Return the derivative along a direction by extrapolated differences, and how far from it they may be.

    That is what is left of the step, and what rounding leaves of the difference of two values of the function. In
    single precision a step that is long enough for rounding meets kinks; there two steps have to agree as well.
    """
    single = any(x.dtype.itemsize // (2 if x.dtype.kind == "c" else 1) < 8 for x in point)
    eps = float(np.finfo(np.float32 if single else np.float64).eps)

    def estimate(h):
        ends = [[float(function(*[x + t * d for x, d in zip(point, direction, strict=True)])) for t in (s, -s)]
                for s in (h, h / 2)]  # fmt: skip
        a, b = (ends[0][0] - ends[0][1]) / (2 * h), (ends[1][0] - ends[1][1]) / h
        return b + (b - a) / 3, abs(b - a) / 3 + 16 * eps * max(map(abs, ends[1])) / h

    found: list[tuple[float, float]] = []
    for h in (1e-2, 2e-3) if single else (1e-3, 1e-4, 1e-5, 1e-7, 1e-9, 1e-11):
        if h < 1e-7 and any(doubt < 1e-4 * abs(value) for value, doubt in found):
            break  # the steps below are for programs that are all but chaotic
        with contextlib.suppress(np.linalg.LinAlgError):
            value, doubt = estimate(h)
            if math.isfinite(doubt):  # or it is too far from where the program is defined
                found.append((value, doubt))
    if not found:
        return math.nan, math.nan
    relative = [(doubt / (abs(value) + 1e-30), value, doubt) for value, doubt in found]
    _, value, doubt = min(relative)
    if doubt > 0.1 * abs(value):  # there is no slope but rounding
        value, doubt = min(found, key=lambda pair: pair[1])
    return value, doubt + (abs(found[0][0] - found[-1][0]) / 10 if single else 0.0)


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


def is_ill_conditioned(function: Callable, point: list) -> bool:
    """Return whether the last bit of the point decides what a function gives: chaos makes of it whatever it likes."""
    value, rng = float(function(*[x.copy() for x in point])), np.random.default_rng(2)
    most = max(1e-6, 1e4 * max((np.finfo(x.dtype).eps for x in point), default=0.0))
    for _ in range(3):
        signs = [np.finfo(x.dtype).eps * rng.choice([-1.0, 1.0], x.shape) for x in point]
        nudged = [x * (1 + s).astype(x.real.dtype) for x, s in zip(point, signs, strict=True)]
        if abs(float(function(*nudged)) - value) > most * abs(value):
            return True
    return False


def judge(found: float, wanted: float, doubt: float) -> str:
    if not math.isfinite(wanted):
        return "no finite differences"
    error = abs(found - wanted)
    return "right" if error <= max(TOLERANCE * abs(wanted), 10 * doubt) else f"WRONG (by {error:.1e} of {wanted:.1e})"


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


def examine(p: SimpleNamespace, options: argparse.Namespace) -> dict:
    """Compare and time the derivatives of one program: seconds for each way, and what is right."""
    loss, point = loss_of(p)
    rng = np.random.default_rng(1)
    direction, other = [_draw(rng, x) for x in point], [_draw(rng, x) for x in point]
    if p.name in SYMMETRIC:
        direction, other = [[d + np.swapaxes(d, -1, -2) for d in ds] for ds in (direction, other)]
    fresh = lambda: [x.copy() for x in point]
    value = float(loss(*fresh()))
    wanted, doubt = differences(loss, point, direction)
    slack = min(1e-3, doubt / (abs(wanted) + 1e-12))
    seconds = {"numpy": timed(loss, make=fresh)}
    verdicts: dict[str, str] = {}
    chaotic = math.isfinite(value) and is_ill_conditioned(loss, point)

    def told(found: float) -> str:
        return ILL_CONDITIONED if chaotic and math.isfinite(found) else judge(found, wanted, doubt)

    def reverse(of):
        found, g = of(*fresh())
        if not math.isfinite(value):
            return "the program gives no finite value"
        rtol = 1e-6 if slack > 1e-6 else 1e-9
        if not chaotic and not np.allclose(found, value, rtol=rtol, atol=slack):  # terms may cancel
            return "WRONG value"
        return told(inner(g, direction))

    def check(name: str, run: Callable) -> None:
        verdicts[name] = attempt(run, options.limit)

    gradient = fad.value_and_grad(loss, argnums=tuple(range(len(point))))
    check("grad", lambda: reverse(gradient))
    if verdicts["grad"] in TIMED:
        seconds["fad"] = timed(gradient, 0.2, 3, fresh)
    check("jvp", lambda: told(float(fad.jvp(loss, fresh(), direction)[1])))
    if options.jit:
        compiled, pushed = fad.jit(gradient), fad.jit(lambda xs, ts: fad.jvp(loss, xs, ts)[1])
        twice = lambda: [float(pushed(fresh(), direction)) for _ in range(2)][1]
        start = time.perf_counter()
        verdicts["jit grad"] = attempt(lambda: (compiled(*fresh()), "")[1], options.limit)
        first = time.perf_counter() - start
        if not verdicts["jit grad"]:
            seconds["first"] = first
            check("jit grad", lambda: reverse(compiled))
        check("jit jvp", lambda: told(twice()))
        if verdicts["jit grad"] in TIMED:
            seconds["jit"] = timed(compiled, 0.2, 3, fresh)
    if options.hvp and p.active:
        check_hessian(loss, point, direction, other, check)
    for name, wanted_too, time_it in (("jax", options.jax, time_jax), ("numba", options.numba, time_numba)):
        if wanted_too:
            seconds[name] = attempt(lambda: time_it(p), options.limit)  # noqa: B023  called at once
    return {"seconds": seconds, "verdicts": verdicts}


def check_hessian(loss: Callable, point: list, u: list, v: list, check: Callable) -> None:
    """Compare the Hessian between two directions with differences of the gradient, in two nestings."""
    every = tuple(range(len(point)))
    gradient = fad.grad(loss, argnums=every)
    fresh = lambda: [x.copy() for x in point]
    wanted: list = []

    def over(second: Callable) -> Callable:
        def run():
            found = second(fresh())
            nudged = second([x * (1 + np.finfo(x.dtype).eps * np.sign(d.real)) for x, d in zip(point, u, strict=True)])
            if abs(found - nudged) > 1e-4 * abs(found):
                return ILL_CONDITIONED
            if not wanted:
                wanted.extend(differences(lambda *xs: inner(gradient(*xs), v), point, u))
            return judge(found, *wanted)

        return run

    def traced(*xs):
        products = [np.sum((g * d).real) for g, d in zip(gradient(*xs), v, strict=True)]
        return sum(products, start=0.0)

    check("jvp of grad", over(lambda xs: inner(fad.jvp(lambda *xs: gradient(*xs), xs, u)[1], v)))
    check("grad of grad", over(lambda xs: inner(fad.grad(traced, argnums=every)(*xs), u)))


# --- what is shown ---------------------------------------------------------------------------------------------------


def ratio(row: dict, key: str) -> str:
    seconds = row["seconds"].get(key)
    return f"{seconds / row['seconds']['numpy']:.2f}" if isinstance(seconds, float) else "–"


def first_call(row: dict) -> str:
    seconds = row["seconds"].get("first")
    return "–" if seconds is None else f"{seconds:.2f}"


def show(name: str, row: dict) -> str:
    ratios = " ".join(f"{ratio(row, key):>8}" for key in COLUMNS)
    wrong = [f"{k}: {v}" for k, v in row["verdicts"].items() if v != "right"]
    if isinstance(row["seconds"].get("jax"), str):
        wrong.append(f"(JAX: {row['seconds']['jax']})")
    start = f"{name:24} {row['seconds']['numpy'] * 1e3:9.2f}"
    return f"{start} {ratios} {first_call(row):>8}   {'; '.join(wrong) or 'right'}"


def summary(rows: dict) -> str:
    """Return how many programs are right, and the mean costs of a gradient, as a list for a page."""
    lines = []
    for kind in dict.fromkeys(kind for row in rows.values() for kind in row["verdicts"]):
        verdicts = {name: row["verdicts"][kind] for name, row in rows.items() if kind in row["verdicts"]}
        left = [f"{name} ({verdict})" for name, verdict in verdicts.items() if verdict != "right"]
        wrong = f"; not {', '.join(left)}" if left else ""
        lines.append(f"- {kind}: {len(verdicts) - len(left)} of {len(verdicts)} right{wrong}")
    for group in (*GROUPS, "all"):
        for key in COLUMNS:
            named = {k: r for k, r in rows.items() if group == "all" or k in GROUPS[group](rows)}
            found = [float(r["seconds"][key] / r["seconds"]["numpy"]) for r in named.values()
                     if isinstance(r["seconds"].get(key), float)]  # fmt: skip
            if found:
                mean = statistics.geometric_mean(found)
                lines.append(f"- {COLUMNS[key]}, {group}: {mean:.2f} times NumPy's run ({len(found)} programs)")
    return "\n".join(lines)


COLUMNS = {"fad": "fad", "jit": "fad jit", "jax": "JAX jit", "numba": "Numba, no gradient"}
GROUPS = {
    "array programs": lambda rows: set(rows) - LOOPS, "loops over elements": lambda rows: LOOPS,
    "stencils and solvers": lambda rows: SOLVERS,
}  # fmt: skip


def page(rows: dict, preset: str) -> str:
    """Return the section of the page, as Markdown."""
    lines = [f"| {'program':24} | NumPy, ms | fad | fad jit | JAX jit | Numba, no gradient | first call, s | right |",
             "|---|---:|---:|---:|---:|---:|---:|---|"]  # fmt: skip
    for name, row in rows.items():
        right = [k for k, v in row["verdicts"].items() if v == "right"]
        said = "all" if len(right) == len(row["verdicts"]) else ", ".join(right)
        cells = " | ".join(ratio(row, key) for key in COLUMNS)
        lines.append(f"| {name} | {row['seconds']['numpy'] * 1e3:.2f} | {cells} | {first_call(row)} | {said} |")
    kinds = ", ".join(dict.fromkeys(kind for row in rows.values() for kind in row["verdicts"]))
    return f"""{HEADING}

The programs of [NPBench](https://github.com/spcl/npbench), unchanged, at size {preset}: the time of a plain run, and
the value and gradient as a multiple of it. *JAX jit* is the gradient of the version that NPBench has for JAX, – where
there is none, or it has no gradient; *Numba* is the plain run of its version for Numba, without a derivative.
Arguments are copied before each call, outside of what is timed, for programs write into them.
*First call* is that of fad jit, recording and compiling included.
*Right* is what equals extrapolated differences, of: {kinds}.
`python benchmarks/npbench.py PATH --jit --hvp --jax --numba --write` makes this section on a checkout at PATH; each
comparison may take `--limit` seconds. *Ill-conditioned* is what the last bit of the point decides. JAX's gradients are
timed, and not compared. 0.00 under jit is a derivative that does not depend on the arguments, because the program is
linear in what is differentiated or its result is of integers: it is computed when the program is compiled.

![Cost of a gradient of each program beside its plain run](npbench.svg)

{os.linesep.join(lines)}

{summary(rows)}
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("path", type=Path)
    parser.add_argument("--preset", default="S")
    parser.add_argument("--only", default="", help="programs, separated by commas")
    parser.add_argument("--jit", action="store_true", help="also under fad.jit")
    parser.add_argument("--hvp", action="store_true", help="also Hessians times a vector")
    parser.add_argument("--jax", action="store_true", help="time JAX's own versions, too")
    parser.add_argument("--numba", action="store_true", help="time Numba's plain run, too")
    parser.add_argument("--limit", type=float, default=60.0, help="seconds for each comparison")
    parser.add_argument("--write", action="store_true", help="write the table into docs/benchmarks.md")
    options = parser.parse_args()
    sys.path.insert(0, str(options.path))
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    most = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") * 4 // 5
    resource.setrlimit(resource.RLIMIT_AS, (most, most))  # what needs more is out of memory, and the rest goes on
    only = set(filter(None, options.only.split(",")))
    print(f"{'program':24} {'NumPy ms':>9} {'fad/np':>8} {'jit/np':>8} {'JAX/np':>8} {'Numba/np':>8} {'first s':>8}")
    rows = {}
    for file in sorted((options.path / "bench_info").glob("*.json")):
        name = file.stem
        info = json.loads(file.read_text())["benchmark"]
        if name in NOT_DIFFERENTIABLE or (only and name not in only):
            continue
        p = program(options.path, info, options.preset)
        gc.collect()
        gc.freeze()  # what other programs and libraries left is not looked at while this one is timed
        rows[name] = examine(p, options)
        print(show(name, rows[name]), flush=True)
    print(summary(rows))
    if options.write:
        import npbench_picture

        before, _, after = PAGE.read_text(encoding="utf-8").partition(f"\n{HEADING}\n")
        _, following, rest = after.partition("\n## ")
        text = f"{before.rstrip()}\n\n{page(rows, options.preset).rstrip()}\n{following}{rest}"
        PAGE.write_text(text, encoding="utf-8")
        npbench_picture.write()


if __name__ == "__main__":
    main()
