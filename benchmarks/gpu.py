"""fad on a GPU beside fad on the CPU, and beside PyTorch and JAX on the same GPU, where they are installed.

    python benchmarks/gpu.py            # --small for a first try

Gradients of an elementwise chain, an MLP, attention and a CNN, in float32. The columns are milliseconds per gradient,
after a warm-up, the GPU waited for at the end only; the number of kernels as NVIDIA's profiler counts them (through
PyTorch, which sees CuPy's kernels too); the peak of the memory pool; and by how much the memory in use that nvidia-smi
shows grows in a process of its own that computes the gradient once, libraries included. Without CuPy or a GPU it says
so, and counts the array operations that fad asks of a device, on the stand-in of the tests: that needs neither.
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
    args = jax.device_put(args)
    if name == "cnn":
        convolve = lambda x, w: jax.lax.conv_general_dilated(x, w, (1, 1), "SAME")
        compiled = jax.jit(jax.grad(lambda params, x: cnn(params, x, convolve)))
    else:
        program = {"chain": chain, "mlp": mlp, "attention": attention}[name]
        compiled = jax.jit(jax.grad(lambda *xs: program(*xs, jax.numpy)))
    return lambda: jax.block_until_ready(compiled(*args))


def milliseconds(run, wait, turns=20):
    for _ in range(3):
        run()
    wait()
    start = time.perf_counter()
    for _ in range(turns):
        run()
    wait()
    return 1e3 * (time.perf_counter() - start) / turns


def kernels(torch, run):
    """Return the number of CUDA kernels of one run."""
    from torch.profiler import ProfilerActivity, profile

    run()
    with profile(activities=[ProfilerActivity.CUDA]) as seen:
        run()
        torch.cuda.synchronize()
    on_device = [e for e in seen.key_averages() if str(e.device_type).endswith("CUDA")]
    return sum(e.count for e in on_device if "Memcpy" not in e.key and "Memset" not in e.key)


def cupy_peak(cupy, run):
    """Return the largest size in MiB of CuPy's pool during one run, beginning with what is alive."""
    pool = cupy.get_default_memory_pool()
    pool.free_all_blocks()
    run()
    return pool.total_bytes() / 2**20


def torch_peak(torch, run):
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    run()
    return torch.cuda.max_memory_reserved() / 2**20


def in_use():
    """Return the MiB in use on the first GPU, as nvidia-smi shows them."""
    ask = ["nvidia-smi", "-i", "0", "--query-gpu=memory.used", "--format=csv,noheader,nounits"]
    return float(subprocess.run(ask, capture_output=True, text=True, check=True).stdout)


def visible(library, name):
    """Return how many MiB nvidia-smi sees of a process that computes one gradient with a library; "?" if none."""
    if not shutil.which("nvidia-smi"):
        return "?"
    ask = [sys.executable, __file__, "--visible", library, name]
    done = subprocess.run(ask, capture_output=True, text=True)
    return float(done.stdout.split()[-1]) if done.returncode == 0 else "?"


def print_visible(library, name):
    before, args = in_use(), draw()[name]
    if library == "fad":
        of_fad(name)(*fad.device_put(args, "cupy"))
        backends.get("cupy").synchronize()
    else:
        of_torch(_torch(), name, args)()
        _torch().cuda.synchronize()
    print(in_use() - before)


def row(*cells):
    print("  ".join(f"{c:>18}" if isinstance(c, str) else f"{c:18.3f}" for c in cells), flush=True)


def versions(cupy, torch, jax):
    name = cupy.cuda.runtime.getDeviceProperties(0)["name"].decode()
    print(f"{datetime.date.today()}, {name}, CuPy {cupy.__version__}, NumPy {np.__version__}, fad {fad.__version__}")
    print("PyTorch", torch.__version__ if torch else "is not here", "JAX", jax.__version__ if jax else "is not here")


def on_gpu(cupy, small):
    torch = _torch() if _torch() and _torch().cuda.is_available() else None
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # so that JAX leaves memory to the others
    jax = importlib.import_module("jax") if importlib.util.find_spec("jax") else None
    jax = jax if jax and jax.default_backend() == "gpu" else None
    device = backends.get("cupy")
    versions(cupy, torch, jax)
    row("gradient", "library", "ms", "kernels", "peak MiB", "nvidia-smi MiB")
    for name, args in draw(small).items():
        gradient, placed = of_fad(name), fad.device_put(args, "cupy")
        row(name, "fad, CPU", milliseconds(functools.partial(gradient, *args), lambda: None, 3), "", "", "")
        run = functools.partial(gradient, *placed)
        time_, count = milliseconds(run, device.synchronize), kernels(torch, run) if torch else "?"
        peak = cupy_peak(cupy, run)
        seen = visible("fad", name)
        row(name, "fad, GPU", time_, float(count) if torch else "?", peak, seen)
        if torch:
            other = of_torch(torch, name, args)
            time_ = milliseconds(other, torch.cuda.synchronize)
            theirs = torch_peak(torch, other)
            their_seen = visible("torch", name)
            row(name, "PyTorch", time_, float(kernels(torch, other)), theirs, their_seen)
            ratio = "?" if "?" in (seen, their_seen) else seen / their_seen
            row(name, "fad : PyTorch", "", "", peak / theirs, ratio)
        if jax:
            row(name, "JAX, jit", milliseconds(of_jax(jax, name, args), lambda: None), "?", "?", "?")


def on_stand_in():
    sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "backends"))
    standin = importlib.import_module("standin")
    backends.register(standin)
    row("gradient", "operations asked")
    for name, args in draw().items():
        placed = fad.device_put(args, "standin")
        with standin.no_copies(), standin.counted() as asked:
            of_fad(name)(*placed)
        row(name, str(asked()))


def main():
    if "--visible" in sys.argv:
        return print_visible(*sys.argv[-2:])
    try:
        backends.get("cupy")
        cupy = importlib.import_module("cupy")
        float(cupy.ones(1).sum())
    except Exception as error:  # without a driver or a device CuPy raises errors of many kinds
        print("no GPU was used:", str(error).splitlines()[0])
        return on_stand_in()
    return on_gpu(cupy, "--small" in sys.argv)


if __name__ == "__main__":
    main()
