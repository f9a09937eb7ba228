"""The report on this machine, and its advice on BLAS."""

import fad
from fad.compile.machine import blas


def test_the_report_names_versions_extras_the_lowering_and_the_cache():
    text = fad.doctor()
    for word in ("Python", "NumPy", "llvmlite", "jit compiles to", "compiled kernels", "jit's matrix products"):
        assert word in text


def test_narrow_kernels_on_a_cpu_with_wide_vectors_are_reported(monkeypatch):
    monkeypatch.setattr(blas, "cpu_flags", lambda: set(blas._WIDE_FLAGS))
    slow = {"user_api": "blas", "internal_api": "openblas", "architecture": "Haswell"}
    monkeypatch.setattr(blas, "libraries", lambda: [slow])
    assert "OPENBLAS_CORETYPE" in blas.advice()
    monkeypatch.setattr(blas, "libraries", lambda: [{**slow, "architecture": "SkylakeX"}])
    assert blas.advice() is None
    monkeypatch.setattr(blas, "cpu_flags", set)
    monkeypatch.setattr(blas, "libraries", lambda: [slow])
    assert blas.advice() is None
