"""fad on a GPU, with and without jit, beside fad on the CPU, and PyTorch and JAX on the same GPU, where they are there.

    python benchmarks/gpu.py            # --small for a first try; names of programs for those alone

Gradients of the programs in `gpu_programs.py` and steps of training three of them, with momentum, in float32, without
TensorFloat-32 on any side. Each library computes each of them in a process of its own, so that one that fails leaves
the others their figures. The columns are milliseconds per gradient or step, after a warm-up, the GPU waited for at the
end only; the number of kernels as NVIDIA's profiler counts them (through PyTorch, which sees those of CuPy and JAX
too); and, read before the warm-up, the peak of the library's memory pool, and by how much the memory in use that
nvidia-smi shows has grown, libraries included. Without CuPy or a GPU it says so, and counts, on the stand-in of the
tests, which needs neither, the array operations and kernels that fad runs on a device, and the most memory that it
holds, operands left out.
"""

from __future__ import annotations

import datetime
import functools
import gc
import importlib
import importlib.metadata
import importlib.util
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
from gpu_programs import MOMENTUM, PROGRAMS, RATE, STEPS, draw

import fad
from fad import backends
from fad.ops.products.conv import conv

BOUND = 1.2  # of PyTorch's memory for the gradient of an MLP
COMPARED = [
    ("fad, GPU", "PyTorch"),
    ("fad, GPU, jit", "PyTorch"),
    ("fad, GPU, jit", "PyTorch, compiled"),
    ("fad, GPU, jit", "JAX, jit"),
]
LIMITS = {COMPARED[1]: 1.0, COMPARED[2]: 1.3}  # of the time of a step of training


# --- the programs with each library: what computes a gradient, or a step of training ----------------------------------


def of_fad(name):
    """Return a function of a program's operands: its gradient, or for ``"... step"`` a step of its training."""
    from scipy.special import erf

    xp = SimpleNamespace(tanh=np.tanh, exp=np.exp, log=np.log, sqrt=np.sqrt, erf=erf)
    xp.relu = lambda x: np.maximum(x, 0.0)
    xp.conv = lambda x, w: conv(x, w, padding=1)
    return of_functions(name, xp, fad)


def of_functions(name, xp, library):
    """Return the gradient of a program, or a step of its training, by a library of transformations of functions."""
    program = PROGRAMS[name.removesuffix(" step")]
    if not name.endswith(" step"):
        return library.grad(lambda *args: program(*args, xp))
    value_and_grad = library.value_and_grad(lambda *args: program(*args, xp))

    def step(params, speeds, *rest):
        loss, grads = value_and_grad(params, *rest)
        speeds = [MOMENTUM * v + g for v, g in zip(speeds, grads, strict=True)]
        return [p - RATE * v for p, v in zip(params, speeds, strict=True)], speeds, loss

    return step


def repeat(compute, name, args):
    """Return what computes a gradient again, or takes one step after the other."""
    if not name.endswith(" step"):
        return lambda: compute(*args)
    params, *rest = args
    state = [params, [0.0 * p for p in params]]

    def run():
        *state[:], loss = compute(*state, *rest)
        return loss

    return run


def of_torch(torch, name, args, mode):
    """Return a function that computes a gradient with PyTorch on the GPU, or takes a step."""
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    xp = SimpleNamespace(tanh=torch.tanh, exp=torch.exp, log=torch.log, sqrt=torch.sqrt, erf=torch.erf, relu=torch.relu)
    xp.conv = lambda x, w: torch.nn.functional.conv2d(x, w, padding=1)
    program = PROGRAMS[name.removesuffix(" step")]
    loss = lambda *args: program(*args, xp)
    loss = loss if mode is None else torch.compile(loss, mode=mode)
    args = fad.tree.map(lambda x: torch.tensor(x, device="cuda"), args)
    leaves = args[0] if isinstance(args[0], list) else [args[0]]
    for x in leaves:
        x.requires_grad_()
    if not name.endswith(" step"):
        return lambda: torch.autograd.grad(loss(*args), leaves)
    optimiser = torch.optim.SGD(leaves, lr=RATE, momentum=MOMENTUM)

    def step():
        optimiser.zero_grad()
        value = loss(*args)
        value.backward()
        optimiser.step()
        return value

    return step


def of_jax(jax, name, args):
    """Return a function that computes a gradient with JAX, compiled, on the GPU, or takes a step."""
    jax.config.update("jax_default_matmul_precision", "highest")
    jnp = jax.numpy
    xp = SimpleNamespace(tanh=jnp.tanh, exp=jnp.exp, log=jnp.log, sqrt=jnp.sqrt, erf=jax.scipy.special.erf)
    xp.relu = lambda x: jnp.maximum(x, 0.0)
    xp.conv = lambda x, w: jax.lax.conv_general_dilated(x, w, (1, 1), "SAME")
    return repeat(jax.jit(of_functions(name, xp, jax)), name, jax.device_put(args))


# --- the libraries, each with what waits for its results --------------------------------------------------------------


def fad_side(name, args):
    run = repeat(of_fad(name), name, fad.device_put(args, "cupy"))
    return run, lambda out: backends.get("cupy").synchronize()


def fad_jit_side(name, args):
    run = repeat(fad.jit(of_fad(name)), name, fad.device_put(args, "cupy"))
    for _ in range(4):  # recorded, compiled, and its launches recorded
        run()
    return run, lambda out: backends.get("cupy").synchronize()


def torch_side(name, args, mode=None):
    torch = found("torch")
    if not torch.cuda.is_available():
        absent("PyTorch finds no GPU")
    return of_torch(torch, name, args, mode), lambda out: torch.cuda.synchronize()


def jax_side(name, args):
    jax = found("jax")
    if jax.default_backend() != "gpu":
        absent("JAX finds no GPU")
    return of_jax(jax, name, args), jax.block_until_ready


SIDES = {
    "fad, GPU": fad_side,
    "fad, GPU, jit": fad_jit_side,
    "PyTorch": torch_side,
    "PyTorch, compiled": functools.partial(torch_side, mode="default"),
    "JAX, jit": jax_side,
}
ABSENT = 3  # the status of a process whose library is not installed, or finds no GPU


def found(package):
    return importlib.import_module(package) if importlib.util.find_spec(package) else absent(f"there is no {package}")


def absent(why):
    print(why, file=sys.stderr)
    sys.exit(ABSENT)


# --- one library and one gradient, in a process of its own ------------------------------------------------------------


def milliseconds(run, wait, turns=50, rounds=3):
    """Return the time of one run, the median of some rounds."""
    found = []
    for _ in range(rounds):
        for _ in range(3):
            out = run()
        wait(out)
        start = time.perf_counter()
        for _ in range(turns):
            out = run()
        wait(out)
        found.append(1e3 * (time.perf_counter() - start) / turns)
    return statistics.median(found)


def kernels(run, wait):
    """Return the number of CUDA kernels of one run; none where NVIDIA's profiler does not see the GPU."""
    torch = found("torch")
    from torch.profiler import ProfilerActivity, profile

    wait(run())
    with profile(activities=[ProfilerActivity.CUDA]) as seen:
        wait(run())
        torch.cuda.synchronize()
    on_device = [e for e in seen.key_averages() if str(e.device_type).endswith("CUDA")]
    return float(sum(e.count for e in on_device if "Memcpy" not in e.key and "Memset" not in e.key))


def pool_peak(library):
    """Return how many MiB a library's pool of device memory has held at most in this process."""
    if library.startswith("fad"):
        recordings = [x.nbytes() for x in gc.get_objects() if type(x).__name__ == "Replay"]  # in pools of their own
        return (importlib.import_module("cupy").get_default_memory_pool().total_bytes() + sum(recordings)) / 2**20
    if library.startswith("PyTorch"):
        return found("torch").cuda.max_memory_reserved() / 2**20
    stats = found("jax").local_devices()[0].memory_stats()
    return stats.get("peak_pool_bytes", stats["peak_bytes_in_use"]) / 2**20


def asked_of_driver(what):
    """Return what nvidia-smi says of the first GPU; None where it is not installed, or does not answer."""
    command = ["nvidia-smi", "-i", "0", f"--query-gpu={what}", "--format=csv,noheader,nounits"]
    if not shutil.which(command[0]):
        return None
    done = subprocess.run(command, capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else None


def in_use():
    """Return the MiB in use on the first GPU, as nvidia-smi shows them, or None."""
    said = asked_of_driver("memory.used")
    return float(said) if said and said.replace(".", "").isdigit() else None


def measure(library, name, small):
    """Print figures, each as soon as it is known: what comes after may end this process."""
    before = in_use()
    run, wait = SIDES[library](name, draw(small)[name.removesuffix(" step")])
    wait(run())
    after = in_use()
    report("pool", lambda: pool_peak(library))
    if None not in (before, after):
        report("smi", lambda: after - before)
    turns = (3, 1) if small else (50, 3)
    report("ms", lambda: milliseconds(run, wait, *turns))
    if os.environ.get(COUNTED):
        report("kernels", lambda: kernels(run, wait))


def report(figure, measure):
    try:
        print("figure", figure, measure(), flush=True)
    except Exception as error:
        print(f"{figure} is not known: {said(error)}", file=sys.stderr, flush=True)


def said(error):
    return f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"


# --- all of them ------------------------------------------------------------------------------------------------------

MEASURED, COUNTED = "FAD_MEASURED", "FAD_COUNTED"  # of a process's environment: what it is to measure, and the kernels
FIGURES, LONGEST = ("ms", "kernels", "pool", "smi"), 300
# No side computes in TensorFloat-32, nor takes most of the memory at its beginning.
EQUAL = {"NVIDIA_TF32_OVERRIDE": "0", "CUPY_TF32": "0", "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}


def figures(library, name, counted):
    """Return the status of a process that measures a library, and its figures, "?" for one that it does not know."""
    chosen = {MEASURED: f"{library}|{name}", COUNTED: "yes" if counted else ""}
    command = [sys.executable, *sys.orig_argv[1:]]  # as this one was started
    env = {**os.environ, **EQUAL, **chosen}
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        try:
            status = subprocess.run(command, stdout=out, stderr=err, env=env, timeout=LONGEST).returncode
        except subprocess.TimeoutExpired:
            status = f"not done after {LONGEST} s"
        printed, words = (file.seek(0) or file.read().strip().splitlines() for file in (out, err))
    known = {figure: float(value) for _, figure, value in (x.split() for x in printed if x.startswith("figure "))}
    if status or not {"ms", "pool", *["kernels"] * counted} <= set(known):
        print(f"{library} at {name} (status {status}):", *words[-3:], sep="\n    ", file=sys.stderr, flush=True)
    return status, tuple(known.get(figure, "?") for figure in FIGURES)


def row(*cells):
    print("| " + " | ".join(f"{c:>13}" if isinstance(c, str) else f"{c:13.3f}" for c in cells) + " |", flush=True)


def head(*cells):
    row(*cells)
    print("|---" * len(cells) + "|")


def versions(cupy):
    runtime, driver = cupy.cuda.runtime, asked_of_driver("driver_version")
    device, cuda = runtime.getDeviceProperties(0)["name"].decode(), getattr(runtime, "runtimeGetVersion", lambda: "?")()
    print(f"{datetime.date.today()}, {device}, driver {driver or '?'}, CUDA {cuda}, Python {sys.version.split()[0]},")
    names = {"fad": fad.__version__, "CuPy": cupy.__version__, "NumPy": np.__version__}
    for library in ("torch", "jax"):
        names[library] = version_of(library)
    print(", ".join(f"{n} {version}" for n, version in names.items()), "\n")


def version_of(library):
    if importlib.util.find_spec(library) is None:
        return "not here"
    try:
        return importlib.metadata.version(library)
    except importlib.metadata.PackageNotFoundError:  # a build that was not installed as a package
        return "of an unknown version"


def ratio(ours, theirs):
    return "?" if "?" in (ours, theirs) or not theirs else ours / theirs


def on_gpu(cupy, small):
    """Print the table, and what it says of memory; return where fad failed."""
    versions(cupy)
    head("gradient", "library", "ms", "kernels", "peak MiB", "nvidia-smi MiB")
    wanted = [word for word in sys.argv[1:] if not word.startswith("-")]
    there = sorted(SIDES, key=lambda library: library != "PyTorch")  # first, for it counts the others' kernels
    counted, failed, verdicts = True, [], []
    operands = draw(small)
    for name in [*operands, *(f"{name} step" for name in STEPS)]:
        args = operands[name.removesuffix(" step")]
        if wanted and name not in wanted:
            continue
        on_cpu = milliseconds(repeat(of_fad(name), name, args), lambda out: None, 1, 1)
        row(name, "fad, CPU", on_cpu, "", "", "")
        measured = {}
        for library in list(there):
            status, cells = figures(library, name, counted)
            if status == ABSENT:
                there.remove(library)
                counted = counted and library != "PyTorch"
            elif set(cells) != {"?"}:
                measured[library] = cells
            if library.startswith("fad") and (status or library not in measured):
                failed.append(f"{library} at {name}")
        verdicts += print_lines(name, on_cpu, measured)
    print("", *verdicts, sep="\n")
    return failed


def print_lines(name, on_cpu, measured):
    """Print the lines of a gradient, and how they compare; return the verdicts on memory."""
    for library in SIDES:
        if library in measured:
            row(name, library, *measured[library])
    if "fad, GPU" in measured:
        row(name, "GPU : CPU", ratio(measured["fad, GPU"][0], on_cpu), "", "", "")
    verdicts = []
    for ours, theirs in COMPARED:
        if ours not in measured or theirs not in measured:
            continue
        ratios = [ratio(*pair) for pair in zip(measured[ours], measured[theirs], strict=True)]
        row(name, f"{ours} : {theirs}", *ratios)
        if (name, theirs) == ("mlp", "PyTorch"):
            kept = {True: "held", False: "missed", None: "not known"}
            verdict = kept[None if "?" in ratios[2:] else max(ratios[2:]) <= BOUND]
            verdicts.append(f"Memory of an MLP's gradient within {BOUND} of PyTorch's, {ours}: {verdict}.")
        bound = LIMITS.get((ours, theirs))
        if name.endswith(" step") and bound and ratios[0] != "?":
            held = "held" if ratios[0] <= bound else "missed"
            verdicts.append(f"Time of the {name} within {bound} of {theirs}'s, {ours}: {held}.")
    return verdicts


def on_stand_in():
    sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "backends"))
    standin = importlib.import_module("standin")
    backends.register(standin)
    head("gradient", "operations", "with jit", "MiB held", "with jit")
    for name, args in draw().items():
        placed, fast = fad.device_put(args, "standin"), fad.jit(of_fad(name))
        operands = fad.tree.leaves(placed)
        fast(*placed)
        fast(*placed)  # recorded, then compiled
        found = []
        for gradient in (of_fad(name), fast):
            with standin.no_copies(), standin.counted() as count, standin.held(operands) as most:
                gradient(*placed)
            found.append((count(), most() / 2**20))
        row(name, *(str(n) for n, _ in found), *(f"{m:.1f}" for _, m in found))


def main():
    small = "--small" in sys.argv
    if os.environ.get(MEASURED):
        return measure(*os.environ[MEASURED].split("|"), small)
    try:
        backends.get("cupy")
        cupy = importlib.import_module("cupy")
        float(cupy.ones(1).sum())
    except Exception as error:  # without a driver or a device CuPy raises errors of many kinds
        print("no GPU was used:", said(error))
        return on_stand_in()
    failed = on_gpu(cupy, small)
    return f"fad failed: {', '.join(failed)}" if failed else None


if __name__ == "__main__":
    sys.exit(main())
