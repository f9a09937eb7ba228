"""Recurrent layers, RNN, LSTM and GRU, and their cells, in PyTorch's names, gate order and layouts."""

from __future__ import annotations

import inspect
import math
import warnings
from typing import Any

import numpy as np

from fad import random, tree
from fad.nn import functional as F
from fad.nn import init
from fad.nn.fused import counting
from fad.nn.lookup import Dropout
from fad.nn.module import Module
from fad.typing import Array, DTypeLike, Key


class Recurrent(Module):
    """What recurrent layers share: layers, directions, and the loop over time.

    The input has shape (length, batch, features), or (batch, length, features) with `batch_first`; or
    (length, features). With `lengths`, whole numbers (batch,), only so many steps of each example count: what is
    returned after them is zero, and the final states are those of its own last step. With `dropout`, in training mode
    what one layer hands to the next goes through a `Dropout`.
    """

    gates = 1

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        *,
        key: Key | None = None,
        dtype: DTypeLike | None = None,
    ):
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.bias = bias
        self.batch_first = batch_first
        self.dropout = dropout
        self.bidirectional = bidirectional
        self.names = tuple(
            f"_l{layer}{way}" for layer in range(num_layers) for way in (("", "_reverse") if bidirectional else ("",))
        )
        bound = 1.0 / math.sqrt(hidden_size)
        rows = self.gates * hidden_size
        key = init.next_key(key)
        if dropout and num_layers == 1:
            warnings.warn(
                f"dropout of {type(self).__name__} is between its layers, and with num_layers=1 drops nothing: use "
                "nn.Dropout on what it returns",
                stacklevel=3,
            )
        if dropout:  # by a key of its own, so that the weights do not depend on it
            self.between = Dropout(dropout, key=random.fold_in(key, 0))
        keys = iter(random.split(key, 4 * len(self.names)))
        for i, name in enumerate(self.names):
            width = input_size if i < self.directions else hidden_size * self.directions
            shapes: dict[str, tuple] = {"weight_ih": (rows, width), "weight_hh": (rows, hidden_size)}
            shapes |= {"bias_ih": (rows,), "bias_hh": (rows,)}
            for part, shape in shapes.items():
                if bias or not part.startswith("bias"):
                    setattr(self, part + name, init.uniform(next(keys), shape, -bound, bound, dtype))

    @property
    def directions(self) -> int:
        return 2 if self.bidirectional else 1

    def extra_repr(self) -> str:
        return f"{self.input_size}, {self.hidden_size}, num_layers={self.num_layers}" + (
            f", dropout={self.dropout}" if self.dropout else ""
        )

    def _run(self, x: Any, starts: list, lengths: Any = None) -> tuple[Any, list]:
        """Run all layers over x of shape (length, batch, features), from one state per layer and direction."""
        counts = None if lengths is None else counting(len(x), lengths)[:, None] < lengths
        ends = []
        for layer in range(self.num_layers):
            if layer and self.dropout:
                x = self.between(x)
            outs = []
            for way in range(self.directions):
                i = layer * self.directions + way
                ys, end = self._over_time(x, starts[i], self.names[i], way == 1, counts)
                outs.append(ys)
                ends.append(end)
            x = outs[0] if len(outs) == 1 else np.concatenate(outs, axis=-1)
        return x, ends

    def _over_time(self, x: Any, state: Any, name: str, reverse: bool, counts: Any) -> tuple[Any, Any]:
        # The inputs' share of the gates needs no loop: one product for all times.
        inputs = F.linear(x, getattr(self, "weight_ih" + name), getattr(self, "bias_ih" + name, None))
        weight, bias = getattr(self, "weight_hh" + name), getattr(self, "bias_hh" + name, None)
        times = range(len(x) - 1, -1, -1) if reverse else range(len(x))
        outs = []
        for t in times:
            new, out = self.cell(inputs[t], state, weight, bias)
            if counts is not None:
                here = counts[t][:, None]
                out = np.where(here, out, 0.0)
                new = tree.map(lambda a, b, here=here: np.where(here, a, b), new, state)
            state = new
            outs.append(out)
        return np.stack(outs[::-1] if reverse else outs), state

    def cell(self, inputs: Any, state: Any, weight: Any, bias: Any) -> tuple[Any, Any]:
        """Return (new state, output) of one step."""
        raise NotImplementedError(f"{type(self).__name__} does not define cell, its step")

    def _enter(self, x: Any) -> tuple[Any, bool]:
        if x.ndim not in (2, 3) or x.shape[-1] != self.input_size:
            raise ValueError(
                f"{type(self).__name__} needs an input of shape (length, batch, {self.input_size}) or "
                f"(length, {self.input_size}), not {x.shape}"
            )
        single = x.ndim == 2
        if single:
            x = x[:, None]
        elif self.batch_first:
            x = x.swapaxes(0, 1)
        return x, single

    def _leave(self, y: Any, single: bool) -> Any:
        return y[:, 0] if single else y.swapaxes(0, 1) if self.batch_first else y

    def _start(self, x: Any, given: Any, single: bool) -> list:
        if given is None:
            zeros = np.zeros_like(x, shape=(x.shape[1], self.hidden_size))
            return [zeros] * len(self.names)
        return [h[None] if single else h for h in given]


class LSTM(Recurrent):
    """Long short-term memory: gates i, f, g, o; ``c' = σ(f) c + σ(i) tanh(g)``, ``h' = σ(o) tanh(c')``.

    Returns ``(output, (h, c))``: the last layer's h at all times, and the final states of all layers and directions.

    >>> out, (h, c) = LSTM(3, 5, key=0)(np.ones((7, 2, 3)))
    >>> out.shape, h.shape
    ((7, 2, 5), (1, 2, 5))
    """

    gates = 4

    def cell(self, inputs, state, weight, bias):
        h, c = state
        n = self.hidden_size
        gates = inputs + F.linear(h, weight, bias)
        i, f, g, o = (gates[..., k * n : (k + 1) * n] for k in range(4))
        c = F.sigmoid(f) * c + F.sigmoid(i) * np.tanh(g)
        h = F.sigmoid(o) * np.tanh(c)
        return (h, c), h

    def forward(self, x: Array, state: Array = None, *, lengths: Array = None) -> tuple:
        x, single = self._enter(x)
        h, c = (None, None) if state is None else state
        starts = list(zip(self._start(x, h, single), self._start(x, c, single), strict=True))
        y, ends = self._run(x, starts, lengths)
        h, c = (np.stack([e[k] for e in ends]) for k in (0, 1))
        return self._leave(y, single), ((h[:, 0], c[:, 0]) if single else (h, c))


class RNN(Recurrent):
    """The plain recurrent layer: ``h' = tanh(W x + b + V h + c)``, or relu with ``nonlinearity="relu"``.

    Returns ``(output, h)``: the last layer's h at all times, and the final states of all layers and directions.

    >>> out, h = fad.nn.RNN(3, 5, key=0)(np.ones((7, 2, 3)))
    >>> (out.shape, h.shape)
    ((7, 2, 5), (1, 2, 5))
    """

    gates = 1
    nonlinearity = "tanh"

    def __init__(self, *settings: Any, nonlinearity: str = "tanh", **options: Any):
        super().__init__(*settings, **options)
        self.nonlinearity = _check_nonlinearity(nonlinearity)

    def cell(self, inputs, state, weight, bias):
        h = inputs + F.linear(state, weight, bias)
        h = np.tanh(h) if self.nonlinearity == "tanh" else F.relu(h)
        return h, h

    def forward(self, x: Array, state: Array = None, *, lengths: Array = None) -> tuple:
        x, single = self._enter(x)
        y, ends = self._run(x, self._start(x, state, single), lengths)
        h = np.stack(ends)
        return self._leave(y, single), (h[:, 0] if single else h)


def _check_nonlinearity(nonlinearity: str) -> str:
    if nonlinearity not in ("tanh", "relu"):
        raise ValueError(f"nonlinearity must be 'tanh' or 'relu', not {nonlinearity!r}")
    return nonlinearity


class GRU(RNN):
    """Gated recurrent unit: gates r, z, n; ``n = tanh(x_n + σ(r) h_n)``, ``h' = (1 - σ(z)) n + σ(z) h``.

    Returns ``(output, h)``: the last layer's h at all times, and the final states of all layers and directions.

    >>> out, h = fad.nn.GRU(3, 5, key=0)(np.ones((7, 2, 3)))
    >>> (out.shape, h.shape)
    ((7, 2, 5), (1, 2, 5))
    """

    gates = 3

    def __init__(self, *settings: Any, **options: Any):
        Recurrent.__init__(self, *settings, **options)

    def cell(self, inputs, state, weight, bias):
        n = self.hidden_size
        hidden = F.linear(state, weight, bias)
        r = F.sigmoid(inputs[..., :n] + hidden[..., :n])
        z = F.sigmoid(inputs[..., n : 2 * n] + hidden[..., n : 2 * n])
        new = np.tanh(inputs[..., 2 * n :] + r * hidden[..., 2 * n :])
        h = new + z * (state - new)
        return h, h


class Cell(Module):
    """What the cells share: parameters ``weight_ih``, ``weight_hh`` and their biases, and one step of a layer.

    The input has shape (batch, features) or (features,); a state that is not given is zero.
    """

    gates = 1
    cell = Recurrent.cell

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, *, key: Key | None = None,
        dtype: DTypeLike | None = None,
    ):  # fmt: skip
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.bias = bias
        bound = 1.0 / math.sqrt(hidden_size)
        rows = self.gates * hidden_size
        shapes: dict[str, tuple] = {"weight_ih": (rows, input_size), "weight_hh": (rows, hidden_size)}
        shapes |= {"bias_ih": (rows,), "bias_hh": (rows,)} if bias else {}
        for k, (name, shape) in zip(random.split(init.next_key(key), 4), shapes.items(), strict=False):
            setattr(self, name, init.uniform(k, shape, -bound, bound, dtype))

    def extra_repr(self) -> str:
        return f"{self.input_size}, {self.hidden_size}" + ("" if self.bias else ", bias=False")

    def _step(self, x: Any, state: Any) -> Any:
        of_input, of_state = (getattr(self, name, None) for name in ("bias_ih", "bias_hh"))
        step: Any = type(self).cell
        return step(self, F.linear(x, self.weight_ih, of_input), state, self.weight_hh, of_state)[0]

    def _zeros(self, x: Any) -> Any:
        if x.ndim not in (1, 2) or x.shape[-1] != self.input_size:
            raise ValueError(
                f"{type(self).__name__} needs an input of shape (batch, {self.input_size}) or ({self.input_size},), "
                f"not {x.shape}"
            )
        return np.zeros_like(x, shape=(*x.shape[:-1], self.hidden_size))

    def forward(self, x: Array, state: Array | None = None) -> Array:
        zeros = self._zeros(x)
        return self._step(x, zeros if state is None else state)


class RNNCell(Cell):
    """One step of :class:`RNN`: returns the new state.

    >>> RNNCell(3, 5, key=0)(np.ones((2, 3))).shape
    (2, 5)
    """

    gates = RNN.gates
    cell = RNN.cell

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, nonlinearity: str = "tanh", *,
        key: Key | None = None, dtype: DTypeLike | None = None,
    ):  # fmt: skip
        super().__init__(input_size, hidden_size, bias, key=key, dtype=dtype)
        self.nonlinearity = _check_nonlinearity(nonlinearity)


class GRUCell(Cell):
    """One step of :class:`GRU`: returns the new state.

    >>> cell = GRUCell(3, 5, key=0)
    >>> cell(np.ones(3), cell(np.ones(3))).shape
    (5,)
    """

    gates = GRU.gates
    cell = GRU.cell


class LSTMCell(Cell):
    """One step of :class:`LSTM`: returns the new ``(h, c)``.

    >>> h, c = LSTMCell(3, 5, key=0)(np.ones((2, 3)))
    >>> h.shape, c.shape
    ((2, 5), (2, 5))
    """

    gates = LSTM.gates
    cell = LSTM.cell

    def forward(self, x: Array, state: Array = None) -> tuple:
        zeros = self._zeros(x)
        return self._step(x, (zeros, zeros) if state is None else state)


# Their settings are LSTM's, behind which RNN has one more.
_SETTINGS = inspect.signature(LSTM)
_KIND = inspect.signature(RNN).parameters["nonlinearity"]
GRU.__signature__ = _SETTINGS  # type: ignore[attr-defined]
RNN.__signature__ = _SETTINGS.replace(parameters=[*_SETTINGS.parameters.values(), _KIND])  # type: ignore[attr-defined]
