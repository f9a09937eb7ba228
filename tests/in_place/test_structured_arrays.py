"""Structured arrays that a function makes: traced values are written into their fields, elements and records."""

import numpy as np
import pytest

import fad

PARTICLES = [("x", float), ("v", float)]
BODIES = [("position", float, 2), ("velocity", float, 2), ("mass", float), ("number", int)]
STORED = np.zeros(3, PARTICLES)
STORED["x"] = [1.0, 2.0, 3.0]


def slices(a):
    p = np.zeros(6, dtype=PARTICLES)
    p["x"][1:3] = a
    p[3:]["v"] = a * 2
    p["v"][::2] += p["x"][::2] + 1
    return np.sum(p["x"] ** 2 + p["v"] ** 3)


def masks(a):
    p = np.zeros(6, dtype=PARTICLES)
    p["x"] = np.arange(6) * a
    many = p["x"] > 2
    p["v"][many] = p["x"][many] ** 2
    p[many]["x"] = 99.0  # into a copy
    chosen = p[many]
    chosen["x"] *= 2
    return np.sum(p["x"]) + np.sum(p["v"]) + np.sum(chosen["x"])


def records(a):
    p = np.ones(4, dtype=PARTICLES)
    for r in p:
        r["x"] = r["x"] * a
        r["v"] += a * r["x"]
    p[2]["x"] = 7 * a
    p[-1] = (a, a * a)
    p[0] = p[1]
    return np.sum(p["x"] * p["v"]) + sum(x * v for x, v in p)


def rows_of_tuples(a):
    p = np.array([(1.0, a), (2.0, a * a)], dtype=PARTICLES)
    q = np.concatenate([p, p[::-1]])
    q[1:3] = [(a, 1.0), (2.0, a)]
    return np.sum(q["x"] * q["v"])


def fields_of_vectors(a):
    b = np.zeros(5, dtype=BODIES)
    b["position"] = np.arange(10.0).reshape(5, 2) ** 0.5
    b["mass"], b["number"] = a, np.arange(5)
    for _ in range(3):
        d = b["position"][:, None] - b["position"][None]
        r = np.sqrt(np.sum(d**2, -1) + 0.1)
        b["velocity"] -= 0.1 * np.sum(b["mass"][None, :, None] * d / r[..., None] ** 3, axis=1)
        b["position"] += 0.1 * b["velocity"]
    b["position"][b["number"] > 2] *= a
    return np.sum(b["position"] ** 2) + b[1]["position"][0] * b[2]["mass"] + np.sum(b[...]["position"][..., 0])


def in_order(a):
    p = np.zeros(5, dtype=PARTICLES)
    p["x"], p["v"] = np.array([3.0, 1.0, 2.0, 5.0, 4.0]) * a, np.arange(5)
    p.sort(order="x")
    q = np.sort(p, order="v")
    return np.sum(p["x"] * p["v"]) + np.sum(q["x"] ** 2 * np.arange(5)) + p["x"][np.argsort(p, order="v")][0]


def in_order_of_vectors(a):
    b = np.zeros(3, dtype=BODIES)
    b["position"], b["mass"] = a * np.array([[2.0, 1.0], [1.0, 5.0], [1.0, 3.0]]), [1.0, 2.0, 3.0]
    b["number"] = [2, 0, 1]
    part = b[["mass", "number"]]
    part["mass"] *= 2  # into b
    b.sort(order="number")
    return np.sum(b["mass"] * b["position"][:, 1] * np.arange(3))


def of_the_same_kind(a):
    p = np.zeros((2, 3), dtype=PARTICLES)
    p["x"] = a
    q = np.zeros_like(p)
    q["v"] = p["x"] * 2
    q[0, 1] = (a, a)
    r = q.copy()
    r["v"] *= 0
    q.reshape(-1)["x"][0] = 5 * a
    np.asarray(q)["x"][1, 1] = a**3
    return np.sum(q["v"]) + np.sum(q["x"]) + len(q) + q.size + np.sum(q[["v"]]["v"][1]) + np.sum(np.ravel(q)["x"])


def fields_of_fields(a):
    p = np.zeros(3, dtype=[("state", PARTICLES), ("k", int)])
    p["state"]["x"] = a
    p["state"][1] = (2 * a, a)
    p[2]["state"]["v"] = a
    return np.sum(p["state"]["x"] ** 2 + p["state"]["v"])


def beside_texts(a):
    p = np.zeros(2, dtype=[("name", "U5"), ("weight", float)])
    p["name"], p["weight"] = ["a", "b"], a
    p[0] = ("first", 3 * a)
    return np.sum(p["weight"][p["name"] == "first"]) + p["weight"][1] ** 2


def a_copy_of_one_from_outside(a):
    p = STORED.copy()
    for _ in range(3):
        p["v"] += a * p["x"]
        p["x"] += 0.1 * p["v"]
    return np.sum(p["x"])


PROGRAMS = [
    slices, masks, records, rows_of_tuples, fields_of_vectors, in_order, in_order_of_vectors, of_the_same_kind,
    fields_of_fields, beside_texts, a_copy_of_one_from_outside,
]  # fmt: skip


@pytest.mark.parametrize("f", PROGRAMS)
def test_values_and_derivatives_are_right_under_every_transform(f):
    a, h = 1.3, 1e-5
    slope = (f(a + h) - f(a - h)) / (2 * h)
    bend = (fad.grad(f)(a + h) - fad.grad(f)(a - h)) / (2 * h)
    value, derivative = fad.value_and_grad(f)(a)
    assert value == f(a)
    np.testing.assert_allclose(derivative, slope, rtol=1e-7)
    np.testing.assert_allclose(fad.jvp(f, (a,), (1.0,)), (value, derivative), rtol=1e-13)
    np.testing.assert_allclose(fad.vmap(fad.grad(f))(np.array([a, 1.5]))[0], derivative, rtol=1e-13)
    np.testing.assert_allclose(fad.jit(fad.value_and_grad(f))(a), (value, derivative), rtol=1e-13)
    np.testing.assert_allclose(fad.grad(fad.grad(f))(a), bend, rtol=1e-6, atol=1e-6)
    assert STORED["v"].tolist() == [0.0, 0.0, 0.0]


def test_one_that_is_returned_is_numpys():
    def f(a):
        p = np.zeros(2, dtype=PARTICLES)
        p["x"] = a
        return np.sum(p["x"] ** 2), p

    for g in (fad.jit(f), fad.value_and_grad(f, has_aux=True)):
        found = fad.tree.leaves(g(1.5))
        p = next(x for x in found if np.ndim(x))
        assert type(p) is np.ndarray
        assert p.tolist() == [(1.5, 0.0), (1.5, 0.0)]


def test_one_prints_as_numpys_does(capsys):
    def f(a):
        b = np.zeros(2, dtype=BODIES)
        b["position"][1] = a
        print(b, b[1], f"{b[0]}")
        return b["position"].sum()

    f(1.5)
    plain = capsys.readouterr().out
    fad.grad(f)(1.5)
    assert capsys.readouterr().out == plain


def test_one_that_is_given_as_an_argument_is_written_in_a_copy():
    def f(p, a):
        p["v"] = a * p["x"]
        return np.sum(p["v"])

    assert fad.grad(f, argnums=1)(STORED, 2.0) == 6.0
    assert STORED["v"].tolist() == [0.0, 0.0, 0.0]


def test_a_derivative_with_respect_to_one_is_one():
    def step(p):
        q = p.copy()
        q["x"] += q["v"]
        q[0]["v"] = q[1]["x"] ** 2
        return q

    ones = np.ones(3, PARTICLES)
    gradient = fad.grad(lambda p: np.sum(p["x"] ** 2 * (p["v"] + 1)))(STORED)
    assert gradient.dtype == STORED.dtype
    assert gradient.tolist() == [(2.0, 1.0), (4.0, 4.0), (6.0, 9.0)]
    wanted = [(2.0, 8.0), (2.0, 1.0), (2.0, 1.0)]
    assert fad.jvp(step, (STORED,), (ones,))[1].tolist() == fad.linearize(step, STORED)[1](ones).tolist() == wanted
    assert fad.vjp(step, STORED)[1](ones)[0].tolist() == [(1.0, 1.0), (5.0, 6.0), (1.0, 2.0)]
    with pytest.raises(fad.errors.IntegerInputError):
        fad.grad(lambda p: np.sum(p["x"]))(np.zeros(2, [("x", float), ("k", int)]))


def test_a_loop_over_fields_and_records_is_captured():
    def f(a):
        p = np.zeros(300, dtype=PARTICLES)
        p[0] = (a, 1.0)
        for i in range(1, 300):
            p[i]["x"] = p[i - 1]["x"] * 0.9 + p[i - 1]["v"] * a
            p["v"][i] = p["v"][i - 1] - 0.01 * p["x"][i]
        return np.sum(p["v"])

    compiled = fad.jit(fad.grad(f))
    np.testing.assert_allclose(compiled(0.5), fad.grad(f)(0.5), rtol=1e-12)
    assert len(fad.make_graph(f)(0.5).equations) < 100


def test_what_has_no_derivative_there_is_an_error():
    def of_bytes(a):
        p = np.zeros(2, dtype=PARTICLES)
        p["x"] = a
        return np.frombuffer(p.tobytes())[0]

    def of_global(a):
        STORED["v"] = a
        return np.sum(STORED["v"])

    for f in (of_bytes, of_global):
        with pytest.raises(fad.errors.TracerConversionError):
            fad.grad(f)(1.0)


def a_copy_by_reshape(a):
    b = np.zeros(2, BODIES)
    b["position"] = a
    flat, line = b["position"].reshape(-1), np.ravel(b["mass"])  # copies: the fields do not lie side by side
    flat[0], line[0] = 0.0, 5.0
    b["position"][0].reshape(-1)[0] = 3 * a  # a view
    return b["position"].sum() + b["mass"].sum()


def in_fortrans_order(a):
    p = np.zeros((2, 3), PARTICLES, order="F")
    p.reshape(-1)["x"] = 7.0  # a copy
    p.reshape(-1, order="F")["x"] += a
    q = np.zeros((2, 3), PARTICLES).copy(order="F")
    q.reshape(-1, order="F")["x"][1] = a
    return p["x"].sum() + q["x"][1, 0]


def views_of_all_fields(a):
    p = np.zeros((1, 3), PARTICLES)
    q, r, s = p.T, p.squeeze(), np.flip(p)
    p["x"] = a
    s["x"][0, 0] = a * a
    return q["x"].sum() + np.atleast_1d(r)["x"][2] * 2


def fields_that_change_places(a):
    p = np.ones(3, PARTICLES)
    p["x"] = a
    p[["x", "v"]] = p[["v", "x"]]
    p[1:] = p[:2][["v", "x"]]
    return (p["x"] + 10 * p["v"]).sum()


def joined_along_the_last_axis(a):
    b = np.zeros((2, 2), BODIES)
    b["mass"] = a
    q = np.concatenate([b, b], axis=-1)
    return q["mass"].sum() * q["position"].shape[2] + np.concatenate([b, b], axis=None)["mass"][5]


def records_with_arrays_in_them(a):
    p = np.zeros(2, [("m", float, (2, 2)), ("w", float)])
    p["m"][1] = a
    bodies = np.array([((a, 1), (1, a), 2.0, 3), ((1, 2), [a, 2], a, 4)], dtype=BODIES)
    bodies[:1] = [((1, a), (2, 3), a, 1)]
    return p["m"].sum() + (bodies["position"] * bodies["velocity"]).sum() * bodies["mass"].sum()


def moved(a):
    b = np.zeros(3, dtype=BODIES)
    b["mass"], b["position"] = a * np.arange(1, 4), [[a, 1], [2, a], [a, a]]
    r = [np.roll(b, 1), np.repeat(b, 2), np.take(b, [2, 0]), np.tile(b, 2), np.delete(b, 1)]
    r += [np.stack([b, b]), np.vstack([b, b])]
    w = np.where(b["mass"] > 2, b, np.roll(b, 1))
    w["mass"][0] = 9.0
    total = sum((x["mass"] * (1 + np.arange(x.shape[-1]))).sum() + (x["position"][..., 0] ** 2).sum() for x in [*r, w])
    return total + b["mass"][0]


def from_an_iterator(a):
    p = np.fromiter(((a * i, i) for i in range(3)), dtype=[("x", float), ("k", int)])
    return (p["x"] * p["k"]).sum() + np.array(p)["x"][1]


def records_are_numpys(a):
    p = np.zeros(3, PARTICLES)
    p["x"] = a
    p.dtype.names = ("v", "x")
    return sum(r["v"] for r in p if isinstance(r, np.void))


MORE = [
    a_copy_by_reshape, in_fortrans_order, views_of_all_fields, fields_that_change_places, joined_along_the_last_axis,
    from_an_iterator, records_are_numpys, records_with_arrays_in_them, moved,
]  # fmt: skip


@pytest.mark.parametrize("f", MORE)
def test_what_is_a_view_and_what_a_copy_is_as_in_numpy(f):
    f_of = lambda a: f(a)
    for g in (fad.value_and_grad(f_of), fad.jit(fad.value_and_grad(f_of))):
        value, slope = g(1.3)
        np.testing.assert_allclose(value, f(1.3), rtol=1e-14)
        np.testing.assert_allclose(slope, (f(1.3 + 1e-5) - f(1.3 - 1e-5)) / 2e-5, rtol=1e-7)
    np.testing.assert_allclose(fad.vmap(f)(np.array([1.3, 2.0])), [f(1.3), f(2.0)], rtol=1e-14)


def test_what_would_be_wrong_in_silence_is_an_error():
    def view_as_numbers(a):
        p = np.zeros(3, PARTICLES)
        q = p.view(float)
        p["x"] = a
        return q.sum()

    def fields_in_one_place(a):
        p = np.zeros(3, np.dtype({"names": ["x", "y"], "formats": [float, float], "offsets": [0, 0]}))
        p["x"] = a
        return p["y"].sum()

    def ties(a):
        b = np.zeros(3, BODIES)
        b["position"] = a
        b.sort(order="number")
        return b["position"].sum()

    for f, transform in ((view_as_numbers, fad.grad), (fields_in_one_place, fad.grad), (ties, fad.jit)):
        with pytest.raises(fad.errors.FadError):
            transform(f)(1.0)
