"""jit: what tells one recording from another, captured values, and jitted functions as objects; both lowerings."""

import copy
import dataclasses
import gc
import pickle
import warnings
import weakref

import numpy as np
import pytest

import fad
from fad.compile.targets.select import has_llvm, using
from fad.errors import PathLimitWarning, StaticArgumentError
from fad.jitting.programs import MAX_SIGNATURES

LOWERINGS = ["numpy", *(["llvm"] if has_llvm() else [])]
X = np.random.default_rng(0).normal(size=(5, 4))


@pytest.fixture(autouse=True, params=LOWERINGS)
def lowering(request):
    with using(request.param):
        yield request.param


def test_each_shape_dtype_structure_and_static_argument_has_its_own_recording():
    fast = fad.jit(lambda x, *, power=2: x**power, static_argnames="power")
    fast(X)
    fast(X[0])
    fast(X.astype(np.float32))
    np.testing.assert_allclose(fast(X, power=3), X**3)
    np.testing.assert_allclose(fast(X, power=3), X**3)
    assert fast.cache_info().signatures == 4
    fast.clear_cache()
    assert fast.cache_info() == (0, 0, 0, 0)


def test_static_arguments_by_number_and_by_name_are_the_same_argument():
    fast = fad.jit(lambda x, how: np.sin(x) if how == "sin" else x, static_argnums=1)
    assert fast(1.0, "sin") == fast(1.0, how="sin") == np.sin(1.0)
    assert fast(1.0, "none") == 1.0
    with pytest.raises(StaticArgumentError, match=r"static argument 1 .*list.*tuple"):
        fast(1.0, ["sin"])
    with pytest.raises(StaticArgumentError, match="static argument 'how'"):
        fast(1.0, how={"sin"})
    with pytest.raises(StaticArgumentError, match="no array"):
        fad.jit(lambda x, how: x)(1.0, how={1, 2})


def test_a_dataclass_that_is_not_registered_is_told_how_to_be_an_argument():
    @dataclasses.dataclass
    class State:
        x: np.ndarray

    with pytest.raises(StaticArgumentError, match=r"register_dataclass above @dataclass of State"):
        fad.jit(lambda state: state.x)(State(X))


def test_slices_and_nan_are_known_by_what_they_are():
    fast = fad.jit(lambda x, where: x[where])
    for where in (slice(1, 3), slice(0, 2), slice(None, None, -1), slice(1, 3)):
        np.testing.assert_array_equal(fast(X, where), X[where])
    assert fast.cache_info().signatures == 3
    with pytest.raises(StaticArgumentError, match="a part of an argument"):
        fast(X, slice([1], 2))
    fast = fad.jit(lambda x, fill: x if fill != fill else x * fill, static_argnums=1)
    for fill in ("nan", "nan", "2", "nan"):
        fast(X, float(fill))
    assert fast.cache_info().signatures == 2


def test_what_cannot_be_jitted_is_refused_at_once():
    with pytest.raises(TypeError, match="takes a function, not int"):
        fad.jit(3)
    with pytest.raises(ValueError, match="lacks: 4"):
        fad.jit(lambda x, n: x, static_argnums=(1, 4))
    with pytest.raises(ValueError, match="lacks: 'how'"):
        fad.jit(lambda x, n: x, static_argnames="how")
    assert fad.jit(lambda x, *rest, **options: x, static_argnums=4, static_argnames="how")(1.0) == 1.0


def test_a_captured_array_that_is_overwritten_is_noticed():
    w = np.ones(4)
    fast = fad.jit(lambda x: x * w)
    for _ in range(3):
        np.testing.assert_array_equal(fast(X[0]), X[0])
    w[2] = 5.0
    for _ in range(3):
        np.testing.assert_array_equal(fast(X[0]), X[0] * w)


def test_views_are_watched_only_where_somebody_else_holds_the_array(lowering):
    held = np.eye(4)
    inside = fad.jit(lambda x: np.sum(np.eye(4)[:, 1:] * x))
    outside = fad.jit(lambda x: np.sum(held[:, 1:] * x))
    for f in (inside, outside):
        f(np.ones(3))
        assert f(np.ones(3)) == 3.0
    assert "watched" not in inside.explain()
    held[:] = 2.0
    assert outside(np.ones(3)) == 24.0


# --- jitted functions as objects -----------------------------------------------------------------------------------


def test_methods_and_keyword_arguments_work():
    class Model:
        def __init__(self, w):
            self.w = w

        @fad.jit
        def __call__(self, x, scale=1.0):
            return x * self.w * scale

    model = Model(3.0)
    for _ in range(3):
        assert model(2.0, scale=0.5) == 3.0


@fad.jit
def known_by_its_name(x):
    return np.sin(x) * 2.0


def test_jitted_functions_are_copied_and_pickled():
    known_by_its_name(X)
    for f in (known_by_its_name, fad.jit(np.cos), fad.jit(np.power, static_argnums=1)):
        args = (X, 2) if f.fun is np.power else (X,)
        for again in (copy.copy(f), copy.deepcopy({"f": f})["f"], pickle.loads(pickle.dumps(f))):
            for _ in range(3):
                np.testing.assert_allclose(again(*args), f.fun(*args), rtol=1e-15)
    assert pickle.loads(pickle.dumps(known_by_its_name)) is known_by_its_name


def make_lambda(n):
    return lambda x: x * n


@pytest.mark.parametrize("options", [{}, {"static_argnums": 1}], ids=["argument", "static"])
def test_functions_made_again_for_each_call_do_not_pile_up_and_are_warned_of_once(options):
    kept = []
    fast = fad.jit(lambda x, f: f(x), **options)
    with warnings.catch_warnings(record=True, action="always") as seen:
        for n in range(3 * MAX_SIGNATURES):
            f = make_lambda(float(n))
            kept.append(weakref.ref(f))
            assert fast(2.0, f) == 2.0 * n
            del f
    assert fast.cache_info().signatures <= MAX_SIGNATURES
    gc.collect()
    assert sum(ref() is not None for ref in kept) <= MAX_SIGNATURES
    (warning,) = seen
    assert warning.category is PathLimitWarning
    assert warning.filename == __file__
    assert "make_lambda.<locals>.<lambda>" in str(warning.message)


def test_signatures_in_use_stay_when_others_are_forgotten():
    fast = fad.jit(lambda x: x * 2.0)
    with_static = fad.jit(lambda x, n: x * n, static_argnums=1)
    for _ in range(2):
        fast(X), with_static(X, 2)
    misses = fast.cache_info().misses, with_static.cache_info().misses
    with warnings.catch_warnings(record=True, action="always") as seen:
        for n in range(3 * MAX_SIGNATURES):
            fast(np.ones(n)), with_static(X, n + 3)
            fast(X), with_static(X, 2)
    assert [w.category for w in seen] == [PathLimitWarning] * 2
    assert "shapes" in str(seen[0].message)
    assert fast.cache_info().misses == misses[0] + 3 * MAX_SIGNATURES
    assert with_static.cache_info().misses == misses[1] + 3 * MAX_SIGNATURES


def test_transforms_of_calls_with_functions_made_again_do_not_pile_up():
    fast = fad.jit(lambda x, f: f(x), static_argnums=1)
    with warnings.catch_warnings(record=True):
        for n in range(2 * MAX_SIGNATURES):
            assert fad.grad(fast)(2.0, make_lambda(float(n))) == n
    assert len(fast._inner) <= MAX_SIGNATURES


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (0.0, -0.0), (np.float64(0.0), np.float64(-0.0)), (complex(0.0, 1.0), complex(-0.0, 1.0)), ((1,), (1.0,)),
        ((0.0,), (-0.0,)), (((1, 2),), ((1, 2.0),)), (1, True),
    ],
)  # fmt: skip
def test_static_arguments_that_are_equal_but_not_the_same_have_programs_of_their_own(a, b):
    def times(x, n):
        n = fad.tree.leaves(n)
        return np.copysign(1.0, np.real(n[0])) * x, x * n[-1]

    f, x = fad.jit(times, static_argnums=1), np.arange(3)
    for n in (a, b, a, b):
        for found, wanted in zip(f(x, n), times(x, n), strict=True):
            np.testing.assert_array_equal(found, wanted)
            assert found.dtype == wanted.dtype
    assert len(f._signatures) == 2


def test_dictionaries_are_told_apart_by_the_order_and_type_of_their_keys():
    def f(x, factors, **more):
        for key, factor in (*factors.items(), *more.items()):
            x = x * factor + (1.0 if key == "a" else 2.0)
        return x

    fast, slope = fad.jit(f), fad.grad(fad.jit(f))
    typed = fad.jit(lambda x, d: x * (2.0 if isinstance(next(iter(d)), bool) else -1.0))
    assert [typed(2.0, d) for d in ({1: 3.0}, {True: 3.0}, {1: 4.0})] == [-2.0, 4.0, -2.0]
    for factors in ({"a": 1.0, "b": 3.0}, {"b": 3.0, "a": 1.0}, {"b": 2.0, "a": 2.0}):
        for more in (factors, dict(reversed(factors.items()))):
            assert fast(0.5, factors, **more) == f(0.5, factors, **more)
            assert slope(0.5, factors, **more) == fad.grad(f)(0.5, factors, **more)
    assert fast.cache_info().misses == 4


def test_a_static_nan_is_the_same_next_time():
    f = fad.jit(lambda x, n: x * n[0], static_argnums=1)
    for _ in range(3):
        f(1.0, (float("nan"),))
    assert len(f._signatures) == 1


def test_a_function_with_static_arguments_writes_into_the_arrays_that_it_makes():
    def filled(n, x):
        out = np.zeros(n)
        for i in range(n):
            out[i] = x * i
        return out

    fast, made = fad.jit(filled, static_argnums=0), []
    for x in (0.5, 1.5, 2.5):
        np.testing.assert_array_equal(fast(500, x), filled(500, x))
        made.append(fast.cache_info().misses)
    assert made == [1, 1, 1]  # and not a path for each number that is written
    assert ": captured: 500 steps" in fast.explain()
