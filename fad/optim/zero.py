"""``sharded``: an optimiser whose state is split over ranks (ZeRO, stage 1: S. Rajbhandari et al., SC 2020)."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from fad.distributed.checkpoints import Shard
from fad.distributed.collectives import all_gather, reduce_scatter
from fad.distributed.communicator import Communicator
from fad.distributed.worlds import world
from fad.errors import UnsupportedInputError
from fad.nn.structure import leaves_of
from fad.optim.lbfgs import LBFGS
from fad.optim.optimizer import Optimizer, _arrays, check_gradients, make_groups


def sharded(opt: Optimizer, comm: Communicator | None = None, *, reduced: bool = True) -> Sharded:
    """Return an optimiser that does what `opt` does, and keeps and computes one part of its state on each rank.

    Each rank updates its part of the parameters, and gathers the others' parts. The optimisers of fad work element by
    element, so the parameters are those that `opt` alone would give.

    Parameters
    ----------
    opt : Optimizer
        Made with the model. It gives up its state.
    comm : Communicator, optional
        The world of `fad.distributed.init` if not given.
    reduced : bool, keyword only
        Whether the gradients given to ``step`` are those of all ranks, as `fad.distributed.value_and_grad` returns
        them; if not, they are each rank's own (``reduce=False``), and are added up part by part, which sends less.

    Returns
    -------
    Sharded
        With ``step``, as an optimiser has it.

    Raises
    ------
    UnsupportedInputError
        The optimiser is `LBFGS`, which does not work element by element.

    Examples
    --------
    >>> from fad import optim
    >>> w = np.array([1.0])
    >>> sharded(optim.SGD(w, lr=0.1)).step(np.array([2.0])); w
    array([0.8])
    """
    if isinstance(opt, LBFGS):
        raise UnsupportedInputError(
            "sharded takes optimisers that work element by element, and LBFGS takes products of whole vectors: use it "
            "on every rank, with the gradient of all ranks"
        )
    return Sharded(opt, comm or world(), reduced)


class Sharded:
    """An optimiser of which each rank keeps a part; made by :func:`sharded`."""

    def __init__(self, opt: Optimizer, comm: Communicator, reduced: bool):
        self.comm = comm
        self.reduced = reduced
        self.params = opt.params
        groups = opt._ready()
        arrays = _arrays(opt.params)
        self.groups = [_Part(g.members, g.shapes, g.bounds, arrays[g.members[0]], comm) for g in groups]
        self.inner = copy.copy(opt)
        self.inner.params = [part.values for part in self.groups]
        self.inner._groups = None
        wide = [2 if part.values.dtype.kind == "c" else 1 for part in self.groups]
        kept = [
            [_part_of(slot, part, w, comm) for slot in group.slots]
            for group, part, w in zip(groups, self.groups, wide, strict=True)
        ]
        opt._groups = None
        self.inner._groups = make_groups(self.inner.params, self.inner.slots)
        for group, slots in zip(self.inner._groups, kept, strict=True):
            group.slots = slots

    @property
    def steps(self) -> int:
        """The number of steps done."""
        return self.inner.steps

    def step(self, grads: Any) -> None:
        """Update the model in place, on every rank, with a gradient of its structure."""
        arrays, leaves = _arrays(self.params), leaves_of(grads)
        check_gradients(arrays, leaves, self.params, grads, self.groups)
        mine = []
        for part in self.groups:
            part.read(arrays)
            flat = part.flat(leaves)
            if self.reduced:
                mine.append(flat[part.start : part.start + part.values.size])
            else:
                mine.append(reduce_scatter(flat.reshape(self.comm.size, -1), "mean", comm=self.comm))
        self.inner.step(mine)
        for part in self.groups:
            part.write(arrays, all_gather(part.values, comm=self.comm).reshape(-1))

    def nbytes(self) -> int:
        """Return the bytes of state that this rank keeps."""
        return sum(slot.nbytes for group in self.inner._ready() for slot in group.slots)

    def state_dict(self) -> dict[str, Any]:
        """Return the whole state, as `opt` alone has it, on every rank; all ranks call it."""
        slots = []
        for group, part in zip(self.inner._ready(), self.groups, strict=True):
            slots.append([self._join(slot, part) for slot in group.slots])
        return {"steps": np.asarray(self.steps), "slots": slots}

    def _join(self, slot: Any, part: _Part) -> Any:
        wide = len(slot) // len(part.values)
        return all_gather(slot, comm=self.comm).reshape(-1)[: wide * part.length]

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take over a state of :meth:`state_dict`, of this or any other number of ranks, or of `opt` alone."""
        groups = self.inner._ready()
        for given, group, part in zip(state["slots"], groups, self.groups, strict=True):
            for slot, whole in zip(group.slots, given, strict=True):
                wide = len(slot) // len(part.values)
                if len(whole) != wide * part.length:
                    raise ValueError("this optimiser state belongs to a model of other parameters")
                slot[...] = _part_of(np.asarray(whole), part, wide, self.comm)
        self.inner.steps = int(state["steps"])

    def shards(self) -> dict[str, Any]:
        """Return the state as pieces of vectors, for `fad.distributed.save`: each rank writes what it keeps."""
        found = []
        for group, part in zip(self.inner._ready(), self.groups, strict=True):
            wide = max(len(slot) // len(part.values) for slot in group.slots) if group.slots else 1
            length = max(0, min(len(part.values), part.length - part.start))
            found.append([Shard(s[: wide * length], wide * part.start, wide * part.length) for s in group.slots])
        return {"steps": np.asarray(self.steps), "slots": found}


class _Part:
    """This rank's part of all parameters of one dtype, laid one behind the other."""

    def __init__(self, members: list, shapes: list, bounds: list, like: Any, comm: Communicator):
        self.members, self.shapes, self.bounds = members, shapes, bounds
        self.length = bounds[-1]
        each = -(-self.length // comm.size)
        self.start = int(comm.rank) * each
        self.padded = each * comm.size
        self.values = np.zeros_like(like, shape=(each,))

    def flat(self, leaves: list) -> Any:
        whole = np.zeros_like(self.values, shape=(self.padded,))
        for (a, b), i in zip(zip(self.bounds, self.bounds[1:], strict=False), self.members, strict=True):
            whole[a:b] = np.reshape(leaves[i], -1)
        return whole

    def read(self, arrays: list) -> None:
        """Take the present values of this rank's part."""
        end = self.start + len(self.values)
        for (a, b), i in zip(zip(self.bounds, self.bounds[1:], strict=False), self.members, strict=True):
            low, high = max(a, self.start), min(b, end)
            if low < high:
                self.values[low - self.start : high - self.start] = arrays[i].reshape(-1)[low - a : high - a]

    def write(self, arrays: list, whole: Any) -> None:
        for a, i, shape in zip(self.bounds, self.members, self.shapes, strict=False):
            arrays[i][...] = whole[a : a + int(np.prod(shape))].reshape(shape)


def _part_of(whole: Any, part: _Part, wide: int, comm: Communicator) -> Any:
    """Return this rank's part of a vector of state, with zeros behind its end."""
    mine = np.zeros_like(whole, shape=(wide * len(part.values),))
    some = whole[wide * part.start : wide * (part.start + len(part.values))]
    mine[: len(some)] = some
    return mine
