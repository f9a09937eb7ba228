"""Small programs that change arrays in place, as people write them: the argument is a vector of four numbers.

Each is run by plain NumPy and by every transform. The names say which rule of NumPy's is at stake.
"""

import numpy as np
from numpy import zeros as zeros_by_name

OUTSIDE = {}


# --- augmented assignment ---------------------------------------------------------------------------------------------


def an_alias_sees_augmented_assignment(x):
    y = x
    y += x * x
    return np.sum(x)


def a_slice_writes_through(x):
    y = x[1:3]
    y *= x[0]
    return np.sum(x**2)


def ravel_of_reshape_writes_through(x):
    r = x.reshape(2, 2).ravel()
    r *= 3
    return np.sum(x**2)


def rows_of_an_iteration_are_views(x):
    for row in x.reshape(2, 2):
        row *= row[0]
    return np.sum(x**2)


def normalise(v):
    v /= np.sqrt(np.sum(v * v))


def a_helper_writes_into_its_argument(x):
    y = x * 2
    normalise(y)
    normalise(x[1:])
    return np.sum(y * np.arange(4.0)) + np.sum(x**3)


def a_list_holds_an_array_twice(x):
    y = x * 1.0
    both = [y, y]
    both[0] += 1
    both[1][0] *= x[3]
    return np.sum(y**2)


def a_difference_in_place(x):
    t = x[1:]
    t -= x[:-1]
    return np.sum(x**3)


def a_number_is_rebound(x):
    s = x[0]
    s += 5.0
    total = 0.0
    for v in x:
        total += v * s
    return total + np.sum(x)


def through_a_transpose(x):
    m = x.reshape(2, 2)
    m.T[0] += x[3]
    m.T.reshape(2, 2)[1, 0] *= 2
    return np.sum(m * m)


def astype_without_a_copy_is_the_array(x):
    y = x.astype(float, copy=False)
    y *= x[0]
    z = x.astype(float)
    z *= 100.0
    return np.sum(x**2)


def nan_to_num_without_a_copy(x):
    y = x * 1.0
    np.nan_to_num(y, copy=False)
    y *= x
    return np.sum(y)


# --- views and copies -------------------------------------------------------------------------------------------------


def a_fancy_index_is_a_copy(x):
    y = x[[1, 2]]
    y[0] = 5.0
    z = x[x > 0]
    z *= 0.0
    return np.sum(x**2) + y[1]


def a_scalar_is_a_copy_and_an_ellipsis_a_view(x):
    s = x[0]
    v = x[1, ...]
    w = x[2:3]
    v *= 3.0
    w += s
    return np.sum(x**2) * s


def ravel_of_a_transpose_is_a_copy(x):
    m = x.reshape(2, 2)
    r = m.T.ravel()
    r *= 0.0
    s = m.ravel()
    s[1] = x[0] ** 2
    return np.sum(x**2) + np.sum(r)


def views_of_views(x):
    m = x.reshape(2, 2)
    for v in (m[::-1].T[0], np.flip(m)[0], np.swapaxes(m, 0, 1)[1:], np.squeeze(m[None])[0], np.split(m, 2)[1]):
        v += x[0] * 0.5
    m[:, None][1] *= x[3]
    np.atleast_2d(x)[0, 1] = x[2] * x[0]
    np.expand_dims(x, 0)[0, 3] += x[1]
    return np.sum(x**2)


def copies_stay_what_they_were(x):
    for c in (np.array(x), x.copy(), x.flatten(), +x, x.astype(float), np.copy(x)):
        c[:] = 7.0
    return np.sum(x**2)


def the_same_object(x):
    for a in (np.asarray(x), np.asanyarray(x), np.ascontiguousarray(x), np.atleast_1d(x)):
        a *= 1.5
    return np.sum(x**2)


def layout_decides_what_ravel_is(x):
    f = np.asfortranarray(x.reshape(2, 2) * 1.0)
    r = f.T.ravel()
    r[0] = x[3] ** 2
    s = f.ravel()
    s[1] = 100.0
    return np.sum(f * np.array([[1.0, 2.0], [3.0, 4.0]]))


def copies_of_arrays_without_traced_values(x):
    b = np.zeros(4)
    c, d, e = b.copy(), np.array(b), b.astype(float)
    b[1] = 2.0
    c[2] = 3.0
    d[:] = x
    e[0] = x[1]
    return np.sum((b + c + d) * x) + np.sum(e * np.arange(4.0)) + np.sum(b * e)


def a_copy_taken_between_writes(x):
    b = np.zeros(4)
    kept = []
    for i in range(4):
        b[i] = x[i] * (1.0 if i == 0 else b[i - 1])
        kept.append(b.copy())
    return np.sum(np.stack(kept) * np.arange(16.0).reshape(4, 4))


# --- order and overlap ------------------------------------------------------------------------------------------------


def overlap_reads_the_old_values(x):
    x[1:] = x[:-1] * 2.0
    x[1:] += x[:-1]
    return np.sum(x**2 * np.arange(1.0, 5.0))


def a_swap_of_numbers(x):
    x[0], x[1] = x[1], x[0]
    return np.sum(x**2 * np.arange(1.0, 5.0))


def a_swap_of_views_is_none(x):
    a, b = x[:2], x[2:]
    a[:], b[:] = b, a
    return np.sum(x**2 * np.arange(1.0, 5.0))


def masks_and_slices(x):
    y = x * 1.0
    y[x > 2] *= 2.0
    y[1:] *= x[0]
    y[x < 2] = x[3]
    return np.sum(y**2)


def duplicates_in_an_index(x):
    y = x * 1.0
    y[[0, 0, 1]] += x[1:]
    y[[2, 2]] = x[:2]
    np.add.at(y, [3, 3, 0], x[:3])
    return np.sum(y**2)


def saved_then_overwritten(x):
    y = np.sin(x)
    z = y * y
    y[:] = 0.0
    e = np.exp(x * 0.1)
    e *= e
    return np.sum(z) + np.sum(e) + np.sum(y)


def an_error_leaves_what_was_written_before(x):
    b = np.zeros(2)
    try:
        b[0] = x[0] ** 2
        b[5] = 1.0
    except IndexError:
        b[1] = x[1]
    return b[0] * b[1]


# --- buffers ----------------------------------------------------------------------------------------------------------


def a_recurrence_in_a_buffer(x):
    b = np.zeros(4)
    for i in range(4):
        b[i] = x[i] ** 2 + (b[i - 1] if i else 0.0)
    return np.sum(b * b)


def buffers_of_every_kind(x):
    buffers = [np.empty(4), np.ones(4), np.full(4, 2.0), np.zeros_like(x), np.arange(4.0), np.linspace(0, 1, 4),
               np.ones(4) * 3, np.eye(4)[1], np.array([1.0, 2.0, 3.0, 4.0]), np.copy(np.ones(4)), np.ndarray((4,)),
               zeros_by_name(4)]  # fmt: skip
    total = 0.0
    for k, b in enumerate(buffers):
        b[:] = x if k in (0, 10) else b
        b[k % 4] = x[0] * k
        b[1:3] += x[:2]
        total = total + np.sum(b * b)
    return total


def arrays_of_traced_numbers(x):
    c, s = np.cos(x[0]), np.sin(x[0])
    rotation = np.array([[c, -s], [s, c]])
    rotation[0, 0] = x[1]
    row = np.array([x[2], 1.0])
    filled = np.full(2, x[3])
    filled[0] *= 2.0
    return np.sum(rotation @ row * filled) + np.sum(np.r_[x, 1.0]) + np.mean([x[0], x[1] ** 2])


def lists_are_written(x):
    b = np.zeros((2, 2))
    b[0] = [x[0], 1.0]
    b[1] = (2.0, x[1] * x[2])
    return np.sum(b**2)


def scratch_arrays_refilled(x):
    mask, sign, total = np.zeros(4, bool), np.ones(4), 0.0
    for k in range(4):
        mask[k] = True
        total = total + np.sum(np.where(mask, x, 0.0) * x) + np.sum(sign * x**k)
        sign *= -1
    mask = np.array([True, False, True, False])
    total = total + np.sum(np.where(mask, x, 0.0))
    np.logical_not(mask, out=mask)
    return total + np.sum(np.where(mask, x, 0.0) * x)


def buffers_in_containers(x):
    class Grid:
        def __init__(self):
            self.cells = {"a": [np.zeros(2), np.ones(2)]}

    grid = Grid()
    grid.cells["a"][0][1] = x[0] * x[1]
    grid.cells["a"][1] *= x[2:]
    return np.sum(grid.cells["a"][0] + grid.cells["a"][1])


def broadcasting_on_writes(x):
    m = np.zeros((3, 4))
    m[:] = x
    m[1:2] *= x[None]
    m[2, 1:] = x[0]
    m[:, 0] = x[1:][None]
    return np.sum(m**2)


def a_narrow_buffer_rounds(x):
    b = np.zeros(4, np.float32)
    b[:] = x
    b[1:] *= b[:-1]
    return np.sum(b.astype(float))


def complex_parts_are_written(x):
    z = x + 1j * x[::-1]
    z.imag = x[1]
    z.real[0] = x[3] ** 2
    z[1:].imag *= 2.0
    return np.sum(np.abs(z) ** 2 * np.arange(1.0, 5.0))


# --- functions that write ---------------------------------------------------------------------------------------------


def out_arguments(x):
    b, c = np.empty_like(x), np.zeros(4)
    np.multiply(x, x, out=b)
    np.add(b, 1.0, out=b)
    np.sin(b, out=c, where=x > 1.5)
    np.cumsum(b, out=x)
    np.clip(x, 1.0, 40.0, out=x)
    np.matmul(np.ones((2, 2)) * x[0], b[:2], out=c[1:3])
    return np.sum(c * x) + np.sum(x * b)


def functions_that_write(x):
    a = np.zeros((2, 4))
    np.copyto(a[0], x, where=x > 1.5)
    np.copyto(a[1], x[0])
    np.put(a, [0, -3], x[2:])
    np.putmask(a, a == 0.0, x[3] * 0.5)
    np.fill_diagonal(a, x[1])
    np.put_along_axis(a, np.array([[3], [2]]), x[0] * x[1], axis=1)
    np.multiply.at(a, (np.array([0, 0]), np.array([2, 2])), x[:2])
    np.subtract.at(a, (0, [1, 1]), x[1:3])
    return np.sum(a * np.arange(8.0).reshape(2, 4) * a)


def methods_that_write(x):
    y = np.array([x[2], x[0] * 0.5, x[3], x[1]])
    y.sort()
    b = np.zeros(4)
    b.fill(x[0])
    b.put([1, 2], x[2:])
    b.flat[3] = x[1] ** 2
    m = y.reshape(2, 2)
    m.flat = b * 2.0
    m.T[1, 0] += x[3]
    return np.sum(y * b * np.arange(1.0, 5.0))


# --- textbook programs ------------------------------------------------------------------------------------------------


def heat_equation(x):
    u = np.zeros(8)
    u[2:6] = x
    for _ in range(3):
        u[1:-1] += 0.1 * (u[2:] - 2 * u[1:-1] + u[:-2])
    return np.sum(u**2)


def gauss_seidel(x):
    a, b = np.diag(x + 5.0) + 0.5, np.ones(4)
    y = np.zeros(4)
    for _ in range(3):
        for i in range(4):
            y[i] = (b[i] - a[i, :i] @ y[:i] - a[i, i + 1 :] @ y[i + 1 :]) / a[i, i]
    return np.sum(y * x)


def lu_without_pivots(x):
    a = np.diag(x + 3.0) + np.outer(x, x) * 0.1
    n = 4
    for k in range(n):
        a[k + 1 :, k] /= a[k, k]
        a[k + 1 :, k + 1 :] -= np.outer(a[k + 1 :, k], a[k, k + 1 :])
    return np.sum(np.log(np.abs(np.diag(a))))


def edit_distance(x):
    d = np.zeros((4, 4))
    for i in range(1, 4):
        for j in range(1, 4):
            d[i, j] = abs(x[i] - x[j - 1]) + min(d[i - 1, j], d[i, j - 1], d[i - 1, j - 1])
    return d[-1, -1]


def kalman_filter(x):
    m, p = 0.0, 1.0
    history = np.zeros((4, 2))
    for t in range(4):
        p = p + 0.1
        k = p / (p + x[0] ** 2)
        m = m + k * (x[t] - m)
        p = (1 - k) * p
        history[t] = m, p
    return np.sum(history[:, 0] ** 2 + np.log(history[:, 1]))


def kalman_filter_with_histories(x):
    n = 4
    f, h = np.array([[1.0, 0.1], [0.0, 1.0]]), np.array([[1.0, 0.0]])
    means, covariances = np.zeros((n + 1, 2)), np.zeros((n + 1, 2, 2))
    innovations = np.empty(n)
    covariances[0] = np.eye(2)
    q = np.eye(2) * 0.01
    q[1, 1] *= x[1]
    for t in range(n):
        m, p = f @ means[t], f @ covariances[t] @ f.T + q
        innovations[t] = x[t] - (h @ m)[0]
        gain = p @ h.T / ((h @ p @ h.T)[0, 0] + x[0] ** 2)
        means[t + 1] = m + gain[:, 0] * innovations[t]
        covariances[t + 1] = p
        covariances[t + 1] -= gain @ h @ p
    return np.sum(innovations**2) + np.sum(covariances[-1]) + np.sum(means[:, 1] ** 2)


def n_bodies(x):
    position, velocity = np.zeros((3, 2)), np.zeros((3, 2))
    position[0], position[1], position[2, 1] = x[:2], -x[2:], x[0] * 2
    mass = np.array([1.0, x[3], 0.5])
    acceleration = np.zeros_like(position)
    energy = np.empty(3)
    for step in range(3):
        acceleration[...] = 0.0
        for i in range(3):
            for j in range(3):
                if i != j:
                    d = position[j] - position[i]
                    acceleration[i] += mass[j] * d / (np.sum(d * d) + 0.1) ** 1.5
        velocity += 0.05 * acceleration
        position += 0.05 * velocity
        energy[step] = 0.5 * np.sum(mass[:, None] * velocity**2)
    return np.sum(energy) + np.sum(position[0] * position[1])


def wave_equation_in_two_dimensions(x):
    before, now, after = np.zeros((3, 6, 6))
    now[2:4, 2:4] = x.reshape(2, 2)
    before[:] = now
    for _ in range(4):
        after[1:-1, 1:-1] = 2 * now[1:-1, 1:-1] - before[1:-1, 1:-1]
        after[1:-1, 1:-1] += 0.2 * x[0] * (now[2:, 1:-1] + now[:-2, 1:-1] + now[1:-1, 2:] + now[1:-1, :-2])
        after[1:-1, 1:-1] -= 0.8 * x[0] * now[1:-1, 1:-1]
        before, now, after = now, after, before
    return np.sum(now**2) + np.sum(now[2])


def lu_with_pivots(x):
    a = np.outer(x, x[::-1]) + np.diag([0.1, 1.0, 2.0, 3.0])
    b = x**2
    for k in range(4):
        p = k + int(np.argmax(np.abs(a[k:, k])))
        a[[k, p]] = a[[p, k]]
        b[k], b[p] = b[p], b[k]
        for i in range(k + 1, 4):
            a[i, k] /= a[k, k]
            a[i, k + 1 :] -= a[i, k] * a[k, k + 1 :]
            b[i] -= a[i, k] * b[k]
    for k in reversed(range(4)):
        b[k] = (b[k] - a[k, k + 1 :] @ b[k + 1 :]) / a[k, k]
    return np.sum(b * np.arange(1.0, 5.0))


def most_likely_path(x):
    score, back = np.zeros((4, 3)), np.zeros((4, 3), int)
    change = np.log(np.array([[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.1, 0.1, 0.8]]))
    for t in range(1, 4):
        for s in range(3):
            candidates = score[t - 1] + change[:, s]
            back[t, s] = np.argmax(candidates)
            score[t, s] = candidates[back[t, s]] - (x[t] - s * x[0]) ** 2
    return np.max(score[-1])


def bubble_sort(x):
    for i in range(4):
        for j in range(3 - i):
            if x[j] < x[j + 1]:
                x[j], x[j + 1] = x[j + 1], x[j]
    return np.sum(x * np.arange(4.0) ** 2)


PROGRAMS = [
    f for name, f in list(globals().items())
    if callable(f) and getattr(f, "__module__", "") == __name__ and name not in ("normalise",)
]  # fmt: skip
