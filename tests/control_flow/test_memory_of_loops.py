"""What reverse mode keeps of loops: no more than it needs in a step, and no more than a limit in all."""

import os
import re
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import fad
from fad import config, control
from fad.compile.pipeline import optimise
from fad.compile.schedule.peak_memory import peak_bytes
from fad.control_flow.derivatives.checkpoints import bytes_kept, chunk_sizes
from fad.errors import MemoryLimitError

X = np.linspace(0.1, 1.0, 1000)


def long_loop(x, steps=3000):
    return np.sum(control.fori_loop(0, steps, lambda i, s: s * 0.999 + 0.001 * s * s, x))


def kept_in_a_step(f, *args):
    """Return the bytes that the steps of the one loop of a gradient hand to the backward pass."""
    graph = fad.make_graph(fad.grad(f))(*args)
    loop = next(eq for eq in graph.equations if eq.prim.name == "scan")
    body = loop.params["body"]
    return sum(body.types[o].nbytes for o in body.outputs[loop.params["carries"] :])


# --- a step ---------------------------------------------------------------------------------------------


def test_a_linear_step_keeps_nothing():
    def smoothed(a):
        def step(i, a):
            a = a.copy()
            a[1:-1] += 0.1 * (a[2:] - 2.0 * a[1:-1] + a[:-2])
            a[i] = (a[i - 1] + a[i + 1]) / 2.0
            return a

        return np.sum(control.fori_loop(1, 20, step, a) ** 2)

    a = np.linspace(0.0, 1.0, 40) ** 2
    assert kept_in_a_step(smoothed, a) == 0
    np.testing.assert_allclose(fad.jit(fad.grad(smoothed))(a), fad.grad(smoothed)(a), rtol=1e-12)


def test_a_step_keeps_its_state_and_what_is_costly():
    w, xs = 0.1 * np.eye(16), np.ones((30, 16))
    network = lambda w: np.sum(control.scan(lambda h, x: (np.tanh(w @ h + x), None), np.zeros(16), xs)[0])
    assert kept_in_a_step(network, w) == 2 * 16 * 8


@pytest.mark.parametrize(("steps", "kept"), [(20, 3), (10_000, 2)])
def test_quotients_are_computed_again_where_they_would_leave_the_cache(steps, kept):
    def gated(x):
        return np.sum(control.fori_loop(0, steps, lambda i, s: s / (1.0 + np.exp(-s)), x))

    assert kept_in_a_step(gated, X[:20]) == kept * 20 * 8
    with config.use(memory_limit="100MB"):
        assert kept_in_a_step(gated, X[:20]) == 2 * 20 * 8
    np.testing.assert_allclose(fad.jit(fad.grad(gated))(X[:20]), fad.grad(gated)(X[:20]), rtol=1e-12, atol=1e-300)


# --- the choice -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("limit", [10**9, 10**7, 10**6, 10**5])
@pytest.mark.parametrize(("steps", "state", "kept"), [(10**6, 800, 1600), (3000, 80, 4000), (77, 8, 8)])
def test_a_choice_keeps_within_the_limit_with_the_fewest_levels(limit, steps, state, kept):
    with config.use(memory_limit=limit):
        sizes = chunk_sizes(steps, "sqrt", state, kept, 0)
    assert bytes_kept(steps, sizes, state, kept) <= limit
    assert all(a > b for a, b in zip((steps, *sizes), sizes, strict=False))
    if steps * kept <= limit // 2:
        assert sizes == ()


def test_steps_that_are_left_over_are_counted():
    assert bytes_kept(10, (4,), state=100, kept=1) == 2 * 100 + 4 + 2  # two whole parts, one at work, and the rest


def test_few_steps_are_left_over():
    with config.use(memory_limit="200MB"):
        (size,) = chunk_sizes(10**6, "sqrt", 8000, 16_000, 0)
    assert 10**6 % size < size / 8


def test_without_a_limit_the_argument_checkpoint_chooses():
    assert chunk_sizes(10**6, "none", 8000, 8000, 0) == ()
    assert chunk_sizes(10**6, "sqrt", 8000, 8000, 0) == (1000,)
    assert chunk_sizes(10**6, "sqrt", 8, 8, 0) == ()
    assert chunk_sizes(10**6, "binomial", 8000, 8000, 0)[:2] == (500_000, 250_000)


def test_a_loop_is_not_cut_where_its_states_take_what_its_steps_keep():
    assert chunk_sizes(10_000, "sqrt", 10**6, 8000, 0) == ()
    assert chunk_sizes(10_000, "sqrt", 10**5, 8000, 0) == (100,)
    assert chunk_sizes(100_000, "binomial", 10**9, 8000, 0) == ()
    with config.use(memory_limit="50MB"):
        assert chunk_sizes(10_000, "sqrt", 10**5, 8000, 0) != ()


@pytest.mark.parametrize("limit", ["100MB", "5MB", "400kB"])
def test_a_limited_gradient_is_that_without_a_limit(limit):
    wanted = fad.grad(long_loop)(X[::10])
    with config.use(memory_limit=limit):
        fast = fad.jit(fad.grad(long_loop))
        for _ in range(2):
            np.testing.assert_allclose(fast(X[::10]), wanted, rtol=1e-10)
    peak = int(re.search(r"expected to take (\d+) bytes", fast.explain())[1])
    assert peak <= config.bytes_of(limit)


def test_a_limited_scan_over_rows_has_its_results_and_second_derivatives():
    xs = np.sin(np.arange(203.0))

    def f(w, reverse):
        c, ys = control.scan(lambda c, x: (np.tanh(w * c + x), c * c), 0.1 * w, xs, reverse=reverse)
        return c + np.mean(ys * ys)

    for reverse in (False, True):
        g = lambda w: fad.grad(f)(w, reverse)  # noqa: B023
        with config.use(memory_limit=9000):
            got = fad.jit(g)(0.8)
        with config.use(memory_limit=20_000):
            second = fad.jit(fad.grad(g))(0.8)
        np.testing.assert_allclose(got, g(0.8), rtol=1e-10)
        np.testing.assert_allclose(second, fad.grad(g)(0.8), rtol=1e-9)


def test_explain_says_what_is_kept_and_expected():
    with config.use(memory_limit="10MB"):
        fast = fad.jit(fad.grad(long_loop))
        fast(X)
    text = fast.explain()
    assert "not compiled yet" in text
    assert re.search(r"expected to take \d+ bytes of memory at most, beside its arguments", text)
    assert re.search(r"a scan keeps its state of 8000 bytes \d+ times, every \d+ steps, and runs these again", text)
    grows = fad.jit(fad.grad(lambda x: np.sum(control.while_loop(lambda s: s[0] < 9.0, lambda s: s * s, x))))
    grows(X + 1.0)
    assert "pushes 8000 bytes in each step onto a stack that grows" in grows.explain()


def test_a_limit_that_cannot_be_met_says_the_least_that_would_do():
    with config.use(memory_limit="50kB"), pytest.raises(MemoryLimitError, match="needs at least") as found:
        fad.jit(fad.grad(long_loop))(X)
    least = int(re.search(r"at least (\d+) bytes", str(found.value))[1])
    with config.use(memory_limit=least):
        got = fad.jit(fad.grad(long_loop))(X)
    np.testing.assert_allclose(got, fad.grad(long_loop)(X), rtol=1e-10)


def nest(x):
    for _ in range(60):
        for _ in range(20):
            x = np.sin(0.7 * x) + 0.1 * x
        x = np.cos(x)
    return np.sum(x)


def sequence(x):
    for _ in range(600):
        x = np.sin(0.7 * x) + 0.1 * x
    y = np.outer(x[:60], x[:60])
    for _ in range(300):
        y = np.sin(y)
    return np.sum(y)


@pytest.mark.parametrize("f", [nest, sequence])
def test_the_least_limit_is_that_of_all_loops_together(f):
    with config.use(memory_limit="5kB"), pytest.raises(MemoryLimitError, match="limit is 5000") as found:
        fad.jit(fad.grad(f))(X)
    least = found.value.least
    assert f"memory_limit={least})" in str(found.value)
    with config.use(memory_limit=least):
        got = fad.jit(fad.grad(f))(X)
    np.testing.assert_allclose(got, fad.grad(f)(X), rtol=1e-9)


def test_arrays_that_a_limited_program_writes_are_as_they_were():
    count = np.zeros(1)

    def f(x):
        count[0] += 1.0
        return nest(x)

    with config.use(memory_limit="5kB"), pytest.raises(MemoryLimitError):
        fad.jit(fad.grad(f))(X)
    assert count[0] == 0.0


def test_a_program_that_is_large_without_its_loops_is_an_error_too():
    f = lambda x: np.sum(long_loop(x, 100) * np.sin(np.outer(x, x)))
    with config.use(memory_limit="2MB"), pytest.raises(MemoryLimitError, match="beside its arguments"):
        fad.jit(fad.grad(f))(X)


def test_limits_are_amounts_of_memory():
    for text, amount in (("200MB", 200_000_000), ("2GiB", 2**31), ("1.5 kB", 1500), (77, 77)):
        with config.use(memory_limit=text):
            assert config.bytes_of(config.memory_limit.get()) == amount
    for wrong in ("much", 0, -1, True, 1.5, "12 apples"):
        with (
            pytest.raises(ValueError, match="memory_limit must be a positive number of bytes"),
            config.use(memory_limit=wrong),
        ):
            pass


# --- what is expected, and what is measured -------------------------------------------------------------


def test_values_live_until_they_are_last_read():
    def chain(x):
        for _ in range(5):
            x = np.cumsum(x)
        return x

    graph = optimise(fad.make_graph(chain)(X))
    assert peak_bytes(graph) == 2 * X.nbytes


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads the peak from /proc")
def test_the_expected_peak_is_that_measured():
    program = textwrap.dedent("""
        import re
        import numpy as np
        import fad

        def status(name):
            return next(int(line.split()[1]) * 1024 for line in open("/proc/self/status") if line.startswith(name))

        def f(x, steps):
            return np.sum(fad.fori_loop(0, steps, lambda i, s: s * 0.999 + 0.001 * s * s, x))

        with fad.config.use(memory_limit="60MB"):
            small, fast = (fad.jit(fad.grad(lambda x, n=n: f(x, n))) for n in (400, 3600))
            small(np.ones(100))
            small(np.ones(100))  # the compiler, and what it needs, is loaded
            x = np.ones(20_000)
            fast(x)
            before = status("VmRSS")
            with open("/proc/self/clear_refs", "w") as file:
                file.write("5")  # the peak starts again
            fast(x)
        expected = int(re.search(r"expected to take (\\d+)", fast.explain())[1])
        print(expected, status("VmHWM") - before)
    """)
    environment = {**os.environ, "MALLOC_MMAP_THRESHOLD_": "65536"}  # what is freed goes back to the system at once
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=240, check=True, env=environment
    )
    expected, measured = map(int, done.stdout.split())
    assert measured == pytest.approx(expected, rel=0.2)
