"""Training scripts written for PyTorch run here with one line changed, and give PyTorch's numbers."""

import importlib
import importlib.util

import calculus_scripts
import further_scripts
import numpy as np
import pytest
import scripts

import fad.eager

ALL = [*scripts.ALL, *further_scripts.ALL, *calculus_scripts.ALL]
PRESENT = importlib.util.find_spec("torch") is not None


@pytest.mark.filterwarnings("default")  # what PyTorch warns of is its own
@pytest.mark.parametrize("script", ALL, ids=lambda f: f.__name__)
def test_a_script_gives_torchs_numbers(script):
    torch = pytest.importorskip("torch")
    for part in ("distributions", "utils.data", "nn.utils.parametrize", "nn.utils.parametrizations"):
        importlib.import_module(f"torch.{part}")
    np.testing.assert_allclose(script(fad.eager), script(torch), rtol=5e-5, atol=1e-6)


@pytest.mark.skipif(PRESENT, reason="PyTorch is there, and the test above compares with it")
@pytest.mark.parametrize("script", ALL, ids=lambda f: f.__name__)
def test_a_script_runs_to_its_end_and_again_to_the_same_numbers(script):
    numbers = script(fad.eager)
    assert np.all(np.isfinite(numbers))
    np.testing.assert_array_equal(script(fad.eager), numbers)
