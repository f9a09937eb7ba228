"""``torch.optim``: the optimisers of `fad.optim`, stepping on the ``.grad`` of tensors, and their schedules."""

from fad.eager.optim import lr_scheduler
from fad.eager.optim.optimizers import LBFGS, SGD, Adagrad, Adam, AdamW, Lion, Optimizer, RMSprop

__all__ = ["LBFGS", "SGD", "Adagrad", "Adam", "AdamW", "Lion", "Optimizer", "RMSprop", "lr_scheduler"]
