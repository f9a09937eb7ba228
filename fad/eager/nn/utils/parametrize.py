"""Parameters that are computed from others: ``register_parametrization(layer, "weight", Symmetric())``.

What is learnt then is ``layer.parametrizations.weight.original``, and reading ``layer.weight`` computes it again.
"""

from __future__ import annotations

from typing import Any

from fad.eager.core.mode import no_grad
from fad.eager.nn.containers import ModuleDict, ModuleList
from fad.eager.nn.module import Module
from fad.eager.tensor import Parameter, Tensor
from fad.errors import ShapeMismatchError


class ParametrizationList(ModuleList):
    """The modules that compute a parameter, one after another, from ``original``, or from ``original0``,
    ``original1`` and so on."""

    count = 0  # of several originals; 0 if there is the one

    def forward(self) -> Tensor:  # type: ignore[override]
        """Return the parameter."""
        x = self[0](*(getattr(self, f"original{i}") for i in range(self.count))) if self.count else self.original
        for module in self._items()[bool(self.count) :]:
            x = module(x)
        return x

    @no_grad()
    def take_in(self, value: Tensor) -> None:
        """Set the originals so that the parameter has this value, where the modules have a ``right_inverse``."""
        for module in reversed(self._items()):
            if hasattr(module, "right_inverse"):
                value = module.right_inverse(value)
        values = value if isinstance(value, tuple) else (value,)
        self.__dict__["count"] = len(values) if isinstance(value, tuple) else 0
        names = [f"original{i}" for i in range(len(values))] if self.count else ["original"]
        for name, x in zip(names, values, strict=True):
            if name in self._tables()["_parameters"]:
                getattr(self, name).copy_(x)
            else:
                self.register_parameter(name, Parameter(x.detach().clone()))


class Computed:
    """The recipe of a parameter that is computed by a `ParametrizationList`."""

    def __init__(self, name: str):
        self.name = name

    def __call__(self, module: Module) -> Tensor:
        return module.parametrizations[self.name]()

    def assign(self, module: Module, value: Tensor) -> None:
        module.parametrizations[self.name].take_in(value)


def register_parametrization(
    module: Module, tensor_name: str, parametrization: Module, *, unsafe: bool = False
) -> Module:
    """Let a parameter of a module be computed by another module, and return the first.

    `parametrization` maps a tensor to one of the same shape (or, if `unsafe`, to any). If it has a ``right_inverse``,
    what is learnt starts there, so that the parameter keeps its value; that may return a tuple, of which the
    parameter is then computed. Several are applied in the order of their registration.
    """
    if is_parametrized(module, tensor_name):
        several = module.parametrizations[tensor_name]
        old = several().detach()
        several.append(parametrization)
        several.take_in(parametrization.right_inverse(old) if hasattr(parametrization, "right_inverse") else old)
        return module
    old = module._tables()["_parameters"].get(tensor_name)
    if old is None:
        raise ValueError(f"{type(module).__name__} has no parameter {tensor_name!r} that could be parametrised")
    several = ParametrizationList([parametrization])
    several.train(module.training)
    several.take_in(old.detach())
    if not several.count:  # the same object goes on to be learnt, so that an optimiser made before knows it
        old.data = several.original.detach()
        several._tables()["_parameters"]["original"] = old
    new = several()
    if not unsafe and (new.shape != old.shape or new.dtype != old.dtype):
        raise ShapeMismatchError(
            f"the parametrization makes a tensor of shape {tuple(new.shape)} and dtype {new.dtype} of one of "
            f"{tuple(old.shape)} and {old.dtype}: give unsafe=True if that is meant"
        )
    del module._tables()["_parameters"][tensor_name]
    if "parametrizations" not in module._tables()["_modules"]:
        module.add_module("parametrizations", ModuleDict())
    module.parametrizations[tensor_name] = several
    compute(module, tensor_name, Computed(tensor_name))
    return module


def is_parametrized(module: Module, tensor_name: str | None = None) -> bool:
    """Return whether a module has a parameter that is computed, or whether this one is."""
    found = module._tables()["_modules"].get("parametrizations")
    return found is not None and (tensor_name in found if tensor_name is not None else len(found) > 0)


def remove_parametrizations(module: Module, tensor_name: str, leave_parametrized: bool = True) -> Module:
    """Make a computed parameter one to be learnt again: with its present value, or its original's."""
    if not is_parametrized(module, tensor_name):
        raise ValueError(f"{type(module).__name__} has no parametrization of {tensor_name!r}")
    several = module.parametrizations[tensor_name]
    if not leave_parametrized and several.count:
        raise ValueError("this parameter is computed from several originals: leave_parametrized=True")
    value = several() if leave_parametrized else several.original
    module.parametrizations.pop(tensor_name)
    if not len(module.parametrizations):
        del module.parametrizations
    uncompute(module, tensor_name, value.detach().clone())
    return module


def compute(module: Module, name: str, recipe: Any) -> None:
    """Let reading an attribute call ``recipe(module)``."""
    module._tables().setdefault("_computed", {})[name] = recipe


def uncompute(module: Module, name: str, value: Tensor) -> None:
    """Put a parameter in the place of a recipe."""
    del module._tables()["_computed"][name]
    module.register_parameter(name, Parameter(value))


__all__ = [
    "ParametrizationList", "is_parametrized", "register_parametrization", "remove_parametrizations",
]  # fmt: skip
