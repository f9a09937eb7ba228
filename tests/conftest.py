"""What all tests share: how numbers are drawn, and no state left behind."""

import gc
import itertools
import os
import random
import zlib

if "PYTEST_XDIST_WORKER" in os.environ:
    # The workers share the cores already: a BLAS that spreads 3x3 matrices over them all, in each worker, is slower by
    # far. Read when NumPy is loaded, so set before.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "fad",
    max_examples=int(os.environ.get("FAD_EXAMPLES", "25")),
    deadline=None,  # a shared machine is no clock
    derandomize=True,  # the same examples in every run: a red test is a change, not a draw
    suppress_health_check=[HealthCheck.too_slow],
)
# For a longer search: pytest tests/properties --hypothesis-profile=search --hypothesis-seed=1
settings.register_profile("search", settings.get_profile("fad"), derandomize=False, max_examples=400, database=None)
settings.load_profile("fad")

_finished = itertools.count(1)


def pytest_collection_modifyitems(items):
    """Run the tests in an order of their own, if a seed for it is given: no test may depend on those before it."""
    if "ORDER_SEED" in os.environ:
        random.Random(os.environ["ORDER_SEED"]).shuffle(items)


def pytest_collection():
    """Let the garbage collector wait: of what is collected, some 30 000 tests, everything stays until the end."""
    gc.disable()


def pytest_collection_finish():
    """Take what was collected out of its sight: each full round would look at all of it, for up to a second."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000)  # objects; a test makes some thousands, of which nearly all are gone by themselves
    gc.enable()


def pytest_runtest_logfinish():
    """Do the same now and then with what is kept of tests, which is their reports for the most part."""
    if next(_finished) % 500 == 0:
        gc.collect()
        gc.freeze()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    """Let no test depend on those before it. As fixtures these would take a third of what pytest takes for a test."""
    from fad.transforms.batching import batch_trace

    batch_trace._warned.clear()  # each sees the one warning that an operation without a batching rule gives
    module = getattr(item, "module", None)
    for name in ("RNG", "rng"):
        if isinstance(getattr(module, name, None), np.random.Generator):  # each draws numbers of its own, by its name
            setattr(module, name, np.random.default_rng(zlib.crc32(item.name.encode())))
