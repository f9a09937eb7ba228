"""Pytrees: nested containers of arrays. optree does the work, in the namespace ``"fad"``, under fad's own names.

A bare array is by far the commonest tree, so it has a short path that never enters optree.
"""

from fad.tree.arithmetic import add, norm, ravel, scale, sub, vdot, zeros_like
from fad.tree.nodes import (  # noqa: F401
    _BARE,
    PyTree,
    flatten,
    flatten_with_path,
    leaves,
    map,
    map_with_path,
    mapping,
    naming,
    reduce,
    register_dataclass,
    register_node,
    structure,
    transpose,
    unflatten,
)

__all__ = [
    "add", "flatten", "flatten_with_path", "leaves", "map", "map_with_path", "norm", "ravel", "reduce",
    "register_dataclass", "register_node", "scale", "structure", "sub", "transpose", "unflatten", "vdot",
    "zeros_like",
]  # fmt: skip


def __dir__() -> list[str]:
    return __all__
