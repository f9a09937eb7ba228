"""Data sets: what has examples, by numbers or one after the other."""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np

from fad.eager.rng import generator as numbers
from fad.eager.tensor import Tensor


class Dataset:
    """What has a length and gives an example for each number: subclasses write ``__len__`` and ``__getitem__``."""

    def __getitem__(self, index: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__} does not define __getitem__(self, index)")

    def __add__(self, other: Any) -> Dataset:
        return ConcatDataset([self, other])


class IterableDataset(Dataset):
    """What gives its examples one after the other: subclasses write ``__iter__``, and ``__len__`` if they know it."""

    def __iter__(self) -> Iterator[Any]:
        raise NotImplementedError(f"{type(self).__name__} does not define __iter__(self)")

    def __add__(self, other: Any) -> Dataset:
        return ChainDataset([self, other])


class TensorDataset(Dataset):
    """Tensors of equal length: example i is the tuple of their i-th entries.

    >>> import fad.eager as torch
    >>> TensorDataset(torch.arange(3), torch.ones(3))[1]
    (tensor(1), tensor(1.))
    """

    def __init__(self, *tensors: Tensor):
        if len({len(x) for x in tensors}) != 1:
            raise ValueError(f"the tensors of a data set have one length, not {[len(x) for x in tensors]}")
        self.tensors = tensors

    def __getitem__(self, index: Any) -> tuple:
        return tuple(x[index] for x in self.tensors)

    def __len__(self) -> int:
        return len(self.tensors[0])


class Subset(Dataset):
    """Those examples of a data set whose numbers are given."""

    def __init__(self, dataset: Any, indices: Any):
        self.dataset, self.indices = dataset, list(indices)

    def __getitem__(self, index: int) -> Any:
        return self.dataset[self.indices[index]]

    def __len__(self) -> int:
        return len(self.indices)


class ConcatDataset(Dataset):
    """The examples of several data sets, one after the other."""

    def __init__(self, datasets: Any):
        self.datasets = list(datasets)
        self.cumulative_sizes = np.cumsum([len(d) for d in self.datasets]).tolist()

    def __getitem__(self, index: int) -> Any:
        if not -len(self) <= index < len(self):
            raise IndexError(f"example {index} of a data set of {len(self)}")
        index %= len(self)
        k = bisect.bisect_right(self.cumulative_sizes, index)
        return self.datasets[k][index - (self.cumulative_sizes[k - 1] if k else 0)]

    def __len__(self) -> int:
        return self.cumulative_sizes[-1] if self.datasets else 0


class ChainDataset(IterableDataset):
    """The examples of several data sets that are gone through, one after the other."""

    def __init__(self, datasets: Any):
        self.datasets = list(datasets)

    def __iter__(self) -> Iterator[Any]:
        return itertools.chain.from_iterable(self.datasets)


def random_split(dataset: Any, lengths: Any, generator: Any = None) -> list[Subset]:
    """Return parts of a data set in random order: of whole lengths, or of parts of one."""
    n = len(dataset)
    sizes = list(lengths)
    if all(isinstance(x, float) for x in sizes):
        sizes = [int(x * n) for x in sizes]
        for i in range(n - sum(sizes)):
            sizes[i % len(sizes)] += 1
    if sum(sizes) != n:
        raise ValueError(f"the lengths {list(lengths)} do not add up to the {n} examples of the data set")
    order = numbers(generator).permutation(n).tolist()
    ends = np.cumsum(sizes).tolist()
    return [Subset(dataset, order[end - size : end]) for size, end in zip(sizes, ends, strict=True)]
