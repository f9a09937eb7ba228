"""``torch.distributions.transforms``: functions with an inverse and the logarithm of their slope."""

from __future__ import annotations

import copy
import math
from typing import Any

import numpy as np

from fad.eager.distributions import constraints
from fad.eager.distributions.base import as_parameter, sum_last
from fad.eager.nn import functional as F
from fad.eager.ops import functions as f
from fad.eager.ops.creation import zeros_like
from fad.eager.tensor import Tensor


class Transform:
    """A function of tensors with an inverse `inv`; with ``cache_size=1`` it remembers its last argument and value.

    Classes derived from it define `_call`, `_inverse` and `log_abs_det_jacobian`, `domain` and `codomain`.

    >>> ExpTransform().inv(ExpTransform()(2.0))
    tensor(2.)
    """

    domain: Any = constraints.real
    codomain: Any = constraints.real
    bijective = False
    sign: Any = 1

    def __init__(self, cache_size: int = 0):
        if cache_size not in (0, 1):
            raise ValueError(f"cache_size must be 0 or 1, not {cache_size}")
        self._cache_size = cache_size
        self._last: tuple[Any, Any] = (None, None)

    event_dim = property(lambda self: self.domain.event_dim)
    inv = property(lambda self: _Inverse(self))

    def __call__(self, x: Any) -> Tensor:
        if self._cache_size and x is self._last[0]:
            return self._last[1]
        return self._keep(x, self._call(as_parameter(x)))[1]

    def invert(self, y: Any) -> Tensor:
        """Return what the transform makes `y` of."""
        if self._cache_size and y is self._last[1]:
            return self._last[0]
        return self._keep(self._inverse(as_parameter(y)), y)[0]

    def _keep(self, x: Any, y: Any) -> tuple[Any, Any]:
        if self._cache_size:
            self._last = x, y
        return x, y

    def with_cache(self, cache_size: int = 1) -> Transform:
        """Return the same transform, which remembers its last argument and value, or does not."""
        new = copy.copy(self)
        new._cache_size = cache_size
        return new

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_last": (None, None)}

    def _call(self, x: Tensor) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__} has no values")

    def _inverse(self, y: Tensor) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__} has no inverse")

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """Return the logarithm of the slope's magnitude at an argument and its value."""
        raise NotImplementedError(f"{type(self).__name__} has no determinant")

    def forward_shape(self, shape: Any) -> Any:
        """Return the shape of the values for a shape of the arguments."""
        return shape

    def inverse_shape(self, shape: Any) -> Any:
        """Return the shape of the arguments for a shape of the values."""
        return shape

    def _settings(self) -> tuple:
        return ()

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return False
        if not self._settings() and type(self).__init__ is not Transform.__init__:
            return self is other
        return all(map(_are_equal, self._settings(), other._settings()))  # type: ignore[attr-defined]

    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


def _are_equal(a: Any, b: Any) -> bool:
    if isinstance(a, Tensor) or isinstance(b, Tensor):
        return bool(np.array_equal(_plain(a), _plain(b)))
    return bool(a == b)


class _Inverse(Transform):
    """A transform the other way round."""

    def __init__(self, forward: Transform):
        super().__init__()
        self.forward = forward
        self.bijective = forward.bijective

    domain = property(lambda self: self.forward.codomain)
    codomain = property(lambda self: self.forward.domain)
    inv = property(lambda self: self.forward)
    sign = property(lambda self: self.forward.sign)

    def __call__(self, y: Any) -> Tensor:
        return self.forward.invert(y)

    def invert(self, x: Any) -> Tensor:
        """Return the value of the transform that this one inverts."""
        return self.forward(x)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """Return the logarithm of the slope's magnitude."""
        return -self.forward.log_abs_det_jacobian(y, x)

    def forward_shape(self, shape: Any) -> Any:
        """Return the shape of the values."""
        return self.forward.inverse_shape(shape)

    def inverse_shape(self, shape: Any) -> Any:
        """Return the shape of the arguments."""
        return self.forward.forward_shape(shape)

    def _settings(self) -> tuple:
        return (self.forward,)


class ExpTransform(Transform):
    """The exponential."""

    codomain = constraints.positive
    bijective = True

    def _call(self, x: Tensor) -> Tensor:
        return f.exp(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return f.log(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """Return the argument: the exponential is its own slope."""
        return x


class AffineTransform(Transform):
    """A product with `scale`, to which `loc` is added.

    >>> AffineTransform(1.0, 2.0)(3.0)
    tensor(7.)
    """

    bijective = True

    def __init__(self, loc: Any, scale: Any, event_dim: int = 0, cache_size: int = 0):
        super().__init__(cache_size)
        self.loc, self.scale, self._event_dim = loc, scale, event_dim

    domain = codomain = property(lambda self: constraints.independent(constraints.real, self._event_dim))

    @property
    def sign(self) -> Any:
        return f.sign(self.scale) if isinstance(self.scale, Tensor) else int(np.sign(self.scale))

    def _call(self, x: Tensor) -> Tensor:
        return self.loc + self.scale * x

    def _inverse(self, y: Tensor) -> Tensor:
        return (y - self.loc) / self.scale

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """Return the logarithm of the scale, for each event."""
        slope = f.log(f.abs(self.scale)) if isinstance(self.scale, Tensor) else math.log(abs(self.scale))
        return sum_last(zeros_like(x) + slope, self._event_dim)

    def forward_shape(self, shape: Any) -> Any:
        """Return the shape of the values."""
        return np.broadcast_shapes(tuple(shape), np.shape(_plain(self.loc)), np.shape(_plain(self.scale)))

    inverse_shape = forward_shape

    def _settings(self) -> tuple:
        return (self.loc, self.scale, self._event_dim)


def _plain(x: Any) -> Any:
    return x.value if isinstance(x, Tensor) else x


class PowerTransform(Transform):
    """A power of positive numbers."""

    domain = codomain = constraints.positive
    bijective = True

    def __init__(self, exponent: Any, cache_size: int = 0):
        super().__init__(cache_size)
        self.exponent = as_parameter(exponent)

    sign = property(lambda self: f.sign(self.exponent))

    def _call(self, x: Tensor) -> Tensor:
        return x**self.exponent

    def _inverse(self, y: Tensor) -> Tensor:
        return y ** (1.0 / self.exponent)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """Return the logarithm of the slope's magnitude."""
        return f.log(f.abs(self.exponent * y / x))

    def forward_shape(self, shape: Any) -> Any:
        """Return the shape of the values."""
        return np.broadcast_shapes(tuple(shape), tuple(self.exponent.shape))

    inverse_shape = forward_shape

    def _settings(self) -> tuple:
        return (self.exponent,)


class SigmoidTransform(Transform):
    """The sigmoid, of real numbers to those between 0 and 1."""

    codomain = constraints.unit_interval
    bijective = True

    def _call(self, x: Tensor) -> Tensor:
        limits = np.finfo(x.dtype)
        return f.clamp(f.sigmoid(x), float(limits.tiny), 1.0 - float(limits.eps))

    def _inverse(self, y: Tensor) -> Tensor:
        limits = np.finfo(y.dtype)
        y = f.clamp(y, float(limits.tiny), 1.0 - float(limits.eps))
        return f.log(y) - f.log1p(-y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """Return the logarithm of the sigmoid's slope."""
        return -F.softplus(-x) - F.softplus(x)


class TanhTransform(Transform):
    """The hyperbolic tangent. With ``cache_size=1`` what was drawn is not inverted: that loses digits near the ends."""

    codomain = constraints.interval(-1.0, 1.0)
    bijective = True

    def _call(self, x: Tensor) -> Tensor:
        return f.tanh(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return f.atanh(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """Return the logarithm of the slope, which is above zero for large arguments too."""
        return 2.0 * (math.log(2.0) - x - F.softplus(-2.0 * x))


class SoftplusTransform(Transform):
    """The logarithm of one plus the exponential, of real numbers to positive ones."""

    codomain = constraints.positive
    bijective = True

    def _call(self, x: Tensor) -> Tensor:
        return F.softplus(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return f.log(-f.expm1(-y)) + y

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """Return the logarithm of the sigmoid, which is the slope."""
        return -F.softplus(-x)


class AbsTransform(Transform):
    """The magnitude; its inverse is the positive one of two."""

    codomain = constraints.positive

    def _call(self, x: Tensor) -> Tensor:
        return f.abs(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return y


class SoftmaxTransform(Transform):
    """The softmax of vectors; its inverse is the logarithm, one of many."""

    domain = constraints.real_vector
    codomain = constraints.simplex

    def _call(self, x: Tensor) -> Tensor:
        return f.softmax(x, -1)

    def _inverse(self, y: Tensor) -> Tensor:
        return f.log(y)


class StickBreakingTransform(Transform):
    """Vectors to probabilities, one more: each element says which share of what is left a class takes."""

    domain = constraints.real_vector
    codomain = constraints.simplex
    bijective = True

    def _shift(self, x: Tensor) -> Tensor:
        return x - Tensor(np.log(np.arange(x.shape[-1], 0, -1)).astype(x.dtype))  # equal shares at zero

    def _call(self, x: Tensor) -> Tensor:
        shares = f.sigmoid(self._shift(x))
        left = f.cumprod(1.0 - shares, -1)
        return F.pad(shares, (0, 1), value=1.0) * F.pad(left, (1, 0), value=1.0)

    def _inverse(self, y: Tensor) -> Tensor:
        taken = y[..., :-1]
        left = f.clamp(1.0 - f.cumsum(taken, -1), float(np.finfo(y.dtype).tiny))
        return f.log(taken) - f.log(left) - self._shift(zeros_like(taken))

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """Return the logarithm of the determinant, for each vector."""
        return (f.log(y[..., :-1]) - F.softplus(self._shift(x))).sum(-1)

    def forward_shape(self, shape: Any) -> Any:
        """Return the shape of the values."""
        return (*shape[:-1], shape[-1] + 1)

    def inverse_shape(self, shape: Any) -> Any:
        """Return the shape of the arguments."""
        return (*shape[:-1], shape[-1] - 1)


class IndependentTransform(Transform):
    """A transform whose last axes are one event: its logarithms are added."""

    def __init__(self, base_transform: Transform, reinterpreted_batch_ndims: int, cache_size: int = 0):
        super().__init__(cache_size)
        self.base_transform, self.reinterpreted_batch_ndims = base_transform, reinterpreted_batch_ndims
        self.bijective = base_transform.bijective

    sign = property(lambda self: self.base_transform.sign)
    domain = property(lambda self: constraints.independent(self.base_transform.domain, self.reinterpreted_batch_ndims))
    codomain = property(
        lambda self: constraints.independent(self.base_transform.codomain, self.reinterpreted_batch_ndims)
    )

    def _call(self, x: Tensor) -> Tensor:
        return self.base_transform(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return self.base_transform.invert(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """Return the sums of the logarithms over each event."""
        return sum_last(self.base_transform.log_abs_det_jacobian(x, y), self.reinterpreted_batch_ndims)

    def forward_shape(self, shape: Any) -> Any:
        """Return the shape of the values."""
        return self.base_transform.forward_shape(shape)

    def inverse_shape(self, shape: Any) -> Any:
        """Return the shape of the arguments."""
        return self.base_transform.inverse_shape(shape)

    def _settings(self) -> tuple:
        return (self.base_transform, self.reinterpreted_batch_ndims)


class ComposeTransform(Transform):
    """Transforms one after the other.

    >>> ComposeTransform([AffineTransform(0.0, 2.0), ExpTransform()])(0.0)
    tensor(1.)
    """

    def __init__(self, parts: list[Transform], cache_size: int = 0):
        super().__init__(cache_size)
        self.parts = list(parts)
        self.bijective = all(p.bijective for p in self.parts)

    sign = property(lambda self: math.prod(p.sign for p in self.parts))
    domain = property(lambda self: self._widen(self.parts[0].domain, self._event_dims()[0]))
    codomain = property(lambda self: self._widen(self.parts[-1].codomain, self._event_dims()[1]))

    def _event_dims(self) -> tuple[int, int]:
        """Return how many axes an event has before and after all parts."""
        before = 0
        for part in reversed(self.parts):
            before = max(part.domain.event_dim, before + part.domain.event_dim - part.codomain.event_dim)
        after = before
        for part in self.parts:
            after += part.codomain.event_dim - part.domain.event_dim
        return before, after

    def _widen(self, constraint: Any, n: int) -> Any:
        return constraints.independent(constraint, n - constraint.event_dim) if n > constraint.event_dim else constraint

    def _call(self, x: Tensor) -> Tensor:
        for part in self.parts:
            x = part(x)
        return x

    def _inverse(self, y: Tensor) -> Tensor:
        for part in reversed(self.parts):
            y = part.invert(y)
        return y

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """Return the sum of the parts' logarithms, for each event."""
        total: Any = zeros_like(sum_last(x, self.domain.event_dim)) if not self.parts else 0.0
        n = self._event_dims()[0] if self.parts else 0
        for i, part in enumerate(self.parts):
            after = y if i == len(self.parts) - 1 else part(x)
            total = total + sum_last(part.log_abs_det_jacobian(x, after), n - part.domain.event_dim)
            n += part.codomain.event_dim - part.domain.event_dim
            x = after
        return total

    def forward_shape(self, shape: Any) -> Any:
        """Return the shape of the values."""
        for part in self.parts:
            shape = part.forward_shape(shape)
        return shape

    def inverse_shape(self, shape: Any) -> Any:
        """Return the shape of the arguments."""
        for part in reversed(self.parts):
            shape = part.inverse_shape(shape)
        return shape

    def _settings(self) -> tuple:
        return (self.parts,)


identity_transform = ComposeTransform([])

__all__ = [
    "AbsTransform", "AffineTransform", "ComposeTransform", "ExpTransform", "IndependentTransform", "PowerTransform",
    "SigmoidTransform", "SoftmaxTransform", "SoftplusTransform", "StickBreakingTransform", "TanhTransform", "Transform",
    "identity_transform",
]  # fmt: skip
