"""Activations as modules, for `Sequential`. Each is the function of the same name in `fad.nn.functional`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fad.nn import functional as F
from fad.nn import init
from fad.nn.module import Module
from fad.typing import Array, DTypeLike


class Activation(Module):
    """What activations share: a function, and the names of its settings."""

    function: Callable
    settings: tuple[str, ...] = ()

    def forward(self, x: Array) -> Array:
        return type(self).function(x, *[getattr(self, name) for name in self.settings])

    def extra_repr(self) -> str:
        return ", ".join(f"{name}={getattr(self, name)!r}" for name in self.settings)


class ReLU(Activation):
    """max(x, 0).

    >>> fad.nn.ReLU()(np.array([-1.0, 0.0, 2.0]))
    array([0., 0., 2.])
    """

    function = F.relu


class ReLU6(Activation):
    """x clipped to [0, 6].

    >>> fad.nn.ReLU6()(np.array([-1.0, 0.0, 7.0]))
    array([0., 0., 6.])
    """

    function = staticmethod(F.relu6)


class Tanh(Activation):
    """The hyperbolic tangent.

    >>> fad.nn.Tanh()(np.array([-1.0, 0.0, 2.0])).round(3)
    array([-0.762,  0.   ,  0.964])
    """

    function = staticmethod(F.tanh)


class Sigmoid(Activation):
    """The logistic function.

    >>> fad.nn.Sigmoid()(np.array([-1.0, 0.0, 2.0])).round(3)
    array([0.269, 0.5  , 0.881])
    """

    function = F.sigmoid


class LogSigmoid(Activation):
    """The logarithm of the logistic function.

    >>> fad.nn.LogSigmoid()(np.array([-1.0, 0.0, 2.0])).round(3)
    array([-1.313, -0.693, -0.127])
    """

    function = staticmethod(F.log_sigmoid)


class Hardsigmoid(Activation):
    """relu6(x + 3) / 6.

    >>> fad.nn.Hardsigmoid()(np.array([-4.0, 0.0, 4.0]))
    array([0. , 0.5, 1. ])
    """

    function = staticmethod(F.hardsigmoid)


class SiLU(Activation):
    """x times the logistic function of x.

    >>> fad.nn.SiLU()(np.array([-1.0, 0.0, 2.0])).round(3)
    array([-0.269,  0.   ,  1.762])
    """

    function = staticmethod(F.silu)


class Hardswish(Activation):
    """x relu6(x + 3) / 6.

    >>> fad.nn.Hardswish()(np.array([-4.0, 0.0, 4.0]))
    array([-0.,  0.,  4.])
    """

    function = staticmethod(F.hardswish)


class Mish(Activation):
    """x tanh(softplus(x)).

    >>> fad.nn.Mish()(np.array([-1.0, 0.0, 2.0])).round(3)
    array([-0.303,  0.   ,  1.944])
    """

    function = staticmethod(F.mish)


class Softplus(Activation):
    """``log(1 + exp(beta x)) / beta``.

    >>> fad.nn.Softplus()(np.array([-1.0, 0.0, 2.0])).round(3)
    array([0.313, 0.693, 2.127])
    """

    function = staticmethod(F.softplus)
    settings = ("beta",)

    def __init__(self, beta: float = 1.0):
        self.beta = beta


class Softsign(Activation):
    """``x / (1 + |x|)``.

    >>> fad.nn.Softsign()(np.array([-1.0, 0.0, 3.0]))
    array([-0.5 ,  0.  ,  0.75])
    """

    function = staticmethod(F.softsign)


class SELU(Activation):
    """The self-normalising ELU.

    >>> fad.nn.SELU()(np.array([-1.0, 0.0, 2.0])).round(3)
    array([-1.111,  0.   ,  2.101])
    """

    function = staticmethod(F.selu)


class ELU(Activation):
    """x where it is positive, else ``alpha (exp(x) - 1)``.

    >>> fad.nn.ELU()(np.array([-1.0, 0.0, 2.0])).round(3)
    array([-0.632,  0.   ,  2.   ])
    """

    function = staticmethod(F.elu)
    settings = ("alpha",)

    def __init__(self, alpha: float = 1.0):
        self.alpha = alpha


class CELU(ELU):
    """x where it is positive, else ``alpha (exp(x / alpha) - 1)``.

    >>> fad.nn.CELU()(np.array([-1.0, 0.0, 2.0])).round(3)
    array([-0.632,  0.   ,  2.   ])
    """

    function = staticmethod(F.celu)


class LeakyReLU(Activation):
    """x where it is positive, else ``negative_slope x``.

    >>> fad.nn.LeakyReLU()(np.array([-1.0, 0.0, 2.0]))
    array([-0.01,  0.  ,  2.  ])
    """

    function = staticmethod(F.leaky_relu)
    settings = ("negative_slope",)

    def __init__(self, negative_slope: float = 0.01):
        self.negative_slope = negative_slope


class PReLU(Activation):
    """x where it is positive, else weight times x, with a weight to learn: one, or one per channel (axis 1).

    >>> fad.nn.PReLU()(np.array([-1.0, 0.0, 2.0]))
    array([-0.25,  0.  ,  2.  ])
    """

    function = staticmethod(F.prelu)
    settings = ("weight",)

    def __init__(self, num_parameters: int = 1, init_value: float = 0.25, *, dtype: DTypeLike | None = None):
        self.weight = init.constant(init_value, (num_parameters,), dtype)

    def extra_repr(self) -> str:
        return f"num_parameters={self.weight.size}"


class Hardtanh(Activation):
    """x clipped to [min_val, max_val].

    >>> fad.nn.Hardtanh()(np.array([-4.0, 0.5, 4.0]))
    array([-1. ,  0.5,  1. ])
    """

    function = staticmethod(F.hardtanh)
    settings = ("min_val", "max_val")

    def __init__(self, min_val: float = -1.0, max_val: float = 1.0):
        self.min_val = min_val
        self.max_val = max_val


class GELU(Activation):
    """x times the normal distribution function of x.

    >>> fad.nn.GELU()(np.array([-1.0, 0.0, 2.0])).round(3)
    array([-0.159,  0.   ,  1.954])
    """

    function = staticmethod(F.gelu)
    settings = ("approximate",)

    def __init__(self, approximate: str = "none"):
        self.approximate = approximate


class Softmax(Activation):
    """exp(x) / sum(exp(x)) along an axis.

    >>> fad.nn.Softmax()(np.array([0.0, 0.0]))
    array([0.5, 0.5])
    """

    function = staticmethod(F.softmax)
    settings = ("axis",)

    def __init__(self, axis: int = -1):
        self.axis = axis


class LogSoftmax(Softmax):
    """The logarithm of `Softmax`.

    >>> fad.nn.LogSoftmax()(np.array([0.0, 0.0])).round(3)
    array([-0.693, -0.693])
    """

    function = staticmethod(F.log_softmax)


class GLU(Softmax):
    """The first half of x along an axis, times the logistic function of the second half.

    >>> fad.nn.GLU()(np.array([3.0, 0.0]))
    array([1.5])
    """

    function = staticmethod(F.glu)


class Softmin(Softmax):
    """`Softmax` of -x.

    >>> fad.nn.Softmin()(np.array([0.0, 0.0]))
    array([0.5, 0.5])
    """

    function = staticmethod(F.softmin)


class Softmax2d(Activation):
    """`Softmax` over the channels of images, (batch, channels, height, width) or one without the batch.

    >>> fad.nn.Softmax2d()(np.zeros((1, 2, 1, 1))).ravel()
    array([0.5, 0.5])
    """

    def forward(self, x: Array) -> Array:
        if x.ndim not in (3, 4):
            raise ValueError(f"Softmax2d needs images, of shape (batch, channels, height, width), not {x.shape}")
        return F.softmax(x, -3)


class Tanhshrink(Activation):
    """``x - tanh(x)``.

    >>> fad.nn.Tanhshrink()(np.array([-1.0, 0.0, 2.0])).round(3)
    array([-0.238,  0.   ,  1.036])
    """

    function = staticmethod(F.tanhshrink)


class Hardshrink(Activation):
    """x where its size is larger than `lambd`, else 0.

    >>> fad.nn.Hardshrink()(np.array([-1.0, 0.2, 2.0]))
    array([-1.,  0.,  2.])
    """

    function = staticmethod(F.hardshrink)
    settings = ("lambd",)

    def __init__(self, lambd: float = 0.5):
        self.lambd = lambd


class Softshrink(Hardshrink):
    """x brought closer to 0 by `lambd`, and 0 where it is closer than that.

    >>> fad.nn.Softshrink()(np.array([-1.0, 0.2, 2.0]))
    array([-0.5,  0. ,  1.5])
    """

    function = staticmethod(F.softshrink)


class Threshold(Activation):
    """x where it is larger than a threshold, else `value`.

    >>> fad.nn.Threshold(1.0, 9.0)(np.array([-1.0, 0.0, 2.0]))
    array([9., 9., 2.])
    """

    function = staticmethod(F.threshold)
    settings = ("threshold", "value")

    def __init__(self, threshold: float, value: float):
        self.threshold = threshold
        self.value = value


class Identity(Module):
    """x itself.

    >>> fad.nn.Identity()(np.array([1.0, 2.0]))
    array([1., 2.])
    """

    def forward(self, x: Array) -> Array:
        return x


class Flatten(Module):
    """The axes from `start` to `end` in one.

    >>> fad.nn.Flatten()(np.ones((2, 3, 4))).shape
    (2, 12)
    """

    def __init__(self, start: int = 1, end: int = -1):
        self.start = start
        self.end = end

    def forward(self, x: Array) -> Array:
        after = x.shape[self.end % x.ndim + 1 :]
        return x.reshape(*x.shape[: self.start % x.ndim], -1, *after)


class Unflatten(Module):
    """An axis split into several, of which one may be -1.

    >>> import numpy as np
    >>> Unflatten(1, (2, -1))(np.ones((5, 6))).shape
    (5, 2, 3)
    """

    def __init__(self, axis: int, sizes: Sequence[int]):
        self.axis = axis
        self.sizes = tuple(sizes)

    def forward(self, x: Array) -> Array:
        axis = self.axis % x.ndim
        return x.reshape((*x.shape[:axis], *self.sizes, *x.shape[axis + 1 :]))

    def extra_repr(self) -> str:
        return f"{self.axis}, {self.sizes}"
