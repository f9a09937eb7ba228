"""Training scripts written for PyTorch run here with one line changed, and give PyTorch's numbers."""

import numpy as np
import pytest
import scripts

import fad.eager

torch = pytest.importorskip("torch")


@pytest.mark.filterwarnings("default")  # what PyTorch warns of is its own
@pytest.mark.parametrize("script", scripts.ALL, ids=lambda f: f.__name__)
def test_a_script_gives_torchs_numbers(script):
    import torch.distributions
    import torch.utils.data

    np.testing.assert_allclose(script(fad.eager), script(torch), rtol=5e-5, atol=1e-6)
