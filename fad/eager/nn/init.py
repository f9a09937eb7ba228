"""Initial values, written into parameters in place; the distributions are those of `fad.nn.init`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fad.eager.core.mode import no_grad
from fad.eager.rng import drawn_key
from fad.eager.tensor import Tensor
from fad.nn import init


def _in_place(fun: Callable) -> Callable:
    @no_grad()
    def fill(tensor: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        key = drawn_key()
        return tensor.copy_(Tensor(fun(key, tuple(tensor.shape), *args, dtype=tensor.dtype.name, **kwargs)))

    fill.__doc__ = f"Fill a tensor as `fad.nn.init.{fun.__name__}` does, and return it."
    return fill


uniform_, normal_, trunc_normal_ = _in_place(init.uniform), _in_place(init.normal), _in_place(init.trunc_normal)
xavier_uniform_, xavier_normal_ = _in_place(init.xavier_uniform), _in_place(init.xavier_normal)
orthogonal_ = _in_place(init.orthogonal)
calculate_gain = init.calculate_gain


def _kaiming(fun: Callable) -> Callable:
    fill = _in_place(fun)

    def with_gain(tensor: Tensor, a: float = 0.0, mode: str = "fan_in", nonlinearity: str = "leaky_relu") -> Tensor:
        return fill(tensor, init.calculate_gain(nonlinearity, a), mode)

    with_gain.__doc__ = f"Fill a tensor as `fad.nn.init.{fun.__name__}` does, for what comes after, and return it."
    return with_gain


kaiming_uniform_, kaiming_normal_ = _kaiming(init.kaiming_uniform), _kaiming(init.kaiming_normal)


@no_grad()
def eye_(tensor: Tensor) -> Tensor:
    """Make a matrix the identity."""
    return tensor.copy_(Tensor(init.eye(tuple(tensor.shape), tensor.dtype)))


@no_grad()
def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    """Make a kernel one with which a convolution is the identity."""
    return tensor.copy_(Tensor(init.dirac(tuple(tensor.shape), groups, tensor.dtype)))


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
