"""An emulated GPU: CuPy's own code, with its kernels compiled by g++ and run on the CPU.

    python tests/backends/emulated/gpu.py script.py [arguments]
    python tests/backends/emulated/gpu.py -m pytest -m gpu tests/backends

`install` does it from Python, before CuPy is imported. CuPy comes from its wheel, unchanged, with the headers of the
wheels it brings (``pip install "cupy-cuda12x[ctk]"``). In it are replaced: CUDA's driver and runtime (`driver.cpp`),
the compiler (`Program`), cuBLAS and cuSOLVER (`linear_algebra.cpp`), cuFFT (`fft.cpp`), and what Thrust and CUB do.
Nothing here is quick, and nothing is asynchronous.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import importlib.metadata
import importlib.util
import math
import mmap
import os
import re
import runpy
import struct
import subprocess
import sys
import types
from pathlib import Path

import numpy as np
import scipy.linalg.cython_lapack

HERE = Path(__file__).resolve().parent
BUILT = Path(os.environ.get("EMULATED_GPU_CACHE", Path.home() / ".cache" / "emulated-gpu"))
HEADERS = "complex", "carray", "atomics"  # of CuPy, which every kernel includes
DYNAMIC = re.compile(r"extern\s+__shared__\s+([^;\[]+?)\s*(\w+)\s*\[\s*\]\s*;")
# SciPy's functions of complex numbers take those of the compiler: here they are C++'s, and CuPy's are converted.
ONE_RESULT = """
namespace xsf { template <class T, class... A> ::complex<T> NAME(::complex<T> z, A... a) {
    auto w = NAME(std::complex<T>(z.real(), z.imag()), a...);
    return {w.real(), w.imag()};
} }
"""
TWO_RESULTS = """
namespace xsf { template <class T> int NAME(::complex<T> z, ::complex<T>& a, ::complex<T>& b) {
    std::complex<T> p, q;
    int code = NAME(std::complex<T>(z.real(), z.imag()), p, q);
    a = {p.real(), p.imag()}, b = {q.real(), q.imag()};
    return code;
} }
"""
OF_COMPLEX = {
    "digamma": ONE_RESULT.replace("NAME", "digamma"),
    "lambertw": ONE_RESULT.replace("NAME", "lambertw"),
    "sici": TWO_RESULTS.replace("NAME", "sici") + TWO_RESULTS.replace("NAME", "shichi"),
}
# Beside the header, so that what was compiled with it is still good.
DIFFERENCES = "\n".join(f"inline {t} __{t[0]}sub_rn({t} a, {t} b) {{ return a - b; }}" for t in ("double", "float"))
BOUNDS = r"(?:__launch_bounds__\([^)]*\)\s*)?"
KERNELS = re.compile(
    rf"(template\s*<[^;{{]*?>\s*)?(?:extern\s+\"C\"\s*)?\b__global__\s+{BOUNDS}void\s+{BOUNDS}(\w+)\s*\("
)
MEETS = '\nextern "C" { extern const int emu_threads_meet; const int emu_threads_meet = 1; }\n'
MEETING = re.compile(r"__syncthreads|__syncwarp|__shfl|__any_sync|__ballot_sync")


def package(name: str) -> Path:
    """Return the folder of an installed package, which is not imported."""
    return Path(next(iter(importlib.util.find_spec(name).submodule_search_locations)))


def headers() -> Path:
    """Return the folder of CUDA's headers: its packages for CUDA 13 share one, those before have one each."""
    of_13, before = package("nvidia") / "cu13/include", package("nvidia") / "cuda_runtime/include"
    return of_13 if of_13.exists() else before


def compiled(stem: str, suffix: str, sources: list[Path], *flags: str, text: str | None = None) -> Path:
    """Compile files, or `text`, with g++, unless that has been done, and return the result."""
    read = b"".join(path.read_bytes() for path in [*sources, *sorted(HERE.glob("include/**/*.h"))])
    key = hashlib.sha256(read + _anywhere(repr((flags, text))).encode()).hexdigest()[:32]
    out = BUILT / f"{stem}-{key}{suffix}"
    if not out.exists():
        out.parent.mkdir(parents=True, exist_ok=True)
        made = out.with_suffix(f".{os.getpid()}")
        command = ["g++", *flags, *(str(path) for path in sources), "-o", str(made)]
        done = subprocess.run(command, input=text, capture_output=True, text=True)
        if done.returncode:
            raise CompileError(done.stderr)
        made.rename(out)
    return out


def _anywhere(text: str) -> str:
    """Replace the folders of a checkout and its environment by names, so that another one finds what is compiled."""
    for folder, name in ((HERE, "here"), (package("cupy"), "cupy"), (package("nvidia"), "nvidia"), (BUILT, "built")):
        text = text.replace(str(folder), f"<{name}>")
    return text + _brought()


@functools.cache
def _brought() -> str:
    """Return the names and versions of the packages whose headers kernels include: CuPy, and CUDA's runtime."""
    found = {f"{d.metadata['Name']} {d.version}" for d in importlib.metadata.distributions()}
    return " ".join(sorted(n for n in found if n.startswith(("cupy-cuda", "nvidia-cuda-runtime"))))


class CompileError(Exception):
    """g++ refuses a source; what it says of it."""


# --- the driver -------------------------------------------------------------------------------------------------------


@functools.cache
def load_driver() -> ctypes.CDLL:
    """Load the driver under the name by which CuPy looks for it, and the libraries of mathematics with it."""
    flags = ["-O2", "-w", "-shared", "-fPIC", f"-I{HERE}/include", f"-I{headers()}"]
    sources = [HERE / "driver.cpp", HERE / "linear_algebra.cpp", HERE / "fft.cpp"]
    path = compiled("driver", ".so", sources, *flags, "-Wl,-soname,libcuda.so.1")
    driver = ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL)  # so that its functions go before those of cuBLAS
    address, name = ctypes.pythonapi.PyCapsule_GetPointer, ctypes.pythonapi.PyCapsule_GetName
    address.restype, name.restype = ctypes.c_void_p, ctypes.c_char_p
    address.argtypes, name.argtypes = [ctypes.py_object, ctypes.c_char_p], [ctypes.py_object]
    for function, capsule in scipy.linalg.cython_lapack.__pyx_capi__.items():
        driver.emu_provide(function.encode(), ctypes.c_void_p(address(capsule, name(capsule))))
    return driver


def redirect(library: ctypes.CDLL, path: str) -> None:
    """Let CUDA's functions that were linked into a library at `path`, which is loaded, jump to the driver's."""
    mapped = Path("/proc/self/maps").read_text().splitlines()
    base = next(int(line.split("-")[0], 16) for line in mapped if line.endswith(path))
    libc = ctypes.CDLL(None)
    for name, offset in functions_in(Path(path).read_bytes()):
        if name.startswith("cuda") and (ours := getattr(library, name, None)) is not None:
            target = ctypes.cast(ours, ctypes.c_void_p).value
            page = (base + offset) & -mmap.PAGESIZE
            if libc.mprotect(ctypes.c_void_p(page), ctypes.c_size_t(2 * mmap.PAGESIZE), 7):
                raise OSError(f"cannot write into {path}")
            ctypes.memmove(base + offset, b"\x48\xb8" + struct.pack("<Q", target) + b"\xff\xe0", 12)  # jump to target


def functions_in(elf: bytes) -> list[tuple[str, int]]:
    """Return the names and offsets of the functions that an ELF file for 64 bits defines."""
    start, size, count = struct.unpack_from("<Q", elf, 40)[0], *struct.unpack_from("<HH", elf, 58)
    sections = [struct.unpack_from("<IIQQQQII", elf, start + size * i) for i in range(count)]
    table = next(section for section in sections if section[1] == 2)  # SHT_SYMTAB
    strings = sections[table[6]][4]
    found = []
    for at in range(table[4], table[4] + table[5], 24):
        name, info, _, section, value, _ = struct.unpack_from("<IBBHQQ", elf, at)
        if info & 15 == 2 and section:  # STT_FUNC
            found.append((elf[strings + name : elf.index(b"\0", strings + name)].decode(), value))
    return found


# --- the compiler -----------------------------------------------------------------------------------------------------


class Program:
    """In place of CuPy's `_NVRTCProgram`: compiles with g++, and gives the path of the library for a module's image."""

    def __init__(self, src, name="", headers=(), include_names=(), name_expressions=None, method="ptx"):
        self.src, self.name, self.expressions = src, name, list(name_expressions or ())

    def compile(self, options=(), log_stream=None):
        from cupy.cuda.compiler import CompileException

        if not self.src.strip():
            return b"// an emulated GPU", None
        kept = [o for o in options if o.startswith(("-D", "-I"))]
        standard = next((o.replace("--std", "-std") for o in options if "std=" in o), "-std=c++17")
        calls, mapping = entries(self.src, self.expressions)
        source = DYNAMIC.sub(r"\1* \2 = (\1*)emu_dynamic_shared;", self.src) + calls
        source = f"{DIFFERENCES}\n{source}" if "sub_rn(" in source else source
        for header, more in OF_COMPLEX.items():
            source = source.replace(line := f"#include <cupy/xsf/{header}.h>", line + more)
        flags = ["-O1", standard, "-fPIC", "-w", *kept, f"-I{HERE}/include"]
        header = precompiled(tuple(flags))
        flags += ["-include", str(header).removesuffix(".gch"), "-shared", "-x", "c++", "-"]
        try:
            path = compiled("kernels/", ".so", [], *flags, text=source)
        except CompileError as error:
            raise CompileException(str(error), source, self.name, options, "g++") from None
        return f"{path}\0".encode(), mapping if self.expressions else None


@functools.cache
def precompiled(flags: tuple) -> Path:
    """Return the precompiled header of what every kernel includes."""
    text = "#include <device.h>\n" + "".join(f"#include <cupy/{name}.cuh>\n" for name in HEADERS)
    plain = BUILT / "every_kernel.h"
    plain.parent.mkdir(parents=True, exist_ok=True)
    if not plain.exists() or plain.read_text() != text:
        plain.write_text(text)
    out = compiled("every_kernel", ".h.gch", [], *flags, "-x", "c++-header", str(plain))
    beside = out.with_suffix("")  # which -include names, and which is read where the compiled one is of no use
    if not beside.exists():
        beside.symlink_to(plain.name)
    return out


def entries(source: str, expressions: list) -> tuple[str, dict]:
    """Return C++ that lets the driver call the kernels of `source`, and the names of those that are instances."""
    calls = MEETS if MEETING.search(source) else "\n"
    for template, name in KERNELS.findall(source):
        if not template:
            calls += f"EMU_KERNEL({name}, {name})\n"
    mapping = {expression: f"instance_{i}" for i, expression in enumerate(expressions)}
    return calls + "".join(f"EMU_KERNEL({name}, {expression})\n" for expression, name in mapping.items()), mapping


# --- Thrust -----------------------------------------------------------------------------------------------------------


def memory(address: int, shape: tuple, dtype) -> np.ndarray:
    """Return the device's memory, which is the host's, as an array."""
    size = math.prod(shape) * np.dtype(dtype).itemsize
    return np.frombuffer((ctypes.c_char * size).from_address(address), dtype).reshape(shape)


_recorded: list = []  # what graphs call, for as long as the process lives


def now_or_in_replay(step) -> None:
    """Do a step of the device now, or, where its launches are recorded, in each replay."""
    driver = load_driver()
    if not driver.emu_is_recording():
        step()
        return
    _recorded.append(ctypes.CFUNCTYPE(None)(lambda: step() and None))
    driver.emu_record(_recorded[-1])


def sort(dtype, data, keys, shape):
    now_or_in_replay(lambda: memory(data, shape, dtype).sort(axis=-1))


def argsort(dtype, index, data, keys, shape):
    places, numbers = memory(index, shape, np.intp), memory(data, shape, dtype)
    now_or_in_replay(lambda: np.copyto(places, numbers.argsort(axis=-1, kind="stable")))


def lexsort(dtype, index, keys, k, n):
    memory(index, (n,), np.intp)[...] = np.lexsort(memory(keys, (k, n), dtype))


# --- CUB: sums and their like over contiguous axes, which are chosen as on a GPU --------------------------------------

REDUCED = {"SUM": np.add.reduce, "PROD": np.multiply.reduce, "MIN": np.minimum.reduce, "MAX": np.maximum.reduce}


def device_reduce(x, op, reduce_axis, out_axis, out=None, keepdims=False):
    import cupy

    shape, kind = (1,) * x.ndim if keepdims else (), op.name.removeprefix("CUPY_CUB_")
    x = cupy.ascontiguousarray(x)
    if x.size == 0 and kind not in ("SUM", "PROD"):
        raise ValueError(f"zero-size array to reduction operation {op.name} which has no identity")
    reduced = REDUCED.get(kind) or {"ARGMIN": np.argmin, "ARGMAX": np.argmax}[kind]
    numbers = memory(x.data.ptr, (x.size,), x.dtype)
    y = cupy.ndarray(shape, x.dtype if kind in REDUCED else np.int64)
    now_or_in_replay(lambda: memory(y.data.ptr, (1,), y.dtype).fill(reduced(numbers)))
    return given(y, out)


def device_segmented_reduce(x, op, reduce_axis, out_axis, out=None, keepdims=False, contiguous_size=0):
    import cupy

    kind = op.name.removeprefix("CUPY_CUB_")
    if kind not in ("SUM", "PROD") and 0 in (x.shape[a] for a in reduce_axis):
        raise ValueError(f"zero-size array to reduction operation {op.name} which has no identity")
    shape = tuple(n if a in out_axis else 1 for a, n in enumerate(x.shape) if keepdims or a in out_axis)
    y = cupy.ndarray(shape, x.dtype, order="C" if x.flags.c_contiguous else "F")
    if x.size:
        lines = memory(x.data.ptr, (y.size, contiguous_size), x.dtype)
        sums = memory(y.data.ptr, (y.size,), y.dtype)
        now_or_in_replay(lambda: np.copyto(sums, REDUCED[kind](lines, axis=1)))
    else:
        y.fill(0 if kind == "SUM" else 1)
    return given(y, out)


def given(y, out):
    """Return a result of CUB's, in `out` if there is one."""
    if out is None:
        return y
    if out.shape != y.shape:
        raise ValueError("output parameter for reduction operation has the wrong shape")
    out[...] = y
    return out


def device_scan(x, op):
    numbers = memory(x.data.ptr, (x.size,), x.dtype)
    add_up = np.cumsum if op.name == "CUPY_CUB_CUMSUM" else np.cumprod
    now_or_in_replay(lambda: add_up(numbers, out=numbers))
    return x


def device_histogram(x, y, bins):
    import cupy

    x, edges = cupy.asnumpy(x), np.arange(bins) if isinstance(bins, int) else cupy.asnumpy(bins)
    places = np.searchsorted(edges, x.ravel(), side="right") - 1  # the last bin is open, too
    counts = np.bincount(places[(places >= 0) & (places < len(edges) - 1)], minlength=y.size)
    memory(y.data.ptr, y.shape, y.dtype)[...] = counts
    return y


# --- all of it --------------------------------------------------------------------------------------------------------


def install() -> ctypes.CDLL:
    """Make CuPy, which must not have been imported, find an emulated GPU; return the driver."""
    os.environ["CUPY_CACHE_IN_MEMORY"] = "1"  # what is kept on disk is kept by `compiled`
    driver = load_driver()
    from cuda import pathfinder

    load = pathfinder.load_nvidia_dynamic_lib
    ours = types.SimpleNamespace(_handle_uint=driver._handle, abs_path=driver._name)

    def find(name):
        theirs = load(name) if name not in ("cudart", "nvrtc") else None
        by_name = ("cudart", "nvrtc", "cusolver", "cublas")  # where functions are looked up by name
        return ours if name in by_name else theirs

    pathfinder.load_nvidia_dynamic_lib = find
    from cupy_backends.cuda.api import runtime

    redirect(driver, runtime.__file__)
    import cupy.cuda.compiler

    cupy.cuda.compiler._NVRTCProgram = Program
    cupy._core.set_reduction_accelerators([])  # CUB's blocks in kernels are for GPUs alone
    for call in (device_reduce, device_segmented_reduce, device_scan, device_histogram):
        setattr(cupy.cuda.cub, call.__name__, call)
    cupy.cuda.thrust.sort, cupy.cuda.thrust.argsort, cupy.cuda.thrust.lexsort = sort, argsort, lexsort
    return driver


if __name__ == "__main__":
    install()
    del sys.argv[0]
    if sys.argv[0] == "-m":
        del sys.argv[0]
        runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
    else:
        sys.path[0] = str(Path(sys.argv[0]).parent)
        runpy.run_path(sys.argv[0], run_name="__main__")
