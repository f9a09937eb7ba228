"""The errors of programs of several ranks."""

from __future__ import annotations

from fad.errors import FadError


class DistributedError(FadError, RuntimeError):
    """A program of several ranks cannot go on: a rank is missing, or has failed, or there is no engine to run it on.

    Wrong::

        if comm.rank == 0:
            total = comm.all_reduce(x)       # the others never come

    Right::

        total = comm.all_reduce(x)           # every rank calls it
    """


class MismatchError(DistributedError):
    """The ranks called different collectives, or the same one on different shapes, dtypes or parameters.

    Wrong::

        y = comm.all_reduce(x) if comm.rank else comm.all_gather(x)

    Right::

        y = comm.all_reduce(x)               # the same calls in the same order on every rank
    """


class RankTypeError(FadError, TypeError):
    """Whether a value is the same on all ranks decides its derivative, and it is not known or not as was said.

    Wrong::

        fad.grad(lambda w: comm.all_reduce(loss(w, x)))(w)       # is w one w for all ranks, or one for each?

    Right::

        fad.distributed.grad(lambda w: comm.all_reduce(loss(w, x)), comm)(w)     # one w for all
    """
