"""Values know whether they are the same on all ranks, and what is not known is an error that says what to write."""

import numpy as np
import pytest
import rank_programs

import fad
from fad import distributed as D


def on_ranks(fun, size=2):
    return D.run_ranks(fun, size, timeout=20)


def test_a_derivative_of_a_collective_without_types_is_an_error_that_says_what_to_write():
    def run(comm):
        with pytest.raises(D.RankTypeError, match=r"fad\.distributed\.grad\(f, comm\)"):
            fad.grad(lambda w: comm.all_reduce(w * w))(1.0)
        with pytest.raises(D.RankTypeError, match="spmd"):
            fad.jvp(lambda w: comm.all_gather(w), (1.0,), (1.0,))
        with pytest.raises(D.RankTypeError):
            fad.grad(lambda w: np.sum(fad.vmap(lambda w: comm.all_reduce(w))(w)))(np.ones(2))
        with pytest.raises(D.RankTypeError):
            fad.linearize(lambda w: comm.all_reduce(w), 1.0)
        return comm.all_reduce(1.0)

    assert on_ranks(run) == [2.0, 2.0]


def test_a_plain_gradient_of_a_collective_within_spmd_is_an_error():
    def run(comm):
        f = D.spmd(lambda w: fad.grad(lambda w: comm.all_reduce(w * w))(w), comm, replicated=0)
        with pytest.raises(D.RankTypeError):
            f(1.0)

    on_ranks(run)


def test_a_plain_gradient_of_local_operations_within_spmd_is_this_ranks_own():
    def run(comm):
        local = lambda w, x: np.sum(np.sin(w * x))
        f = D.spmd(lambda w, x: comm.all_reduce(fad.grad(local)(w, x)), comm, replicated=0)
        return f(2.0, 1.0 + comm.rank), fad.grad(f)(2.0, 1.0 + comm.rank)

    xs = [1.0, 2.0]
    for value, slope in on_ranks(run):
        np.testing.assert_allclose(value, sum(x * np.cos(2.0 * x) for x in xs))
        np.testing.assert_allclose(slope, sum(-x * x * np.sin(2.0 * x) for x in xs))


def test_types_follow_the_operations():
    def run(comm):
        seen = {}

        def f(w, x):
            seen["parameter"] = D.is_replicated(w)
            seen["data"] = D.is_replicated(x)
            seen["of the same"] = D.is_replicated(2.0 * w + w)
            seen["mixed"] = D.is_replicated(w * x)
            seen["reduced"] = D.is_replicated(comm.all_reduce(x))
            seen["gathered"] = D.is_replicated(comm.all_gather(x))
            seen["broadcast"] = D.is_replicated(comm.broadcast(x))
            seen["permuted"] = D.is_replicated(comm.shift(x))
            seen["scattered"] = D.is_replicated(comm.reduce_scatter(np.stack([x] * comm.size)))
            seen["beside an array"] = D.is_replicated(w + np.ones(()))
            seen["by rank"] = D.is_replicated(w * comm.rank)
            seen["within vmap"] = fad.vmap(lambda z: z * 0.0 + float(D.is_replicated(z)))(np.stack([w, w]))[0]
            return comm.all_reduce(w * x)

        D.spmd(f, comm, replicated=0)(np.float64(1.0), np.float64(comm.rank))
        return seen

    for seen in on_ranks(run):
        same = {"parameter", "of the same", "reduced", "gathered", "broadcast", "within vmap"}
        assert {k for k, v in seen.items() if v} == same


def test_what_is_returned_as_the_same_and_differs_is_an_error():
    def run(comm):
        with pytest.raises(D.RankTypeError, match="all_reduce"):
            fad.grad(D.spmd(lambda w, x: np.sum(w * x), comm, replicated=0))(1.0, np.ones(2))
        with pytest.raises(D.RankTypeError):
            D.grad(lambda w, x: np.sum(w * x), comm)(1.0, np.ones(2))
        with pytest.raises(D.RankTypeError):
            D.grad(lambda w: w * comm.rank, comm)(1.0)

    on_ranks(run)


def test_a_value_of_each_rank_that_is_passed_as_the_same_to_an_inner_gradient_is_an_error():
    def run(comm):
        inner = lambda x: D.grad(lambda x: comm.all_reduce(x * x), comm)(x)
        with pytest.raises(D.RankTypeError, match="said to be the same"):
            D.spmd(lambda x: comm.all_reduce(inner(x)), comm, replicated=())(np.float64(comm.rank))

    on_ranks(run, 2)


def test_gradients_of_gradients_over_ranks_are_those_of_the_serial_program():
    def run(comm):
        x = np.arange(3.0) + comm.rank
        loss = lambda w, x: comm.all_reduce(np.sum(np.sin(w * x))) + np.sum(w**3)
        inside = lambda w, x: np.sum(np.cos(D.grad(loss, comm)(w, x)))
        return D.grad(inside, comm)(W, x)

    W = np.array([0.3, 0.5, 0.7])
    for n in (1, 2, 3):
        xs = [np.arange(3.0) + r for r in range(n)]
        serial = lambda w, xs=xs: sum(np.sum(np.sin(w * x)) for x in xs) + np.sum(w**3)
        expected = fad.grad(lambda w, f=serial: np.sum(np.cos(fad.grad(f)(w))))(W)
        for found in on_ranks(run, n):
            np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_a_traced_value_from_outside_of_the_arguments_is_an_error():
    def run(comm):
        with pytest.raises(D.RankTypeError, match="make it an argument"):
            fad.grad(lambda w: D.spmd(lambda x: comm.all_reduce(w * x), comm, replicated=())(1.0))(2.0)

    on_ranks(run)


def test_ranks_of_which_some_hold_constants_still_meet_in_the_backward_pass():
    def run(comm):
        def loss(w, x):
            edge = np.zeros(2) if comm.rank == 0 else w * x  # traced on some ranks only
            left = comm.shift(edge, wrap=False)
            used = 0.0 if comm.rank == 1 else np.sum(left**2)  # and read on some only
            return comm.all_reduce(used + np.sum(w * x))

        x = np.array([1.0, 2.0]) + comm.rank
        f = D.spmd(loss, comm, replicated=0)
        g = fad.grad(f)(3.0, x)
        j = fad.jit(fad.grad(f))
        return g, j(3.0, x), j(3.0, x)

    for found in on_ranks(run, 3):
        xs = [np.array([1.0, 2.0]) + r for r in range(3)]
        expected = sum(np.sum(x) for x in xs) + 2 * 3.0 * np.sum(xs[1] ** 2)
        np.testing.assert_allclose(found, expected)


def test_a_condition_on_a_batched_value_before_a_collective_is_an_error():
    def run(comm):
        f = lambda x: comm.all_reduce(x if x > 0.5 else 2.0 * x)
        with pytest.raises(fad.errors.BatchedValueError, match=r"np\.where"):
            fad.vmap(f)(np.array([0.2, 0.9]))

    on_ranks(run, 1)


def test_one_seed_gives_each_rank_its_own_dropout_and_all_the_same_weights():
    def run(comm):
        with fad.nn.seed(0):
            model = fad.nn.Sequential(fad.nn.Linear(4, 64), fad.nn.Dropout(0.5))
        model = D.own_dropout(model, comm)
        return model[0].weight, np.asarray(model(np.ones((1, 4)))) == 0.0, D.rank_key(3, comm)

    (w0, d0, k0), (w1, d1, k1) = on_ranks(run)
    assert np.array_equal(w0, w1)
    assert not np.array_equal(d0, d1)
    assert not np.array_equal(k0, k1)


@pytest.mark.parametrize("name", ["sum", "max", "all_gather", "reduce_scatter", "permute_edge", "send_recv"])
def test_linearised_and_taylor_series_over_ranks_are_those_of_the_serial_program(name):
    ranks, serial = rank_programs.programs(name)
    W, n = rank_programs.W, 3
    xs = rank_programs.all_data(n, rank_programs.SHAPE)
    s = lambda w: serial(n)(w, xs)

    def run(comm):
        f = D.spmd(ranks(comm), comm, replicated=0)
        g = lambda w: f(w, xs[comm.rank])
        value, push = fad.linearize(g, W)
        series = fad.jet(g, (W,), ([W * W, -W],))
        return value, push(W * W), push(2.0 * W), series[0], *series[1]

    value, push = fad.linearize(s, W)
    series = fad.jet(s, (W,), ([W * W, -W],))
    expected = value, push(W * W), push(2.0 * W), series[0], *series[1]
    for found in on_ranks(run, n):
        np.testing.assert_allclose(found, expected, rtol=1e-8)


def test_taylor_series_of_a_collective_without_types_are_an_error():
    with pytest.raises(D.RankTypeError):
        fad.jet(lambda w: D.all_reduce(w * w), (1.0,), ([1.0],))
    with pytest.raises(D.RankTypeError):
        fad.hessian(lambda w: D.all_reduce(np.sum(w * w)))(np.ones(2))
    with pytest.raises(D.RankTypeError):
        fad.linear_transpose(lambda w: D.all_reduce(w), np.ones(2))
    with pytest.raises(D.RankTypeError):
        fad.grad(fad.checkpoint(lambda w: D.all_reduce(w * w)))(1.0)


@pytest.mark.parametrize("dtype", ["float32", "complex128", "float16", "int64", "bool"])
def test_dtypes_stay(dtype):
    def run(comm):
        x = np.ones(3, dtype)
        y = comm.all_reduce(x, "max" if dtype == "bool" else "sum") if dtype != "complex128" else comm.all_reduce(x)
        if x.dtype.kind in "fc":
            f = D.spmd(lambda w: comm.all_reduce(np.sum(np.abs(w * w))), comm, replicated=0)
            assert fad.grad(f)(x).dtype == x.dtype
            assert comm.all_reduce(x, "mean").dtype == x.dtype
        return y, comm.all_gather(x), comm.shift(x), comm.all_reduce(x[0], "max") if dtype != "complex128" else x[0]

    for arrays in on_ranks(run):
        assert {y.dtype for y in arrays} == {np.dtype(dtype)}


def test_complex_gradients_over_ranks_are_the_serial_ones():
    def run(comm):
        f = lambda w, x: comm.all_reduce(np.sum(np.abs(w * x) ** 2)) + np.sum(w.real)
        return D.grad(f, comm)(w, x[comm.rank])

    w, x = np.array([1.0 + 2.0j, -1.0j]), np.array([[1.0, 2.0j], [0.5 + 1.0j, 3.0]])
    serial = fad.grad(lambda w: np.sum(np.abs(w * x) ** 2) + np.sum(w.real))(w)
    for found in on_ranks(run):
        np.testing.assert_allclose(found, serial)


def test_shapes_and_ranks_that_do_not_fit_are_errors():
    def run(comm):
        with pytest.raises(fad.errors.ShapeMismatchError, match="one entry for each of the 2 ranks"):
            comm.reduce_scatter(np.ones(3))
        with pytest.raises(fad.errors.ShapeMismatchError, match="multiple"):
            comm.all_to_all(np.ones(3))
        with pytest.raises(ValueError, match="root must be a rank"):
            comm.broadcast(1.0, 2)
        with pytest.raises(ValueError, match="stands twice"):
            comm.permute(1.0, [(0, 1), (0, 0)])
        with pytest.raises(ValueError, match="op must be"):
            comm.all_reduce(1.0, "median")

    on_ranks(run)


def test_ranks_that_call_different_things_are_shown_both_lines():
    def run(comm):
        return comm.all_reduce(np.ones(2)) if comm.rank else comm.all_reduce(np.ones(3))

    with pytest.raises(D.MismatchError, match=r"rank 0: all_reduce\(float64\[3\], op='sum'\).*\n.*rank 1"):
        on_ranks(run)
    with pytest.raises(D.MismatchError, match="nothing more"):
        on_ranks(lambda comm: comm.barrier() if comm.rank else None)
    with pytest.raises(ValueError, match="broken"):
        on_ranks(_broken)


def _broken(comm):
    if comm.rank == 1:
        raise ValueError("broken")
    comm.barrier()


def test_the_debug_mode_finds_what_is_said_to_be_the_same_and_is_not():
    def run(comm):
        n = 3 if comm.rank else 2  # a Python number that differs: only the debug mode can tell
        return D.grad(lambda w, x: comm.all_reduce(np.sum(w * x)) / n, comm)(1.0, np.ones(n))

    def right(comm):
        n = np.float64(3 if comm.rank else 2)
        return D.grad(lambda w, x: comm.all_reduce(np.sum(w * x) / n), comm)(1.0, np.ones(int(n)))

    def gradient(comm):  # the value is the same on all ranks, and its gradient was not
        n = 3 if comm.rank else 2
        return D.grad(lambda w: comm.all_reduce(np.sum(w) * n), comm)(np.ones(2))

    def treated_differently(comm):
        return D.grad(lambda w: w * w if comm.rank else np.sin(w), comm)(1.0)

    for f in (run, gradient):
        with pytest.raises(D.RankTypeError, match=r"a Python number differs .*: 2 on rank 0, 3 on rank 1"):
            D.run_ranks(f, 2, timeout=20, debug=True)
    with pytest.raises(D.RankTypeError, match=r"what differs: .* on rank 0, .* on rank 1"):
        D.run_ranks(treated_differently, 2, timeout=20, debug=True)
    assert D.run_ranks(right, 2, timeout=20, debug=True) == [2.0, 2.0]


def test_what_is_computed_with_the_number_of_a_rank_differs_by_rank():
    w = np.array([1.0, 2.0])

    def run(comm):
        r = int(comm.rank)
        numbers = [(comm.rank + 1, r + 1), (2 * comm.rank + 1, 2 * r + 1), (comm.rank / 2 + 1, r / 2 + 1)]
        numbers += [((comm.rank + 1) * 0.5, (r + 1) * 0.5), (2 ** -comm.rank, 2**-r), (3 - comm.rank // 2, 3 - r // 2)]
        found = []
        for number, plain in numbers:
            assert number == plain
            np.testing.assert_array_equal(w * number, w * plain)
            f = lambda w, number=number: comm.all_reduce(np.sum(w * w) * number)
            total = comm.all_reduce(np.float64(plain))
            for g in (D.grad(f, comm), fad.jit(D.grad(f, comm))):
                np.testing.assert_allclose(g(w), 2 * w * total)
            single = w.astype("f4")
            for transform in (lambda f: f, fad.grad, fad.jit, fad.vmap):  # beside arrays it is a Python number
                assert transform(lambda w, number=number: np.sum(number * w / number))(single).dtype == single.dtype
            found.append(number)
        return found

    assert D.run_ranks(run, 3, timeout=60)[2] == [3, 5, 2.0, 1.5, 0.25, 2]


def test_a_value_is_made_each_ranks_own_by_a_method_too():
    def run(comm):
        def loss(w):
            y = comm.varying(w * w)
            return comm.all_reduce(y if comm.rank == 0 else 0 * y)

        return D.grad(loss, comm)(3.0)

    assert D.run_ranks(run, 2, timeout=20) == [6.0, 6.0]
