"""Captured loops over large arrays: what they cost while they are recorded."""

import numpy as np

import fad
from fad.compile.targets import select


def test_a_loop_that_updates_a_large_array_runs_natively_while_it_is_recorded(monkeypatch):
    """NumPy would copy the array in each step."""

    def trace(a):
        total = 0.0
        for i in range(a.shape[0]):
            total += np.tanh(a[i, i])
        return total

    by_numpy = []

    def watched(graph):
        by_numpy.extend([graph.types[o].size for eq in graph.equations for o in eq.outs])
        return plain(graph)

    plain = select.NumPyProgram
    monkeypatch.setattr(select, "NumPyProgram", watched)
    a = np.full((450, 450), 0.5)
    with fad.config.use(loops="capture"):
        got = fad.jit(fad.grad(trace))(a)
    np.testing.assert_allclose(got, np.diag(np.full(450, 1 / np.cosh(0.5) ** 2)), rtol=1e-12)
    assert max(by_numpy, default=0) < 1000
