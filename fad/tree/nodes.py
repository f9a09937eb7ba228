"""The structure of pytrees: taking them apart, putting them together, mapping over their leaves; optree does the work.

A bare array is by far the commonest tree, so it has a short path that never enters optree.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterable, Sequence
from contextvars import ContextVar
from typing import Any, cast

import numpy as np
import optree

from fad.errors import TreeMismatchError
from fad.typing import PyTree

_NAMESPACE = "fad"
LEAF = optree.tree_structure(cast(Any, 0))
SINGLE = optree.tree_structure(cast(Any, (0,)))  # of the arguments of a function of one array
# Types that are a leaf beyond doubt: no need to ask optree. The tracer adds itself.
_BARE: set[type] = {np.ndarray, float, np.float64, np.float32}
CHILDREN_OF: dict[type, tuple] = {}  # of registered dataclasses: the names of the fields that are children
_SETTINGS: dict[type, Callable] = {}  # of classes of the user's: the function that returns what is no child
# True while `map` builds its result: a node with state of its own then makes a new one, and no view of the old.
mapping: ContextVar[bool] = ContextVar("mapping", default=False)
# True while paths are requested: a node may then name its children, which costs time that a plain flatten saves.
naming: ContextVar[bool] = ContextVar("naming", default=False)


def flatten(tree: PyTree, is_leaf: Callable | None = None) -> tuple[list, Any]:
    """Return ``(leaves, structure)``. ``None`` is an empty tree.

    Parameters
    ----------
    tree : tree
        Nested lists, tuples, dicts, named tuples, and what is registered.
    is_leaf : callable
        Says of a node whether it is a leaf.

    Returns
    -------
    (leaves, structure)

    Examples
    --------
    >>> flatten({"b": 2.0, "a": (1.0, None)})[0]
    [1.0, 2.0]
    """
    if is_leaf is None:
        kind = type(tree)
        if kind in _BARE:
            return [tree], LEAF
        if kind is tuple and len(tree) == 1 and type(tree[0]) in _BARE:
            return [*tree], SINGLE
    leaves, treedef = optree.tree_flatten(tree, is_leaf, namespace=_NAMESPACE)
    return leaves, treedef


def flatten_with_orders(tree: PyTree) -> tuple[list, Any, tuple]:
    """Return ``(leaves, structure, orders)``; the orders are those of the keys of dictionaries, which no structure has.

    Structures are equal whatever the order of the keys, and for 1 and True as keys or as settings of a class, but a
    function that loops over them, or computes with them, sees it.
    """
    nodes: list = []
    leaves, treedef = flatten(tree, cast(Any, nodes.append))  # called with each node; None says that it is no leaf
    return leaves, treedef, tuple([_note(x) for x in nodes if type(x) in _SETTINGS or (isinstance(x, dict) and x)])


def _note(x: Any) -> Any:
    return kind_of(_SETTINGS[type(x)](x)) if type(x) in _SETTINGS else _keys_of(x)


def _keys_of(x: dict) -> tuple:
    return tuple([key if type(key) is str else (type(key), key) for key in x])


def kind_of(x: Any) -> Any:
    """Return what tells equal settings apart: 1 from 1.0 and True, 0.0 from -0.0, a list from a tuple."""
    kind = type(x)
    if kind is tuple or kind is list:
        return (kind, *[kind_of(part) for part in x])
    if kind is dict:
        return (kind, *[kind_of(part) for part in x.values()])
    if issubclass(kind, np.generic):
        return kind, x.tobytes()
    return (kind, repr(x)) if kind is float or kind is complex else kind


def unflatten(treedef: Any, leaves: Iterable) -> PyTree:
    """Rebuild a tree from its structure and leaves; the inverse of :func:`flatten`.

    Parameters
    ----------
    treedef : structure
        Of `flatten` or `structure`.
    leaves : iterable
        One for each leaf.

    Returns
    -------
    tree

    Raises
    ------
    ValueError
        if there are not as many leaves as the tree has.

    Examples
    --------
    >>> unflatten(structure({"a": 0, "b": (0, 0)}), [1.0, 2.0, 3.0])
    {'a': 1.0, 'b': (2.0, 3.0)}
    """
    if treedef is LEAF:
        return leaves[0] if type(leaves) is list else next(iter(leaves))
    if treedef is SINGLE:
        (leaf,) = leaves
        return (leaf,)
    return optree.tree_unflatten(treedef, leaves)


def leaves(tree: PyTree, is_leaf: Callable | None = None) -> list:
    """Return the leaves, left to right; dictionaries in the order of their sorted keys.

    Parameters
    ----------
    tree : tree
    is_leaf : callable
        Says of a node whether it is a leaf.

    Returns
    -------
    list

    Examples
    --------
    >>> leaves({"b": 2.0, "a": [1.0, None]})
    [1.0, 2.0]
    """
    return flatten(tree, is_leaf)[0]


def structure(tree: PyTree, is_leaf: Callable | None = None) -> Any:
    """Return the structure of a tree without its leaves; structures compare with ``==``.

    Parameters
    ----------
    tree : tree
    is_leaf : callable
        Says of a node whether it is a leaf.

    Returns
    -------
    structure

    Examples
    --------
    >>> structure((1.0, [2.0])) == structure((3.0, [4.0]))
    True
    """
    return flatten(tree, is_leaf)[1]


def map(f: Callable, tree: PyTree, *rest: PyTree, is_leaf: Callable | None = None) -> PyTree:
    """Apply ``f`` leaf by leaf to one or more trees of the same structure.

    Raises TreeMismatchError if the others do not have the structure of the first.

    Parameters
    ----------
    f : callable
        Of one leaf of each tree.
    tree, *rest : trees
        Of one structure.
    is_leaf : callable, keyword only
        Says of a node of `tree` whether it is a leaf.

    Returns
    -------
    tree
        Of the results.

    Raises
    ------
    TreeMismatchError
        if the trees have different structures.

    Examples
    --------
    >>> map(lambda x, y: x + y, {"w": 1.0}, {"w": 2.0})
    {'w': 3.0}
    """
    xs, treedef = flatten(tree, is_leaf)
    columns = [xs]
    for other in rest:
        try:
            columns.append(treedef.flatten_up_to(other))
        except (ValueError, TypeError) as error:
            raise TreeMismatchError(
                f"tree.map needs trees of one structure; the first is {treedef}, another does not fit it: {error}"
            ) from None
    found = [f(*row) for row in zip(*columns, strict=True)]
    if treedef is LEAF:
        return found[0]
    token = mapping.set(True)
    try:
        return unflatten(treedef, found)
    finally:
        mapping.reset(token)


def reduce(f: Callable, tree: PyTree, *initial: PyTree) -> Any:
    """Fold ``f`` over the leaves, from the left.

    Parameters
    ----------
    f : callable
        Of two leaves, or of what it returned and the next leaf.
    tree : tree
    *initial
        What to begin with; by default the first leaf.

    Returns
    -------
    what `f` returns

    Raises
    ------
    TypeError
        if the tree has no leaves, and there is no initial value.

    Examples
    --------
    >>> reduce(lambda a, b: a + b, [1.0, (2.0, 3.0)])
    6.0
    """
    return functools.reduce(f, leaves(tree), *initial)


def transpose(outer: Any, inner: Any, tree: PyTree) -> PyTree:
    """Turn a tree of structure ``outer`` of trees of structure ``inner`` inside out.

    Parameters
    ----------
    outer, inner : structure
        Of the tree, and of each of its leaves' places.
    tree : tree of trees

    Returns
    -------
    tree
        With the inner structure outside.

    Raises
    ------
    TreeMismatchError
        if the tree is no `outer` tree of `inner` trees.

    Examples
    --------
    >>> transpose(structure([0, 0]), structure({"a": 0}), [{"a": 1}, {"a": 2}])
    {'a': [1, 2]}

    Raises TreeMismatchError if the tree is not of that structure.
    """
    try:
        rows = [inner.flatten_up_to(part) for part in outer.flatten_up_to(tree)]
    except (ValueError, TypeError) as error:
        raise TreeMismatchError(f"tree.transpose needs a tree of {outer} of trees of {inner}: {error}") from None
    columns = zip(*rows, strict=True) if rows else [()] * inner.num_leaves
    return unflatten(inner, [unflatten(outer, column) for column in columns])


def flatten_with_path(tree: PyTree, is_leaf: Callable | None = None) -> tuple[list, Any]:
    """Return ``([(path, leaf), ...], structure)``; a path is a tuple of keys and indices.

    Parameters
    ----------
    tree : tree
    is_leaf : callable
        Says of a node whether it is a leaf.

    Returns
    -------
    (list of (path, leaf), structure)

    Examples
    --------
    >>> flatten_with_path({"w": [1.0, 2.0]})[0]
    [(('w', 0), 1.0), (('w', 1), 2.0)]
    """
    token = naming.set(True)
    try:
        paths, xs, treedef = optree.tree_flatten_with_path(tree, is_leaf, namespace=_NAMESPACE)
    finally:
        naming.reset(token)
    return list(zip(paths, xs, strict=True)), treedef


def map_with_path(f: Callable, tree: PyTree, *rest: PyTree, is_leaf: Callable | None = None) -> PyTree:
    """Like :func:`map`, with the path of each leaf as first argument of ``f``.

    Parameters
    ----------
    f : callable
        Of the path and one leaf of each tree.
    tree, *rest : trees
        Of one structure.
    is_leaf : callable, keyword only
        Says of a node of `tree` whether it is a leaf.

    Returns
    -------
    tree
        Of the results.

    Raises
    ------
    TreeMismatchError
        if the trees have different structures.

    Examples
    --------
    >>> map_with_path(lambda path, x: 0 * x if path[0] == "bias" else x, {"bias": 1.0, "w": 2.0})
    {'bias': 0.0, 'w': 2.0}
    """
    paths = iter([path for path, _ in flatten_with_path(tree, is_leaf)[0]])
    return map(lambda *xs: f(next(paths), *xs), tree, *rest, is_leaf=is_leaf)


def register_node(cls: type, flatten: Callable, unflatten: Callable) -> type:
    """Make ``cls`` a pytree: ``flatten(x) -> (children, metadata)``, ``unflatten(metadata, children) -> x``.

    Parameters
    ----------
    cls : class
    flatten : callable
        Of an instance; returns children and what else is needed.
    unflatten : callable
        Of what else is needed and children; returns an instance.

    Returns
    -------
    None

    Raises
    ------
    ValueError
        if the class is registered already, or one of Python's containers.

    Examples
    --------
    >>> class Interval:
    ...     def __init__(self, low, high):
    ...         self.low, self.high = low, high
    >>> _ = register_node(Interval, lambda x: ((x.low, x.high), None), lambda _, ends: Interval(*ends))
    >>> leaves(Interval(1.0, 2.0))
    [1.0, 2.0]
    """
    enter_node(cls, flatten, unflatten)
    _SETTINGS[cls] = lambda x: flatten(x)[1]
    return cls


def enter_node(cls: type, flatten: Callable, unflatten: Callable) -> type:
    """Make a class a pytree whose settings are told apart by their structure itself, or that has none."""
    return optree.register_pytree_node(cls, flatten, unflatten, namespace=_NAMESPACE)


def register_dataclass(
    cls: type, data_fields: Sequence[str] | None = None, meta_fields: Sequence[str] | None = None
) -> type:
    """Make a dataclass a pytree whose children are its fields; usable as a decorator.

    Parameters
    ----------
    cls : class
        A dataclass.
    data_fields : list of str, optional
        Names of the fields that are the children: all but `meta_fields`, if left out.
    meta_fields : list of str, optional
        Names of the fields that are settings (names, functions, sizes) and no children: they belong to the structure
        and must be hashable. If both lists are left out, the fields made by
        ``dataclasses.field(metadata={"static": True})``.

    Returns
    -------
    the class

    Raises
    ------
    TypeError
        if the class is no dataclass;
    ValueError
        if the two lists do not have each field once.

    Examples
    --------
    >>> @register_dataclass
    ... @dataclasses.dataclass
    ... class Point:
    ...     x: float
    ...     y: float
    >>> map(lambda v: 2 * v, Point(1.0, 2.0))
    Point(x=2.0, y=4.0)

    >>> @functools.partial(register_dataclass, meta_fields=["unit"])
    ... @dataclasses.dataclass
    ... class Length:
    ...     value: float
    ...     unit: str
    >>> leaves(Length(3.0, "m"))
    [3.0]
    """
    names, settings = _split_fields(cls, data_fields, meta_fields)

    def flatten_fields(x):
        return tuple([getattr(x, name) for name in names]), tuple([getattr(x, name) for name in settings]), names

    def unflatten_fields(values, children):
        new: Any = object.__new__(cls)
        for name, value in (*zip(names, children, strict=True), *zip(settings, values, strict=True)):
            object.__setattr__(new, name, value)
        return new

    enter_node(cls, flatten_fields, unflatten_fields)
    CHILDREN_OF[cls] = names
    if settings:
        _SETTINGS[cls] = lambda x: tuple([getattr(x, name) for name in settings])
    return cls


def _split_fields(cls: type, data: Sequence[str] | None, meta: Sequence[str] | None) -> tuple[tuple, tuple]:
    """Return the names of a dataclass's fields that are children, and of those that are settings."""
    fields = dataclasses.fields(cls)
    every = [field.name for field in fields]
    if data is None and meta is None:
        meta = [field.name for field in fields if field.metadata.get("static")]
    if meta is None:
        meta = [name for name in every if name not in (data or ())]
    if data is None:
        data = [name for name in every if name not in meta]
    if sorted([*data, *meta]) != sorted(every):
        raise ValueError(
            f"data_fields and meta_fields must have each field of {cls.__name__} once, {every}, "
            f"but are {list(data)} and {list(meta)}"
        )
    return tuple(data), tuple(meta)
