"""A write costs what it touches, in time and in memory, whatever the size of the array."""

import time
import tracemalloc

import numpy as np
import pytest

import fad
from fad.compile.pipeline import optimise
from fad.core.tracing import layers, views
from fad.ops.places import indexing
from fad.transforms.reverse import overwrites

STEPS = 1000


def elements(x):
    for t in range(1, STEPS):
        x[t] = x[t] * x[t - 1]
    return x


def augmented_elements(x):
    for t in range(1, STEPS):
        x[t] += 0.5 * x[t - 1]
        x[t] /= 1.5
    return x


def slices(x):
    for t in range(STEPS - 9):
        x[t : t + 8] = x[t : t + 8] * x[t + 1 : t + 9]
    return x


def augmented_slices(x):
    for t in range(STEPS - 9):
        x[t : t + 8] *= x[t + 1 : t + 9]
    return x


def rows_of_a_view(x):
    rows = x.reshape(-1, 8)
    for t in range(STEPS):
        row = rows[t % 100]
        row[1] = row[0] * row[2]
        row *= 0.9
    return x


def elements_of_a_large_view(x):
    y = x[1:]
    for t in range(1, STEPS):
        y[t] = y[t] * y[t - 1]
    return x


def elements_by_product(x):
    for t in range(10, STEPS):
        x[t] -= np.dot(x[t - 8 : t], x[t - 8 : t]) / 16
    return x


def index_arrays(x):
    for t in range(STEPS):
        i = [t % 500, 501, 502]
        x[i] = x[i] * 1.01
    return x


def masks_of_a_few_elements(x):
    mask = np.array([True, False] * 4)
    for t in range(STEPS - 9):
        x[t : t + 8][mask] *= 0.9
    return x


def a_buffer_made_inside(x):
    y = np.zeros(x.shape)
    for t in range(1, STEPS):
        y[t] = x[t] + 0.5 * y[t - 1]
    return y


PROGRAMS = [
    elements, augmented_elements, slices, augmented_slices, rows_of_a_view, elements_of_a_large_view,
    elements_by_product, index_arrays, masks_of_a_few_elements, a_buffer_made_inside,
]  # fmt: skip
EVERY = pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)


def reverse(f, x):
    return lambda: fad.grad(lambda v: np.sum(f(v)))(x)


def forward(f, x):
    return lambda: fad.jvp(f, (x,), (x,))


def batch_in_reverse(f, x):
    return lambda: fad.vmap(fad.grad(lambda v: np.sum(f(v))))(np.stack([x, 0.9 * x]))


def batch_in_forward(f, x):
    return lambda: fad.vmap(lambda v: fad.jvp(f, (v,), (x,)))(np.stack([x, 0.9 * x]))


def batch_of_batches(f, x):
    return lambda: fad.vmap(fad.vmap(f))(np.stack([[x, 0.9 * x]] * 2))


def rows_of_the_jacobian(f, x):
    return lambda: fad.vmap(fad.vjp(f, x)[1])(np.stack([x, 0.9 * x]))


def sum_of_a_batch(f, x):
    return lambda: fad.grad(lambda v: np.sum(fad.vmap(f)(v)))(np.stack([x, 0.9 * x]))


def forward_over_reverse(f, x):
    return lambda: fad.jvp(fad.grad(lambda v: np.sum(f(v))), (x,), (x,))


def forward_over_forward(f, x):
    return lambda: fad.jvp(lambda v: fad.jvp(f, (v,), (x,))[1], (x,), (x,))


def reverse_over_forward(f, x):
    return lambda: fad.grad(lambda v: np.sum(fad.jvp(f, (v,), (x,))[1]))(x)


def reverse_over_reverse(f, x):
    return lambda: fad.grad(lambda v: np.dot(fad.grad(lambda u: np.sum(f(u)))(v), x))(x)


NESTED = [
    batch_in_reverse, batch_in_forward, batch_of_batches, rows_of_the_jacobian, sum_of_a_batch, forward_over_reverse,
    forward_over_forward, reverse_over_forward, reverse_over_reverse,
]  # fmt: skip


def seconds(run):
    """Return the least of the processor's seconds that some runs take."""
    run()
    found = []
    for _ in range(4):
        start = time.process_time()
        run()
        found.append(time.process_time() - start)
    return min(found)


def times(f, transform):
    """Return the times for a small and a large array."""
    rng = np.random.default_rng(0)
    return [seconds(transform(f, rng.uniform(0.5, 1.0, n))) for n in (1024, 65536)]


@EVERY
@pytest.mark.parametrize("transform", [reverse, forward])
def test_no_write_computes_the_whole_array_again(f, transform, monkeypatch):
    """Times are shown by running this file; that no step copies the array is what a test can hold."""
    whole, updated, copy = [], indexing._update, views.copy_layout
    monkeypatch.setattr(indexing, "_update", lambda *args: whole.append("updated") or updated(*args))
    monkeypatch.setattr(overwrites, "copy_layout", lambda x: whole.append("copied") or copy(x))
    transform(f, np.random.default_rng(0).uniform(0.5, 1.0, 1024))()
    assert len(whole) <= 4, f"{len(whole)} copies of the array in {STEPS} steps"


# Half of the transforms for each program, those of the next one the others.
OF_FEW_ELEMENTS = [f for f in PROGRAMS if f not in (index_arrays, masks_of_a_few_elements)]


@pytest.mark.parametrize(
    ("f", "transform"), [(f, nested) for k, f in enumerate(OF_FEW_ELEMENTS) for nested in NESTED[k % 2 :: 2]]
)
def test_no_write_computes_the_whole_array_again_under_several_transforms(f, transform, monkeypatch):
    n = 1024
    whole, updated, copy = [], indexing._update, views.copy_layout
    note = lambda x, what: whole.append(what) if x.size >= n - 1 else None
    monkeypatch.setattr(indexing, "_update", lambda x, *args: note(x, "updated") or updated(x, *args))
    for module in (overwrites, layers):
        monkeypatch.setattr(module, "copy_layout", lambda x: note(x, "copied") or copy(x))
    transform(f, np.random.default_rng(0).uniform(0.5, 1.0, n))()
    assert len(whole) <= 16, f"{len(whole)} copies of the array in {STEPS} steps"


def test_gradients_of_a_batch_of_written_rows_take_the_memory_of_a_few_arrays():
    p, v = np.ones((40, 5)), np.ones(5)

    def f(p):
        y = np.zeros((600, 5))
        y[0] = p
        for i in range(599):
            y[i + 1] = y[i] + 0.001 * np.sin(y[i])
        return np.sum(y)

    of_each = lambda: fad.vmap(fad.grad(f))(p)
    of_all = lambda: fad.grad(lambda p: np.sum(fad.vmap(f)(p)))(p)
    for run in (of_each, of_all, lambda: fad.vmap(lambda p: fad.jvp(f, (p,), (v,))[1])(p)):
        tracemalloc.start()
        run()
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < 20 * 8 * 40 * 600 * 5  # a version of y for each step would be 576 MB


def whole_arrays_in_steps(graph, n, in_loop=False):
    """Return the operations in bodies of loops that make a value of about n elements and are no write into one."""
    found = []
    for eq in graph.equations:
        bodies = [eq.params["body"]] if eq.prim.archetype == "loop" else eq.params.get("branches", ())
        for body in bodies:
            found += whole_arrays_in_steps(body, n, in_loop or eq.prim.archetype == "loop")
        large = any(graph.types[o].size >= n - 8 for o in eq.outs)
        if in_loop and large and not bodies and eq.prim.name not in ("index_set", "index_add"):
            found.append(eq.prim.name)
    return found


@pytest.mark.parametrize("f", [f for f in PROGRAMS if f is not masks_of_a_few_elements], ids=lambda f: f.__name__)
def test_no_step_of_a_compiled_gradient_computes_the_whole_array(f):
    n = 4096
    x = np.random.default_rng(0).uniform(0.5, 1.0, n)
    g = fad.jit(fad.grad(lambda v: np.sum(f(v * 1.0) ** 2)))
    g(x), g(x)
    (path,) = g._quick.values()
    graph = optimise(path.graph)
    assert any(eq.prim.archetype == "loop" for eq in graph.equations)  # but for masks, whose loop is not captured
    assert whole_arrays_in_steps(graph, n) == []


def test_the_tape_of_many_small_writes_keeps_what_they_touched():
    x = np.random.default_rng(0).uniform(0.5, 1.0, 1 << 17)  # 1 MiB

    def f(x):
        for t in range(1, 10_000):
            x[t] = x[t] * x[t - 1]
        return np.sum(x)

    tracemalloc.start()
    fad.grad(f)(x)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 10 * x.nbytes + 10_000 * 2_000


def test_forward_mode_keeps_no_version_of_an_array_for_its_mask():
    x = np.random.default_rng(0).uniform(0.5, 1.0, 1 << 15)  # 256 KiB
    places = np.array([3, 17, 40])

    def f(x):
        y = np.zeros(x.size)
        for t in range(300):
            np.add.at(y, places, x[places] * x[t])
        return np.sum(y**2)

    for run in (lambda: fad.jvp(f, (x,), (x,)), lambda: fad.jvp(fad.grad(f), (x,), (x,))):
        tracemalloc.start()
        run()
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < 40 * x.nbytes


def test_to_record_the_gradient_of_writes_takes_the_memory_of_a_few_arrays():
    y = np.zeros((600, 50))

    def f(x):
        y = np.zeros((600, 50))
        y[0] = x
        for i in range(599):
            y[i + 1] = y[i] + 0.001 * np.sin(y[i])
        return np.sum(y)

    tracemalloc.start()
    with fad.config.use(loops="record"):
        graph = fad.make_graph(fad.grad(f))(np.ones(50))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(graph) > 600
    assert peak < 20 * y.nbytes + 600 * 20_000  # a version of y for each step would be 144 MB


def test_masks_of_many_writes_are_no_deep_nest_of_functions():
    def f(x):
        y = np.zeros(5)
        for i in range(400):
            np.add.at(y, [i % 5, (i * 7) % 5], x[0] * i)
        return np.sum(y**2)

    slope = sum(np.sum(np.bincount([i % 5, (i * 7) % 5], minlength=5) * i * np.eye(5), 1) for i in range(400))
    np.testing.assert_allclose(fad.hessian(f)(np.ones(2)), [[2 * np.sum(slope**2), 0.0], [0.0, 0.0]])


if __name__ == "__main__":
    for f in PROGRAMS:
        for transform in (reverse, forward):
            small, large = times(f, transform)
            print(f"{f.__name__:26} {transform.__name__:8} {small / STEPS * 1e6:6.1f} us {large / small:5.2f}")


def _reads_after_the_whole(x):
    """Return the sum of an array and of what a loop reads of it, element by element."""
    total = 0.0
    for i in range(x.shape[0]):
        total = total + np.tanh(x[i, i])
    return x + total


@pytest.mark.parametrize("outer", ["grad", "jvp"])
def test_second_derivatives_of_many_reads_take_the_memory_of_a_few_arrays(outer):
    x, w = np.random.default_rng(0).normal(size=(2, 300, 300))
    gradient = fad.grad(lambda x: np.sum(_reads_after_the_whole(x) * w))
    twice = {
        "grad": fad.grad(lambda x: np.vdot(gradient(x), w)),
        "jvp": lambda x: fad.jvp(gradient, (x,), (w,))[1],
    }[outer]
    tracemalloc.start()
    found = twice(x)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    on_diagonal = np.tanh(np.diag(x))
    expected = np.diag(np.sum(w) * -2 * on_diagonal * (1 - on_diagonal**2) * np.diag(w))
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-9)
    assert peak < 20 * x.nbytes
