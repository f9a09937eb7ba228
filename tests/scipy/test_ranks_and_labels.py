"""Filters by rank and measurements by labels: SciPy's values in every mode, and derivatives to what was chosen."""

from __future__ import annotations

import numpy as np
import pytest

import fad
from fad.errors import TracerConversionError
from fad.testing import check_grads

nd = pytest.importorskip("scipy.ndimage")

from fad.scipy import ndimage as ours  # noqa: E402

X = np.random.default_rng(5).standard_normal((9, 11))
CROSS = np.array([[0, 1, 0], [1, 1, 1], [0, 1, 0]], bool)
MODES = ("reflect", "constant", "nearest", "mirror", "wrap", "grid-wrap", "grid-mirror", "grid-constant")
FILTERS = {
    "minimum_filter": lambda m, x, **o: m.minimum_filter(x, (3, 4), origin=(0, -1), **o),
    "maximum_filter": lambda m, x, **o: m.maximum_filter(x, 3, **o),
    "maximum_filter of a cross": lambda m, x, **o: m.maximum_filter(x, footprint=CROSS, origin=(1, 0), **o),
    "minimum_filter of an axis": lambda m, x, **o: m.minimum_filter(x, 3, axes=1, **o),
    "minimum_filter of a cross with a full row": lambda m, x, **o: m.minimum_filter(x, footprint=np.ones((2, 3)), **o),
    "minimum_filter1d": lambda m, x, **o: m.minimum_filter1d(x, 4, axis=0, origin=1, **o),
    "maximum_filter1d": lambda m, x, **o: m.maximum_filter1d(x, 5, **o),
    "median_filter": lambda m, x, **o: m.median_filter(x, 3, **o),
    "median_filter of an even window": lambda m, x, **o: m.median_filter(x, (2, 4), origin=(0, 1), **o),
    "median_filter of a cross": lambda m, x, **o: m.median_filter(x, footprint=CROSS, **o),
    "median_filter of an axis": lambda m, x, **o: m.median_filter(x, 3, axes=(0,), **o),
    "percentile_filter": lambda m, x, **o: m.percentile_filter(x, 30, 3, **o),
    "percentile_filter from above": lambda m, x, **o: m.percentile_filter(x, -20, (3, 2), **o),
    "percentile_filter at the top": lambda m, x, **o: m.percentile_filter(x, 100, 3, **o),
    "rank_filter": lambda m, x, **o: m.rank_filter(x, 2, 3, **o),
    "rank_filter from above": lambda m, x, **o: m.rank_filter(x, -2, 3, **o),
    "rank_filter of a line": lambda m, x, **o: m.rank_filter(x[1], 1, 4, origin=1, **o),
    "rank_filter of a gap in a line": lambda m, x, **o: m.rank_filter(x[1], 1, footprint=[1, 1, 0, 1, 0], **o),
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", FILTERS)
def test_filters_by_rank_are_scipys_in_every_mode(name, mode):
    f = FILTERS[name]
    for x in (X, X.astype(np.float32), X[:2, :5]):
        got = fad.vjp(lambda x: f(ours, x, mode=mode, cval=0.4), x)[0]
        wanted = f(nd, x, mode=mode, cval=0.4)
        np.testing.assert_array_equal(got, wanted)
        assert got.dtype == wanted.dtype
    run = fad.jit(lambda x: f(ours, x, mode=mode, cval=0.4))
    for x in (X, X[::-1]):
        np.testing.assert_array_equal(run(x), f(nd, x, mode=mode, cval=0.4))
    both = fad.vmap(lambda x: f(ours, x, mode=mode, cval=0.4))(np.stack([X, X[::-1]]))
    np.testing.assert_array_equal(both[1], f(nd, X[::-1], mode=mode, cval=0.4))


@pytest.mark.parametrize("name", FILTERS)
def test_the_derivative_of_a_filter_by_rank_goes_to_what_was_chosen(name):
    check_grads(lambda x: FILTERS[name](ours, x, mode="mirror"), (X[:5, :6],), order=2)


def test_integers_are_filtered_under_jit_and_an_output_dtype_is_taken():
    x = (10 * X).astype(int)
    np.testing.assert_array_equal(fad.jit(lambda x: ours.median_filter(x, 3))(x), nd.median_filter(x, 3))
    assert fad.vjp(lambda x: ours.maximum_filter(x, 3, output=np.float32), X)[0].dtype == np.float32
    kept = np.empty_like(X)
    with pytest.raises(TracerConversionError, match="output="):
        fad.vjp(lambda x: ours.median_filter(x, 3, output=kept), X)


def test_large_windows_are_looked_at_in_blocks():
    x = np.random.default_rng(1).standard_normal((300, 300))
    size = 15
    np.testing.assert_array_equal(fad.vjp(lambda x: ours.median_filter(x, size), x)[0], nd.median_filter(x, size))


def test_among_equal_elements_one_is_chosen():
    gradient = fad.grad(lambda x: np.sum(ours.maximum_filter(x, 3)))(np.zeros(6))
    assert np.sum(gradient) == 6.0


@pytest.mark.parametrize(
    ("f", "error", "words"),
    [
        (lambda x: ours.median_filter(x), RuntimeError, "size"),
        (lambda x: ours.minimum_filter(x), RuntimeError, "footprint"),
        (lambda x: ours.rank_filter(x, 9, 3), RuntimeError, "rank"),
        (lambda x: ours.percentile_filter(x, 101, 3), RuntimeError, "percentile"),
        (lambda x: ours.minimum_filter1d(x, 0), RuntimeError, "size"),
        (lambda x: ours.minimum_filter1d(x, 3, origin=2), ValueError, "origin"),
        (lambda x: ours.median_filter(x, 3, mode=("wrap", "nearest")), RuntimeError, "sequence"),
        (lambda x: ours.maximum_filter(x, footprint=np.zeros((3, 3))), ValueError, "footprint"),
        (lambda x: ours.maximum_filter(x, footprint=np.ones(3)), RuntimeError, "footprint.ndim"),
        (lambda x: ours.maximum_filter(x + 0j, 3).real, TypeError, "Complex"),
    ],
)
def test_what_scipy_refuses_is_refused(f, error, words):
    with pytest.raises(error, match=words):
        fad.vjp(f, X)


LABELS = np.random.default_rng(2).integers(0, 5, X.shape)
MEASURES = (
    "sum_labels", "sum", "mean", "variance", "standard_deviation", "minimum", "maximum", "center_of_mass",
)  # fmt: skip
WHERE = {
    "all": (),
    "positive": (LABELS,),
    "one": (LABELS, 2),
    "several": (LABELS, [3, 1, 7, 3]),
    "a table": (LABELS, np.array([[1, 2], [0, 4]])),
    "of rows": (LABELS[0], np.array([1, 2, 9])),
    "large labels": (LABELS * 1000 - 7, np.array([993, -7, 0])),
}


@pytest.mark.parametrize("name", MEASURES)
@pytest.mark.parametrize("where", WHERE)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_measurements_by_labels_are_scipys_and_have_derivatives(name, where):
    f = lambda m, x: getattr(m, name)(x, *WHERE[where])
    for x in (X, X.astype(np.float32)):
        got, wanted = fad.vjp(lambda x: f(ours, x), x)[0], f(nd, x)
        np.testing.assert_allclose(got, wanted, rtol=1e-12 if x is X else 1e-5)
        assert np.asarray(got).dtype == np.asarray(wanted).dtype
        assert np.shape(got) == np.shape(wanted)
        assert type(got) is type(wanted)
    array = lambda x: np.array(f(ours, x))
    for x in (X, X[::-1]):
        np.testing.assert_allclose(fad.jit(array)(x), f(nd, x), rtol=1e-12)
    np.testing.assert_allclose(fad.vmap(array)(np.stack([X, X[::-1]]))[1], f(nd, X[::-1]), rtol=1e-12)
    finite = np.isfinite(f(nd, X))
    check_grads(lambda x: np.where(finite, array(x), 0.0), (X,), order=2 if where != "several" else 1)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_no_labels_at_all_give_no_measurements():
    for name in ("sum_labels", "mean", "variance", "minimum"):
        measure = getattr(ours, name)
        found = fad.vjp(lambda x, f=measure: f(x, LABELS, []), X)[0]
        assert found.shape == getattr(nd, name)(X, LABELS, np.zeros(0, int)).shape == (0,)


def test_labels_may_be_arguments_of_a_compiled_function():
    run = fad.jit(lambda x, labels: ours.mean(x, labels, np.arange(5)))
    for labels in (LABELS, LABELS[::-1].copy()):
        np.testing.assert_allclose(run(X, labels), nd.mean(X, labels, np.arange(5)), rtol=1e-12)


def test_programs_with_scipys_own_names_run():
    def loss(x):
        means = nd.mean(x, LABELS, [1, 2])
        return np.sum(nd.median_filter(x, 3) ** 2) + nd.center_of_mass(x**2)[0] + np.sum(means**2)

    t = np.cos(np.arange(X.size)).reshape(X.shape)
    step = (loss(X + 1e-6 * t) - loss(X - 1e-6 * t)) / 2e-6
    assert np.sum(fad.grad(loss)(X) * t) == pytest.approx(step, rel=1e-5)
    assert fad.jit(loss)(X) == pytest.approx(loss(X), rel=1e-12)
