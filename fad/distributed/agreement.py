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
from fad.core.graph import EFFECT
from fad.core.journal import once
from fad.core.primitive import Primitive
from fad.core.tracer import Trace, Tracer
from fad.core.values import traces_of
from fad.distributed.communicator import Communicator
from fad.distributed.errors import RankTypeError
from fad.distributed.primitives import check_paths
from fad.staging.record import RecordTrace, recorder
from fad.transforms.jet import JetTrace
from fad.transforms.jvp import JVPTrace

_ELEMENTS = 64  # of each value


def is_swept(x: Any) -> bool:
    """Return whether a value is traced by a transform that sweeps backwards, or may."""
    return any(type(t).stop is Trace.stop and not isinstance(t, (JVPTrace, JetTrace)) for t in traces_of(x))


class Samples:
    """Elements and sums of all values that counted as the same on all ranks, and were made each rank's own."""

    __slots__ = ("birth", "found", "kinds")

    def __init__(self, birth: int):
        self.birth = birth  # of the trace of the function
        self.found: list = []
        self.kinds: list[tuple] = []  # their dtypes and shapes

    def take(self, x: Any) -> None:
        """Take some elements of a value, unless it is one of a loop's body or a branch that is recorded within."""
        value = x
        while type(value) is Tracer:
            if value.owner.birth > self.birth:
                return
            if isinstance(value.owner, RecordTrace):
                break
            value = value.value
        self.kinds.append((x.dtype, x.shape))
        step = -(-value.size // _ELEMENTS) or 1
        if type(value) is not np.ndarray:
            self.found += value.reshape(-1)[::step], value.sum()
            return
        some = (value.reshape(-1) if value.flags.c_contiguous else value.flat)[::step]
        sample = np.empty(some.size + 1, value.dtype)
        sample[:-1] = some
        with np.errstate(all="ignore"):
            sample[-1] = np.add.reduce(value, axis=None)
        self.found.append(sample)

    def compare(self, comm: Communicator) -> None:
        """Raise on every rank if the ranks have taken other values."""
        trace, kinds = recorder.get(), tuple(self.kinds)
        if trace is None:
            _agree(*self.found, comm=comm, kinds=kinds)
        else:
            trace.process(agree, tuple(self.found), {"comm": comm, "kinds": kinds})


def _agree(*samples: Any, comm: Communicator, kinds: tuple) -> Any:
    trace = recorder.get()
    if trace is None or not trace.of_examples:
        check_paths()
        once(_compare, samples, comm, kinds)
    return _NOTHING


_NOTHING = np.zeros(())
agree = Primitive("distributed.agree", _agree, flat=True, archetype=EFFECT)
agree.batch = lambda size, batched, xs, params: np.broadcast_to(agree(*xs, **params), (size,))


def _as_plain(x: Any) -> np.ndarray:
    return np.ascontiguousarray(host(x))


def _compare(samples: tuple, comm: Communicator, kinds: tuple) -> None:
    samples = tuple([x if type(x) is np.ndarray and x.flags.c_contiguous else _as_plain(x) for x in samples])
    code = zlib.crc32(b"".join(samples), len(kinds))
    if comm.is_same(code):
        return
    (expected, first), *others = comm.exchange((kinds, samples))
    for rank, (found, other) in enumerate(others, 1):
        if found != expected:
            raise RankTypeError(
                "other values that count as the same on all ranks meet values of each rank's own on rank "
                f"{rank} than on rank 0: {_show(found)} there, {_show(expected)} here. Their gradients could not be "
                "added up. Where the program goes another way on a rank, write fad.distributed.varying(y) before, on "
                "every rank"
            )
        for a, b in zip(first, other, strict=True):
            if not _is_close(a, b):
                raise RankTypeError(
                    f"a value that counts as the same on all ranks differs: it is {_show(a)} on rank 0 and {_show(b)} "
                    f"on rank {rank}. If it is an argument, make it one on all ranks, as by one seed or "
                    "fad.distributed.broadcast(w). If a Python number or position in it depends on the rank, as "
                    "int(comm.rank) or len(x) do, write np.float64(n) for n, or fad.distributed.varying(w)[a:b] for "
                    "w[a:b]; if the program treats the ranks differently, fad.distributed.varying(y) before. "
                    "init(debug=True) finds the lines of numbers"
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
