"""fad on a GPU, with and without jit, beside fad on the CPU, and PyTorch and JAX on the same GPU, where they are there.

    python benchmarks/gpu.py            # --small for a first try

Gradients of an elementwise chain, an MLP, attention and a CNN, in float32, without TensorFloat-32 on any side. The
columns are milliseconds per gradient, after a warm-up, the GPU waited for at the end only; the number of kernels as
NVIDIA's profiler counts them (through PyTorch, which sees those of CuPy and JAX too); and, from a process of its own
that computes the gradient once, the peak of the library's memory pool, and by how much the memory in use that
nvidia-smi shows grows, libraries included. Without CuPy or a GPU it says so, and counts, on the stand-in of the tests,
which needs neither, the array operations and kernels that fad asks of a device, and the most memory that it holds,
operands left out.
"""

from __future__ import annotations

import datetime
import functools
import importlib
import importlib.util
import os
import shutil
import subprocess
import sys
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
        x = xp.maximum(x @ w, 0.0) if xp is not _torch() else (x @ w).relu()
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


@functools.cache
def _torch():
    return importlib.import_module("torch") if importlib.util.find_spec("torch") else None


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
    torch = _torch()
    return of_torch(torch, name, args), lambda out: torch.cuda.synchronize()


def jax_side(name, args):
    jax = importlib.import_module("jax")
    return of_jax(jax, name, args), jax.block_until_ready


SIDES = {"fad, GPU": fad_side, "fad, GPU, jit": fad_jit_side, "PyTorch": torch_side, "JAX, jit": jax_side}


def sides():
    """Return the names of the libraries that are installed and find the GPU."""
    found = ["fad, GPU", "fad, GPU, jit"]
    if _torch() and _torch().cuda.is_available():
        found.append("PyTorch")
    if importlib.util.find_spec("jax") and importlib.import_module("jax").default_backend() == "gpu":
        found.append("JAX, jit")
    return found


# --- time, kernels and memory -----------------------------------------------------------------------------------------


def milliseconds(run, wait, turns=20):
    for _ in range(3):
        out = run()
    wait(out)
    start = time.perf_counter()
    for _ in range(turns):
        out = run()
    wait(out)
    return 1e3 * (time.perf_counter() - start) / turns


def kernels(torch, run, wait):
    """Return the number of CUDA kernels of one run."""
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
        return _torch().cuda.max_memory_reserved() / 2**20
    stats = importlib.import_module("jax").local_devices()[0].memory_stats()
    return stats.get("peak_pool_bytes", stats["peak_bytes_in_use"]) / 2**20


def in_use():
    """Return the MiB in use on the first GPU, as nvidia-smi shows them; "?" where it is not installed."""
    if not shutil.which("nvidia-smi"):
        return "?"
    ask = ["nvidia-smi", "-i", "0", "--query-gpu=memory.used", "--format=csv,noheader,nounits"]
    return float(subprocess.run(ask, capture_output=True, text=True, check=True).stdout)


def memory(library, name, small):
    """Return the peak of the pool and what nvidia-smi sees of a process that computes one gradient, in MiB."""
    ask = [sys.executable, __file__, *["--small"] * small, "--memory", library, name]
    done = subprocess.run(ask, capture_output=True, text=True)
    if done.returncode:
        print(f"memory of {library} at {name} is not known:", (done.stderr.strip() or "no word").splitlines()[-1])
        return "?", "?"
    return tuple(x if x == "?" else float(x) for x in done.stdout.split()[-2:])


def print_memory(library, name, small):
    before, args = in_use(), draw(small)[name]
    run, wait = SIDES[library](name, args)
    wait(run())
    after = in_use()
    print(pool_peak(library), "?" if "?" in (before, after) else after - before)


def row(*cells):
    print("  ".join(f"{c:>18}" if isinstance(c, str) else f"{c:18.3f}" for c in cells), flush=True)


def versions(cupy, torch, jax):
    name = cupy.cuda.runtime.getDeviceProperties(0)["name"].decode()
    print(f"{datetime.date.today()}, {name}, CuPy {cupy.__version__}, NumPy {np.__version__}, fad {fad.__version__}")
    print("PyTorch", torch.__version__ if torch else "is not here", "JAX", jax.__version__ if jax else "is not here")


def ratio(ours, theirs):
    return "?" if "?" in (ours, theirs) or not theirs else ours / theirs


def measured(library, name, args, small):
    """Return milliseconds, kernels, and the two kinds of memory."""
    run, wait = SIDES[library](name, args)
    return milliseconds(run, wait), counted(run, wait), *memory(library, name, small)


def counted(run, wait):
    """Return the number of kernels; "?" where NVIDIA's profiler does not see the GPU, as in some virtual machines."""
    if "PyTorch" not in sides():
        return "?"
    try:
        return kernels(_torch(), run, wait) or "?"
    except RuntimeError as error:
        print("kernels were not counted:", str(error).splitlines()[0])
        return "?"


def tried(library, name, args, small):
    """Return what is measured of a library; without its line where it fails, so that the others have theirs."""
    try:
        return measured(library, name, args, small)
    except Exception as error:
        if library.startswith("fad"):
            raise
        print(f"{library} failed at {name}: {type(error).__name__}: {str(error).partition(chr(10))[0]}", flush=True)
        return None


def on_gpu(cupy, small):
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # so that JAX leaves memory to the others
    there = sides()
    modules = {"PyTorch": "torch", "JAX, jit": "jax"}
    versions(cupy, *(importlib.import_module(m) if n in there else None for n, m in modules.items()))
    row("gradient", "library", "ms", "kernels", "peak MiB", "nvidia-smi MiB")
    for name, args in draw(small).items():
        on_cpu = milliseconds(functools.partial(of_fad(name), *args), lambda out: None, 3)
        row(name, "fad, CPU", on_cpu, "", "", "")
        found = {library: tried(library, name, args, small) for library in there}
        found = {library: cells for library, cells in found.items() if cells is not None}
        for library, cells in found.items():
            row(name, library, *cells)
        row(name, "GPU : CPU", ratio(found["fad, GPU"][0], on_cpu), "", "", "")
        for library in list(found)[1:]:
            ours = found["fad, GPU, jit" if library == "JAX, jit" else "fad, GPU"]  # compiled beside compiled
            ratios = [ratio(*pair) for pair in zip(ours, found[library], strict=True)]
            row(name, f"fad : {library}", *ratios)
            if (name, library) == ("mlp", "PyTorch"):
                kept = {True: "held", False: "missed", None: "not known"}
                verdict = kept[None if "?" in ratios[2:] else max(ratios[2:]) <= BOUND]
                print(f"memory of an MLP's gradient within {BOUND} of PyTorch's: {verdict}")


def on_stand_in():
    sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "backends"))
    standin = importlib.import_module("standin")
    backends.register(standin)
    row("gradient", "operations", "with jit", "MiB held", "with jit")
    for name, args in draw().items():
        placed, fast = fad.device_put(args, "standin"), fad.jit(of_fad(name))
        operands = fad.tree.leaves(placed)
        fast(*placed)
        fast(*placed)  # recorded, then compiled
        found = []
        for gradient in (of_fad(name), fast):
            with standin.no_copies(), standin.counted() as asked, standin.held(operands) as most:
                gradient(*placed)
            found.append((asked(), most() / 2**20))
        row(name, *(str(n) for n, _ in found), *(f"{m:.1f}" for _, m in found))


def main():
    small = "--small" in sys.argv
    if "--memory" in sys.argv:
        return print_memory(*sys.argv[-2:], small)
    try:
        backends.get("cupy")
        cupy = importlib.import_module("cupy")
        float(cupy.ones(1).sum())
    except Exception as error:  # without a driver or a device CuPy raises errors of many kinds
        print("no GPU was used:", str(error).splitlines()[0])
        return on_stand_in()
    return on_gpu(cupy, small)


if __name__ == "__main__":
    main()
