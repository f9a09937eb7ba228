"""The same program on arrays that refuse NumPy: what fails here would fail on a GPU, or copy to the host in silence."""

import numpy as np
import offers
import pytest
import standin
from device_contract import DTYPES, KNOWN, NAMES, WAITING, judge
from each import each

from fad import backends

backends.register(standin)


# SciPy deprecates degrees that are no integers.
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@each("dtype", DTYPES)
@pytest.mark.parametrize("name", NAMES)
def test_an_operation_and_its_derivatives_stay_on_the_device(name, dtype):
    with np.errstate(all="ignore"):
        assert not judge(name, standin, dtype, standin.no_copies)


def test_the_known_differences_are_operations_and_each_has_its_reason():
    assert {key.split(" ")[0] for key in KNOWN} <= set(NAMES)
    assert {key.split(" ")[0] for key in WAITING} <= set(NAMES)
    assert all(KNOWN.values())
    assert all(WAITING.values())


def test_what_cupy_is_said_to_lack_is_not_among_its_names():
    said = [key for key, reason in KNOWN.items() if reason.startswith("CuPy 14.2 lacks:")]
    assert len(said) > 50
    assert [key for key in said if offers.has(f"scipy.{key}")] == []


def test_what_is_said_to_be_for_real_numbers_has_no_loop_for_others():
    said = [key.split()[0] for key, reason in KNOWN.items() if "real numbers alone" in reason]
    loops = [offers.loops(f"scipy.{name}") for name in said if name.startswith("special.")]
    assert len(loops) > 5
    assert not any(set("FD") & set(given + results) for found in loops for given, results in found or ())
