"""``torch.utils``: data sets and loaders, and checkpoints."""

from fad.eager.unsupported import explain_missing
from fad.eager.utils import checkpoint, data

__all__ = ["checkpoint", "data"]

__getattr__ = explain_missing("torch.utils", globals())
