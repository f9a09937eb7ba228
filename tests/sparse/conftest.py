"""Both ways in which the passes of a sparse derivative run."""

import pytest

from fad.sparse import passes


@pytest.fixture(params=[0, 1 << 40], ids=["each by itself", "together"])
def either_way(request, monkeypatch):
    """Let vectors of any length be multiplied with by themselves, or none."""
    monkeypatch.setattr(passes, "WIDE", request.param)
    monkeypatch.setattr(passes, "FEW", 0)


@pytest.fixture
def by_themselves(monkeypatch):
    """Let vectors of any length be multiplied with by themselves."""
    monkeypatch.setattr(passes, "WIDE", 0)
