"""``Module``: a plain class whose arrays are parameters, and which is a pytree by itself.

Flattening walks the whole tree of modules once and yields the parameters; everything else (buffers, frozen
parameters, settings) travels in the structure. So every transform takes a model as it takes an array, and the
function that it runs sees a copy whose parameters are traced.

Buffers are numbers that a layer changes as it runs (BatchNorm's statistics). A copy made by a transform starts with
the buffers as they were, and what it writes also goes *home*, to the model from which it was made, as plain numbers.
A new model of plain numbers, made by ``fad.tree.map`` or the pure form of an optimiser, has its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from fad.backends import behind, device_put, is_numpy_scalar
from fad.core.runs import effects
from fad.core.tracing.values import stop_gradient
from fad.core.tracing.views import is_writeable
from fad.errors import FadError, ImpureFunctionError
from fad.introspect.reachable import code_of
from fad.nn.structure import (
    RESERVED,
    entries_of,
    flatten_module,
    is_array,
    is_container,
    settings_in,
    unflatten_module,
)
from fad.nn.summary import table
from fad.transforms.batching.batch_trace import plain_state
from fad.tree.nodes import enter_node
from fad.typing import Array


class StateDictError(FadError, ValueError, RuntimeError):
    """A state dict does not fit the model: all missing, unexpected and wrongly shaped entries are listed at once.

    Wrong::

        model.load_state_dict({"weight": w})     # the model has a bias too

    Right::

        model.load_state_dict({"weight": w, "bias": b})
        model.load_state_dict({"weight": w}, strict=False)
    """


class Parameter:
    """Marks an attribute as a parameter; ``self.w = nn.Parameter(x)`` stores the array x itself.

    A bare floating-point or complex array is a parameter too, so this is needed only for numbers and lists.

    >>> Parameter([1.0, 2.0]).data
    array([1., 2.])
    """

    __slots__ = ("data", "requires_grad")

    def __init__(self, data: Array, requires_grad: bool = True):
        self.data = data if hasattr(data, "dtype") and not is_numpy_scalar(data) else np.asarray(data)
        self.requires_grad = requires_grad


class Buffer:
    """Marks an attribute as a buffer: saved with the model, changed by the layer itself, never differentiated.

    One that is not `persistent` is left out of ``state_dict()``, as in PyTorch; ``state_dict(everything=True)`` has it.

    >>> fad.nn.Buffer([0.0, 0.0]).data
    array([0., 0.])
    """

    __slots__ = ("data", "persistent")

    def __init__(self, data: Array, persistent: bool = True):
        self.data = data if hasattr(data, "dtype") else np.asarray(data)
        self.persistent = persistent


class Module(effects.Stateful):
    """A layer or a model: attributes that are arrays are its parameters, and `forward` says what it computes.

    Floating-point arrays are parameters, `Buffer` marks arrays that are not learnt, and modules, lists and dictionaries
    of them are submodules. A module is a pytree whose leaves are its parameters (a parameter used in two places
    is one leaf), so ``fad.value_and_grad(loss)(model, x, y)`` returns a gradient in the structure of the model.
    ``copy.deepcopy`` and ``fad.tree.map`` make independent models.

    >>> import fad
    >>> class Scale(Module):
    ...     def __init__(self):
    ...         self.factor = np.array(3.0)
    ...     def forward(self, x):
    ...         return self.factor * x
    >>> fad.grad(lambda model: model(2.0))(Scale()).factor
    array(2.)
    """

    training: bool = True

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        enter_node(cls, flatten_module, unflatten_module)

    def forward(self, *args: Any, **kwargs: Any) -> Array:
        raise NotImplementedError(f"{type(self).__name__} does not define forward(self, x)")

    def __call__(self, *args: Any, **kwargs: Any) -> Array:
        return self.forward(*args, **kwargs)

    # --- attributes ---------------------------------------------------------------------------------------------

    def __setattr__(self, name: str, value: Any) -> None:
        fields = self.__dict__
        kind = type(value)
        if kind is Buffer:
            self._add_buffer(name, value.data)
            if not value.persistent:
                fields["_transient"] = fields.get("_transient", frozenset()) | {name}
            return
        buffers = fields.get("_buffers")
        if buffers is not None and name in buffers:
            if kind is not Parameter:
                self._write_buffer(name, value)
                return
            del buffers[name]
        if kind is Parameter:
            frozen = set(fields.get("_frozen", ())) - {name}
            fields["_frozen"] = frozenset(frozen if value.requires_grad else frozen | {name})
            value = value.data
            if value.dtype.kind not in "fc":
                raise TypeError(
                    f"the parameter {name!r} has dtype {value.dtype}; parameters are floating-point or complex. "
                    "Use nn.Buffer for numbers that are not learnt"
                )
        fields[name] = value
        fields.pop("_layout", None)

    def __delattr__(self, name: str) -> None:
        buffers = self.__dict__.get("_buffers", {})
        if name in buffers:
            del buffers[name]
            return
        super().__delattr__(name)
        self.__dict__.pop("_layout", None)

    def __getattr__(self, name: str) -> Any:
        # Called only for names that are not in __dict__: buffers live apart.
        buffers = self.__dict__.get("_buffers")
        if buffers is not None and name in buffers:
            return effects.read(buffers, name)
        raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")

    def _add_buffer(self, name: str, value: Any) -> None:
        fields = self.__dict__
        if "_buffers" not in fields:
            fields["_buffers"], fields["_home"] = {}, ()
        fields.pop(name, None)
        fields.pop("_layout", None)
        fields["_buffers"][name] = value

    def _write_buffer(self, name: str, value: Any) -> None:
        value = stop_gradient(value)
        fields = self.__dict__
        store, home = fields["_buffers"], fields["_home"]
        plain = plain_state(value)
        if effects.is_compiling() and not fields.get("_opened"):
            raise ImpureFunctionError(
                f"{type(self).__name__} would write {name!r} while jit records it, and a replay would not. "
                "Give the model to the compiled function as an argument"
            )
        effects.write_home(store, home, name, value, plain)

    # --- walking --------------------------------------------------------------------------------------------------

    def children(self) -> Iterator[Module]:
        """Yield the modules directly inside this one."""
        return (child for _, child in self.named_children())

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """Yield ``(name, module)`` for the modules directly inside; list entries are called ``layers.0``."""
        for name, holder, key in self._places():
            value = holder[key]
            if isinstance(value, Module):
                yield name, value

    def named_modules(self, prefix: str = "") -> Iterator[tuple[str, Module]]:
        """Yield ``(name, module)`` for this module, named ``""``, and all below, each once."""
        seen: set[int] = set()
        waiting: list[tuple[str, Module]] = [(prefix, self)]
        while waiting:
            name, module = waiting.pop()
            if id(module) in seen:
                continue
            seen.add(id(module))
            yield name, module
            below = [(f"{name}.{n}" if name else n, m) for n, m in module.named_children()]
            waiting += reversed(below)

    def modules(self) -> Iterator[Module]:
        """Yield this module and all below, each once."""
        return (module for _, module in self.named_modules())

    def named_parameters(self) -> Iterator[tuple[str, Any]]:
        """Yield ``(name, array)`` for every parameter, frozen ones too; a shared one once, under its first name."""
        seen: set[int] = set()
        for name, holder, key in self._entries():
            value = holder[key]
            if id(value) not in seen:
                seen.add(id(value))
                yield name, value

    def parameters(self) -> Iterator[Any]:
        """Yield every parameter, frozen ones too; a shared one once."""
        return (value for _, value in self.named_parameters())

    def named_buffers(self) -> Iterator[tuple[str, Any]]:
        """Yield ``(name, array)`` for every buffer."""
        for prefix, module in self.named_modules():
            for name, value in module.__dict__.get("_buffers", {}).items():
                yield (f"{prefix}.{name}" if prefix else name), value

    def _places(self) -> Iterator[tuple[str, Any, Any]]:
        """Yield ``(name, container, key)`` for each parameter and module held directly, lists and dicts opened."""
        fields = self.__dict__
        for name, value in list(fields.items()):
            if name not in RESERVED:
                yield from _open(name, fields, name, value)

    def _entries(self) -> Iterator[tuple[str, Any, Any]]:
        """Yield ``(dotted name, container, key)`` for each parameter here and below."""
        for prefix, module in self.named_modules():
            for name, holder, key in module._places():
                if not isinstance(holder[key], Module):
                    yield (f"{prefix}.{name}" if prefix else name), holder, key

    def __fad_settings__(self, leaf: Any) -> Iterator[Any]:
        for module in self.modules():
            yield from code_of(type(module))
            for name, value in module.__dict__.items():
                if name not in RESERVED:
                    yield from settings_in(value, leaf)

    # --- modes ------------------------------------------------------------------------------------------------------

    def train(self, mode: bool = True) -> Module:
        """Set training mode, here and below: Dropout drops, BatchNorm uses the batch's statistics. Returns self."""
        for module in self.modules():
            module.__dict__["training"] = bool(mode)
        return self

    def eval(self) -> Module:
        """Set evaluation mode, here and below. Returns self."""
        return self.train(False)

    def requires_grad_(self, flag: bool = True) -> Module:
        """Freeze (False) or unfreeze (True) every parameter here and below. Returns self.

        A frozen parameter is no leaf of the tree: it gets no gradient, costs nothing, and the optimiser never sees it.
        """
        for module in self.modules():
            names = () if flag else [k for k, v in module.__dict__.items() if is_array(v) or is_container(v)]
            module.__dict__["_frozen"] = frozenset(names)
            module.__dict__.pop("_layout", None)
        return self

    def freeze(self) -> Module:
        """Freeze every parameter here and below: ``requires_grad_(False)``. Returns self."""
        return self.requires_grad_(False)

    def to(self, backend: str) -> Module:
        """Move every parameter and buffer, here and below, to a backend ("numpy", "cupy"). Returns self.

        The arrays are new ones: make the optimiser afterwards.
        """
        moved: dict[int, Any] = {}  # what is shared stays shared

        def place(holder: Any, key: Any) -> None:
            x = holder[key]
            if id(x) not in moved:
                moved[id(x)] = (x, device_put(x, backend))
            holder[key] = moved[id(x)][1]

        for _, holder, key in list(self._entries()):
            place(holder, key)
        for module in self.modules():
            store = module.__dict__.get("_buffers", {})
            for key in list(store):
                place(store, key)
            module.__dict__.pop("_layout", None)
        return self

    # --- state ------------------------------------------------------------------------------------------------------

    def state_dict(self, everything: bool = False) -> dict[str, Any]:
        """Return copies of all parameters and buffers by dotted name, in PyTorch's names, order and layouts.

        With `everything`, also what PyTorch does not have and resuming bit for bit needs: Dropout's keys and counters.
        """
        out: dict[str, Any] = {}
        for prefix, module in self.named_modules():
            dot = f"{prefix}." if prefix else ""
            for name, holder, key in module._places():
                if not isinstance(holder[key], Module):
                    out[dot + name] = np.array(holder[key]) if type(holder[key]) is np.ndarray else holder[key].copy()
            transient = () if everything else module.__dict__.get("_transient", ())
            for name, value in module.__dict__.get("_buffers", {}).items():
                if name not in transient:
                    out[dot + name] = value.copy()
        return out

    def load_state_dict(self, state: dict[str, Any], strict: bool = True) -> Module:
        """Copy values into the model's parameters and buffers, keeping their dtypes. Returns self.

        Parameters
        ----------
        state : dict of str to array
            As :meth:`state_dict` gives it; PyTorch tensors on the host will do too.
        strict : bool
            Whether missing and unexpected names are errors. Wrong shapes always are.

        Raises
        ------
        StateDictError
            that lists everything which does not fit; the model is then as it was.
        """
        places = {name: (holder, key) for name, holder, key in self._entries()}
        optional = set()
        for prefix, module in self.named_modules():
            for name in module.__dict__.get("_buffers", {}):
                full = f"{prefix}.{name}" if prefix else name
                places[full] = (module.__dict__["_buffers"], name)
                if name in module.__dict__.get("_transient", ()):
                    optional.add(full)
        values = {name: np.asarray(x) for name, x in state.items() if name in places}
        wrong = []
        if strict:
            wrong += [f"missing: {name}" for name in places if name not in state and name not in optional]
            wrong += [f"unexpected: {name}" for name in state if name not in places]
        for name, x in values.items():
            old = places[name][0][places[name][1]]
            if x.shape != old.shape:
                wrong.append(f"{name}: shape {x.shape}, but the model has {old.shape}")
            elif x.dtype.kind not in "fcbiu" or (x.dtype.kind == "c" and old.dtype.kind != "c"):
                wrong.append(f"{name}: dtype {x.dtype}, but the model has {old.dtype}")
        if wrong:
            raise StateDictError(
                f"the state dict does not fit {type(self).__name__}, which was left as it is:\n  " + "\n  ".join(wrong)
            )
        for name, x in values.items():
            holder, key = places[name]
            if type(holder[key]) is np.ndarray and is_writeable(holder[key]):
                holder[key][...] = x
            else:
                holder[key] = device_put(x.astype(holder[key].dtype), behind(holder[key]).name)
        return self

    def copy_buffers(self, other: Module) -> None:
        """Take over the buffers of a model of the same structure."""
        for mine, theirs in zip(self.modules(), other.modules(), strict=True):
            if "_buffers" in mine.__dict__:
                mine.__dict__["_buffers"].update({k: v.copy() for k, v in theirs.__dict__["_buffers"].items()})

    # --- showing ------------------------------------------------------------------------------------------------------

    def extra_repr(self) -> str:
        """Return the settings that the printed form shows between the parentheses."""
        return ""

    def __repr__(self) -> str:
        lines = [f"  ({name}): " + repr(child).replace("\n", "\n  ") for name, child in self.named_children()]
        inside = "\n" + "\n".join(lines) + "\n" if lines else self.extra_repr()
        return f"{type(self).__name__}({inside})"

    def summary(self, *inputs: Any) -> None:
        """Print a table of layers, shapes and parameter counts; given inputs for the model, the outputs' shapes too."""
        print(table(self, *inputs))


def _open(name: str, holder: Any, key: Any, value: Any) -> Iterator[tuple[str, Any, Any]]:
    if isinstance(value, Module) or is_array(value):
        yield name, holder, key
    elif is_container(value):
        place, entries = entries_of(value)
        for k, v in entries:
            yield from _open(f"{name}.{k}", place, k, v)


enter_node(Module, flatten_module, unflatten_module)
