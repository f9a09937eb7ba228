"""Anomaly mode: the backward pass stops at the first rule that makes a NaN. It is `fad.debug.nans` by another name."""

from __future__ import annotations

from typing import Any

from fad import debug


class detect_anomaly:
    """Stop a backward pass at the first NaN and name the forward line: ``with torch.autograd.detect_anomaly():``."""

    def __init__(self, check_nan: bool = True):
        self._check = check_nan

    def __enter__(self) -> None:
        self._nans = debug.nans()
        if self._check:
            self._nans.__enter__()

    def __exit__(self, *_: Any) -> None:
        if self._check:
            self._nans.__exit__(None, None, None)


class set_detect_anomaly(detect_anomaly):
    """The same by a boolean: at once when called, or until the end of a ``with`` block."""

    _on: list = []

    def __init__(self, mode: bool, check_nan: bool = True):
        super().__init__(check_nan)
        while self._on:
            self._on.pop().__exit__(None, None, None)
        if mode and check_nan:
            self._on.append(debug.nans())
            self._on[-1].__enter__()

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: Any) -> None:
        while self._on:
            self._on.pop().__exit__(None, None, None)
