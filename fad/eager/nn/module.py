"""``Module``: a class whose ``Parameter`` attributes are learnt and whose ``Module`` attributes are its parts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from fad.eager.mode import no_grad
from fad.eager.node import Handle
from fad.eager.operators import convert
from fad.eager.tensor import Parameter, Tensor
from fad.nn.module import StateDictError

_TABLES = ("_parameters", "_buffers", "_modules")


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
        out = self.forward(*args, **kwargs)
        for hook in list(self.__dict__.get("_hooks", {}).values()):
            new = hook(self, args, out)
            out = out if new is None else new
        return out

    def register_forward_hook(self, hook: Callable) -> Handle:
        """Call ``hook(module, args, output)`` after each forward; what it returns, if not None, replaces the output."""
        return Handle(self._tables()["_hooks"], hook)

    def register_forward_pre_hook(self, hook: Callable) -> Handle:
        """Call ``hook(module, args)`` before each forward; what it returns, if not None, replaces the arguments."""
        return Handle(self._tables().setdefault("_pre_hooks", {}), hook)

    # --- attributes ---------------------------------------------------------------------------------------------

    def __setattr__(self, name: str, value: Any) -> None:
        fields = self._tables()
        for table in _TABLES:
            if name in fields[table] and not (table == "_buffers" and isinstance(value, Tensor)):
                del fields[table][name]
        if isinstance(value, Parameter):
            fields["_parameters"][name] = value
        elif isinstance(value, Module):
            fields["_modules"][name] = value
        elif name in fields["_buffers"]:
            fields["_buffers"][name] = value
        else:
            fields[name] = value

    def __getattr__(self, name: str) -> Any:
        for table in _TABLES:
            found = self.__dict__.get(table, {})
            if name in found:
                return found[name]
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

    def named_modules(self, prefix: str = "") -> Iterator[tuple[str, Module]]:
        """Yield ``(name, module)`` for this module, named ``""``, and all below, each once."""
        seen: set[int] = set()
        waiting = [(prefix, self)]
        while waiting:
            name, module = waiting.pop()
            if id(module) not in seen:
                seen.add(id(module))
                yield name, module
                below = [(f"{name}.{n}" if name else n, m) for n, m in module.named_children()]
                waiting += reversed(below)

    def modules(self) -> Iterator[Module]:
        return (m for _, m in self.named_modules())

    def _named(self, table: str) -> Iterator[tuple[str, Any]]:
        seen: dict[int, Any] = {}  # keeps what was yielded alive, so that an id stays its own
        for prefix, module in self.named_modules():
            for name, x in (module._own_buffers() if table == "_buffers" else module._tables()[table]).items():
                if x is not None and id(x) not in seen:
                    seen[id(x)] = x
                    yield (f"{prefix}.{name}" if prefix else name), x

    def named_parameters(self) -> Iterator[tuple[str, Parameter]]:
        """Yield ``(name, parameter)``; a shared one once, under its first name."""
        return self._named("_parameters")

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """Yield each parameter once: of this module and all below, or of this one alone."""
        return (p for n, p in self.named_parameters() if recurse or n in self._tables()["_parameters"])

    def named_buffers(self) -> Iterator[tuple[str, Tensor]]:
        return self._named("_buffers")

    def buffers(self) -> Iterator[Tensor]:
        return (b for _, b in self.named_buffers())

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
        dtype = next((a for a in args if isinstance(a, (np.dtype, type))), dtype)
        return self if dtype is None else self._convert(np.dtype(dtype))

    def float(self) -> Module:
        return self._convert(np.float32)

    def double(self) -> Module:
        return self._convert(np.float64)

    def _own_buffers(self) -> dict[str, Tensor]:
        """Return the buffers of this module alone."""
        return self._tables()["_buffers"]

    def _write_buffer(self, name: str, value: np.ndarray) -> None:
        self._tables()["_buffers"][name].copy_(Tensor(value))

    def _state(self) -> dict[str, tuple[Module, str, Tensor]]:
        """Return ``(module, its name there, tensor)`` for everything that is saved, in PyTorch's order."""
        found = {}
        for prefix, module in self.named_modules():
            transient = module.__dict__.get("_transient", ())
            for table in (module._tables()["_parameters"], module._own_buffers()):
                for name, x in table.items():
                    if x is not None and name not in transient:
                        found[f"{prefix}.{name}" if prefix else name] = (module, name, x)
        return found

    def state_dict(self) -> dict[str, Tensor]:
        """Return parameters and buffers by name, detached: they share memory with the module."""
        return {name: x.detach() for name, (_, _, x) in self._state().items()}

    def load_state_dict(self, state_dict: dict[str, Any], strict: bool = True) -> Module:
        """Copy a state dict into the parameters and buffers.

        Raises StateDictError, listing every misfit at once, and changes nothing.
        """
        own = self._state()
        values = {n: np.asarray(x.detach() if isinstance(x, Tensor) else x) for n, x in state_dict.items()}
        wrong = [f"missing: {n}" for n in own if n not in values] if strict else []
        wrong += [f"unexpected: {n}" for n in values if n not in own] if strict else []
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
        return self

    def extra_repr(self) -> str:
        """Return what stands between the brackets of the module's line."""
        return ""

    def __repr__(self) -> str:
        parts = [f"  ({n}): " + repr(m).replace("\n", "\n  ") for n, m in self.named_children()]
        body = "\n" + "\n".join(parts) + "\n" if parts else self.extra_repr()
        return f"{type(self).__name__}({body})"


def clear_grad(p: Tensor, set_to_none: bool) -> None:
    if getattr(p, "_grad", None) is None:
        return
    if set_to_none:
        p.grad = None
    else:
        p._grad = Tensor(np.zeros_like(p._grad.value))


class Sequential(Module):
    """Modules run one after the other."""

    def __init__(self, *modules: Any):
        super().__init__()
        pairs = modules[0].items() if len(modules) == 1 and isinstance(modules[0], dict) else enumerate(modules)
        for name, m in pairs:
            setattr(self, str(name), m)

    def forward(self, x: Any) -> Any:
        for m in self.children():
            x = m(x)
        return x

    def __getitem__(self, i: int) -> Module:
        return list(self.children())[i]

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Module]:
        return self.children()


class ModuleList(Sequential):
    """A list of modules; it has no forward of its own."""

    def __init__(self, modules: Any = ()):
        super().__init__(*modules)

    def append(self, m: Module) -> ModuleList:
        setattr(self, str(len(self)), m)
        return self

    def forward(self, x: Any) -> Any:
        raise NotImplementedError("a ModuleList is a list: loop over it, or use Sequential")


class ModuleDict(Module):
    """A dictionary of modules; it has no forward of its own."""

    def __init__(self, modules: Any = ()):
        super().__init__()
        for name, m in dict(modules).items():
            self[name] = m

    def __setitem__(self, name: str, module: Module) -> None:
        self.add_module(name, module)

    def __getitem__(self, name: str) -> Module:
        return self._tables()["_modules"][name]

    def __contains__(self, name: str) -> bool:
        return name in self._tables()["_modules"]

    def __len__(self) -> int:
        return len(self._tables()["_modules"])

    def __iter__(self) -> Iterator[str]:
        return iter(self._tables()["_modules"])

    def keys(self) -> Any:
        return self._tables()["_modules"].keys()

    def values(self) -> Any:
        return self._tables()["_modules"].values()

    def items(self) -> Any:
        return self._tables()["_modules"].items()


__all__ = ["Module", "ModuleDict", "ModuleList", "Sequential", "clear_grad", "convert"]
