"""``torch.optim``: the optimisers of `fad.optim`, stepping on the ``.grad`` of tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

import fad.optim
from fad.eager.engine import turned
from fad.eager.mode import enable_grad
from fad.eager.nn.module import clear_grad
from fad.eager.records import note_change
from fad.eager.tensor import Tensor
from fad.errors import FadError


class MissingGradientError(FadError, RuntimeError):
    """A parameter that had a gradient in earlier steps has none now, so the optimiser's state would no longer fit.

    Wrong::

        opt.zero_grad(set_to_none=True)
        loss_of_half_the_model.backward()
        opt.step()

    Right::

        opt.zero_grad()
    """


class Optimizer:
    """Steps over the parameters that have a gradient; `params` is an iterable of tensors, or of groups
    ``{"params": [...], "lr": ...}``. ``param_groups`` holds the learning rates, which may be changed between steps."""

    rule: type

    def __init__(self, params: Any, lr: float | None = None, **options: Any):
        given = list(params)
        if not given:
            raise ValueError("the optimiser got an empty list of parameters")
        groups = given if isinstance(given[0], dict) else [{"params": given}]
        self.defaults = options if lr is None else {"lr": lr, **options}
        self.param_groups = [{**self.defaults, **g, "params": _tensors(g["params"])} for g in groups]
        self._cores: list = [None] * len(groups)
        self._members: list = [None] * len(groups)

    def _core(self, i: int) -> Any:
        """Return the optimiser of a group, made at its first step from the parameters that have a gradient then."""
        group = self.param_groups[i]
        if self._cores[i] is None:
            self._members[i] = [p for p in group["params"] if getattr(p, "_grad", None) is not None]
            options = {k: v for k, v in group.items() if k != "params"}
            options.setdefault("lr", 1e-3)
            self._cores[i] = self.rule([_array(p) for p in self._members[i]], **options)
        core = self._cores[i]
        if "lr" in group:
            core.lr = group["lr"]
        return core

    def step(self, closure: Any = None) -> Any:
        """Change every parameter that has a gradient, in place; with a closure, call it first and return its loss."""
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        for i, group in enumerate(self.param_groups):
            if self._cores[i] is None and all(getattr(p, "_grad", None) is None for p in group["params"]):
                continue
            core = self._core(i)
            members = self._members[i]
            late = [
                p for p in group["params"] if getattr(p, "_grad", None) is not None and all(p is not m for m in members)
            ]
            if late or any(getattr(p, "_grad", None) is None for p in members):
                raise MissingGradientError(
                    "other parameters have gradients now than in this optimiser's first step. Clear gradients with "
                    "opt.zero_grad(), which leaves zeros, and give each part that trains alone its own optimiser"
                )
            core.params[:] = [_array(p) for p in members]
            core.step([turned(p._grad.value) for p in members])
            for p in members:
                note_change(p.value)
        return loss

    def zero_grad(self, set_to_none: bool = False) -> None:
        """Set all gradients to zeros, or forget them."""
        for group in self.param_groups:
            for p in group["params"]:
                clear_grad(p, set_to_none)

    def state_dict(self) -> dict[str, Any]:
        """Return the state of the optimiser as a tree of arrays."""
        return {"groups": [None if c is None else c.state_dict() for c in self._cores]}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take over a state of :meth:`state_dict`; all parameters of a group must be trained."""
        for i, saved in enumerate(state["groups"]):
            if saved is not None:
                self._members[i] = self.param_groups[i]["params"]
                options = {k: v for k, v in self.param_groups[i].items() if k != "params"}
                self._cores[i] = self.rule([_array(p) for p in self._members[i]], **options)
                self._cores[i].load_state_dict(saved)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{k}={v}' for k, v in self.defaults.items())})"


def _tensors(params: Any) -> list:
    params = [params] if isinstance(params, Tensor) else list(params)
    for p in params:
        if not isinstance(p, Tensor) or not p.is_leaf:
            raise TypeError(
                f"an optimiser takes leaf tensors, not {type(p).__name__ if not isinstance(p, Tensor) else p.grad_fn}"
            )
    return params


def _array(p: Tensor) -> np.ndarray:
    if not isinstance(p.value, np.ndarray):
        p.value = np.asarray(p.value)
    return p.value


def _adapted(title: str) -> type:
    rule = getattr(fad.optim, title)
    return type(title, (Optimizer,), {"rule": rule, "__doc__": rule.__doc__.split("\n\n")[0]})


SGD, Adam, AdamW, Adagrad, Lion = map(_adapted, ("SGD", "Adam", "AdamW", "Adagrad", "Lion"))
RMSprop = _adapted("RMSProp")

__all__ = ["SGD", "Adagrad", "Adam", "AdamW", "Lion", "MissingGradientError", "Optimizer", "RMSprop"]
