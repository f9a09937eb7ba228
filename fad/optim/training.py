"""A training loop for those who do not write their own, and the history that it leaves."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

from fad.data import progress
from fad.errors import FadError
from fad.optim.gradients import clip_by_global_norm
from fad.optim.optimizer import Optimizer
from fad.transforms.grad import value_and_grad
from fad.typing import ArrayLike, PyTree


class NonFiniteLossError(FadError, ArithmeticError):
    """The loss became NaN or infinite while training; the model was not changed by that step.

    Wrong::

        fit(loss, model, optim.SGD(model, lr=1e6), data, epochs=10)

    Right::

        fit(loss, model, optim.SGD(model, lr=1e-2), data, epochs=10)
        fit(loss, model, opt, data, epochs=10, clip=1.0)
    """


class History:
    """Numbers recorded while training, by name; ``history["loss"]`` is a list, ``history.plot("loss.png")`` draws it.

    >>> history = History()
    >>> history.add(loss=2.0, accuracy=0.5)
    >>> history.add(loss=1.0)
    >>> history["loss"], history.last("loss")
    ([2.0, 1.0], 1.0)
    """

    def __init__(self) -> None:
        self.values: dict[str, list[float]] = {}
        self.steps: dict[str, list[int]] = {}
        self.count = 0

    def add(self, **numbers: Any) -> None:
        """Record numbers for the next step."""
        for name, x in numbers.items():
            self.values.setdefault(name, []).append(float(x))
            self.steps.setdefault(name, []).append(self.count)
        self.count += 1

    def __getitem__(self, name: str) -> list[float]:
        return self.values[name]

    def __len__(self) -> int:
        return self.count

    def last(self, name: str) -> float:
        """Return the newest number of a name."""
        return self.values[name][-1]

    def __repr__(self) -> str:
        ends = ", ".join(f"{name}={xs[-1]:.4g}" for name, xs in self.values.items())
        return f"History({self.count} steps; last {ends})" if ends else "History(empty)"

    def plot(self, path: Any = None) -> Any:
        """Draw one panel per name; write it to `path` if given, and return the matplotlib figure."""
        try:
            from matplotlib.backends.backend_agg import FigureCanvasAgg
            from matplotlib.figure import Figure
        except ImportError as error:
            raise ImportError(f"History.plot needs matplotlib: pip install 'fad[demo]' ({error})") from None
        names = list(self.values) or ["(nothing recorded)"]
        figure = Figure(figsize=(6, 2.6 * len(names)), layout="constrained")
        FigureCanvasAgg(figure)
        for axes, name in zip(figure.subplots(len(names), 1, squeeze=False)[:, 0], names, strict=True):
            xs = self.values.get(name, [])
            axes.plot(self.steps.get(name, []), xs, color="#4477aa", marker="o" if len(xs) < 3 else None)
            if xs and min(xs) > 0 and max(xs) > 50 * min(xs):
                axes.set_yscale("log")
            axes.set_ylabel(name)
            axes.grid(alpha=0.3)
            axes.spines[["top", "right"]].set_visible(False)
        axes.set_xlabel("step")
        if path is not None:
            figure.savefig(path, dpi=110)
        return figure


def check_finite(loss: ArrayLike, step: int) -> None:
    """Raise NonFiniteLossError, naming the step, if a loss is NaN or infinite.

    >>> fad.optim.check_finite(0.5, 3)
    """
    if not math.isfinite(loss):
        raise NonFiniteLossError(
            f"the loss is {float(loss)} at step {step}, and the model was left as it was before that step. "
            "A smaller learning rate or clip=1.0 may help; fad.debug.nans names the operation that made it"
        )


def fit(
    loss: Callable,
    model: PyTree,
    optimizer: Optimizer,
    data: Iterable,
    *,
    epochs: int = 1,
    clip: float | None = None,
    after_step: Callable | None = None,
    description: str = "training",
) -> History:
    """Train a model: for each batch of each epoch, ``loss(model, *batch)``, its gradient, and a step.

    Parameters
    ----------
    loss : callable
        ``loss(model, *batch)`` returns one number.
    model, optimizer
        The optimiser was made for this model.
    data : iterable of batches
        Such as ``fad.data.batches((x, y), 64, key=0)``; gone through once per epoch.
    epochs : int, keyword only
        How often the data are gone through.
    clip : float, keyword only
        The largest norm of the gradient; longer ones are shortened.
    after_step : callable, keyword only
        Called as ``after_step(history)`` after each step; numbers can be recorded, an average of weights updated.
    description : str, keyword only
        Shown beside the progress bar.

    Returns
    -------
    History
        With the loss of each step.

    Raises
    ------
    NonFiniteLossError
        at the first step whose loss is NaN or infinite, before the model is changed.

    Examples
    --------
    >>> w, data = np.array(np.array([1.0])), fad.data.batches(np.array([4.0, 4.0]), 1)
    >>> history = fad.optim.fit(lambda w, x: ((w - x) ** 2).sum(), w, fad.optim.SGD(w, lr=0.1), data, epochs=50)
    >>> w.round(3)
    array([4.])
    """
    history = History()
    evaluate = value_and_grad(loss)
    bar = progress(range(epochs), description)
    for _ in bar:
        for batch in data:
            value, grads = evaluate(model, *(batch if isinstance(batch, (tuple, list)) else (batch,)))
            check_finite(value, history.count)
            if clip is not None:
                grads, _ = clip_by_global_norm(grads, clip)
            optimizer.step(grads)
            history.add(loss=value)
            if after_step is not None:
                after_step(history)
        if history.count:
            bar.show(loss=history.last("loss"))
    return history
