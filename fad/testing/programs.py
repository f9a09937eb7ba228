"""Random programs: compositions of smooth operations, safe wherever their inputs lie in [-2, 2].

An identity that holds for single operations may still fail for a program, where values are shared, used twice,
or not at all. A `Program` is a short list of steps, each naming an operation of a table and the earlier values it uses.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np


def _mix(x: Any, y: Any) -> Any:
    return np.concatenate([x[:1], y[1:]])


def _by_matrix(x: Any, y: Any) -> Any:
    return np.tanh(x[:, None] * y) @ y / len(y)


def _loop(x: Any, y: Any) -> Any:
    total = x[0]
    for t in range(len(y)):
        total = np.sin(total + y[t])
    return x + total


def _branch(x: Any, y: Any) -> Any:
    # The condition depends on the program's constants alone, so the program stays smooth.
    return x * y if x.shape[0] % 2 else x + y


# Each is smooth in both operands, takes vectors of one length, and keeps bounded numbers bounded.
SMOOTH: dict[str, Callable] = {
    "x + y": lambda x, y: x + y,
    "x - 0.5 * y": lambda x, y: x - 0.5 * y,
    "sin(x * y)": lambda x, y: np.sin(x * y),
    "x / (1 + y**2)": lambda x, y: x / (1 + y**2),
    "x * cos(y)": lambda x, y: x * np.cos(y),
    "tanh(x)": lambda x, y: np.tanh(x),
    "exp(sin(x))": lambda x, y: np.exp(np.sin(x)),
    "log(2 + cos(x))": lambda x, y: np.log(2 + np.cos(x)),
    "sqrt(1 + x**2)": lambda x, y: np.sqrt(1 + x**2),
    "arctan2(x, 2 + sin(y))": lambda x, y: np.arctan2(x, 2 + np.sin(y)),
    "(1 + sin(x)**2) ** cos(y)": lambda x, y: (1 + np.sin(x) ** 2) ** np.cos(y),
    "logaddexp(x, y)": lambda x, y: np.logaddexp(np.sin(x), y) - np.log(2.0),
    "x[::-1]": lambda x, y: x[::-1],
    "x[index]": lambda x, y: x[(np.arange(len(x)) * 2) % len(x)] * y,
    "x - mean(y)": lambda x, y: x - np.sum(y) / len(y),
    "x * dot(x, y)": lambda x, y: np.sin(x * (x @ y)),
    "[x[:1], y[1:]]": _mix,
    "tanh(x[:, None] * y) @ y": _by_matrix,
    "loop over y": _loop,
    "branch": _branch,
}


class Program:
    """A random program of a few vectors, all of one length; returns a vector.

    Parameters
    ----------
    inputs : int
        How many arguments it takes.
    steps : sequence of (name, i, j)
        Each appends ``table[name](values[i], values[j])`` to the values so far, which begin with the arguments.
    table : dict
        The operations, ``SMOOTH`` if not given.

    Examples
    --------
    >>> program = Program(2, [("x * cos(y)", 0, 1), ("tanh(x)", 2, 0)])
    >>> program
    Program: a, b -> c = a * cos(b); d = tanh(c); d
    >>> program(np.ones(2), np.zeros(2)) == np.tanh(np.ones(2))
    array([ True,  True])
    """

    def __init__(self, inputs: int, steps: Sequence[tuple[str, int, int]], table: dict[str, Callable] | None = None):
        self.inputs = inputs
        self.steps = list(steps)
        self.table = SMOOTH if table is None else table

    def __call__(self, *xs: Any) -> Any:
        values = list(xs)
        for name, i, j in self.steps:
            values.append(self.table[name](values[i], values[j]))
        return values[-1]

    def scalar(self, *xs: Any) -> Any:
        """Return the sum of the program's result: a function that `grad` takes."""
        return np.sum(self(*xs))

    def __repr__(self) -> str:
        names = [chr(ord("a") + k) for k in range(self.inputs + len(self.steps))]
        lines = []
        for k, (text, i, j) in enumerate(self.steps):
            swap = {"x": names[i], "y": names[j]}
            spelled = "".join(swap.get(c, c) if _alone(text, at) else c for at, c in enumerate(text))
            lines.append(f"{names[self.inputs + k]} = {spelled}; ")
        return f"Program: {', '.join(names[: self.inputs])} -> {''.join(lines)}{names[-1]}"


def _alone(text: str, at: int) -> bool:
    """Return whether the letter at a position is a name of its own, not part of a word."""
    around = text[max(at - 1, 0) : at] + text[at + 1 : at + 2]
    return not any(c.isalpha() for c in around)
