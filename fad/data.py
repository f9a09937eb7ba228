"""Batches of arrays."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from typing import Any

from fad import random, tree
from fad.errors import ShapeMismatchError

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

    Raises
    ------
    ShapeMismatchError
        if the arrays differ in length.

    Examples
    --------
    >>> import numpy as np
    >>> for x, y in batches((np.arange(3), np.arange(3) ** 2), 2):
    ...     print(x, y)
    [0 1] [0 1]
    [2] [4]
    """

    def __init__(self, arrays: Any, batch_size: int, *, key: Any = None, drop_last: bool = False):
        leaves, self._structure = tree.flatten(arrays)
        lengths = {len(x) for x in leaves}
        if len(lengths) != 1:
            raise ShapeMismatchError(f"batches needs arrays of one length, but they have {sorted(lengths)}")
        if batch_size < 1:
            raise ValueError(f"batch_size must be at least 1, not {batch_size!r}")
        self._leaves = leaves
        self.size = lengths.pop()
        self.batch_size = int(batch_size)
        self.key = None if key is None else random.as_key(key)
        self.drop_last = drop_last
        self.passes = 0

    def __repr__(self) -> str:
        return f"<fad.data.batches of {self.batch_size} from {self.size}{'' if self.key is None else ', shuffled'}>"

    def __len__(self) -> int:
        return self.size // self.batch_size if self.drop_last else -(-self.size // self.batch_size)

    def __iter__(self) -> Iterator[Any]:
        leaves = self._leaves
        if self.key is not None:
            order = random.permutation(random.fold_in(self.key, self.passes), self.size)
            leaves = [x[order] for x in leaves]
        self.passes += 1
        for i in range(len(self)):
            a = i * self.batch_size
            yield tree.unflatten(self._structure, [x[a : a + self.batch_size] for x in leaves])


class progress:
    """Iterate with a progress bar where tqdm is installed and stderr is a terminal, and quietly anywhere else.

    >>> for i in progress(range(2), "counting"):
    ...     print(i)
    0
    1
    """

    def __init__(self, iterable: Any, description: str = ""):
        self._iterable = iterable
        self._bar: Any = None
        if sys.stderr is not None and sys.stderr.isatty():
            with contextlib.suppress(ImportError):
                from tqdm import tqdm

                self._bar = tqdm(iterable, desc=description, leave=True)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._bar if self._bar is not None else self._iterable)

    def show(self, **numbers: float) -> None:
        """Show numbers behind the bar."""
        if self._bar is not None:
            self._bar.set_postfix({name: f"{float(x):.4g}" for name, x in numbers.items()})
