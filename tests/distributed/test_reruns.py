"""A function that runs again after a failed write sends each of its collectives once: other ranks wait for no more."""

import types

import numpy as np
import pytest

import fad
from fad import distributed as D
from fad.core.runs import overlay_needs
from fad.distributed.communicator import Alone

X = np.arange(1.0, 4.0)
LOSS = """
import numpy as np

kept = np.zeros(3)


class Box:
    pass


box = Box()
box.kept = np.zeros(3)


def put(u, v):
    u[0] = v


picked = {{"put": put}}


def loss(w, x, comm):
    a = np.sum(comm.all_reduce(w * x))
    u = {array}
    {write}
    return a * np.sum(comm.all_reduce(u))
"""
ARRAYS = ("kept.copy()", "box.kept.copy()")
WRITES = ("u[0] = w * 1.0", "u += w", "picked['put'](u, w * 1.0)", "np.add(u, w, out=u)")


class Noted(Alone):
    """A world of one that writes down what it is asked."""

    def __init__(self):
        super().__init__()
        self.asked = []

    def run(self, name, x, **params):
        self.asked.append((name, np.asarray(x).tolist()))
        return super().run(name, x, **params)

    def start(self, name, x, **params):
        self.asked.append((name, np.asarray(x).tolist()))
        return super().start(name, x, **params)


@pytest.fixture
def unknown(monkeypatch):
    """Return a function that makes losses; that they write is forgotten, and so their first write fails."""
    monkeypatch.setattr(overlay_needs, "_learned", {})
    monkeypatch.setattr(overlay_needs, "_known", {})
    monkeypatch.setattr(overlay_needs, "_latest", [overlay_needs._NOBODY])

    def make(array, write):
        module = types.ModuleType("unknown")
        exec(compile(LOSS.format(array=array, write=write), "unknown.py", "exec"), vars(module))
        return module.loss

    return make


def spmd(f, comm):
    return D.spmd(lambda w, x: f(w, x, comm), comm, replicated=0)


MODES = {
    "value_and_grad": lambda f, comm: D.value_and_grad(lambda w, x: f(w, x, comm), comm)(2.0, X),
    "jit of value_and_grad": lambda f, comm: fad.jit(D.value_and_grad(lambda w, x: f(w, x, comm), comm))(2.0, X),
    "grad": lambda f, comm: fad.grad(spmd(f, comm))(2.0, X),
    "jvp": lambda f, comm: fad.jvp(lambda w: spmd(f, comm)(w, X), (2.0,), (1.0,)),
    "linearize": lambda f, comm: fad.linearize(lambda w: spmd(f, comm)(w, X), 2.0)[0],
    "hessian": lambda f, comm: fad.hessian(lambda w: spmd(f, comm)(w, X))(2.0),
    "grad of grad": lambda f, comm: fad.grad(fad.grad(spmd(f, comm)))(2.0, X),
    "checkpoint": lambda f, comm: fad.grad(fad.checkpoint(spmd(f, comm)))(2.0, X),
    "jit": lambda f, comm: fad.jit(lambda w: f(w, X, comm))(2.0),
    "jit of grad": lambda f, comm: fad.jit(fad.grad(spmd(f, comm)))(2.0, X),
    "vmap": lambda f, comm: fad.vmap(lambda w: f(w, X, comm))(np.array([1.0, 2.0])),
    "grad around spmd": lambda f, comm: fad.grad(
        lambda w: f(w, X, types.SimpleNamespace(all_reduce=D.spmd(comm.all_reduce, comm, replicated=())))
    )(2.0),
    "collectives of constants": lambda f, comm: fad.grad(
        lambda w: f(w, X, types.SimpleNamespace(all_reduce=lambda x: x * np.sum(comm.all_reduce(X))))
    )(2.0),
    "programs of constants": lambda f, comm: fad.grad(
        lambda w: f(w, X, types.SimpleNamespace(all_reduce=lambda x: x * np.sum(fad.jit(comm.all_reduce)(X))))
    )(2.0),
}


@pytest.mark.parametrize("array", ARRAYS)
@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("mode", MODES)
def test_a_function_that_runs_again_after_a_failed_write_sends_each_collective_once(mode, write, array, unknown):
    f, comm = unknown(array, write), Noted()
    found = []
    for _ in range(3):  # the first call finds out that the function writes, the others know
        comm.asked.clear()
        y = MODES[mode](f, comm)
        found.append((list(comm.asked), [np.asarray(v).tolist() for v in fad.tree.leaves(y)]))
    assert len(found[0][0]) >= 2
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize("array", ARRAYS)
def test_a_program_recorded_in_two_runs_sends_each_collective_once_in_every_run(array, unknown):
    f, comm = unknown(array, "u[0] = w * 1.0"), Noted()
    j = fad.jit(D.value_and_grad(lambda w, x: f(w, x, comm), comm))
    found = []
    for _ in range(3):
        comm.asked.clear()
        found.append((fad.tree.map(float, j(2.0, X)), list(comm.asked)))
    comm.asked.clear()
    value = fad.tree.map(float, fad.jit(D.value_and_grad(lambda w, x: f(w, x, comm), comm))(2.0, X))  # in one run
    assert found[0] == found[1] == found[2] == (value, comm.asked)


def test_what_the_first_run_wrote_into_a_result_is_not_there_in_the_second(unknown):
    loss, comm = unknown("kept.copy()", "u[0] = w * 1.0"), Noted()

    def f(w):
        a = comm.all_reduce(X)
        a += 1.0
        return loss(w, X, types.SimpleNamespace(all_reduce=lambda x: x * 1.0)) * np.sum(a)

    assert [fad.grad(f)(2.0) for _ in range(2)] == [2 * 2.0 * 6.0 * 9.0] * 2


@pytest.mark.parametrize("again", [False, True])
def test_what_was_begun_in_the_first_run_is_waited_for_in_the_second(again, unknown):
    """On two ranks, of which with `again` the second alone runs again: both get what all of them sent."""
    loss = unknown("kept.copy()", "u[0] = w * 1.0")

    def run(comm):
        def f(w, x):
            before = comm.start_permute(np.sin(w * x), [(0, 1), (1, 0)])
            total = comm.start_all_reduce(w * x)
            v = comm.varying(w)
            if again and comm.rank:
                loss(v, x, types.SimpleNamespace(all_reduce=lambda x: x * 1.0))
            return comm.all_reduce(np.sum(before.wait() * total.wait() * np.cos(w * x)))

        x = X + comm.rank
        return [fad.value_and_grad(D.spmd(f, comm, replicated=0))(0.5, x) for _ in range(2)]

    def serial(w):
        total = w * X + w * (X + 1.0)
        return sum(np.sum(np.sin(w * (X + 1.0 - r)) * total * np.cos(w * (X + r))) for r in range(2))

    for found in D.run_ranks(run, 2, timeout=20):
        for pair in found:
            np.testing.assert_allclose(pair, fad.value_and_grad(serial)(0.5))


def test_what_was_begun_in_a_run_that_is_given_up_is_waited_for_in_the_other_path():
    comm = Noted()

    def f(x):
        handle = comm.start_all_reduce(x)
        sign = 1.0 if np.sum(x) > 0 else -1.0
        return sign * handle.wait()

    j = fad.jit(f)
    for sign in (1.0, 1.0, -1.0, -1.0, 1.0):
        comm.asked.clear()
        np.testing.assert_allclose(j(sign * X), X)
        assert comm.asked == [("all_reduce", (sign * X).tolist())]


def test_what_a_loss_does_before_it_is_found_to_need_types_is_done_once(capsys):
    comm, other = Noted(), Noted()

    def loss(w):
        fad.debug.print("w is {}", w)
        return comm.all_reduce(w * w) * np.sum(other.all_reduce(np.ones(1)))

    assert D.value_and_grad(loss, comm)(3.0) == (9.0, 6.0)
    assert capsys.readouterr().out.count("w is") == 1
    assert len(other.asked) == 1
