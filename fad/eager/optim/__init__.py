"""``torch.optim``: the optimisers of `fad.optim`, stepping on the ``.grad`` of tensors, and their schedules."""

from fad.eager.optim import lr_scheduler
from fad.eager.optim.optimizers import *  # noqa: F403
from fad.eager.optim.optimizers import __all__ as _optimizers
from fad.eager.unsupported import explain_missing

__all__ = [*_optimizers, "lr_scheduler"]

__getattr__ = explain_missing("torch.optim", globals())
