"""The five problems of benchmarks/sparse.py: fad's matrices are those by hand."""

from pathlib import Path

import pytest

with pytest.MonkeyPatch.context() as patched:
    patched.syspath_prepend(Path(__file__).parents[2] / "benchmarks")
    import sparse_problems

PASSES = {"finite_elements": 6, "graph_laplacian": 2, "bundle_adjustment": 2, "power_flow": 12, "sparse_network": 14}


@pytest.mark.parametrize("make", sparse_problems.PROBLEMS, ids=lambda make: make.__name__)
def test_a_derivative_of_a_problem_that_gathers_is_the_matrix_by_hand_in_few_passes(make):
    problem = make(60)
    derivative, wanted = problem.derivative(), problem.by_hand()(*problem.args)
    assert abs(derivative(*problem.args) - wanted).max() <= 1e-12 * abs(wanted).max()
    assert int(derivative.explain(*problem.args).split("passes: ")[1].split()[0]) <= PASSES[make.__name__]
