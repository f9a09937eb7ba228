"""Programs of several ranks: collectives that are differentiated, batched and compiled, on MPI, NCCL or threads."""

from fad.distributed.checking import check
from fad.distributed.checkpoints import Shard, load, save
from fad.distributed.collectives import (
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
    varying,
)
from fad.distributed.communicator import Communicator
from fad.distributed.derivatives import grad, value_and_grad
from fad.distributed.errors import DistributedError, MismatchError, RankTypeError
from fad.distributed.handles import (
    Handle,
    start_all_gather,
    start_all_reduce,
    start_all_to_all,
    start_permute,
    start_reduce_scatter,
)
from fad.distributed.parts import halo, jacobian, map, own_dropout, rank_key
from fad.distributed.ranks import is_replicated, spmd
from fad.distributed.solve import cg
from fad.distributed.threads import run_ranks
from fad.distributed.worlds import init, world

__all__ = [
    "Communicator", "DistributedError", "Handle", "MismatchError", "RankTypeError", "Shard", "all_gather",
    "all_reduce", "all_to_all", "barrier", "broadcast", "cg", "check", "gather", "grad", "halo", "init",
    "is_replicated", "jacobian", "load", "map", "own_dropout", "permute", "rank_key", "recv", "reduce",
    "reduce_scatter", "run_ranks", "save", "scatter", "send", "shift", "spmd", "start_all_gather", "start_all_reduce",
    "start_all_to_all", "start_permute", "start_reduce_scatter", "value_and_grad", "varying", "world",
]  # fmt: skip
