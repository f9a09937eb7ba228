"""``fad.numpy.vectorize``: a function of numbers, or of small arrays, mapped over larger ones by ``vmap``."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import Any

import numpy as np

from fad import tree
from fad.core.runs.stand_ins import OBJECTS, stand_for
from fad.core.runs.transformed import transformed
from fad.core.tracing.numpy_dispatch import LOADERS, UFUNCS
from fad.core.tracing.tracer import Tracer
from fad.core.tracing.views import layout
from fad.ops.arrangement.structural import as_array, broadcast_to, reshape
from fad.ops.layout.memory_order import axes_in_memory, lay_out_axes
from fad.ops.places.creation import copy
from fad.transforms.vmap import vmap

_ARRAY = r"\(\s*(?:\w+\s*(?:,\s*\w+\s*)*)?\)"
_SIGNATURE = re.compile(rf"\s*{_ARRAY}\s*(?:,\s*{_ARRAY}\s*)*->\s*{_ARRAY}\s*(?:,\s*{_ARRAY}\s*)*$")


def _dimensions(text: str) -> list[tuple[str, ...]]:
    return [tuple(re.findall(r"\w+", part)) for part in re.findall(_ARRAY, text)]


def vectorize(
    pyfunc: Any = None, otypes: Any = None, doc: str | None = None, excluded: Any = None, cache: bool = False,
    signature: str | None = None,
) -> Callable:  # fmt: skip
    """Return a function that maps `pyfunc` over arrays that are broadcast against each other.

    Where ``numpy.vectorize`` loops in Python, this runs all elements at once, under `fad.vmap`; so it can be
    differentiated, and an ``if`` on an element splits the elements by the path they take.

    Returns
    -------
    callable
        With the arguments of `pyfunc`; the result has the broadcast shape in front.

    Parameters
    ----------
    pyfunc : callable
        Function of numbers, or with a signature of small arrays; without it a decorator is returned.
    otypes : str or list of dtypes
        Dtype of each result; by default they have that which `pyfunc` gives them.
    doc : str
        Docstring of the result; by default that of `pyfunc`.
    excluded : set of int or str
        Positions and names of arguments that are passed whole.
    cache : bool
        Has no effect: `pyfunc` is never called twice for the same elements.
    signature : str
        The axes of the small arrays, such as ``"(n),(n)->()"``; axes in front of them are mapped over.

    Raises
    ------
    ValueError
        if the signature is malformed or does not fit the arguments, or `otypes` not the number of results.

    Examples
    --------
    >>> import numpy as np
    >>> vectorize(lambda x, y: x if x > y else 2 * y)(np.array([1.0, 2.0, 3.0]), 2.0)
    array([4., 4., 3.])
    >>> vectorize(np.dot, signature="(n),(n)->()")(np.ones((2, 3)), np.arange(3.0))
    array([3., 3.])
    """
    if pyfunc is None:  # a decorator with options
        return functools.partial(vectorize, otypes=otypes, doc=doc, excluded=excluded, cache=cache, signature=signature)
    if signature is not None and not _SIGNATURE.match(signature):
        raise ValueError(f"not a valid signature: {signature!r}; write such as '(m,n),(n)->(m)'")
    cores = None if signature is None else _dimensions(signature.split("->")[0])
    whole = frozenset(excluded or ())

    @transformed("numpy.vectorize", pyfunc)
    def vectorized(*args: Any, **kwargs: Any) -> Any:
        given: dict[Any, Any] = {**dict(enumerate(args)), **kwargs}
        mapped = [key for key in given if key not in whole]
        arrays = [as_array(given[key]) for key in mapped]
        ranks = [0] * len(arrays) if cores is None else [len(c) for c in cores]
        if len(ranks) != len(arrays):
            raise ValueError(f"the signature {signature!r} is of {len(ranks)} arrays, but {len(arrays)} were given")
        if cores is not None:
            _check_sizes(cores, arrays, signature)
        lead = np.broadcast_shapes(*(x.shape[: x.ndim - n] for x, n in zip(arrays, ranks, strict=True)))
        wide = [broadcast_to(x, lead + x.shape[x.ndim - n :]) for x, n in zip(arrays, ranks, strict=True)]

        def on_one(*elements):
            values = {**given, **dict(zip(mapped, elements, strict=True))}
            return pyfunc(*[values[i] for i in range(len(args))], **{name: values[name] for name in kwargs})

        if not lead:
            return _convert(tree.map(copy, on_one(*wide)), otypes)  # arrays of their own, without axes
        rows = [reshape(x, (-1, *x.shape[len(lead) :]) if x.size else (0, *x.shape[len(lead) :])) for x in wide]
        results = tree.map(lambda y: reshape(y, lead + y.shape[1:]), vmap(on_one)(*rows))
        if cores is None:  # as a ufunc's: in the order that the operands have in memory
            axes = _order_of_operands(arrays)
            results = tree.map(lambda y: lay_out_axes(y, axes) if len(axes) == y.ndim else y, results)
        return _convert(results, otypes)

    if doc is not None:
        vectorized.__doc__ = doc
    return vectorized


class Vectorized:
    """What stands for an object that a program made by ``numpy.vectorize`` before a transform runs.

    It is NumPy's for plain arguments.
    """

    def __init__(self, original: np.vectorize):
        self.stands_for = original
        self._own: Callable | None = None
        self._function: Any = None  # what `_own` maps

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return np.vectorize

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stands_for, name)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self.stands_for.__reduce_ex__(protocol)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        v: Any = self.stands_for
        if not any(type(x) is Tracer for x in tree.leaves((args, kwargs))):
            return v(*args, **kwargs)
        function = stand_for(v.pyfunc)  # of a library's function that may not have been known in an earlier run
        if self._own is None or function is not self._function:
            self._own = vectorize(function, v.otypes, None, v.excluded, v.cache, v.signature)
            self._function = function
        return self._own(*args, **kwargs)


OBJECTS[np.vectorize] = Vectorized


def _load_numbas(ufunc: Any) -> None:
    """Let a ufunc that Numba compiled be mapped for traced values: the Python function that it was made of."""
    if type(ufunc).__module__.startswith("numba.") and hasattr(ufunc, "__wrapped__"):
        UFUNCS[ufunc] = vectorize(ufunc.__wrapped__)


LOADERS.append(_load_numbas)


def _convert(results: Any, otypes: Any) -> Any:
    """Return the results in the dtypes of `otypes`, one for each."""
    if otypes is None:
        return results
    several = results if isinstance(results, tuple) else (results,)
    if len(several) != len(otypes):
        raise ValueError(f"otypes has {len(otypes)} dtypes, but the function returned {len(several)} results")
    several = tuple(as_array(y).astype(dtype, copy=False) for y, dtype in zip(several, otypes, strict=True))
    return several if isinstance(results, tuple) else several[0]


def _order_of_operands(arrays: list) -> tuple:
    """Return the axes of an elementwise result from the slowest to the fastest, as NumPy's iterator orders them."""
    plain = [x if isinstance(x, (np.ndarray, np.generic)) else np.empty(np.shape(x)) for x in map(layout, arrays)]
    return axes_in_memory(np.nditer([*plain, None], flags=["zerosize_ok"]).operands[-1])


def _check_sizes(cores: list, arrays: list, signature: str | None) -> None:
    sizes: dict[str, int] = {}
    for core, x in zip(cores, arrays, strict=False):
        if x.ndim < len(core):
            raise ValueError(
                f"an array of shape {x.shape} does not have the axes {core} of the signature {signature!r}"
            )
        for name, n in zip(core, x.shape[x.ndim - len(core) :], strict=True):
            if sizes.setdefault(name, n) != n:
                raise ValueError(f"the axis {name} of the signature {signature!r} has the sizes {sizes[name]} and {n}")
