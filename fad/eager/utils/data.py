"""``torch.utils.data``: data sets, and loaders that give them out in batches. Everything happens in this process."""

from __future__ import annotations

import bisect
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from fad.eager.ops.creation import as_tensor, tensor
from fad.eager.ops.shaping import stack
from fad.eager.rng import generator as numbers
from fad.eager.tensor import Tensor
from fad.eager.unsupported import explain_missing


class Dataset:
    """What has a length and gives an example for each number: subclasses write ``__len__`` and ``__getitem__``."""

    def __getitem__(self, index: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__} does not define __getitem__(self, index)")


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


def default_collate(batch: list) -> Any:
    """Return the examples of a batch as one: tensors, arrays and numbers stacked, tuples and dictionaries by parts."""
    first = batch[0]
    if isinstance(first, Tensor):
        return stack(batch)
    if isinstance(first, (np.ndarray, np.generic)):
        return as_tensor(np.stack(batch))
    if isinstance(first, (int, float)):
        return tensor(batch, dtype=np.dtype(float) if isinstance(first, float) else None)
    if isinstance(first, dict):
        return {k: default_collate([x[k] for x in batch]) for k in first}
    if isinstance(first, (tuple, list)):
        parts = [default_collate(list(column)) for column in zip(*batch, strict=True)]
        return type(first)(*parts) if hasattr(first, "_fields") else type(first)(parts)
    return batch


class DataLoader:
    """Gives out a data set in batches; with `shuffle` in another order each time, by ``torch.manual_seed``.

    So it is by a `generator`. A `sampler` has a length and gives the numbers of the examples, in their order.

    >>> import fad.eager as torch
    >>> [len(x) for (x,) in DataLoader(TensorDataset(torch.arange(5)), batch_size=2)]
    [2, 2, 1]
    """

    def __init__(
        self, dataset: Any, batch_size: int = 1, shuffle: bool = False, *, collate_fn: Callable | None = None,
        sampler: Any = None, drop_last: bool = False, generator: Any = None, num_workers: int = 0,
        pin_memory: bool = False, persistent_workers: bool = False,
    ):  # fmt: skip
        if batch_size < 1:
            raise ValueError(f"batch_size must be at least 1, not {batch_size}")
        if sampler is not None and shuffle:
            raise ValueError("a sampler says the order itself: leave shuffle out")
        self.dataset, self.batch_size, self.shuffle, self.drop_last = dataset, batch_size, shuffle, drop_last
        self.sampler, self.generator = sampler, generator
        self.collate_fn = collate_fn or default_collate

    def __len__(self) -> int:
        n = len(self.dataset if self.sampler is None else self.sampler)
        return n // self.batch_size if self.drop_last else -(-n // self.batch_size)

    def __iter__(self) -> Iterator[Any]:
        order = self._order()
        at_once = type(self.dataset) is TensorDataset and self.collate_fn is default_collate
        for i in range(len(self)):
            chosen = order[i * self.batch_size : (i + 1) * self.batch_size]
            if at_once:
                yield list(self.dataset[chosen])
            else:
                batch = self.collate_fn([self.dataset[int(k)] for k in chosen])
                yield list(batch) if type(batch) is tuple else batch

    def _order(self) -> np.ndarray:
        n = len(self.dataset)
        if self.sampler is not None:
            return np.array([int(k) for k in self.sampler])
        return numbers(self.generator).permutation(n) if self.shuffle else np.arange(n)


__all__ = ["ConcatDataset", "DataLoader", "Dataset", "Subset", "TensorDataset", "default_collate", "random_split"]

__getattr__ = explain_missing("torch.utils.data", globals())
