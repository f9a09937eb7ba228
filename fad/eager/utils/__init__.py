"""``torch.utils``: data sets and loaders, and checkpoints."""

from fad.eager.utils import checkpoint, data

__all__ = ["checkpoint", "data"]
