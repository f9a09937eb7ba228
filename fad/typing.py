"""The words of public signatures: what parameters take, and what functions return.

To a type checker they are `Any`, for the same code takes arrays of NumPy, of CuPy and of the eager API, and values that
stand for arrays while a function is differentiated or recorded; what each does take is checked when it is called.
"""

from typing import Any, TypeAlias

Array: TypeAlias = Any  # an array, of NumPy or of a device, or a traced value that stands for one
ArrayLike: TypeAlias = Any  # an array, a number, or nested lists of numbers
PyTree: TypeAlias = Any  # nested tuples, lists, dicts, modules and registered classes, with arrays at their leaves
DTypeLike: TypeAlias = Any  # a dtype, or what `np.dtype` makes one of: float, "float32"
Shape: TypeAlias = Any  # the length of each axis, in a tuple; a number for a single axis
Key: TypeAlias = Any  # a random key, as `fad.random.key` makes it, or a seed
