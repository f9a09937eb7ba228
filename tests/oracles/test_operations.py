"""Every operation that JAX, PyTorch or HIPS autograd has too gives the same derivatives there, to second order.

An operation that a library does not take, or differentiates otherwise, stands with the reason in `libraries.py`; one
that is neither fails by name.
"""

import warnings

import numpy as np
import pytest

from fad.testing import check_grads

from .libraries import Autograd, Jax, Torch
from .peers import check, check_program, shared
from .solvers import programs

pytestmark = pytest.mark.oracle


def made(kind):
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return kind()
    except ImportError:
        return None


PEERS = {kind.name: made(kind) for kind in (Jax, Torch, Autograd)}
SOLVERS = programs()
ASKED = [peer for peer in PEERS.values() if peer]
PAIRS = [pytest.param(p, path, op, id=f"{p.name}-{path}") for p in ASKED for path, op in shared(p).items()]


@pytest.fixture(autouse=True)
def _quiet_divisions():
    with np.errstate(all="ignore"):  # the other libraries divide by zero on the way
        yield


@pytest.mark.filterwarnings("ignore")  # their own deprecations
@pytest.mark.parametrize(("peer", "path", "operation"), PAIRS)
def test_derivatives_agree(peer, path, operation):
    check(peer, path, operation)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("peer", "path"),
    [pytest.param(p, path, id=f"{p.name}-{path}") for p in ASKED for path in SOLVERS if p.name in SOLVERS[path].others],
)
def test_derivatives_through_solvers_agree(peer, path):
    check_program(peer, path, SOLVERS[path])


@pytest.mark.parametrize("path", list(SOLVERS))
def test_the_programs_of_solvers_agree_with_differences(path):
    check_grads(SOLVERS[path].fad, SOLVERS[path].points, order=2, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize(("name", "least"), [("JAX", 450), ("PyTorch", 280), ("autograd", 420)])
def test_there_is_something_to_compare(name, least):
    if PEERS[name] is None:
        pytest.skip(f"{name}, an oracle of this test, is not installed")
    assert len(shared(PEERS[name])) > least


@pytest.mark.parametrize("name", list(PEERS))
def test_the_lists_of_exceptions_name_what_the_library_has(name):
    if PEERS[name] is None:
        pytest.skip(f"{name}, an oracle of this test, is not installed")
    named = set(PEERS[name].different) | set(PEERS[name].not_comparable)
    assert named <= set(shared(PEERS[name])) | set(SOLVERS)
