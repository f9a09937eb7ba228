"""Samplers, which say in what order a loader takes the examples of a data set, and how often."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from fad.eager.rng import generator as numbers


class Sampler:
    """What gives the numbers of examples in their order: subclasses write ``__iter__``, and ``__len__`` if they end."""

    def __init__(self, data_source: Any = None):
        pass

    def __iter__(self) -> Iterator[Any]:
        raise NotImplementedError(f"{type(self).__name__} does not define __iter__(self)")


class SequentialSampler(Sampler):
    """Every example, in the order of the data set."""

    def __init__(self, data_source: Any):
        self.data_source = data_source

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


class RandomSampler(Sampler):
    """Examples in random order: all of them once, or `num_samples`, each time from all with `replacement`.

    Without replacement more than there are begin again, in another order. With it they are drawn while they are taken,
    so their number may be as large as one likes.

    >>> sorted(RandomSampler(range(3)))
    [0, 1, 2]
    >>> len(RandomSampler(range(3), replacement=True, num_samples=10**10))
    10000000000
    """

    def __init__(
        self, data_source: Any, replacement: bool = False, num_samples: int | None = None, generator: Any = None
    ):
        if num_samples is not None and num_samples < 0:
            raise ValueError(f"num_samples must be 0 or more, or None for as many as there are, not {num_samples}")
        self.data_source, self.replacement, self._num_samples = data_source, replacement, num_samples
        self.generator = generator

    @property
    def num_samples(self) -> int:
        """How many are drawn."""
        return len(self.data_source) if self._num_samples is None else int(self._num_samples)

    def __iter__(self) -> Iterator[int]:
        n, draw = len(self.data_source), numbers(self.generator)
        if n == 0 and self.num_samples:
            raise ValueError("there is no example to draw: the data set is empty")
        order = (lambda: draw.integers(n, size=_AT_ONCE)) if self.replacement else (lambda: draw.permutation(n))
        rounds = itertools.chain.from_iterable(order().tolist() for _ in itertools.count())
        return itertools.islice(rounds, self.num_samples)

    def __len__(self) -> int:
        return self.num_samples


_AT_ONCE = 64  # numbers that are drawn at once with replacement


class SubsetRandomSampler(Sampler):
    """Those examples whose numbers are given, in random order."""

    def __init__(self, indices: Any, generator: Any = None):
        self.indices, self.generator = indices, generator

    def __iter__(self) -> Iterator[Any]:
        return (self.indices[k] for k in numbers(self.generator).permutation(len(self.indices)))

    def __len__(self) -> int:
        return len(self.indices)


class WeightedRandomSampler(Sampler):
    """Examples drawn in proportion to weights, which need not add up to one: by default with replacement.

    >>> list(WeightedRandomSampler([0.0, 2.0, 0.0], 4))
    [1, 1, 1, 1]
    """

    def __init__(self, weights: Any, num_samples: int, replacement: bool = True, generator: Any = None):
        self.weights = np.asarray(weights, dtype=np.float64)
        self.num_samples, self.replacement, self.generator = num_samples, replacement, generator
        if self.weights.ndim != 1 or not np.isfinite(self.weights).all() or (self.weights < 0).any():
            raise ValueError("weights must be one vector of finite numbers, none of them negative")
        if isinstance(num_samples, bool) or not isinstance(num_samples, int) or num_samples < 1:
            raise ValueError(f"num_samples must be an integer, 1 or more, not {num_samples!r}")
        there = np.count_nonzero(self.weights)
        if there == 0 or (not replacement and there < num_samples):
            raise ValueError(f"{num_samples} examples cannot be drawn from {there} of positive weight")

    def __iter__(self) -> Iterator[int]:
        p = self.weights / self.weights.sum()
        return iter(numbers(self.generator).choice(len(p), self.num_samples, self.replacement, p).tolist())

    def __len__(self) -> int:
        return self.num_samples


class BatchSampler(Sampler):
    """What a sampler gives, in lists of `batch_size`; with `drop_last` without a shorter one at the end.

    >>> list(BatchSampler(range(5), 2, drop_last=False))
    [[0, 1], [2, 3], [4]]
    """

    def __init__(self, sampler: Iterable, batch_size: int, drop_last: bool):
        if isinstance(batch_size, bool) or not isinstance(batch_size, int) or batch_size < 1:
            raise ValueError(f"batch_size must be an integer, 1 or more, not {batch_size!r}")
        self.sampler, self.batch_size, self.drop_last = sampler, batch_size, drop_last

    def __iter__(self) -> Iterator[list]:
        order = iter(self.sampler)
        while batch := list(itertools.islice(order, self.batch_size)):
            if len(batch) == self.batch_size or not self.drop_last:
                yield batch

    def __len__(self) -> int:
        n = len(self.sampler)  # type: ignore[arg-type]
        return n // self.batch_size if self.drop_last else -(-n // self.batch_size)
