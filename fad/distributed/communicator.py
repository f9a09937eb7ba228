"""What a program needs of an engine: the `Communicator`, and the world of one rank.

A communicator moves plain arrays. `run` does a collective and returns its result, `start` begins one and returns a
request whose ``wait()`` gives it. An engine is a class with one method per collective, ``_all_reduce(x, op=...)`` and
so on; what is differentiated, batched or recorded is the business of the layers above.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import Any

import numpy as np

from fad.core.runs.journal import JOURNAL
from fad.distributed.errors import DistributedError, MismatchError
from fad.introspect.reachable import OPAQUE

TIMEOUT = 300.0
"""Seconds that a rank waits for the others in one collective, if `init` is given no other number."""


current: ContextVar[Communicator | None] = ContextVar("communicator", default=None)
"""The communicator that collectives use if none is named, where it is not that of `init`."""


class RankNumber(int):
    """The number of a rank, and what is computed with it: an int that is known to differ from rank to rank."""


class RankFloat(float):
    """A float that is computed with the number of a rank."""


def _mark(y: Any) -> Any:
    """Return a result of Python's arithmetic as a number of the rank; bools as NumPy's, which are each rank's own."""
    kind = type(y)
    if kind is tuple:
        return tuple(map(_mark, y))
    return RankNumber(y) if kind is int else RankFloat(y) if kind is float else np.bool_(y) if kind is bool else y


def _of_rank(name: str, kind: type) -> Callable:
    compute = getattr(kind, name)

    def method(*operands: Any) -> Any:
        y = compute(*operands)
        if y is NotImplemented and type(operands[-1]) in (float, RankFloat):
            y = getattr(float, name)(float(operands[0]), operands[-1])
        return _mark(y)

    method.__name__ = name
    return method


def plain_number(x: Any) -> Any:
    """Return what is computed with the number of a rank as the Python number that it is."""
    return int(x) if type(x) is RankNumber else float(x) if type(x) is RankFloat else x


def _beside_arrays(self: Any, ufunc: np.ufunc, method: str, *operands: Any, **options: Any) -> Any:
    """Run NumPy's operation: beside arrays it is a Python number, whose dtype does not count."""
    kinds = (RankNumber, RankFloat)
    if any(type(x) not in kinds and not isinstance(x, np.ndarray) and hasattr(x, "__array_ufunc__")
           and not isinstance(x, np.generic) for x in operands):  # fmt: skip
        return NotImplemented
    return getattr(ufunc, method)(*map(plain_number, operands), **options)


_ALONE = ("neg", "pos", "abs", "round", "floor", "ceil", "trunc")
_BESIDE = ("add", "sub", "mul", "truediv", "floordiv", "mod", "divmod", "pow")
_OF_INTEGERS = ("lshift", "rshift", "and", "or", "xor")
_COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")
for _kind, _base, _names in ((RankNumber, int, (*_BESIDE, *_OF_INTEGERS)), (RankFloat, float, _BESIDE)):
    for _name in (*_ALONE, *_COMPARISONS, *_names, *[f"r{name}" for name in _names]):
        setattr(_kind, f"__{_name}__", _of_rank(f"__{_name}__", _base))
    _kind.__hash__ = _base.__hash__  # type: ignore[method-assign]
RankNumber.__invert__ = _of_rank("__invert__", int)  # type: ignore[method-assign]
RankNumber.__array_ufunc__ = RankFloat.__array_ufunc__ = _beside_arrays  # type: ignore[attr-defined]
RankNumber.__fad_number__ = RankFloat.__fad_number__ = plain_number  # type: ignore[attr-defined]


METHODS = {
    name: f"_{name}"
    for name in (
        "all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast", "reduce", "gather", "scatter",
        "permute", "send", "recv", "barrier",
    )
}  # fmt: skip


class Done:
    """A request that is complete."""

    __slots__ = ("value",)

    def __init__(self, value: Any):
        self.value = value

    def wait(self) -> Any:
        return self.value

    def is_done(self) -> bool:
        return True


class Communicator:
    """A group of ranks, and this one's number among them; made by :func:`fad.distributed.init`.

    The collectives of `fad.distributed` are its methods: ``comm.all_reduce(x)`` is ``all_reduce(x, comm=comm)``.
    """

    engine = "none"

    def __init__(self, rank: int, size: int, timeout: float = TIMEOUT, deterministic: bool = False):
        self.rank = RankNumber(rank)
        self.size = size
        self.timeout = timeout
        self.deterministic = deterministic
        self.debug = False  # whether values that are said to be the same on all ranks are compared
        self.sequence: Any = None  # what compares the calls of the ranks, in the debug mode
        self.calls = 0  # collectives that this rank has run or begun
        self.nbytes = 0  # and how many bytes it gave to them
        self.left: list = []  # what was begun, and nobody waits for

    def __repr__(self) -> str:
        return f"<{self.engine} rank {int(self.rank)} of {self.size}>"

    def __reduce__(self) -> Any:
        raise TypeError("a communicator belongs to its process: call fad.distributed.init() where it is needed")

    # --- one collective on plain arrays -------------------------------------------------------------------------

    def run(self, name: str, x: Any, says: tuple = (), **params: Any) -> Any:
        """Do a collective and return its result, an array of this rank's own.

        What the function was called with beyond the engine's parameters is in `says`: all ranks must say the same.
        """
        self.calls += 1
        self.nbytes += x.nbytes
        if self.sequence is not None:
            self.sequence.compare(name, x, {**params, **dict(says)})
        if type(x) is np.ndarray and x.flags.c_contiguous and x.dtype.isnative:
            return getattr(self, METHODS[name])(x, **params)
        return self._as_given(getattr(self, METHODS[name])(contiguous(x), **params), x)

    def start(self, name: str, x: Any, says: tuple = (), **params: Any) -> Any:
        """Begin a collective and return a request; `x` may be overwritten at once."""
        if self.left:
            self.end_left()
        self.calls += 1
        self.nbytes += x.nbytes
        if self.sequence is not None:
            self.sequence.compare(name, x, {**params, **dict(says)})
        begin = getattr(self, f"_start_{name}", None)
        if begin is None or (self.deterministic and name in ("all_reduce", "reduce_scatter")):
            return Done(self._as_given(getattr(self, f"_{name}")(contiguous(x), **params), x))
        return begin(np.array(contiguous(x), order="C"), **params)

    def end_left(self) -> None:
        """Free the arrays of what was begun, is done, and nobody waits for."""
        for _ in range(len(self.left)):
            begun = self.left.pop(0)
            if begun.request.is_done():
                begun.request = Done(begun.request.wait())
            else:
                self.left.append(begun)

    def lend(self, size: int, dtype: np.dtype) -> Any:
        """Return a vector to be written, and given to `all_reduce` at once: an engine may send it as it lies there."""
        return np.empty(size, dtype)

    @staticmethod
    def _as_given(y: Any, x: Any) -> Any:
        return y[()] if type(y) is np.ndarray and not y.ndim and isinstance(x, np.generic) else y

    # --- what all engines can do with the others' help ------------------------------------------------------------

    def _reduce_in_order(self, x: Any, op: str) -> Any:
        """Reduce in the order of the ranks, so that the result has the same bits in every run and on every rank."""
        return reduce(self._all_gather(x), op)

    def _all_gather(self, x: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__} does not define all_gather")

    def exchange(self, value: Any) -> list:
        """Return what every rank gave, plain data such as numbers and strings, in the order of the ranks."""
        raise NotImplementedError(f"{type(self).__name__} does not define exchange")

    def is_same(self, code: int) -> bool:
        """Return whether all ranks give the same number, of 32 bits."""
        low, high = self.run("all_reduce", np.array([-code, code], np.float64), op="max")
        return bool(low == -high)

    def progress(self) -> None:
        """Give the engine a moment for what was begun, where it does not go on by itself."""

    def abort(self, message: str) -> None:
        """End the run on every rank."""
        raise DistributedError(message)

    def close(self) -> None:
        """Say that this rank will call no collective any more."""
        if self.sequence is not None:
            self.sequence.close()


def contiguous(x: Any) -> Any:
    """Return an array as engines take it: without gaps, and in the machine's order of bytes."""
    if not isinstance(x, (np.ndarray, np.generic)):
        return x
    return np.ascontiguousarray(x, x.dtype.newbyteorder("=")).reshape(np.shape(x))


OPERATIONS: dict[str, Callable] = {"sum": np.add, "max": np.maximum, "min": np.minimum, "prod": np.multiply}


def reduce(parts: Any, op: str) -> Any:
    """Return the parts of all ranks, reduced from the first to the last."""
    total = np.array(parts[0])
    for x in parts[1:]:
        total = OPERATIONS[op](total, x)
    return np.asarray(total)


OPAQUE += [Communicator, type(JOURNAL)]  # counts of calls, queues of messages and results change in every call


class Alone(Communicator):
    """The world of one rank, so that every script runs without an engine too."""

    engine = "alone"

    def __init__(self, timeout: float = TIMEOUT, deterministic: bool = False):
        super().__init__(0, 1, timeout, deterministic)
        self.letters: dict[int, list] = {}  # to itself, by tag

    def _all_reduce(self, x: Any, op: str) -> Any:
        return x.copy()

    def _broadcast(self, x: Any, root: int) -> Any:
        return x.copy()

    def _reduce(self, x: Any, root: int) -> Any:
        return x.copy()

    def _all_gather(self, x: Any) -> Any:
        return x.copy()[None]

    def _gather(self, x: Any, root: int) -> Any:
        return x.copy()[None]

    def _reduce_scatter(self, x: Any) -> Any:
        return x[0].copy()

    def _scatter(self, x: Any, root: int) -> Any:
        return x[0].copy()

    def _all_to_all(self, x: Any) -> Any:
        return x.copy()

    def _permute(self, x: Any, pairs: Sequence) -> Any:
        return x.copy() if pairs else np.zeros_like(x)

    def _send(self, x: Any, dest: int, tag: int) -> Any:
        self.letters.setdefault(tag, []).append(x.copy())
        return np.zeros_like(x, shape=())

    def _recv(self, x: Any, source: int, tag: int) -> Any:
        if not self.letters.get(tag):
            raise DistributedError(f"recv waits for a message of rank 0, tag {tag}, to itself, and none was sent")
        y = self.letters[tag].pop(0)
        if (y.shape, y.dtype) != (x.shape, x.dtype):
            raise MismatchError(
                f"rank 0 expects {x.dtype}{list(x.shape)} of itself, and was sent {y.dtype}{list(y.shape)}"
            )
        return y

    def _barrier(self, x: Any) -> Any:
        return x.copy()

    def exchange(self, value: Any) -> list:
        return [value]


def wants_debug() -> bool:
    """Return whether the environment requests the debug mode."""
    return os.environ.get("FAD_DISTRIBUTED_DEBUG", "") not in ("", "0")


# What launchers of several processes tell each: mpiexec of MPICH and of Open MPI, and srun, beside SLURM_PROCID.
_SIZES = ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "SLURM_NTASKS")


def is_launched() -> bool:
    """Return whether this process is one of several that a launcher started."""
    sizes = {name: os.environ.get(name, "") for name in _SIZES if name[:5] != "SLURM" or "SLURM_PROCID" in os.environ}
    return any(size.isdigit() and int(size) > 1 for size in sizes.values())
