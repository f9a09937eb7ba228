"""Batches of arrays."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

from fad import random, tree
from fad.backends import is_on_device
from fad.errors import ShapeMismatchError
from fad.typing import Key, PyTree

__all__ = ["batches"]


def __dir__() -> list[str]:
    return __all__


class batches:
    """Iterate over batches of arrays that share their first axis; may be iterated many times.

    Parameters
    ----------
    arrays : array or tree of arrays
        For example ``(x, y)``; each batch has the same structure.
    batch_size : int
        The last batch may be smaller, unless `drop_last` is true.
    key : random key, seed or None
        With a key, the entries are shuffled: the first pass by ``fold_in(key, 0)``, the next by ``fold_in(key, 1)`` ...
    drop_last : bool
        Leave out a last batch that is not full.
    rank, size : int, keyword only
        This rank's part of each batch, of `size` equal ones: with the same key on all ranks they make up the batch of
        one rank alone. A last batch that cannot be cut in equal parts loses up to ``size - 1`` entries.

    The arrays may be larger than memory (``np.memmap``, or arrays of h5py and zarr): a batch is read when it comes.

    Raises
    ------
    ShapeMismatchError
        if the arrays differ in length.
    ValueError
        if a batch cannot be cut in equal parts for the ranks.

    Examples
    --------
    >>> import numpy as np
    >>> for x, y in batches((np.arange(3), np.arange(3) ** 2), 2):
    ...     print(x, y)
    [0 1] [0 1]
    [2] [4]
    """

    def __init__(
        self, arrays: PyTree, batch_size: int, *, key: Key | None = None, drop_last: bool = False, rank: int = 0,
        size: int = 1,
    ):  # fmt: skip
        leaves, self._structure = tree.flatten(arrays)
        lengths = {_length(x) for x in leaves}
        if len(lengths) != 1:
            raise ShapeMismatchError(f"batches needs arrays of one length, but they have {sorted(lengths)}")
        if batch_size < 1:
            raise ValueError(f"batch_size must be at least 1, not {batch_size!r}")
        if not 0 <= rank < size:
            raise ValueError(f"rank must be one of the {size} ranks, 0 to {size - 1}, not {rank}")
        if batch_size % size:
            raise ValueError(f"a batch of {batch_size} cannot be cut in equal parts for {size} ranks")
        self.rank = int(rank)
        self.ranks = int(size)
        self._leaves = leaves
        self.size = lengths.pop()
        self.batch_size = int(batch_size)
        self.key = None if key is None else random.as_key(key)
        self.drop_last = drop_last
        self.passes = 0

    def __repr__(self) -> str:
        return f"<fad.data.batches of {self.batch_size} from {self.size}{'' if self.key is None else ', shuffled'}>"

    def __len__(self) -> int:
        rest = self.size % self.batch_size
        return self.size // self.batch_size + (rest >= self.ranks and not self.drop_last)

    def __iter__(self) -> Iterator[Any]:
        order = None
        if self.key is not None:
            order = random.permutation(random.fold_in(self.key, self.passes), self.size)
        self.passes += 1
        for i in range(len(self)):
            start = i * self.batch_size
            each = min(self.batch_size, self.size - start) // self.ranks
            a = start + self.rank * each
            where = slice(a, a + each) if order is None else order[a : a + each]
            yield tree.unflatten(self._structure, [_take(x, where) for x in self._leaves])


def _length(x: Any) -> int:
    """Return the length of the first axis; zarr's arrays have a shape alone."""
    shape = getattr(x, "shape", ())
    return shape[0] if shape else len(x)


def _take(x: Any, where: Any) -> Any:
    """Return some entries of an array, which may lie in a file."""
    if type(x) is np.ndarray or is_on_device(x):
        return x[where]
    if type(where) is slice or isinstance(x, np.ndarray):
        return np.asarray(x[where])
    order = np.argsort(where)  # files are read in their order
    back = np.empty_like(order)
    back[order] = np.arange(len(order))
    return np.asarray(x[where[order]])[back]


class progress:
    """Iterate with a progress bar where tqdm is installed and stderr is a terminal, and quietly anywhere else.

    With `lines`, so many lines are printed to stderr where it is no terminal, for programs that run for minutes.

    >>> for i in progress(range(2), "counting"):
    ...     print(i)
    0
    1
    """

    def __init__(self, iterable: Any, description: str = "", *, lines: int = 0):
        self._iterable = iterable
        self._description = description
        self._every = max(1, len(iterable) // lines) if lines else 0
        self._done = 0
        self._bar: Any = None
        if sys.stderr is not None and sys.stderr.isatty():
            with contextlib.suppress(ImportError):
                from tqdm import tqdm

                self._bar = tqdm(iterable, desc=description, leave=True)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._bar if self._bar is not None else self._iterable)

    def show(self, **numbers: float) -> None:
        """Show numbers behind the bar, once in each step."""
        self._done += 1
        if self._bar is not None:
            self._bar.set_postfix({name: f"{float(x):.4g}" for name, x in numbers.items()})
        elif self._every and self._done % self._every == 0 and sys.stderr is not None:
            shown = ", ".join(f"{name} {float(x):.4g}" for name, x in numbers.items())
            print(f"{self._description} {self._done}/{len(self._iterable)}: {shown}", file=sys.stderr, flush=True)
