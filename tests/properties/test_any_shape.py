"""Rules hold for shapes, axes and indices that nobody thought of: drawn, not chosen."""

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st

import fad
from fad.core.primitives.primitive import REGISTRY
from fad.testing import numerical_jvp
from fad.testing.cases import cases
from fad.testing.strategies import arrays, broadcast_pairs, shapes

UNARY, BINARY = (
    sorted(
        name
        for name, op in REGISTRY.items()
        if op.archetype == "elementwise" and not op.flat and len(op.partials) == n and op.samples is None
        and "." not in name
    )
    for n in (1, 2)
)  # fmt: skip


def _operands(name, drawn_shapes, seed):
    """Return operands of the given shapes from an operation's domain."""
    op = REGISTRY[name]
    domains = op.domain if isinstance(op.domain[0], tuple) else (op.domain,) * len(drawn_shapes)
    rng = np.random.default_rng(seed)
    return [np.asarray(rng.uniform(a, b, s)) for s, (a, b) in zip(drawn_shapes, domains, strict=True)]


def _transpose_holds(f, *xs):
    rng = np.random.default_rng(0)
    ts = tuple(rng.normal(size=x.shape) for x in xs)
    y, t = fad.jvp(f, xs, ts)
    ct = np.asarray(rng.normal(size=np.shape(y)))[()]
    back = fad.vjp(f, *xs)[1](ct)
    for c, x in zip(back, xs, strict=True):
        assert c.shape == x.shape
    left, right = sum(np.sum(c * d) for c, d in zip(back, ts, strict=True)), np.sum(ct * t)
    np.testing.assert_allclose(left, right, rtol=1e-9, atol=1e-9)
    return ts, t


@given(st.sampled_from(UNARY), shapes(), st.integers(0, 99))
def test_unary_operations_on_any_shape(name, shape, seed):
    (x,) = _operands(name, [shape], seed)
    op = REGISTRY[name]
    _transpose_holds(op, x)
    batch = np.stack([x, x])
    np.testing.assert_array_equal(fad.vmap(op)(batch), op(batch))


@given(st.sampled_from(BINARY), broadcast_pairs(), st.integers(0, 99))
def test_binary_operations_on_any_pair_that_broadcasts(name, pair, seed):
    x, y = _operands(name, pair, seed)
    op = REGISTRY[name]
    _transpose_holds(op, x, y)
    both = fad.vmap(op)(np.stack([x, x]), np.stack([y, y]))
    np.testing.assert_array_equal(both, np.stack([op(x, y)] * 2))
    np.testing.assert_array_equal(fad.vmap(op, (0, None))(np.stack([x, x]), y), both)
    np.testing.assert_array_equal(fad.vmap(op, (None, 0))(x, np.stack([y, y])), both)


REDUCTIONS = [np.sum, np.prod, np.mean, np.var, np.std, np.max, np.min, np.linalg.norm, np.median]


@given(st.data(), st.sampled_from(REDUCTIONS), shapes(min_side=2, min_dims=1), st.booleans())
def test_reductions_over_any_axes(data, reduce, shape, keepdims):
    x = data.draw(arrays(shape=shape, low=0.2))
    axes = st.integers(-len(shape), len(shape) - 1)
    many = st.lists(axes, unique_by=lambda a: a % len(shape), max_size=2 if reduce is np.linalg.norm else None).map(
        tuple
    )
    axis = data.draw(st.none() | axes | many)
    assume(reduce is not np.linalg.norm or axis is not None or len(shape) <= 2)
    assume(axis != ())

    def f(x):
        return reduce(x, axis=axis, keepdims=keepdims)

    assert np.shape(fad.vjp(f, x)[0]) == np.shape(f(x))
    ts, t = _transpose_holds(f, x)
    np.testing.assert_allclose(t, numerical_jvp(f, (x,), ts), rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(fad.vmap(f)(np.stack([x, 2 * x])), np.stack([f(x), f(2 * x)]), rtol=1e-12)


@st.composite
def _indices(draw, shape):
    """Draw an index of every kind: integers, slices, None, Ellipsis, arrays and masks, in any mixture."""
    parts, arrays_drawn = [], 0
    common = draw(st.sampled_from([(2,), (3, 1), (0,)]))
    for n in shape[: draw(st.integers(0, len(shape)))]:
        kind = draw(st.sampled_from(["int", "slice", "array", "mask"]))
        if kind == "mask" and arrays_drawn:
            kind = "slice"
        if kind == "int":
            parts.append(draw(st.integers(-n, n - 1)))
        elif kind == "slice":
            parts.append(draw(st.slices(n)))
        elif kind == "array":
            if any(isinstance(p, np.ndarray) and p.dtype == bool for p in parts):
                parts.append(slice(None))
                continue
            parts.append(
                np.array(draw(st.lists(st.integers(-n, n - 1), min_size=6, max_size=6)))[: np.prod(common)].reshape(
                    common
                )
            )
            arrays_drawn += 1
        else:
            parts.append(np.array(draw(st.lists(st.booleans(), min_size=n, max_size=n))))
            arrays_drawn += 1
    if draw(st.booleans()):
        parts.insert(draw(st.integers(0, len(parts))), None)
    if draw(st.booleans()):
        parts.append(...)
    return tuple(parts)


@given(st.data(), shapes(min_side=1, min_dims=1))
def test_any_index_takes_what_numpy_takes_and_gives_it_back(data, shape):
    x = data.draw(arrays(shape=shape))
    index = data.draw(_indices(shape))
    wanted = x[index]
    y, pullback = fad.vjp(lambda x: x[index], x)
    np.testing.assert_array_equal(y, wanted)
    ct = np.asarray(np.arange(1.0, 1 + np.size(wanted)).reshape(np.shape(wanted)))[()]
    back = np.zeros(shape)
    np.add.at(back, index, ct)
    np.testing.assert_array_equal(pullback(ct)[0], back)
    np.testing.assert_array_equal(fad.jvp(lambda x: x[index], (x,), (2 * x,))[1], 2 * wanted)
    np.testing.assert_array_equal(fad.vmap(lambda x: x[index])(np.stack([x, -x])), np.stack([wanted, -wanted]))
    both = fad.vmap(lambda x, c: fad.vjp(lambda x: x[index], x)[1](c)[0])(np.stack([x, x]), np.stack([ct, 2 * ct]))
    np.testing.assert_array_equal(both, np.stack([back, 2 * back]))


@given(st.data(), shapes(min_side=1, min_dims=1))
def test_any_functional_update_writes_what_numpy_writes(data, shape):
    x = data.draw(arrays(shape=shape))
    index = data.draw(_indices(shape))
    v = data.draw(arrays(shape=np.shape(x[index])))

    def written(x, v):
        out = x.copy()
        out[index] = v
        return out

    def added(x, v):
        out = x.copy()
        np.add.at(out, index, v)
        return out

    for ours, numpys in ((lambda x, v: x.at[index].set(v), written), (lambda x, v: x.at[index].add(v), added)):
        y = fad.vjp(ours, x, v)[0]
        np.testing.assert_allclose(y, numpys(x, v), rtol=1e-15)
        ts, t = _transpose_holds(ours, x, v)
        np.testing.assert_allclose(t, numerical_jvp(numpys, (x, v), ts), rtol=1e-6, atol=1e-6)


def test_the_operations_drawn_are_not_few():
    assert len(UNARY) > 20
    assert len(BINARY) > 8
    assert cases(REGISTRY["sin"])
