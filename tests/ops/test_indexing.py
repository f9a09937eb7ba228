"""Indexing against NumPy and against a loop over the batch elements, for every kind of index."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import fad

SIZE = 3
SHAPE = (2, 3, 4)


def _arrays(n, rng, batched):
    """Return strategies of an index array for an axis of length n: per batch element if `batched`."""
    batch = (SIZE,) if batched else ()
    return st.sampled_from([(), (2,), (1,), (2, 2), (2, 1)]).map(lambda shape: rng.integers(-n, n, batch + shape))


@st.composite
def indices(draw):
    """Return ``(parts, flags)``: an index of an array of shape SHAPE, and which of its parts are batched."""
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    axes = draw(st.integers(0, 3))
    parts, flags = [], []
    axis = 0
    ellipsis_at = draw(st.one_of(st.none(), st.integers(0, axes)))
    for i in range(axes):
        if ellipsis_at == i:
            parts.append(Ellipsis)
            flags.append(False)
            axis = len(SHAPE) - (axes - i)
        if draw(st.integers(0, 5)) == 0:
            parts.append(None)
            flags.append(False)
        n = SHAPE[axis]
        kind = draw(st.sampled_from(["int", "slice", "array", "array", "batch", "batch", "mask", "list"]))
        batched = kind == "batch"
        if kind == "int":
            part = draw(st.integers(-n, n - 1))
        elif kind == "slice":
            part = slice(*draw(st.sampled_from([(None, None, None), (0, 2, None), (None, None, -1), (1, None, 2)])))
        elif kind == "mask":
            part = np.zeros(n, bool)
            part[rng.choice(n, 2, replace=False)] = True
        elif kind == "list":
            part = [0, n - 1]
        else:
            part = draw(_arrays(n, rng, batched))
        parts.append(part)
        flags.append(batched)
        axis += 1
    return tuple(parts), tuple(flags)


def _legal(x, index):
    try:
        x[index]
    except IndexError:
        return False
    return True


def _element(parts, flags, i):
    return tuple(p[i] if b else p for p, b in zip(parts, flags, strict=True))


def _batched_call(f, x, parts, flags, batch_x):
    """Map `f(x, index)` over the batch elements of x and of the flagged parts of the index."""
    batch = [p for p, b in zip(parts, flags, strict=True) if b]

    def on_element(x, batch):
        it = iter(batch)
        return f(x, tuple(next(it) if b else p for p, b in zip(parts, flags, strict=True)))

    return fad.vmap(on_element, in_axes=(0 if batch_x else None, 0), axis_size=SIZE)(x, batch)


EXAMPLES = settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.filter_too_much])


@EXAMPLES
@given(indices(), st.booleans())
def test_batched_indexing_equals_a_loop(index, batch_x):
    parts, flags = index
    x = np.arange(24.0 * SIZE).reshape(SIZE, *SHAPE)
    x = x if batch_x else x[0]
    loop_x = x if batch_x else [x] * SIZE
    if not all(_legal(loop_x[i], _element(parts, flags, i)) for i in range(SIZE)):
        return
    got = _batched_call(lambda x, i: fad.numpy.at(x)[i].get(), x, parts, flags, batch_x)
    want = np.stack([loop_x[i][_element(parts, flags, i)] for i in range(SIZE)])
    np.testing.assert_array_equal(got, want)


@EXAMPLES
@given(indices(), st.booleans(), st.booleans(), st.sampled_from(["add", "set"]))
def test_batched_updates_equal_a_loop(index, batch_x, batch_v, how):
    parts, flags = index
    x = np.arange(24.0 * SIZE).reshape(SIZE, *SHAPE)
    x = x if batch_x else x[0]
    loop_x = x if batch_x else [x] * SIZE
    if not all(_legal(loop_x[i], _element(parts, flags, i)) for i in range(SIZE)):
        return
    shape = loop_x[0][_element(parts, flags, 0)].shape
    v = -1.0 - np.arange(SIZE * np.prod(shape, dtype=int), dtype=float).reshape(SIZE, *shape)
    v = v if batch_v else v[0]
    loop_v = v if batch_v else [v] * SIZE
    batch = [p for p, b in zip(parts, flags, strict=True) if b]

    def on_element(x, v, batch):
        it = iter(batch)
        at = fad.numpy.at(x)[tuple(next(it) if b else p for p, b in zip(parts, flags, strict=True))]
        return getattr(at, how)(v)

    axes = (0 if batch_x else None, 0 if batch_v else None, 0)
    got = fad.vmap(on_element, in_axes=axes, axis_size=SIZE)(x, v, batch)
    want = []
    for i in range(SIZE):
        y = loop_x[i].copy()
        if how == "add":
            np.add.at(y, _element(parts, flags, i), loop_v[i])
        else:
            y[_element(parts, flags, i)] = loop_v[i]
        want.append(y)
    np.testing.assert_array_equal(got, np.stack(want))


@EXAMPLES
@given(indices(), st.booleans())
def test_gradients_of_batched_indexing_equal_a_loop(index, batch_x):
    parts, flags = index
    x = np.linspace(-1.0, 1.0, 24 * SIZE).reshape(SIZE, *SHAPE)
    x = x if batch_x else x[0]
    loop_x = x if batch_x else [x] * SIZE
    if not all(_legal(loop_x[i], _element(parts, flags, i)) for i in range(SIZE)):
        return

    def gradient(x, i):
        return fad.grad(lambda x: np.sum(x[i] ** 3))(x)

    got = _batched_call(gradient, x, parts, flags, batch_x)
    want = []
    for i in range(SIZE):
        g = np.zeros(SHAPE)
        np.add.at(g, _element(parts, flags, i), 3 * loop_x[i][_element(parts, flags, i)] ** 2)
        want.append(g)
    np.testing.assert_allclose(got, np.stack(want), rtol=1e-12)


@EXAMPLES
@given(indices(), st.sampled_from(["add", "set"]))
def test_gradients_of_batched_updates_equal_a_loop(index, how):
    parts, flags = index
    rng = np.random.default_rng(0)
    x = rng.normal(size=(SIZE, *SHAPE))
    if not all(_legal(x[i], _element(parts, flags, i)) for i in range(SIZE)):
        return
    v = rng.normal(size=(SIZE, *x[0][_element(parts, flags, 0)].shape))
    weights = rng.normal(size=SHAPE)
    batch = [p for p, b in zip(parts, flags, strict=True) if b]

    def on_element(x, v, batch):
        it = iter(batch)
        place = tuple(next(it) if b else p for p, b in zip(parts, flags, strict=True))
        return fad.grad(lambda x, v: np.sum(weights * getattr(x.at[place], how)(v)), argnums=(0, 1))(x, v)

    in_x, in_v = fad.vmap(on_element)(x, v, batch)
    for i in range(SIZE):
        place = _element(parts, flags, i)
        order = np.full(SHAPE, -1)  # which value, counted through, each element was last set to
        order[place] = np.arange(v[i].size).reshape(v[i].shape)
        if how == "set":
            kept = np.zeros(v[i].size + 1)
            np.add.at(kept, order, weights)
            np.testing.assert_allclose(in_v[i].ravel(), kept[:-1], rtol=1e-12)
            np.testing.assert_array_equal(in_x[i], np.where(order < 0, weights, 0.0))
        else:
            np.testing.assert_array_equal(in_v[i], weights[place])
            np.testing.assert_array_equal(in_x[i], weights)


@pytest.mark.parametrize(
    ("how", "v", "value", "slope"),
    [
        ("multiply", 3.0, [3.0, 5.0, -6.0], [3.0, 1.0, 3.0]),
        ("subtract", 3.0, [-2.0, 5.0, -5.0], [1.0, 1.0, 1.0]),
        ("divide", 2.0, [0.5, 5.0, -1.0], [0.5, 1.0, 0.5]),
        ("power", 2, [1.0, 5.0, 4.0], [2.0, 1.0, -4.0]),
        ("apply", np.square, [1.0, 5.0, 4.0], [2.0, 1.0, -4.0]),
        ("min", 0.5, [0.5, 5.0, -2.0], [0.0, 1.0, 1.0]),
        ("max", 0.5, [1.0, 5.0, 0.5], [1.0, 1.0, 0.0]),
    ],
)
def test_arithmetic_and_bounding_at_an_index_have_the_derivative_of_what_is_kept(how, v, value, slope):
    x, i = np.array([1.0, 5.0, -2.0]), np.array([0, -1])
    np.testing.assert_array_equal(fad.vjp(lambda x: getattr(x.at[i], how)(v), x)[0], value)
    np.testing.assert_array_equal(fad.grad(lambda x: np.sum(getattr(x.at[i], how)(v)))(x), slope)


@settings(max_examples=80, deadline=None)
@given(indices(), st.integers(0, 3), st.integers(0, 1000))
def test_nested_vmaps_of_indexing_and_their_gradients_equal_nested_loops(index, x_level, seed):
    """Each operand is batched by the outer vmap (1), by the inner (2), by both (3), or by none (0)."""
    parts, flags = index
    rng = np.random.default_rng(seed)
    levels = [int(rng.integers(1, 4)) for b in flags if b]
    parts = list(parts)
    for k, level in zip(np.flatnonzero(flags), levels, strict=True):
        parts[k] = parts[k][:2] if level == 1 else np.stack([parts[k], parts[k][::-1]]) if level == 3 else parts[k]
    x = rng.normal(size={0: (), 1: (2,), 2: (SIZE,), 3: (2, SIZE)}[x_level] + SHAPE)

    def element(v, level, i, j):
        return {0: lambda: v, 1: lambda: v[i], 2: lambda: v[j], 3: lambda: v[i, j]}[level]()

    def whole(batch):
        it = iter(batch)
        return tuple(next(it) if b else p for p, b in zip(parts, flags, strict=True))

    def mapped(f):
        inner = (0 if x_level in (2, 3) else None, [0 if n in (2, 3) else None for n in levels])
        outer = (0 if x_level in (1, 3) else None, [0 if n in (1, 3) else None for n in levels])
        return fad.vmap(fad.vmap(f, in_axes=inner, axis_size=SIZE), in_axes=outer, axis_size=2)

    def f(x, batch):
        return fad.numpy.at(x)[whole(batch)].get() ** 2

    batch = [p for p, b in zip(parts, flags, strict=True) if b]
    grid = [(i, j) for i in range(2) for j in range(SIZE)]
    rows = [
        (element(x, x_level, i, j), whole([element(v, n, i, j) for v, n in zip(batch, levels, strict=True)]))
        for i, j in grid
    ]
    if not all(_legal(*row) for row in rows):
        return
    got = mapped(f)(x, batch)
    np.testing.assert_allclose(got.reshape(-1, *got.shape[2:]), np.stack([r[i] ** 2 for r, i in rows]), rtol=1e-14)
    slopes = mapped(lambda x, batch: fad.grad(lambda x: np.sum(f(x, batch)))(x))(x, batch)
    for slope, (r, i) in zip(slopes.reshape(-1, *SHAPE), rows, strict=True):
        want = np.zeros(SHAPE)
        np.add.at(want, i, 2 * r[i])
        np.testing.assert_allclose(slope, want, rtol=1e-12)


def test_a_second_derivative_through_separated_index_arrays_is_right():
    x = np.linspace(0.1, 1.0, 24).reshape(SHAPE)
    i, j = np.array([[0, 1], [1, 1]]), np.array([3, 0])

    def f(x):
        return np.sum(x[i, :2, j] ** 3)

    def hvp(v):
        return fad.jvp(fad.grad(f), (x,), (v,))[1]

    v = np.cos(np.arange(24.0)).reshape(SHAPE)
    want = np.zeros(SHAPE)
    np.add.at(want, (i, slice(0, 2), j), 6 * x[i, :2, j] * v[i, :2, j])
    np.testing.assert_allclose(hvp(v), want, rtol=1e-12)
    np.testing.assert_allclose(fad.vmap(hvp)(np.stack([v, 2 * v])), np.stack([want, 2 * want]), rtol=1e-12)


def test_every_spelling_of_an_index_selects_what_numpy_selects():
    x = np.arange(24.0).reshape(SHAPE)
    spellings = [
        1, -1, np.int64(1), np.uint8(0), np.array(1), [0, 1], [[0], [1]], (0, [1, 2]), ([0, 1], slice(None), [1, 3]),
        True, False, np.array(True), [True, False], x > 5, (x > 5)[:, :, 0], (None, 0), (Ellipsis, 0),
        (0, Ellipsis, None),
        (np.array([0, 1]), 0, None, np.array([1, 2])), (slice(np.int64(0), np.int64(1)), 1), (), Ellipsis, [],
        (0, True), np.array([], int),
    ]  # fmt: skip
    for index in spellings:
        value, pullback = fad.vjp(lambda x, index=index: x[index], x)
        np.testing.assert_array_equal(value, x[index])
        want = np.zeros(SHAPE)
        np.add.at(want, index, np.ones_like(x[index]))
        np.testing.assert_array_equal(pullback(np.ones_like(value))[0], want)


def test_a_mask_that_differs_between_batch_elements_splits_them():
    x = np.array([[1.0, -2.0, 3.0], [-1.0, 2.0, -3.0], [4.0, -5.0, 6.0]])
    np.testing.assert_array_equal(fad.vmap(lambda x: np.sum(x[x > 0]))(x), [4.0, 2.0, 10.0])


def test_setting_a_number_where_a_traced_mask_holds_does_not_split_the_batch_elements():
    x = np.array([[1.0, -2.0], [-1.0, 2.0]])
    runs = []

    def f(x):
        runs.append(1)
        return x.at[x < 0].set(0.0)

    np.testing.assert_array_equal(fad.vmap(f)(x), [[1.0, 0.0], [0.0, 2.0]])
    assert len(runs) == 1


def test_an_index_made_of_traced_integers_works():
    x = np.arange(6.0)
    rows = np.array([[0, 2], [1, 5]])
    got = fad.vmap(lambda r: fad.numpy.take(x, [r[0], r[1]]))(rows)
    np.testing.assert_array_equal(got, x[rows])
    got = fad.vmap(lambda r: fad.grad(lambda x: np.sum(x[[r[0], r[1]]]))(x))(rows)
    np.testing.assert_array_equal(got, [[1, 0, 1, 0, 0, 0], [0, 1, 0, 0, 0, 1]])


def test_of_several_values_for_one_place_only_the_last_has_a_derivative():
    i = np.array([0, 1, 0])
    got = fad.grad(lambda v: np.sum(np.array([1.0, 2.0, 4.0]) * fad.numpy.at(np.zeros(3))[i].set(v)))(np.ones(3))
    np.testing.assert_array_equal(got, [0.0, 2.0, 1.0])


def test_multiplying_at_an_index_that_names_a_place_twice_is_refused():
    with pytest.raises(IndexError, match="each place once"):
        fad.grad(lambda x: np.sum(x.at[np.array([0, 0])].multiply(2.0)))(np.ones(3))
    with pytest.raises(IndexError, match="each place once"):
        fad.vmap(lambda i: np.sum(fad.numpy.at(np.ones(3))[i].multiply(2.0)))(np.array([[0, 1], [2, 2]]))


def test_a_float_index_is_refused():
    with pytest.raises(IndexError, match="integer or boolean"):
        fad.grad(lambda x: x[x])(np.ones(3))


def test_what_is_written_through_a_mask_has_the_cotangents_of_its_places_alone():
    mask = np.array([[True, False, True], [False, True, True]])

    def f(x, v):
        y = x * 1.0
        y[mask] = v
        y[1, mask[0]] = v[:2] * 2.0
        return y

    x, v = np.arange(6.0).reshape(2, 3), np.array([3.0, 1.0, 4.0, 5.0])
    weights = np.array([[2.0, 3.0, 5.0], [7.0, 11.0, 13.0]])
    graph = fad.make_graph(fad.grad(lambda v: np.sum(weights * f(x, v))))(v)
    found = fad.grad(lambda v: np.sum(weights * f(x, v)))(v)
    np.testing.assert_array_equal(found, [2.0 + 2 * 7.0, 5.0 + 2 * 13.0, 11.0, 0.0])
    assert "equal" not in [eq.prim.name for eq in graph.equations]  # nobody asks which value was written last
