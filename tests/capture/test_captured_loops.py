"""Loops that are captured: each construct beside plain NumPy, under every transform, and as one operation."""

import re
import warnings

import numpy as np
import pytest
from capture.agreement import agree, report_of
from capture.loop_programs import compiled

import fad
from fad.core.tracing.values import is_zero

X = np.array([0.71, -0.42, 1.13, 0.33, 0.89])


def a_number_from_step_to_step(x):
    s = x[0]
    for _ in range(9):
        s = np.sin(s) + 0.3 * x[1]
    return s


def a_python_number_first(x):
    total = 0.0
    for i in range(5):
        total += x[i] * i
    return total


def a_vector(x):
    h = np.zeros(5)
    for _ in range(7):
        h = np.tanh(0.5 * h + x)
    return np.sum(h**2)


def writes_by_counter(x):
    y = np.zeros(5)
    for i in range(5):
        y[i] = x[i] ** 2
    return np.sum(y * x)


def writes_rows(x):
    a = np.zeros((5, 5))
    for i in range(5):
        a[i] = x * x[i]
        a[i, 1:-1] += 1.0
    return np.sum(a**2)


def recurrence_in_place(x):
    u = x.copy()
    for i in range(1, 5):
        u[i] += u[i - 1] * 0.5
        u[i] *= 1.1
    return np.sum(u**2)


def slices_in_place(x):
    u = x.copy()
    for _ in range(6):
        u[1:-1] = u[1:-1] + 0.1 * (u[2:] - 2 * u[1:-1] + u[:-2])
    return np.sum(u**3)


def backwards(x):
    s = x[0]
    for i in range(4, -1, -2):
        s = s * x[i] + i
    return s


def reversed_range(x):
    s = x[0]
    for i in reversed(range(5)):
        s = s * x[i] + 0.1 * i
    return s


def over_an_array(x):
    s = 0.0
    for v in x:
        s = s * 0.5 + v**2
    return s


def over_rows(x):
    m = np.outer(x, x) + 1.0
    s = x[0]
    for row in m:
        s = s + np.sum(np.cos(row) * x)
    return s


def zipped(x):
    s = 0.0
    for a, b in zip(x, x[::-1]):  # noqa: B905
        s = s + a * b + s * 0.1
    return s


def enumerated(x):
    s = 0.0
    for i, v in enumerate(x, 1):
        s = s + v * i
    return s


def enumerated_pairs(x):
    s = 0.0
    for i, (a, b) in enumerate(zip(x, x * 2)):  # noqa: B905
        s = s + a * b * i
    return s


def nested(x):
    s = x[0]
    for i in range(4):
        for j in range(5):
            s = s + np.sin(x[j] * i) * 0.1
    return s


def triangular(x):
    a = np.outer(x, x)
    for i in range(5):
        for j in range(i):
            a[i, j] = a[i, j] - a[j, i] * 0.5 + a[i, 0]
    return np.sum(a**2)


def triangular_upward(x):
    s = 0.0
    for i in range(5):
        for j in range(i, 5):
            s = s + x[i] * x[j] ** 2
    return s


def triangular_twice(x):
    a = np.outer(x, x) * 0.1
    for i in range(4):
        for j in range(i + 1, 5):
            for k in range(i, j):
                a[i, j] += a[i, k] * a[k, j]
    return np.sum(a)


def a_while_loop(x):
    s, n = x[0], 0
    while n < 8:
        s = s * 0.9 + x[1]
        n += 1
    return s


def until_small(x):
    v, count = x[0] ** 2 + 3.0, 0
    while v > 0.05:
        v = v * (0.8 + 0.01 * x[3])
        count += 1
    return v * x[1] + count


def an_if(x):
    s = 0.0
    for i in range(5):
        if x[i] > 0.5:
            s = s + x[i] ** 2
        else:
            s = s - x[i]
    return s


def an_if_without_else(x):
    s = x[2]
    for i in range(5):
        if x[i] < 0.5:
            s = s * x[i]
    return s


def an_elif_chain(x):
    s, n = 0.0, 0
    for i in range(5):
        if x[i] > 1.0:
            s += x[i] ** 2
            n += 1
        elif x[i] < 0 and s > 0.1:
            s -= np.exp(x[i])
        else:
            s += np.sin(x[i]) if s < 0.5 else 0.1 * x[i]
    return s * n


def ifs_on_the_counter(x):
    s = x[0]
    for i in range(9):
        if i % 3 == 0:
            s = s * x[1]
        elif i > 4 and i < 7:
            s = s + x[2]
    return s


def writes_in_branches(x):
    y = x * 1.0
    for i in range(1, 5):
        if y[i] > y[i - 1]:
            y[i] = y[i - 1] * 0.5
        else:
            y[i - 1] += y[i] * 0.25
    return np.sum(y**2)


def a_break(x):
    s = x[0]
    for i in range(50):  # noqa: B007
        s = s + 0.3 * x[2] ** 2
        if s > 3.0:
            break
        s = s * 1.01
    return s * x[1]


def a_continue(x):
    s = 0.0
    for i in range(5):
        if x[i] < 0.0:
            continue
        s = s + x[i] ** 2
    return s


def break_and_continue(x):
    s = x[0] * 0.1
    for i in range(40):
        if i % 4 == 1:
            continue
        s = s + x[2] * 0.1
        if s > 1.3:
            break
        if i % 3 == 0:
            s = s * 1.1
            continue
        s = s - 0.001
    return s**2


def a_return(x):
    s = x[0]
    for i in range(40):  # noqa: B007
        s = s + 0.2
        if s > 2.5:
            return s * x[1]
    return s


def for_else(x):
    s = x[0]
    for i in range(10):  # noqa: B007
        s = s + x[2]
        if s > 100.0:
            break
    else:
        s = s * x[1]
    return s


def a_condition_that_binds_a_name(x):
    t, n = x[0], 0
    while abs(d := t * t - x[2]) > 0.05:
        t, n = t - d / (2 * t), n + 1
    while (n := n + 1) < 9:
        t = t * x[1]
    return t * n + d


def while_with_break(x):
    s = x[0]
    while s < 50.0:
        s = s * 1.3 + x[2] ** 2
        if s > 20.0:
            break
    else:
        s = s - 100.0
    return s


def chained_comparison(x):
    s = 0.0
    for i in range(5):
        if 0.0 < x[i] <= 0.9:
            s = s + x[i] ** 3
    return s


def conditional_expression(x):
    s = 0.0
    for i in range(5):
        s = s + (x[i] ** 2 if x[i] > 0.5 else 3.0)
    return s


def or_and_not(x):
    s = 0.0
    for i in range(5):
        if not (x[i] > 1.0 or x[i] < 0.0):
            s = s + x[i] ** 2
    return s


def pythons_max_and_min(x):
    s = x[0]
    for i in range(1, 5):
        s = max(s, x[i] ** 2) + min(x[i], 0.4) + abs(x[i])
    return s


def swapped_buffers(x):
    u, v = x * 1.0, x * 0.0
    for _ in range(6):
        v[1:] = u[:-1] * 0.5
        v[0] = u[-1]
        u, v = v, u
    return np.sum(u**2) + np.sum(v)


def a_tuple_state(x):
    state = (x[0], x[1])
    for _ in range(6):
        a, b = state
        state = (a * 0.9 + b * 0.1, b - 0.2 * a)
    return state[0] * state[1]


def fibonacci_like(x):
    a, b = x[0], x[1]
    for _ in range(6):
        a, b = b, a + 0.5 * b
    return a * b


def counter_behind_the_loop(x):
    s = x[0]
    for i in range(7):  # noqa: B007
        s = s + x[1]
    return s * i


def bound_in_the_body(x):
    s = x[0]
    for i in range(6):  # noqa: B007
        t = s * 0.5
        s = t + x[2]
    return s + t


def a_square_root_that_is_not_reached(x):
    s = 0.0
    for i in range(5):
        v = x[i] - 0.3
        if v > 0:
            s = s + np.sqrt(v)
    return s


def modulo_and_wrapping(x):
    s = x[0]
    for i in range(12):
        s = s * 0.5 + x[i % 5] * x[-1 - i % 2] * x[i // 3 - 2]
    return s


CAPTURED = [
    a_number_from_step_to_step, a_python_number_first, a_vector, writes_by_counter, writes_rows, recurrence_in_place,
    slices_in_place, backwards, reversed_range, over_an_array, over_rows, zipped, enumerated, enumerated_pairs, nested,
    triangular, triangular_upward, triangular_twice, a_while_loop, until_small, an_if, an_if_without_else,
    an_elif_chain, ifs_on_the_counter, writes_in_branches, a_break, a_continue, break_and_continue, a_return, for_else,
    while_with_break, a_condition_that_binds_a_name,
    chained_comparison, conditional_expression, or_and_not, pythons_max_and_min, swapped_buffers,
    a_tuple_state, fibonacci_like, counter_behind_the_loop, bound_in_the_body, modulo_and_wrapping,
]  # fmt: skip


@pytest.mark.parametrize("f", CAPTURED, ids=lambda f: f.__name__)
def test_a_captured_loop_does_what_python_does(f):
    agree(f, X)


@pytest.mark.parametrize("f", CAPTURED, ids=lambda f: f.__name__)
def test_the_loop_is_captured(f):
    what, text = report_of(f, X)
    assert set(what) == {"captured"}, text


def test_a_derivative_that_is_not_reached_is_not_taken():
    x = np.array([0.3, 0.2, 0.5, 0.3, 1.3])
    for loops in ("capture", "record"):
        with fad.config.use(loops=loops):
            g = fad.jit(fad.grad(a_square_root_that_is_not_reached))
            for _ in range(2):
                np.testing.assert_allclose(g(x), [0, 0, 0.5 / np.sqrt(0.2), 0, 0.5], rtol=1e-12)


def test_a_number_of_pythons_that_is_kept_for_the_reverse_pass_is_differentiated_again():
    def f(x):
        m = np.outer(x, x) + 0.1
        for j in range(1, 5):
            m[(j + 1) % 5, (j + 1) % 5] = max(m[j, -1], 0.05 * j) ** 2
        return 0.1 * np.sum(m)

    x, v = np.array([0.71, -0.42, 1.13, 0.33, 0.89]), np.array([0.35, 0.62, -0.77, 0.94, -0.21])
    second = fad.grad(lambda y: np.sum(v * fad.grad(f)(y)))
    for loops in ("capture", "record"):
        with fad.config.use(loops=loops):
            compiled = fad.jit(second)
            for _ in range(2):
                np.testing.assert_allclose(compiled(x), second(x), rtol=1e-12)


def overwritten_in_an_inner_loop(x):
    A = np.outer(x, x)
    for i in range(7):
        for j in range(3):
            if j == 1:
                A[2, 2] = 0.0
        A[2] += x
        A[4] = np.sin(A[2] + A[:, i % 5])
    return np.sum(A**2)


def test_the_gradient_of_elements_overwritten_in_an_inner_loop_is_right_in_every_call():
    agree(overwritten_in_an_inner_loop, np.array([0.5, 0.9, 0.2, 0.8, 0.3]))


@pytest.mark.parametrize(("dtype", "factor"), [("i1", 2), ("u1", 3), ("i2", 1000), ("i8", 1000), ("u8", -2)])
@pytest.mark.parametrize("real", [np.float64, np.float32])
def test_the_int_of_a_narrow_integer_does_not_wrap_in_a_batch(dtype, factor, real):
    def f(x):
        s = 0.0 * x
        for i in range(5):
            k = (x * 0 + 100 + i % 2).astype(dtype)
            s = s + x * (int(k) * factor)
        return s

    X = np.array([2.0, 3.0], real)
    with fad.config.use(loops="capture"), warnings.catch_warnings():
        warnings.simplefilter("ignore", fad.errors.LoopFallbackWarning)
        fast, steep = fad.jit(fad.vmap(f)), fad.jit(fad.vmap(fad.grad(f)))
        for _ in range(2):
            np.testing.assert_array_equal(fast(X), 502 * factor * X, strict=True)
            np.testing.assert_array_equal(steep(X), np.full(2, 502 * factor, real), strict=True)


def test_the_int_of_an_element_of_narrow_integers_does_not_wrap_in_a_batch():
    def f(x):
        s = 0.0 * x
        for i in range(5):
            k = np.zeros(1, np.int8)
            k[0] = 100 + i % 2
            s = s + x * (int(k[0]) * 2)
        return s

    with fad.config.use(loops="capture"):
        fast = fad.jit(fad.vmap(fad.grad(f)))
        for _ in range(2):
            np.testing.assert_array_equal(fast(np.array([2.0, 3.0])), [1004, 1004])


def arrays_of_seven_lengths(x):
    g, c, a, f, b, e, d = (np.zeros(n) for n in (8, 4, 2, 7, 3, 6, 5))
    for i in range(2):
        g[i] = c[i] = a[i] = f[i] = b[i] = e[i] = d[i] = x[i]
    return sum(map(np.sum, (a, b, c, d, e, f, g)))


def test_the_order_of_what_a_loop_carries_does_not_depend_on_the_run():
    # kernels are found on disk by their text, and the order of a set of names differs from process to process
    assert re.findall(r"shape \((\d),", report_of(arrays_of_seven_lengths, X)[1]) == list("2345678")


def inner_loops_without_steps_in_branches(x, n=6):
    u, w = x.copy(), np.zeros(n)
    for i in range(n):
        if i != 1:
            for j in range(i + 1, n):
                w[j] += u[j] if u[j] > 0 and i < 4 else 0.5
        if x[i] > 0:
            for j in range(i + 1, n):
                if j == 2:
                    break
                u[:] = u * 0.5
    return np.concatenate([u, w])


@pytest.mark.parametrize("order", [lambda f: fad.jit(fad.vmap(f)), lambda f: fad.vmap(fad.jit(f))])
def test_a_step_that_only_some_loops_take_is_no_error_of_a_batch(order):
    xs = np.random.default_rng(0).normal(size=(2, 6))
    want = [inner_loops_without_steps_in_branches(x) for x in xs]
    np.testing.assert_allclose(order(inner_loops_without_steps_in_branches)(xs), want, rtol=1e-14)


def _sieve(x):
    n = 2000
    p = np.ones(n)
    for i in range(2, 45):
        for j in range(i * i, n, i):
            p[j] = 0.0 * x
    return x * p.sum()


def _downwards(x):
    s = 0.0
    for i in range(1, 60):
        for j in range(100, -3, -i):
            s = s + np.sin(x * j)
    return s


def _levels(x):
    y = x.copy()
    n = len(y)
    for q in range(1, 9):
        w = 3 * q
        for k in range(0, n - w, 2 * w):
            y[k] = np.tanh(y[k] + y[k + w])
    return np.sum(y)


def _sometimes_empty(x):
    s = 0.0
    for i in range(1, 60):
        for j in range(50, i, i):
            s = s + x * j
    return s


@pytest.mark.parametrize(
    ("f", "x"),
    [(_sieve, 2.0), (_downwards, 0.3), (_levels, np.linspace(0.0, 1.0, 300)), (_sometimes_empty, 2.0)],
)
def test_a_range_that_counts_by_a_number_of_known_sign_is_captured(f, x):
    with fad.config.use(loops="capture"):
        for transform in (lambda f: f, fad.grad):
            J = fad.jit(transform(f))
            for _ in range(2):
                np.testing.assert_allclose(J(x), transform(f)(x), rtol=1e-12)
            assert "recorded step by step" not in J.explain()
            assert ": captured: as many steps as it takes" in J.explain()


def test_a_range_that_may_count_by_zero_is_left_to_python():
    def f(x):
        s = 0.0
        for i in range(-20, 30):
            for j in range(50, 70, i):
                s = s + x * j
        return s

    with pytest.raises(ValueError, match="must not be zero"):
        fad.jit(f)(1.0)


def test_many_ways_within_each_other_that_write_are_compiled():
    depth = 18  # if each way were looked at once for every way around it, these would take days
    lines = ["import numpy as np", "def f(x):", "    y, z, s = x * 1.0, x * 2.0, 0.0", "    for i in range(len(x)):"]
    pad = "        "
    for d in range(depth):
        lines += [f"{pad}if x[i] > {d / depth}:", f"{pad}    y[i] = y[i] + {d}.0 * z[i]", f"{pad}    z[i] = z[i] + s"]
        pad += "    "
    lines += [f"{pad}s = s + x[i]", "    return np.sum(y) + np.sum(z) + s"]
    f, x = compiled("\n".join(lines) + "\n", "<many ways>"), np.linspace(0.0, 1.0, 40)
    with fad.config.use(loops="capture"):
        fast, steep = fad.jit(f), fad.jit(fad.grad(f))
        for _ in range(2):
            np.testing.assert_allclose(fast(x), f(x), rtol=1e-12)
            np.testing.assert_allclose(steep(x), fad.grad(f)(x), rtol=1e-10)


# What np.empty may find in memory: numbers that raise a flag of the processor whenever they are looked at.
FOUND = np.full((300, 3), 0x7FF0000000000001, np.uint64).view(float)


def test_memory_that_nobody_has_written_gives_no_warning():
    def filled(x):
        out = FOUND.copy()
        for k in range(300):
            x = x + 0.01 * np.sin(x)
            out[k] = x
        return np.sum(out)

    for transform in (fad.jit(filled), fad.jit(fad.grad(filled)), fad.grad(fad.jit(filled))):
        transform(np.ones(3)), transform(np.ones(3))
    assert not is_zero(FOUND)
    assert is_zero(np.zeros(3))


@pytest.mark.parametrize("action", ["error", "always"])
def test_what_python_warned_of_in_the_source_is_no_concern_when_it_is_captured(action):
    doc, loop = f'    "{action} \\m"', "    for _ in range(9):"
    lines = ["import numpy as np", "def f(x):", doc, loop, "        x = np.sin(x)", "    return x"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        f = compiled("\n".join(lines) + "\n", f"<unknown escape {action}>")
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter(action)
        what, text = report_of(f, X)
    assert what == ["captured"], text
    assert not seen
