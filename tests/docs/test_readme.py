"""The programs on the first page run."""

import re
from pathlib import Path

import numpy as np
import pytest

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")


def test_the_programs_on_the_first_page_run(tmp_path, monkeypatch):
    pytest.importorskip("sklearn", reason="the training loop reads scikit-learn's digits")
    monkeypatch.chdir(tmp_path)
    names = {}
    for program in re.findall(r"```python\n(.*?)```", README, re.DOTALL):
        exec(program, names)
    assert names["value"] < 2.0
    assert names["each"][0].weight.shape == (len(names["y"]), 128, 64)
    assert (tmp_path / "model.safetensors").stat().st_size > 64 * 128 * 8
    np.testing.assert_allclose(names["fad"].grad(names["rosenbrock"])(np.ones(5)), 0.0)


def test_the_files_that_the_first_page_names_exist():
    root = Path(__file__).parents[2]
    for name in re.findall(r"`(?:python )?((?:examples|docs|benchmarks)/[\w/-]+\.\w+)`", README):
        assert (root / name).exists(), name
