"""The first page: its programs run with what it says to install, and its numbers are measured."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"```python\n(.*?)```(?:\n\n```text\n(.*?)```)?", re.DOTALL)
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

# Packages that may be installed beside fad's two are not found.
ALONE = "import sys\nfor name in {names!r}:\n    sys.modules[name] = None\n"
OTHERS = [
    "scipy",
    "sklearn",
    "matplotlib",
    "llvmlite",
    "tqdm",
    "threadpoolctl",
    "safetensors",
    "torch",
    "jax",
    "pandas",
]


def run(program, folder, without):
    """Run a program in a process and a folder of its own, where some packages are not found; return what it prints."""
    program = ALONE.format(names=without) + program
    environment = {"PYTHONPATH": str(ROOT), "PATH": "", "PYTHONWARNINGS": "error"}
    done = subprocess.run([sys.executable, "-c", program], cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_first_programs_run_with_numpy_and_optree_alone_and_print_what_is_shown(tmp_path):
    (first, shown), (second, _), *_ = BLOCK.findall(README)
    assert run(first + second, tmp_path, OTHERS) == shown


def test_the_training_loop_runs_with_the_extra_demo_and_prints_what_is_shown(tmp_path):
    pytest.importorskip("sklearn", reason="the training loop reads scikit-learn's digits")
    *_, (program, shown) = BLOCK.findall(README)
    assert run(program, tmp_path, ["llvmlite", "safetensors"]) == shown
    assert (tmp_path / "model.safetensors").stat().st_size > 64 * 128 * 8


def test_what_the_first_page_calls_installed_is_what_the_project_names():
    assert {re.match(r"\w+", d)[0] for d in PROJECT["dependencies"]} == {"numpy", "optree"}
    for extra in re.findall(r"\[(\w+)\]'`", README):
        assert extra in PROJECT["optional-dependencies"], extra


def test_the_three_numbers_are_those_of_the_benchmarks(monkeypatch):
    pytest.importorskip("matplotlib", reason="the script that reads the figures draws them too")
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    import pictures

    said = [float(n) for n in re.findall(r"^- \*\*([\d.]+) times\*\*", README, re.MULTILINE)]
    fad_and_other = [list(values.values())[:2] for values in pictures.figures().values()]
    assert said == [pytest.approx(other / own, rel=0.02) for own, other in fad_and_other]


def test_the_files_that_the_first_page_names_exist():
    named = re.findall(r"\]\(([\w/.-]+)\)", README) + re.findall(
        r"`((?:examples|docs|benchmarks)/[\w/-]*[\w.]*)`", README
    )
    assert len(named) > 8
    for name in named:
        assert (ROOT / name).exists(), name


def test_the_first_page_is_short():
    assert len(README.splitlines()) < 150
