"""``torch.utils``: data sets and loaders. For checkpoints there is `fad.checkpoint`."""

from fad.eager.utils import data

__all__ = ["data"]
