"""Every tutorial runs and ends in something to look at."""

import runpy
from pathlib import Path

import pytest

plt = pytest.importorskip("matplotlib.pyplot", reason="the tutorials draw pictures with matplotlib")
pytest.importorskip("sklearn", reason="the tutorials read data that come with scikit-learn")

TUTORIALS = sorted((Path(__file__).parents[2] / "docs" / "tutorials").glob("*.py"))


@pytest.mark.parametrize("path", TUTORIALS, ids=lambda p: p.stem)
def test_a_tutorial_runs_and_draws_a_picture(path):
    before = plt.get_backend()
    plt.switch_backend("agg")
    try:
        with plt.rc_context():
            runpy.run_path(str(path), run_name="__main__")
        assert plt.get_fignums()
    finally:
        plt.close("all")
        plt.switch_backend(before)
