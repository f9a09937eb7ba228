"""The optimisers of `fad.optim`, stepping on the ``.grad`` of tensors."""

from __future__ import annotations

import collections
import copy
import functools
import inspect
from typing import Any

import numpy as np

import fad.optim
from fad.eager.core.engine import conjugate_gradient
from fad.eager.core.mode import enable_grad
from fad.eager.core.records import note_change
from fad.eager.nn.module import clear_grad
from fad.eager.tensor import Tensor
from fad.optim.lbfgs import as_vector
from fad.optim.wolfe import Point

_HINTS = ("foreach", "fused", "capturable", "differentiable")  # how PyTorch is to compute it


class Optimizer:
    """The base of all optimisers, for those that programs write themselves: a subclass gives `step`, which goes through
    ``param_groups`` and keeps what it likes in ``state[p]``.

    `params` is an iterable of tensors, or of groups ``{"params": [...], "lr": ...}``. ``param_groups`` holds the
    learning rates and other settings, which may be changed between steps.

    >>> import fad.eager as torch
    >>> class Descent(Optimizer):
    ...     def __init__(self, params, lr):
    ...         super().__init__(params, {"lr": lr})
    ...     @torch.no_grad()
    ...     def step(self):
    ...         for group in self.param_groups:
    ...             for p in group["params"]:
    ...                 p.sub_(p.grad, alpha=group["lr"])
    >>> x = torch.tensor([3.0], requires_grad=True)
    >>> (x * x).sum().backward()
    >>> Descent([x], lr=0.5).step()
    >>> x
    tensor([0.], requires_grad=True)
    """

    def __init__(self, params: Any, defaults: dict[str, Any]):
        given: list[Any] = [params] if isinstance(params, Tensor) else list(params)
        given = [p[1] if isinstance(p, tuple) else p for p in given]  # as named_parameters() gives them
        if not given:
            raise ValueError("the optimiser got an empty list of parameters")
        self.defaults = defaults
        self.state: Any = collections.defaultdict(dict)
        self.param_groups: list[dict[str, Any]] = []
        for group in given if isinstance(given[0], dict) else [{"params": given}]:
            self.add_param_group(group)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Step on some more parameters, with settings of their own: ``{"params": [...], "lr": ...}``."""
        group = {**self.defaults, **param_group, "params": _tensors(param_group["params"])}
        present = {id(p) for g in self.param_groups for p in g["params"]}
        if any(id(p) in present for p in group["params"]):
            raise ValueError("a parameter is in two groups of the optimiser, which would step on it twice")
        self.param_groups.append(group)

    def step(self, closure: Any = None) -> Any:
        """Change every parameter that has a gradient."""
        raise NotImplementedError(f"{type(self).__name__} does not define step")

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget all gradients, or set them to zeros: `step` leaves a parameter without one as it is."""
        for group in self.param_groups:
            for p in group["params"]:
                clear_grad(p, set_to_none)

    def state_dict(self) -> dict[str, Any]:
        """Return the state by the parameters' numbers, and the groups' settings."""
        everything = [p for g in self.param_groups for p in g["params"]]
        return {
            "state": {str(i): self.state[p] for i, p in enumerate(everything) if p in self.state},
            "param_groups": [{k: v for k, v in g.items() if k != "params"} for g in self.param_groups],
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over a state of :meth:`state_dict`."""
        if len(state_dict["param_groups"]) != len(self.param_groups):
            raise ValueError(
                f"this state has {len(state_dict['param_groups'])} groups, the optimiser {len(self.param_groups)}"
            )
        everything = [p for g in self.param_groups for p in g["params"]]
        self.state = collections.defaultdict(dict)
        self.state.update({everything[int(i)]: copy.deepcopy(s) for i, s in state_dict["state"].items()})
        for group, saved in zip(self.param_groups, state_dict["param_groups"], strict=True):
            group.update({k: v for k, v in saved.items() if k != "params"})

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{k}={v}' for k, v in self.defaults.items())})"


class Ruled(Optimizer):
    """An optimiser of `fad.optim` that steps on the gradients of tensors."""

    rule: type

    def __init__(self, params: Any, *settings: Any, **options: Any):
        for hint in _HINTS:
            options.pop(hint, None)
        usual = _usual(self.rule)
        unknown = [name for name in options if name not in usual]
        if unknown or len(settings) > len(usual):
            raise TypeError(f"{type(self).__name__} has no setting {unknown}: its settings are {', '.join(usual)}")
        # for each group, optimisers of fad.optim with the numbers of the parameters that they step on
        self._cores: list[list[tuple[Any, list[int]]]] = []
        super().__init__(params, {**usual, **dict(zip(usual, settings, strict=False)), **options})
        for i in range(len(self.param_groups)):
            self._make(i, [])  # so that a wrong setting is an error here and not in the first step

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        super().add_param_group(param_group)
        self._cores.append([])

    def _make(self, i: int, members: list[int]) -> Any:
        """Return an optimiser of `fad.optim` for some parameters of a group."""
        group = self.param_groups[i]
        return self.rule([_array(group["params"][k]) for k in members], **self._settings(group))

    def _settings(self, group: dict[str, Any]) -> dict[str, Any]:
        """Return what a group says of its optimiser, without what schedulers and programs note there."""
        return {k: group[k] for k in _usual(self.rule)}

    def _agreeing(self, i: int, ready: list[int]) -> list[tuple[Any, list[int]]]:
        """Return the optimisers of a group for the parameters that have a gradient now.

        All that had one in the first step go together, which is quickest. One that comes later starts then, and where
        only some of those that go together have a gradient, each goes on alone. So each counts its own steps.
        """
        cores: list[tuple[Any, list[int]]] = []
        for core, members in self._cores[i]:
            if len(members) > 1 and 0 < sum(k in ready for k in members) < len(members):
                cores += [(part, [k]) for part, k in zip(core.split(), members, strict=True)]
            else:
                cores.append((core, members))
        late = [k for k in ready if not any(k in members for _, members in cores)]
        if late:
            cores.append((self._make(i, late), late))
        self._cores[i] = cores
        return [(core, members) for core, members in cores if members[0] in ready]

    def step(self, closure: Any = None) -> Any:
        """Change every parameter that has a gradient, in place; with a closure, call it first and return its loss."""
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        for i, group in enumerate(self.param_groups):
            params = group["params"]
            ready = [k for k, p in enumerate(params) if getattr(p, "_grad", None) is not None]
            settings = self._settings(group)
            for core, members in self._agreeing(i, ready):
                moved = [params[k] for k in members]
                core.__dict__.update(settings)
                core.reads_parameters = core.reads_parameters or bool(core.weight_decay)
                core.params[:] = [_array(p) for p in moved]
                core.step([conjugate_gradient(p._grad.value) for p in moved])
                for p in moved:
                    note_change(p.value)
        return loss

    def state_dict(self) -> dict[str, Any]:
        """Return the state of the optimiser as a tree of arrays, with the groups' settings."""
        return {
            "param_groups": [{k: v for k, v in g.items() if k != "params"} for g in self.param_groups],
            "groups": [
                [{"members": np.array(members), "state": core.state_dict()} for core, members in cores]
                for cores in self._cores
            ],
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take over a state of :meth:`state_dict`; raises ValueError, and changes nothing, if it does not fit."""
        if len(state["groups"]) != len(self.param_groups):
            raise ValueError(f"this state has {len(state['groups'])} groups, the optimiser {len(self.param_groups)}")
        found: list[list[tuple[Any, list[int]]]] = []
        for i, saved in enumerate(state["groups"]):
            found.append([])
            for part in saved:
                members = [int(k) for k in part["members"]]
                if max(members) >= len(self.param_groups[i]["params"]):
                    raise ValueError("this optimiser state belongs to a model with more parameters")
                core = self._make(i, members)
                core.load_state_dict(part["state"])
                found[i].append((core, members))
        self._cores = found
        for group, saved in zip(self.param_groups, state.get("param_groups", self.param_groups), strict=True):
            group.update({k: v for k, v in saved.items() if k != "params"})


@functools.cache
def _usual(rule: type) -> dict[str, Any]:
    """Return the settings of an optimiser that nobody chose."""
    return {n: p.default for n, p in inspect.signature(rule).parameters.items() if n != "params"}


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


def _adapt(title: str, of: str = "") -> type:
    rule = getattr(fad.optim, of or title)
    return type(title, (Ruled,), {"rule": rule, "__doc__": rule.__doc__.split("\n\n")[0]})


SGD, Adam, AdamW, Adagrad, Lion = map(_adapt, ("SGD", "Adam", "AdamW", "Adagrad", "Lion"))
Adadelta, Adamax, ASGD, NAdam, RAdam, Rprop = map(_adapt, ("Adadelta", "Adamax", "ASGD", "NAdam", "RAdam", "Rprop"))
RMSprop = _adapt("RMSprop", of="RMSProp")


class LBFGS(Ruled):
    """L-BFGS: ``step(closure)`` takes up to `max_iter` steps of length `lr`, the first shortened; or, with
    ``line_search_fn="strong_wolfe"``, steps along whose direction the loss is low and flat enough.

    The closure clears the gradients, computes the loss, calls ``backward()`` and returns the loss.
    """

    rule = fad.optim.LBFGS

    def __init__(
        self, params: Any, lr: float = 1.0, max_iter: int = 20, max_eval: int | None = None,
        tolerance_grad: float = 1e-7, tolerance_change: float = 1e-9, history_size: int = 100,
        line_search_fn: str | None = None,
    ):  # fmt: skip
        super().__init__(params, lr=lr, history_size=history_size)
        if len(self.param_groups) != 1:
            raise ValueError("L-BFGS works on all parameters together, so there is one group of them")
        if line_search_fn not in (None, "strong_wolfe"):
            raise ValueError(f"line_search_fn must be None or 'strong_wolfe', not {line_search_fn!r}")
        self.max_iter = max_iter
        self.max_eval = max_iter * 5 // 4 if max_eval is None else max_eval
        self.tolerance_grad, self.tolerance_change = tolerance_grad, tolerance_change
        self.line_search_fn = line_search_fn
        everything = list(range(len(self.param_groups[0]["params"])))
        self._cores = [[(self._make(0, everything), everything)]]

    def _gradient(self) -> np.ndarray:
        params = self.param_groups[0]["params"]
        return as_vector(
            [np.zeros_like(p.value) if p.grad is None else conjugate_gradient(p.grad.value) for p in params]
        )

    def step(self, closure: Any = None) -> Any:
        """Go on until the gradient or the change is small, or `max_iter` is reached; return the first loss."""
        if closure is None:
            raise TypeError("L-BFGS evaluates the loss several times: step(closure)")
        core, params = self._cores[0][0][0], self.param_groups[0]["params"]
        core.lr = self.param_groups[0]["lr"]
        core.params[:] = [_array(p) for p in params]
        with enable_grad():
            first = closure()
        loss, g, evaluations = float(first), self._gradient(), 1

        def evaluate() -> tuple[float, np.ndarray]:
            nonlocal evaluations
            evaluations += 1
            for p in params:
                note_change(p.value)
            with enable_grad():
                return float(closure()), self._gradient()

        for n in range(1, self.max_iter + 1):
            if np.max(np.abs(g)) <= self.tolerance_grad:
                break
            d, length, slope = core.aim(g)
            if slope > -self.tolerance_change:
                break
            before = loss
            if self.line_search_fn:
                start, most = Point(0.0, loss, slope, g), self.max_eval - evaluations
                found = core.search(evaluate, start, length, d, tolerance=self.tolerance_change, most=most)
                loss, g = found.value, found.gradient
            else:
                core.go(length, d)
                if n < self.max_iter:  # where it goes on
                    loss, g = evaluate()
            small = np.max(np.abs(core.last_step)) <= self.tolerance_change
            if evaluations >= self.max_eval or small or abs(loss - before) < self.tolerance_change:
                break
        for p in params:
            note_change(p.value)
        return first


__all__ = [
    "ASGD", "LBFGS", "SGD", "Adadelta", "Adagrad", "Adam", "AdamW", "Adamax", "Lion", "NAdam", "Optimizer", "RAdam",
    "RMSprop", "Rprop",
]  # fmt: skip
