"""Questions about an array, not its values: shape, rank, size, dtype. Tracers answer them; they are no operations."""

from __future__ import annotations

from typing import Any

import numpy as np

from fad.core.tracing.numpy_dispatch import FUNCTIONS
from fad.core.tracing.tracer import Tracer, stack_list
from fad.core.tracing.views import RUNS, follow, layout, path_of, root_of, unwrap
from fad.core.tracing.weak import number


def _stand_in(x: Any) -> Any:
    """Return something plain of the same shape; a list may hold what is no number, as None, beside traced values."""
    if type(x) in (list, tuple):
        return [_stand_in(e) for e in x]
    return np.broadcast_to(False, x.shape) if type(x) is Tracer else x


def ndim(a: Any) -> int:
    return a.ndim if type(a) is Tracer else np.ndim(_stand_in(a))


def shape(a: Any) -> tuple[int, ...]:
    return a.shape if type(a) is Tracer else np.shape(_stand_in(a))


def size(a: Any, axis: Any = None) -> int:
    return a.size if axis is None and type(a) is Tracer else np.size(_stand_in(a), axis)


def example(x: Any) -> Any:
    """Return something plain that NumPy's type promotion treats as it would treat `x`."""
    if type(x) is Tracer:
        value = number(x.owner.lower(x) if type(x.wrapped) is not Tracer else unwrap(x))
        return value if type(value) in (bool, int, float, complex) else x.dtype
    return [example(e) for e in x] if type(x) in (list, tuple) else x


def result_type(*arrays_and_dtypes: Any) -> np.dtype:
    return np.result_type(*(example(x) for x in arrays_and_dtypes))


def iscomplexobj(x: Any) -> bool:
    return stack_list(x).dtype.kind == "c"


def isrealobj(x: Any) -> bool:
    return stack_list(x).dtype.kind != "c"


def can_cast(from_: Any, to: Any, casting: Any = "safe") -> bool:
    return np.can_cast(example(from_), to, casting)


def min_scalar_type(a: Any) -> np.dtype:
    return stack_list(a).dtype


def common_type(*arrays: Any) -> Any:
    return np.common_type(*(np.empty(0, x.dtype) if type(x) is Tracer else x for x in arrays))


def einsum_path(*operands: Any, **options: Any) -> tuple:
    return np.einsum_path(*map(_stand_in, operands), **options)


def shares_memory(a: Any, b: Any, max_work: Any = None) -> bool:
    """Return whether arrays are views of one array that have an element in common."""
    if type(a) is not Tracer or type(b) is not Tracer:
        return False
    RUNS.laid_out = True
    if root_of(a) is not root_of(b):
        return False
    places = [follow(layout(root_of(x)), path_of(x)) for x in (a, b)]
    return any(p is None for p in places) or np.shares_memory(*places)


FUNCTIONS.update({
    np.ndim: ndim, np.shape: shape, np.size: size, np.result_type: result_type, np.iscomplexobj: iscomplexobj,
    np.isrealobj: isrealobj, np.can_cast: can_cast, np.min_scalar_type: min_scalar_type, np.common_type: common_type,
    np.shares_memory: shares_memory, np.may_share_memory: shares_memory, np.einsum_path: einsum_path,
})  # fmt: skip
