"""What distributions share: shapes, checks of parameters and values, draws without history, numbers as tensors."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from fad.core.tracing.tracer import Tracer
from fad.eager.core.mode import no_grad
from fad.eager.distributions.constraints import Constraint
from fad.eager.ops import functions as f
from fad.eager.ops.creation import as_tensor, get_default_dtype
from fad.eager.ops.shaping import broadcast_tensors
from fad.eager.rng import generator
from fad.eager.tensor import Size, Tensor

EULER = 0.57721566490153286060  # the constant of Euler and Mascheroni
LOG_ROOT = 0.5 * math.log(2.0 * math.pi)


class Distribution:
    """What distributions share: `log_prob`, draws by `sample` and, where gradients flow through them, `rsample`.

    `arg_constraints` names the parameters, which are attributes, and says which values they may have.

    >>> import fad.eager as torch
    >>> isinstance(torch.distributions.Normal(0.0, 1.0), Distribution)
    True
    """

    arg_constraints: ClassVar[dict[str, Constraint]] = {}
    support: Any = None
    has_rsample = False
    has_enumerate_support = False
    _validate_args = True

    def __init__(self, batch_shape: Any = (), event_shape: Any = (), validate_args: bool | None = None):
        self._batch_shape, self._event_shape = Size(batch_shape), Size(event_shape)
        self._validate_args = self._is_checked(validate_args)
        if self._validate_args:
            for name, constraint in self.arg_constraints.items():
                if name in vars(self) and not _holds(constraint, vars(self)[name]):
                    raise ValueError(
                        f"{type(self).__name__} needs {constraint} as {name}, not {vars(self)[name].detach()}"
                    )

    def _is_checked(self, validate_args: bool | None) -> bool:
        return self._validate_args if validate_args is None else validate_args

    def _as_value(self, x: Any) -> Tensor:
        """Return a number as a tensor of the parameters' dtype, and a tensor as it is."""
        if isinstance(x, Tensor):
            return x
        like = next((p.dtype for p in vars(self).values() if isinstance(p, Tensor)), get_default_dtype())
        return as_tensor(x, like)

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Check parameters and values from now on, or do not."""
        Distribution._validate_args = bool(value)

    batch_shape = property(lambda self: self._batch_shape)
    event_shape = property(lambda self: self._event_shape)
    stddev = property(lambda self: f.sqrt(self.variance))

    @property
    def mean(self) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__} has no mean here")

    @property
    def mode(self) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__} has no mode here")

    @property
    def variance(self) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__} has no variance here")

    def expand(self, batch_shape: Any) -> Any:
        """Return the same distribution with its parameters expanded to a batch shape."""
        new = copy.copy(self)
        for name, constraint in self.arg_constraints.items():
            x = vars(self).get(name)
            if isinstance(x, Tensor):
                setattr(new, name, x.expand(*batch_shape, *x.shape[x.ndim - constraint.event_dim :]))
        new._batch_shape = Size(batch_shape)
        return new

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """Draw, so that gradients flow to the parameters, where the distribution can."""
        raise NotImplementedError(f"{type(self).__name__} has no draws with gradients here: use sample()")

    @no_grad()
    def sample(self, sample_shape: Any = ()) -> Tensor:
        """Draw, without history."""
        return self.rsample(sample_shape)

    def log_prob(self, value: Any) -> Tensor:
        """Return the logarithm of the density, or of the probability, of values in the support."""
        value = self._as_value(value)
        self._validate_sample(value)
        return self._log_density(value)

    def _log_density(self, value: Tensor) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__} has no log_prob here")

    def cdf(self, value: Any) -> Tensor:
        """Return the probability of values up to this one."""
        raise NotImplementedError(f"{type(self).__name__} has no cdf here")

    def icdf(self, value: Any) -> Tensor:
        """Return the value up to which this is the probability."""
        raise NotImplementedError(f"{type(self).__name__} has no icdf here")

    def entropy(self) -> Tensor:
        """Return the entropy, in nats."""
        raise NotImplementedError(f"{type(self).__name__} has no entropy here")

    def perplexity(self) -> Tensor:
        """Return the exponential of the entropy."""
        return f.exp(self.entropy())

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """Return all values that there are, along a first axis."""
        raise NotImplementedError(f"{type(self).__name__} has no list of its values here")

    def _validate_sample(self, value: Tensor) -> None:
        if self._validate_args and self.support is not None and not _holds(self.support, value):
            raise ValueError(
                f"log_prob of {type(self).__name__} needs {self.support}, not {value.detach()}; with "
                "validate_args=False values are not checked"
            )

    def _extended_shape(self, sample_shape: Any = ()) -> Size:
        return Size((*sample_shape, *self._batch_shape, *self._event_shape))

    def _put_values(self, values: Tensor, expand: bool) -> Tensor:
        """Return values (n, *event) with the batch's axes after the first: as ones, or expanded."""
        ones = (1,) * len(self._batch_shape)
        values = values.reshape(len(values), *ones, *values.shape[1:])
        return values.expand(len(values), *self._batch_shape, *self._event_shape) if expand else values

    def __repr__(self) -> str:
        found = {name: vars(self)[name] for name in self.arg_constraints if isinstance(vars(self).get(name), Tensor)}
        shown = (f"{name}: {x.item() if x.numel() == 1 else x.shape}" for name, x in found.items())
        return f"{type(self).__name__}({', '.join(shown)})"


def _holds(constraint: Constraint, x: Any) -> bool:
    """Return whether all values of a tensor fulfil a constraint."""
    return not isinstance(x, Tensor) or is_true(constraint.check(x).value)


def is_true(conditions: Any) -> bool:
    """Return whether all conditions are true, or cannot be known as the values are not there yet."""
    return type(conditions) is Tracer or bool(np.all(conditions))


def as_parameter(x: Any) -> Tensor:
    """Return a number as a tensor of the default dtype, and a tensor as it is."""
    return x if isinstance(x, Tensor) else as_tensor(x, get_default_dtype())


def as_parameters(*xs: Any) -> list[Tensor]:
    """Return numbers and tensors as tensors of one shape and of the dtype of those that are real tensors already."""
    real = [x.dtype for x in xs if isinstance(x, Tensor) and x.dtype.kind == "f"]
    dtype = np.result_type(*real) if real else get_default_dtype()
    return list(broadcast_tensors(*(as_tensor(x, dtype) for x in xs)))


def draw(make: Callable[[tuple], Any], shape: Any, like: Tensor) -> Tensor:
    """Return what a function of a shape draws, in the dtype of a tensor."""
    return Tensor(np.asarray(make(tuple(shape)), like.dtype))


def draw_uniform(shape: Any, like: Tensor) -> Tensor:
    """Draw numbers strictly between 0 and 1."""
    eps = float(np.finfo(like.dtype).eps)
    return draw(lambda shape: np.clip(generator().random(shape), eps, 1.0 - eps), shape, like)


def as_plain(x: Tensor) -> np.ndarray:
    """Return the numbers of a tensor, in double precision, for draws that have no derivative."""
    return np.asarray(x.detach(), np.float64)


def sum_last(x: Tensor, n: int) -> Tensor:
    """Return the sums over the last n axes."""
    return x.sum(list(range(-n, 0))) if n else x


def log_beta(*parameters: Tensor) -> Tensor:
    """Return the logarithm of the beta function of two numbers."""
    a, b = parameters
    return f.lgamma(a) + f.lgamma(b) - f.lgamma(a + b)


def keep_inside(p: Tensor) -> Tensor:
    """Return probabilities a little away from 0 and 1, so that they have logarithms."""
    eps = float(np.finfo(p.dtype).eps)
    return f.clamp(p, eps, 1.0 - eps)
