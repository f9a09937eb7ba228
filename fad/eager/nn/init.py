"""Initial values, written into parameters in place; the distributions are those of `fad.nn.init`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fad import random
from fad.eager.creation import generator
from fad.eager.mode import no_grad
from fad.eager.tensor import Tensor
from fad.nn import init


def _in_place(fun: Callable) -> Callable:
    @no_grad()
    def fill(tensor: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        key = random.key(int(generator().integers(2**63)))
        return tensor.copy_(Tensor(fun(key, tuple(tensor.shape), *args, dtype=tensor.dtype.name, **kwargs)))

    fill.__doc__ = f"Fill a tensor as `fad.nn.init.{fun.__name__}` does, and return it."
    return fill


uniform_ = _in_place(init.uniform)
normal_ = _in_place(init.normal)
for _name in ("xavier_uniform", "xavier_normal", "kaiming_uniform", "kaiming_normal", "orthogonal"):
    if hasattr(init, _name):
        globals()[f"{_name}_"] = _in_place(getattr(init, _name))


@no_grad()
def constant_(tensor: Tensor, val: float) -> Tensor:
    """Put one value everywhere."""
    return tensor.fill_(val)


def zeros_(tensor: Tensor) -> Tensor:
    """Put zeros everywhere."""
    return constant_(tensor, 0.0)


def ones_(tensor: Tensor) -> Tensor:
    """Put ones everywhere."""
    return constant_(tensor, 1.0)
