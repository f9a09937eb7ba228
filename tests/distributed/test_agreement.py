"""What counts as the same on all ranks and is not is an error on every rank, and never a wrong gradient or a hang."""

import math

import numpy as np
import pytest

import fad
from fad import distributed as D

W = np.array([0.3, 0.7, 1.1, 0.2, 0.5])
PLACES = np.arange(1.0, 6.0)


def on_ranks(fun, size=2):
    return D.run_ranks(fun, size, timeout=20)


FORMS = {  # what a program does with a rank's number: as a communicator has it, and as a plain number
    "product": lambda w, r: w * (r + 1),
    "int": lambda w, r: w * int(r),
    "float": lambda w, r: w * float(r),
    "bool": lambda w, r: w * bool(r),
    "equality": lambda w, r: w * (r == 0),
    "order": lambda w, r: w * (r < 1),
    "round": lambda w, r: w * round(r * 1.5),
    "divmod": lambda w, r: w * divmod(r + 3, 2)[0],
    "shift": lambda w, r: w * (1 << r),
    "least": lambda w, r: w * min(r, 1),
    "cosine": lambda w, r: w * math.cos(r),
    "complex": lambda w, r: (w * (1.0 + 1j * r)).imag + w,
    "slice": lambda w, r: np.sum(w[r:]) * w,
    "write": lambda w, r: _written(w, r),
    "roll": lambda w, r: np.roll(w, r),
    "from a list": lambda w, r: w * [1.0, 2.0, 3.0][r],
    "steps of a loop": lambda w, r: sum((w ** (k + 1) for k in range(r + 1)), 0 * w),
    "branch": lambda w, r: np.sin(w) if r == 0 else w * w,
    "branch of one operation": lambda w, r: w * 2.0 if r == 0 else w,
}


def _written(w, r):
    y = w * 1.0
    y[int(r)] = 3.0
    return y


@pytest.mark.parametrize("size", [2, 3])
@pytest.mark.parametrize("transform", [lambda f: f, fad.jit])
@pytest.mark.parametrize("form", FORMS)
def test_a_number_of_the_rank_gives_the_serial_gradient_or_an_error_on_every_rank(form, transform, size):
    f = FORMS[form]

    def serial(w):
        return sum(np.sum(np.sin(f(w, r)) * PLACES) for r in range(size))

    def run(comm):
        gradient = transform(D.grad(lambda w: comm.all_reduce(np.sum(np.sin(f(w, comm.rank)) * PLACES)), comm))
        for _ in range(2):
            try:
                found = gradient(W)
            except D.RankTypeError:
                comm.barrier()  # they are still in step
                return True
            np.testing.assert_allclose(found, fad.grad(serial)(W), rtol=1e-12)
        return False

    refused = on_ranks(run, size)
    assert len(set(refused)) == 1
    known = ["product", "equality", "order", "round", "divmod", "shift"]
    known += ["least"] if size == 2 else []  # it is the communicator's number on both ranks
    assert refused[0] is (form not in known)


@pytest.mark.parametrize("transform", [lambda f: f, fad.jit])
def test_a_gradient_within_value_and_grad_does_not_take_what_differs_for_the_same(transform):
    def run(comm):
        def loss(w, x):
            return np.sum(np.sin(comm.all_reduce(np.sum(w * x)) * int(comm.rank) * w))

        with pytest.raises(D.RankTypeError, match="counts as the same on all ranks differs"):
            transform(D.value_and_grad(loss, comm))(W, np.ones(5))

    on_ranks(run)


@pytest.mark.parametrize("transform", [lambda f: f, fad.jit])
def test_arguments_that_differ_are_found_in_every_call(transform):
    def run(comm):
        gradient = transform(D.grad(lambda w, x: comm.all_reduce(np.sum(np.sin(w * x))), comm))
        for k in range(3):
            np.testing.assert_allclose(gradient(W + k, W), 2 * W * np.cos((W + k) * W))
        with pytest.raises(D.RankTypeError, match=r"differs: .* on rank 0, .* on rank 1"):
            gradient(W + comm.rank, W)
        np.testing.assert_allclose(gradient(W, W), 2 * W * np.cos(W * W))

    on_ranks(run)


def test_a_value_that_only_some_ranks_use_is_an_error_that_says_what_to_write():
    def run(comm):
        def loss(w, x, y):
            return comm.all_reduce(np.sum(x * y if comm.rank else x))

        with pytest.raises(D.RankTypeError, match="varying"):
            D.grad(lambda w, x: loss(w, x, np.sin(w)), comm)(W, W)
        return D.grad(lambda w, x: loss(w, x, comm.varying(np.sin(w))), comm)(W, W)

    for g in on_ranks(run):
        np.testing.assert_allclose(g, W * np.cos(W))


def test_forward_mode_is_right_where_ranks_use_other_values():
    def run(comm):
        f = D.spmd(lambda w, x: comm.all_reduce(np.sum(x * np.sin(w) if comm.rank else x)), comm, replicated=0)
        return fad.jvp(lambda w: f(w, W), (W,), (W,))[1]

    np.testing.assert_allclose(on_ranks(run), np.sum(W * np.cos(W) * W))


@pytest.mark.parametrize("debug", [False, True])
def test_ranks_that_record_again_at_other_times_stay_in_step(debug):
    def run(comm):
        gradient = fad.jit(D.grad(lambda w, x: comm.all_reduce(np.sum(np.sin(np.outer(x, w)))), comm))
        for k in range(8):
            x = [np.ones(2 + (k % 3 if r else 0)) for r in range(2)]
            np.testing.assert_allclose(gradient(W, x[comm.rank]), sum(map(len, x)) * np.cos(W))

    D.run_ranks(run, 2, timeout=20, debug=debug)


def test_numbers_and_results_that_differ_are_found_in_every_call_in_the_debug_mode():
    def run(comm):
        f = fad.jit(D.spmd(lambda w, x: w * 1.0 if comm.rank else w, comm, replicated=0))
        for _ in range(2):
            with pytest.raises(D.RankTypeError, match="returned as the same on all ranks what differs"):
                D.spmd(lambda w: np.sin(w) if comm.rank else w, comm, replicated=0)(W)
            with pytest.raises(D.RankTypeError, match=r"number differs .*: 0 on rank 0, 1 on rank 1, at .*agreement"):
                D.spmd(lambda w: w * int(comm.rank), comm, replicated=0)(W)
            f(W, W)
            with pytest.raises(D.RankTypeError, match="what differs"):
                f(W + comm.rank, W)

    D.run_ranks(run, 2, timeout=20, debug=True)


@pytest.mark.parametrize("dtype", ["float64", "float32", "complex128"])
def test_a_difference_of_rounding_is_none(dtype):
    w = W.astype(dtype)

    def run(comm):
        mine = w * (1 + comm.rank * np.finfo(dtype).eps)
        assert comm.rank == 0 or np.any(mine != w)
        return D.grad(lambda w, x: comm.all_reduce(np.sum(np.abs(w * x) ** 2)), comm)(mine, w)

    for g in on_ranks(run):
        np.testing.assert_allclose(g, 4 * np.conj(w) * np.abs(w) ** 2, rtol=1e-5)


def test_values_without_elements_infinities_and_large_views_are_compared():
    large = np.arange(60000.0).reshape(200, 300).T

    def run(comm):
        def loss(w, x):
            return comm.all_reduce(np.sum(w["a"] * x) + np.sum(w["b"]) * np.sum(x) + np.sum(np.where(x > 0, w["c"], 0)))

        g = D.grad(loss, comm)({"a": large, "b": np.zeros((0, 3)), "c": np.array([np.inf, np.nan])[0]}, large)
        np.testing.assert_allclose(g["a"], 2 * large)
        different = large.copy()
        different[77, 77] += 100.0 * comm.rank
        with pytest.raises(D.RankTypeError, match="differs"):
            D.grad(lambda w, x: comm.all_reduce(np.sum(w * x)), comm)(different, large)

    on_ranks(run)


def test_the_check_is_part_of_every_composition():
    def run(comm):
        f = D.spmd(lambda w, x: comm.all_reduce(np.sum(np.sin(w * x) * comm.all_reduce(w * x)[0])), comm, replicated=0)
        rows = np.stack([W, 2 * W])
        found = [fad.vmap(fad.grad(f), (0, None))(rows, W), fad.jit(fad.vmap(fad.grad(f), (0, None)))(rows, W)]
        found.append(fad.jit(fad.vmap(fad.grad(fad.jit(f)), (0, None)))(rows, W))
        found.append(np.stack([fad.grad(f)(w, W) for w in rows]))
        found.append(fad.scan(lambda c, w: (c, fad.grad(f)(w, W)), 0.0, rows)[1])
        found.append(np.stack([fad.grad(fad.checkpoint(f))(w, W) for w in rows]))
        for g in found[1:]:
            np.testing.assert_allclose(g, found[0], rtol=1e-12)
        for transform in (fad.hessian, lambda f: fad.jit(fad.hessian(f)), lambda f: fad.jacrev(fad.grad(f))):
            np.testing.assert_allclose(transform(f)(W, W), fad.hessian(f)(W, W), rtol=1e-10)
            with pytest.raises(D.RankTypeError, match="differs"):
                transform(f)(W + comm.rank, W)
        return True

    on_ranks(run)
