"""A module with CuPy's names over the stand-in's arrays, so that what is written for CuPy runs without it.

`installed()` puts it in place of `cupy` and `cupyx` for a while; `backend()` is `fad/backends/cupy.py` run on it.
"""

import contextlib
import functools
import importlib
import importlib.util
import sys
import types
from pathlib import Path
from unittest import mock

import c_kernels
import numpy as np
import offers
import standin
from standin import DeviceArray

import fad

_PLAIN = ("float16", "float32", "float64", "complex64", "complex128", "int32", "int64", "bool_", "pi", "inf", "newaxis")
_ATOMIC = ("int32", "float16", "float32", "float64", "uint32", "uint64")


class _Ufunc:
    """An elementwise function of CuPy with its methods."""

    def __init__(self, name, function):
        self._name, self._function = name, function

    def __call__(self, *args, **kwargs):
        for x in args:  # CuPy reads the type itself, and no protocol
            if not standin._is_handled(x):
                raise TypeError(f"Unsupported type {type(x)}")
        return standin._function(self._name, self._function, args, kwargs)

    def __getattr__(self, method):
        return functools.partial(self._method, method)

    def _method(self, method, *args, **kwargs):
        if method == "at" and args[0].dtype.name not in _ATOMIC:
            raise TypeError(f"cupy.{self._name}.at does not support {args[0].dtype}")
        return standin._method_of_ufunc(self._name, self._function, method, args, kwargs)


def _wrapped(name, function):
    if offers.loops(name) is not None:
        return _Ufunc(name, function)
    return functools.wraps(function)(lambda *args, **kwargs: standin._function(name, function, args, kwargs))


def _asarray(x, dtype=None, **_):
    if type(x) is DeviceArray:
        return x if dtype is None else x.astype(dtype)
    return DeviceArray(np.array(x, dtype=dtype))


class _Module(types.ModuleType):
    """A module of CuPy: the names that it offers, run by NumPy or SciPy on the stand-in's arrays."""

    def __init__(self, name, prefix, source):
        super().__init__(name)
        self._prefix, self._source = prefix, source

    def __getattr__(self, name):
        path = self._prefix + name
        if not offers.has(path):
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        value = _wrapped(path, getattr(importlib.import_module(self._source), name))
        setattr(self, name, value)
        return value

    def __dir__(self):
        names = (n[len(self._prefix) :] for n in offers.LINES if n.startswith(self._prefix))
        return [n for n in names if "." not in n]


class _ElementwiseKernel:
    """``cupy.ElementwiseKernel``: C statements for each element, run by NumPy."""

    def __init__(self, in_params, out_params, operation, name="kernel", reduce_dims=True, preamble="",
                 no_return=False, return_tuple=False, *, options=()):  # fmt: skip
        if not name.isidentifier():
            raise ValueError(f'Invalid kernel name: "{name}"')
        self.ins, self.outs = c_kernels.parameters(in_params), c_kernels.parameters(out_params)
        self.body = c_kernels.Body(operation, self.ins, self.outs)
        self.return_tuple = return_tuple

    def __call__(self, *args):
        if len(args) != len(self.ins):
            raise TypeError("Wrong number of arguments")
        shape = np.broadcast_shapes(*[x.shape for x in args if type(x) is DeviceArray])
        given = {name: self._given(x, dtype) for x, (name, dtype) in zip(args, self.ins.items(), strict=True)}
        found = self.body.run(given)
        outs = [np.broadcast_to(found[name], shape).copy() for name in self.outs]
        standin._asked[0] += 1
        outs = tuple(map(DeviceArray, outs))
        return outs if self.return_tuple or len(outs) > 1 else outs[0]

    def _given(self, x, dtype):
        if type(x) is DeviceArray:
            if x.dtype != dtype:
                raise TypeError(f"Type is mismatched. {x.dtype} {dtype}")
            return x._a
        if isinstance(x, np.ndarray):
            raise TypeError("Unsupported type <class 'numpy.ndarray'>")
        return np.asarray(x, dtype)


class _Event:
    """An event of a stream: each takes a millisecond from the one before it."""

    made = 0

    def record(self, stream=None):
        _Event.made += 1
        self.at = _Event.made

    def synchronize(self):
        if standin._forbidden[0]:
            raise standin.HostCopyError("an event was waited for")


class _RuntimeError(RuntimeError):
    """What CuPy raises for what the driver says."""


class _Pool:
    def free_all_blocks(self):
        pass

    def total_bytes(self):
        return 2**20


def _modules():
    cupy = _Module("cupy", "", "numpy")
    cupy.ndarray, cupy.__version__ = DeviceArray, offers.VERSION
    cupy.asarray = cupy.array = _asarray
    cupy.asnumpy = standin.to_host
    cupy.ElementwiseKernel = _ElementwiseKernel
    cupy.lib = types.SimpleNamespace(stride_tricks=types.SimpleNamespace(as_strided=standin.as_strided))
    cupy.get_default_memory_pool = lambda: _Pool()
    for name in _PLAIN:
        setattr(cupy, name, getattr(np, name))
    runtime = types.SimpleNamespace(
        getDeviceProperties=lambda n: {"name": b"stand-in"}, getDeviceCount=lambda: 1, CUDARuntimeError=_RuntimeError
    )  # fmt: skip
    cupy.cuda = types.SimpleNamespace(
        Event=_Event, get_elapsed_time=lambda a, b: float(b.at - a.at), runtime=runtime,
        get_current_stream=lambda: types.SimpleNamespace(synchronize=lambda: None),
    )  # fmt: skip
    found = {"cupy": cupy, "cupyx": types.ModuleType("cupyx"), "cupyx.scipy": types.ModuleType("cupyx.scipy")}
    found["cupyx"].allow_synchronize = lambda allow: contextlib.nullcontext() if allow else standin.no_copies()
    for name in ("linalg", "fft"):
        found[f"cupy.{name}"] = _Module(f"cupy.{name}", f"{name}.", f"numpy.{name}")
        setattr(cupy, name, found[f"cupy.{name}"])
    for name in ("special", "linalg"):  # with all names from the start, as a module has them
        found[f"cupyx.scipy.{name}"] = _Module(f"cupyx.scipy.{name}", f"scipy.{name}.", f"scipy.{name}")
    for module in found.values():
        for name in dir(module) if isinstance(module, _Module) else ():
            getattr(module, name, None)
    return found


MODULES = _modules()


@contextlib.contextmanager
def installed():
    """Let `import cupy` and `import cupyx` find this module inside the block."""
    with mock.patch.dict(sys.modules, MODULES):
        yield MODULES["cupy"]


def loaded():
    """Run `fad/backends/cupy.py` on this module, and return it."""
    path = Path(fad.__file__).parent / "backends" / "cupy.py"
    spec = importlib.util.spec_from_file_location("cupy_backend_on_the_stand_in", path)
    module = importlib.util.module_from_spec(spec)
    with installed():
        spec.loader.exec_module(module)
    return module


class _Backend:
    """`fad/backends/cupy.py`, each call of which finds this module where it imports CuPy."""

    def __init__(self):
        self._module = loaded()

    def __getattr__(self, name):
        value = getattr(self._module, name)
        if not callable(value) or isinstance(value, type):
            return value

        def call(*args, **kwargs):
            with installed():
                out = value(*args, **kwargs)
            return call_inside(out) if name == "scipy_function" and out is not None else out

        return call


def call_inside(function):
    """Return a function that finds this module where it imports CuPy."""

    def run(*args, **kwargs):
        with installed():
            return function(*args, **kwargs)

    return run


@functools.cache
def backend():
    return _Backend()
