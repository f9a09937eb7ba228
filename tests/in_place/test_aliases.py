"""What is a view and what is a copy: a write into a result changes the array it came from where it does in NumPy."""

import copy

import numpy as np
import pytest
from each import each

import fad

X = np.arange(1.0, 13.0)
windows = np.lib.stride_tricks.sliding_window_view

WAYS = {
    "transposed by einsum": lambda m: np.einsum("ij->ji", m),
    "a diagonal by einsum": lambda m: np.einsum("ii->i", m[:3, :3]),
    "two diagonals by einsum": lambda m: np.einsum("iji->ji", m.reshape(2, 3, 2)),
    "diag": np.diag,
    "diagonal": lambda m: m.diagonal(),
    "windows": lambda m: windows(m[0], 2),
    "broadcast_to": lambda m: np.broadcast_to(m, (2, 3, 4)),
    "broadcast_to its own shape": lambda m: np.broadcast_to(m, (3, 4)),
    "a row of a broadcast array": lambda m: np.broadcast_to(m, (2, 3, 4))[1, 2],
    "moveaxis": lambda m: np.moveaxis(m, 0, 1),
    "rollaxis": lambda m: np.rollaxis(m, 1),
    "rot90": np.rot90,
    "hsplit": lambda m: np.hsplit(m, 2)[1],
    "dsplit": lambda m: np.dsplit(m[None], 2)[1],
    "array_split": lambda m: np.array_split(m, 2, axis=1)[1],
    "array without a copy": lambda m: np.array(m, copy=None),
    "mT": lambda m: m.mT,
    "ravel in Fortran's order": lambda m: m.ravel(order="F"),
    "ravel of a transpose": lambda m: m.T.ravel(order="F"),
    "ravel with gaps": lambda m: m[:, ::2].ravel(),
    "reshape with gaps": lambda m: m[:, ::2].reshape(-1),
    "reshape of columns": lambda m: m[:, 1:].reshape(-1),
    "reshape in Fortran's order": lambda m: m.reshape(4, 3, order="F"),
    "reshape of a transpose": lambda m: m.T.reshape(3, 4, order="F"),
    "flatten": lambda m: m.flatten(),
    "trim_zeros": lambda m: np.trim_zeros(m[0]),
    "atleast_3d": np.atleast_3d,
    "expand_dims": lambda m: np.expand_dims(m, (0, 1)),
    "steps backwards": lambda m: m[::-2, 1::2],
    "a list of rows": lambda m: list(m)[1],
    "index arrays": lambda m: m[np.ix_([0, 1], [1, 2])],
    "take": lambda m: np.take(m, [0], axis=0),
    "tile": lambda m: np.tile(m, 1),
    "repeat": lambda m: np.repeat(m, 1, axis=0),
    "resize": lambda m: np.resize(m, (3, 4)),
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "x.copy": lambda m: m.copy(),
    "plus": lambda m: +m,
    "astype": lambda m: m.astype(float),
    "where": lambda m: np.where(True, m, m),
    "clip": lambda m: np.clip(m, -100, 100),
    "concatenate": lambda m: np.concatenate([m]),
    "roll": lambda m: np.roll(m, 0),
    "sort": np.sort,
    "round": np.round,
    "pad": lambda m: np.pad(m, 0),
}  # fmt: skip


def of_custom(make):
    f = make(lambda m: m[::-1])
    f.defjvp(lambda primals, tangents: (f(*primals), tangents[0][::-1]))
    f.defvjp(lambda m: (m[::-1], None), lambda res, ct: (ct[::-1],))
    return f


# What leaves a transform is the caller's: a write there changes none of the arrays that it was given, traced or not.
LEAVING = {
    "custom_jvp": of_custom(fad.custom_jvp),
    "custom_vjp": of_custom(fad.custom_vjp),
    "vmap": fad.vmap(lambda row: row),
    "jvp": lambda m: fad.jvp(lambda v: v, (m,), (m,))[0],
    "a tangent": lambda m: fad.jvp(lambda v: v, (m,), (m,))[1],
    "linearize": lambda m: fad.linearize(lambda v: v, m)[1](m),
    "jet": lambda m: fad.jet(lambda v: v, (m,), ((m,),))[0],
    "aux of grad": lambda m: fad.grad(lambda v: (np.sum(v), v[1:]), has_aux=True)(m)[1],
    "aux of value_and_grad": lambda m: fad.value_and_grad(lambda s, v: (s, v), has_aux=True)(1.0, m)[0][1],
    "aux of jvp": lambda m: fad.jvp(lambda v: (v * 1.0, v), (m,), (m,), has_aux=True)[2],
    "aux of jacfwd": lambda m: fad.jacfwd(lambda v: (v[0, 0], v), has_aux=True)(m)[1],
    "custom_root": lambda m: fad.custom_root(lambda y: y - m, m, lambda f, y: y, lambda g, y: y),
    "custom_linear_solve": lambda m: fad.custom_linear_solve(lambda v: v, m, lambda f, b: b, symmetric=True),
    "while_loop": lambda m: fad.while_loop(lambda v: False, lambda v: v, m),
    "stop_gradient": fad.stop_gradient,
}


def write_into(y):
    try:
        y[...] = 7.0
    except ValueError as error:
        return str(error)
    return "written"


EVERY = pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
TRANSFORMS = {
    "grad": lambda f: fad.vjp(f, X)[0],
    "jvp": lambda f: fad.jvp(f, (X,), (X,))[0],
    "vmap": lambda f: fad.vmap(f)(np.stack([X, X]))[1],
    "jit": lambda f: fad.jit(f)(X),
    "jvp of grad": lambda f: fad.jvp(lambda x: fad.vjp(f, x)[0], (X,), (X,))[0],
}


@pytest.mark.parametrize("transform", TRANSFORMS.values(), ids=TRANSFORMS)
@EVERY
def test_a_write_reaches_the_array_where_it_does_in_numpy(way, transform):
    said = []

    def f(x):
        m = x.reshape(3, 4) * 1.0
        y = way(m)
        said.append(write_into(y))
        return m * 1.0

    np.testing.assert_array_equal(transform(f), f(X))
    assert len(set(said)) == 1, said


@each("transform", TRANSFORMS.values(), ids=TRANSFORMS)
@each("way", LEAVING.values(), ids=LEAVING)
def test_a_write_into_what_left_a_transform_reaches_none_of_its_arguments(way, transform):
    def f(x):
        m = x.reshape(3, 4) * 1.0
        way(m)[...] = 7.0
        y = way(m)
        m[:] = 9.0
        return np.sum(y) + np.sum(m)

    def plain(x):
        m = x.reshape(3, 4)
        return np.sum(way(m)) + 12 * 9.0

    np.testing.assert_array_equal(f(X), plain(X))
    np.testing.assert_array_equal(transform(f), plain(X))


@EVERY
def test_a_later_write_into_the_array_is_seen_where_numpy_sees_it(way):
    def f(x):
        m = x.reshape(3, 4) * 1.0
        y = way(m)
        m[:2] *= 3.0
        m[2, 1] = m[0, 0] * m[1, 1]
        return y * 1.0

    wanted = f(X)
    for transform in TRANSFORMS.values():
        np.testing.assert_array_equal(transform(f), wanted)
    back = [fad.vjp(f, X)[1](np.ones(wanted.shape))[0]]
    back.append(np.sum(fad.jacfwd(f)(X).reshape(-1, 12), axis=0))
    np.testing.assert_allclose(back[0], back[1])


@EVERY
def test_arrays_that_the_function_makes_are_views_and_copies_alike(way):
    def f(x):
        m = np.arange(1.0, 13.0).reshape(3, 4)
        y = way(m)
        m[1] *= 2.0
        seen = np.sum(y)
        write_into(y)
        m[0] += x[0] - 1.0
        return m * seen

    wanted = f(X)
    for transform in TRANSFORMS.values():
        np.testing.assert_array_equal(transform(f), wanted)


def test_arrays_that_the_function_makes_keep_what_was_copied_into_them():
    def f(x):
        b, c = np.zeros(4), np.arange(4.0)
        np.copyto(b, c)
        d = b.flat.copy()
        b[0] = 9.0
        c[1] = 8.0
        d[2] = 7.0
        return np.sum(b * x[:4]) + 2 * np.sum(c * x[:4]) + 3 * np.sum(d * x[:4])

    for transform in TRANSFORMS.values():
        np.testing.assert_allclose(transform(f), f(X))


def test_conversions_copy_where_they_must():
    def f(x):
        m = x.reshape(3, 4) * 1.0
        np.asarray(m, order="F")[0, 0] = 50.0
        np.asarray(m, order="C")[0, 1] = 51.0
        np.asarray(m, copy=True)[0, 2] = 52.0
        np.require(m, requirements=["C", "W"])[0, 3] = 53.0
        np.require(m, requirements="F")[1, 0] = 54.0
        np.require(m[1:], requirements="O")[0, 1] = 55.0
        np.require(m, float, "O")[1, 2] = 56.0
        return m

    for transform in TRANSFORMS.values():
        np.testing.assert_array_equal(transform(f), f(X))
