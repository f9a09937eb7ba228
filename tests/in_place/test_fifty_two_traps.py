"""Fifty-two traps of arrays that change, by number: what NumPy computes, under every transform, or its error.

Where a trap is about something else than one program, a test of another file holds it: 13 and 34
`test_in_place_programs`, 20 `test_cost`, 31 `test_plain_arrays`, 35 and 44 to 46 `test_arrays_from_outside` and
`test_recorded_bodies`, 48 all, 49 `tests/backends`, 52 `test_infinite_partials`.
"""

import math
import threading

import numpy as np
import pytest
from in_place import corners
from in_place import writing_programs as programs
from in_place.test_in_place_programs import X, close, differences
from numpy import zeros

import fad
from fad import errors


def class_is_asked(x):  # 5
    y = x * 2 if isinstance(x, np.ndarray) else x * 0
    return np.sum(y) + (1.0 if isinstance(np.zeros(3), np.ndarray) else 0.0) * x[0]


def views_of_many_kinds(x):  # 10
    m = x.reshape(2, 2)
    np.moveaxis(m, 0, 1)[0] += x[3]
    np.rot90(m)[0] *= 2.0
    np.array_split(x, 3)[1][0] *= x[0]
    np.atleast_3d(x)[0, 1] += x[2]
    x.view()[3] = x[0] * x[1]
    z = x + 0j
    z.real[1:] = x[:3] ** 2
    z.imag += x
    return np.sum(x**2) + np.sum(z.real * z.imag)


def a_dimension_is_new(x):  # 10
    x[:, None][1] *= x[2]
    x[None, 1:][0, 0] += x[0]
    return np.sum(x**3)


def conversions_that_copy_or_not(x):  # 11
    np.require(x, requirements="C")[0] = x[1] ** 2
    np.real(x)[1] *= 3.0
    x.astype(np.float64, copy=False)[2] = x[0]
    np.array(x, copy=True)[3] = 0.0
    np.array(x, copy=None)[3] *= x[0]
    return np.sum(x**2)


def overlap_of_slices(x):  # 14
    x[:-1] = x[1:] * x[:-1]
    x[::-1] += x
    x[::2] *= x[1::2]
    return np.sum(x * np.arange(1.0, 5.0))


def setitem_of_a_slice_on_itself(x):  # 16
    y = x * 1.0
    y[1:] *= 2.0
    y[1:] = y[1:]
    y[...] = y
    y[y > 3] *= y[0]
    return np.sum(y**2)


def the_last_of_duplicates_wins(x):  # 17
    y = np.zeros(4)
    y[[0, 0, 2]] = x[:3] ** 2
    y[[1, 1]] += x[2:]
    return np.sum(y * np.arange(1.0, 5.0))


def the_output_was_kept(x):  # 19
    y = np.exp(0.3 * x)
    z = np.tanh(y)
    y *= y
    z -= y
    y /= z
    return np.sum(y * z)


def single_precision_rounds_and_the_cotangent_does_not(x):  # 22
    b = np.zeros(4, np.float32)
    b[:] = np.round(x)  # whole numbers: nothing is rounded
    c = np.zeros(4, np.complex64)
    c[1:] = 2.0
    return np.sum(x * b) + np.sum(x * c.real)


def flat_numbers_in_an_integer_array(x):  # 23
    b = np.zeros(4, int)
    b[:] = fad.stop_gradient(x) * 3
    b[1:] += 2
    return np.sum(x * b)


def real_into_complex(x):  # 24
    b = np.zeros(4, complex)
    b[:] = x
    b[1:] *= 1j
    b[0] += 1j * x[3]
    return np.sum(np.abs(b) ** 2) + np.sum(b.imag * x)


def unit_axes_in_front_of_the_value(x):  # 26
    m = np.zeros((3, 4))
    m[0] = x.reshape(1, 1, 4)
    m[1:] = x
    m[:, 1] = x[:3][None]
    m[2] = x[0]
    return np.sum(m**2 * np.arange(12.0).reshape(3, 4))


def lists_in_lists(x):  # 27
    m = np.array([[x[0], 1.0], [0.0, x[1] * x[2]]])
    m[1] = [x[3], 2.0]
    m[:, 0] *= [x[0], x[1]]
    return np.sum(m**2)


def empty_arrays_are_filled(x):  # 28
    b, c = np.empty(4), np.empty_like(x)
    for i in range(4):
        b[i], c[-1 - i] = x[i] ** 2, x[i]
    return np.sum(b * c)


def makers_by_other_names(x):  # 29
    xp = np
    b = xp.zeros(4, dtype=x.dtype)
    c = zeros(x.shape)
    d = np.ndarray(shape=(4,), dtype=float)
    e = np.full_like(x, 2.0)
    f = np.identity(4)[0]
    for a in (b, c, d, e, f):
        a[:] = x * x[0]
        a[0] += 1.0
    return np.sum(b * c * d * e * f)


def results_of_plain_arithmetic(x):  # 30
    b = np.ones(3) * 2
    b[0] = x[0]
    c = np.arange(4.0) @ np.eye(4)
    c[1:] *= b
    d = np.sqrt(np.arange(4.0))[::-1]
    d += x
    return np.sum(c * x) + np.sum(d * d)


def arrays_in_what_is_returned(x):  # 32
    def inner():
        b = [np.zeros(2), {"a": np.ones(2)}]
        b[0][:] = x[:2]
        b[1]["a"] *= x[2:]
        return b

    first, second = inner()
    return np.sum(first * second["a"])


def outs_of_every_kind(x):  # 36
    b, c, m = np.zeros(4), np.zeros(2), np.zeros((2, 2))
    np.multiply(x, x, out=x)
    np.add.reduce(x.reshape(2, 2), axis=0, out=c)
    np.einsum("ij,jk->ik", x.reshape(2, 2), x.reshape(2, 2), out=m)
    np.dot(x.reshape(2, 2), c, out=b[1:3])
    np.take(x, [3, 0], out=c)
    np.concatenate([c, b[:2]], out=x)
    np.maximum(x, 2.0, out=b, where=x > 0)
    np.sum(m, axis=1, out=b[:2])
    return np.sum(b * x) + np.sum(m[0] * c)


def shuffled_in_place(x):  # 37
    np.random.default_rng(0).shuffle(x)
    m = np.outer(x, x)
    np.random.default_rng(1).shuffle(m)
    np.random.default_rng(1).shuffle(m, axis=1)
    np.random.seed(3)
    np.random.shuffle(m)
    np.random.shuffle(x)
    b = np.zeros(4)
    np.random.default_rng(2).random(out=b)
    b[1:] *= x[1:]
    return np.sum(x * np.arange(4.0) ** 2) + np.sum(b * x) + np.sum(m * np.arange(16.0).reshape(4, 4))


def iterated_in_c(x):  # 39
    for y in np.nditer(x, op_flags=["readwrite"]):
        y[...] = y * y
    return np.sum(x * np.arange(1.0, 5.0))


def methods_on_flat_elements(x):  # 38
    m = np.zeros((2, 2))
    m.flat[1:3] = x[:2]
    m.flat[[0, 3]] = x[2:] ** 2
    m.real = m * x[0]
    m.T[:] = m + x[1]
    m.put([1], x[0])
    return np.sum(m * [[1.0, 2.0], [3.0, 4.0]])


def loops_inside_of_numpy(x):  # 39
    v = np.vectorize(lambda a: a * a if a > 1 else a)(x)
    r = np.apply_along_axis(lambda row: row * np.sum(row), 1, x.reshape(2, 2))
    f = np.fromfunction(lambda i: x[0] * i, (4,))
    p = np.piecewise(x, [x < 2, x >= 2], [lambda a: a**2, lambda a: -a])
    return np.sum(v * f) + np.sum(r) + np.sum(p * v)


def custom_rules_beside_writes(x):  # 47
    @fad.custom_vjp
    def cube(y):
        return y**3

    cube.defvjp(lambda y: (y**3, y), lambda y, ct: (3 * y**2 * ct,))
    b = np.zeros(4)
    b[:] = x
    c = cube(b)
    b[:] = 0.0
    c[0] = x[1]
    return np.sum(c * x) + np.sum(b)


def the_diagonal_is_skipped(x):  # 52
    d = (x[:, None] - x[None]) ** 2
    r = np.sqrt(d)
    r[r > 0] = 1.0 / r[r > 0]
    return np.sum(np.triu(r, 1) * np.outer(x, x))


RIGHT = [
    (1, programs.an_alias_sees_augmented_assignment), (2, programs.a_slice_writes_through),
    (3, programs.ravel_of_reshape_writes_through), (4, programs.rows_of_an_iteration_are_views), (5, class_is_asked),
    (7, programs.a_fancy_index_is_a_copy), (8, programs.a_scalar_is_a_copy_and_an_ellipsis_a_view),
    (9, programs.layout_decides_what_ravel_is), (9, programs.ravel_of_a_transpose_is_a_copy),
    (9, corners.ravel_is_a_view_of_what_lies_in_order), (10, programs.views_of_views), (10, views_of_many_kinds),
    (10, a_dimension_is_new), (11, programs.the_same_object), (11, conversions_that_copy_or_not),
    (11, programs.copies_stay_what_they_were), (14, programs.overlap_reads_the_old_values), (14, overlap_of_slices),
    (15, programs.a_swap_of_numbers), (15, programs.a_swap_of_views_is_none), (16, programs.masks_and_slices),
    (16, setitem_of_a_slice_on_itself), (17, programs.duplicates_in_an_index), (17, the_last_of_duplicates_wins),
    (18, programs.saved_then_overwritten), (19, the_output_was_kept),
    (21, programs.an_error_leaves_what_was_written_before),
    (22, single_precision_rounds_and_the_cotangent_does_not), (23, flat_numbers_in_an_integer_array),
    (24, real_into_complex), (24, programs.complex_parts_are_written), (26, programs.broadcasting_on_writes),
    (26, unit_axes_in_front_of_the_value), (27, programs.arrays_of_traced_numbers), (27, lists_in_lists),
    (28, empty_arrays_are_filled), (29, programs.buffers_of_every_kind), (29, makers_by_other_names),
    (30, results_of_plain_arithmetic), (32, programs.buffers_in_containers), (32, arrays_in_what_is_returned),
    (36, programs.out_arguments), (36, outs_of_every_kind), (37, programs.functions_that_write),
    (37, shuffled_in_place), (38, programs.methods_that_write), (38, methods_on_flat_elements), (39, iterated_in_c),
    (39, loops_inside_of_numpy), (42, programs.a_recurrence_in_a_buffer), (47, custom_rules_beside_writes),
    (52, the_diagonal_is_skipped),
]  # fmt: skip


@pytest.mark.parametrize(("number", "f"), RIGHT, ids=lambda x: getattr(x, "__name__", str(x)))
@pytest.mark.filterwarnings("ignore::fad.errors.ImpureFunctionWarning")
def test_the_answer_is_numpys(number, f):
    with np.errstate(divide="ignore", invalid="ignore"):
        value, g = f(X.copy()), differences(f, X)
        close(fad.value_and_grad(f)(X)[0], value, f, 1e-13)
        close(fad.grad(f)(X), g, f)
        close([fad.jvp(f, (X,), (e,))[1] for e in np.eye(4)], g, f)
        xs = np.stack([X, X * 1.001])
        close(fad.vmap(f)(xs), [f(x.copy()) for x in xs], f, 1e-13)
        close(fad.vmap(fad.grad(f))(xs)[0], g, f)
        for jitted in (fad.jit(fad.value_and_grad(f)), fad.jit(lambda x: (f(x.copy()), fad.jacfwd(f)(x)))):
            for _ in range(2):
                found = jitted(X)
                close(found[0], value, f, 1e-13)
                close(found[1], g, f)


# --- errors ----------------------------------------------------------------------------------------------------------


def a_growing_left_side(x):  # 6
    s = x[:1]
    s += x


def a_broadcast_view(x):  # 12
    np.broadcast_to(x, (3, 4))[0] = 1.0


def a_diagonal(x):  # 12
    np.diagonal(x.reshape(2, 2))[0] = 1.0


def an_integer_array(x):  # 23
    b = np.zeros(4, int)
    b[:] = x * 3


def complex_added_to_real(x):  # 25
    x += 1j


def a_fraction_added_to_integers(x):  # 25
    b = np.arange(4)
    b += 0.5 * x


def a_mask_in_place_of_numbers(x):  # 25
    np.multiply(x, x, out=np.zeros(4, int))


def a_shape_is_assigned(x):  # 38
    first = x[:2]
    x.shape = (2, 2)
    first[0] = 1.0


def resized(x):  # 38
    x.resize((2, 2))


def swapped_bytes(x):  # 38
    x.byteswap(True)


def a_python_function_as_a_ufunc(x):  # 39
    return np.frompyfunc(lambda a: a * a, 1, 1)(x).astype(float)


def a_view_of_the_bytes(x):  # 40
    memoryview(x)[0] = 1.0


def the_address(x):  # 40
    return x.ctypes.data


def the_buffer(x):  # 40
    return np.frombuffer(x)


def a_python_number(x):  # 41
    b = np.zeros(4)
    b[0] = math.ulp(x[0])


def the_text_of_a_number(x):  # 41
    return float("%f" % x[0])  # noqa: UP031 (the old way of printing is the point)


REFUSED = [
    (6, a_growing_left_side, ValueError), (12, a_broadcast_view, ValueError), (12, a_diagonal, ValueError),
    (23, an_integer_array, errors.ItemAssignmentError), (25, complex_added_to_real, TypeError),
    (25, a_fraction_added_to_integers, TypeError), (25, a_mask_in_place_of_numbers, TypeError),
    (38, a_shape_is_assigned, AttributeError), (38, resized, errors.FadError), (38, swapped_bytes, errors.FadError),
    (39, a_python_function_as_a_ufunc, errors.FadError),
    (40, a_view_of_the_bytes, TypeError), (40, the_address, (errors.FadError, AttributeError)),
    (40, the_buffer, TypeError), (41, a_python_number, errors.FadError), (41, the_text_of_a_number, errors.FadError),
]  # fmt: skip
WAYS = {
    "grad": lambda f: fad.grad(f)(X),
    "jvp": lambda f: fad.jvp(f, (X,), (X,)),
    "vmap": lambda f: fad.vmap(f)(np.stack([X, 2 * X])),
    "jit": lambda f: fad.jit(fad.grad(f))(X),
}


# Under vmap alone values are rounded as NumPy rounds them: there is no derivative to lose.
CASES = [(*case, way) for case in REFUSED for way in WAYS if (case[0], way) != (23, "vmap")]


@pytest.mark.parametrize(("number", "f", "error", "way"), CASES, ids=lambda x: getattr(x, "__name__", str(x)))
def test_what_cannot_be_right_is_an_error(number, f, error, way):
    with pytest.raises(error):
        WAYS[way](lambda x: (f(x * 1.0), np.sum(x))[1])


def test_24_the_imaginary_part_is_dropped_with_numpys_warning():
    def f(x):
        b = np.zeros(4)
        b[:] = x * (1 + 2j)
        return np.sum(b**2)

    for transform in (
        fad.grad,
        lambda f: lambda x: fad.jacfwd(f)(x),
        lambda f: lambda x: fad.vmap(fad.grad(f))(x[None])[0],
    ):
        with pytest.warns(np.exceptions.ComplexWarning):
            np.testing.assert_allclose(transform(f)(X), 2 * X)


def test_33_an_array_given_twice_is_two_variables():
    def f(x, y):
        x[0] = 2 * x[0]
        return np.sum(x * y)

    g = fad.grad(f, (0, 1))(X, X)
    np.testing.assert_allclose(g, [X * [2, 1, 1, 1], X * [2, 1, 1, 1]])


def test_43_examples_that_take_different_paths_make_their_own_arrays():
    def f(x):
        b = np.zeros(2)
        b[0] = x[0]
        if x[1] > 2.0:
            b[1] = x[1] ** 2
        return np.sum(b * b)

    xs = np.stack([X, X - 1.0])
    np.testing.assert_allclose(fad.vmap(f)(xs), [f(x) for x in xs])
    np.testing.assert_allclose(fad.vmap(fad.grad(f))(xs), [differences(f, x) for x in xs], 1e-7)


def test_50_other_threads_have_numpys_own_arrays_while_a_transform_runs():
    begun, ended = threading.Event(), threading.Event()
    made = []

    def look():
        begun.wait(10)
        made.append((np.zeros(3), np.zeros(3) + 1, np.array([1.0])))
        ended.set()

    def f(x):
        b = np.zeros(4)
        begun.set()
        ended.wait(10)
        b[:] = x
        return np.sum(b**2)

    thread = threading.Thread(target=look)
    thread.start()
    np.testing.assert_allclose(fad.grad(f)(X), 2 * X)
    thread.join()
    assert [type(a) for a in made[0]] == [np.ndarray] * 3


def test_50_many_threads_may_differentiate_at_once():
    found = [None] * 6

    def f(x):
        b = np.zeros(4)
        for i in range(4):
            b[i] = x[i] * (b[i - 1] if i else 1.0)
        return np.sum(b)

    def run(k):
        for _ in range(20):
            found[k] = fad.grad(f)(X + k)

    threads = [threading.Thread(target=run, args=(k,)) for k in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for k in range(6):
        np.testing.assert_allclose(found[k], differences(f, X + k), 1e-7)


def test_51_a_pullback_called_in_pieces_leaves_its_seeds_and_itself_as_they_are():
    def f(x):
        y = np.zeros(4)
        y[0] = x[0]
        for i in range(1, 4):
            y[i] = y[i - 1] * x[i]
            x[i - 1] = y[i]
        return y, x

    _, pullback = fad.vjp(f, X)
    seeds = np.eye(4)
    kept = seeds.copy()
    zero = np.zeros(4)
    wanted = fad.jacfwd(f)(X)
    for _ in range(2):
        np.testing.assert_allclose([pullback((s, zero))[0] for s in seeds], wanted[0], 1e-13)
        np.testing.assert_allclose([pullback((zero, s))[0] for s in seeds], wanted[1], 1e-13)
    np.testing.assert_array_equal(seeds, kept)
    np.testing.assert_array_equal(zero, np.zeros(4))
