"""Making tensors. Numbers become float32 where nothing else is said, as PyTorch's do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fad.core.tracing.tracer import Tracer
from fad.core.tracing.values import strip_derivatives
from fad.eager.ops.operators import convert
from fad.eager.rng import generator as numbers
from fad.eager.tensor import Tensor, add_methods, float32, int64, wrap

_default = [float32]


def get_default_dtype() -> np.dtype:
    """Return the dtype of new tensors of real numbers: float32 unless another was set."""
    return _default[0]


def set_default_dtype(dtype: Any) -> None:
    """Set the dtype of tensors made of Python floats."""
    _default[0] = np.dtype(dtype)


def _finish(x: Any, dtype: Any, requires_grad: bool) -> Tensor:
    x = x if dtype is None else x.astype(np.dtype(dtype), copy=False)
    y = Tensor(x)
    return y.requires_grad_() if requires_grad else y


def tensor(data: Any, *, dtype: Any = None, requires_grad: bool = False, device: Any = None) -> Tensor:
    """Return a new leaf with a copy of numbers, nested lists, an array or a tensor; Python floats become float32.

    >>> tensor([1.0, 2.0], requires_grad=True)
    tensor([1., 2.], requires_grad=True)
    """
    if type(data) is Tracer:  # an array of the program that is transformed, which keeps its derivative
        x = wrap(data).value
    elif isinstance(data, Tensor):
        x = strip_derivatives(data.value)
    elif isinstance(data, (np.ndarray, np.generic)):
        x = np.asarray(data)
    else:
        x = _from_python(data) if dtype is None else np.array(_without_tensors(data), np.dtype(dtype))
    if type(x) is Tracer:
        x = x if dtype is None else x.astype(np.dtype(dtype))
        return Tensor(x).requires_grad_() if requires_grad else Tensor(x)
    return _finish(np.array(x), dtype, requires_grad)


def _from_python(data: Any) -> np.ndarray:
    data = _without_tensors(data)
    x = np.array(data) if np.size(data) else np.array(data, dtype=_default[0])
    if x.dtype == np.float64:
        return x.astype(_default[0])
    return x.astype(np.complex64) if x.dtype == np.complex128 and _default[0] == float32 else x


def _without_tensors(data: Any) -> Any:
    if type(data) in (list, tuple):
        return [_without_tensors(v) for v in data]
    return data.tolist() if isinstance(data, Tensor) else data


def as_tensor(data: Any, dtype: Any = None) -> Tensor:
    """Return a tensor of data, sharing memory and history if the dtype allows.

    A traced value that a transform returned because its function used a recorded tensor becomes one with history.
    """
    data = wrap(data) if type(data) is Tracer else data
    if isinstance(data, Tensor):
        return data if dtype is None else convert(data, np.dtype(dtype))
    if isinstance(data, np.ndarray):
        return _finish(data, dtype, False)
    return tensor(data, dtype=dtype)


def from_numpy(array: np.ndarray) -> Tensor:
    """Return a tensor that shares the memory of an array, in its dtype."""
    return Tensor(array)


def _shape(size: tuple) -> tuple:
    return tuple(size[0]) if len(size) == 1 and isinstance(size[0], (tuple, list)) else size


def _fill(make: Callable) -> Callable:
    def create(*size, dtype=None, requires_grad=False, device=None):
        return _finish(make(_shape(size), dtype=_default[0] if dtype is None else dtype), None, requires_grad)

    create.__doc__ = f"Return {make.__name__} of a shape, given as numbers or as a tuple."
    return create


ones, zeros = _fill(np.ones), _fill(np.zeros)
empty = zeros


def _like(make: Callable) -> Callable:
    def create(input, *, dtype=None, requires_grad=False, device=None):
        value = make(input.value) if type(input.value) is Tracer else make(np.asarray(input.value))
        return _finish(value, dtype, requires_grad)

    create.__doc__ = f"Return {make.__name__} of a tensor's shape and dtype."
    return create


ones_like, zeros_like = _like(np.ones_like), _like(np.zeros_like)
empty_like = zeros_like


def full(size: Any, fill_value: Any, *, dtype: Any = None, requires_grad: bool = False, device: Any = None) -> Tensor:
    """Return a tensor of one value everywhere."""
    return _finish(np.full(size, tensor(fill_value).value), dtype, requires_grad)


def full_like(
    input: Tensor, fill_value: Any, *, dtype: Any = None, requires_grad: bool = False, device: Any = None
) -> Tensor:
    """Return a tensor of one value everywhere, of another's shape and dtype."""
    return _finish(np.full(input.shape, fill_value, input.dtype), dtype, requires_grad)


def linspace(
    start: float, end: float, steps: int, *, dtype: Any = None, requires_grad: bool = False, device: Any = None
) -> Tensor:
    """Return evenly spaced numbers, both ends included.

    Worked out from both ends inwards in the result's own precision, as PyTorch does, so that the last digits agree.
    """
    dtype = _default[0] if dtype is None else np.dtype(dtype)
    if steps < 2:
        return _finish(np.full(steps, start, dtype), None, requires_grad)
    exact = np.float64 if dtype == np.float64 else dtype.type
    i = np.arange(steps)
    step = exact((exact(end) - exact(start)) / exact(steps - 1))
    x = np.where(
        i < steps // 2, exact(start) + step * i.astype(dtype), exact(end) - step * (steps - 1 - i).astype(dtype)
    )
    return _finish(x, dtype, requires_grad)


def _weigh(length: int, periodic: bool, weigh: Callable, dtype: Any, requires_grad: bool) -> Tensor:
    """Return the weights of a window, of angles that go once around: up to its end, or if periodic up to the next."""
    turn = length if periodic else length - 1
    x = np.ones(length) if length < 2 else weigh(2.0 * np.pi * np.arange(length) / turn)
    return _finish(x, _default[0] if dtype is None else dtype, requires_grad)


def hann_window(
    window_length: int, periodic: bool = True, *, dtype: Any = None, requires_grad: bool = False, device: Any = None
) -> Tensor:
    """Return the window of von Hann: half of one minus the cosine.

    >>> hann_window(4)
    tensor([0.0000, 0.5000, 1.0000, 0.5000])
    """
    return hamming_window(window_length, periodic, 0.5, 0.5, dtype=dtype, requires_grad=requires_grad)


def hamming_window(
    window_length: int, periodic: bool = True, alpha: float = 0.54, beta: float = 0.46, *, dtype: Any = None,
    requires_grad: bool = False, device: Any = None,
) -> Tensor:  # fmt: skip
    """Return the window of Hamming: alpha minus beta times the cosine."""
    return _weigh(window_length, periodic, lambda turn: alpha - beta * np.cos(turn), dtype, requires_grad)


def bartlett_window(
    window_length: int, periodic: bool = True, *, dtype: Any = None, requires_grad: bool = False, device: Any = None
) -> Tensor:
    """Return the window of Bartlett, a triangle."""
    return _weigh(window_length, periodic, lambda turn: 1.0 - np.abs(turn / np.pi - 1.0), dtype, requires_grad)


def blackman_window(
    window_length: int, periodic: bool = True, *, dtype: Any = None, requires_grad: bool = False, device: Any = None
) -> Tensor:
    """Return the window of Blackman, of two cosines."""
    weigh = lambda turn: 0.42 - 0.5 * np.cos(turn) + 0.08 * np.cos(2.0 * turn)
    return _weigh(window_length, periodic, weigh, dtype, requires_grad)


def logspace(start: float, end: float, steps: int, base: float = 10.0, **options: Any) -> Tensor:
    """Return numbers evenly spaced on a logarithmic scale."""
    x = np.logspace(start, end, steps, base=base)
    return _finish(x, options.get("dtype") or _default[0], options.get("requires_grad", False))


def arange(
    *bounds: float, start: Any = None, end: Any = None, step: Any = None, dtype: Any = None,
    requires_grad: bool = False, device: Any = None,
) -> Tensor:  # fmt: skip
    """Return start, start + step, ... below end: ``arange(end)``, ``arange(start, end)`` or with a step."""
    bounds = (start, *bounds) if start is not None else bounds
    bounds = (*bounds, *(x for x in (end, step) if x is not None))
    bounds = (0, *bounds) if step is not None and len(bounds) == 2 else bounds
    x = np.arange(*bounds)
    if dtype is None:
        dtype = int64 if all(isinstance(b, (int, np.integer)) for b in bounds) else _default[0]
    return _finish(x, dtype, requires_grad)


def eye(n: int, m: int | None = None, *, dtype: Any = None, requires_grad: bool = False, device: Any = None) -> Tensor:
    """Return ones on the diagonal, zeros elsewhere."""
    return _finish(np.eye(n, m), _default[0] if dtype is None else dtype, requires_grad)


# --- random numbers -----------------------------------------------------------------------------------------------


def _draw(draw: Callable, doc: str) -> Callable:
    def create(*size, generator=None, dtype=None, requires_grad=False, device=None):
        return _finish(draw(numbers(generator), _shape(size)), _default[0] if dtype is None else dtype, requires_grad)

    create.__doc__ = doc
    return create


rand = _draw(lambda g, shape: np.asarray(g.random(shape)), "Return numbers uniform in [0, 1).")
randn = _draw(
    lambda g, shape: np.asarray(g.standard_normal(shape)), "Return numbers of the standard normal distribution."
)


def rand_like(input: Tensor, *, dtype: Any = None, requires_grad: bool = False, device: Any = None) -> Tensor:
    """Return uniform numbers of another tensor's shape and dtype."""
    return rand(*input.shape, dtype=dtype or input.dtype, requires_grad=requires_grad)


def randn_like(input: Tensor, *, dtype: Any = None, requires_grad: bool = False, device: Any = None) -> Tensor:
    """Return normal numbers of another tensor's shape and dtype."""
    return randn(*input.shape, dtype=dtype or input.dtype, requires_grad=requires_grad)


def randint(
    low: int, high: Any = None, size: Any = None, *, generator: Any = None, dtype: Any = None, device: Any = None
) -> Tensor:
    """Return whole numbers in ``[low, high)``; without `low` ``randint(high, size)``, below `high`."""
    if high is None or size is None:
        low, high, size = 0, low, high if size is None else size
    return _finish(numbers(generator).integers(low, high, size), dtype, False)


def randperm(n: int, *, generator: Any = None, device: Any = None) -> Tensor:
    """Return 0 ... n - 1 in random order."""
    return Tensor(numbers(generator).permutation(n))


def normal(mean: Any = 0.0, std: Any = 1.0, size: Any = None, *, generator: Any = None) -> Tensor:
    """Return normal numbers of a mean and a standard deviation, numbers or tensors of them."""
    dtype = next((x.dtype for x in (mean, std) if isinstance(x, Tensor)), _default[0])
    mean, std = (np.asarray(x.detach()) if isinstance(x, Tensor) else x for x in (mean, std))
    return _finish(np.asarray(numbers(generator).normal(mean, std, size)), dtype, False)


def multinomial(input: Tensor, num_samples: int, replacement: bool = False, *, generator: Any = None) -> Tensor:
    """Return numbers of classes drawn with the probabilities in the last axis, which need not add up to one."""
    p = np.asarray(input.detach(), np.float64)
    noise = numbers(generator).gumbel(size=(*p.shape[:-1], num_samples if replacement else 1, p.shape[-1]))
    with np.errstate(divide="ignore"):
        scores = np.log(p)[..., None, :] + noise
    if replacement:
        return Tensor(np.argmax(scores, axis=-1))
    if num_samples > np.min(np.sum(p > 0, axis=-1)):
        raise ValueError(f"{num_samples} different classes cannot be drawn: use replacement=True")
    return Tensor(np.argsort(-scores[..., 0, :], axis=-1)[..., :num_samples])


def bernoulli(input: Tensor, *, generator: Any = None) -> Tensor:
    """Return ones and zeros: one with the probability that stands there."""
    p = np.asarray(input.detach())
    return Tensor((numbers(generator).random(p.shape) < p).astype(p.dtype))


def _put(self: Tensor, x: Any) -> Tensor:
    return self.copy_(Tensor(np.asarray(x).astype(self.dtype)))


add_methods(
    uniform_=lambda self, a=0.0, b=1.0, *, generator=None: _put(
        self, numbers(generator).uniform(a, b, self.value.shape)
    ),
    normal_=lambda self, mean=0.0, std=1.0, *, generator=None: _put(
        self, numbers(generator).normal(mean, std, self.value.shape)
    ),
    bernoulli_=lambda self, p=0.5, *, generator=None: _put(self, numbers(generator).random(self.value.shape) < p),
    multinomial=multinomial,
    bernoulli=bernoulli,
)


def _new(make: Callable) -> Callable:
    def method(self, *args, dtype=None, device=None, requires_grad=False):
        return make(*args, dtype=self.dtype if dtype is None else dtype, requires_grad=requires_grad)

    method.__doc__ = "Make another tensor of this one's dtype."
    return method


add_methods(
    new_zeros=_new(zeros),
    new_ones=_new(ones),
    new_empty=_new(empty),
    new_full=_new(full),
    new_tensor=_new(tensor),
)

__all__ = [
    "arange", "as_tensor", "bartlett_window", "bernoulli", "blackman_window", "empty", "empty_like", "eye",
    "from_numpy", "full", "full_like", "get_default_dtype", "hamming_window", "hann_window", "linspace", "logspace",
    "multinomial", "normal", "ones", "ones_like", "rand", "rand_like", "randint", "randn", "randn_like", "randperm",
    "set_default_dtype", "tensor", "zeros", "zeros_like",
]  # fmt: skip
