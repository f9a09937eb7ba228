"""What all tests share: how hypothesis draws, and no state left behind."""

import os

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "fad",
    max_examples=int(os.environ.get("FAD_EXAMPLES", "25")),
    deadline=None,  # a shared machine is no clock
    derandomize=True,  # the same examples in every run: a red test is a change, not a draw
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("fad")


@pytest.fixture(autouse=True)
def _loop_fallbacks_warn_anew():
    """Let each test see the one warning that an operation without a batching rule gives."""
    from fad.transforms import vmap

    vmap._warned.clear()
