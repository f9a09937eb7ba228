"""The other names that PyTorch has for things: synonyms, methods that change in place, NumPy's words for arguments,
and questions about dtypes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fad.backends.counterparts import with_notes
from fad.eager.core.inplace import assign, in_place
from fad.eager.core.mode import enable_grad
from fad.eager.core.records import is_leaf, name_user_line
from fad.eager.core.views import move_views, note_view, set_node
from fad.eager.errors import InPlaceError
from fad.eager.ops import functions, shaping
from fad.eager.ops.copies import TYPES
from fad.eager.ops.creation import as_tensor, tensor
from fad.eager.ops.operators import common_dtype, convert
from fad.eager.rng import generator
from fad.eager.tensor import Size, Tensor, add_methods, memory

# --- synonyms -------------------------------------------------------------------------------------------------------

_SYNONYMS = {
    "absolute": "abs", "arccos": "acos", "arccosh": "acosh", "arcsin": "asin", "arcsinh": "asinh", "arctan": "atan",
    "arctan2": "atan2", "arctanh": "atanh", "clip": "clamp", "divide": "div", "fix": "trunc", "ger": "outer",
    "greater": "gt", "greater_equal": "ge", "less": "lt", "less_equal": "le", "moveaxis": "movedim", "multiply": "mul",
    "negative": "neg", "not_equal": "ne", "ravel": "flatten", "subtract": "sub", "true_divide": "div",
    "row_stack": "vstack", "trapz": "trapezoid",
}  # fmt: skip
_MODULES = (functions, shaping)


def _find(name: str) -> Any:
    return next(getattr(module, name) for module in _MODULES if hasattr(module, name))


# --- NumPy's words for arguments ------------------------------------------------------------------------------------

_WORDS = {"axis": "dim", "keepdims": "keepdim"}
_OVER_AXES = (
    "sum", "mean", "prod", "var", "std", "max", "min", "amax", "amin", "argmax", "argmin", "any", "all", "norm",
    "cumsum", "cumprod", "logsumexp", "softmax", "log_softmax", "squeeze", "unsqueeze", "sort", "argsort", "topk",
    "median", "quantile", "gather", "index_select", "split", "chunk", "unbind", "diff", "cat", "stack", "nansum",
    "nanmean", "count_nonzero", "std_mean", "var_mean", "kthvalue", "flatten",
)  # fmt: skip


_NOT_OF_NUMBERS = (
    "cat", "chunk", "diff", "flatten", "gather", "index_select", "log_softmax", "softmax", "split", "squeeze", "stack",
    "unbind", "unsqueeze",
)  # fmt: skip
_NEED_AN_AXIS = ("argsort", "kthvalue", "sort", "topk")


def _in_words(fun: Callable) -> Callable:
    """Let a function take NumPy's words for its arguments too."""

    def call(*args, **kwargs):
        if "axis" in kwargs or "keepdims" in kwargs:
            kwargs = {_WORDS.get(k, k): v for k, v in kwargs.items()}
        return fun(*args, **kwargs)

    call.__name__ = call.__qualname__ = fun.__name__
    call.__doc__ = fun.__doc__
    return with_notes(call, __wrapped__=fun)  # its signature is that of `fun`


# --- logic on whole numbers -----------------------------------------------------------------------------------------


def _bits(name: str, fun: Callable) -> Callable:
    def call(input, other):
        x, y = (v.value if isinstance(v, Tensor) else v for v in (input, other))
        return Tensor(np.asarray(fun(x, y)))

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"Return NumPy's {fun.__name__} of whole numbers; it has no derivative."
    return call


_PLAIN = {
    "bitwise_and": np.bitwise_and, "bitwise_or": np.bitwise_or, "bitwise_xor": np.bitwise_xor, "gcd": np.gcd,
    "bitwise_left_shift": np.left_shift, "bitwise_right_shift": np.right_shift, "lcm": np.lcm,
}  # fmt: skip


def bitwise_not(input: Tensor) -> Tensor:
    """Return whole numbers with all bits turned round."""
    return Tensor(np.invert(input.value))


def signbit(input: Tensor) -> Tensor:
    """Return where elements are negative, -0 too."""
    return Tensor(np.signbit(np.asarray(input.detach())))


def isposinf(input: Tensor) -> Tensor:
    """Return where elements are infinite."""
    return Tensor(np.isposinf(np.asarray(input.detach())))


def isneginf(input: Tensor) -> Tensor:
    """Return where elements are minus infinity."""
    return Tensor(np.isneginf(np.asarray(input.detach())))


def isreal(input: Tensor) -> Tensor:
    """Return where elements have no imaginary part."""
    return Tensor(np.isreal(np.asarray(input.detach())))


# --- dtypes and shapes ----------------------------------------------------------------------------------------------

finfo, iinfo, newaxis = np.finfo, np.iinfo, None
dtype, short, cfloat, cdouble = np.dtype, np.dtype("int16"), np.dtype("complex64"), np.dtype("complex128")
asarray, scalar_tensor = as_tensor, tensor


def is_floating_point(input: Tensor) -> bool:
    """Return whether a tensor holds real floating-point numbers."""
    return input.dtype.kind == "f"


def is_complex(input: Tensor) -> bool:
    """Return whether a tensor holds complex numbers."""
    return input.dtype.kind == "c"


def is_nonzero(input: Tensor) -> bool:
    """Return whether the one element of a tensor is not zero."""
    return bool(input)


def broadcast_shapes(*shapes: Any) -> Any:
    """Return the shape to which shapes broadcast."""
    return Size(np.broadcast_shapes(*(tuple(s) if isinstance(s, (tuple, list)) else s for s in shapes)))


def result_type(tensor1: Any, tensor2: Any) -> np.dtype:
    """Return the dtype of a sum of both."""
    return common_dtype(*(x if isinstance(x, Tensor) else tensor(x) for x in (tensor1, tensor2)))


def promote_types(type1: Any, type2: Any) -> np.dtype:
    """Return the least dtype that holds both; whole and real numbers together have the real one's."""
    a, b = np.dtype(type1), np.dtype(type2)
    floats = [t for t in (a, b) if t.kind in "fc"]
    return floats[0] if len(floats) == 1 else np.promote_types(a, b)


class TensorType:
    """A type of tensors by their dtype, as ``torch.FloatTensor``: it makes them, and ``x.type`` takes it.

    >>> import fad.eager as torch
    >>> torch.FloatTensor([1, 2]), torch.ones(1).type(torch.LongTensor)
    (tensor([1., 2.]), tensor([1]))
    >>> isinstance(torch.ones(1), torch.FloatTensor)
    True
    """

    def __init__(self, name: str):
        self.__name__, self.dtype = f"{name}Tensor", np.dtype(TYPES[name])

    def __call__(self, data: Any = (), *sizes: int) -> Tensor:
        """Return a tensor of data, or zeros of a shape."""
        if isinstance(data, int) or sizes:
            return Tensor(np.zeros((data, *sizes), self.dtype))
        return tensor(data, dtype=self.dtype)

    def __instancecheck__(self, x: Any) -> bool:
        return isinstance(x, Tensor) and x.dtype == self.dtype

    def __repr__(self) -> str:
        return f"<type of tensors torch.{self.__name__}>"


FloatTensor, DoubleTensor, HalfTensor, BoolTensor = map(TensorType, ("Float", "Double", "Half", "Bool"))
LongTensor, IntTensor, ShortTensor, CharTensor, ByteTensor = map(TensorType, ("Long", "Int", "Short", "Char", "Byte"))


def detach(input: Tensor) -> Tensor:
    """Return a tensor without history that shares the memory."""
    return input.detach()


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Do nothing: what runs here is deterministic."""


def compile(model: Any = None, **options: Any) -> Any:
    """Return the function or module as it is: this API runs programs as they are written. See `fad.jit`."""
    return (lambda fun: fun) if model is None else model


# --- in place -------------------------------------------------------------------------------------------------------

_IN_PLACE = (
    "acos", "acosh", "addbmm", "addcdiv", "addcmul", "addmm", "addmv", "addr", "asin", "asinh", "atan", "atan2",
    "atanh", "baddbmm", "clamp_max", "clamp_min", "clip", "copysign", "cosh", "cumprod", "cumsum", "deg2rad",
    "digamma", "divide", "erf", "erfc", "erfinv", "exp2", "expm1", "float_power", "floor_divide", "frac", "index_add",
    "index_copy", "index_fill", "index_put", "lerp", "lgamma", "log10", "log1p", "log2", "logical_and", "logical_not",
    "logical_or", "logical_xor", "logit", "masked_scatter", "multiply", "nan_to_num", "negative", "rad2deg", "renorm",
    "round", "scatter", "scatter_add", "scatter_reduce", "sgn", "sign", "sinc", "sinh", "subtract", "tan", "tril",
    "triu", "true_divide", "trunc", "xlogy",
)  # fmt: skip


def _reshape(name: str) -> Callable:
    """Return the method that gives a tensor itself another shape."""

    def method(self, *args):
        if is_leaf(self.node) and self.node is not None:
            raise InPlaceError(f"a leaf that requires grad was to get another shape in place: write y = x.{name}(...)")
        old = Tensor(memory(self), self.node)
        with enable_grad():  # the elements stay, and so does their history
            new = name_user_line(getattr(old, name)(*args))
        if new is not old:
            move_views(self, old)
            self.value = new.value
            self._above = new._above
            note_view(self, old)
            set_node(self, new.node)
        return self

    method.__doc__ = f"Do `{name}` on the tensor itself, and return it."
    return method


def fill_diagonal_(self: Tensor, fill_value: float) -> Tensor:
    """Put a value on the diagonal, and return the tensor."""
    places = np.arange(int(np.min(self.shape)))
    assign(self, (places,) * self.ndim, fill_value)
    return self


def _draw(draw: Callable) -> Callable:
    def method(self, *args):
        return self.copy_(Tensor(np.asarray(draw(self.value.shape, *args)).astype(self.dtype)))

    method.__doc__ = "Fill with random numbers, and return the tensor."
    return method


def _whole(shape: tuple, low: int = 0, high: int | None = None) -> np.ndarray:
    low, high = (0, low) if high is None and low else (low, high)
    return generator().integers(low, 2**24 if high is None else high, shape)


def _install() -> None:
    names = globals()
    for name, other in _SYNONYMS.items():
        names[name] = _find(other)
        if hasattr(Tensor, other):
            setattr(Tensor, name, getattr(Tensor, other))
    for name, fun in _PLAIN.items():
        names[name] = _bits(name, fun)
        setattr(Tensor, name, names[name])
    for name in _OVER_AXES:
        fun = _find(name)
        fun = fun if name in _NOT_OF_NUMBERS else functions.of_numbers(fun, name in _NEED_AN_AXIS)
        names[name] = _in_words(fun)
        if hasattr(Tensor, name):
            setattr(Tensor, name, names[name])
    for name in ("bitwise_not", "signbit", "isposinf", "isneginf", "is_nonzero"):
        setattr(Tensor, name, names[name])
    add_methods(baddbmm=functions.baddbmm, addmm=functions.addmm)
    for name in _IN_PLACE:
        setattr(Tensor, f"{name}_", in_place(getattr(Tensor, name)))
    for name in ("squeeze", "unsqueeze", "t", "transpose", "swapaxes", "swapdims"):
        setattr(Tensor, f"{name}_", _reshape(name))
    add_methods(
        fill_diagonal_=fill_diagonal_,
        exponential_=_draw(lambda shape, lambd=1.0: generator().exponential(1.0 / lambd, shape)),
        geometric_=_draw(lambda shape, p: generator().geometric(p, shape)),
        log_normal_=_draw(lambda shape, mean=1.0, std=2.0: generator().lognormal(mean, std, shape)),
        cauchy_=_draw(lambda shape, median=0.0, sigma=1.0: median + sigma * generator().standard_cauchy(shape)),
        random_=_draw(_whole),
    )


def _questions() -> None:
    """Give tensors what programs ask of them, and of where they are."""
    add_methods(
        is_cuda=False,
        is_sparse=False,
        is_quantized=False,
        is_meta=False,
        is_cpu=True,
        H=property(lambda self: self.mT.conj()),
        mH=property(lambda self: self.mT.conj()),
        adjoint=lambda self: self.mT.conj(),
        itemsize=property(lambda self: self.dtype.itemsize),
        nbytes=property(lambda self: self.value.nbytes),
        stride=lambda self, dim=None: _steps(self) if dim is None else _steps(self)[dim],
        get_device=lambda self: -1,
        pin_memory=lambda self, *_: self,
        share_memory_=lambda self, *_: self,
        resolve_conj=lambda self, *_: self,
        resolve_neg=lambda self, *_: self,
    )
    kinds = {"short": "int16", "char": "int8", "byte": "uint8", "cdouble": "complex128", "cfloat": "complex64"}
    for name, dtype in kinds.items():
        add_methods(**{name: lambda self, dtype=dtype: convert(self, np.dtype(dtype))})
    add_methods(
        where=lambda self, condition, other: functions.where(condition, self, other),
        is_same_size=lambda self, other: self.shape == other.shape,
        is_signed=lambda self: self.dtype.kind in "ifc",
        sum_to_size=lambda self, *size: _sum_to(self, size[0] if isinstance(size[0], (tuple, list)) else size),
        broadcast_to=lambda self, *size: self.expand(*size),
        split_with_sizes=lambda self, sizes, dim=0: self.split(list(sizes), dim),
    )


def _steps(x: Tensor) -> tuple:
    return tuple(n // x.dtype.itemsize for n in np.asarray(x.detach()).strides)


def _sum_to(x: Tensor, shape: Any) -> Tensor:
    lead = x.ndim - len(shape)
    axes = [i for i, n in enumerate(x.shape) if i < lead or (shape[i - lead] == 1 and n != 1)]
    return name_user_line((x.sum(axes, keepdim=True) if axes else x).reshape(tuple(shape)))


_install()
_questions()

__all__ = [
    *_SYNONYMS, *_PLAIN, *_OVER_AXES,
    "BoolTensor", "ByteTensor", "CharTensor", "DoubleTensor", "FloatTensor", "HalfTensor",
    "IntTensor", "LongTensor", "ShortTensor", "asarray", "bitwise_not", "broadcast_shapes", "cdouble", "cfloat",
    "compile", "detach", "dtype", "finfo", "iinfo", "is_complex", "is_floating_point", "is_nonzero", "isneginf",
    "isposinf", "isreal", "newaxis", "promote_types", "result_type", "scalar_tensor", "short", "signbit",
    "use_deterministic_algorithms",
]  # fmt: skip
