"""The engine: compiles kernels, keeps them for the process and on disk, and gives their addresses."""

from __future__ import annotations

import ctypes
import functools
import hashlib
import threading
from collections.abc import Callable
from typing import Any

import llvmlite.binding as llvm

from fad.compile import cache
from fad.compile.llvm.kernels import STRAIGHT

_lock = threading.Lock()
_addresses: dict[str, int] = {}
_modules: list = []  # engines and objects are kept alive for as long as the process
_machine: Any = None
_outside: list = []
statistics = {"compiled": 0, "loaded": 0}


def _target() -> Any:
    global _machine
    if _machine is None:
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        _add_library_functions()
        target = llvm.Target.from_default_triple()
        _machine = target.create_target_machine(
            cpu=llvm.get_host_cpu_name(), features=llvm.get_host_cpu_features().flatten(), opt=3, reloc="pic",
            codemodel="small",
        )  # fmt: skip
    return _machine


def _add_library_functions() -> None:
    """Give the C library's functions to native code, for arguments beyond the polynomials' bounds."""
    library = ctypes.CDLL(None)
    try:
        functions = {name: getattr(library, name) for name in ("sin", "cos", "tan")}
    except AttributeError:
        library = ctypes.CDLL("libm.so.6")
        functions = {name: getattr(library, name) for name in ("sin", "cos", "tan")}
    for name, f in functions.items():
        llvm.add_symbol(f"fad_{name}", ctypes.cast(f, ctypes.c_void_p).value)
    _outside.append(library)


def fingerprint() -> str:
    """Return what compiled code depends on besides its text."""
    return f"{llvm.llvm_version_info} {llvm.get_host_cpu_name()} {llvm.get_host_cpu_features().flatten()}"


def _compile(text: str) -> bytes:
    machine = _target()
    module = llvm.parse_assembly(text)
    module.verify()
    statistics["compiled"] += 1
    if text.startswith(STRAIGHT):
        return machine.emit_object(module)
    options = llvm.create_pipeline_tuning_options(speed_level=3)
    options.loop_vectorization = True
    options.loop_unrolling = True
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)
    return machine.emit_object(module)


def _load(objects: list[bytes]) -> Any:
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), _target_for_engine())
    for code in objects:
        engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    _modules.append((engine, objects))
    return engine


def _target_for_engine() -> Any:
    """Return a machine that an engine may own: it is freed with the engine."""
    return llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=llvm.get_host_cpu_features().flatten(), opt=3, jit=True
    )


@functools.cache
def _trim_once() -> None:
    cache.trim()


def addresses(wanted: dict[str, Callable[[], str]]) -> dict[str, int]:
    """Return the addresses of functions by name; ``wanted[name]()`` gives the module of one that is not known yet."""
    with _lock:
        missing = [name for name in wanted if name not in _addresses]
        if missing:
            _target()
            salt = fingerprint()
            objects = []
            for name in missing:
                text = wanted[name]()
                key = hashlib.sha256(f"{salt}\n{text}".encode()).hexdigest()
                code = cache.read(key)
                if code is None:
                    code = _compile(text)
                    cache.write(key, code)
                else:
                    statistics["loaded"] += 1
                objects.append(code)
            if statistics["compiled"]:
                _trim_once()
            engine = _load(objects)
            for name in missing:
                _addresses[name] = engine.get_function_address(name)
        return {name: _addresses[name] for name in wanted}
