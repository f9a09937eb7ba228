"""Loaders, which give out a data set in batches. Everything happens in this process."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from fad.eager.ops.creation import as_tensor, tensor
from fad.eager.ops.shaping import stack
from fad.eager.tensor import Tensor
from fad.eager.utils.data.dataset import IterableDataset, TensorDataset
from fad.eager.utils.data.sampler import BatchSampler, RandomSampler, SequentialSampler


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

    So it is by a `generator`. A `sampler` gives the numbers of the examples in their order, a `batch_sampler` those of
    each batch; a length is asked of them only for that of the loader. With ``batch_size=None`` examples come one by
    one, as the data set has them. What is about workers and devices is taken and changes nothing.

    >>> import fad.eager as torch
    >>> [len(x) for (x,) in DataLoader(TensorDataset(torch.arange(5)), batch_size=2)]
    [2, 2, 1]
    """

    def __init__(
        self, dataset: Any, batch_size: int | None = 1, shuffle: bool | None = None, sampler: Any = None,
        batch_sampler: Any = None, num_workers: int = 0, collate_fn: Callable | None = None, pin_memory: bool = False,
        drop_last: bool = False, timeout: float = 0, worker_init_fn: Callable | None = None,
        multiprocessing_context: Any = None, generator: Any = None, *, prefetch_factor: int | None = None,
        persistent_workers: bool = False, pin_memory_device: str = "", in_order: bool = True,
    ):  # fmt: skip
        self.one_after_the_other = isinstance(dataset, IterableDataset)
        self._check(batch_size, shuffle, sampler, batch_sampler, drop_last)
        self.dataset, self.batch_size, self.drop_last, self.generator = dataset, batch_size, drop_last, generator
        self.num_workers, self.pin_memory = num_workers, pin_memory
        self.sampler, self.batch_sampler = sampler, batch_sampler
        if batch_sampler is not None:
            self.batch_size = None
        elif not self.one_after_the_other:
            if sampler is None:
                self.sampler = RandomSampler(dataset, generator=generator) if shuffle else SequentialSampler(dataset)
            if batch_size is not None:
                self.batch_sampler = BatchSampler(self.sampler, batch_size, drop_last)
        self.collate_fn = collate_fn or (default_collate if batch_size is not None else _leave)

    def _check(self, batch_size, shuffle, sampler, batch_sampler, drop_last) -> None:
        if batch_size is not None and batch_size < 1:
            raise ValueError(f"batch_size must be at least 1, or None for single examples, not {batch_size}")
        if batch_size is None and drop_last:
            raise ValueError("without batches there is no last one: leave drop_last out, or give a batch_size")
        if sampler is not None and shuffle:
            raise ValueError("a sampler says the order itself: leave shuffle out")
        if self.one_after_the_other and (shuffle or sampler is not None or batch_sampler is not None):
            raise ValueError("an IterableDataset says the order itself: leave shuffle, sampler and batch_sampler out")
        if batch_sampler is not None and (batch_size != 1 or shuffle or sampler is not None or drop_last):
            raise ValueError(
                "a batch_sampler says what is in each batch: leave batch_size, shuffle, sampler and drop_last out"
            )

    def __len__(self) -> int:
        if self.batch_sampler is not None:
            return len(self.batch_sampler)
        if self.batch_size is None:
            return len(self.dataset if self.sampler is None else self.sampler)
        n = len(self.dataset)
        return n // self.batch_size if self.drop_last else -(-n // self.batch_size)

    def __iter__(self) -> Iterator[Any]:
        if self.batch_sampler is not None:
            return map(self._give, self.batch_sampler)
        if self.one_after_the_other:
            return self._cut(iter(self.dataset))
        return (self.collate_fn(self.dataset[k]) for k in self.sampler)

    def _give(self, numbers: Iterable) -> Any:
        """Return the batch of the examples with these numbers."""
        if type(self.dataset) is TensorDataset and self.collate_fn is default_collate:
            return list(self.dataset[np.array([int(k) for k in numbers])])
        return self._collate([self.dataset[k] for k in numbers])

    def _cut(self, examples: Iterator) -> Iterator[Any]:
        """Return batches of examples that come one after the other."""
        if self.batch_size is None:
            yield from map(self.collate_fn, examples)
            return
        while batch := list(itertools.islice(examples, self.batch_size)):
            if len(batch) == self.batch_size or not self.drop_last:
                yield self._collate(batch)

    def _collate(self, examples: list) -> Any:
        batch = self.collate_fn(examples)
        return list(batch) if type(batch) is tuple and self.collate_fn is default_collate else batch


def _leave(example: Any) -> Any:
    """Return an example as a loader without batches does: arrays as tensors, all else as it is."""
    return as_tensor(example) if isinstance(example, np.ndarray) else example
