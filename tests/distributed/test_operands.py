"""Operands that are easily got wrong: axes, dtypes, sizes; what cannot be done is refused by an error that says so."""

import numpy as np
import pytest

import fad
from fad import distributed as D
from fad.errors import ShapeMismatchError, UnsupportedInputError


def _array(rank, size):
    return np.arange(12.0 * size).reshape(2, 2 * size, 3) + 100.0 * rank


@pytest.mark.parametrize("size", [1, 2, 3])
@pytest.mark.parametrize("axis", [1, -2])
def test_parts_of_a_later_axis_keep_the_order_of_the_axes(axis, size):
    whole = sum(_array(r, size) for r in range(size))

    def run(comm):
        rank, x = int(comm.rank), _array(int(comm.rank), size)
        part = slice(2 * rank, 2 * rank + 2)
        np.testing.assert_allclose(comm.reduce_scatter(x, axis=axis, tiled=True), whole[:, part])
        for concat in (0, 1, 2, -1):
            expected = np.concatenate([_array(r, size)[:, part] for r in range(size)], axis=concat)
            np.testing.assert_array_equal(comm.all_to_all(x, split_axis=axis, concat_axis=concat), expected)

    D.run_ranks(run, size)


def test_the_derivative_of_an_exchange_along_a_later_axis_is_that_of_the_serial_program():
    def run(comm):
        w = np.arange(8.0).reshape(4, 2)

        def loss(w):
            y = comm.all_to_all(w * w, split_axis=0, concat_axis=1)
            z = comm.reduce_scatter(w * w, axis=1, tiled=True)
            return comm.all_reduce(np.sum(np.sin(y)) + np.sum(np.sin(z)))

        expected = 2 * 2 * w * np.cos(w * w) + 2 * w * 2 * np.cos(2 * w * w)
        np.testing.assert_allclose(D.grad(loss, comm)(w), expected)

    D.run_ranks(run, 2)


def test_an_axis_that_is_not_there_is_an_error():
    for call in (
        lambda: D.all_gather(np.ones(2), axis=5, tiled=True),
        lambda: D.reduce_scatter(np.ones((1, 2)), axis=3),
        lambda: D.all_to_all(np.ones(2), split_axis=-2),
    ):
        with pytest.raises(np.exceptions.AxisError):
            call()


@pytest.mark.parametrize("size", [1, 2, 3])
def test_bools_are_counted_and_the_mean_of_integers_is_that_of_numpy(size):
    def run(comm):
        x = np.array([True, comm.rank == 0])
        np.testing.assert_array_equal(comm.all_reduce(x), [size, 1])
        np.testing.assert_array_equal(comm.start_all_reduce(x).wait(), [size, 1])
        np.testing.assert_allclose(comm.all_reduce(x, "mean"), [1, 1 / size])
        np.testing.assert_array_equal(comm.all_reduce(x, "max"), [True, True])
        assert comm.all_reduce(True) == size
        np.testing.assert_array_equal(comm.reduce_scatter(np.ones(size, bool)), size)
        np.testing.assert_allclose(comm.all_reduce(np.array([100], np.int8), "mean"), [100.0])
        np.testing.assert_array_equal(fad.jit(comm.all_reduce)(x), [size, 1])

    D.run_ranks(run, size)


@pytest.mark.parametrize("fill", [np.inf, np.nan, 3.0, 3])
def test_what_stands_beyond_the_ends_of_a_domain_is_not_seen_within_it(fill):
    def run(comm):
        y = D.halo(np.arange(2.0) + 2 * int(comm.rank), fill=fill)
        whole = np.array([fill, 0.0, 1.0, 2.0, 3.0, fill])
        np.testing.assert_array_equal(y, whole[2 * int(comm.rank) :][:4])

    D.run_ranks(run, 2)


@pytest.mark.parametrize("width", [0, -1, 3])
def test_a_halo_is_at_least_one_cell_and_at_most_a_part(width):
    with pytest.raises(ShapeMismatchError, match="width of 1 to 2"):
        D.halo(np.arange(2.0), width)


def test_a_jacobian_of_one_number_and_a_derivative_of_a_jacobian_are_computed():
    def run(comm):
        assert D.jacobian(lambda x: x * x, comm)(3.0) == 6.0
        f = D.spmd(lambda x: np.sum(D.jacobian(lambda y: y * y * y[0], comm)(x)), comm, replicated=0)
        x = np.array([1.0, 2.0, 3.0])
        serial = fad.grad(lambda x: np.sum(fad.jacobian(lambda y: y * y * y[0])(x)))(x)
        np.testing.assert_allclose(fad.grad(f)(x), serial)

    D.run_ranks(run, 2)


def test_a_map_of_a_number_says_what_it_needs():
    with pytest.raises(ShapeMismatchError, match="was given a number"):
        D.map(lambda x: x, 2.0)


def test_a_complex_system_is_refused_by_cg():
    with pytest.raises(UnsupportedInputError, match="real numbers"):
        D.cg(lambda x: x, np.array([1.0, 1j]))


def test_arguments_that_are_the_same_on_all_ranks_must_be_there():
    with pytest.raises(ValueError, match="replicated names argument 2"):
        D.spmd(lambda a, b: a, replicated=(0, 2))(1.0, 2.0)
    with pytest.raises(ValueError, match="replicated names argument 1"):
        D.check(lambda a: a, 1.0, replicated=1)


def test_true_says_to_check_that_all_arguments_are_the_same_on_all_ranks():
    D.run_ranks(lambda comm: D.check(lambda a, b: a * np.sum(b), 2.0, np.ones(3), replicated=True), 2)


def test_a_checkpoint_has_a_step_that_can_be_found_again(tmp_path):
    for step in (-1, 1.5):
        with pytest.raises(ValueError, match="step must be"):
            D.save(tmp_path, {}, step=step)


def test_a_negative_tag_is_an_error():
    with pytest.raises(ValueError, match="tag must not be negative"):
        D.send(np.ones(2), 0, tag=-1)


@pytest.mark.parametrize("size", [1, 2])
@pytest.mark.parametrize("transform", [lambda f: f, fad.jit])
def test_a_handle_that_nobody_waits_for_has_no_gradient(transform, size):
    def run(comm):
        def loss(x):
            comm.start_permute(x * x, [(0, size - 1)])
            comm.start_all_gather(x * x)
            comm.start_reduce_scatter(np.stack([x] * size))
            comm.start_all_to_all(np.stack([x] * size))
            return comm.all_reduce(np.sum(x * x))

        gradient = transform(D.grad(loss, comm))
        for _ in range(2):
            np.testing.assert_allclose(gradient(np.ones(2)), [2.0 * size] * 2)

    D.run_ranks(run, size)


@pytest.mark.parametrize("size", [1, 2])
@pytest.mark.parametrize("transform", [lambda f: f, fad.jit])
def test_a_number_written_into_what_is_the_same_on_all_ranks_leaves_it_the_same(transform, size):
    def run(comm):
        def loss(x):
            x = x.copy()
            y = comm.all_reduce(x, "mean")
            x[0] = 5.0
            x[:2] *= 3
            y[1:] = 2
            z = (x * y).reshape(1, -1)
            z[0, 2] = 1.0
            return np.sum(z * z)

        # x0 goes into z0 = 15 x0; x1 into z1 = 3 x1 * 2
        expected = [2 * 15 * 15 * 1.0, 2 * 36 * 2.0, 0.0]
        x = np.array([1.0, 2.0, 3.0])
        np.testing.assert_allclose(transform(D.grad(loss, comm))(x), expected)
        f = D.spmd(loss, comm, replicated=0)
        np.testing.assert_allclose(transform(fad.hessian(f))(x), np.diag([450.0, 72.0, 0.0]))
        rows = transform(fad.vmap(fad.grad(f)))(np.stack([x, x]))
        np.testing.assert_allclose(rows, [expected, expected])

    D.run_ranks(run, size)


@pytest.mark.parametrize("x", [np.array(["a"]), np.array(["2020-01-01"], "M8[D]"), np.array([None])])
def test_what_is_no_number_is_not_reduced(x):
    for call in (D.all_reduce, D.reduce, D.reduce_scatter, D.start_all_reduce, D.start_reduce_scatter):
        with pytest.raises(UnsupportedInputError, match="takes numbers"):
            call(x)


@pytest.mark.parametrize("size", [1, 2])
@pytest.mark.parametrize("like", [np.zeros(4, int), np.zeros(8, "f4"), np.zeros((2, 2))])
def test_a_message_of_another_dtype_or_shape_is_refused(like, size):
    def run(comm):
        comm.send(np.ones(4), comm.rank)
        with pytest.raises(D.MismatchError, match=r"was sent float64\[4\]"):
            comm.recv(like, comm.rank)

    D.run_ranks(run, size)
    world = D.init("alone")
    world.send(np.ones(4), 0)
    with pytest.raises(D.MismatchError, match=r"was sent float64\[4\]"):
        world.recv(like, 0)


@pytest.mark.parametrize("size", [1, 2, 3])
def test_the_mean_of_half_floats_is_that_of_numpy(size):
    def run(comm):
        x = np.full(2, 60000, "f2")
        rows = np.full((size, 2), 60000, "f2")
        found = [comm.all_reduce(x, "mean"), fad.jit(lambda x: comm.all_reduce(x, "mean"))(x)]
        found += [comm.reduce_scatter(rows, "mean"), comm.start_reduce_scatter(rows, "mean").wait()]
        found += [comm.start_all_reduce(x, "mean").wait()]
        if comm.rank == 0:
            found.append(comm.reduce(x, 0, "mean"))
        else:
            comm.reduce(x, 0, "mean")
        for y in found:
            assert y.dtype == np.float16
            np.testing.assert_array_equal(y, x)
        g = D.grad(lambda x: np.sum(comm.all_reduce(x * x, "mean")), comm)(np.array([2, 3], "f2"))
        assert g.dtype == np.float16
        np.testing.assert_array_equal(g, [4, 6])

    D.run_ranks(run, size)


def test_ranks_tags_and_axes_are_integers():
    x = np.ones((1, 2))
    for call in (
        lambda: D.shift(x, 1.5),
        lambda: D.broadcast(x, 0.5),
        lambda: D.reduce(x, 0.0),
        lambda: D.send(x, 0, tag=1.5),
        lambda: D.permute(x, [(0, 0.5)]),
        lambda: D.all_gather(x, axis=0.0),
        lambda: D.all_gather(x, axis=0.0, tiled=True),
        lambda: D.reduce_scatter(x, axis=0.0),
        lambda: D.all_to_all(x, concat_axis=0.5),
    ):
        with pytest.raises(TypeError, match="must be an integer, not"):
            call()
    np.testing.assert_array_equal(D.shift(x, np.int32(2)), x)


@pytest.mark.parametrize("call", [D.all_reduce, D.all_gather, D.broadcast, D.shift, D.start_all_reduce])
def test_an_integer_that_numpy_has_no_room_for_overflows(call):
    with pytest.raises(OverflowError, match="too large for NumPy's integers"):
        call(10**30)


X = np.ones((2, 2))
DIFFERENT = {
    "all_reduce": (lambda c: c.all_reduce(X), lambda c: c.all_reduce(X, "mean")),
    "start_all_reduce": (lambda c: c.start_all_reduce(X).wait(), lambda c: c.start_all_reduce(X, "mean").wait()),
    "reduce": (lambda c: c.reduce(X), lambda c: c.reduce(X, op="mean")),
    "reduce_root": (lambda c: c.reduce(X, 0, "max"), lambda c: c.reduce(X, 1, "max")),
    "reduce_scatter": (lambda c: c.reduce_scatter(X), lambda c: c.reduce_scatter(X, "mean")),
    "reduce_scatter_axis": (lambda c: c.reduce_scatter(X), lambda c: c.reduce_scatter(X, axis=1)),
    "start_reduce_scatter": (lambda c: c.start_reduce_scatter(X).wait(),
                             lambda c: c.start_reduce_scatter(X, "mean").wait()),
    "all_gather_axis": (lambda c: c.all_gather(X), lambda c: c.all_gather(X, axis=-1)),
    "all_gather_tiled": (lambda c: c.all_gather(X), lambda c: c.all_gather(X, tiled=True)),
    "start_all_gather": (lambda c: c.start_all_gather(X).wait(), lambda c: c.start_all_gather(X, axis=1).wait()),
    "all_to_all": (lambda c: c.all_to_all(X), lambda c: c.all_to_all(X, concat_axis=1)),
    "all_to_all_split": (lambda c: c.all_to_all(X), lambda c: c.all_to_all(X, split_axis=1)),
}  # fmt: skip


@pytest.mark.parametrize("name", DIFFERENT)
@pytest.mark.parametrize("transform", [lambda f: f, fad.jit])
def test_all_parameters_of_a_collective_are_compared(name, transform):
    def run(comm):
        transform(lambda: DIFFERENT[name][int(comm.rank)](comm))()

    with pytest.raises(D.MismatchError, match="the ranks call different things"):
        D.run_ranks(run, 2, timeout=20)


def test_an_axis_counted_from_either_end_is_the_same():
    def run(comm):
        comm.all_gather(X, axis=(2, -1)[int(comm.rank)])
        comm.all_gather(X, axis=(1, -1)[int(comm.rank)], tiled=True)
        comm.reduce_scatter(X, axis=(0, -2)[int(comm.rank)])
        comm.all_to_all(X, concat_axis=(1, -1)[int(comm.rank)])

    D.run_ranks(run, 2, timeout=20)
