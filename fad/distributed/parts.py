"""Dividing work over ranks: batches of a function, Jacobian columns, the parts of a domain, random keys."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fad import random, tree
from fad.distributed.collectives import all_gather, varying
from fad.distributed.communicator import Communicator
from fad.distributed.handles import start_permute
from fad.distributed.worlds import world
from fad.errors import ShapeMismatchError
from fad.transforms.jvp import jvp
from fad.transforms.vmap import vmap


def map(fun: Callable, *xs: Any, comm: Communicator | None = None, chunk_size: int | None = None) -> Any:
    """Return a function of single examples for a whole batch, of which each rank computes a part.

    Parameters
    ----------
    fun : callable
        Function of single examples, run under `fad.vmap`; it calls no collectives.
    *xs : arrays or trees of arrays
        The same on all ranks, with the examples along the first axis, in any number.
    chunk_size : int, keyword only
        How many examples a rank computes at once.

    Returns
    -------
    tree of arrays
        All results, on every rank.

    Examples
    --------
    >>> map(lambda x: x * x, np.arange(3.0))
    array([0., 1., 4.])
    """
    comm = comm or world()
    shapes = [np.shape(x) for x in tree.leaves(xs)]
    if not all(shapes):
        raise ShapeMismatchError("map needs arrays, with the examples along the first axis, and was given a number")
    lengths = {shape[0] for shape in shapes}
    if len(lengths) != 1:
        raise ShapeMismatchError(f"map needs arrays of one length, but they have {sorted(lengths)}")
    n = lengths.pop()
    each = -(-n // comm.size)
    mine = np.minimum(np.arange(int(comm.rank) * each, (int(comm.rank) + 1) * each), max(n - 1, 0))

    def part(x: Any) -> Any:
        return varying(x, comm=comm)[mine]

    ys = vmap(fun, chunk_size=chunk_size)(*tree.map(part, xs))
    return tree.map(lambda y: all_gather(y, tiled=True, comm=comm)[:n], ys)


def jacobian(fun: Callable, comm: Communicator | None = None, *, chunk_size: int | None = None) -> Callable:
    """Return the Jacobian of a function of one array, whose columns are computed on all ranks.

    Returns
    -------
    callable
        Of an array that is the same on all ranks; the last axes of what it returns are those of the array.

    Examples
    --------
    >>> jacobian(lambda x: x[0] * x)(np.array([2.0, 3.0]))
    array([[4., 0.],
           [3., 2.]])
    """

    def evaluate(x: Any) -> Any:
        x = x if hasattr(x, "shape") else np.asarray(x)
        basis = np.eye(x.size, dtype=x.dtype).reshape((x.size, *x.shape))
        columns = map(lambda t: jvp(fun, (x,), (t,))[1], basis, comm=comm, chunk_size=chunk_size)
        return tree.map(lambda y: np.moveaxis(y, 0, -1).reshape((*y.shape[1:], *x.shape)), columns)

    return evaluate


def halo(
    x: Any, width: int = 1, axis: int = 0, *, wrap: bool = False, fill: float = 0.0, comm: Communicator | None = None
) -> Any:
    """Return a part of a domain that is cut along an axis, with the neighbours' cells on both sides.

    Parameters
    ----------
    x : array
        This rank's part; all have the same length along the axis, at least `width`.
    width : int
        How many cells of each neighbour.
    axis : int
    wrap : bool, keyword only
        Whether the first and the last rank are neighbours; else `fill` stands beyond the ends.

    Examples
    --------
    >>> halo(np.array([1.0, 2.0]))
    array([0., 1., 2., 0.])
    """
    comm = comm or world()
    n, rank = comm.size, int(comm.rank)
    x = x if hasattr(x, "shape") else np.asarray(x)
    if not x.ndim:
        raise ShapeMismatchError("halo needs an array that is cut along an axis, and was given a number")
    x = x if axis == 0 else np.moveaxis(x, axis, 0)
    if not 1 <= width <= len(x):
        raise ShapeMismatchError(f"halo needs a width of 1 to {len(x)}, the length of a part, and was given {width}")
    up = [(r, (r + 1) % n) for r in range(n) if wrap or r + 1 < n]
    from_left = start_permute(x[-width:], up, comm=comm)
    from_right = start_permute(x[:width], [(b, a) for a, b in up], comm=comm)
    left, right = from_left.wait(), from_right.wait()
    if not wrap and fill:
        left = left + (fill + 0.0 if rank == 0 else 0.0)
        right = right + (fill + 0.0 if rank == n - 1 else 0.0)
    y = np.concatenate([left, x, right])
    return y if axis == 0 else np.moveaxis(y, 0, axis)


def rank_key(key: Any, comm: Communicator | None = None) -> Any:
    """Return a random key of this rank's own: for noise and dropout on each rank's data.

    What must be the same on all ranks, as first weights and the order of the examples, takes the key itself.

    >>> from fad import random
    >>> bool(np.all(rank_key(random.key(0)) == random.fold_in(random.key(0), 0)))
    True
    """
    return random.fold_in(random.as_key(key), int((comm or world()).rank))


def own_dropout(model: Any, comm: Communicator | None = None) -> Any:
    """Give every dropout layer of a model a key of this rank's own; return the model.

    On all ranks the model was made with one seed, so that its weights are the same, and its dropout is too.
    """
    comm = comm or world()
    for module in model.modules():
        if "key" in getattr(module, "_buffers", ()) and hasattr(module, "calls"):
            module.key = rank_key(module.key, comm)
    return model
