"""``init``: the world that a program runs in, and the communicator that its collectives use if none is named."""

from __future__ import annotations

import importlib.util

from fad.distributed.communicator import TIMEOUT, Alone, Communicator, current, is_launched, wants_debug
from fad.distributed.errors import DistributedError

_worlds: dict[str, Communicator] = {}


def world() -> Communicator:
    """Return the communicator that collectives use if none is named: that of :func:`init`.

    >>> world().size
    1
    """
    return current.get() or init()


def init(
    engine: str = "auto", *, timeout: float | None = None, deterministic: bool = False, debug: bool | None = None
) -> Communicator:
    """Return the communicator of the world that the program was started in; a world of one where there is no other.

    Parameters
    ----------
    engine : "auto", "mpi", "nccl" or "alone"
        "auto" is MPI where the program was started by ``mpiexec`` or ``srun``, and otherwise a world of one.
    timeout : float, keyword only
        Seconds that a rank waits for the others in one collective before it ends the whole run with an error
        (300 if not given).
    deterministic : bool, keyword only
        Whether reductions add up in the order of the ranks, for the same bits in every run, at the price of an
        all_gather.
    debug : bool, keyword only
        Whether the ranks compare what they are about to call, before each collective, and raise `MismatchError` with
        the line of each where they differ; and whether what is returned as the same on all ranks is so. The
        environment variable ``FAD_DISTRIBUTED_DEBUG=1`` says so too.

    Returns
    -------
    Communicator
        The same one each time it is called.

    Raises
    ------
    DistributedError
        if the program was started on several ranks and mpi4py is not installed, or for an engine that is not there.

    Examples
    --------
    >>> comm = init()
    >>> int(comm.rank), comm.size
    (0, 1)
    """
    if engine not in ("auto", "mpi", "nccl", "alone"):
        raise ValueError(f"engine must be 'auto', 'mpi', 'nccl' or 'alone', not {engine!r}")
    if engine == "auto":
        engine = "mpi" if is_launched() else "alone"
    comm = _worlds.get(engine)
    if comm is None:
        comm = _worlds[engine] = _make(engine, TIMEOUT if timeout is None else timeout, deterministic)
        debug = wants_debug() if debug is None else debug
    comm.deterministic = deterministic or comm.deterministic
    if timeout is not None:
        comm.timeout = timeout
    if debug and comm.sequence is None and comm.size > 1:
        from fad.distributed.sequence import Sequence

        comm.sequence = Sequence(comm)
        comm.debug = True
    return comm


def _make(engine: str, timeout: float, deterministic: bool) -> Communicator:
    if engine == "alone":
        return Alone(timeout, deterministic)
    needed = {"mpi": "mpi4py", "nccl": "cupy"}[engine]
    if importlib.util.find_spec(needed) is None:
        raise DistributedError(
            f"the engine {engine!r} needs {needed}, which is not installed: "
            + ("pip install 'fad[mpi]' mpich" if engine == "mpi" else "pip install 'fad[cupy]'")
        )
    if engine == "mpi":
        from fad.distributed.mpi import MPIRank

        return MPIRank(timeout, deterministic)
    from fad.distributed.nccl import NCCLRank

    return NCCLRank(timeout, deterministic)
