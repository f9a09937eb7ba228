"""What lives outside of a program's memory: large arguments, results and constants, which others hold, too."""

import gc
import weakref

import numpy as np
import pytest

import fad

pytest.importorskip("llvmlite")
from natively import compiled

X = np.arange(10_000.0)


def reshape(y):
    y.shape = (100, 100)


def reread(y):
    y.dtype = np.int64


def lock(y):
    y.flags.writeable = False


@pytest.mark.parametrize("change", [reshape, reread, lock])
@pytest.mark.filterwarnings("ignore:Setting the:DeprecationWarning")
def test_a_result_does_not_show_what_was_done_to_an_earlier_one_that_is_gone(change):
    f = compiled(lambda x: x * 2.0, X)
    for _ in range(4):
        change(f(X))
    y = f(X)
    assert y.flags.writeable
    assert y.dtype == float
    np.testing.assert_array_equal(y, X * 2.0, strict=True)


def test_memory_that_is_still_held_in_part_is_not_used_again():
    f = compiled(lambda x: x * 2.0, X)
    parts = [f(X + k)[1:3] for k in range(5)]
    views = [memoryview(f(X + k)) for k in range(5)]
    f(X)
    for k in range(5):
        np.testing.assert_array_equal(parts[k], (X + k)[1:3] * 2.0)
        np.testing.assert_array_equal(views[k], (X + k) * 2.0)


def test_memory_of_a_result_that_was_given_away_may_be_handed_out_again():
    f, step = compiled(lambda x: x * 2.0, X), fad.jit(lambda w: w + 1.0, donate_argnums=0)
    for _ in range(6):
        w = f(X)
        step(w)
        del w


RESHAPED = {
    "a reshaped result": lambda x: (x * 2.0).reshape(100, 100),
    "twice": lambda x: (lambda y: (y.reshape(100, 100), y.reshape(50, 200)))(x * 2.0),
    "and as it is": lambda x: (lambda y: (y.reshape(100, 100), y))(x * 2.0),
    "a part": lambda x: (x * 2.0)[5:].reshape(5, -1),
    "the other way round": lambda x: (x * 2.0).reshape(100, 100).T,
    "an argument": lambda x: x.reshape(100, 100),
    "what was written into": lambda x: fad.numpy.at(x * 2.0)[3].set(5.0).reshape(100, 100),
    "a gradient": lambda x: fad.grad(lambda y: np.sum(np.sin(y.ravel())))(x.reshape(100, 100)),
}


@pytest.mark.parametrize("name", RESHAPED)
def test_results_in_another_shape_are_arrays_of_their_own(name):
    f = RESHAPED[name]
    run, x = compiled(f, X), X.copy()
    ys = [fad.tree.leaves(run(x + k)) for k in range(4)]
    for k, found in enumerate(ys):
        for a, b in zip(found, fad.tree.leaves(f(X + k)), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-14, strict=True)
            assert a.flags.writeable
    every = [a for found in ys for a in found]
    for k, a in enumerate(every):
        assert not any(np.may_share_memory(a, b) for b in [x, *every[k + 1 :]])


def test_a_result_in_another_shape_is_not_copied():
    run = compiled(lambda x: (x * 2.0).reshape(100, 100), X)
    assert ", 0 bytes of memory" in run.explain()


def test_a_result_in_another_shape_takes_over_the_memory_of_an_argument():
    step = fad.jit(lambda w: (w * 2.0).reshape(100, 100), donate_argnums=0)
    for _ in range(3):
        w = X.copy()
        address = w.ctypes.data
        y = step(w)
    np.testing.assert_array_equal(y, 2.0 * X.reshape(100, 100))
    assert y.ctypes.data == address


CALLS = {
    "loops alone": lambda x: np.sum(x * 2.0),
    "a NumPy call": lambda x: np.sum(np.sort(x)),
    "a view of it": lambda x: np.sum(np.sort(x[1:])),
    "a question": lambda x: np.sum(x) if x[0] < 1.0 else x[0],
    "a view of a result": lambda x: (x * 2.0, (x * 2.0)[5:]),
    "gaps": lambda x: np.sum(x * x),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_program_does_not_keep_the_arrays_of_its_last_call(name):
    f = CALLS[name]
    make = (lambda: np.repeat(X, 2)[::2]) if name == "gaps" else X.copy
    fast, x = compiled(f, make()), make()
    want = fad.tree.leaves(f(x))
    for _ in range(2):
        for a, b in zip(fad.tree.leaves(fast(x)), want, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-13)
    gone = weakref.ref(x)
    del x
    gc.collect()
    assert gone() is None


def test_a_program_does_not_keep_the_arrays_of_a_call_that_failed():
    fast = compiled(lambda x: np.linalg.inv(x) * 2.0, np.eye(90))
    x = np.zeros((90, 90))
    gone = weakref.ref(x)
    with pytest.raises(np.linalg.LinAlgError):
        fast(x)
    del x
    gc.collect()
    assert gone() is None


@pytest.mark.parametrize("kind", [[("x", "f8"), ("t", "i4")], [("t", "i1"), ("x", "f8")]])
@pytest.mark.parametrize("size", [30, 3000])
def test_a_constant_that_is_a_field_of_records_is_read_at_its_elements(kind, size):
    c = np.zeros(size, kind)["x"]
    c[:] = np.arange(size)
    a = np.random.default_rng(0).normal(size=(300, size))
    for f in (lambda a: a @ c, lambda a: a * c + np.sum(c), lambda a: np.outer(c, a[:, 0]) @ a):
        np.testing.assert_allclose(compiled(f, a)(a), f(a), rtol=1e-10, atol=1e-7)


@pytest.mark.parametrize("shape", [(4,), (300, 300)])
def test_a_derivative_that_is_zero_everywhere_is_an_array_of_its_own_in_each_call(shape):
    f = fad.jit(fad.grad(lambda x, y: np.sum(x * x) + 0.0 * np.sum(y[:0]), argnums=(0, 1)))
    x, y = np.ones(3), np.ones(shape)
    results = [f(x, y)[1] for _ in range(4)]
    for k, zeros in enumerate(results):
        assert zeros.shape == shape
        assert not np.any(zeros)
        assert not np.any(np.signbit(zeros))
        zeros[...] = k + 1.0
    assert [zeros.flat[0] for zeros in results] == [1.0, 2.0, 3.0, 4.0]
