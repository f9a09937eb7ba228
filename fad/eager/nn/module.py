"""``Module``: a class whose ``Parameter`` attributes are learnt and whose ``Module`` attributes are its parts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from fad.eager.autograd.function import Function
from fad.eager.core.mode import is_recording, no_grad
from fad.eager.core.node import Handle
from fad.eager.ops.operators import convert
from fad.eager.tensor import Parameter, Tensor
from fad.eager.unsupported import MissingDtype
from fad.nn.module import StateDictError

_TABLES = ("_parameters", "_buffers", "_modules")


class Keys(NamedTuple):
    """The names that a state dict lacked, and those that the module does not have."""

    missing_keys: list[str]
    unexpected_keys: list[str]

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return f"Keys(missing_keys={self.missing_keys}, unexpected_keys={self.unexpected_keys})"


class Module:
    """A layer or a model of tensors; `forward` says what it computes.

    >>> import fad.eager as torch
    >>> class Scale(Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.factor = torch.nn.Parameter(torch.tensor(3.0))
    ...     def forward(self, x):
    ...         return self.factor * x
    >>> [name for name, p in Scale().named_parameters()]
    ['factor']
    """

    training: bool = True

    def __init__(self) -> None:
        self._tables()

    def _tables(self) -> dict:
        fields = self.__dict__
        if "_parameters" not in fields:
            fields.update(_parameters={}, _buffers={}, _modules={}, _hooks={})
        return fields

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__} does not define forward(self, x)")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        for before in list(self.__dict__.get("_pre_hooks", {}).values()):
            new = before(self, args)
            args = args if new is None else new if type(new) is tuple else (new,)
        watched = self.__dict__.get("_backward_hooks")
        if watched:
            args, seen = _watching_inputs(self, args, watched)
        out = self.forward(*args, **kwargs)
        for hook in list(self.__dict__.get("_hooks", {}).values()):
            new = hook(self, args, out)
            out = out if new is None else new
        return _watching_outputs(self, out, seen, watched) if watched else out

    def register_forward_hook(self, hook: Callable) -> Handle:
        """Call ``hook(module, args, output)`` after each forward; what it returns, if not None, replaces the output."""
        return Handle(self._tables()["_hooks"], hook)

    def register_forward_pre_hook(self, hook: Callable) -> Handle:
        """Call ``hook(module, args)`` before each forward; what it returns, if not None, replaces the arguments."""
        return Handle(self._tables().setdefault("_pre_hooks", {}), hook)

    def register_full_backward_hook(self, hook: Callable) -> Handle:
        """Call ``hook(module, grad_input, grad_output)``, both tuples, when the gradients of what the module was given
        are known; a tuple that it returns replaces the first."""
        return Handle(self._tables().setdefault("_backward_hooks", {}), hook)

    # --- attributes ---------------------------------------------------------------------------------------------

    def __setattr__(self, name: str, value: Any) -> None:
        fields = self._tables()
        if name in fields.get("_computed", ()):
            fields["_computed"][name].assign(self, value)
            return
        own = "_parameters" if isinstance(value, Parameter) else "_modules" if isinstance(value, Module) else None
        for table, kind in zip(_TABLES, (Parameter, Tensor, Module), strict=True):
            if name in fields[table] and table != own:
                if own is None:
                    if value is not None and not isinstance(value, kind):
                        raise TypeError(_another_kind(self, name, kind, value))
                    own = table
                else:
                    del fields[table][name]
        if own is not None:
            fields.pop(name, None)  # what had the name before, and would be found first
        (fields if own is None else fields[own])[name] = value

    def __getattr__(self, name: str) -> Any:
        fields = self.__dict__
        for table in _TABLES:
            found = fields.get(table, {})
            if name in found:
                return found[name]
        if name in fields.get("_computed", ()):
            return fields["_computed"][name](self)
        raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")

    def __delattr__(self, name: str) -> None:
        for table in _TABLES:
            if name in self.__dict__.get(table, {}):
                del self.__dict__[table][name]
                return
        super().__delattr__(name)

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Add a tensor that is not learnt; it is saved with the module if `persistent`."""
        fields = self._tables()
        fields["_buffers"][name] = tensor
        transient = fields.get("_transient", frozenset()) - {name}
        fields["_transient"] = transient if persistent else transient | {name}

    def add_module(self, name: str, module: Module | None) -> None:
        """Add a part under a name."""
        self._tables()["_modules"][name] = module

    register_module = add_module

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Add a parameter under a name."""
        self._tables()["_parameters"][name] = param

    # --- walking --------------------------------------------------------------------------------------------------

    def named_children(self) -> Iterator[tuple[str, Module]]:
        return ((n, m) for n, m in self._tables()["_modules"].items() if m is not None)

    def children(self) -> Iterator[Module]:
        return (m for _, m in self.named_children())

    def named_modules(self, prefix: str = "", remove_duplicate: bool = True) -> Iterator[tuple[str, Module]]:
        """Yield ``(name, module)`` for this module, named ``""``, and all below, each once or under all its names."""
        seen: set[int] = set()
        waiting = [(prefix, self)]
        while waiting:
            name, module = waiting.pop()
            if id(module) not in seen or not remove_duplicate:
                seen.add(id(module))
                yield name, module
                below = [(f"{name}.{n}" if name else n, m) for n, m in module.named_children()]
                waiting += reversed(below)

    def modules(self) -> Iterator[Module]:
        return (m for _, m in self.named_modules())

    def _iterate_named(
        self, table: str, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Any]]:
        seen: dict[int, Any] = {}  # keeps what was yielded alive, so that an id stays its own
        for path, module in self.named_modules(prefix, remove_duplicate) if recurse else [(prefix, self)]:
            for name, x in (module._own_buffers() if table == "_buffers" else module._tables()[table]).items():
                if x is not None and (id(x) not in seen or not remove_duplicate):
                    seen[id(x)] = x
                    yield (f"{path}.{name}" if path else name), x

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """Yield ``(name, parameter)``; a shared one once, under its first name, or under all its names."""
        return self._iterate_named("_parameters", prefix, recurse, remove_duplicate)

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """Yield each parameter once: of this module and all below, or of this one alone."""
        return (p for _, p in self.named_parameters(recurse=recurse))

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        return self._iterate_named("_buffers", prefix, recurse, remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        return (b for _, b in self.named_buffers(recurse=recurse))

    def get_submodule(self, target: str) -> Module:
        """Return the module below that has a name such as ``"encoder.layers.0"``; ``""`` is this one."""
        found = dict(self.named_modules(remove_duplicate=False))
        if target not in found:
            names = ", ".join(filter(None, found))
            raise AttributeError(f"{type(self).__name__} has no module {target!r}: it has {names}")
        return found[target]

    def get_parameter(self, target: str) -> Parameter:
        """Return the parameter that has a name such as ``"encoder.weight"``."""
        for name, p in self.named_parameters(remove_duplicate=False):
            if name == target:
                return p
        raise AttributeError(f"{type(self).__name__} has no parameter {target!r}")

    def apply(self, fun: Callable) -> Module:
        """Call a function on every module inside and on this one, and return this one."""
        for m in self.children():
            m.apply(fun)
        fun(self)
        return self

    # --- states -----------------------------------------------------------------------------------------------------

    def train(self, mode: bool = True) -> Module:
        """Switch this module and all below to training, or to evaluation, and return it."""
        for m in self.modules():
            m.__dict__["training"] = mode
        return self

    def eval(self) -> Module:
        return self.train(False)

    def requires_grad_(self, requires_grad: bool = True) -> Module:
        for p in self.parameters():
            p.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients of all parameters, or set them to zeros."""
        for p in self.parameters():
            clear_grad(p, set_to_none)

    def _convert(self, dtype: Any) -> Module:
        for p in self.parameters():
            p.value = p.value.astype(dtype)
        for module in self.modules():
            module._convert_buffers(dtype)
        return self

    def _convert_buffers(self, dtype: Any) -> None:
        for x in self._own_buffers().values():
            if x is not None and x.dtype.kind == "f":
                x.value = x.value.astype(dtype)

    def to(self, *args: Any, dtype: Any = None, device: Any = None) -> Module:
        """Convert the parameters to a dtype; the only device is the host's memory."""
        kinds = (np.dtype, type, MissingDtype)
        device = next((a for a in args if not isinstance(a, (*kinds, Tensor))), device)
        if device is not None and str(device).partition(":")[0] != "cpu":
            raise ValueError(f"the eager API keeps tensors in host memory; there is no device {device!r}")
        dtype = next((a for a in args if isinstance(a, kinds)), dtype)
        return self if dtype is None else self._convert(np.dtype(dtype))

    def float(self) -> Module:
        return self._convert(np.float32)

    def double(self) -> Module:
        return self._convert(np.float64)

    def half(self) -> Module:
        return self._convert(np.float16)

    def bfloat16(self) -> Module:
        """Raise TypeError, saying what to write instead: NumPy has no bfloat16."""
        return self.to(MissingDtype("bfloat16"))

    def type(self, dst_type: Any) -> Module:
        return self._convert(np.dtype(dst_type))

    def cpu(self) -> Module:
        return self

    def _own_buffers(self) -> dict[str, Tensor]:
        """Return the buffers of this module alone."""
        return self._tables()["_buffers"]

    def _write_buffer(self, name: str, value: np.ndarray) -> None:
        self._tables()["_buffers"][name].copy_(Tensor(value))

    def _state(self) -> dict[str, tuple[Module, str, Tensor]]:
        """Return ``(module, its name there, tensor)`` for everything that is saved, in PyTorch's order.

        What is shared is there under each of its names.
        """
        found = {}
        for prefix, module in self.named_modules(remove_duplicate=False):
            transient = module.__dict__.get("_transient", ())
            for table in (module._tables()["_parameters"], module._own_buffers()):
                for name, x in table.items():
                    if x is not None and name not in transient:
                        found[f"{prefix}.{name}" if prefix else name] = (module, name, x)
        return found

    def state_dict(self, *, prefix: str = "", keep_vars: bool = False) -> dict[str, Tensor]:
        """Return parameters and buffers by name, which share memory with the module: detached, but with `keep_vars`."""
        return {prefix + name: x if keep_vars else x.detach() for name, (_, _, x) in self._state().items()}

    def load_state_dict(self, state_dict: dict[str, Any], strict: bool = True) -> Keys:
        """Copy a state dict into the parameters and buffers; return the names that were missing and those left over.

        Raises StateDictError, listing every misfit at once, and changes nothing.
        """
        own = self._state()
        values = {n: np.asarray(x.detach() if isinstance(x, Tensor) else x) for n, x in state_dict.items()}
        keys = Keys([n for n in own if n not in values], [n for n in values if n not in own])
        wrong = [f"missing: {n}" for n in keys.missing_keys] if strict else []
        wrong += [f"unexpected: {n}" for n in keys.unexpected_keys] if strict else []
        for n, x in values.items():
            if n in own and x.shape != own[n][2].value.shape:
                wrong.append(f"{n} has shape {x.shape}, the module's has {tuple(own[n][2].shape)}")
            elif n in own and not np.can_cast(x.dtype, own[n][2].dtype, "same_kind"):
                wrong.append(f"{n} has dtype {x.dtype}, the module's has {own[n][2].dtype}")
        if wrong:
            raise StateDictError("the state dict does not fit the module: " + "; ".join(wrong))
        with no_grad():
            for n, x in values.items():
                if n in own:
                    module, name, tensor = own[n]
                    if name in module._tables()["_parameters"]:
                        tensor.copy_(Tensor(x))
                    else:
                        module._write_buffer(name, x)
        return keys

    def extra_repr(self) -> str:
        """Return what stands between the brackets of the module's line."""
        return ""

    def __repr__(self) -> str:
        parts = [f"  ({n}): " + repr(m).replace("\n", "\n  ") for n, m in self.named_children()]
        body = "\n" + "\n".join(parts) + "\n" if parts else self.extra_repr()
        return f"{type(self).__name__}({body})"


def _another_kind(module: Module, name: str, kind: type, value: Any) -> str:
    given, wanted = type(value).__name__, kind.__name__
    make = f"{wanted}(x) of it" if kind is Parameter and isinstance(value, Tensor) else f"a {wanted} or None"
    return f"{name!r} of {type(module).__name__} is a {wanted}, and was to become a {given}: assign {make}"


# --- hooks of the backward pass --------------------------------------------------------------------------------------


class _Inputs(Function):
    """What goes into a module; in the backward pass, where its hooks are called."""

    @staticmethod
    def forward(ctx: Any, seen: dict, *xs: Any) -> tuple:
        ctx.seen = seen
        return tuple(x.clone() if isinstance(x, Tensor) else x for x in xs)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> tuple:
        given = tuple(g if needed else None for g, needed in zip(grads, ctx.needs_input_grad[1:], strict=True))
        return (None, *ctx.seen["call"](given))


class _Outputs(Function):
    """What comes out of a module; in the backward pass its gradient is noted."""

    @staticmethod
    def forward(ctx: Any, seen: dict, *ys: Any) -> tuple:
        ctx.seen = seen
        return tuple(y.clone() if isinstance(y, Tensor) else y for y in ys)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> tuple:
        ctx.seen["grads"] = grads
        if not ctx.seen["inputs"]:
            ctx.seen["call"]((None,) * ctx.seen["count"])
        return (None, *grads)


def _watching_inputs(module: Module, args: tuple, hooks: dict) -> tuple[tuple, dict]:
    def call(grads: tuple) -> tuple:
        for hook in list(hooks.values()):
            new = hook(module, grads, seen["grads"])
            grads = grads if new is None else new if type(new) is tuple else (new,)
        return grads

    needed = is_recording() and any(isinstance(x, Tensor) and x.requires_grad for x in args)
    seen: dict = {"call": call, "inputs": needed, "count": len(args)}
    return (_Inputs.apply(seen, *args) if needed else args), seen


def _watching_outputs(module: Module, out: Any, seen: dict, hooks: dict) -> Any:
    if type(out) is tuple:
        return _Outputs.apply(seen, *out)
    return _Outputs.apply(seen, out)[0] if isinstance(out, Tensor) else out


def clear_grad(p: Tensor, set_to_none: bool) -> None:
    if getattr(p, "_grad", None) is None:
        return
    if set_to_none:
        p.grad = None
    else:
        p._grad = Tensor(np.zeros_like(p._grad.value))


__all__ = ["Module", "clear_grad", "convert"]
