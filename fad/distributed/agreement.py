"""Whether the values that count as the same on all ranks are the same, and are used by all of them.

Types say of a value that it is the same on all ranks. They do not know that a Python number in it differs, that the
program branched on the number of the rank, or that an argument was made from another seed on each rank; a gradient
would silently be wrong. So where it may be swept backwards, the ranks compare what each of them has turned into its
own: some elements of each value and the sum of all of them, by one small message at the end of the function.
"""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np

from fad.backends import host
from fad.core.primitives.primitive import Primitive
from fad.core.programs.graph import EFFECT
from fad.core.runs.journal import once
from fad.core.tracing.trace import Trace
from fad.core.tracing.tracer import Tracer
from fad.core.tracing.values import traces_of
from fad.distributed.communicator import Communicator
from fad.distributed.errors import RankTypeError
from fad.distributed.primitives import check_paths
from fad.introspect.frames import user_line
from fad.staging.record import recorder
from fad.staging.record_trace import RecordTrace
from fad.transforms.jet import JetTrace
from fad.transforms.jvp import JVPTrace

_ELEMENTS = 64  # of each value


def is_swept(x: Any) -> bool:
    """Return whether a value is traced by a transform that sweeps backwards, or may."""
    return any(type(t).stop is Trace.stop and not isinstance(t, (JVPTrace, JetTrace)) for t in traces_of(x))


class Samples:
    """What one rank notes of a function, to be compared: values that count as the same on all ranks, some elements
    and the sum of each, where they were made each rank's own; and in the debug mode Python's numbers, by line."""

    __slots__ = ("birth", "found", "kinds", "numbers", "of_values")

    def __init__(self, birth: float, of_values: bool):
        self.birth = birth  # of the trace of the function
        self.of_values = of_values  # whether the function is swept backwards
        self.found: list = []
        self.kinds: list[tuple] = []  # dtype, shape, and whether the function returned it
        self.numbers: dict[str, list] = {}

    def take(self, x: Any, returned: bool = False) -> None:
        """Take some elements of a value, unless it is one of a loop's body or a branch that is recorded within."""
        value = x
        while type(value) is Tracer:
            if value.owner.birth > self.birth:
                return
            if isinstance(value.owner, RecordTrace):
                break
            value = value.wrapped
        self.kinds.append((x.dtype, x.shape, returned))
        step = -(-value.size // _ELEMENTS) or 1
        if type(value) is not np.ndarray:
            self.found += value.reshape(-1)[::step], value.sum()
            return
        some = (value.reshape(-1) if value.flags.c_contiguous else value.flat)[::step].copy()
        with np.errstate(all="ignore"):
            self.found += some, np.add.reduce(value, axis=None, keepdims=True)

    def take_numbers(self, xs: list) -> None:
        self.numbers.setdefault(user_line(), []).extend(xs)

    def compare(self, comm: Communicator) -> None:
        """Raise on every rank if the ranks have taken other values."""
        trace, kinds = recorder.get(), tuple(self.kinds)
        numbers = tuple([(line, tuple(xs)) for line, xs in self.numbers.items()])
        if trace is None:
            _agree(*self.found, comm=comm, kinds=kinds, numbers=numbers)
        else:
            trace.process(agree, tuple(self.found), {"comm": comm, "kinds": kinds, "numbers": numbers})


def _agree(*samples: Any, comm: Communicator, kinds: tuple, numbers: tuple) -> Any:
    trace = recorder.get()
    if trace is None or not trace.of_examples:
        check_paths()
        once(_compare, samples, comm, kinds, numbers)
    return _NOTHING


_NOTHING = np.zeros(())
agree = Primitive("distributed.agree", _agree, flat=True, archetype=EFFECT)
agree.batch = lambda size, batched, xs, params: np.broadcast_to(agree(*xs, **params), (size,))


def _compare(samples: tuple, comm: Communicator, kinds: tuple, numbers: tuple) -> None:
    samples = tuple([x if type(x) is np.ndarray and x.flags.c_contiguous else _as_plain(x) for x in samples])
    code = zlib.crc32(b"".join(samples), zlib.crc32(repr(numbers).encode()) if numbers else len(kinds))
    if comm.is_same(code):
        return
    mine = [x.copy() for x in samples]  # a program overwrites its arrays while others may read them
    (expected, first, of_first), *others = comm.exchange((kinds, mine, numbers))
    for rank, (found, other, of_other) in enumerate(others, 1):
        _compare_numbers(of_first, of_other, rank)
        if found != expected:
            raise RankTypeError(
                "other values that count as the same on all ranks meet values of each rank's own on rank "
                f"{rank} than on rank 0: {_show(found)} there, {_show(expected)} here. Their gradients could not be "
                "added up. Where the program goes another way on a rank, write fad.distributed.varying(y) before, on "
                "every rank"
            )
        for k, kind in enumerate(expected):
            if not all(_is_close(a[k], b[k]) for a, b in zip(_pairs(first), _pairs(other), strict=True)):
                raise _differs(kind, first[2 * k], other[2 * k], rank)


def _pairs(samples: list) -> tuple:
    """Return the elements of all values, and their sums."""
    return samples[::2], samples[1::2]


def _as_plain(x: Any) -> np.ndarray:
    return np.ascontiguousarray(host(x))


def _compare_numbers(first: tuple, other: tuple, rank: int) -> None:
    """Raise if a line used other numbers on another rank; one that they came to unequally often says nothing."""
    known = dict(first)
    for line, numbers in other:
        expected = known.get(line, ())
        if len(expected) != len(numbers):
            continue
        for a, b in zip(expected, numbers, strict=True):
            if a != b and (a == a or b == b):
                raise RankTypeError(
                    f"a Python number differs from rank to rank: {a!r} on rank 0, {b!r} on rank {rank}, at "
                    f"{line}. It counts as the same on all ranks: write np.float64(n) for n"
                )


def _differs(kind: tuple, a: Any, b: Any, rank: int) -> RankTypeError:
    both = f"{_show(a)} on rank 0, {_show(b)} on rank {rank}"
    numbers = (
        "If a Python number or position in it depends on the rank, as int(comm.rank) or len(x) do, write np.float64(n) "
        "for n, or fad.distributed.varying(w)[a:b] for w[a:b]; if the program treats the ranks differently, "
        "fad.distributed.varying(y) before"
    )
    if kind[2]:
        return RankTypeError(f"a function under spmd returned as the same on all ranks what differs: {both}. {numbers}")
    return RankTypeError(
        f"a value that counts as the same on all ranks differs: {both}. If it is an argument, make it one on all "
        f"ranks, as by one seed or fad.distributed.broadcast(w). {numbers}. init(debug=True) finds the lines of numbers"
    )


def _is_close(a: Any, b: Any) -> bool:
    """Return whether samples are equal to the rounding that sums in another order have."""
    if a.shape != b.shape:
        return False
    rounding = 1e-4 if a.real.itemsize < 8 else 1e-8
    scale = np.max(np.abs(a), where=np.isfinite(a), initial=0.0)
    return np.allclose(a, b, rounding, rounding * float(scale), equal_nan=True)


def _show(found: Any) -> str:
    few = [f"{x[0]}{list(x[1])}" if type(x) is tuple else str(x) for x in found[:4]]
    return f"[{', '.join(few)}{', ...' if len(found) > len(few) else ''}]"
