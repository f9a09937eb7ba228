"""Printing tensors as PyTorch prints them: four decimals, common width, the name of the backward node."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

PRECISION, THRESHOLD, EDGE, WIDTH = 4, 1000, 3, 80
_DEFAULT = {np.dtype("float32"), np.dtype("complex64"), np.dtype("int64"), np.dtype(bool)}


class _Format:
    """How the numbers of one tensor are written: as integers with a point, with decimals, or with exponents."""

    def __init__(self, x: np.ndarray):
        self.floating = x.dtype.kind == "f"
        self.integers, self.exponents, self.width = True, False, 1
        if not self.floating:
            self.width = max((len(str(v)) for v in x.ravel().tolist()), default=1)
            return
        finite = x.ravel()[np.isfinite(x.ravel()) & (x.ravel() != 0)].astype(np.float64)
        if not finite.size:
            return
        low, high = np.abs(finite).min(), np.abs(finite).max()
        self.integers = bool((finite == np.ceil(finite)).all())
        self.exponents = bool(high / low > 1000.0 or high > 1e8 or (not self.integers and low < 1e-4))
        lengths = [len(self._text(v)) for v in finite.tolist()]
        self.width = max(lengths)

    def _text(self, v: float) -> str:
        if self.exponents:
            return f"{v:.{PRECISION}e}"
        if self.integers:
            text = f"{v:.0f}"
            return text if math.isinf(v) or math.isnan(v) else text + "."
        return f"{v:.{PRECISION}f}"

    def __call__(self, v: Any) -> str:
        text = self._text(v) if self.floating else str(v)
        return text.rjust(self.width)


class _ComplexFormat:
    def __init__(self, x: np.ndarray):
        self.real, self.imag = _Format(x.real), _Format(x.imag)
        self.width = self.real.width + self.imag.width + 1

    def __call__(self, v: complex) -> str:
        imag = (self.imag(v.imag) + "j").lstrip()
        return self.real(v.real) + (imag if imag[0] in "+-" else "+" + imag)


def _ends(n: int, brief: bool) -> list:
    """Return the indices to print along one axis, None where some are left out."""
    if brief and n > 2 * EDGE:
        return [*range(EDGE), None, *range(n - EDGE, n)]
    return list(range(n))


def _edges(x: np.ndarray) -> np.ndarray:
    """Return the elements that a brief print shows."""
    for axis in range(x.ndim):
        x = x.take([i for i in _ends(x.shape[axis], True) if i is not None], axis)
    return x


def _body(x: np.ndarray, indent: int, brief: bool, form: Any) -> str:
    if x.ndim == 0:
        return form(x.item())
    if x.ndim == 1:
        per_line = max(1, (WIDTH - indent) // (form.width + 2))
        parts = [" ..." if i is None else form(x[i].item()) for i in _ends(len(x), brief)]
        lines = [", ".join(parts[i : i + per_line]) for i in range(0, len(parts), per_line)]
        return "[" + (",\n" + " " * (indent + 1)).join(lines) + "]"
    parts = ["..." if i is None else _body(x[i], indent + 1, brief, form) for i in _ends(len(x), brief)]
    return "[" + ("," + "\n" * (x.ndim - 1) + " " * (indent + 1)).join(parts) + "]"


def show(x: np.ndarray, notes: list[str], prefix: str = "tensor(") -> str:
    """Return the text of an array, with notes such as ``requires_grad=True`` behind it."""
    brief = x.size > THRESHOLD
    if x.dtype not in _DEFAULT:
        notes = [f"dtype=torch.{x.dtype.name}", *notes]
    if x.size == 0:
        text = "[]"
        notes = [f"size={x.shape}", *notes] if x.ndim != 1 else notes
    else:
        shown = _edges(x) if brief else x
        form = _ComplexFormat(shown) if x.dtype.kind == "c" else _Format(shown)
        text = _body(x, len(prefix), brief, form)
    return _append(prefix + text, notes, len(prefix))


def _append(text: str, notes: list[str], indent: int) -> str:
    """Put notes behind a text, on a new line where the last one would grow too long."""
    last = len(text) - text.rfind("\n") + 1
    for note in notes:
        if last + len(note) + 2 > WIDTH:
            text += ",\n" + " " * indent + note
            last = indent + len(note)
        else:
            text += ", " + note
            last += len(note) + 2
    return text + ")"
