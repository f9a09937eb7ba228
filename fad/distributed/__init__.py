"""Programs of several ranks: collectives that are differentiated, batched and compiled, on MPI, NCCL or threads."""

from fad.distributed.collectives import (
    Handle,
    all_gather,
    all_reduce,
    all_to_all,
    barrier,
    broadcast,
    gather,
    permute,
    recv,
    reduce,
    reduce_scatter,
    scatter,
    send,
    shift,
    start_all_gather,
    start_all_reduce,
    start_all_to_all,
    start_permute,
    start_reduce_scatter,
    varying,
)
from fad.distributed.communicator import Communicator
from fad.distributed.derivatives import grad, value_and_grad
from fad.distributed.errors import DistributedError, MismatchError, RankTypeError
from fad.distributed.ranks import is_replicated, spmd
from fad.distributed.threads import run_ranks
from fad.distributed.worlds import init, world

__all__ = [
    "Communicator", "DistributedError", "Handle", "MismatchError", "RankTypeError", "all_gather", "all_reduce",
    "all_to_all", "barrier", "broadcast", "gather", "grad", "init", "is_replicated", "permute", "recv", "reduce",
    "reduce_scatter", "run_ranks", "scatter", "send", "shift", "spmd", "start_all_gather", "start_all_reduce",
    "start_all_to_all", "start_permute", "start_reduce_scatter", "value_and_grad", "varying", "world",
]  # fmt: skip
