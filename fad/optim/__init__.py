"""Optimisers, schedules, and what belongs to a training loop."""

from fad.optim import schedules
from fad.optim.gradients import EMA, clip_by_global_norm, clip_by_value, global_norm
from fad.optim.lbfgs import LBFGS
from fad.optim.optimizer import Optimizer
from fad.optim.parameters import document_optimisers
from fad.optim.rules import (
    ASGD,
    SGD,
    Adadelta,
    Adagrad,
    Adam,
    Adamax,
    AdamW,
    Lion,
    NAdam,
    RAdam,
    RMSProp,
    Rprop,
)
from fad.optim.training import History, NonFiniteLossError, check_finite, fit

__all__ = [
    "ASGD", "EMA", "LBFGS", "SGD", "Adadelta", "Adagrad", "Adam", "AdamW", "Adamax", "History", "Lion", "NAdam",
    "NonFiniteLossError", "Optimizer", "RAdam", "RMSProp", "Rprop", "check_finite", "clip_by_global_norm",
    "clip_by_value", "fit", "global_norm", "schedules",
]  # fmt: skip

document_optimisers({name: globals()[name] for name in __all__ if name != "schedules"})
