"""The pages of the documentation do what they say."""

import doctest
from pathlib import Path

import pytest

PAGES = sorted((Path(__file__).parent.parent / "docs").glob("*.md"))


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.stem)
def test_every_example_on_a_page_runs_as_shown(page):
    result = doctest.testfile(str(page), module_relative=False, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert result.failed == 0


def test_the_coverage_page_has_a_row_for_every_public_operation():
    page = (Path(__file__).parent.parent / "docs" / "coverage.md").read_text()
    cells = [line.split("|")[1] for line in page.splitlines() if line.startswith("| `")]
    named = {name for cell in cells for name in cell.replace("`", " ").split()}
    peers = pytest.importorskip("oracles.peers", reason="SciPy is not installed")
    missing = {path for path in peers.operations(peers.PARTS[:4]) if peers.shown(path) not in named}
    missing.discard("trapz")  # an old name of trapezoid that NumPy has dropped since
    assert not missing, "run `python benchmarks/coverage.py` with JAX, PyTorch and autograd installed"
