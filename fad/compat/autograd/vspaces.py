"""What autograd knows of a value: the vector space that it belongs to."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from fad import tree
from fad.core.tracing.spec import ShapeDtypeStruct, spec_of

__all__ = ["VSpace", "vspace"]


class VSpace:
    """A vector space over the reals: arrays of one shape and dtype, or containers of them.

    A complex array is a pair of reals here, so its space has twice as many dimensions as the array has elements.
    """

    def __init__(self, value: Any):
        self._like = tree.map(spec_of, value)
        leaves = tree.leaves(self._like)
        self.iscomplex = any(s.dtype.kind == "c" for s in leaves)
        self.size = sum(s.size * (2 if s.dtype.kind == "c" else 1) for s in leaves)
        if type(self._like) is ShapeDtypeStruct:
            self.shape, self.dtype, self.ndim = self._like.shape, self._like.dtype, self._like.ndim

    def _make(self, part: Any) -> Any:
        """Return the member whose real parts, and imaginary ones where there are any, are ``part(shape)``."""

        def leaf(s):
            x = np.asarray(part(s.shape))
            return (x + 1j * np.asarray(part(s.shape)) if s.dtype.kind == "c" else x).astype(s.dtype)[()]

        return tree.map(leaf, self._like)

    def zeros(self) -> Any:
        """Return the zero of the space."""
        return self._make(np.zeros)

    def ones(self) -> Any:
        """Return the sum of the unit vectors."""
        return self._make(np.ones)

    def randn(self) -> Any:
        """Return a random member, normally distributed."""
        return self._make(lambda shape: np.random.randn(*shape))

    def standard_basis(self) -> Iterator[Any]:
        """Yield the unit vectors, for a complex element two of them."""
        leaves, treedef = tree.flatten(self.zeros())
        for k, x in enumerate(leaves):
            for index in np.ndindex(np.shape(x)):
                for unit in (1.0, 1j) if x.dtype.kind == "c" else (1.0,):
                    member = np.array(x)
                    member[index] = unit
                    yield tree.unflatten(treedef, [*leaves[:k], member[()], *leaves[k + 1 :]])

    def add(self, x: Any, y: Any) -> Any:
        """Return the sum of two members."""
        return tree.add(x, y)

    def mut_add(self, x: Any, y: Any) -> Any:
        """Return the sum of two members, of which the first may be None; nothing is overwritten."""
        return y if x is None else tree.add(x, y)

    def scalar_mul(self, x: Any, a: Any) -> Any:
        """Return a member times a real number."""
        return tree.scale(a, x)

    def inner_prod(self, x: Any, y: Any) -> Any:
        """Return the scalar product of two members, over the reals."""
        products = tree.map(lambda u, v: np.sum(np.real(np.conjugate(u) * v)), x, y)
        return tree.reduce(lambda a, b: a + b, products)

    def covector(self, x: Any) -> Any:
        """Return the cotangent that pairs with members as `x` does in the scalar product."""
        return tree.map(np.conjugate, x)

    def __eq__(self, other: object) -> bool:
        return type(other) is VSpace and self._like == other._like

    def __hash__(self) -> int:
        return hash(self.size)

    def __repr__(self) -> str:
        return f"VSpace({self._like})"


def vspace(value: Any) -> VSpace:
    """Return the space that a value belongs to.

    >>> vspace(np.ones((2, 3))).shape
    (2, 3)
    """
    return VSpace(value)
