"""The engine: compiles kernels, keeps them for the process and on disk, and gives their addresses."""

from __future__ import annotations

import ctypes
import functools
import hashlib
import threading
from collections.abc import Callable
from typing import Any

import llvmlite.binding as llvm

from fad.compile.codegen.llvm.module import Module, Options
from fad.compile.machine.c_library import CALLED
from fad.compile.runtime import kernel_cache

_FORMAT = 5  # of what is kept on disk
_OF_PYTHON = (
    "PyLong_AsVoidPtr", "PyLong_FromLongLong", "PyEval_SaveThread", "PyEval_RestoreThread", "PyObject_GetBuffer",
    "PyBuffer_Release", "PyDict_GetItemWithError", "PyDict_Contains", "PyDict_Size", "PyDict_Next", "PyCell_Get",
    "PyList_Size", "PyList_GetItem", "PyErr_Clear", "Py_DecRef",
)  # fmt: skip
_lock = threading.RLock()  # a handler of signals may come to compile something meanwhile
_addresses: dict[str, int] = {}
_modules: list = []  # engines and objects are kept alive for as long as the process
_outside: list = []
statistics = {"compiled": 0, "loaded": 0}


@functools.cache
def _target(level: int = 3) -> Any:
    if level != 3:
        _target()
    else:
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        _add_library_functions()
    return llvm.Target.from_default_triple().create_target_machine(**_host(), opt=level, reloc="pic", codemodel="small")


@functools.cache
def _host() -> dict[str, str]:
    """Return the machine that code is made for."""
    return {"cpu": llvm.get_host_cpu_name(), "features": llvm.get_host_cpu_features().flatten()}


def _add_library_functions() -> None:
    """Give the C library's functions to native code, for arguments beyond the polynomials' bounds, and Python's."""
    library = ctypes.CDLL(None)
    try:
        functions = {name: getattr(library, name) for name in CALLED}
    except AttributeError:
        library = ctypes.CDLL("libm.so.6")
        functions = {name: getattr(library, name) for name in CALLED}
    functions.update({name: getattr(ctypes.pythonapi, name) for name in _OF_PYTHON})
    for name, f in functions.items():
        llvm.add_symbol(f"fad_{name}", ctypes.cast(f, ctypes.c_void_p).value)
    _outside.append(library)


def fingerprint() -> str:
    """Return what compiled code depends on besides its text."""
    return " ".join(map(str, (_FORMAT, llvm.llvm_version_info, *_host().values())))


def _compile(text: str, options: Options) -> bytes:
    machine = _target(options.level)
    module = llvm.parse_assembly(text)
    module.verify()
    if options.optimise:
        tuning = llvm.create_pipeline_tuning_options(speed_level=3)
        tuning.loop_vectorization = True
        tuning.loop_unrolling = tuning.loop_interleaving = options.unroll
        builder = llvm.create_pass_builder(machine, tuning)
        builder.getModulePassManager().run(module, builder)
    return machine.emit_object(module)


def _join(texts: list[str]) -> str:
    """Make one module of several: half of the time that a small one takes is spent on being a module."""
    shared: dict[str, None] = {}  # declarations, metadata and functions on one line, which several have alike
    lines = []
    for text in texts:
        for line in text.splitlines():
            if line.startswith(("declare ", "!")) or (line.startswith("define internal ") and line.endswith("}")):
                shared[line] = None
            else:
                lines.append(line)
    return "\n".join([*lines, *shared, ""])


def _load(code: bytes) -> Any:
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), _target_for_engine())
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    _modules.append((engine, code))
    return engine


def _target_for_engine() -> Any:
    """Return a machine that an engine may own: it is freed with the engine."""
    return llvm.Target.from_default_triple().create_target_machine(**_host(), opt=3, jit=True)


def addresses(wanted: dict[str, Callable[[], Module]]) -> dict[str, int]:
    """Return the addresses of functions by name; ``wanted[name]()`` gives the module of one that is not known yet."""
    with _lock:
        missing = [name for name in wanted if name not in _addresses]
        if missing:
            _target()
            salt = fingerprint()
            modules = {name: wanted[name]() for name in missing}
            keys = {name: _digest(f"{salt}\n{tuple(m.options)}", m.text) for name, m in modules.items()}
            _find_compiled(keys)
            left = [name for name in missing if name not in _addresses]
            groups: dict[Options, list[str]] = {}
            for name in left:
                groups.setdefault(modules[name].options, []).append(name)
            for options, mine in groups.items():
                _add({name: modules[name].text for name in mine}, options, keys)
        return {name: _addresses[name] for name in wanted}


def _digest(salt: str, text: str) -> str:
    return hashlib.sha256(f"{salt}\n{text}".encode()).hexdigest()


def _find_compiled(keys: dict[str, str]) -> None:
    """Load what is on disk. A function's entry names the object that holds it, which holds others as well.

    An object begins with the keys of its functions: what an entry names may be gone, or something else.
    """
    objects: dict[bytes, list[str]] = {}
    for name, key in keys.items():
        place = kernel_cache.read(key)
        if place is not None:
            objects.setdefault(place, []).append(name)
    for place, names in objects.items():
        held, _, code = (kernel_cache.read(place.decode(errors="replace")) or b"").partition(b"\n")
        mine = [name for name in names if keys[name].encode() in held.split()]
        if mine and code:
            _enter(_load(code), mine)
            statistics["loaded"] += len(mine)


def _add(texts: dict[str, str], options: Options, keys: dict[str, str]) -> None:
    """Compile functions, all into one object, and keep it."""
    names = list(texts)
    code = _compile(_join(list(texts.values())), options)
    statistics["compiled"] += len(names)
    _enter(_load(code), names)
    held = " ".join(keys[name] for name in names)
    place = _digest("object", held)
    if kernel_cache.write(place, f"{held}\n".encode() + code):
        for name in names:
            kernel_cache.write(keys[name], place.encode())
    kernel_cache.trim()


def _enter(engine: Any, names: list[str]) -> None:
    for name in names:
        _addresses[name] = engine.get_function_address(name)
