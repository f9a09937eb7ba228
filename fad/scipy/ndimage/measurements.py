"""What is measured of the parts of an image that labels name: sums, means, extremes, centres of mass."""

from __future__ import annotations

from typing import Any

import numpy as np

from fad.core.primitives.samples import call
from fad.ops.arrangement.structural import as_array
from fad.ops.places.functional_updates import At
from fad.ops.places.taking import searchsorted
from fad.scipy.registration import registrar

register_function = registrar("ndimage")


class _Groups:
    """The elements of an image by labels: all, those of one label, or a group for each label in `index`."""

    def __init__(self, input: Any, labels: Any, index: Any):
        self.x = as_array(input)
        self.several = labels is not None and index is not None and np.ndim(index) > 0
        if labels is None:
            self.x = self.x.reshape(-1)
            return
        labels = as_array(labels)
        shape = np.broadcast_shapes(self.x.shape, labels.shape)
        x, labels = (v if v.shape == shape else np.broadcast_to(v, shape) for v in (self.x, labels))
        if not self.several:
            self.x = x[labels > 0 if index is None else labels == index]
            return
        index = as_array(index)
        self.shape, self.x, labels = index.shape, x.reshape(-1), labels.reshape(-1)
        ordered, self.back = np.unique(index.reshape(-1), return_inverse=True)
        self.number = ordered.shape[0]
        self.slots = np.zeros_like(labels, dtype=np.intp)  # the last one is of no group
        if self.number:
            slots = np.minimum(searchsorted(ordered, labels), self.number - 1)
            self.slots = np.where(np.take(ordered, slots) == labels, slots, self.number)

    def count(self) -> Any:
        if not self.several:
            return np.float64(self.x.size)
        return self._give(self._total(np.ones_like(self.x, dtype=float)))

    def add(self, x: Any) -> Any:
        """Return the sum of values in each group."""
        return self._give(self._total(x)) if self.several else np.sum(x)

    def _total(self, x: Any) -> Any:
        dtype = np.result_type(x, float)
        totals = np.zeros_like(x, shape=(self.number + 1,), dtype=dtype)
        return At(totals)[self.slots].add(x.astype(dtype))[: self.number]

    def _give(self, values: Any) -> Any:
        return np.take(values, self.back.reshape(-1)).reshape(self.shape)

    def square(self) -> Any:
        """Return the sum of the squared distances from the mean in each group."""
        if not self.several:
            d = self.x - np.mean(self.x)
        else:
            means = self._total(self.x) / np.maximum(self._total(np.ones_like(self.x, dtype=float)), 1.0)
            d = self.x - np.take(np.concatenate([means, np.zeros_like(means, shape=(1,))]), self.slots)
        return self.add(d * np.conjugate(d))

    def choose(self, greatest: bool) -> Any:
        """Return an extreme of each group, and 0 of one without elements."""
        if not self.several:
            return np.max(self.x) if greatest else np.min(self.x)
        order = np.lexsort((self.x, self.slots))
        if not self.number:
            return np.zeros_like(self.x, shape=self.shape)
        slots, numbers = np.sort(self.slots), np.arange(self.number)
        first, end = searchsorted(slots, numbers), searchsorted(slots, numbers, side="right")
        places = np.minimum(end - 1 if greatest else first, slots.shape[0] - 1)
        found = np.take(np.take(self.x, order), np.maximum(places, 0))
        return self._give(np.where(first == end, np.zeros_like(found), found))


def _samples(s):
    labels = np.array([[1, 1, 0, 2], [2, 2, 0, 3], [3, 0, 1, 1]])
    return [
        call(s.positive(3, 4)),
        call(s.positive(3, 4), labels),
        call(s.positive(3, 4), labels, 2),
        call(s.positive(3, 4), labels, [1, 3, 2]),
        call(s.positive(2, 2, 4), labels[:2], index=np.array([[3, 2], [1, 2]])),
    ]


_FACTS: dict = {
    "complex": False, "constants": (1, 2, "labels", "index"), "samples": _samples,
    "raises": "ValueError: The shapes of the image and of the labels do not broadcast.",
}  # fmt: skip


@register_function("sum_labels", **_FACTS)
def sum_labels(input, labels=None, index=None):
    """Return the sum of an image: of all, where `labels` are positive, or of each label in `index`.

    >>> import numpy as np, fad
    >>> labels = np.array([1, 1, 2, 0])
    >>> fad.scipy.ndimage.sum_labels(np.array([1.0, 2.0, 4.0, 8.0]), labels, [1, 2])
    array([3., 4.])
    """
    groups = _Groups(input, labels, index)
    return groups.add(groups.x)


@register_function("mean", rounding="single", **_FACTS)
def mean(input, labels=None, index=None):
    """Return the mean of an image: of all, where `labels` are positive, or of each label in `index`.

    >>> import numpy as np, fad
    >>> labels = np.array([1, 1, 2, 0])
    >>> fad.grad(lambda x: fad.scipy.ndimage.mean(x, labels, 1))(np.array([1.0, 2.0, 4.0, 8.0]))
    array([0.5, 0.5, 0. , 0. ])
    """
    groups = _Groups(input, labels, index)
    with np.errstate(divide="ignore", invalid="ignore"):
        return groups.add(groups.x) / groups.count()


@register_function("variance", rounding="single", **_FACTS)
def variance(input, labels=None, index=None):
    """Return the variance of an image: of all, where `labels` are positive, or of each label in `index`.

    >>> import numpy as np, fad
    >>> fad.scipy.ndimage.variance(np.array([1.0, 3.0, 4.0]), np.array([1, 1, 2]), 1)
    np.float64(1.0)
    """
    groups = _Groups(input, labels, index)
    with np.errstate(divide="ignore", invalid="ignore"):
        return groups.square() / groups.count()


@register_function("standard_deviation", rounding="single", **{**_FACTS, "samples": lambda s: _samples(s)[:4]})
def standard_deviation(input, labels=None, index=None):
    """Return the root of the `variance`.

    >>> import numpy as np, fad
    >>> fad.scipy.ndimage.standard_deviation(np.array([1.0, 3.0, 4.0]), np.array([1, 1, 2]), 1)
    np.float64(1.0)
    """
    return np.sqrt(variance(input, labels, index))


@register_function("minimum", **_FACTS)
def minimum(input, labels=None, index=None):
    """Return the least element of an image: of all, where `labels` are positive, or of each label in `index`.

    >>> import numpy as np, fad
    >>> fad.scipy.ndimage.minimum(np.array([1.0, 3.0, 4.0]), np.array([1, 1, 2]), [1, 2])
    array([1., 4.])
    """
    return _Groups(input, labels, index).choose(False)


@register_function("maximum", **_FACTS)
def maximum(input, labels=None, index=None):
    """Return the greatest element of an image: of all, where `labels` are positive, or of each label in `index`.

    >>> import numpy as np, fad
    >>> fad.scipy.ndimage.maximum(np.array([1.0, 3.0, 4.0]), np.array([1, 1, 2]), [1, 2])
    array([3., 4.])
    """
    return _Groups(input, labels, index).choose(True)


@register_function("center_of_mass", rounding="single", **{**_FACTS, "samples": lambda s: _samples(s)[:4]})
def center_of_mass(input, labels=None, index=None):
    """Return the mean place of an image, weighted by its values: a tuple of coordinates, or a list of them by label.

    >>> import numpy as np, fad
    >>> fad.scipy.ndimage.center_of_mass(np.array([[0.0, 1.0], [0.0, 3.0]]))
    (np.float64(0.75), np.float64(1.0))
    """
    x = as_array(input)
    total = sum_labels(x, labels, index)
    grids = np.ogrid[tuple(slice(0, n) for n in x.shape)]
    found = [sum_labels(x * grid.astype(float), labels, index) / total for grid in grids]
    if np.ndim(found[0]) == 0:
        return tuple(found)
    return [tuple(row) for row in np.stack(found).T]  # of a table of labels the last axis stands first, as in SciPy


@register_function("sum", **_FACTS)
def sum(input, labels=None, index=None):
    """Return the sum of an image by labels: an older name of `sum_labels`.

    Parameters
    ----------
    input : array_like
    labels : array_like of int, optional
        Of a shape that broadcasts with that of `input`.
    index : int or array_like of int, optional
        The labels whose sums are wanted; without it that of all positive ones.

    Returns
    -------
    ndarray or scalar
        Of the shape of `index`.

    Examples
    --------
    >>> fad.scipy.ndimage.sum(np.array([1.0, 2.0, 4.0]), np.array([1, 0, 1]))
    np.float64(5.0)
    """
    return sum_labels(input, labels, index)
