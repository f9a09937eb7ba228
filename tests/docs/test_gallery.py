"""Every example of the gallery runs, is of a size to be read at one sitting, and draws a picture."""

import ast
import runpy
from pathlib import Path

import pytest

plt = pytest.importorskip("matplotlib.pyplot", reason="the examples draw pictures with matplotlib")
pytest.importorskip("sklearn", reason="the examples read data that come with scikit-learn")

EXAMPLES = Path(__file__).parents[2] / "examples"
FIELDS = {"physics", "biology", "chemistry", "finance", "imaging", "robotics", "statistics"}
GALLERY = sorted(p for p in EXAMPLES.glob("*/*.py") if p.parent.name != "distributed")  # those are for several ranks


@pytest.fixture
def without_a_screen():
    before = plt.get_backend()
    plt.switch_backend("agg")
    with plt.rc_context():
        yield
    plt.close("all")
    plt.switch_backend(before)


@pytest.mark.parametrize("path", GALLERY, ids=lambda p: p.stem)
def test_an_example_of_the_gallery_runs_and_draws_a_picture(path, without_a_screen):
    runpy.run_path(str(path), run_name="__main__")
    assert plt.get_fignums()


@pytest.mark.parametrize("path", GALLERY, ids=lambda p: p.stem)
def test_an_example_of_the_gallery_is_short_and_says_what_it_shows(path):
    text = path.read_text(encoding="utf-8")
    title, line, blank, *rest = ast.get_docstring(ast.parse(text)).splitlines()
    assert 40 <= len(text.splitlines()) <= 120
    assert line == "=" * len(title)
    assert not blank
    assert len(" ".join(rest)) > 150
    assert "import fad" in text


def test_the_gallery_has_examples_of_every_field():
    assert {p.parent.name for p in GALLERY} == FIELDS
    assert len(GALLERY) >= 24
