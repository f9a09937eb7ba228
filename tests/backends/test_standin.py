"""The same program on arrays that refuse NumPy: what fails here would fail on a GPU, or copy to the host in silence."""

import numpy as np
import pytest
import standin
from device_contract import DTYPES, KNOWN, NAMES, WAITING, judge

from fad import backends

backends.register(standin)


# SciPy deprecates degrees that are no integers.
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", NAMES)
def test_an_operation_and_its_derivatives_stay_on_the_device(name, dtype):
    with np.errstate(all="ignore"):
        assert not judge(name, standin, dtype, standin.no_copies)


def test_the_known_differences_are_operations_and_each_has_its_reason():
    assert {key.split(" ")[0] for key in KNOWN} <= set(NAMES)
    assert {key.split(" ")[0] for key in WAITING} <= set(NAMES)
    assert all(KNOWN.values())
    assert all(WAITING.values())
