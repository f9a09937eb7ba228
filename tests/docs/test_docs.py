"""The pages of the documentation do what they say."""

import ast
import doctest
import re
from pathlib import Path

import pytest

PAGES = sorted((Path(__file__).parents[2] / "docs").glob("*.md"))


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.stem)
def test_every_example_on_a_page_runs_as_shown(page):
    result = doctest.testfile(str(page), module_relative=False, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert result.failed == 0


def test_the_coverage_page_has_a_row_for_every_public_operation():
    page = (Path(__file__).parents[2] / "docs" / "coverage.md").read_text(encoding="utf-8")
    cells = [line.split("|")[1] for line in page.splitlines() if line.startswith("| `")]
    named = {name for cell in cells for name in cell.replace("`", " ").split()}
    peers = pytest.importorskip("oracles.peers", reason="SciPy is not installed")
    missing = {path for path in peers.operations(peers.PARTS[:4]) if peers.shown(path) not in named}
    missing.discard("trapz")  # an old name of trapezoid that NumPy has dropped since
    assert not missing, "run `python benchmarks/coverage.py` with JAX, PyTorch and autograd installed"


SOURCES = sorted((Path(__file__).parents[2] / "fad").rglob("*.py"))
HEADING = re.compile(r"^(?:(Examples|Notes)|[A-Z]\w+)\n---+$", re.MULTILINE)


@pytest.mark.parametrize("folder", sorted({p.relative_to(SOURCES[0].parent).parts[0] for p in SOURCES}))
def test_examples_below_other_sections_of_a_docstring_stand_under_a_heading_of_their_own(folder):
    for path in SOURCES:
        if path.relative_to(SOURCES[0].parent).parts[0] != folder:
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and (text := ast.get_docstring(node)):
                headings = list(HEADING.finditer(text, 0, max(text.find(">>>"), 0)))
                assert not headings or headings[-1][1], f"{path}:{node.lineno}: {node.name}"
