"""Modules that hold modules or parameters: sequences, lists and dictionaries of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fad.eager.nn.module import Module
from fad.eager.tensor import Parameter, Tensor


class _Numbered(Module):
    """What sequences of modules share: they are called "0", "1", ... unless they have names."""

    def _items(self) -> list:
        return list(self._tables()["_modules"].values())

    def _fill(self, modules: list) -> Any:
        self._tables()["_modules"].clear()
        for i, m in enumerate(modules):
            self.add_module(str(i), m)
        return self

    def __getitem__(self, i: Any) -> Any:
        if isinstance(i, slice):
            kind: Any = type(self)
            some = list(self._tables()["_modules"].items())[i]
            return kind(dict(some)) if isinstance(self, Sequential) else kind([m for _, m in some])
        return self._items()[i]

    def __setitem__(self, i: int, module: Module) -> None:
        self.add_module(list(self._tables()["_modules"])[i], module)

    def __delitem__(self, i: Any) -> None:
        items = self._items()
        del items[i]
        self._fill(items)

    def __len__(self) -> int:
        return len(self._tables()["_modules"])

    def __iter__(self) -> Iterator[Module]:
        return iter(self._items())

    def append(self, module: Module) -> Any:
        """Add a module at the end, and return this one."""
        self.add_module(str(len(self)), module)
        return self

    def extend(self, modules: Any) -> Any:
        """Add modules at the end, and return this one."""
        for m in modules:
            self.append(m)
        return self

    def insert(self, index: int, module: Module) -> Any:
        """Add a module before another, and return this one."""
        items = self._items()
        items.insert(index, module)
        return self._fill(items)


class Sequential(_Numbered):
    """Modules run one after the other."""

    def __init__(self, *modules: Any):
        super().__init__()
        pairs = modules[0].items() if len(modules) == 1 and isinstance(modules[0], dict) else enumerate(modules)
        for name, m in pairs:
            self.add_module(str(name), m)

    def forward(self, x: Any) -> Any:
        for m in self._tables()["_modules"].values():
            x = m(x)
        return x


class ModuleList(_Numbered):
    """A list of modules; it has no forward of its own."""

    def __init__(self, modules: Any = ()):
        super().__init__()
        self.extend(modules)

    def forward(self, x: Any) -> Any:
        raise NotImplementedError("a ModuleList is a list: loop over it, or use Sequential")


class _Named:
    """What dictionaries share, by `_store`."""

    _store: dict

    def __getitem__(self, name: str) -> Any:
        return self._store[name]

    def __contains__(self, name: str) -> bool:
        return name in self._store

    def __len__(self) -> int:
        return len(self._store)

    def __iter__(self) -> Iterator[str]:
        return iter(self._store)

    def keys(self) -> Any:
        return self._store.keys()

    def values(self) -> Any:
        return self._store.values()

    def items(self) -> Any:
        return self._store.items()

    def pop(self, name: str) -> Any:
        """Take out what has a name, and return it."""
        return self._store.pop(name)

    def update(self, more: Any) -> None:
        """Add what another dictionary has."""
        for name, x in dict(more).items():
            self[name] = x  # type: ignore[index]


class ModuleDict(_Named, Module):
    """A dictionary of modules; it has no forward of its own."""

    def __init__(self, modules: Any = ()):
        super().__init__()
        self.update(modules or {})

    _store = property(lambda self: self._tables()["_modules"])  # type: ignore[assignment]

    def __setitem__(self, name: str, module: Module) -> None:
        self.add_module(name, module)


class ParameterDict(_Named, Module):
    """A dictionary of parameters; tensors become parameters.

    >>> import fad.eager as torch
    >>> [name for name, _ in ParameterDict({"a": torch.ones(2)}).named_parameters()]
    ['a']
    """

    def __init__(self, parameters: Any = ()):
        super().__init__()
        self.update(parameters or {})

    _store = property(lambda self: self._tables()["_parameters"])  # type: ignore[assignment]

    def __setitem__(self, name: str, p: Tensor) -> None:
        self.register_parameter(name, p if isinstance(p, Parameter) else Parameter(p))


class ParameterList(Module):
    """A list of parameters; tensors become parameters, and what is neither, as another list, stays what it is.

    >>> import fad.eager as torch
    >>> len(list(ParameterList([torch.ones(2), torch.zeros(3)]).parameters()))
    2
    """

    def __init__(self, parameters: Any = ()):
        super().__init__()
        self._size = 0
        self.extend(parameters)

    def append(self, p: Any) -> ParameterList:
        """Add a parameter at the end, and return this list."""
        self._size += 1
        self[-1] = p
        return self

    def extend(self, parameters: Any) -> ParameterList:
        """Add parameters at the end, and return this list."""
        for p in parameters:
            self.append(p)
        return self

    def __getitem__(self, i: Any) -> Any:
        return ParameterList([*self][i]) if isinstance(i, slice) else getattr(self, self._name(i))

    def __setitem__(self, i: int, p: Any) -> None:
        setattr(self, self._name(i), Parameter(p) if isinstance(p, Tensor) and not isinstance(p, Parameter) else p)

    def _name(self, i: int) -> str:
        return str(range(self._size)[i])

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(self._size))


__all__ = ["ModuleDict", "ModuleList", "ParameterDict", "ParameterList", "Sequential"]
