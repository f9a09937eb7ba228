"""What is refused of traced values: to leave their transform, to become what has no derivative, to be overwritten."""

import copy
import itertools
import math
import pickle

import numpy as np
import pytest
from refusals import X, elsewhere, refused

import fad
import fad.numpy
from fad import errors

# --- tracers that leave their transform --------------------------------------------------------------------------

LEAKS = {
    "grad": lambda f: fad.grad(f)(3.0),
    "vjp": lambda f: fad.vjp(f, 3.0),
    "jvp": lambda f: fad.jvp(f, (3.0,), (1.0,)),
    "vmap": lambda f: fad.vmap(f)(np.ones(2)),
    "linearize": lambda f: fad.linearize(f, 3.0),
}


@pytest.mark.parametrize("transform", list(LEAKS))
@pytest.mark.parametrize(
    "use", [lambda x: x + 1, lambda x: 2 * x, lambda x: np.sin(x), lambda x: fad.grad(lambda y: x * y)(1.0)]
)
def test_an_escaped_tracer_is_noticed_when_it_is_used(transform, use):
    kept = []
    LEAKS[transform](lambda x: kept.append(x) or x * 2.0)
    with refused(errors.LeakedTracerError, "finished", "has_aux=True"):
        use(kept[0])


def test_an_escaped_tracer_is_noticed_as_an_output_of_another_transform():
    kept = []
    fad.grad(lambda x: kept.append(x) or x * 2.0)(3.0)
    with refused(errors.LeakedTracerError, "finished"):
        fad.vjp(lambda x: kept[0], 1.0)


def test_an_escaped_tracer_can_still_be_printed():
    kept = []
    fad.grad(lambda x: kept.append(x) or x * 2.0)(3.0)
    assert "3.0" in repr(kept[0])


def test_aux_that_holds_tracers_is_lowered_and_may_leave():
    _, aux = fad.grad(lambda x: (x * x, {"x": x}), has_aux=True)(3.0)
    assert aux["x"] == 3.0
    assert type(aux["x"]) is np.float64


def test_a_generator_finished_after_its_transform_is_noticed():
    def lines(x):
        yield x * 2.0

    kept = []
    fad.grad(lambda x: kept.append(lines(x)) or x)(1.0)
    with refused(errors.LeakedTracerError):
        next(kept[0])


# --- conversions that would lose the derivative ------------------------------------------------------------------


HIDDEN = itertools.repeat(np)  # NumPy's own functions, where fad does not find them


@pytest.mark.parametrize(
    "convert",
    [
        lambda x: next(HIDDEN).asarray(x),
        lambda x: next(HIDDEN).array(x),
        lambda x: next(HIDDEN).array([x, x]),
        lambda x: next(HIDDEN).array([[x, 1.0], [2.0, x]]),
        lambda x: next(HIDDEN).array((x, 1.0), dtype=object),
        lambda x: next(HIDDEN).array(x, dtype=object),
        lambda x: next(HIDDEN).asarray([x]),
        lambda x: next(HIDDEN).ascontiguousarray(x),
    ],
)
def test_a_tracer_does_not_become_a_plain_array(convert):
    with refused(errors.TracerConversionError, "plain NumPy array", "fad.stop_gradient"):
        fad.grad(lambda x: np.sum(convert(x)))(1.0)


@pytest.mark.parametrize("convert", [math.frexp, math.ulp])
@pytest.mark.parametrize("transform", [fad.grad, lambda f: lambda x: fad.jvp(f, (x,), (1.0,))])
def test_a_tracer_does_not_become_a_python_number(transform, convert):
    with refused(errors.TracerConversionError, "Python number", "float(fad.stop_gradient(x))"):
        transform(lambda x: convert(x) * x)(1.0)


def test_the_remedy_for_a_python_number_works():
    assert fad.grad(lambda x: float(fad.stop_gradient(x)) * x)(3.0) == 3.0


def test_int_bool_and_index_are_answered_for_they_are_piecewise_constant():
    def f(x):
        n = int(x)
        return x**n if x > 0 else x * [1, 2, 3][int(x)]

    assert fad.grad(f)(3.0) == 27.0


@pytest.mark.parametrize("convert", [math.frexp, math.ulp])
def test_a_batched_value_does_not_become_one_number(convert):
    with refused(errors.BatchedValueError, "3 numbers", "takes plain numbers"):
        fad.vmap(lambda x: convert(x) + 1)(X)


def test_a_tracer_is_not_written_into_a_plain_array():
    def by_item(x):
        out = elsewhere(3)
        out[0] = x
        return np.sum(out)

    # NumPy puts a ValueError of its own on top of what the conversion to a number raises; it is taken away.
    with refused(errors.TracerConversionError, "fad.numpy.at(out)[0].set(x)"):
        fad.grad(by_item)(1.0)


@pytest.mark.parametrize("index", [slice(None), [0, 1], ...])
def test_a_tracer_is_not_written_into_a_part_of_a_plain_array(index):
    def f(x):
        out = elsewhere(3)
        out[index] = x
        return np.sum(out)

    with refused(errors.TracerConversionError, "fad.numpy.at(out)[index].set(x)"):
        fad.grad(f)(1.0)


def test_the_remedy_for_writing_into_a_plain_array_works():
    def f(x):
        out = np.zeros(3)
        out = fad.numpy.at(out)[0].set(x)
        return np.sum(out * x)

    assert fad.grad(f)(3.0) == 6.0


@pytest.mark.parametrize(
    "update",
    [
        lambda w, x: w.__iadd__(x),
        lambda w, x: w.__imul__(x),
        lambda w, x: np.add(w, x, out=w),
        lambda w, x: np.sin(x, out=w),
        lambda w, x: np.sum(x, out=w[0, ...]),
    ],
)
def test_a_traced_result_is_not_written_into_an_array(update):
    with refused(errors.TracerConversionError, "plain array, which cannot carry a derivative", "np.zeros"):
        fad.grad(lambda x: np.sum(update(elsewhere(3), x)))(X)


def test_a_tracer_is_not_pickled():
    with refused(errors.TracerConversionError, "pickled"):
        fad.grad(lambda x: len(pickle.dumps(x)) * x)(1.0)


def test_copies_of_a_tracer_are_the_tracer():
    assert fad.grad(lambda x: copy.deepcopy([x])[0] * copy.copy(x))(3.0) == 6.0


# --- vmap --------------------------------------------------------------------------------------------------------


def _two(x, y):
    return x * y


@pytest.mark.parametrize(
    ("in_axes", "args", "texts"),
    [
        ((0, 0), (np.ones(3), np.ones(4)), ("one size", "3", "4")),
        ((0,), (np.ones(3), np.ones(3)), ("1 entries", "2 positional")),
        ((0, 1), (np.ones(3), np.ones(3)), ("in_axes=1", "(3,)", "None")),
        ((-2, 0), (np.ones(3), np.ones(3)), ("in_axes=-2", "(3,)")),
        ((None, None), (np.ones(3), np.ones(3)), ("no argument",)),
        (("a", 0), (np.ones(3), np.ones(3)), ("in_axes", "'a'")),
        ((0, 0), (np.ones(3), 2.0), ("in_axes=0", "()", "None")),
        ((0, (0, 0)), (np.ones(3), np.ones(3)), ("in_axes", "prefix")),
    ],
)
def test_in_axes_that_do_not_fit(in_axes, args, texts):
    with refused(errors.BatchingError, *texts):
        fad.vmap(_two, in_axes=in_axes)(*args)


def test_axis_size_that_does_not_fit():
    with refused(errors.BatchingError, "axis_size=4", "3"):
        fad.vmap(np.sin, axis_size=4)(X)


def test_out_axes_that_do_not_fit():
    with refused(errors.BatchingError, "out_axes=2"):
        fad.vmap(np.sin, out_axes=2)(X)


def test_lanes_that_return_different_structures_or_shapes():
    with refused(errors.BatchingError, "different structures"):
        fad.vmap(lambda x: x if x > 2 else (x, x))(X)
    with refused(errors.BatchingError, "different shapes", "(1,)", "(2,)"):
        fad.vmap(lambda x: np.stack([x, x]) if x > 2 else np.stack([x]))(X)


def test_branching_can_be_an_error():
    with refused(errors.BatchedValueError, "on_branch", "np.where"):
        fad.vmap(lambda x: x if x > 2 else -x, on_branch="error")(X)


def test_an_unknown_choice_is_refused_at_once():
    with pytest.raises(ValueError, match="on_branch"):
        fad.vmap(_two, on_branch="guess")
    with pytest.raises(ValueError, match="chunk_size"):
        fad.vmap(_two, chunk_size=0)


# --- backends ----------------------------------------------------------------------------------------------------


class _FakeArray:
    """An array of a backend that refuses NumPy, as CuPy's do."""

    shape, dtype, ndim, size = (3,), np.dtype(float), 1, 3

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        return NotImplemented

    def __array__(self, *args, **kwargs):
        raise TypeError("Implicit conversion to a NumPy array is not allowed")


class _FakeBackend:
    name = "fake"
    array_type = _FakeArray


@pytest.fixture
def fake_backend(monkeypatch):
    monkeypatch.setitem(fad.backends._BY_NAME, "fake", _FakeBackend)
    monkeypatch.setitem(fad.backends._BY_TYPE, _FakeArray, _FakeBackend)


def test_arrays_of_two_backends_do_not_mix(fake_backend):
    with refused(errors.BackendMismatchError, "numpy", "fake", "fad.device_put"):
        fad.backends.backend_of(np.ones(3), _FakeArray())


@pytest.mark.parametrize("f", [lambda x, a: x * a, lambda x, a: a * x, lambda x, a: np.matmul(x, a)])
def test_an_operation_of_a_traced_array_and_one_of_another_backend_is_refused(fake_backend, f):
    other = _FakeArray()
    with refused(errors.BackendMismatchError, "numpy", "fake"):
        fad.grad(lambda x: np.sum(f(x, other)))(X)
    with refused(errors.BackendMismatchError, "numpy", "fake"):
        fad.jvp(lambda x: f(x, other), (X,), (X,))
    with refused(errors.BackendMismatchError, "numpy", "fake"):
        fad.vmap(lambda x: f(x, other))(np.ones((2, 3)))


def test_an_unknown_backend_names_those_that_exist():
    with pytest.raises(ValueError, match=r"no backend 'tpu'.*numpy"):
        fad.backends.use("tpu")


# --- arrays overwritten between the passes -----------------------------------------------------------------------


def test_a_constant_too_large_to_copy_that_is_overwritten_is_noticed_and_both_lines_are_named(monkeypatch):
    monkeypatch.setattr("fad.transforms.arguments.mutation._BUDGET", 0)
    w = np.ones(10_000)
    y, pullback = fad.vjp(lambda x: x * w, np.ones(10_000))  # the line that kept it
    pullback(y)
    w[77] = 5.0
    with refused(errors.MutationError, "shape (10000,)", "fad.vjp(lambda x: x * w", "copy()") as _:
        pullback(y)


def test_a_constant_too_large_to_copy_that_is_overwritten_between_two_uses_is_noticed(monkeypatch):
    monkeypatch.setattr("fad.transforms.arguments.mutation._BUDGET", 0)

    def f(x):
        w = elsewhere(200, 100).T
        total = np.sum(x * w)
        w[3, 4] = 2.0
        total = total + np.sum(x * w)
        w[3, 4] = 0.0
        return total

    with refused(errors.MutationError, "overwritten"):
        fad.grad(f)(np.ones((100, 200)))


def test_an_input_overwritten_by_the_function_itself_is_noticed():
    x = X.copy()

    def f(v):
        y = v * v
        x[0] = 7.0
        return np.sum(y)

    with refused(errors.MutationError, "overwritten"):
        fad.vjp(f, x)
    x = X.copy()
    with refused(errors.MutationError, "overwritten"):
        fad.linearize(f, x)
    x = X.copy()
    with refused(errors.MutationError, "overwritten"):
        fad.grad(f)(x)


def test_an_input_that_no_rule_needs_may_be_overwritten():
    x = X.copy()
    _, pullback = fad.vjp(lambda x: 3.0 * x + x, x)
    x *= 2
    np.testing.assert_array_equal(pullback(np.ones(3))[0], [4.0, 4.0, 4.0])


def test_the_check_can_be_switched_off():
    w = np.ones(3)
    with fad.config.use(check_mutation="off"):
        _, pullback = fad.vjp(lambda x: x * w, X)
        w[0] = 5.0
        assert pullback(np.ones(3))[0][0] == 5.0


@pytest.mark.parametrize("wrap", [fad.vmap, lambda f: lambda xs: fad.grad(lambda x: np.sum(f(x)))(xs[0])])
def test_a_traced_value_written_into_flat_elements_from_outside_is_fads_own_error(wrap):
    table = np.zeros(3)

    def f(x):  # calls no function of NumPy's, for which it would run again
        table.flat[0] = x[2]
        return x

    with pytest.raises((fad.errors.TracerConversionError, fad.errors.BatchedValueError)):
        wrap(f)(np.ones((2, 3)))
