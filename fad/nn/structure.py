"""A module as a pytree: how it is taken apart into parameters and everything else, and put together again.

One walk over the whole tree of modules yields the parameters, each array once; the rest (buffers, frozen parameters,
settings) travels in the structure.
"""

from __future__ import annotations

import copy
from collections import deque
from collections.abc import Iterator
from typing import Any

import numpy as np

from fad import tree
from fad.backends import is_numpy_scalar
from fad.core.runs import effects
from fad.core.runs.effects import Stateful
from fad.core.tracing.tracer import Tracer
from fad.core.tracing.values import stop_gradient
from fad.tree.nodes import CHILDREN_OF, kind_of

# Names in a module's __dict__ that are machinery: buffers, the stores of the modules of which this is a copy, buffers
# not to be saved, frozen names, the cached layout, and whether jit records this copy.
RESERVED = ("_buffers", "_home", "_transient", "_frozen", "_layout", "_opened")
_UNIMPORTANT = {"_layout", "_opened"}
_CONTAINERS = (list, tuple, dict, deque)  # and what is derived from them, as named tuples
_DEPTH = 8  # how many copies of copies a written buffer goes back through


def is_array(x: Any) -> bool:
    """Return whether an attribute is an array that can be learnt; NumPy scalars are settings, not parameters."""
    kind = type(x)
    if kind is np.ndarray or kind is Tracer:
        return x.dtype.kind in "fc"
    return hasattr(x, "__array_ufunc__") and not is_numpy_scalar(x) and x.dtype.kind in "fc"


def is_container(x: Any) -> bool:
    """Return whether an attribute may hold modules and parameters: a list and the like, or a registered dataclass."""
    return isinstance(x, _CONTAINERS) or (type(x) in CHILDREN_OF and hasattr(x, "__dict__"))


def entries_of(x: Any) -> tuple[Any, list]:
    """Return where the entries of a container stand, and each with its key: a dataclass's in its ``__dict__``."""
    if type(x) in CHILDREN_OF:
        return x.__dict__, [(name, getattr(x, name)) for name in CHILDREN_OF[type(x)]]  # a default may be the class's
    return x, list(x.items() if isinstance(x, dict) else enumerate(x))


def _holds(x: Any) -> bool:
    """Return whether a container holds a module or a parameter, at any depth."""
    return any(isinstance(v, Stateful) or is_array(v) or (is_container(v) and _holds(v)) for v in _values(x))


class Layout:
    """The names of a module's attributes by what they are. Lists and dictionaries may change without our knowing,
    so what they hold is looked up each time."""

    __slots__ = ("parameters", "frozen", "children", "containers")

    def __init__(self, fields: dict):
        frozen = fields.get("_frozen", ())
        named = [(k, v) for k, v in fields.items() if k not in RESERVED]
        arrays = [k for k, v in named if is_array(v)]
        self.parameters = tuple(k for k in arrays if k not in frozen)
        self.frozen = tuple(k for k in arrays if k in frozen)
        self.children = tuple(k for k, v in named if isinstance(v, Stateful))
        held = [(k, v) for k, v in named if is_container(v) and not isinstance(v, Stateful)]
        self.containers = tuple(k for k, v in held if not isinstance(v, tuple) or _may_hold(v))


def _may_hold(x: tuple) -> bool:
    return any(
        isinstance(v, Stateful) or is_array(v) or (_may_hold(v) if isinstance(v, tuple) else is_container(v))
        for v in x
    )


def settings_in(x: Any, leaf: Any) -> Iterator[Any]:
    """Give what an attribute holds besides modules and the object `leaf`; what holds neither, as it is."""
    if is_container(x) and _has(x, leaf):
        for value in x.__dict__.values() if type(x) in CHILDREN_OF else _values(x):
            yield from settings_in(value, leaf)
    elif not (x is leaf or isinstance(x, Stateful)):
        yield x


def _has(x: Any, leaf: Any) -> bool:
    """Return whether a module or the object `leaf` is in a container, at any depth."""
    found = (v is leaf or isinstance(v, Stateful) or (is_container(v) and _has(v, leaf)) for v in _values(x))
    return any(found)


def _values(x: Any) -> Any:
    return x.values() if isinstance(x, dict) else x if isinstance(x, _CONTAINERS) else [v for _, v in entries_of(x)[1]]


# --- the pytree ---------------------------------------------------------------------------------------------------


class Node:
    """One module taken apart: its class, its other attributes, and where its leaves and children go."""

    __slots__ = ("cls", "fields", "leaves", "children", "containers", "buffers")
    cls: type
    fields: Any
    leaves: Any
    children: Any
    containers: Any
    buffers: Any


class Skeleton:
    """The structure of a model without its leaves."""

    __slots__ = ("root", "count")

    def __init__(self, root: Node, count: int):
        self.root = root
        self.count = count

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return type(other) is Skeleton and self.count == other.count and _alike(self.root, other.root)

    def __hash__(self) -> int:
        return hash((self.root.cls, self.count))

    def __repr__(self) -> str:
        return f"{self.root.cls.__name__} of {self.count} parameters"


def flatten_module(module: Any) -> tuple:
    leaves: list = []
    skeleton = Skeleton(_take(module, leaves, {}), len(leaves))
    if tree.naming.get():
        names = {id(x): name for name, x in module.named_parameters()}
        return leaves, skeleton, tuple(names.get(id(x), i) for i, x in enumerate(leaves))
    return leaves, skeleton


def _take(module: Any, leaves: list, seen: dict) -> Node:
    found = seen.get(id(module))
    if found is not None:
        return found
    node = Node()
    seen[id(module)] = node
    fields = module.__dict__
    layout = fields.get("_layout")
    if layout is None:
        layout = fields["_layout"] = Layout(fields)
    node.cls = type(module)
    node.fields = kept = fields.copy()
    node.leaves = node.children = node.containers = node.buffers = ()
    if layout.parameters:
        node.leaves = places = []
        for name in layout.parameters:
            value = kept[name]
            kept[name] = None
            place = seen.get(id(value))
            if place is None:
                place = len(leaves)
                leaves.append(value)
                if type(value) is np.ndarray or _can_be_shared(value):
                    seen[id(value)] = place
            places.append((name, place))
    if layout.children:
        node.children = [(name, _take(fields[name], leaves, seen)) for name in layout.children]
    if layout.containers:
        node.containers = _take_containers(fields, layout, leaves, seen)
    if "_buffers" in kept:
        slots = effects.slots()
        if slots is None:
            store = kept["_buffers"]
            kept["_home"] = (store, *kept["_home"])[:_DEPTH]
            kept["_buffers"] = effects.snapshot(store)
        else:
            _take_buffers(node, kept, leaves, slots)
    return node


def _take_buffers(node: Node, kept: dict, leaves: list, slots: list) -> None:
    """Make leaves of the buffers, for jit: to a replayed program they are inputs like any others."""
    store, home = kept["_buffers"], kept["_home"]
    node.buffers = [(name, len(leaves) + i) for i, name in enumerate(store)]
    leaves += [effects.read(store, name) for name in store]
    slots += [(store, home, name) for name in store]
    kept["_buffers"] = kept["_home"] = None  # rebuilt, the copy is on its own


def _can_be_shared(x: Any) -> bool:
    """Return whether the same object in two places means one parameter: for arrays of any kind, but not for numbers."""
    return hasattr(x, "shape") and not is_numpy_scalar(x)


def _take_containers(fields: dict, layout: Layout, leaves: list, seen: dict) -> list:
    frozen = fields.get("_frozen", ())
    return [
        (name, _take_container(fields[name], leaves, seen, name in frozen))
        for name in layout.containers if fields[name] and _holds(fields[name])
    ]  # fmt: skip


def leaves_of(x: Any) -> list:
    """Return ``fad.tree.leaves(x)``; of a module without building its structure, which an optimiser does not need."""
    if not isinstance(x, Stateful):
        return tree.leaves(x)
    leaves: list = []
    _collect(x, leaves, {})
    return leaves


def _collect(module: Any, leaves: list, seen: dict) -> None:
    seen[id(module)] = module
    fields = module.__dict__
    layout = fields.get("_layout")
    if layout is None:
        layout = fields["_layout"] = Layout(fields)
    for name in layout.parameters:
        value = fields[name]
        if id(value) not in seen:
            leaves.append(value)
            if type(value) is np.ndarray or _can_be_shared(value):
                seen[id(value)] = value
    for name in layout.children:
        child = fields[name]
        if id(child) not in seen:
            _collect(child, leaves, seen)
    frozen = fields.get("_frozen", ())
    for name in layout.containers:
        _collect_container(fields[name], leaves, seen, name in frozen)


def _collect_container(value: Any, leaves: list, seen: dict, frozen: bool) -> None:
    if isinstance(value, Stateful):
        if id(value) not in seen:
            _collect(value, leaves, seen)
    elif is_container(value):
        for v in _values(value):
            _collect_container(v, leaves, seen, frozen)
    elif not frozen and is_array(value) and id(value) not in seen:
        leaves.append(value)
        seen[id(value)] = value


def _leaf(value: Any, leaves: list, seen: dict) -> int:
    """Return the number of a leaf; the same array in two places is one leaf."""
    place = seen.get(id(value))
    if place is None:
        place = len(leaves)
        leaves.append(value)
        if type(value) is np.ndarray or _can_be_shared(value):
            seen[id(value)] = place
    return place


def _take_container(value: Any, leaves: list, seen: dict, frozen: bool) -> Any:
    """Return a container with nodes for modules, leaf numbers for parameters, and `Still` around everything else."""
    if isinstance(value, Stateful):
        return _take(value, leaves, seen)
    if isinstance(value, dict):
        inside: Any = {k: _take_container(v, leaves, seen, frozen) for k, v in value.items()}
        return inside if type(value) is dict else Derived(value, inside)
    if type(value) in CHILDREN_OF and is_container(value):
        return Derived(value, {k: _take_container(v, leaves, seen, frozen) for k, v in entries_of(value)[1]})
    if is_container(value):
        inside = [_take_container(v, leaves, seen, frozen) for v in value]
        return type(value)(inside) if type(value) in (list, tuple) else Derived(value, inside)
    return _leaf(value, leaves, seen) if is_array(value) and not frozen else Still(value)


class Still:
    """An entry of a list or dictionary that is no leaf."""

    __slots__ = ("value",)

    def __init__(self, value: Any):
        self.value = value

    def __eq__(self, other: object) -> bool:
        return type(other) is Still and _same(self.value, other.value)

    __hash__ = None  # type: ignore[assignment]


class Derived:
    """A container of a class derived from Python's, or a dataclass, taken apart into a list or dictionary."""

    __slots__ = ("like", "inside")

    def __init__(self, like: Any, inside: Any):
        self.like = _copy_with(like, {} if isinstance(like, dict) else dict.fromkeys(CHILDREN_OF.get(type(like), ())))
        self.inside = inside

    def __eq__(self, other: object) -> bool:
        if type(other) is not Derived or type(self.like) is not type(other.like):
            return False
        if type(self.like) in CHILDREN_OF and not _have_same(self.like.__dict__, other.like.__dict__):
            return False
        return _alike(self.inside, other.inside)

    __hash__ = None  # type: ignore[assignment]


def _copy_with(like: Any, inside: Any) -> Any:
    """Return a container of the same class and with the same attributes, and other entries."""
    if type(like) in CHILDREN_OF:
        new: Any = object.__new__(type(like))
        new.__dict__.update(like.__dict__ | inside)
        return new
    if isinstance(like, tuple):
        new = tuple.__new__(type(like), inside)
        if hasattr(like, "__dict__"):
            new.__dict__.update(like.__dict__)
        return new
    new = copy.copy(like)
    new.clear()
    new.update(inside) if isinstance(new, dict) else new.extend(inside)
    return new


def unflatten_module(skeleton: Skeleton, leaves: Any) -> Any:
    mapped = tree.mapping.get()
    if mapped:
        leaves = [np.asarray(x) if is_numpy_scalar(x) else x for x in leaves]
    new = _build(skeleton.root, leaves, {})
    if mapped:
        followed = not effects.is_parting() and any(type(x) is Tracer and x.owner.kind != "jit" for x in leaves)
        for made in _below(new, {}):
            fields = made.__dict__
            if "_home" in fields and not followed:
                fields["_home"] = ()
                fields["_buffers"] = {name: stop_gradient(x) for name, x in fields["_buffers"].items()}  # copies
    return new


def _below(x: Any, seen: dict) -> list:
    """Return all modules in a module or container, each once."""
    if isinstance(x, Stateful):
        if id(x) in seen:
            return []
        seen[id(x)] = x
        return [x, *(m for v in x.__dict__.values() for m in _below(v, seen))]
    if not is_container(x):
        return []
    return [m for v in _values(x) for m in _below(v, seen)]


def _build(node: Node, leaves: Any, made: dict) -> Any:
    new = made.get(id(node))
    if new is not None:
        return new
    new = object.__new__(node.cls)
    made[id(node)] = new
    fields: dict[str, Any] = new.__dict__
    fields.update(node.fields)
    for name, place in node.leaves:
        fields[name] = leaves[place]
    if node.children:
        for name, child in node.children:
            fields[name] = _build(child, leaves, made)
    for name, inside in node.containers:
        fields[name] = _build_container(inside, leaves, made)
    if node.buffers:
        own = {name: leaves[place] for name, place in node.buffers}
        fields["_buffers"], fields["_home"] = own, ()
        fields["_opened"] = any(type(x) is Tracer for x in own.values())
    elif "_buffers" in fields:
        fields["_buffers"] = effects.snapshot(fields["_buffers"])
    return new


def _build_container(inside: Any, leaves: Any, made: dict) -> Any:
    kind = type(inside)
    if kind is int:
        return leaves[inside]
    if kind is Node:
        return _build(inside, leaves, made)
    if kind is Still:
        return inside.value
    if kind is Derived:
        return _copy_with(inside.like, _build_container(inside.inside, leaves, made))
    if kind is dict:
        return {k: _build_container(v, leaves, made) for k, v in inside.items()}
    return kind([_build_container(v, leaves, made) for v in inside])


def _alike(a: Any, b: Any) -> bool:
    """Compare nodes, buffers apart: they are numbers, and change."""
    if type(a) is not Node or type(b) is not Node:
        if type(a) is dict and type(b) is dict:
            return a.keys() == b.keys() and all(_alike(a[k], b[k]) for k in a)
        if type(a) in (list, tuple) and type(a) is type(b):
            return len(a) == len(b) and all(_alike(x, y) for x, y in zip(a, b, strict=True))
        return a == b
    if a is b:
        return True
    names = [name for name, _ in (*a.children, *a.containers)]
    return (
        a.cls is b.cls
        and a.leaves == b.leaves
        and a.buffers == b.buffers
        and _alike([list(c) for c in a.children], [list(c) for c in b.children])
        and _alike([list(c) for c in a.containers], [list(c) for c in b.containers])
        and a.fields.keys() - _UNIMPORTANT == b.fields.keys() - _UNIMPORTANT
        and all(_same(v, b.fields[k]) for k, v in a.fields.items() if k not in RESERVED and k not in names)
    )


def _have_same(a: dict, b: dict) -> bool:
    return a.keys() == b.keys() and all(_same(v, b[k]) for k, v in a.items())


def _same(a: Any, b: Any) -> bool:
    """Compare settings: arrays by identity, everything else by ``==`` and its type."""
    if a is b:
        return True
    if hasattr(a, "dtype") or hasattr(b, "dtype"):
        return is_numpy_scalar(a) and is_numpy_scalar(b) and a.dtype == b.dtype and a.tobytes() == b.tobytes()
    try:
        return bool(a == b) and kind_of(a) == kind_of(b)
    except ValueError:
        return False
