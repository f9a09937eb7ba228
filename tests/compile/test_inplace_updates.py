"""Updates of arrays run in place where nothing reads the old version, and programs cannot tell that they do."""

import random
import tracemalloc

import numpy as np
import pytest
from natively import compiled, native

import fad
from fad.compile.codegen.selection import kind_of
from fad.compile.schedule.inplace_updates import schedule_updates
from fad.compile.targets.select import using
from fad.ops.places.functional_updates import At

pytest.importorskip("llvmlite")


def program(fast):
    return next(path for signature in fast._signatures.values() for path in signature.paths).program


def in_place(fast):
    """Return how many updates of a compiled program are in place, those of its loops' bodies too."""

    def count(native):
        return len(native.memory.over) + sum(map(count, native.bodies))

    keep = program(fast).keep
    return count(keep) + sum(keep.nests)


def same(got, wanted):
    for a, b in zip(fad.tree.leaves(got), fad.tree.leaves(wanted), strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a, b)


def by_numpy(f, *args):
    """Return what the program gives as NumPy calls, which copy each array that is changed."""
    with using("numpy"):
        return fad.jit(f)(*args)


# --- random programs ---------------------------------------------------------------------------------------------

INDICES = {
    1: [3, -1, slice(2, 6), slice(None, None, 3), slice(5, None, -2), np.array([1, 4, 2]), np.array(5)],
    2: [
        (1, 2), 2, (slice(None), 1), (slice(1, 3), slice(0, 2)), (slice(None, None, 2), -1), np.array([0, 2]),
        (slice(None), np.array([1, 0])), (np.array(1), np.array(2)), (np.array(2), slice(1, 3)), (np.array(0), 1),
        (slice(0, 2), np.array(2)),
    ],
}  # fmt: skip


class Drawn:
    """A program drawn at random: updates of arrays, reads and views of several versions, and some of them as results.

    The same choices are made in every run, on whatever arrays it runs.
    """

    def __init__(self, seed, writes, loops=False):
        self.seed, self.writes, self.loops = seed, writes, loops

    def __call__(self, x, y, k):
        r = random.Random(self.seed)
        live = [x, y]
        if self.writes:
            live = [x * 1.0, y + 0.0]
        for _ in range(r.randint(3, 14)):
            self.step(r, live, k)
            del live[: max(0, len(live) - 7)]
        results = r.sample(live, min(len(live), r.randint(1, 4)))
        return tuple(results + results[: r.randint(0, 1)])

    def step(self, r, live, k):
        a = r.choice(live)
        what = r.random()
        if what < 0.5:
            live.append(self.update(r, a, live, k))
        elif what < 0.6:
            live.append(a.T if r.random() < 0.5 else a.reshape(-1) if a.ndim == 2 else a.reshape(3, 4))
        elif what < 0.7 and a.ndim == 2:
            live.append(a[:, ::-1].T[::-1])
        elif what < 0.85:
            b = r.choice([b for b in live if b.shape == a.shape])
            live.append(a * 0.5 + b)
        elif self.loops:
            live.append(self.loop(r, a, r.choice(live), k))
        else:
            live.append(a - r.choice([b for b in live if b.shape == a.shape])[::-1])

    def update(self, r, a, live, k):
        index = r.choice(INDICES[a.ndim])
        if r.random() < 0.3:
            index = (k % 3, *(() if a.ndim == 1 else (r.choice([slice(None), slice(1, 3), 1, k % 2]),)))
            index = index if len(index) > 1 else index[0]
        part = a[index]
        other = r.choice([b for b in live if b.shape == a.shape])
        value = r.choice([part * 0.75 + other[index], other[index], part + 1.0])
        if self.writes:
            if r.random() < 0.5:
                a[index] = value
            else:
                a[index] += value
            return a
        how = At(a)[index]
        return how.set(value) if r.random() < 0.5 else how.add(value)

    def loop(self, r, a, other, k):
        n, at = a.shape[0], r.randint(0, 2)
        keep, first = r.random() < 0.3, other.reshape(-1)[at]

        def body(state, i):
            a, s = state
            old = a[i - 1]
            b = At(a)[i].set(a[i] * 0.5 + old)
            s = s + (a if keep else b)[at].reshape(-1)[0]
            return (b, s), a[0] * 0.5

        (a, s), ys = fad.scan(body, (a, first), np.arange(n))
        return At(a)[0].add(s + ys[-1] + ys[0])


def arguments(n):
    r = np.random.default_rng(n)
    return r.normal(size=(3, 4)), r.normal(size=(3, 4)), n


@pytest.mark.parametrize("writes", [False, True])
@pytest.mark.parametrize("seed", range(60))
def test_a_random_program_of_updates_gives_the_bits_of_numpy(seed, writes):
    f = Drawn(seed, writes)
    with using("llvm"):
        fast = fad.jit(f)
        for n in (0, 1, 2, 0, 5):  # recorded, compiled, and called again
            x, y, _ = given = arguments(n)
            before = x.copy(), y.copy()
            got = fast(*given)
            same((x, y), before)
            kept = [np.array(g) for g in got]
            same(got, f(*given))
            fast(*arguments(n + 1))
            same(got, kept)  # no result lies in the memory of another call


@pytest.mark.parametrize("seed", range(40))
def test_a_random_program_of_updates_and_loops_gives_the_bits_of_numpy(seed):
    f = Drawn(seed, writes=False, loops=True)
    fast = compiled(f, *arguments(0))
    for n in (1, 2, 0):
        same(fast(*arguments(n)), f(*arguments(n)))


@pytest.mark.parametrize("loops", [False, True])
@pytest.mark.parametrize("seed", range(25))
def test_the_gradient_of_a_random_program_of_updates_is_the_eager_one(seed, loops):
    f = Drawn(1000 + seed, writes=not loops, loops=loops)

    def total(x, y, k):
        return sum(np.sum(np.sin(z) * (1 + j)) for j, z in enumerate(f(x, y, k)))

    g = fad.grad(total, argnums=(0, 1))
    fast = compiled(g, *arguments(0))
    for n in (1, 2, 0):
        for a, b in zip(fast(*arguments(n)), g(*arguments(n)), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)


# --- what is in place ------------------------------------------------------------------------------------------------

N = 64
STEPS = np.arange(1, N)
SCANS = {
    "set": lambda a, i: a.at[i].set(a[i] * a[i - 1]),
    "add": lambda a, i: a.at[i].add(0.5 * a[i - 1]),
    "pieces": lambda a, i: a.at[(i + np.arange(3)) % N].set(a[(i + np.arange(3)) % N] * 0.5),
    "a static piece": lambda a, i: a.at[i].set(np.sum(a[2:4]) * a[i]),
}


@pytest.mark.parametrize("name", SCANS)
def test_a_loop_changes_its_state_in_place_forwards_and_backwards(name):
    def f(a):
        return np.sum(fad.scan(lambda a, i: (SCANS[name](a, i), None), a, STEPS)[0] ** 2)

    x = np.linspace(0.5, 1.5, N)
    assert in_place(compiled(f, x)) == 1
    g = compiled(fad.grad(f), x)
    # Where index arrays say what is written, zeros absorb infinite partials: a sum that knows its zeros is a new array.
    assert in_place(g) >= (2 if name == "pieces" else 3)
    np.testing.assert_allclose(g(x), fad.grad(f)(x), rtol=1e-12)


def test_the_writes_of_a_loop_in_python_are_in_place_but_the_first():
    def f(a):
        for i in range(1, 9):
            a[i] = a[i] * a[i - 1]
            a[i : i + 2] *= 1.5
        return np.sum(a * a)

    x = np.linspace(0.5, 1.5, 32)
    fast = compiled(f, x.copy())
    assert in_place(fast) == 15  # the first copies the argument
    y, z = x.copy(), x.copy()
    np.testing.assert_allclose(fast(y), f(z), rtol=1e-13)
    g = compiled(fad.grad(f), x)
    assert in_place(g) >= 15 + 16 + 8 + 16
    np.testing.assert_allclose(g(x), fad.grad(f)(x), rtol=1e-13)


def test_nested_loops_change_one_array_in_place():
    def f(a):
        def row(i, a):
            return fad.fori_loop(1, 4, lambda j, a: a.at[i, j].set(a[i, j] + 0.5 * a[i, j - 1]), a)

        return fad.fori_loop(0, 3, row, a)

    x = np.random.default_rng(0).normal(size=(3, 4))
    fast = compiled(f, x)
    assert in_place(fast) == 2  # the inner loop takes the state of the outer one over, and the update that of the inner
    same(fast(x), by_numpy(f, x))


def test_a_while_loop_changes_its_state_in_place():
    def f(a):
        return fad.while_loop(lambda s: s[0] < 9, lambda s: (s[0] + 2, s[1].at[s[0]].add(s[1][s[0] - 1])), (1, a))[1]

    x = np.linspace(0.0, 1.0, 32)
    fast = compiled(f, x)
    assert in_place(fast) == 1
    same(fast(x), by_numpy(f, x))


def test_a_loop_does_not_take_over_an_array_in_another_order():
    def f(a):
        b = (a * 2.0).T.at[0].set(1.0)
        return fad.scan(lambda b, i: (b.at[i].add(b[i - 1]), None), b, np.arange(1, 4))[0]

    x = np.random.default_rng(0).normal(size=(3, 4))
    same(compiled(f, x)(x), by_numpy(f, x))


def test_states_that_change_places_stay_apart():
    def f(a, b):
        step = lambda s, i: ((s[1].at[i].set(s[0][i - 1] + 1.0), s[0].at[0].add(s[1][i])), s[0][0])
        return fad.scan(step, (a, b), STEPS)

    x, y = np.linspace(0.0, 1.0, N), np.linspace(2.0, 3.0, N)
    same(compiled(f, x, y)(x, y), by_numpy(f, x, y))


def test_an_old_version_that_is_a_result_is_kept():
    def f(a):
        b = a.at[1].set(3.0)
        c = b.at[2].add(b[1])
        d = c.at[:4].set(b[2:6])
        return b, d, d, b[1], c[1:3]

    x = np.linspace(0.0, 1.0, 8192)
    fast = compiled(lambda a: f(a * 2.0), x)
    same(fast(x), by_numpy(lambda a: f(a * 2.0), x))
    first, *_ = fast(x)
    kept = first.copy()
    fast(x + 1.0)
    same(first, kept)


def test_a_large_result_that_was_changed_in_place_is_handed_out_without_a_copy():
    fast = compiled(lambda a: (2.0 * a).at[3].set(1.0), np.ones(8192))
    native = program(fast).keep
    assert native.memory.root(native.graph.outputs[0]) != native.graph.outputs[0]
    y, z = fast(np.ones(8192)), fast(np.zeros(8192))
    assert not np.shares_memory(y, z)
    assert (y[0], y[3], z[0], z[3]) == (2.0, 1.0, 0.0, 1.0)


def test_an_index_out_of_range_leaves_the_argument_as_it_was():
    def f(a, i):
        a[0] = 7.0
        a[i] = 8.0
        return a * 1.0

    x = np.zeros(5)
    fast = compiled(lambda a, i: f(a * 1.0, i), x, 2)
    with pytest.raises(IndexError):
        fast(x, 5)
    assert not x.any()
    assert fast(x, 1)[1] == 8.0


def test_another_path_starts_from_the_argument():
    def f(a, i):
        b = (a * 1.0).at[i].set(5.0)
        if b[0] > 3.0:
            return b.at[1].set(a[1] + b[0])
        return b.at[2].add(a[2])

    x = np.linspace(0.0, 1.0, 8)
    fast = compiled(f, x, 0)
    for i in (1, 0, 3, 0):
        same(fast(x, i), by_numpy(f, x, i))


def test_donated_arguments_may_be_overwritten_by_the_results():
    f = fad.jit(lambda a, i: (a * 2.0).at[i].add(a[i - 1]), donate_argnums=0)
    for i in (1, 2, 3):
        x = np.arange(8192.0)
        y = f(x.copy(), i)
        want = x * 2.0
        want[i] += x[i - 1]
        same(y, want)


def test_an_update_runs_before_what_it_is_computed_from_is_overwritten():
    def step(a, b):
        part = 0.5 * a[1:-1]  # computed where it is read: in the update of b
        return At(a)[1:-1].set(0.0), At(At(b)[:-2].add(part))[2:].add(part)

    graph, _ = schedule_updates(fad.make_graph(step)(np.ones(9), np.ones(9)), kind_of)
    names = [eq.prim.name for eq in graph.equations]
    assert names.index("index_set") == len(names) - 1
    same(graph(np.arange(9.0), np.ones(9)), step(np.arange(9.0), np.ones(9)))


def test_a_view_that_is_a_result_shows_what_was_written():
    def f(a, k):
        b = (a * 1.0).T
        c = b.T
        c[k] = c[k] + 1.0
        return b, c

    x = np.arange(12.0).reshape(3, 4)
    fast = compiled(f, x, 1)
    same(fast(x, 2), f(x, 2))


def test_a_loop_over_an_array_made_by_a_program_that_writes_is_one_operation():
    def f(a):
        a[0] = 2.0
        return fad.scan(lambda s, i: (s + a[i], None), np.zeros(()), np.arange(1, 30))[0]

    fast = compiled(lambda a: f(a * 1.0), np.ones(40))
    assert program(fast).kinds.get("scan") == 1


@pytest.mark.parametrize("index", ["A[i, 1:-1]", "A[i, 3]", "A[1:-1, i]", "A[i, 1:-1, 1:-1]", "A[1:3, i, ::2]"])
def test_a_traced_number_beside_slices_and_integers_stays_native(index):
    template = eval(f"lambda i: np.s_[{index[2:-1]}]")
    rank = 3 if index.count(",") == 2 else 2

    def f(A):
        step = lambda A, i: (A.at[template(i)].set(0.5 * A[template(i - 1)]).at[template(i)].add(1.0), A[template(i)])
        return fad.scan(step, A, np.arange(1, 5))

    x = np.random.default_rng(0).normal(size=(6, 6, 6)[:rank])
    same(native(f, x), by_numpy(f, x))
    g = lambda A: fad.grad(lambda A: np.sum(np.sin(f(A)[0])))(A)
    np.testing.assert_allclose(native(g, x), by_numpy(g, x), rtol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.int32, bool])
def test_arrays_of_any_dtype_are_changed_natively(dtype):
    def f(a, i):
        b = a.copy()
        old = b[5]
        b[3] = True
        b[1:3] = b[2:4]
        b[i] = b[0]
        return b, old

    x = np.array([0, 1, 0, 0, 1, 1, 0, 1]).astype(dtype)
    same(native(f, x, 6), f(x, 6))


def test_what_is_known_of_the_values_of_a_program_grows_as_the_program_does():
    def chain(n):
        def f(x):
            y = np.zeros(x.shape)
            for k in range(n):
                x = np.sin(x) + k
            y[0] = x[0]
            return y

        with fad.config.use(loops="record"):
            return fad.make_graph(f)(np.ones(5))

    def peak(graph):
        tracemalloc.start()
        schedule_updates(graph, kind_of)
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return found

    small, middle, large = (peak(chain(n)) for n in (200, 400, 800))
    assert (large - middle) / (middle - small) < 3  # 4 where a set is kept for each value, of all that it comes from
