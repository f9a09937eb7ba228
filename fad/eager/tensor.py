"""``Tensor``: a value and the record that it came from. Everything about shapes and numbers is the value's business."""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from fad import tree
from fad.backends import is_numpy, is_numpy_scalar
from fad.core.primitives.primitive import Primitive
from fad.core.tracing.numpy_dispatch import UFUNCS
from fad.core.tracing.tracer import Tracer, bind
from fad.core.tracing.values import strip_derivatives
from fad.eager.core.engine import EagerTrace, lift
from fad.eager.core.mode import is_recording, visible
from fad.eager.core.node import KEEPER, PREHOOK, Handle, Node, add_hook, node_of
from fad.eager.core.records import is_leaf, name_user_line, new_leaf, root
from fad.eager.devices import HOST, device
from fad.eager.errors import BackwardError, IntegerTensorError, RequiresGradError
from fad.eager.tensor_repr import show
from fad.errors import BatchedValueError, NonScalarOutputError, ShapeMismatchError, TracerConversionError

float32 = np.dtype("float32")
int64 = np.dtype("int64")


class Size(tuple):
    """A shape; prints as PyTorch's."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"torch.Size({list(self)})"

    def numel(self) -> int:
        n = 1
        for d in self:
            n *= d
        return n


_CONTAINERS = (list, tuple, dict)
_SPECIAL = frozenset((list, tuple, int, Tracer))


def _numbers(data: Any) -> Any:
    if isinstance(data, (list, tuple)):
        return [_numbers(v) for v in data]
    return data.tolist() if isinstance(data, Tensor) else data


class Tensor:
    """An array with a history; made by :func:`fad.eager.tensor` and related functions, and by operations on tensors."""

    __slots__ = ("value", "node", "_grad", "_kept", "_above", "_views", "__weakref__")

    if TYPE_CHECKING:  # slots, and what `add_methods` puts here
        _grad: Any
        _kept: Any
        _above: Any
        _views: Any

        __getitem__: Callable[..., Any]
        __matmul__: Callable[..., Any]
        __rmatmul__: Callable[..., Any]
        __add__: Callable[..., Any]
        __radd__: Callable[..., Any]
        __sub__: Callable[..., Any]
        __rsub__: Callable[..., Any]
        __mul__: Callable[..., Any]
        __rmul__: Callable[..., Any]
        __truediv__: Callable[..., Any]
        __rtruediv__: Callable[..., Any]
        __floordiv__: Callable[..., Any]
        __rfloordiv__: Callable[..., Any]
        __mod__: Callable[..., Any]
        __rmod__: Callable[..., Any]
        __pow__: Callable[..., Any]
        __rpow__: Callable[..., Any]
        __neg__: Callable[..., Any]
        __abs__: Callable[..., Any]
        __invert__: Callable[..., Any]
        __lt__: Callable[..., Any]
        __le__: Callable[..., Any]
        __gt__: Callable[..., Any]
        __ge__: Callable[..., Any]
        __and__: Callable[..., Any]
        __or__: Callable[..., Any]
        __xor__: Callable[..., Any]
        __setitem__: Callable[..., Any]

        def __getattr__(self, name: str) -> Any: ...

    def __init__(self, value: Any = (), node: Any = None):
        self.value = value
        self.node = node
        if type(value) in _SPECIAL:
            self._fill(value, node)

    def _fill(self, value: Any, node: Any) -> None:
        """Take a traced value, or what programs give in ``torch.Tensor([1, 2])`` and ``torch.Tensor(2, 3)``."""
        if type(value) is Tracer:
            self.value = visible(value)
        else:
            sizes = (value,) if node is None else (value, node)
            self.node = None
            self.value = np.zeros(sizes, float32) if type(value) is int else np.array(_numbers(value), float32)

    # --- what it says of itself -----------------------------------------------------------------------------------

    @property
    def shape(self) -> Size:
        return Size(self.value.shape)

    @property
    def dtype(self) -> np.dtype:
        return self.value.dtype

    @property
    def ndim(self) -> int:
        return self.value.ndim

    @property
    def device(self) -> device:
        return HOST

    @property
    def requires_grad(self) -> bool:
        return self.node is not None

    @requires_grad.setter
    def requires_grad(self, flag: bool) -> None:
        self.requires_grad_(flag)

    def requires_grad_(self, requires_grad: bool = True) -> Tensor:
        """Switch recording on or off for a leaf, and return the tensor.

        Raises IntegerTensorError for integers and booleans, BackwardError if a computed tensor is switched off.
        """
        if requires_grad:
            if self.node is None:
                if self.value.dtype.kind not in "fc":
                    raise IntegerTensorError(
                        f"only floating-point and complex tensors can require grad, but this has dtype {self.dtype}. "
                        "Write torch.tensor(3.0) for torch.tensor(3), or x.float()"
                    )
                self.node = new_leaf(self)
        elif not is_leaf(self.node):
            raise BackwardError(
                "requires_grad can be switched off on leaves only, and this tensor was computed. "
                "Use y.detach() for a tensor without history"
            )
        else:
            self.node = None
        return self

    @property
    def is_leaf(self) -> bool:
        return is_leaf(self.node)

    @property
    def grad_fn(self) -> Node | None:
        return None if is_leaf(self.node) else node_of(self.node)

    # --- gradients --------------------------------------------------------------------------------------------------

    @property
    def grad(self) -> Tensor | None:
        try:
            return self._grad
        except AttributeError:
            if not is_leaf(self.node) and not self.retains_grad:
                warnings.warn(
                    "the .grad of a tensor that is not a leaf was read. It is filled in only if y.retain_grad() was "
                    "called before backward(); for a leaf, read the leaf's",
                    stacklevel=2,
                )
            return None

    @grad.setter
    def grad(self, value: Tensor | None) -> None:
        if value is None:
            if hasattr(self, "_grad"):
                del self._grad
        elif value.shape != self.shape:
            raise ShapeMismatchError(f"the gradient of a tensor of shape {self.shape} cannot have shape {value.shape}")
        else:
            self._grad = value

    @property
    def retains_grad(self) -> bool:
        return hasattr(self, "_kept")

    def retain_grad(self) -> None:
        """Keep the gradient of a computed tensor in ``.grad`` as well; nothing to do for a leaf."""
        if self.node is None:
            raise BackwardError("retain_grad() needs a tensor that requires grad")
        if not is_leaf(self.node) and not self.retains_grad:
            tensor = weakref.ref(self)
            self._kept = add_hook(self.node, lambda g: _keep(tensor(), g), KEEPER)

    def register_hook(self, hook: Callable) -> Handle:
        """Call ``hook(grad)`` when this tensor's gradient is known; what it returns, if not None, replaces it.

        Returns a handle whose ``remove()`` takes the hook away.
        """
        if self.node is None:
            raise BackwardError("register_hook() needs a tensor that requires grad")
        return add_hook(self.node, lambda g: _hook(hook, g))

    # --- without history ----------------------------------------------------------------------------------------------

    def detach(self) -> Tensor:
        """Return a tensor without history that shares this one's memory."""
        return Tensor(strip_derivatives(memory(self)))

    @property
    def data(self) -> Tensor:
        return self.detach()

    @data.setter
    def data(self, new: Tensor) -> None:
        self.value = new.value

    def detach_(self) -> Tensor:
        """Cut this tensor itself off its history, and return it."""
        self.node = None
        self.value = strip_derivatives(self.value)
        return self

    def numpy(self, *, force: bool = False) -> np.ndarray:
        """Return the value as an array that shares memory.

        Raises RequiresGradError if the tensor requires grad, unless `force`.
        """
        if self.node is not None and not force:
            raise RequiresGradError(
                "a tensor that requires grad was to become a NumPy array, which has no history. "
                "Write x.detach().numpy(), or x.detach() where an array is expected"
            )
        return np.asarray(memory(self))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        if type(self.value) is Tracer:
            raise TracerConversionError(
                "a tensor inside a transform was about to become a plain NumPy array, without its derivative. "
                "Use the tensor itself, or fad.stop_gradient(x) for the bare numbers"
            )
        x = self.numpy()
        return x if dtype is None and not copy else np.array(x, dtype=dtype, copy=True if copy is None else copy)

    def item(self) -> Any:
        """Return the one element as a Python number."""
        if self.value.size != 1:
            raise NonScalarOutputError(
                f"item() needs a tensor of one element, but this one has shape {self.shape}: use tolist()"
            )
        value = strip_derivatives(self.value)
        if type(value) is Tracer:
            raise BatchedValueError("a batched tensor inside vmap stands for many numbers: use the tensor itself")
        return value.item() if value.ndim == 0 else value.reshape(()).item()

    def tolist(self) -> Any:
        """Return the elements as Python numbers, in nested lists."""
        value = strip_derivatives(self.value)
        if type(value) is Tracer:
            raise TracerConversionError(
                "the elements of a batched tensor inside vmap have no values of their own: use the tensor itself"
            )
        return value.tolist()

    def __bool__(self) -> bool:
        if self.value.size != 1:
            raise ValueError(f"the truth value of a tensor of shape {self.shape} is ambiguous: use x.any() or x.all()")
        return bool(self.value if self.value.ndim == 0 else self.value.reshape(()))

    def __float__(self) -> float:
        return float(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def __complex__(self) -> complex:
        return complex(self.item())

    def __index__(self) -> int:
        return self.item().__index__()

    def __format__(self, spec: str) -> str:
        return format(self.item(), spec) if spec else repr(self)

    def __contains__(self, x: Any) -> bool:
        return bool(np.any(np.asarray(self.detach()) == (np.asarray(x.detach()) if isinstance(x, Tensor) else x)))

    def __len__(self) -> int:
        if not self.value.ndim:
            raise TypeError("len() of a 0-d tensor")
        return self.value.shape[0]

    def __iter__(self):
        if not self.value.ndim:
            raise TypeError("iteration over a 0-d tensor")
        return (self[i] for i in range(self.value.shape[0]))

    __hash__ = object.__hash__

    def __repr__(self) -> str:
        notes = []
        if not is_leaf(self.node):
            notes = [f"grad_fn=<{node_of(self.node).name()}>"]
        elif self.node is not None:
            notes = ["requires_grad=True"]
        if type(self.value) is Tracer:
            return f"tensor({self.value!r})"
        return show(np.asarray(self.value), notes)

    def __deepcopy__(self, memo: dict) -> Tensor:
        if not is_leaf(self.node):
            raise BackwardError("only leaves can be deep-copied; write y.detach().clone()")
        new = type(self)(np.array(self.value))
        new.requires_grad_(self.requires_grad)
        memo[id(self)] = new
        if hasattr(self, "_grad"):
            new._grad = self._grad.__deepcopy__(memo)
        return new

    def __copy__(self) -> Tensor:
        new = type(self)(self.value)
        new.node = self.node
        return new

    def __reduce_ex__(self, protocol: Any) -> tuple:
        """Pickle a leaf: its numbers, and whether it requires grad; like PyTorch, without its ``.grad``."""
        if not is_leaf(self.node):
            raise BackwardError("only leaves can be pickled; write y.detach()")
        return _remake, (type(self), self.value, self.requires_grad)

    # --- NumPy's protocols ------------------------------------------------------------------------------------------

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if kwargs.get("out") is not None:
            raise TracerConversionError("out= is not for tensors: write y = np.sin(x), or y.copy_(np.sin(x))")
        operation = BY_PRIMITIVE.get(cast(Any, UFUNCS.get(ufunc))) if method == "__call__" and not kwargs else None
        return name_user_line(operation(*inputs)) if operation else through(getattr(ufunc, method), inputs, kwargs)

    @staticmethod
    def __fad_bind__(prim: Primitive, args: tuple, params: dict) -> Any:
        return through(lambda *xs: bind(prim, *xs, **params), args, {})

    def __array_function__(self, func: Callable, types: Any, args: tuple, kwargs: dict) -> Any:
        return through(func, args, kwargs)


def _remake(kind: type, value: Any, requires_grad: bool) -> Tensor:
    return kind(value).requires_grad_(requires_grad)


def add_methods(**methods: Any) -> None:
    """Give tensors methods and properties, which the modules of operations hold."""
    for name, method in methods.items():
        setattr(Tensor, name, method)


def memory(x: Tensor) -> Any:
    """Return the value of a tensor, a single number as an array from now on, so that others can share it."""
    if is_numpy_scalar(x.value):
        x.value = np.asarray(x.value)
    return x.value


class Parameter(Tensor):
    """A leaf that a module learns: ``nn.Parameter(torch.randn(3))`` requires grad and is found by ``parameters()``."""

    __slots__ = ()

    def __init__(self, data: Any = None, requires_grad: bool = True):
        super().__init__(data.value if isinstance(data, Tensor) else np.asarray(data))
        if requires_grad:
            self.requires_grad_()

    def __repr__(self) -> str:
        return "Parameter containing:\n" + super().__repr__()


# Primitive -> the function on tensors that runs it, filled by `fad.eager.ops.operators`.
BY_PRIMITIVE: dict[Primitive, Callable] = {}


def _keep(t: Tensor | None, g: Any) -> None:
    if t is not None:
        old = getattr(t, "_grad", None)
        t._grad = wrap(g if type(g) is Tracer else np.array(g)) if old is None else wrap(lower(old) + g)


def _register_prehook(self: Node, hook: Callable) -> Handle:
    """Call ``hook(grads)`` before the node's rule runs; the tuple that it returns, if not None, takes their place."""

    def run(g):
        new = hook((wrap(g),))
        return None if new is None else lower(new[0])

    return add_hook(self._record, run, PREHOOK)


Node.register_prehook = _register_prehook  # type: ignore[attr-defined]


def _hook(hook: Callable, g: Any) -> Any:
    new = hook(wrap(g))
    return None if new is None else lower(new)


# --- in and out of transforms ---------------------------------------------------------------------------------------


def lower(x: Any) -> Any:
    """Return what stands for a tensor in a transform or in NumPy: a tracer of the eager trace if it has a history."""
    if not isinstance(x, Tensor):
        return x
    return lift(x.value, x.node) if x.node is not None and is_recording() else x.value


def wrap(x: Any) -> Any:
    """Return a tensor for an array or tracer, with its history if it is one of the eager trace."""
    if type(x) is Tracer:
        return Tensor(x.wrapped, x.info) if isinstance(x.owner, EagerTrace) else Tensor(x)
    if is_numpy(x):
        return Tensor(x)
    if type(x) in (tuple, list):
        return type(x)(map(wrap, x))
    if isinstance(x, tuple) and hasattr(x, "_fields"):
        return type(x)(*map(wrap, x))
    return x


def _lower_all(x: Any) -> Any:
    if type(x) in (list, tuple):
        return type(x)(map(_lower_all, x))
    return lower(x)


def through(func: Callable, args: tuple, kwargs: dict) -> Any:
    """Call a function of arrays on tensors: NumPy's, fad's, or any other that takes tracers."""
    y = wrap(func(*map(_lower_all, args), **{k: _lower_all(v) for k, v in kwargs.items()}))
    return unshare(y, tensors_of(args, kwargs))


def tensors_of(args: tuple, kwargs: dict) -> list:
    """Return the tensors among the arguments of a call, those in lists and dictionaries as well."""
    if not kwargs and not any(isinstance(x, _CONTAINERS) for x in args):
        return [x for x in args if isinstance(x, Tensor)]
    return [x for x in tree.leaves((args, kwargs), is_leaf=is_tensor) if is_tensor(x)]


def numel(input: Tensor) -> int:
    """Return the number of elements."""
    return input.value.size


def is_tensor(x: Any) -> bool:
    """Return whether something is a tensor."""
    return isinstance(x, Tensor)


def unshare(y: Any, operands: list) -> Any:
    """Return results so that none shows an operand's memory without knowing it: the operand itself, or a copy.

    A change in place of the one would be missing from the history of the other.
    """
    if type(y) in (tuple, list):
        return type(y)(unshare(v, operands) for v in y)
    if isinstance(y, Tensor) and type(y.value) is np.ndarray:
        for x in operands:
            if y.value is x.value and y.node is x.node:
                return x
            if root(y.value) is root(x.value):
                y.value = y.value.copy()
                break
    return y


for _cls in (Tensor, Parameter):
    tree.register_node(_cls, lambda t: ((lower(t),), None), lambda _, children: _rebuild(children[0]))


def _rebuild(x: Any) -> Any:
    return wrap(x) if type(x) is Tracer or is_numpy(x) else x
