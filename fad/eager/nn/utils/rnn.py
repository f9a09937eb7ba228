"""``torch.nn.utils.rnn``: sequences of several lengths, padded into one tensor or packed time by time."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from fad.eager.core.composite import composite
from fad.eager.ops.shaping import stack
from fad.eager.tensor import Tensor


class PackedSequence(NamedTuple):
    """Sequences packed time by time: at each time the elements of all that are not over, the longest first.

    ``data`` (sum of lengths, ...), ``batch_sizes`` how many go on at each time, ``sorted_indices`` the order by length,
    and ``unsorted_indices`` the inverse.
    """

    data: Tensor
    batch_sizes: Tensor
    sorted_indices: Tensor | None
    unsorted_indices: Tensor | None

    def to(self, *args: Any, **options: Any) -> PackedSequence:
        return self._replace(data=self.data.to(*args, **options))


def _lengths(batch_sizes: np.ndarray) -> np.ndarray:
    """Return the lengths of the sequences, longest first."""
    return np.sum(np.arange(batch_sizes[0])[:, None] < batch_sizes, axis=1)


def pack_padded_sequence(
    input: Tensor, lengths: Any, batch_first: bool = False, enforce_sorted: bool = True
) -> PackedSequence:
    """Pack sequences (length, batch, ...), or (batch, length, ...) with `batch_first`, of which only so much counts.

    The longest must come first, unless not `enforce_sorted`.
    """
    sizes = np.asarray(lengths.detach() if isinstance(lengths, Tensor) else lengths).astype(int)
    times = input.shape[1 if batch_first else 0]
    if not sizes.size or sizes.min() < 1 or sizes.max() > times:
        raise ValueError(f"lengths must lie in 1 ... {times}, that of the padded sequences, but are {sizes.tolist()}")
    if enforce_sorted and np.any(np.diff(sizes) > 0):
        raise ValueError("the longest sequence must come first: sort them, or give enforce_sorted=False")
    order = None if enforce_sorted else np.argsort(-sizes, kind="stable")
    ordered = sizes if order is None else sizes[order]
    batch_sizes = np.sum(np.arange(ordered[0])[:, None] < ordered, axis=1)
    time = np.repeat(np.arange(len(batch_sizes)), batch_sizes)
    rank = np.concatenate([np.arange(n) for n in batch_sizes])
    member = rank if order is None else order[rank]
    data = input[member, time] if batch_first else input[time, member]
    back = None if order is None else np.argsort(order)
    return PackedSequence(data, Tensor(batch_sizes), *(None if x is None else Tensor(x) for x in (order, back)))


def pad_packed_sequence(
    sequence: PackedSequence, batch_first: bool = False, padding_value: float = 0.0, total_length: int | None = None
) -> tuple[Tensor, Tensor]:
    """Return the sequences padded to the longest, or to `total_length`, in the order of before, and their lengths."""
    batch_sizes = sequence.batch_sizes.numpy()
    n, times = int(batch_sizes[0]), len(batch_sizes)
    if total_length is not None and total_length < times:
        raise ValueError(f"total_length={total_length} is less than the longest sequence, {times}")
    starts = np.concatenate([[0], np.cumsum(batch_sizes)[:-1]])
    inside = np.arange(n) < batch_sizes[:, None]
    places = np.where(inside, starts[:, None] + np.arange(n), 0)
    more = 0 if total_length is None else total_length - times
    inside, places = (np.pad(x, ((0, more), (0, 0))) for x in (inside, places))
    lengths = _lengths(batch_sizes)
    if sequence.unsorted_indices is not None:
        back = sequence.unsorted_indices.numpy()
        inside, places, lengths = inside[:, back], places[:, back], lengths[back]
    if batch_first:
        inside, places = inside.T, places.T

    def pad(x):
        mask = inside.reshape(inside.shape + (1,) * (x.ndim - 1))
        return np.where(mask, x[places], x.dtype.type(padding_value))

    return composite("PadPackedSequenceBackward0", pad, sequence.data), Tensor(lengths)


def pad_sequence(
    sequences: Any, batch_first: bool = False, padding_value: float = 0.0, padding_side: str = "right"
) -> Tensor:
    """Return sequences (length, ...) as one tensor (longest, number, ...), shorter ones filled up with a value.

    >>> import fad.eager as torch
    >>> pad_sequence([torch.tensor([1.0, 2.0]), torch.tensor([3.0])], batch_first=True)
    tensor([[1., 2.],
            [3., 0.]])
    """
    sequences = list(sequences)
    longest = max(len(x) for x in sequences)
    rows = []
    for x in sequences:
        rest = longest - len(x)
        ends = (rest, 0) if padding_side == "left" else (0, rest)
        pairs = [ends, *[(0, 0)] * (x.ndim - 1)]
        rows.append(composite(
            "ConstantPadNdBackward0", lambda v, pairs=pairs: np.pad(v, pairs, constant_values=padding_value), x
        ))  # fmt: skip
    return stack(rows, 0 if batch_first else 1)


def unpad_sequence(padded_sequences: Tensor, lengths: Tensor, batch_first: bool = False) -> list[Tensor]:
    """Return the sequences of a padded tensor one by one, each of its length."""
    x = padded_sequences if batch_first else padded_sequences.transpose(0, 1)
    return [x[i, :n] for i, n in enumerate(lengths.tolist())]


def pack_sequence(sequences: Any, enforce_sorted: bool = True) -> PackedSequence:
    """Pack sequences (length, ...); the longest must come first, unless not `enforce_sorted`."""
    sequences = list(sequences)
    return pack_padded_sequence(pad_sequence(sequences), [len(x) for x in sequences], False, enforce_sorted)


def unpack_sequence(packed_sequences: PackedSequence) -> list[Tensor]:
    """Return the sequences of a packed one, each of its length."""
    return unpad_sequence(*pad_packed_sequence(packed_sequences))


__all__ = [
    "PackedSequence", "pack_padded_sequence", "pack_sequence", "pad_packed_sequence", "pad_sequence", "unpack_sequence",
    "unpad_sequence",
]  # fmt: skip
