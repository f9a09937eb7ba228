"""Finding NaNs, printing and calling back from traced programs, and seeing what reverse mode keeps."""

import numpy as np
import pytest

import fad
import fad.eager as torch
from fad import nn
from fad.debug import NaNGradientError
from fad.nn import functional as F


def root_times_its_argument(x):
    y = np.sqrt(x)
    return np.sum(y * x)


# --- nans -----------------------------------------------------------------------------------------------------------


def test_the_first_nan_names_the_line_of_its_forward_call_with_shapes_and_values():
    with np.errstate(all="ignore"), fad.debug.nans(), pytest.raises(NaNGradientError) as error:
        fad.grad(root_times_its_argument)(np.zeros((2, 3)))
    message = str(error.value)
    assert "backward rule of sqrt" in message
    assert "y = np.sqrt(x)" in message
    assert "shape (2, 3), float64, from 0 to 0" in message


def test_nans_leave_a_sound_program_alone():
    f = lambda x: np.sum(np.sin(x) ** 3)
    x = np.ones(3)
    expected = fad.grad(f)(x), fad.hessian(f)(x)
    with fad.debug.nans():
        np.testing.assert_array_equal(fad.grad(f)(x), expected[0])
        np.testing.assert_array_equal(fad.hessian(f)(x), expected[1])


def test_off_again_a_nan_is_a_number():
    with np.errstate(all="ignore"):
        with fad.debug.nans():
            pass
        assert np.isnan(fad.grad(root_times_its_argument)(np.zeros(1))).all()


SELECTED = {
    "slice": lambda x: np.sum(np.sqrt(x)[1:]),
    "weights": lambda x: np.sum(np.sqrt(x) * np.array([0.0, 1.0, 2.0])),
    "checkpoint": lambda x: np.sum(fad.checkpoint(np.sqrt)(x)[1:]),
    "write": lambda x: np.sum(fad.numpy.at(np.sqrt(x))[0].set(1.0)),
}


@pytest.mark.parametrize("name", SELECTED)
def test_nans_and_profiles_leave_the_derivative_of_what_is_selected_as_it_is(name):
    f, x = SELECTED[name], np.array([0.0, 1.0, 4.0])
    with np.errstate(all="ignore"):
        wanted = fad.grad(f)(x)
        assert wanted[0] == 0.0
        assert np.isfinite(wanted).all()
        with fad.debug.nans():
            np.testing.assert_array_equal(fad.grad(f)(x), wanted)
        with fad.profiler.profile():
            np.testing.assert_array_equal(fad.grad(f)(x), wanted)


def test_a_nan_that_came_from_above_is_not_blamed_on_the_rule_below():
    with fad.debug.nans():
        _, pull = fad.vjp(lambda x: x * 2, np.ones(2))
        assert np.isnan(pull(np.full(2, np.nan))[0]).all()


@pytest.mark.parametrize("transform", [fad.vmap, lambda f: fad.vmap(fad.checkpoint(f))])
def test_nans_are_found_below_other_transforms(transform):
    with np.errstate(all="ignore"), fad.debug.nans(), pytest.raises(NaNGradientError, match=r"np\.sqrt\(x\)"):
        fad.grad(lambda x: np.sum(transform(root_times_its_argument)(x)))(np.zeros((2, 3)))


def test_nans_are_found_in_the_eager_api():
    x = torch.zeros(2, requires_grad=True)
    with np.errstate(all="ignore"), fad.debug.nans():
        y = x.sqrt()
        z = (y * 0).sum()
        with pytest.raises(NaNGradientError, match=r"y = x\.sqrt\(\)"):
            z.backward()


# --- print and callback ---------------------------------------------------------------------------------------------


def test_print_shows_numbers_under_every_transform(capsys):
    def f(x):
        fad.debug.print("x = {}, twice {y}", x, y=2 * x)
        return x * x

    assert fad.grad(f)(3.0) == 6.0
    assert capsys.readouterr().out == "x = 3.0, twice 6.0\n"
    fad.grad(fad.grad(f))(3.0)
    assert capsys.readouterr().out == "x = 3.0, twice 6.0\n"
    fad.vmap(f)(np.array([1.0, 2.0]))
    assert capsys.readouterr().out == "x = [1. 2.], twice [2. 4.]\n"


def test_callback_gets_plain_numbers_and_changes_nothing():
    seen = []

    def f(x):
        fad.debug.callback(lambda v, scale: seen.append(v * scale), {"v": x}["v"], scale=10.0)
        return x**2

    for x in (3.0, np.float64(3.0)):  # what a plain run hands to it
        assert fad.grad(f)(x) == 6.0
    assert seen == [30.0, 30.0]
    assert [type(y) for y in seen] == [float, np.float64]


def test_print_prints_in_every_call_of_a_compiled_function(capsys):
    def loss(w, x):
        y = x @ w
        fad.debug.print("sum {}, {}", np.sum(y), "of a text and a number")
        return np.sum(y**2)

    for transform in (lambda f: f, fad.grad, fad.hessian):
        compiled = fad.jit(transform(loss))
        for scale in (1.0, 2.0, 3.0):
            compiled(scale * np.arange(3.0), np.eye(3))
            assert capsys.readouterr().out == f"sum {3 * scale}, of a text and a number\n"


@pytest.mark.parametrize("loops", ["capture", "record"])
def test_a_call_back_in_a_loop_of_a_compiled_function_sees_each_step_once(loops):
    seen = []

    def squares(x):
        for i in range(6):
            x = np.sin(x)
            if i % 3 == 1:
                fad.debug.callback(lambda k, y: seen.append((int(k), float(y[0]))), i, x)
        return np.sum(x**2)

    squares(np.ones(2))
    expected, seen[:] = list(seen), []
    assert [k for k, _ in expected] == [1, 4]
    with fad.config.use(loops=loops):
        for compiled in (fad.jit(squares), fad.jit(fad.grad(squares))):
            for _ in range(3):
                compiled(np.ones(2))
                assert seen == [(k, pytest.approx(y, rel=1e-15)) for k, y in expected]
                seen.clear()


def test_a_call_back_of_a_compiled_function_is_made_once_although_a_guard_fails():
    seen = []

    def positive(x):
        fad.debug.callback(seen.append, x)
        return x * 2 if x > 0 else x

    compiled = fad.jit(positive)
    for x in (1.0, 2.0, -1.0, 3.0, -2.0):
        compiled(x)
    assert seen == [1.0, 2.0, -1.0, 3.0, -2.0]


# --- saved ----------------------------------------------------------------------------------------------------------


def network(x, w):
    h = np.tanh(x @ w)
    return np.sum(np.exp(h))


def test_saved_lists_what_is_kept_with_operation_line_and_total():
    found = fad.saved(network)(np.ones((10, 4)), np.ones((4, 8)))
    kept = {(k.operation, k.shape, k.bytes) for k in found}
    assert kept == {("exp", (10, 8), 640), ("tanh", (10, 8), 640), ("matmul", (10, 4), 320), ("matmul", (4, 8), 256)}
    assert found.total == 640 + 640 + 320 + 256
    assert [k.bytes for k in found] == sorted((k.bytes for k in found), reverse=True)
    assert all("h = np.tanh(x @ w)" in k.line for k in found if k.operation in ("tanh", "matmul"))


def test_saved_prints_as_a_table():
    text = str(fad.saved(network)(np.ones((10, 4)), np.ones((4, 8))))
    assert text.splitlines()[0].split() == ["bytes", "shape", "dtype", "operation", "line"]
    assert text.splitlines()[-1] == "1,856 bytes in 4 arrays"


def test_saved_takes_a_model_and_labels_and_leaves_statistics_alone():
    model = nn.Sequential(nn.Linear(3, 4, key=0), nn.BatchNorm1d(4))
    before = model.state_dict()
    found = fad.saved(lambda m, x, y: F.cross_entropy(m(x), y))(model, np.ones((5, 3)), np.arange(5) % 4)
    assert {k.operation for k in found} >= {"affine", "cross_entropy_of_logits"}
    assert all(np.array_equal(before[k], v) for k, v in model.state_dict().items())


def test_sums_and_sines_keep_what_their_rules_read_and_no_more():
    assert fad.saved(lambda x: np.sum(x + 1.0))(np.ones(100)) == []
    shared = fad.saved(lambda x: np.sum(np.sin(x) + np.cos(x)))(np.ones(100))
    assert shared.total == 800  # the argument, once


def test_a_checkpoint_keeps_less():
    def deep(x):
        for _ in range(10):
            x = np.sin(x)
        return x

    plain = fad.saved(lambda x: np.sum(deep(x)))(np.ones(1000)).total
    less = fad.saved(lambda x: np.sum(fad.checkpoint(deep)(x)))(np.ones(1000)).total
    assert (plain, less) == (80_000, 0)
