"""Layers in PyTorch's names for the eager API: modules that hold tensors. What they compute is `fad.nn`'s."""

from fad.eager.nn import functional, init, utils
from fad.eager.nn.attention import *  # noqa: F403
from fad.eager.nn.attention import __all__ as _attention
from fad.eager.nn.containers import ModuleDict, ModuleList, ParameterDict, ParameterList, Sequential
from fad.eager.nn.layers import *  # noqa: F403  (the layers of fad.nn, each adapted by one line)
from fad.eager.nn.layers import __all__ as _layers
from fad.eager.nn.lazy import *  # noqa: F403
from fad.eager.nn.lazy import __all__ as _lazy
from fad.eager.nn.losses import *  # noqa: F403
from fad.eager.nn.losses import __all__ as _losses
from fad.eager.nn.module import Module
from fad.eager.tensor import Parameter
from fad.eager.unsupported import explain_missing

__all__ = [
    *_attention,
    *_layers,
    *_lazy,
    *_losses,
    "Module",
    "ModuleDict",
    "ModuleList",
    "Parameter",
    "ParameterDict",
    "ParameterList",
    "Sequential",
    "functional",
    "init",
    "utils",
]

__getattr__ = explain_missing("torch.nn", globals())
