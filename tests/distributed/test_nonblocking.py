"""What is begun and never waited for: it is not taken for another, and its arrays are let go of."""

import gc

import numpy as np
import pytest

import fad
from fad import distributed as D
from fad.distributed import nonblocking


def _in_a_branch(comm, x, p):
    handle = comm.start_all_reduce(x)
    return fad.cond(p > 0, lambda x: handle.wait(), lambda x: x * 0, x)


def _in_both_branches(comm, x, p):
    handle = comm.start_all_reduce(x)
    return fad.cond(p > 0, lambda x: handle.wait(), lambda x: 0 * handle.wait(), x)


def _behind_an_if(comm, x, p):
    handle = comm.start_all_reduce(x)
    return handle.wait() if p > 0 else x * 0


@pytest.mark.parametrize("f", [_in_a_branch, _in_both_branches, _behind_an_if])
def test_a_wait_in_a_branch_gets_what_this_run_has_begun(f):
    def run(comm):
        j = fad.jit(lambda x, p: f(comm, x, p))
        return [float(j(np.full(2, float(k)), np.float64(p))[0]) for k, p in enumerate((1, 1, -1, -1, 1, 1, -1, 1))]

    assert D.run_ranks(run, 2, timeout=20) == [[0.0, 2.0, 0.0, 0.0, 8.0, 10.0, 0.0, 14.0]] * 2


def test_a_wait_in_a_branch_that_is_not_run_can_be_done_after_it():
    def run(comm):
        def f(x, p):
            handle = comm.start_all_reduce(x)
            y = fad.cond(p > 0, lambda x: 2 * x, lambda x: x, x)
            return y + handle.wait() + handle.wait()

        j = fad.jit(f)
        return [float(j(np.full(2, float(k)), np.float64(p))[0]) for k, p in enumerate((1, -1, 1))]

    assert D.run_ranks(run, 2, timeout=20) == [[0.0, 5.0, 12.0]] * 2


STARTS = {
    "all_reduce": lambda c, x: c.start_all_reduce(x),
    "all_gather": lambda c, x: c.start_all_gather(x),
    "reduce_scatter": lambda c, x: c.start_reduce_scatter(np.stack([x] * c.size)),
    "all_to_all": lambda c, x: c.start_all_to_all(np.concatenate([x] * c.size)),
    "permute": lambda c, x: c.start_permute(x, [(r, (r + 1) % c.size) for r in range(c.size)]),
}


@pytest.mark.parametrize("name", STARTS)
@pytest.mark.parametrize("transform", [lambda f: f, fad.jit])
def test_what_nobody_waits_for_is_let_go_of(name, transform):
    def run(comm):
        f = transform(lambda x: (STARTS[name](comm, x), np.sum(x))[1])
        for k in range(12):
            f(np.full(3, float(k)))
        comm.barrier()
        STARTS[name](comm, np.ones(3)).wait()
        return len(comm.left), sum(begun.comm is comm for begun in list(nonblocking._under_way.values()))

    for left, under_way in D.run_ranks(run, 2, timeout=20):
        assert left <= 1
        assert under_way <= 1  # what the program of jit began last


def test_a_handle_that_is_kept_can_be_waited_for_late():
    def run(comm):
        handles = [comm.start_all_reduce(np.full(2, float(k))) for k in range(5)]
        del handles[1::2]
        gc.collect()
        comm.start_all_reduce(np.ones(2))
        return [float(h.wait()[0]) for h in reversed(handles)]

    assert D.run_ranks(run, 2, timeout=20) == [[8.0, 4.0, 0.0]] * 2
