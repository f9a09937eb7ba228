"""``fad.numpy.vectorize``: a function of numbers, or of small arrays, mapped over larger ones by ``vmap``."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np

from fad import tree
from fad.core.transformed import transformed
from fad.ops.creation import copy
from fad.ops.structural import as_array, broadcast_to, reshape
from fad.transforms.vmap import vmap

_ARRAY = r"\(\s*(?:\w+\s*(?:,\s*\w+\s*)*)?\)"
_SIGNATURE = re.compile(rf"\s*{_ARRAY}\s*(?:,\s*{_ARRAY}\s*)*->\s*{_ARRAY}\s*(?:,\s*{_ARRAY}\s*)*$")


def _dimensions(text: str) -> list[tuple[str, ...]]:
    return [tuple(re.findall(r"\w+", part)) for part in re.findall(_ARRAY, text)]


def vectorize(pyfunc: Callable, *, excluded: Any = (), signature: str | None = None) -> Callable:
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
        Function of numbers, or with a signature of small arrays.
    excluded : set of int
        Positions of arguments that are passed whole.
    signature : str
        The axes of the small arrays, such as ``"(n),(n)->()"``; axes in front of them are mapped over.

    Raises
    ------
    ValueError
        if the signature is malformed, or does not fit the arguments.

    Examples
    --------
    >>> import numpy as np
    >>> vectorize(lambda x, y: x if x > y else 2 * y)(np.array([1.0, 2.0, 3.0]), 2.0)
    array([4., 4., 3.])
    >>> vectorize(np.dot, signature="(n),(n)->()")(np.ones((2, 3)), np.arange(3.0))
    array([3., 3.])
    """
    if signature is not None and not _SIGNATURE.match(signature):
        raise ValueError(f"not a valid signature: {signature!r}; write such as '(m,n),(n)->(m)'")
    cores = None if signature is None else _dimensions(signature.split("->")[0])

    @transformed("numpy.vectorize", pyfunc)
    def vectorized(*args: Any) -> Any:
        mapped = [i for i in range(len(args)) if i not in excluded]
        arrays = [as_array(args[i]) for i in mapped]
        ranks = [0] * len(arrays) if cores is None else [len(c) for c in cores]
        if len(ranks) != len(arrays):
            raise ValueError(f"the signature {signature!r} is of {len(ranks)} arrays, but {len(arrays)} were given")
        if cores is not None:
            _check_sizes(cores, arrays, signature)
        lead = np.broadcast_shapes(*(x.shape[: x.ndim - n] for x, n in zip(arrays, ranks, strict=True)))
        wide = [broadcast_to(x, lead + x.shape[x.ndim - n :]) for x, n in zip(arrays, ranks, strict=True)]

        def on_one(*elements):
            whole = list(args)
            for i, element in zip(mapped, elements, strict=True):
                whole[i] = element
            return pyfunc(*whole)

        if not lead:
            return tree.map(copy, on_one(*wide))  # arrays of their own, without axes
        rows = [reshape(x, (-1, *x.shape[len(lead) :]) if x.size else (0, *x.shape[len(lead) :])) for x in wide]
        return tree.map(lambda y: reshape(y, lead + y.shape[1:]), vmap(on_one)(*rows))

    return vectorized


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
