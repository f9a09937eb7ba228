"""fad on a GPU, with and without jit, beside fad on the CPU, and PyTorch and JAX on the same GPU, where they are there.

    python benchmarks/gpu.py            # --small for a first try; names of gradients for those alone

Gradients of an elementwise chain, an MLP, attention and a CNN, in float32, without TensorFloat-32 on any side. Each
library computes each gradient in a process of its own, so that one that fails leaves the others their figures. The
columns are milliseconds per gradient, after a warm-up, the GPU waited for at the end only; the number of kernels as
NVIDIA's profiler counts them (through PyTorch, which sees those of CuPy and JAX too); and, read after the first
gradient, the peak of the library's memory pool, and by how much the memory in use that nvidia-smi shows has grown,
libraries included. Without CuPy or a GPU it says so, and counts, on the stand-in of the tests, which needs neither, the
array operations and kernels that fad runs on a device, and the most memory that it holds, operands left out.
"""

from __future__ import annotations

import datetime
import functools
import importlib
import importlib.metadata
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import fad
from fad import backends
from fad.ops.conv import conv

BOUND = 1.2  # of PyTorch's memory for the gradient of an MLP


def chain(x, xp, sigmoid=None):
    for _ in range(20):
        x = xp.tanh(x) * x + 0.5
    return x.sum()


def mlp(params, x, xp):
    for w in params[:-1]:
        x = (x @ w).relu() if xp.__name__ == "torch" else xp.maximum(x @ w, 0.0)
    return ((x @ params[-1]) ** 2).mean()


def attention(params, x, xp):
    q, k, v = (x @ w for w in params)
    scores = xp.exp((q @ k.swapaxes(-1, -2)) * (q.shape[-1] ** -0.5) - 4.0)
    return ((scores / scores.sum(-1)[..., None]) @ v).sum()


def cnn(params, x, convolve):
    for w in params:
        y = convolve(x, w)
        x = y * (y > 0)
    return (x * x).mean()


def draw(small=False):
    """Return the programs' operands by name."""
    rng = np.random.default_rng(0)
    wide, batch = (16, 4) if small else (512, 128)

    def normal(*shape):
        return (0.05 * rng.standard_normal(shape)).astype(np.float32)

    return {
        "chain": (normal(1000 if small else 1_000_000),),
        "mlp": ([normal(784, wide), normal(wide, wide), normal(wide, 10)], normal(batch, 784)),
        "attention": ([normal(64, 64) for _ in range(3)], normal(8, batch * 2, 64)),
        "cnn": ([normal(16, 3, 3, 3), normal(32, 16, 3, 3)], normal(batch // 4, 3, 32, 32)),
    }


def of_fad(name):
    program = {"chain": chain, "mlp": mlp, "attention": attention}.get(name)
    if program is None:
        return fad.grad(lambda params, x: cnn(params, x, lambda x, w: conv(x, w, padding=1)))
    return fad.grad(lambda *args: program(*args, np))


def of_torch(torch, name, args):
    """Return a function that computes the gradient with PyTorch on the GPU."""
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    args = fad.tree.map(lambda x: torch.tensor(x, device="cuda"), args)
    leaves = args[0] if isinstance(args[0], list) else [args[0]]
    for x in leaves:
        x.requires_grad_()
    if name == "cnn":
        loss = lambda: cnn(*args, lambda x, w: torch.nn.functional.conv2d(x, w, padding=1))
    else:
        loss = lambda: {"chain": chain, "mlp": mlp, "attention": attention}[name](*args, torch)
    return lambda: torch.autograd.grad(loss(), leaves)


def of_jax(jax, name, args):
    """Return a function that computes the gradient with JAX, compiled, on the GPU."""
    jax.config.update("jax_default_matmul_precision", "highest")
    args = jax.device_put(args)
    if name == "cnn":
        convolve = lambda x, w: jax.lax.conv_general_dilated(x, w, (1, 1), "SAME")
        compiled = jax.jit(jax.grad(lambda params, x: cnn(params, x, convolve)))
    else:
        program = {"chain": chain, "mlp": mlp, "attention": attention}[name]
        compiled = jax.jit(jax.grad(lambda *xs: program(*xs, jax.numpy)))
    return lambda: compiled(*args)


# --- the libraries, each with what waits for its results --------------------------------------------------------------


def fad_side(name, args):
    run = functools.partial(of_fad(name), *fad.device_put(args, "cupy"))
    return run, lambda out: backends.get("cupy").synchronize()


def fad_jit_side(name, args):
    run = functools.partial(fad.jit(of_fad(name)), *fad.device_put(args, "cupy"))
    run()  # recorded; the next call compiles
    return run, lambda out: backends.get("cupy").synchronize()


def torch_side(name, args):
    torch = found("torch")
    if not torch.cuda.is_available():
        absent("PyTorch finds no GPU")
    return of_torch(torch, name, args), lambda out: torch.cuda.synchronize()


def jax_side(name, args):
    jax = found("jax")
    if jax.default_backend() != "gpu":
        absent("JAX finds no GPU")
    return of_jax(jax, name, args), jax.block_until_ready


SIDES = {"fad, GPU": fad_side, "fad, GPU, jit": fad_jit_side, "PyTorch": torch_side, "JAX, jit": jax_side}
ABSENT = 3  # the status of a process whose library is not installed, or finds no GPU


def found(package):
    return importlib.import_module(package) if importlib.util.find_spec(package) else absent(f"there is no {package}")


def absent(why):
    print(why, file=sys.stderr)
    sys.exit(ABSENT)


# --- one library and one gradient, in a process of its own ------------------------------------------------------------


def milliseconds(run, wait, turns=20):
    for _ in range(3):
        out = run()
    wait(out)
    start = time.perf_counter()
    for _ in range(turns):
        out = run()
    wait(out)
    return 1e3 * (time.perf_counter() - start) / turns


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
        return importlib.import_module("cupy").get_default_memory_pool().total_bytes() / 2**20
    if library == "PyTorch":
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
    run, wait = SIDES[library](name, draw(small)[name])
    wait(run())
    after = in_use()
    report("pool", lambda: pool_peak(library))
    if None not in (before, after):
        report("smi", lambda: after - before)
    report("ms", lambda: milliseconds(run, wait))
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
    for name, args in draw(small).items():
        if wanted and name not in wanted:
            continue
        on_cpu = milliseconds(functools.partial(of_fad(name), *args), lambda out: None, 3)
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
    for ours, theirs in (("fad, GPU", "PyTorch"), ("fad, GPU, jit", "PyTorch"), ("fad, GPU, jit", "JAX, jit")):
        if ours not in measured or theirs not in measured:
            continue
        ratios = [ratio(*pair) for pair in zip(measured[ours], measured[theirs], strict=True)]
        row(name, f"{ours} : {theirs}", *ratios)
        if (name, theirs) == ("mlp", "PyTorch"):
            kept = {True: "held", False: "missed", None: "not known"}
            verdict = kept[None if "?" in ratios[2:] else max(ratios[2:]) <= BOUND]
            verdicts.append(f"Memory of an MLP's gradient within {BOUND} of PyTorch's, {ours}: {verdict}.")
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
