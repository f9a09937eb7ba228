"""The programs of examples/distributed, on ranks that are threads, at a small size."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from fad import distributed as D

EXAMPLES = Path(__file__).parent.parent.parent / "examples" / "distributed"


def load(name):
    spec = importlib.util.spec_from_file_location(f"distributed_{name}", EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def on_ranks(fun, size):
    return D.run_ranks(fun, size, timeout=60)


def test_the_digits_learn_on_two_ranks_and_a_restart_on_one_goes_on(tmp_path):
    pytest.importorskip("sklearn", reason="the digits come with scikit-learn")
    digits = load("digits")
    on_ranks(lambda comm: digits.train(comm, 3, tmp_path), 2)
    (accuracy,) = on_ranks(lambda comm: digits.train(comm, 5, tmp_path), 1)
    assert accuracy > 0.9
    assert D.load(tmp_path)[0] == 5


def test_the_conductivity_is_found_on_strips_as_on_the_whole_plate():
    heat = load("heat")
    ((alone, whole),) = on_ranks(lambda comm: heat.solve(comm, 12, 8, 15), 1)
    parts = on_ranks(lambda comm: heat.solve(comm, 12, 8, 15), 3)
    assert alone[-1] < 0.3 * alone[0]
    for values, _ in parts:
        np.testing.assert_allclose(values, alone, rtol=1e-7)
    np.testing.assert_allclose(np.concatenate([k for _, k in parts]), whole, rtol=1e-6)


def test_newton_finds_the_stiffness_through_a_solver_over_ranks():
    poisson = load("poisson")
    for size in (1, 2):
        np.testing.assert_allclose(on_ranks(lambda comm: poisson.solve(comm, 12), size), 2.5)


def test_the_ensemble_is_the_same_on_any_number_of_ranks():
    ensemble = load("ensemble")
    (alone,) = on_ranks(lambda comm: ensemble.run(comm, 4), 1)
    for found in on_ranks(lambda comm: ensemble.run(comm, 4), 3):
        for x, y in zip(found, alone, strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-9, atol=1e-12)
