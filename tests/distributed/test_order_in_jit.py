"""Collectives in programs of jit: each once in every run, in the order of the function, whatever else is optimised."""

import numpy as np
import pytest

import fad
from fad import distributed as D
from fad.compile.targets.select import using
from fad.distributed.communicator import Alone


class Noted(Alone):
    """A world of one that writes down what it is asked."""

    def __init__(self):
        super().__init__()
        self.asked = []

    def run(self, name, x, **params):
        self.asked.append((name, np.asarray(x).tolist()))
        return super().run(name, x, **params)


@pytest.fixture(params=["llvm", "numpy"])
def lowering(request):
    with using(request.param):
        yield request.param


def asked(f, *xs):
    """Return what a function communicates when it is recorded, and twice when its program is run."""
    comm = Noted()
    j = fad.jit(lambda *xs: f(comm, *xs))
    found = []
    for _ in range(3):
        comm.asked.clear()
        j(*xs)
        found.append(list(comm.asked))
    assert j.cache_info().hits == 2
    assert found[0] == found[1] == found[2]
    return found[0]


def test_collectives_that_nobody_reads_are_run(lowering):
    assert len(asked(lambda c, x: (c.all_reduce(x), c.barrier(), x + 1.0)[2], np.ones(3))) == 2


def test_equal_collectives_are_all_run(lowering):
    assert len(asked(lambda c, x: c.all_reduce(x) + c.all_reduce(x), np.ones(3))) == 2


def test_collectives_of_constants_are_run_each_time(lowering):
    assert len(asked(lambda c, x: x + c.all_reduce(np.ones(3)) + c.all_reduce(2.0), np.ones(3))) == 2


def test_collectives_keep_their_order_whatever_they_depend_on(lowering):
    def f(c, x):
        late = np.sin(np.cos(np.sum(x)))
        a = c.all_reduce(np.tanh(late) * 3.0)  # computed from much
        b = c.all_reduce(x[0])  # from nothing
        m = x[:, None] * x
        d = c.all_gather(m @ m)
        return c.all_reduce(b + 1.0) + np.sum(d) + a

    names = asked(f, np.array([1.0, 2.0, 3.0]))
    assert [np.shape(x) for _, x in names] == [(), (), (3, 3), ()]
    assert names[1][1] == 1.0
    assert names[3][1] == 2.0


def test_collectives_in_loops_and_branches_are_run_in_every_step(lowering):
    def f(c, x):
        total, _ = fad.scan(lambda s, row: (s + c.all_reduce(row), s), np.zeros(2), x)
        return fad.cond(np.sum(total) > 0, lambda t: c.all_reduce(t), lambda t: t, total)

    assert len(asked(f, np.ones((9, 2)))) == 10
    ignored = lambda c, x: (fad.fori_loop(0, 5, lambda i, s: s + c.all_reduce(s), x), x)[1]
    assert len(asked(ignored, np.ones(2))) == 5


def test_a_run_that_is_given_up_in_the_middle_repeats_no_collective(lowering):
    comm = Noted()

    def f(x):
        a = comm.all_reduce(x)
        b = comm.all_reduce(2.0 * x)
        if np.sum(b) > 0:
            return comm.all_reduce(a + b)
        return comm.all_gather(comm.all_reduce(a - b))[0]

    j = fad.jit(f)
    for sign, names in ((1.0, 3), (1.0, 3), (-1.0, 4), (-1.0, 4), (1.0, 3), (-1.0, 4)):
        comm.asked.clear()
        x = sign * np.arange(1.0, 4.0)
        np.testing.assert_allclose(j(x), 3.0 * x if sign > 0 else -x)
        assert len(comm.asked) == names, (sign, comm.asked)


def test_integers_that_native_code_cannot_hold_repeat_no_collective():
    comm = Noted()
    j = fad.jit(lambda x, n: comm.all_reduce(x) * float((n * n) % 7))
    for n in (3, 3, 2**40, 2**40):
        comm.asked.clear()
        np.testing.assert_allclose(j(np.ones(2), n), np.ones(2) * ((n * n) % 7))
        assert len(comm.asked) == 1


def _factor(comm, x):
    a = comm.all_reduce(x)
    try:
        y = np.linalg.cholesky(a)
    except np.linalg.LinAlgError:
        y = -a
    return comm.all_reduce(y)


def _converted(comm, x):
    a = comm.all_reduce(x)
    try:
        n = int(np.sqrt(np.sum(a)))
    except ValueError:
        n = 1
    return comm.all_reduce(a) * n


def _factors_in_a_loop(comm, x):
    total = 0 * x
    for i in range(20):
        a = comm.all_reduce(x + 1e-3 * i)
        try:
            total = total + np.linalg.cholesky(a)
        except np.linalg.LinAlgError:
            total = total - a
    return total


def _in_a_program(comm, x):
    a = comm.all_reduce(2.0 * x)
    return comm.all_reduce(a + fad.jit(lambda x: _factor(comm, x))(x))


@pytest.mark.parametrize("f", [_factor, _converted, _factors_in_a_loop, _in_a_program])
def test_a_call_that_catches_an_error_of_its_values_repeats_no_collective(f, lowering):
    comm, plain = Noted(), Noted()
    good = 4.0 * np.eye(2)
    for first in (good, -good):
        j = fad.jit(lambda x: f(comm, x))
        for x in (first, first, -first, -first, first):
            comm.asked.clear()
            plain.asked.clear()
            with np.errstate(invalid="ignore"):
                np.testing.assert_allclose(j(x), f(plain, x))
            assert [name for name, _ in comm.asked] == [name for name, _ in plain.asked]


def test_a_program_within_another_communicates_in_each_run_of_the_other(lowering):
    comm, plain = Noted(), Noted()
    inner = fad.jit(lambda x: _factor(comm, x))

    def f(comm, inner, x):
        a = comm.all_reduce(x)
        return comm.all_reduce(a + inner(np.eye(2)))  # on an array that the program around it does not trace

    j = fad.jit(lambda x: f(comm, inner, x))
    for x in np.random.default_rng(0).normal(size=(4, 2, 2)):
        comm.asked.clear()
        plain.asked.clear()
        np.testing.assert_allclose(j(x), f(plain, lambda x: _factor(plain, x), x))
        assert len(comm.asked) == len(plain.asked) == 4


def test_a_collective_that_fails_is_not_called_again():
    def run(comm):
        f = fad.jit(lambda x, n: fad.fori_loop(0, n, lambda i, s: s + comm.all_reduce(s), x))
        f(np.ones(2), 3 + int(comm.rank))

    with pytest.raises(D.MismatchError, match="nothing more at the end of its program"):
        D.run_ranks(run, 2, timeout=20)


def test_the_derivative_of_a_recorded_program_without_types_is_an_error():
    comm = Noted()
    with pytest.raises(D.RankTypeError):
        fad.grad(fad.jit(lambda w: comm.all_reduce(w)))(1.0)
    with pytest.raises(D.RankTypeError):
        fad.jit(fad.grad(lambda w: fad.fori_loop(0, 3, lambda i, s: comm.all_reduce(s * w), w)))(1.0)


def test_handles_that_are_waited_for_late_overlap_in_programs_too():
    def run(comm):
        def f(w, x):
            first = comm.start_all_reduce(w * x)
            second = comm.start_permute(np.sin(w * x), [(r, (r + 1) % comm.size) for r in range(comm.size)])
            y = np.cos(w * x)
            return comm.all_reduce(np.sum(y * second.wait() * first.wait()))

        x = np.arange(1.0, 4.0) + comm.rank
        g = fad.value_and_grad(D.spmd(f, comm, replicated=0))
        j = fad.jit(g)
        return [g(0.5, x), j(0.5, x), j(0.5, x)]

    def serial(w):
        xs = [np.arange(1.0, 4.0) + r for r in range(3)]
        total = sum(w * x for x in xs)
        return sum(np.sum(np.cos(w * x) * np.sin(w * xs[r - 1]) * total) for r, x in enumerate(xs))

    for found in D.run_ranks(run, 3, timeout=20):
        for pair in found:
            np.testing.assert_allclose(pair, fad.value_and_grad(serial)(0.5))


@pytest.mark.parametrize("wrap", [fad.vmap, lambda f: fad.jit(fad.vmap(f)), lambda f: fad.vmap(fad.jit(f))])
def test_a_batch_whose_examples_may_take_different_paths_communicates_nothing(wrap):
    comm = Noted()

    def on_a_path(w):
        return w * comm.all_reduce(np.ones(2)) if np.sum(w) > 2 else w

    def in_steps(w):
        while np.sum(w) < 9:
            w = w + comm.start_all_reduce(np.ones(2)).wait()
        return w

    for f in (on_a_path, in_steps):
        with pytest.raises(fad.errors.BatchedValueError, match="different paths"):
            wrap(f)(np.array([[1.0, 2.0], [0.5, 0.1]]))
    assert not comm.asked
    chosen = wrap(lambda w: np.where(np.sum(w) > 2, w * comm.all_reduce(np.ones(2)), w))
    np.testing.assert_allclose(chosen(np.array([[1.0, 2.0], [0.5, 0.1]])), [[1.0, 2.0], [0.5, 0.1]])
