"""What goes wrong while a program is compiled: it costs speed at most, and leaves nothing half done."""

import errno
import io
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest

import fad
from fad.compile.targets import select
from fad.errors import NativeFallbackWarning

pytest.importorskip("llvmlite")
from fad.compile.runtime import jit_engine

X = np.linspace(0.1, 0.9, 37)


def unknown(x):
    """A program whose kernels no other test has compiled."""
    return np.exp(np.cos(x) * 0.123) - np.sqrt(x + 0.456) / (x * 0.789 + 1.0)


@pytest.fixture(autouse=True)
def _nothing_compiled(monkeypatch, tmp_path):
    monkeypatch.setenv("FAD_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(jit_engine, "_addresses", {})
    monkeypatch.setattr(select, "_warned", [])


def test_a_kernel_that_fails_to_compile_is_numpys_work_after_one_warning_with_the_reason(monkeypatch):
    def fail(text, options):
        raise RuntimeError("the registers are used up")

    monkeypatch.setattr(jit_engine, "_compile", fail)
    f, g = fad.jit(unknown), fad.jit(lambda x: unknown(x) * 2.0)
    f(X)
    with pytest.warns(NativeFallbackWarning, match="the registers are used up"):
        np.testing.assert_allclose(f(X), unknown(X), rtol=1e-14)
    g(X)
    np.testing.assert_allclose(g(X), unknown(X) * 2.0, rtol=1e-14)  # a second warning would be an error here
    assert "lowering: numpy" in f.explain()


@pytest.mark.parametrize("when", ["recording", "compiling", "running"])
def test_an_interrupted_call_leaves_no_half_written_state(monkeypatch, when, tmp_path):
    pressed = []

    def press():
        if not pressed:
            pressed.append(True)
            raise KeyboardInterrupt

    def fun(x):
        y = unknown(x)
        if when == "recording":
            press()
        return y

    def slow_compile(*module, compile=jit_engine._compile):
        if when == "compiling":
            press()
        return compile(*module)

    monkeypatch.setattr(jit_engine, "_compile", slow_compile)
    f = fad.jit(fun)
    if when == "running":
        f(X)
        f(X)
        path = next(iter(f._signatures.values())).paths[0]
        run = path.entry
        monkeypatch.setattr(path, "entry", lambda xs: press() or run(xs))
    for _ in range(2):
        try:
            f(X)
        except KeyboardInterrupt:
            break
    assert pressed
    for _ in range(3):
        np.testing.assert_allclose(f(X), unknown(X), rtol=1e-14)
    assert f.cache_info().paths == 1
    assert not list(tmp_path.rglob("part-*"))


_WRITING = {"makedirs": (Path, "mkdir"), "mkstemp": (tempfile, "mkstemp"), "replace": (os, "replace")}


@pytest.mark.parametrize("reason", [errno.EROFS, errno.EACCES, errno.ENOSPC])
@pytest.mark.parametrize("when", [*_WRITING, "write"])
def test_a_folder_that_is_read_only_or_full_costs_nothing_but_compiling(monkeypatch, tmp_path, when, reason):
    def refuse(*args, **kwargs):
        raise OSError(reason, os.strerror(reason))

    class Full(io.FileIO):
        write = refuse

    if when == "write":
        monkeypatch.setattr(os, "fdopen", Full)
    else:
        monkeypatch.setattr(*_WRITING[when], refuse)
    f = fad.jit(unknown)
    for _ in range(3):  # a warning would be an error here
        np.testing.assert_allclose(f(X), unknown(X), rtol=1e-14)
    assert "lowering: llvm" in f.explain()
    assert not [p for p in tmp_path.rglob("*") if p.is_file()]


def test_an_interrupted_write_leaves_no_part_of_an_entry(monkeypatch, tmp_path):
    def press(*args):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(os, "replace", press)
        f = fad.jit(unknown)
        f(X)
        with pytest.raises(KeyboardInterrupt):
            f(X)
    assert not [p for p in tmp_path.rglob("*") if p.is_file()]
    np.testing.assert_allclose(f(X), unknown(X), rtol=1e-14)


def test_kernels_of_another_cpu_or_compiler_are_not_loaded(monkeypatch):
    def compiled():
        jit_engine._addresses.clear()
        before = jit_engine.statistics["compiled"]
        f = fad.jit(unknown)
        f(X)
        np.testing.assert_allclose(f(X), unknown(X), rtol=1e-14)
        return jit_engine.statistics["compiled"] - before

    assert compiled() > 0
    assert compiled() == 0
    monkeypatch.setattr(jit_engine, "fingerprint", lambda: "another machine")
    assert compiled() > 0


_PROGRAM = """
import numpy as np, fad
f = fad.jit(lambda x: np.tanh(x) * np.exp(-x * 0.321))
x = np.linspace(0, 1, 50)
f(x)
print(np.allclose(f(x), np.tanh(x) * np.exp(-x * 0.321)), f.explain().count("llvm"))
"""


def test_several_processes_may_compile_the_same_at_once(tmp_path):
    command = [sys.executable, "-W", "error", "-c", _PROGRAM]
    environment = {**os.environ, "FAD_CACHE_DIR": str(tmp_path)}
    runs = [subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    assert [run.communicate()[0].split() for run in runs] == [["True", "1"]] * 4
    assert not list(tmp_path.rglob("part-*"))


def test_an_entry_whose_object_is_gone_or_broken_is_compiled_again(tmp_path):
    def results():
        jit_engine._addresses.clear()
        f = fad.jit(unknown)
        f(X)
        return f(X)

    want = results()
    before = jit_engine.statistics["compiled"]
    np.testing.assert_array_equal(results(), want)
    assert jit_engine.statistics["compiled"] == before  # read back
    for place in tmp_path.rglob("??/*"):
        if place.stat().st_size > 200:  # the objects; what is smaller only names one
            place.write_bytes(b"broken")
    np.testing.assert_array_equal(results(), want)
    assert jit_engine.statistics["compiled"] > before
