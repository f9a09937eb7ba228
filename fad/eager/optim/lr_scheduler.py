"""``torch.optim.lr_scheduler``: learning rates that change as training goes on, by the schedules of `fad.optim`.

A scheduler sets the rates of its optimiser's groups when it is made, and again with each ``step()``.
"""

from __future__ import annotations

import bisect
import math
from typing import Any

from fad.eager.unsupported import explain_missing
from fad.optim import schedules


class LRScheduler:
    """Sets each group's rate to ``rate(its first rate, number of steps done)``; subclasses give `rate`.

    A rate that something else changed meanwhile, a program or another scheduler, is changed on from there where the
    class says `chained`: by the factor by which `rate` changes, measured from `eta_min`.
    """

    chained = False
    eta_min = 0.0

    def __init__(self, optimizer: Any, last_epoch: int = -1):
        if not hasattr(optimizer, "param_groups"):
            raise TypeError(f"a scheduler is made for an optimiser, not for a {type(optimizer).__name__}")
        self.optimizer = optimizer
        for group in optimizer.param_groups:
            group.setdefault("initial_lr", group["lr"])
        self.base_lrs = [group["initial_lr"] for group in optimizer.param_groups]
        self._own = list(self.base_lrs)  # the rates by the rule, which others may have changed
        self.last_epoch = last_epoch
        self._step_count = 0
        self.step()

    def rate(self, start: float, done: int) -> float:
        """Return the rate of a group that began with `start`, after so many steps."""
        raise NotImplementedError(f"{type(self).__name__} does not define rate")

    def get_lr(self) -> list[float]:
        """Return the rates of the groups for the number of steps done."""
        return [self.rate(start, self.last_epoch) for start in self.base_lrs]

    def get_last_lr(self) -> list[float]:
        """Return the rates that were set last."""
        return [group["lr"] for group in self.optimizer.param_groups]

    def step(self, epoch: int | None = None) -> None:
        """Go on by one step, or to the step named, and set the rates."""
        self.last_epoch = self.last_epoch + 1 if epoch is None else int(epoch)
        self._step_count += 1
        own = [float(lr) for lr in self.get_lr()]
        for i, (group, lr) in enumerate(zip(self.optimizer.param_groups, own, strict=True)):
            before, low = self._own[i], self.eta_min
            if self.chained and epoch is None and group["lr"] != before != low:
                lr = low + (group["lr"] - low) * (lr - low) / (before - low)
            group["lr"] = lr
        self._own = own

    def state_dict(self) -> dict[str, Any]:
        """Return what is needed to go on: everything but the optimiser and functions."""
        return {k: v for k, v in self.__dict__.items() if k != "optimizer" and not _holds_functions(v)}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over a state of :meth:`state_dict`; the rates are in the optimiser's groups."""
        self.__dict__.update(state_dict)


def _holds_functions(x: Any) -> bool:
    return callable(x) or (isinstance(x, (list, tuple)) and any(map(_holds_functions, x)))


class LambdaLR(LRScheduler):
    """The first rate times ``lr_lambda(steps done)``; one function for all groups, or one for each."""

    def __init__(self, optimizer: Any, lr_lambda: Any, last_epoch: int = -1):
        n = len(optimizer.param_groups)
        self.lr_lambdas = list(lr_lambda) if isinstance(lr_lambda, (list, tuple)) else [lr_lambda] * n
        if len(self.lr_lambdas) != n:
            raise ValueError(f"the optimiser has {n} groups, and there are {len(self.lr_lambdas)} functions")
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        return [start * f(self.last_epoch) for start, f in zip(self.base_lrs, self.lr_lambdas, strict=True)]


class StepLR(LRScheduler):
    """The rate is multiplied by `gamma` after each `step_size` steps."""

    chained = True

    def __init__(self, optimizer: Any, step_size: int, gamma: float = 0.1, last_epoch: int = -1):
        self.step_size, self.gamma = step_size, gamma
        super().__init__(optimizer, last_epoch)

    def rate(self, start: float, done: int) -> float:
        return schedules.step_decay(start, self.gamma, self.step_size)(done)


class MultiStepLR(LRScheduler):
    """The rate is multiplied by `gamma` at each of the milestones."""

    chained = True

    def __init__(self, optimizer: Any, milestones: Any, gamma: float = 0.1, last_epoch: int = -1):
        self.milestones, self.gamma = sorted(milestones), gamma
        super().__init__(optimizer, last_epoch)

    def rate(self, start: float, done: int) -> float:
        return start * self.gamma ** bisect.bisect_right(self.milestones, done)


class ExponentialLR(LRScheduler):
    """The rate is multiplied by `gamma` after each step."""

    chained = True

    def __init__(self, optimizer: Any, gamma: float, last_epoch: int = -1):
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def rate(self, start: float, done: int) -> float:
        return schedules.exponential(start, self.gamma)(done)


class ConstantLR(LRScheduler):
    """The rate times `factor` for the first `total_iters` steps, then the rate itself."""

    chained = True

    def __init__(self, optimizer: Any, factor: float = 1.0 / 3, total_iters: int = 5, last_epoch: int = -1):
        self.factor, self.total_iters = factor, total_iters
        super().__init__(optimizer, last_epoch)

    def rate(self, start: float, done: int) -> float:
        return start * (self.factor if done < self.total_iters else 1.0)


class LinearLR(LRScheduler):
    """The rate times a factor that goes from one number to another in a straight line over `total_iters` steps."""

    chained = True

    def __init__(
        self, optimizer: Any, start_factor: float = 1.0 / 3, end_factor: float = 1.0, total_iters: int = 5,
        last_epoch: int = -1,
    ):  # fmt: skip
        self.start_factor, self.end_factor, self.total_iters = start_factor, end_factor, total_iters
        super().__init__(optimizer, last_epoch)

    def rate(self, start: float, done: int) -> float:
        return start * schedules.linear(self.start_factor, self.end_factor, self.total_iters)(done)


class CosineAnnealingLR(LRScheduler):
    """The rate falls to `eta_min` along half a cosine in `T_max` steps, and rises again in as many."""

    chained = True

    def __init__(self, optimizer: Any, T_max: int, eta_min: float = 0.0, last_epoch: int = -1):
        self.T_max, self.eta_min = T_max, eta_min
        super().__init__(optimizer, last_epoch)

    def rate(self, start: float, done: int) -> float:
        return self.eta_min + (start - self.eta_min) * (1.0 + math.cos(math.pi * done / self.T_max)) / 2.0


class CosineAnnealingWarmRestarts(LRScheduler):
    """Half a cosine again and again, each `T_mult` times as long as the one before, the first of `T_0` steps."""

    def __init__(self, optimizer: Any, T_0: int, T_mult: int = 1, eta_min: float = 0.0, last_epoch: int = -1):
        self.T_0, self.T_mult, self.eta_min = T_0, T_mult, eta_min
        super().__init__(optimizer, last_epoch)

    def rate(self, start: float, done: int) -> float:
        length = self.T_0
        while done >= length:
            done, length = done - length, length * self.T_mult
        return schedules.cosine(start, length, self.eta_min)(done)


class OneCycleLR(LRScheduler):
    """A rise to `max_lr` and a fall far below, in `total_steps` (or `epochs` times `steps_per_epoch`) steps, both along
    half a cosine or a straight line; the momentum goes the other way, unless not `cycle_momentum`."""

    def __init__(
        self, optimizer: Any, max_lr: Any, total_steps: int | None = None, epochs: int | None = None,
        steps_per_epoch: int | None = None, pct_start: float = 0.3, anneal_strategy: str = "cos",
        cycle_momentum: bool = True, base_momentum: float = 0.85, max_momentum: float = 0.95,
        div_factor: float = 25.0, final_div_factor: float = 1e4, last_epoch: int = -1,
    ):  # fmt: skip
        if total_steps is None and (epochs is None or steps_per_epoch is None):
            raise ValueError("give total_steps, or epochs and steps_per_epoch")
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"anneal_strategy must be 'cos' or 'linear', not {anneal_strategy!r}")
        self.total_steps = (epochs or 0) * (steps_per_epoch or 0) if total_steps is None else total_steps
        self.top, self.linear = pct_start * self.total_steps - 1.0, anneal_strategy == "linear"
        self.factors = 1.0 / div_factor, 1.0 / div_factor / final_div_factor
        self.momenta = (max_momentum, base_momentum) if cycle_momentum else None
        peaks = max_lr if isinstance(max_lr, (list, tuple)) else [max_lr] * len(optimizer.param_groups)
        for group, peak in zip(optimizer.param_groups, peaks, strict=True):
            group["initial_lr"] = peak
        _check_momentum(optimizer, cycle_momentum)
        super().__init__(optimizer, last_epoch)

    def _between(self, low: float, high: float, lowest: float, done: int) -> float:
        if done > self.total_steps:
            raise ValueError(f"this schedule is over after {self.total_steps} steps, and step {done} was requested")
        if done <= self.top:
            start, end, part = low, high, done / self.top
        else:  # the step after the last goes on beyond the end, as in PyTorch: a loop steps after each batch
            start, end, part = high, lowest, (done - self.top) / (self.total_steps - 1 - self.top)
        return start + (end - start) * (part if self.linear else (1.0 - math.cos(math.pi * part)) / 2.0)

    def rate(self, start: float, done: int) -> float:
        low, lowest = (factor * start for factor in self.factors)
        return self._between(low, start, lowest, done)

    def step(self, epoch: int | None = None) -> None:
        super().step(epoch)
        if self.momenta is not None:
            high, low = self.momenta
            _set_momentum(self.optimizer, self._between(high, low, high, self.last_epoch))


class MultiplicativeLR(LambdaLR):
    """The rate times ``lr_lambda(steps done)`` in each step; one function for all groups, or one for each."""

    def get_lr(self) -> list[float]:
        if self.last_epoch <= 0:
            return self.get_last_lr()
        return [lr * f(self.last_epoch) for lr, f in zip(self.get_last_lr(), self.lr_lambdas, strict=True)]


class PolynomialLR(LRScheduler):
    """The rate falls to zero in `total_iters` steps, as a power of how many of them are left."""

    chained = True

    def __init__(self, optimizer: Any, total_iters: int = 5, power: float = 1.0, last_epoch: int = -1):
        self.total_iters, self.power = total_iters, power
        super().__init__(optimizer, last_epoch)

    def rate(self, start: float, done: int) -> float:
        return start * (1.0 - min(done, self.total_iters) / self.total_iters) ** self.power


class CyclicLR(LRScheduler):
    """Straight lines up from `base_lr` to `max_lr` and down again (L. Smith, WACV 2017).

    The momentum goes the other way, unless not `cycle_momentum`. `mode` "triangular2" halves the height with each
    cycle, "exp_range" multiplies it by `gamma` with each step, and ``scale_fn(cycle)`` (or of the step, with
    ``scale_mode="iterations"``) is any factor.
    """

    def __init__(
        self, optimizer: Any, base_lr: Any, max_lr: Any, step_size_up: int = 2000, step_size_down: int | None = None,
        mode: str = "triangular", gamma: float = 1.0, scale_fn: Any = None, scale_mode: str = "cycle",
        cycle_momentum: bool = True, base_momentum: float = 0.8, max_momentum: float = 0.9, last_epoch: int = -1,
    ):  # fmt: skip
        if mode not in ("triangular", "triangular2", "exp_range") and scale_fn is None:
            raise ValueError(f"mode must be 'triangular', 'triangular2' or 'exp_range', not {mode!r}")
        self.up = float(step_size_up)
        self.length = self.up + (self.up if step_size_down is None else float(step_size_down))
        self.mode, self.gamma, self.scale_fn, self.scale_mode = mode, gamma, scale_fn, scale_mode
        self.momenta = (base_momentum, max_momentum) if cycle_momentum else None
        n = len(optimizer.param_groups)
        lows, self.max_lrs = (x if isinstance(x, (list, tuple)) else [x] * n for x in (base_lr, max_lr))
        for group, low in zip(optimizer.param_groups, lows, strict=True):
            group["initial_lr"] = low
        _check_momentum(optimizer, cycle_momentum)
        super().__init__(optimizer, last_epoch)

    def _height(self, done: int) -> float:
        """Return where between low and high a step lies, from 0 to 1."""
        cycle = math.floor(1 + done / self.length)
        x = done - (cycle - 1) * self.length
        height = x / self.up if x <= self.up else (self.length - x) / (self.length - self.up)
        if self.scale_fn is not None:
            return height * self.scale_fn(cycle if self.scale_mode == "cycle" else done)
        return height * {"triangular": 1.0, "triangular2": 0.5 ** (cycle - 1), "exp_range": self.gamma**done}[self.mode]

    def get_lr(self) -> list[float]:
        height = self._height(self.last_epoch)
        if self.momenta is not None:
            low, high = self.momenta
            _set_momentum(self.optimizer, high - (high - low) * height)
        return [low + (high - low) * height for low, high in zip(self.base_lrs, self.max_lrs, strict=True)]


def _check_momentum(optimizer: Any, wanted: bool) -> None:
    for group in optimizer.param_groups if wanted else ():
        if "betas" not in group and not group.get("momentum"):
            raise ValueError("this optimiser has no momentum that could go up and down: give cycle_momentum=False")


def _set_momentum(optimizer: Any, momentum: float) -> None:
    for group in optimizer.param_groups:
        if "betas" in group:
            group["betas"] = (momentum, group["betas"][1])
        else:
            group["momentum"] = momentum


class ChainedScheduler(LRScheduler):
    """Several schedulers of one optimiser, each of which steps on the rates that the one before it left."""

    def __init__(self, schedulers: Any, optimizer: Any = None):
        self.schedulers = list(schedulers)
        if not self.schedulers:
            raise ValueError("a ChainedScheduler needs at least one scheduler")
        self.optimizer = self.schedulers[0].optimizer if optimizer is None else optimizer
        if any(s.optimizer is not self.optimizer for s in self.schedulers):
            raise ValueError("the schedulers of a ChainedScheduler belong to one optimiser")
        self.last_epoch = self.schedulers[-1].last_epoch

    def step(self, epoch: int | None = None) -> None:
        for scheduler in self.schedulers:
            scheduler.step(epoch)
        self.last_epoch = self.schedulers[-1].last_epoch

    def state_dict(self) -> dict[str, Any]:
        return {"last_epoch": self.last_epoch, "schedulers": [s.state_dict() for s in self.schedulers]}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.last_epoch = state_dict["last_epoch"]
        for scheduler, state in zip(self.schedulers, state_dict["schedulers"], strict=True):
            scheduler.load_state_dict(state)


class SequentialLR(LRScheduler):
    """Schedulers one after another: each starts again at its milestone."""

    def __init__(self, optimizer: Any, schedulers: list, milestones: list, last_epoch: int = -1):
        if len(schedulers) != len(milestones) + 1:
            raise ValueError("n schedulers need n - 1 milestones")
        self.schedulers, self.milestones = list(schedulers), list(milestones)
        super().__init__(optimizer, last_epoch)

    def step(self, epoch: int | None = None) -> None:
        self.last_epoch = self.last_epoch + 1 if epoch is None else int(epoch)
        i = bisect.bisect_right(self.milestones, self.last_epoch)
        done = self.last_epoch - (self.milestones[i - 1] if i else 0)
        self.schedulers[i].step(done if epoch is not None or not done else None)  # on from a rate changed by hand

    def state_dict(self) -> dict[str, Any]:
        inner = [s.state_dict() for s in self.schedulers]
        return {"last_epoch": self.last_epoch, "milestones": self.milestones, "schedulers": inner}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.last_epoch, self.milestones = state_dict["last_epoch"], state_dict["milestones"]
        for scheduler, state in zip(self.schedulers, state_dict["schedulers"], strict=True):
            scheduler.load_state_dict(state)


class ReduceLROnPlateau(LRScheduler):
    """The rate is multiplied by `factor` when what ``step`` is given did not get better for `patience` steps."""

    def __init__(
        self, optimizer: Any, mode: str = "min", factor: float = 0.1, patience: int = 10, threshold: float = 1e-4,
        threshold_mode: str = "rel", cooldown: int = 0, min_lr: float = 0.0, eps: float = 1e-8,
    ):  # fmt: skip
        if mode not in ("min", "max") or threshold_mode not in ("rel", "abs"):
            raise ValueError(f"mode is 'min' or 'max', threshold_mode 'rel' or 'abs', not {mode!r}, {threshold_mode!r}")
        if factor >= 1.0:
            raise ValueError(f"factor must be below 1, not {factor}")
        self.optimizer = optimizer
        self.mode, self.factor, self.patience, self.threshold = mode, factor, patience, threshold
        self.threshold_mode, self.cooldown, self.min_lr, self.eps = threshold_mode, cooldown, min_lr, eps
        self.best = math.inf if mode == "min" else -math.inf
        self.num_bad_epochs = self.cooldown_counter = self.last_epoch = 0

    def _is_better(self, now: float) -> bool:
        sign = 1.0 if self.mode == "max" else -1.0
        margin = self.threshold * abs(self.best) if self.threshold_mode == "rel" else self.threshold
        return math.isinf(self.best) or sign * (now - self.best) > margin

    def step(self, metrics: Any, epoch: int | None = None) -> None:  # type: ignore[override]
        """Take in a loss or another measure of how training goes."""
        now = float(metrics)
        self.last_epoch = self.last_epoch + 1 if epoch is None else int(epoch)
        better = not math.isnan(now) and self._is_better(now)
        self.best = now if better else self.best
        self.num_bad_epochs = 0 if better else self.num_bad_epochs + 1
        if self.cooldown_counter:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            self._reduce()
            self.cooldown_counter, self.num_bad_epochs = self.cooldown, 0

    def _reduce(self) -> None:
        for group in self.optimizer.param_groups:
            old = group["lr"]
            new = max(old * self.factor, self.min_lr)
            if old - new > self.eps:
                group["lr"] = new


_LRScheduler = LRScheduler  # its name of old, which programs still derive from

__all__ = [
    "ChainedScheduler", "ConstantLR", "CosineAnnealingLR", "CosineAnnealingWarmRestarts", "CyclicLR", "ExponentialLR",
    "LRScheduler", "LambdaLR", "LinearLR", "MultiStepLR", "MultiplicativeLR", "OneCycleLR", "PolynomialLR",
    "ReduceLROnPlateau", "SequentialLR", "StepLR",
]  # fmt: skip

__getattr__ = explain_missing("torch.optim.lr_scheduler", globals())
