"""Every training script in examples/, at a small size."""

import importlib.util
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"


def load(name):
    spec = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_digits_learn_in_a_few_epochs():
    pytest.importorskip("sklearn", reason="the example reads scikit-learn's digits")
    _, accuracy = load("digits").train(epochs=16)
    assert accuracy > 0.93


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.py")), ids=lambda p: p.stem)
def test_every_example_is_short_enough_to_read(path):
    assert len(path.read_text().splitlines()) < (80 if path.stem == "digits" else 150)
