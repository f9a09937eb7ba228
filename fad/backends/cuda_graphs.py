"""Functions of CuPy's arrays as CUDA graphs: what a run launches is recorded once, and then is one launch.

A graph reads and writes at the addresses of its recording. So a recording has memory of its own, which nothing else
uses while it lives: arguments that come at another address in each call are copied into it, and results out of it, each
time by one kernel for all of them.
"""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable
from typing import Any

import cupy
import numpy as np

from fad.backends.cublas import record_products

_MANY = 64  # copies of one launch
_COPY = r"""
struct Table { unsigned long long source[64], target[64]; long long size[64]; };

extern "C" __global__ void fad_copy(const Table table) {
    const unsigned long long k = blockIdx.y, step = gridDim.x * (unsigned long long)blockDim.x;
    const unsigned long long first = blockIdx.x * (unsigned long long)blockDim.x + threadIdx.x;
    char* target = (char*)table.target[k];
    const bool is_number = table.size[k] < 0;  // which stands in the table itself
    const char* source = is_number ? (const char*)&table.source[k] : (const char*)table.source[k];
    const unsigned long long size = is_number ? -table.size[k] : table.size[k];
    const unsigned long long whole = (table.target[k] | (is_number ? 1 : table.source[k])) % 16 ? 0 : size / 16;
    for (unsigned long long i = first; i < whole; i += step) ((uint4*)target)[i] = ((const uint4*)source)[i];
    for (unsigned long long i = 16 * whole + first; i < size; i += step) target[i] = source[i];
}
"""
_THREADS, _MOST_BLOCKS = 256, 128


class Replay:
    """A recording of a function: ``replay(xs)`` returns what ``function(xs)`` does, in new arrays.

    `moving` are the places of the arguments that come at other addresses in later calls, and `numbers` the dtypes of
    those that are numbers of the host, by place: the function is given arrays without axes for them. What the function
    returns must depend on arguments through launches alone, on the current stream.
    """

    def __init__(self, function: Callable, xs: list, moving: set[int], numbers: dict[int, np.dtype]):
        self.lock = threading.Lock()
        self.device = cupy.cuda.Device().id
        self.pool = cupy.cuda.MemoryPool()
        self.last = caller = cupy.cuda.get_current_stream()
        stream = cupy.cuda.Stream(non_blocking=True)
        stream.wait_event(caller.record())
        with stream, cupy.cuda.using_allocator(self.pool.malloc):
            own = {k: cupy.zeros_like(xs[k]) for k in moving} | {k: cupy.zeros((), t) for k, t in numbers.items()}
            given = [own.get(k, x) for k, x in enumerate(xs)]
            with record_products(stream) as self.products:
                function(given)  # what is loaded or made at the first call cannot be recorded
                stream.begin_capture()
                try:
                    made = function(given)
                except BaseException:
                    with contextlib.suppress(Exception):
                        stream.end_capture()
                    raise
                self.graph = stream.end_capture()
        if not all(isinstance(y, cupy.ndarray) for y in made):
            raise TypeError("a result is no array of CuPy")
        caller.wait_event(stream.record())
        self.fixed = {k: (x.data.ptr, x.strides) for k, x in enumerate(xs) if k not in own}
        self.arguments = _Arguments([(k, own[k], numbers.get(k)) for k in sorted(own)])
        place = {id(x): k for k, x in enumerate(given)}
        self.handed = [place.get(id(y)) for y in made]  # results that are arguments
        self.results = _Results([y for y, argument in zip(made, self.handed, strict=True) if argument is None])

    @staticmethod
    def find(x: Any) -> Any:
        """Return where an array is."""
        return x.data.ptr

    def nbytes(self) -> int:
        """Return how many bytes of the device the recording holds."""
        return self.pool.total_bytes()

    def serves(self, xs: list) -> bool:
        """Return whether the arguments are where the recording reads them."""
        at_home = cupy.cuda.Device().id == self.device
        return at_home and all((xs[k].data.ptr, xs[k].strides) == where for k, where in self.fixed.items())

    def __call__(self, xs: list) -> list:
        """Return the results for arguments that the recording `serves`."""
        with self.lock:
            stream = cupy.cuda.get_current_stream()
            if stream != self.last:  # the memory is that of one call at a time
                stream.wait_event(self.last.record())
                self.last = stream
            self.arguments.read(xs)
            self.graph.launch()
            new = iter(self.results.hand_out())
        return [next(new) if argument is None else xs[argument] for argument in self.handed]


class _Copies:
    """Copies between arrays of a recording and others, which a call names: as many as a table holds are one launch."""

    def __init__(self, own: list, sizes: list[int], into: bool):
        largest = max(map(abs, sizes), default=0)
        self.blocks = min(_MOST_BLOCKS, 1 + largest // (_THREADS * 64))
        self.tables = []
        for n in range(0, len(own), _MANY):
            table = np.zeros((3, _MANY), np.uint64)  # as the kernel's: sources, targets, sizes
            some = slice(n, n + _MANY)
            count = len(own[some])
            table[1 if into else 0, :count] = [x.data.ptr for x in own[some]]
            table[2, :count] = np.array(sizes[some], np.int64).view(np.uint64)
            argument = table.reshape(-1).view(f"V{table.nbytes}")  # as one thing, which a kernel takes by value
            self.tables.append((some, count, argument, table[0 if into else 1, :count]))

    def launch(self, others: list[int]) -> None:
        """Copy from or to these addresses."""
        for some, count, argument, place in self.tables:
            place[:] = others[some]
            _copy()((self.blocks, count), (_THREADS,), (argument,))


class _Arguments:
    """What is copied into a recording: arrays in the order of its own, and numbers, which stand in the table."""

    def __init__(self, own: list[tuple[int, Any, np.dtype | None]]):
        self.own = [(k, x.strides, "C" if x.flags.c_contiguous else "F", number) for k, x, number in own]
        sizes = [x.nbytes if number is None else -x.nbytes for _, x, number in own]
        self.copies = _Copies([x for _, x, _ in own], sizes, into=True)

    def read(self, xs: list) -> None:
        sources, kept = [], []
        for k, strides, order, number in self.own:
            x = xs[k]
            if number is not None:
                sources.append(_bits(x, number))
                continue
            if x.strides != strides:
                x = cupy.array(x, order=order)
                kept.append(x)  # until it is read
            sources.append(x.data.ptr)
        self.copies.launch(sources)


class _Results:
    """What is copied out of a recording, into new arrays."""

    def __init__(self, own: list):
        self.own = [(x, x.shape, x.dtype, _order(x)) for x in own]
        side_by_side = [x for x, *_, order in self.own if order]
        self.copies = _Copies(side_by_side, [x.nbytes for x in side_by_side], into=False)

    def hand_out(self) -> list:
        made, targets = [], []
        for x, shape, dtype, order in self.own:
            y = cupy.ndarray(shape, dtype, order=order) if order else x.copy()
            made.append(y)
            if order:
                targets.append(y.data.ptr)
        self.copies.launch(targets)
        return made


@functools.cache
def _copy() -> Any:
    return cupy.RawKernel(_COPY, "fad_copy")


def _order(x: Any) -> str:
    """Return "C" or "F" for an array whose elements lie side by side in that order, and "" for any other."""
    return "C" if x.flags.c_contiguous else "F" if x.flags.f_contiguous else ""


def _bits(x: Any, dtype: np.dtype) -> int:
    """Return the bytes of a number in a dtype, as a whole number of 64 bits."""
    bits = np.zeros(1, np.uint64)
    bits.view(np.uint8)[: dtype.itemsize] = np.asarray(x, dtype).reshape(1).view(np.uint8)
    return int(bits[0])
