"""What a user sees of a record: ``y.grad_fn``, with its name, its neighbours and its hooks."""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable
from typing import Any

from fad.eager.core.records import HOOKS, LEAF, OUT, line, name, parents

_classes: dict[str, type] = {}
_nodes: weakref.WeakValueDictionary[int, Node] = weakref.WeakValueDictionary()


class Handle:
    """What registering a hook returns: ``remove()`` takes the hook away, and so does the end of a ``with`` block."""

    _keys = itertools.count()

    def __init__(self, hooks: dict, hook: Callable, stage: int = 0):
        self._hooks = hooks
        self._key = stage, next(self._keys)
        hooks[self._key] = hook

    def remove(self) -> None:
        self._hooks.pop(self._key, None)

    def __enter__(self) -> Handle:
        return self

    def __exit__(self, *_: Any) -> None:
        self.remove()


# When the hooks of one record run: those of tensors, then what keeps a retained gradient, then those of the node.
TENSOR_HOOK, KEEPER, PREHOOK = range(3)


def add_hook(rec: list, hook: Callable, stage: int = TENSOR_HOOK) -> Handle:
    if rec[HOOKS] is None:
        rec[HOOKS] = {}
    return Handle(rec[HOOKS], hook, stage)


class Node:
    """One operation of a graph; subclasses are named as PyTorch names them, ``AddBackward0`` and so on."""

    __slots__ = ("_record", "__weakref__")

    def __init__(self, record: list):
        self._record = record

    def name(self) -> str:
        return type(self).__name__

    @property
    def next_functions(self) -> tuple:
        """The nodes of the operands, each with the number of the result it stands for; (None, 0) for a constant."""
        return tuple((None, 0) if p is None else (node_of(p), _number(p)) for p in parents(self._record))

    @property
    def variable(self) -> Any:
        """The tensor that an ``AccumulateGrad`` node adds to; None if it no longer exists."""
        if self._record[0] != LEAF:
            raise AttributeError(f"only AccumulateGrad nodes have a variable, not {self.name()}")
        return self._record[6]()

    @property
    def line(self) -> str:
        """The user's line that made the node."""
        return line(self._record)

    def __repr__(self) -> str:
        return f"<{self.name()} object at {id(self._record):#x}>"


def _number(rec: list) -> int:
    return rec[7] if abs(rec[0]) == OUT else 0


def node_of(rec: list) -> Node:
    """Return the node of a record, the same one each time while someone holds it."""
    if abs(rec[0]) == OUT:
        rec = rec[6]
    found = _nodes.get(id(rec))
    if found is None:
        title = name(rec)
        cls = _classes.get(title)
        if cls is None:
            cls = _classes[title] = type(title, (Node,), {"__slots__": (), "__doc__": Node.__doc__})
        found = _nodes[id(rec)] = cls(rec)
    return found
