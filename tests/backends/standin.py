"""A stand-in for a GPU: an array type over NumPy's memory that refuses what CuPy's would refuse.

- It never becomes a NumPy array by itself, and never meets one in an operation.
- It answers NumPy's ufuncs when they are called (not ``ufunc.reduce`` and its kin), and NumPy's functions, as far as
  CuPy has the name (`cupy_names.txt`), and has the methods that CuPy's arrays have.
- Reductions to one number give an array without axes, as on the GPU, and no NumPy scalar.
- Asking it for a plain number waits for the GPU: inside `no_copies` that is an error.
"""

from __future__ import annotations

import contextlib
import functools
import operator
from pathlib import Path

import numpy as np

_LINES = (Path(__file__).parent / "cupy_names.txt").read_text().splitlines()
NAMES = {line for line in _LINES if line and not line.startswith("#")}
name = "standin"
_forbidden = [False]
_asked = [0]


class HostCopyError(AssertionError):
    """A value was copied to the host where that is forbidden."""


@contextlib.contextmanager
def counted():
    """Count the array operations asked of the device: yields a function that tells how many there have been."""
    start = _asked[0]
    yield lambda: _asked[0] - start


@contextlib.contextmanager
def no_copies():
    """Forbid copies from the device to the host."""
    _forbidden[0] = True
    try:
        yield
    finally:
        _forbidden[0] = False


def _wait(x):
    if _forbidden[0]:
        raise HostCopyError("a value of the device was copied to the host")
    return x._a


class DeviceArray:
    """An array on the pretended device."""

    __slots__ = ("_a",)
    __hash__ = None

    def __init__(self, a):
        self._a = np.asarray(a)

    shape = property(lambda self: self._a.shape)
    dtype = property(lambda self: self._a.dtype)
    ndim = property(lambda self: self._a.ndim)
    size = property(lambda self: self._a.size)
    nbytes = property(lambda self: self._a.nbytes)
    itemsize = property(lambda self: self._a.itemsize)
    flags = property(lambda self: self._a.flags)
    strides = property(lambda self: self._a.strides)
    T = property(lambda self: DeviceArray(self._a.T))
    mT = property(lambda self: DeviceArray(self._a.mT))
    real = property(lambda self: DeviceArray(self._a.real))
    imag = property(lambda self: DeviceArray(self._a.imag))

    def __getattr__(self, attribute):
        if f"ndarray.{attribute}" not in NAMES:
            raise AttributeError(f"arrays on the device have no {attribute}")
        if attribute in ("item", "tolist", "tobytes"):
            _wait(self)
            return getattr(self._a, attribute)
        method = getattr(self._a, attribute)
        return lambda *args, **kwargs: _wrap(method(*_unwrap(args), **_unwrap(kwargs)))

    def __array__(self, *args, **kwargs):
        raise TypeError("Implicit conversion to a NumPy array is not allowed.")

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        if method != "__call__" or ufunc.__name__ not in NAMES:
            return NotImplemented
        if any(not isinstance(x, (DeviceArray, np.ndarray, np.generic, int, float, complex)) for x in inputs):
            return NotImplemented
        return _wrap(ufunc(*_unwrap(inputs), **_unwrap(kwargs)))

    def __array_function__(self, func, types, args, kwargs):
        path = ".".join([*func.__module__.split(".")[1:], func.__name__])
        if path not in NAMES or any(t is not DeviceArray for t in types):
            return NotImplemented
        return _wrap(func(*_unwrap(args), **_unwrap(kwargs)))

    def __getitem__(self, index):
        return _wrap(self._a[_unwrap_index(index)])

    def __setitem__(self, index, value):
        self._a[_unwrap_index(index)] = _unwrap(value)

    def __len__(self):
        return len(self._a)

    def __iter__(self):
        return (self[i] for i in range(len(self)))

    def __bool__(self):
        return bool(_wait(self))

    def __int__(self):
        return int(_wait(self))

    def __float__(self):
        return float(_wait(self))

    def __complex__(self):
        return complex(_wait(self))

    def __index__(self):
        return operator.index(_wait(self))

    def __repr__(self):
        return f"device:{self._a!r}"


def _unwrap(x):
    """Return what the device computes on; a NumPy array with axes does not get there by itself."""
    if type(x) is DeviceArray:
        return x._a
    if isinstance(x, np.ndarray):
        raise TypeError("Unsupported type <class 'numpy.ndarray'>")
    if type(x) in (tuple, list):
        return type(x)(_unwrap(v) for v in x)
    return {k: _unwrap(v) for k, v in x.items()} if type(x) is dict else x


def _unwrap_index(index):
    """Return an index; NumPy arrays are allowed here, as CuPy copies them to the device."""
    parts = index if type(index) is tuple else (index,)
    return tuple(i._a if type(i) is DeviceArray else i for i in parts)


def _wrap(x):
    _asked[0] += 1
    if isinstance(x, np.ndarray) or (isinstance(x, np.generic) and x.dtype.kind in "fciub"):
        return DeviceArray(x)
    if isinstance(x, tuple) and hasattr(x, "_fields"):
        return type(x)(*(_wrap(v) for v in x))
    return type(x)(_wrap(v) for v in x) if type(x) in (tuple, list) else x


def _install(symbol, function, reflected):
    def forwards(self, other):
        if not isinstance(other, (DeviceArray, np.ndarray, np.generic, int, float, complex)):
            return NotImplemented
        return _wrap(function(self._a, _unwrap(other)))

    def backwards(self, other):
        if not isinstance(other, (DeviceArray, np.ndarray, np.generic, int, float, complex)):
            return NotImplemented
        return _wrap(function(_unwrap(other), self._a))

    setattr(DeviceArray, f"__{symbol}__", forwards)
    if reflected:
        setattr(DeviceArray, f"__r{symbol}__", backwards)


for _symbol in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "lshift", "rshift"):
    _install(_symbol, getattr(operator, _symbol), True)
for _symbol, _f in (("and", operator.and_), ("or", operator.or_), ("xor", operator.xor)):
    _install(_symbol, _f, True)
for _symbol in ("lt", "le", "gt", "ge", "eq", "ne"):
    _install(_symbol, getattr(operator, _symbol), False)
for _symbol in ("neg", "pos", "abs", "invert"):
    _unary = functools.partialmethod(lambda self, f: _wrap(f(self._a)), getattr(operator, _symbol))
    setattr(DeviceArray, f"__{_symbol}__", _unary)
array_type = DeviceArray


def owns(x):
    return type(x) is DeviceArray


def from_host(x):
    return DeviceArray(np.array(x))


def to_host(x):
    return _wait(x)


def scatter_add(target, index, values):
    np.add.at(target._a, _unwrap_index(index), _unwrap(values))


def synchronize():
    """Wait for the device: nothing to wait for."""


def timer():
    return lambda: 0.0
