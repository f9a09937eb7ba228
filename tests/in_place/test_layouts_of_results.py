"""Results lie in memory as NumPy's: a write through a reshaped view reaches the array exactly where it does there."""

import numpy as np
import pytest
from each import each

import fad

X = np.array([0.31, -1.23, 2.17, 0.72, -0.44])
wide = lambda x: np.outer(x, x[:2])
tall = lambda x: np.outer(x, x[:2]).T

MAKERS = {
    "full": lambda x: np.full((2, 5), x),
    "full in Fortran's order": lambda x: np.full((2, 5), x, order="F"),
    "full of a column": lambda x: np.full((5, 2), x[:, None]),
    "full with a dtype": lambda x: np.full((2, 5), x, np.float32),
    "full_like": lambda x: np.full_like(np.ones((2, 5), order="F"), x),
    "full_like of a traced array": lambda x: np.full_like(tall(x), x),
    "full_like in C order": lambda x: np.full_like(tall(x), x, order="C"),
    "zeros_like in C order": lambda x: np.zeros_like(tall(x), order="C") + 0 * x[0],
    "ones_like in Fortran's order": lambda x: np.ones_like(wide(x), order="F"),
    "array": lambda x: np.array([[x[0], 1.0], [2.0, x[1]]]),
    "array in Fortran's order": lambda x: np.array([[x[0], 1.0], [2.0, x[1]]], order="F"),
    "array of an array": lambda x: np.array(wide(x), order="F"),
    "array of an array, with a dtype": lambda x: np.array(tall(x), np.float32, order="C"),
    "asarray in Fortran's order": lambda x: np.asarray([[x[0], 1.0], [2.0, x[1]]], order="F"),
    "astype": lambda x: tall(x).astype(np.float32),
    "astype in C order": lambda x: tall(x).astype(np.float32, order="C"),
    "astype in Fortran's order": lambda x: wide(x).astype(float, order="F"),
    "astype to integers in C order": lambda x: tall(x).astype(int, order="C"),
    "take": lambda x: np.take(np.outer(x, x), [0, 1], 1),
    "take of a transposed array": lambda x: np.take(tall(x), [0, 1], 1),
    "take of rows of a transposed array": lambda x: np.take(tall(x), [0, 1], 0),
    "take as a method": lambda x: np.outer(x, x).take([2, 1], axis=-1),
    "compress": lambda x: np.compress([1, 0, 1], np.outer(x, x), 1),
    "choose": lambda x: np.choose(np.zeros((5, 5), int), [np.outer(x, x[::-1]).T]),
    "choose of rows in Fortran's order": lambda x: np.choose(np.zeros((5, 5), int, "F"), [np.outer(x, x[::-1]).T]),
    "insert": lambda x: np.insert(np.outer(x, x[:2]), 1, x, axis=1),
    "insert into rows": lambda x: np.insert(np.outer(x, x), 1, x, axis=0),
    "insert into a transposed array": lambda x: np.insert(tall(x), 1, x, axis=0),
    "delete": lambda x: np.delete(np.outer(x, x), 1, 1),
    "delete of several": lambda x: np.delete(np.outer(x, x), [0, 1], 1),
    "delete of a slice": lambda x: np.delete(np.outer(x, x), slice(0, 4, 2), 1),
    "delete of rows": lambda x: np.delete(np.outer(x, x), [1], 0),
    "delete from a transposed array": lambda x: np.delete(tall(x), [0, 1], 1),
    "select": lambda x: np.select([np.outer(x, x).T > 0], [np.outer(x, x[::-1]).T]),
    "nan_to_num": lambda x: np.nan_to_num(tall(x)),
    "pad": lambda x: np.pad(tall(x), 1),
    "unwrap": lambda x: np.unwrap(tall(x)),
    "sinc": lambda x: np.sinc(tall(x)),
    "vectorize": lambda x: np.vectorize(lambda a: a * 2)(np.outer(x, x).T),
    "einsum": lambda x: np.einsum("i,j->ji", x, x),
    "einsum of a product": lambda x: np.einsum("ij,jk->ki", wide(x), tall(x)),
    "quantile": lambda x: np.quantile(np.outer(x, x), [0.1, 0.2], axis=1),
    "rows at an index": lambda x: np.outer(x, x)[[0, 1]],
    "columns at an index": lambda x: np.outer(x, x)[:, [0, 2]],
    "columns at a mask": lambda x: np.outer(x, x)[:, np.array([True, False, True, False, True])],
    "resize": lambda x: np.resize(x, (3, 4)),
}
VIEWS = {
    "reshape": lambda y: y.reshape(-1),
    "ravel": lambda y: y.ravel(),
    "reshape of the transpose": lambda y: y.T.reshape(-1),
    "ravel in the order of memory": lambda y: y.ravel(order="A"),
}
TRANSFORMS = {
    "vjp": lambda f: fad.vjp(f, X.copy())[0],
    "jvp": lambda f: fad.jvp(f, (X.copy(),), (X,))[0],
    "jit": lambda f: [fad_jitted(X.copy()) for fad_jitted in [fad.jit(f)] for _ in range(2)][1],
    "vmap": lambda f: [y[1] for y in fad.vmap(f)(np.stack([X, X]))],
    "vmap of vjp": lambda f: [y[1] for y in fad.vmap(lambda x: fad.vjp(f, x)[0])(np.stack([X, X]))],
    "vjp of vmap": lambda f: [y[1] for y in fad.vjp(fad.vmap(f), np.stack([X, X]))[0]],
    "jvp of vmap": lambda f: [y[1] for y in fad.jvp(fad.vmap(f), (np.stack([X, X]),), (np.stack([X, X]),))[0]],
}


@each("transform", TRANSFORMS.values(), ids=TRANSFORMS)
@each("view", VIEWS.values(), ids=VIEWS)
@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_a_write_through_a_reshaped_result_reaches_it_where_it_does_in_numpy(make, view, transform):
    def f(x):
        y = make(x)
        flat = view(y)
        flat[1] = 7
        flat[-2:] *= 2
        return flat, y

    for got, wanted in zip(transform(f), f(X.copy()), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-6)
