"""The demo, at full length: it takes a few seconds."""

import re

import pytest

pytest.importorskip("sklearn", reason="the demo reads scikit-learn's digits")
pytest.importorskip("matplotlib", reason="the demo draws a picture")

from fad import demo


def test_the_demo_reaches_its_accuracy_and_writes_a_picture(tmp_path, capsys):
    picture = tmp_path / "demo.png"
    assert demo.main([str(picture)]) == 0
    printed = capsys.readouterr().out
    assert float(re.search(r"held-out accuracy ([\d.]+)", printed)[1]) >= 0.97
    assert "wave'''(1)" in printed
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert picture.stat().st_size > 20_000


def test_the_tour_prints_true_derivatives(capsys):
    demo.tour()
    printed = capsys.readouterr().out
    # exp(-x/4) sin x: the third derivative at 1 by hand is exp(-1/4) ((-1/64 + 3/4) sin 1 + (3/16 - 1) cos 1)
    assert "0.139373900722" in printed
    assert "[1802. 1102.  202.  -98.    0.]" in printed


def test_wrong_arguments_print_the_usage(capsys):
    assert demo.main(["a.png", "b.png"]) == 2
    assert "usage" in capsys.readouterr().err
