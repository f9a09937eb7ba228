"""Tests of a millisecond: many cases in one item, which names all that fail. An item of pytest costs more than they."""

import functools
import inspect
import traceback

import pytest

from fad.transforms.batching import batch_trace


class CasesFail(AssertionError):
    """Which cases of a test fail, and how."""

    def __init__(self, failures):
        super().__init__(f"{len(failures)} cases fail:\n" + "\n".join(f"[{at}] {what}" for at, what in failures))
        self.failures = failures


def each(names, values, ids=None):
    """Run a test for each value, as `pytest.mark.parametrize` does, but in one item; decorators multiply as there."""
    names = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
    values = list(values)
    labels = [str(at) for at in (map(ids, values) if callable(ids) else ids or map(_label, values))]

    def decorate(test):
        @functools.wraps(test)
        def run(**given):
            failures, first = [], None
            for label, value in zip(labels, values, strict=True):
                batch_trace._warned.clear()  # as before every test
                more = dict(zip(names, value if len(names) > 1 else (value,), strict=True))
                try:
                    test(**given, **more)
                except (Exception, pytest.fail.Exception) as error:
                    first = first or error
                    found = error.failures if isinstance(error, CasesFail) else [("", _describe(error))]
                    failures += [(f"{label}-{at}".rstrip("-"), what) for at, what in found]
            if failures:
                raise CasesFail(failures) from first

        signature = inspect.signature(test)
        left = [p for p in signature.parameters.values() if p.name not in names]
        assert len(left) + len(names) == len(signature.parameters), f"{test.__name__} does not take all of {names}"
        run.__signature__ = signature.replace(parameters=left)
        return run

    return decorate


def _label(value):
    if isinstance(value, tuple):
        return "-".join(map(_label, value))
    return getattr(value, "__name__", None) or str(value)


def _describe(error):
    line = traceback.extract_tb(error.__traceback__)[-1].lineno
    return f"{type(error).__name__} in line {line}: {error}"
