"""Programs at the corners of in-place writes, each shrunk from one that went wrong; as in `programs.py`."""

import numpy as np

import fad


def an_index_is_an_array_that_repeats(x):
    b = np.zeros(4)
    places = np.array([3, 1, 1, 1])
    b[places] = b[places] + x
    return np.sum(b**2)


def an_index_is_refilled_after_the_write(x):
    b = np.zeros(4)
    places = np.arange(2)
    b[places] = x[:2] ** 2
    places += 2
    b[places] = x[2:]
    return np.sum(b**2 * np.arange(1.0, 5.0))


def a_diagonal_sees_what_is_written_later(x):
    m = x.reshape(2, 2) * 1.0
    d = np.diagonal(m)
    b = np.zeros((2, 2))
    e = b.diagonal()
    m[0, 0] = x[3] ** 2
    b[1, 1] = x[2]
    return np.sum(d**2) + np.sum(e**3)


def einsum_of_a_diagonal_can_be_written(x):
    b = np.ones((2, 2))
    np.einsum("ii->i", b)[:] = x[:2]
    m = x.reshape(2, 2)
    np.einsum("ii->i", m)[:] *= 2
    return np.sum(m**2) + np.sum(b**3)


def windows_see_what_is_written_later(x):
    w = np.lib.stride_tricks.sliding_window_view(x, 2)
    x[1] = x[0] * x[3]
    return np.sum(w[:, 0] * w[:, 1])


def repetitions_are_copies(x):
    t, r, s = np.tile(x, 1), np.repeat(x, 1), np.tile(x[:1], 4)
    t[0] = r[1] = 5
    v = s.reshape(2, 2).T.ravel()
    s[:2] = x[2:]
    return np.sum(x**2) + np.sum(t * r) + np.sum(s * v)


def coordinates_of_a_grid_are_copies(x):
    xx, yy = np.meshgrid(np.arange(2.0), x[:2])
    xx[0] = x[2:]
    yy += xx
    zz = np.meshgrid(x, x)[0]
    zz.ravel()[1:5] = x[0]
    return np.sum(xx * yy) + np.sum(zz**2)


def conj_of_a_real_array_is_the_array(x):
    x.conj()[0] = x[1] ** 2
    return np.sum(x**2)


def values_of_ufunc_at_are_read_first(x):
    np.power.at(x, [[0, 0], [1, 2]], x[:2])
    return np.sum(x)


def two_results_are_written_into_arrays(x):
    whole, part = np.zeros(4), np.zeros(4)
    np.modf(x, out=(part, whole))
    np.divmod(part * x, 0.3, out=(whole, part))
    return np.sum(part * x) + np.sum(whole)


def ravel_is_a_view_of_what_lies_in_order(x):
    m, n = np.eye(2), np.zeros((2, 2), order="F")
    m[0, 0] += x[0]
    n[0, 1] = x[1]
    m.ravel()[::3] -= x[3]
    n.T.ravel()[2:] += x[2]
    n.ravel()[0] = x[0]
    np.flip(m).ravel()[1:3] += 0.5
    return np.sum(m * [[1.0, 2.0], [3.0, 4.0]]) + np.sum(n * [[1.0, 3.0], [7.0, 9.0]])


def a_view_of_a_buffer_meets_traced_values(x):
    m = np.flip(np.eye(2))
    m.T[1] = x[[3, 0]]
    m += x.reshape(2, 2)
    for row in m:
        row[1] -= 0.5
        row *= x[3]
        x[-1] *= x[1]
    return np.sum(m)


def lists_of_traced_values_are_operands(x):
    x[:2] += [x[0], x[1]]
    np.place(x, x > 3, [x[2], x[0]])
    np.putmask(x, x < 1, [x[1], 0.5])
    m = np.vstack([[x[0], 0.5], x[2:]]) * np.hstack([x[:1], [x[3]]])
    return np.sum([x[1], 2.0] * x[2:]) + np.sum(np.maximum([x[0], 9], x[2:])) + np.sum(m**2)


def batches_in_batches_write_through_methods(x):
    def put(b, i, v):
        b.__setitem__(i, v)
        return b

    rows = fad.vmap(lambda r: fad.vmap(lambda q: put(np.zeros(3), 1, q * r[0]))(r))(x.reshape(2, 2))
    return np.sum(rows**2)


def a_body_writes_into_what_it_is_given(x):
    def body(i, c):
        c[i] *= x[0]
        c[1:] += c[:-1]
        return c

    def step(c, t):
        c[0] *= t
        c[1] += c[0]
        return c, c.copy()

    last, all_of_them = fad.scan(step, x[:2] * 1.0, x)
    return np.sum(fad.fori_loop(0, 4, body, x * 1.0)) + np.sum(last) + np.sum(all_of_them**2)


def a_body_writes_into_an_array_from_outside(x):
    b, n = np.zeros(4), np.zeros(1)

    def body(i, c):
        b[i] = c**2
        n[0] += 1
        return c * x[i]

    def step(c, t):
        x[0] += t
        return c * t, c

    c = fad.fori_loop(0, 4, body, x[1] * 1.0)
    c = c + fad.cond(c > 0, lambda v: store(b, v), lambda v: v, c)
    return c + np.sum(b * n) + fad.scan(step, x[2] * 1.0, x[1:])[0] + x[0] ** 2


def store(b, v):
    b[0] = v
    return v * v


def a_checkpoint_finds_an_array_that_is_written_later(x):
    b = np.zeros(4)
    b[:] = x
    held = [b]
    again = fad.checkpoint(lambda y: np.sum(held[0] * y**2))
    total = again(x)
    b[1:] *= x[0]
    total += again(x * 1.0)
    b[:] = 0
    return total + np.sum(b * x)


def a_checkpoint_is_given_an_array_that_is_written_later(x):
    def double(y):
        c = np.zeros(4)
        c[:] = y
        c[0] *= x[1]
        return c

    b = np.zeros(4)
    b[:] = fad.checkpoint(double)(x)
    b[1] *= b[0]
    total = np.sum(fad.checkpoint(double)(b) ** 2)
    b[0] = 7
    return total


CORNERS = [
    f for name, f in list(globals().items())
    if callable(f) and getattr(f, "__module__", "") == __name__ and name not in ("store",)
]  # fmt: skip
