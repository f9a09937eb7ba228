"""What random programs found about rare arguments: fad gives what a plain run gives, or raises what it raises."""

import warnings

import numpy as np
import pytest
from each import each
from numpy_versions import BEFORE_2_5, WITH_CROSS_OF_PLANE_VECTORS

import fad
from fad.errors import ItemAssignmentError

X = np.array([1.0, -2.0, 3.0])
MASK = np.array([True, False, True])


def outcome(call):
    """Return what a call gives, to twelve decimals and with signs of zeros, or the class of error that it raises."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            y = np.asarray(call())
        except Exception as error:
            return type(error)
    return y.dtype, y.shape, repr((np.round(y, 12) if y.dtype.kind == "f" else y).tolist())


def transformed(f, x):
    """Return calls that run a function of one array under the transforms."""
    jitted = fad.jit(f)
    return {
        "vjp": lambda: fad.vjp(f, x)[0],
        "jvp": lambda: fad.jvp(f, (x,), (x,))[0],
        "vmap": lambda: fad.vmap(f)(x[None])[0],
        "jit": lambda: jitted(x),
        "jit again": lambda: jitted(x),
    }


def check(f, x=X):
    wanted = outcome(lambda: f(x))
    for name, call in transformed(f, x).items():
        if name != "vmap" or isinstance(x, np.ndarray):  # of a batch no element is a number of Python's
            assert outcome(call) == wanted, name


REDUCTIONS = ["sum", "prod", "max", "min", "mean", "var", "std", "all", "any", "nansum", "nanmean", "nanvar", "nanmax"]
MASKS = {
    "of more axes": np.array([[True, False, True], [True, True, False]]),
    "of one more unit axis": MASK[None],
    "of another length": np.ones(4, bool),
    "of integers": np.array([1, 0, 1]),
    "of floats": np.array([1.0, 0.0, 1.0]),
    "a list": [True, False, True],
    "a number": 1.5,
    "false": False,
    "right": MASK,
}


@each("axis", [None, 0, 1, 5])
@each("mask", MASKS)
@each("name", REDUCTIONS)
def test_a_reduction_takes_the_masks_that_numpy_takes(name, mask, axis):
    more = {"initial": 0.5} if name in ("max", "min", "nanmax") else {}
    check(lambda x: getattr(np, name)(x, axis=axis, where=MASKS[mask], **more))


def test_a_mask_does_not_stretch_what_is_reduced():
    for f in (np.sum, np.prod, np.all, np.mean, np.var, np.nansum, np.nanmean):
        check(lambda x, f=f: f(x[None], where=np.ones((2, 3), bool)))


METHODS = [np.add, np.multiply, np.maximum, np.hypot, np.logical_and, np.subtract, np.logaddexp]
AT = [[0], [0, 2], [2, 0, 1], [], [5], [-1], 1, [[0]]]


@each("at", AT, ids=str)
@each("ufunc", METHODS, ids=lambda u: u.__name__)
def test_reduceat_takes_the_indices_that_numpy_takes(ufunc, at):
    check(lambda x: ufunc.reduceat(x, at), np.array([-1.0, -0.0, -3.0]))


@each("axis", [0, -1, None, (0,), (0, 1), 5])
@each("method", ["reduceat", "accumulate"])
def test_methods_of_ufuncs_take_the_axes_that_numpy_takes(method, axis):
    more = ([0],) if method == "reduceat" else ()
    for part in (slice(None), 0, np.newaxis):
        check(lambda x, part=part: getattr(np.add, method)(x[part], *more, axis=axis))


def test_one_element_is_its_own_result_of_reduceat():
    check(lambda x: np.add.reduceat(x, [0, 1]), np.array([-0.0, -0.0]))
    check(lambda x: np.hypot.reduceat(x, [1, 0]), np.array([-1.0, -2.0]))


@each("f",
    [lambda x: x[0] @ x[1], lambda x: x[0] @ 2.0, lambda x: 2.0 @ x[0], lambda x: x[0] @ x, lambda x: x @ x[0],
     lambda x: np.matmul(x[0], x[1]), lambda x: x[0] @ np.array(1.0)],
)  # fmt: skip
def test_a_product_of_numbers_raises_what_python_raises(f):
    check(f)


@each("f",
    [np.poly, np.polyder, np.polyint, np.roots, lambda p: np.polyval(p, 2.0), lambda p: np.polyadd(p, X),
     lambda p: np.polysub(X, p), lambda p: np.polymul(p, X)],
)  # fmt: skip
@each("p", [lambda x: x[0], lambda x: x, np.atleast_2d, lambda x: x[:0]])
def test_polynomials_are_what_numpy_takes_for_one(f, p):
    wanted = outcome(lambda: f(p(X)))
    for name, call in transformed(lambda x: f(p(x)), X).items():
        found = outcome(call)
        assert found == wanted if isinstance(wanted, type) else not isinstance(found, type), name


NOTHING = np.zeros((0, 3))


@each(("indices", "axis"), [([5], 1), (5, -1), ([0, -1], 1), ([0], 0), (np.zeros((0, 2), int), 0), ([7], None)]
)
def test_take_of_nothing_looks_at_no_index(indices, axis):
    check(lambda x: np.take(np.zeros((0, 3)) + x, indices, axis=axis))
    check(lambda x: np.take(np.diag(x[:0]), indices, axis=axis))


@each("f",
    [lambda x: np.piecewise(x, [x < 0, np.ones(2, bool)], [np.sin, np.cos]),
     lambda x: np.piecewise(x, [x < 0, x > 1], [np.sin, np.cos, np.exp]),
     lambda x: np.bincount([0, 1, 1], x, minlength=-1)],
)  # fmt: skip
def test_a_call_that_numpy_refuses_raises_what_it_raises(f):
    wanted = outcome(lambda: f(X))
    for name, call in transformed(f, X).items():
        found = outcome(call)
        assert found == wanted if isinstance(wanted, type) else not isinstance(found, type), name


MASKS_OF_AN_INDEX = {
    "short": [True], "long": [True] * 4, "right": MASK, "with a slice": (MASK, slice(None)),
    "of the last axis": (Ellipsis, [True, False]), "too long for the last axis": (Ellipsis, MASK),
    "of both axes": np.ones((3, 2), bool), "of a wrong second axis": np.ones((3, 3), bool),
    "of three axes": np.ones((3, 2, 1), bool), "behind a new axis": (None, MASK), "beside places": (MASK, [0, 1]),
    "with too many places": (MASK, 0, 0), "true": np.True_,
}  # fmt: skip


@each("index", MASKS_OF_AN_INDEX.values(), ids=MASKS_OF_AN_INDEX)
def test_a_mask_has_the_shape_of_the_axes_that_it_stands_for(index):
    def put(x):
        y = 1.0 * x
        y[index] = 0.5
        return y

    check(lambda x: x[index], np.arange(6.0).reshape(3, 2))
    check(put, np.arange(6.0).reshape(3, 2))


PARTED = [
    (slice(None), [0, 1], Ellipsis, 0), (slice(None), 0, Ellipsis, [0, 1]), (slice(None), [0, 1], Ellipsis, [1, 0]),
    (slice(None), [[1], [0]], Ellipsis, [0, 1]), (slice(None), [0, 1], 0), (0, Ellipsis, [0, 1], 1),
]  # fmt: skip


@each("index", PARTED, ids=str)
def test_an_ellipsis_that_is_no_axis_parts_index_arrays(index):
    def put(x):
        y = 1.0 * x
        y[index] = x[index] * 2
        return y

    x = np.arange(24.0).reshape(2, 3, 4)
    for f in (lambda x: x[index], put, lambda x: fad.grad(lambda x: np.sum(x[index] * x[index]))(x)):
        check(f, x)
    batch = np.stack([x, -x])
    rows = [x[index] for x in batch]
    for _ in range(2):
        np.testing.assert_array_equal(fad.jit(fad.vmap(lambda x: x[index]))(batch), rows)


def test_a_mask_without_elements_stands_for_any_axis():
    check(lambda x: x[np.zeros(0, bool)])
    check(lambda x: np.piecewise(x[:1], [x[:0]], [np.sin]))


def writing(text):
    """Return the function that runs statements on a copy of its argument, and returns the copy."""
    names = {"np": np, "MASK": MASK}
    exec(f"def f(x):\n    y = x * 1.0\n    {text}\n    return y", names)
    return names["f"]


@each("text",
    ["np.copyto(y, x[None] * 2)", "np.copyto(y, x[None, None])", "np.copyto(y, np.outer(x, x))",
     "np.copyto(y, x[None] * 2, where=MASK)", "np.copyto(y, x, where=MASK[None])", "np.copyto(y, x, where=MASK[:2])",
     "np.einsum('ij,j->i', np.outer(x, x)[:1], x, out=y)", "np.einsum('i->', x, out=y)",
     "np.cumsum(x[:0], out=y)", "np.cumsum(x[:2], out=y)",
     "z = np.zeros((1, 1, 3), np.float32) + y.astype(np.float32); y = np.dot(z, 3.0, out=z)",
     "z = np.zeros((1, 3), np.float32) + y.astype(np.float32); y = np.dot(z, 3.0, out=z)",
     "y = np.outer(y, y); np.dot(np.arange(3), 2, out=y)", "y = y[:0]; np.cumsum(x[:1], out=y)",
     "np.sum(np.outer(x, x / 3).astype(np.float32), axis=0, out=y)", "np.put(y[:0], [0, -1], -2.0)",
     "np.cumprod((x / 3).astype(np.float32), out=y)", "np.put(y[:0], [], -2.0)",
     "np.outer(x, x, out=np.zeros((2, 3, 3)) + y)", "y[MASK] = x[None, :2]", "y[MASK] = x[:2]", "y[y > 0] = y[1:]",
     "y[MASK] = y[:2]", "y[y == y] = y", "y.flat[:] = y", "y[[7, 9]] = [0.0, 1.0, 2.0]", "y[[7, 9]] = [0.0, 1.0]",
     "y[[0, 9]] = np.ones(3)", "y[[0, 2]] = [0.0, 1.0]", "y @= 1j * x", "y @= x", "y @= np.outer(x, x) * 1j"],
)  # fmt: skip
def test_a_write_takes_what_numpy_takes(text):
    check(writing(text))


@each(
    "text", ["y[y == y] = y[::-1]", "y.flat[:] = y[::-1]", "y.flat[[1, 2]] = y[:2]", "z = y[None]; z[z == z] = y[::-1]"]
)
def test_values_that_numpy_overwrites_before_it_reads_them_are_refused(text):
    f = writing(text)
    assert not np.array_equal(f(X), writing(text.replace("= y[", "= 1 * y["))(X))
    for name, call in transformed(f, X).items():
        assert outcome(call) is ItemAssignmentError, name


@each("f",
    [lambda x, y: np.r_[x, y], lambda x, y: np.r_[np.array([x]), 2.0], lambda x, y: np.c_[y, x],
     lambda x, y: np.r_[x, y, 0:2], lambda x, y: np.r_[y, np.float64(2.0)], lambda x, y: np.r_[x, True]],
)  # fmt: skip
def test_a_number_of_python_widens_nothing_in_joining_brackets(f):
    x, y = np.float32(0.5), -0.5
    wanted = outcome(lambda: f(x, y))
    assert outcome(lambda: fad.vjp(f, x, y)[0]) == wanted
    assert outcome(lambda: fad.jvp(f, (x, y), (x, y))[0]) == wanted
    assert outcome(lambda: fad.jit(f)(x, y)) == wanted


WITHOUT_AXES = {
    "broadcast_to": lambda x: np.broadcast_to(x, ()),
    "a copy of broadcast_to": lambda x: np.broadcast_to(x, ()).copy(),
    "transpose": np.transpose,
    "moveaxis": lambda x: np.moveaxis(x, [], []),
    "i0": np.i0,
    "real_if_close": np.real_if_close,
    **({"cross": lambda x: np.cross(x * np.array([1.0, 2.0]), np.array([2.0, 1.0]))} if BEFORE_2_5 else {}),
    "astype of an array": lambda x: np.asarray(x)[...].astype(np.float32),
    "astype to the same": lambda x: np.asarray(x)[...].astype(float),
    "sum": np.sum,
    "where": lambda x: np.where(x > 0, x, 0.0),
}


@each("x", [np.float64(1.25), 1.25, np.array(1.25)], ids=["a scalar", "a float", "an array"])
@each("f", WITHOUT_AXES.values(), ids=WITHOUT_AXES)
@pytest.mark.filterwarnings("ignore:Arrays of 2-dimensional vectors:DeprecationWarning")
def test_a_result_without_axes_is_an_array_where_numpy_gives_one(f, x):
    seen = []

    def watched(x):
        seen.append(isinstance(f(x), np.ndarray))
        return 1.0 * x

    watched(x)
    fad.vjp(watched, x)
    fad.jvp(watched, (x,), (x,))
    fad.jit(watched)(x)
    if type(x) is np.float64:  # what the elements of a vector are
        fad.vmap(watched)(np.stack([x, x]))
    assert len(set(seen)) == 1


def test_unwrap_keeps_the_sign_of_a_first_zero():
    check(np.unwrap, np.array([-0.0]))
    check(lambda x: np.unwrap(x, axis=0), np.array([[-0.0, 3.0], [1.0, -4.0]]))


def test_a_conversion_that_is_none_gives_the_array_itself():
    def f(x):
        y = x > 0
        z = y.astype(bool, copy=False)
        y[1] = True
        return z

    check(f)


PARTS = np.array([-0.0, np.inf, -1.0])


@each("part", ["real", "imag"])
def test_a_part_of_complex_numbers_is_written_to_the_bit(part):
    def f(z, parts=PARTS):
        y = z.copy()
        setattr(y, part, parts)
        w = getattr(y, part)
        w[2] = -0.0
        return y

    z = np.array([1 + 2j, complex(-0.0, -np.inf), complex(-0.0, -0.0)])
    wanted = f(z)
    for name, call in transformed(f, z).items():
        with np.errstate(invalid="ignore"):  # of tangents, which are infinite here
            got = call()
        assert got.tobytes() == wanted.tobytes(), name


@each("dtype", [">c16", "c16", "c8"])
@each("part", ["real", "imag"])
def test_an_array_without_axes_stays_one_when_a_part_of_it_is_written(part, dtype):
    def f(z):
        setattr(z, part, 3.0)
        return z

    z = np.array(1 + 2j, dtype)
    wanted = f(z.copy())
    for name, call in {
        "vjp": lambda: fad.vjp(f, z)[0],
        "jvp": lambda: fad.jvp(f, (z,), (z,))[0],
        "jit": lambda: fad.jit(f)(z),
    }.items():
        got = call()
        assert (type(got), got.dtype, got) == (np.ndarray, wanted.dtype, wanted), name


def test_what_is_written_into_parts_has_the_derivatives_of_a_sum():
    def by_writes(a, b):
        z = np.zeros(3, complex)
        z.real = a
        z.imag = b
        return z * z * (1 - 2j)

    def by_a_sum(a, b):
        z = a + 1j * b
        return z * z * (1 - 2j)

    a, b, ct = X, X[::-1] * 0.5, np.array([1 + 2j, -1j, 0.5])
    for one, other in ((by_writes, by_a_sum), (fad.jit(by_writes), by_a_sum)):
        for got, wanted in zip(fad.vjp(one, a, b)[1](ct), fad.vjp(other, a, b)[1](ct), strict=True):
            np.testing.assert_allclose(got, wanted, rtol=1e-14)
        found = [fad.jvp(f, (a, b), (b, a))[1] for f in (one, other)]
        np.testing.assert_allclose(found[0], found[1], rtol=1e-14)


def test_what_has_no_derivative_leaves_jvp_as_its_value_at_repeated_singular_values():
    def f(x):
        return np.heaviside(np.linalg.cond(x * np.eye(3)), 0.5), np.sign(np.linalg.svdvals(x[:1] * np.eye(3)))

    for found in (fad.jvp(f, (X * X,), (X,))[0], fad.jvp(lambda x: (x, f(x)), (X * X,), (X,), has_aux=True)[2]):
        for got, wanted in zip(found, f(X * X), strict=True):
            assert type(got) is type(wanted)
            np.testing.assert_array_equal(got, wanted)


@each("f",
    [lambda z: np.fill_diagonal(z, 2.0), lambda z: np.matmul(z, z, out=z), lambda z: np.add(X, [1.0, 2.0], out=z),
     lambda z: np.sum(X, axis=5, out=z), lambda z: np.copyto(z, 1.0)],
)  # fmt: skip
def test_a_number_is_nothing_to_write_into_whatever_else_is_wrong(f):
    wanted = outcome(lambda: f(np.float64(1.0)))
    assert isinstance(wanted, type)
    assert outcome(lambda: fad.vmap(f)(X)) is wanted
    assert outcome(lambda: fad.jvp(f, (np.float64(1.0),), (1.0,))) is wanted


def _write_into_zeros(x):
    x.imag[...] = 1.0


def _write_outside_of_zeros(x):
    x.imag[0] = x


def _sum_into_another_shape(x):
    np.einsum("i...->...", np.full((2, 2, 3), 0.5), out=np.ptp(x.astype(np.float32).reshape(1, 1, -1).T, axis=1))


@each(("f", "x"),
    [(_write_into_zeros, np.array(1.0)), (_write_outside_of_zeros, np.array(1.0)), (_write_into_zeros, X),
     (_sum_into_another_shape, X), (lambda x: np.average(np.broadcast_to(x, (0, 3)), axis=1), X),
     (lambda x: np.average(x[:, None][:, :0], axis=0, weights=[0.0, 0.0, 0.0]), X)],
)  # fmt: skip
def test_what_no_array_can_take_is_an_error_of_the_same_kind(f, x):
    wanted = outcome(lambda: f(x))
    assert isinstance(wanted, type)
    calls = transformed(f, x)
    for name, call in calls.items():
        assert outcome(call) is wanted or (name == "vmap" and not x.shape), name


@each("dtype", ["f4", "f8"])
@each(("n", "size"), [(0, 0), (0, 1), (0, 2), (1, 0), (2, 0)])
def test_sums_of_nothing_fit_into_any_array_of_their_dtype(n, size, dtype):
    def f(x):
        out = np.full(size, 9.0)
        np.cumsum(x[:n].astype(dtype), out=out)
        return out

    check(f)


@WITH_CROSS_OF_PLANE_VECTORS
@pytest.mark.filterwarnings("ignore:Arrays of 2-dimensional vectors are deprecated")
def test_the_cross_product_of_plane_vectors_is_an_array():
    def f(x, y):
        z = np.cross(y, y)
        z[y[0] >= 0] *= 1.5
        return x * z

    y = np.array([1.0, 2.0])
    np.testing.assert_array_equal(fad.jacobian(f)(3.0, y), 0.0)
    np.testing.assert_array_equal(fad.jit(f)(3.0, y), f(3.0, y))


@each("axes", [None, (0,), (1, 0), (-1,), (0, 0), (5,)])
@each("shape", [(3,), (1, 3), (1, 1, 3), (3, 1), (), (1,), (0,)])
@each("of", [(3, 3), (1, 3, 3), (1, 1), (0, 0), (3, 1, 3)])
def test_tensorsolve_takes_the_shapes_that_numpy_takes(of, shape, axes):
    a = np.arange(1.0, 1.0 + np.prod(of)).reshape(of) + 5.0 * (np.eye(3).reshape(of) if np.prod(of) == 9 else 0.0)
    check(lambda x: np.linalg.tensorsolve(a, x, axes), np.ones(shape))


@each("index", [0, slice(None), [0, 1], np.array([True, False])], ids=repr)
def test_a_complex_number_of_pythons_is_not_written_into_a_real_array(index):
    def f(x):
        c = np.zeros(2)
        c[index] = x
        return c

    check(f, 1 + 2j)


@each("dtype", [float, complex])
@each("value", [lambda x: x, lambda x: [x], lambda x: (1.0, x)], ids=["one", "list", "tuple"])
@each("write",
    [
        lambda c, v: c.__setitem__(slice(None), v),
        lambda c, v: c.__setitem__(np.array([True, True]), v),
        lambda c, v: np.put(c, [0, 1], v),
        lambda c, v: np.place(c, [True, True], v),
        lambda c, v: np.putmask(c, [True, True], v),
        lambda c, v: np.copyto(c, v, casting="unsafe"),
        lambda c, v: np.fill_diagonal(c.reshape(1, 2), v),
        lambda c, v: setattr(c, "flat", v),
        lambda c, v: setattr(c, "real", v),
    ],
    ids=["slice", "mask", "put", "place", "putmask", "unsafe", "diagonal", "flat", "real"],
)
def test_functions_that_write_take_the_complex_numbers_that_numpy_takes(write, value, dtype):
    def f(x):
        c = np.zeros(2, dtype)
        write(c, value(x))
        return c

    check(f, 1 + 2j)


def test_a_complex_number_of_pythons_is_no_float_under_jit():
    for f in (float, lambda x: np.zeros(2) + float(x)):
        with pytest.raises(TypeError, match="not 'complex'"):
            fad.jit(f)(1 + 2j)


@each("index",
    [
        [9], [0, 0], ([9], Ellipsis), (Ellipsis, [9]), (None, [9]), (slice(None), [9]), ([9], [0]),
        (Ellipsis, [9], None), (0, [9]), ([True], [9]), [], ([9], slice(None)), ([9, 0], None, 0),
    ],
    ids=repr,
)  # fmt: skip
@each("shape", [(0,), (0, 2), (2, 0), (1, 0), (0, 0), (1, 0, 2)])
@each("of_value", [(0,), (1,), (2,), (1, 2), ()])
def test_what_is_written_into_an_array_without_elements_raises_what_numpy_raises(of_value, shape, index):
    def f(x):
        x = x.copy()
        x[index] = np.ones(of_value)
        return x

    check(f, np.zeros(shape))


@each("f", [lambda x: np.mean(x).mT, lambda x: x[0].mT, lambda x: x[0, ...].mT], ids=["mean", "item", "0-d"]
)
def test_numbers_have_no_matrix_transpose(f):
    check(f)


@each("dtype", [">f8", "f8", ">f4"])
@each("sizes", [(0, 2), (0, 1), (1, 0), (2, 0), (0, 0)], ids=repr)
def test_sums_of_nothing_in_the_other_byte_order_are_converted(sizes, dtype):
    def f(x):
        x = x.copy()
        np.cumsum(x[1 : sizes[1] + 1], out=x[3 : sizes[0] + 3])
        return x

    check(f, np.arange(1.0, 6.0).astype(dtype))


def test_an_empty_mask_of_the_functions_own_is_not_taken_for_integers():
    def f(x):
        out = np.zeros(2)
        out[0] = np.sum(x)
        return np.argwhere(X)[np.zeros((0, 2), bool)].shape, out

    with pytest.raises(IndexError, match="boolean index"):
        f(X)
    with pytest.raises(IndexError, match="boolean index"):
        fad.vjp(f, X)


@each("p", [None, 1, "fro"])
@each("shape", [(0, 0), (0, 2), (2, 0), (3, 0, 0)], ids=repr)
def test_the_condition_of_an_empty_matrix_is_refused_as_in_numpy(shape, p):
    x = np.zeros(shape)
    for run in (np.linalg.cond, lambda x, p: fad.jvp(lambda x: np.linalg.cond(x, p), (x,), (x,))):
        with pytest.raises(np.linalg.LinAlgError, match="not defined on empty arrays"):
            run(x, p)


@each("name", ["to_begin", "to_end"])
def test_differences_of_integers_take_no_traced_fraction_beside_them(name):
    def f(x):
        return np.ediff1d(x.astype(int), **{name: x[0]})

    for run in (f, lambda x: fad.jvp(f, (x,), (x,)), fad.jit(f), fad.vmap(lambda x: f(x[None]))):
        with pytest.raises(TypeError, match=f"dtype of `{name}` must be compatible"):
            run(np.array([1.5, 2.5]))


@each("mode", ["linear_ramp", "edge", "reflect", "symmetric", "wrap", "mean", "maximum", "median"])
@each("shape", [(0,), (0, 2), (2, 0)], ids=repr)
def test_an_empty_axis_is_not_extended_by_what_is_in_it(shape, mode):
    axis = shape.index(0)
    for run in (np.pad, lambda x, width, mode: fad.jvp(lambda x: np.pad(x, width, mode), (x,), (x,))):
        with pytest.raises(ValueError, match=f"can't extend empty axis {axis} "):
            run(np.zeros(shape), 1, mode)
