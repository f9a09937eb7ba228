"""Weights with a length of their own, and weights whose largest singular value is 1, as computed parameters."""

from __future__ import annotations

from typing import Any

import numpy as np

from fad.eager.core.mode import no_grad
from fad.eager.nn import functional as F
from fad.eager.nn.module import Module
from fad.eager.nn.utils.parametrize import compute, register_parametrization, uncompute
from fad.eager.rng import generator
from fad.eager.tensor import Parameter, Tensor


def _length(v: Tensor, dim: int | None) -> Tensor:
    """Return the norm over all axes but one, or over all."""
    if dim is None:
        return (v * v).sum().sqrt()
    axes = [i for i in range(v.ndim) if i != dim % v.ndim]
    return (v * v).sum(axes, keepdim=True).sqrt() if axes else v.abs()


class _WeightNorm(Module):
    def __init__(self, dim: int | None):
        super().__init__()
        self.dim = dim

    def forward(self, weight_g: Tensor, weight_v: Tensor) -> Tensor:
        return weight_v * (weight_g / _length(weight_v, self.dim))

    def right_inverse(self, weight: Tensor) -> tuple:
        return _length(weight, self.dim), weight


def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Module:
    """Learn the length and the direction of a weight apart (T. Salimans and D. Kingma, NeurIPS 2016)."""
    return register_parametrization(module, name, _WeightNorm(dim), unsafe=True)


class _SpectralNorm(Module):
    def __init__(self, weight: Tensor, n_power_iterations: int, eps: float, dim: int, warm: int = 15):
        super().__init__()
        self.n_power_iterations, self.eps, self.dim = n_power_iterations, eps, dim
        if weight.ndim > 1:
            matrix = self._matrix(weight).detach()
            self.register_buffer("_u", _unit(matrix.shape[0], weight.dtype, eps))
            self.register_buffer("_v", _unit(matrix.shape[1], weight.dtype, eps))
            self._iterate(matrix, warm)

    def _matrix(self, weight: Tensor) -> Tensor:
        if self.dim % weight.ndim:
            weight = weight.permute(self.dim, *(i for i in range(weight.ndim) if i != self.dim % weight.ndim))
        return weight.flatten(1)

    @no_grad()
    def _iterate(self, matrix: Tensor, times: int) -> None:
        w, u, v = (x.detach().numpy() for x in (matrix, self._u, self._v))
        for _ in range(times):
            u = _normalise(w @ v, self.eps)
            v = _normalise(u @ w, self.eps)
        self._u.copy_(Tensor(u))
        self._v.copy_(Tensor(v))

    def forward(self, weight: Tensor) -> Tensor:
        if weight.ndim == 1:
            return F.normalize(weight, dim=0, eps=self.eps)
        matrix = self._matrix(weight)
        if self.training:
            self._iterate(matrix, self.n_power_iterations)
        return weight / (self._u.clone() @ (matrix @ self._v.clone()))

    def right_inverse(self, weight: Tensor) -> Tensor:
        return weight


def _unit(n: int, dtype: Any, eps: float) -> Tensor:
    return Tensor(_normalise(generator().standard_normal(n).astype(dtype), eps))


def _normalise(x: np.ndarray, eps: float) -> np.ndarray:
    return x / max(float(np.linalg.norm(x)), eps)


def spectral_norm(
    module: Module, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None
) -> Module:
    """Divide a weight by its largest singular value, found by power iterations, one in each reading while training
    (T. Miyato et al., ICLR 2018)."""
    dim = _first(module) if dim is None else dim
    return register_parametrization(module, name, _SpectralNorm(getattr(module, name), n_power_iterations, eps, dim))


def _first(module: Module) -> int:
    return 1 if "Transpose" in type(module).__name__ else 0


# --- as functions of nn.utils, by parameters beside the weight ----------------------------------------------------


class _Normed:
    """The recipe of a weight with a length of its own, of the parameters ``weight_g`` and ``weight_v``."""

    def __init__(self, name: str, dim: int | None):
        self.name, self.dim = name, dim

    def __call__(self, module: Module) -> Tensor:
        g, v = (getattr(module, f"{self.name}_{part}") for part in "gv")
        return v * (g / _length(v, self.dim))

    def assign(self, module: Module, value: Tensor) -> None:
        raise AttributeError(f"{self.name} is computed: change what it is computed from, or remove its norm first")


def weight_norm_by_name(module: Module, name: str = "weight", dim: int | None = 0) -> Module:
    """Learn the length and the direction of a weight apart, as ``weight_g`` and ``weight_v``."""
    weight = _take(module, name)
    module.register_parameter(f"{name}_g", Parameter(_length(weight.detach(), dim)))
    module.register_parameter(f"{name}_v", Parameter(weight.detach()))
    compute(module, name, _Normed(name, dim))
    return module


def remove_weight_norm(module: Module, name: str = "weight") -> Module:
    """Make the weight a parameter again."""
    value = getattr(module, name).detach().clone()
    for part in "gv":
        delattr(module, f"{name}_{part}")
    uncompute(module, name, value)
    return module


class _Spectral:
    """The recipe of a weight with largest singular value 1, of ``weight_orig`` and the buffers ``weight_u`` and
    ``weight_v``. The iterations are done once before each forward."""

    def __init__(self, name: str, dim: int, n: int, eps: float):
        self.name, self.dim, self.n, self.eps = name, dim, n, eps

    def _parts(self, module: Module) -> tuple:
        weight = getattr(module, f"{self.name}_orig")
        turned = weight.permute(self.dim, *(i for i in range(weight.ndim) if i != self.dim)) if self.dim else weight
        return weight, turned.flatten(1), *(getattr(module, f"{self.name}_{part}") for part in "uv")

    def __call__(self, module: Module) -> Tensor:
        weight, matrix, u, v = self._parts(module)
        return weight / (u.clone() @ (matrix @ v.clone()))

    def before(self, module: Module, args: tuple) -> None:
        """Bring the singular vectors nearer."""
        if not module.training:
            return
        with no_grad():
            _, matrix, u, v = self._parts(module)
            w = matrix.detach().numpy()
            for _ in range(self.n):
                v.copy_(Tensor(_normalise(u.numpy() @ w, self.eps)))
                u.copy_(Tensor(_normalise(w @ v.numpy(), self.eps)))

    def assign(self, module: Module, value: Tensor) -> None:
        raise AttributeError(f"{self.name} is computed: change what it is computed from, or remove its norm first")


def spectral_norm_by_name(
    module: Module, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None
) -> Module:
    """Divide a weight, kept as ``weight_orig``, by its largest singular value."""
    weight = _take(module, name)
    recipe = _Spectral(name, _first(module) if dim is None else dim, n_power_iterations, eps)
    module.register_parameter(f"{name}_orig", weight)
    width = weight.numel() // weight.shape[recipe.dim]
    module.register_buffer(f"{name}_u", _unit(weight.shape[recipe.dim], weight.dtype, eps))
    module.register_buffer(f"{name}_v", _unit(width, weight.dtype, eps))
    compute(module, name, recipe)
    module.register_forward_pre_hook(recipe.before)
    return module


def remove_spectral_norm(module: Module, name: str = "weight") -> Module:
    """Make the weight a parameter again, divided as it is now."""
    value = getattr(module, name).detach().clone()
    recipe = module._tables()["_computed"][name]
    hooks = module._tables()["_pre_hooks"]
    for number in [n for n, hook in hooks.items() if getattr(hook, "__self__", None) is recipe]:
        del hooks[number]
    for part in ("orig", "u", "v"):
        delattr(module, f"{name}_{part}")
    uncompute(module, name, value)
    return module


def _take(module: Module, name: str) -> Parameter:
    found = module._tables()["_parameters"].pop(name, None)
    if found is None:
        raise ValueError(f"{type(module).__name__} has no parameter {name!r}")
    return found


__all__ = ["spectral_norm", "weight_norm"]
