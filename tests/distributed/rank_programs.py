"""Programs of several ranks, each beside the serial program that it must equal, in every mode.

A case is a function of what is the same on all ranks and of each rank's own, ``case(comm, w, x)``, and the function
of the whole, ``whole(n, w, xs)``, that gives what all ranks return, stacked.
"""

import numpy as np

import fad
from fad import distributed as D


def data(rank, shape=(4,), seed=0):
    return np.random.default_rng(100 * seed + int(rank)).uniform(0.5, 1.5, shape)


def all_data(n, shape=(4,), seed=0):
    return np.stack([data(r, shape, seed) for r in range(n)])


def _roll(n, xs, by, wrap):
    rows = [xs[(r - by) % n] if wrap or 0 <= r - by < n else np.zeros_like(xs[0]) for r in range(n)]
    return np.stack(rows)


def _only(n, root, y):
    return np.stack([y if r == root else np.zeros_like(y) for r in range(n)])


def _same(n, y):
    return np.stack([y] * n)


def _parts(n, xs):
    """Cut the first axis of each rank's array of length 12 in as many parts as there are ranks."""
    return xs.reshape(n, n, 12 // n, *xs.shape[2:])


def _ring(n):
    return [(r, (r + 1) % n) for r in range(n)]


def _message(comm, x):
    """Send along the line of ranks, one after the other."""
    n, rank = comm.size, int(comm.rank)
    if rank + 1 < n:
        comm.send(np.cos(x), rank + 1)
    return comm.recv(x, rank - 1) if rank else x * 0


SHAPE = (12,)
CASES = {
    "sum": (lambda c, x: c.all_reduce(x), lambda n, xs: _same(n, np.sum(xs, 0))),
    "mean": (lambda c, x: c.all_reduce(x, "mean"), lambda n, xs: _same(n, np.mean(xs, 0))),
    "max": (lambda c, x: c.all_reduce(x, "max"), lambda n, xs: _same(n, np.max(xs, 0))),
    "min": (lambda c, x: c.all_reduce(x, "min"), lambda n, xs: _same(n, np.min(xs, 0))),
    "prod": (lambda c, x: c.all_reduce(x, "prod"), lambda n, xs: _same(n, np.prod(xs, 0))),
    "all_gather": (lambda c, x: c.all_gather(x), lambda n, xs: _same(n, xs)),
    "all_gather_tiled": (lambda c, x: c.all_gather(x.reshape(3, 4), axis=1, tiled=True),
                         lambda n, xs: _same(n, np.concatenate(list(xs.reshape(n, 3, 4)), axis=1))),
    "all_gather_varying": (lambda c, x: c.all_gather(x, varying=True), lambda n, xs: _same(n, xs)),
    "reduce_scatter": (lambda c, x: c.reduce_scatter(x, tiled=True),
                       lambda n, xs: np.sum(_parts(n, xs), 0)),
    "reduce_scatter_mean": (lambda c, x: c.reduce_scatter(x.reshape(c.size, -1), "mean"),
                            lambda n, xs: np.mean(_parts(n, xs), 0)),
    "all_to_all": (lambda c, x: c.all_to_all(x), lambda n, xs: np.swapaxes(_parts(n, xs), 0, 1).reshape(n, 12)),
    "broadcast": (lambda c, x: c.broadcast(x, c.size - 1), lambda n, xs: _same(n, xs[n - 1])),
    "reduce": (lambda c, x: c.reduce(x, c.size - 1), lambda n, xs: _only(n, n - 1, np.sum(xs, 0))),
    "reduce_max": (lambda c, x: c.reduce(x, 0, "max"), lambda n, xs: _only(n, 0, np.max(xs, 0))),
    "gather": (lambda c, x: c.gather(x, 0), lambda n, xs: _only(n, 0, xs)),
    "scatter": (lambda c, x: c.scatter(x.reshape(c.size, -1), 0), lambda n, xs: xs[0].reshape(n, -1)),
    "permute": (lambda c, x: c.shift(x), lambda n, xs: _roll(n, xs, 1, True)),
    "permute_line": (lambda c, x: c.shift(x, wrap=False), lambda n, xs: _roll(n, xs, 1, False)),
    "permute_edge": (lambda c, x: c.shift(x, -1, wrap=False) if c.rank + 1 < c.size else c.shift(x, -1, wrap=False) * 0,
                     lambda n, xs: _roll(n, xs, -1, False)),
    "send_recv": (_message, lambda n, xs: _roll(n, np.cos(xs), 1, False)),
    "pytree": (lambda c, x: sum(c.all_reduce({"a": x, "b": [x * x]})["b"]), lambda n, xs: _same(n, np.sum(xs * xs, 0))),
    "start_all_reduce": (lambda c, x: _overlapped(c, c.start_all_reduce(x, "mean"), x),
                         lambda n, xs: np.mean(xs, 0) * np.sin(xs)),
    "start_all_gather": (lambda c, x: c.start_all_gather(x).wait(), lambda n, xs: _same(n, xs)),
    "start_reduce_scatter": (lambda c, x: c.start_reduce_scatter(x.reshape(c.size, -1)).wait(),
                             lambda n, xs: np.sum(_parts(n, xs), 0)),
    "start_all_to_all": (lambda c, x: c.start_all_to_all(x).wait(),
                         lambda n, xs: np.swapaxes(_parts(n, xs), 0, 1).reshape(n, 12)),
    "start_permute": (lambda c, x: _overlapped(c, c.start_permute(x, _ring(c.size)), x),
                      lambda n, xs: _roll(n, xs, 1, True) * np.sin(xs)),
    "barrier": (lambda c, x: (c.barrier(), x)[1], lambda n, xs: xs),
}  # fmt: skip


def _overlapped(comm, handle, x):
    y = np.sin(x)
    return handle.wait() * y


def programs(name):
    """Return the loss of the ranks, ``(comm) -> (w, x) -> loss``, and the serial one, ``(n) -> (w, xs) -> loss``."""
    case, whole = CASES[name]

    def ranks(comm):
        def loss(w, x):
            y = case(comm, np.sin(w * x) + 1.5)
            weight = np.cos(comm.rank + np.arange(y.size, dtype=float)).reshape(y.shape)
            return comm.all_reduce(np.sum(weight * y**2) + np.sum(w)) / comm.size

        return loss

    def serial(n):
        def loss(w, xs):
            ys = whole(n, np.sin(w * xs) + 1.5)
            weights = [np.cos(r + np.arange(ys[0].size, dtype=float)).reshape(ys[0].shape) for r in range(n)]
            return sum(np.sum(weights[r] * ys[r] ** 2) for r in range(n)) / n + np.sum(w)

        return loss

    return ranks, serial


W = np.linspace(0.3, 0.9, 12)


def _close(a, b):
    np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-11)


def value_and_gradients(comm, name):
    """The value, and the gradients by what is the same and by each rank's own."""
    ranks, serial = programs(name)
    n, r = comm.size, int(comm.rank)
    x, xs = data(r, SHAPE), all_data(n, SHAPE)
    f = D.spmd(ranks(comm), comm, replicated=0)
    value, grads = fad.value_and_grad(f, argnums=(0, 1))(W, x)
    expected, (gw, gx) = fad.value_and_grad(serial(n), argnums=(0, 1))(W, xs)
    _close(value, expected)
    _close(grads[0], gw)
    _close(grads[1], gx[r])
    _close(f(W, x), expected)


def forward_mode(comm, name):
    ranks, serial = programs(name)
    n, r = comm.size, int(comm.rank)
    x, xs, t, ts = data(r, SHAPE), all_data(n, SHAPE), data(r, SHAPE, 1), all_data(n, SHAPE, 1)
    f = D.spmd(ranks(comm), comm, replicated=0)
    _close(fad.jvp(f, (W, x), (W * W, t))[1], fad.jvp(serial(n), (W, xs), (W * W, ts))[1])


def second_order(comm, name):
    ranks, serial = programs(name)
    n, r = comm.size, int(comm.rank)
    x, xs, t, ts = data(r, SHAPE), all_data(n, SHAPE), data(r, SHAPE, 1), all_data(n, SHAPE, 1)
    f, s = D.spmd(ranks(comm), comm, replicated=0), serial(n)
    both = lambda f: fad.grad(f, argnums=(0, 1))
    hw, hx = fad.jvp(both(f), (W, x), (W * W, t))[1]
    ew, ex = fad.jvp(both(s), (W, xs), (W * W, ts))[1]
    _close(hw, ew)
    _close(hx, ex[r])
    # reverse over reverse: the function of all ranks together is the sum over the ranks of what each returns
    g = fad.grad(lambda w, x: np.sum(np.cos(fad.grad(f)(w, x))))(W, x)
    _close(g, fad.grad(lambda w, x: np.sum(np.cos(fad.grad(s)(w, x))))(W, xs))


def batched(comm, name):
    """A batch within the function, and around it; the gradient of a batched one."""
    ranks, serial = programs(name)
    n, r = comm.size, int(comm.rank)
    xs = [all_data(n, SHAPE, seed) for seed in range(3)]
    mine, ws = np.stack([x[r] for x in xs]), np.stack([W, 2 * W, W * W])
    f, s = D.spmd(ranks(comm), comm, replicated=0), serial(n)
    _close(fad.vmap(f)(ws, mine), [s(w, x) for w, x in zip(ws, xs, strict=True)])
    _close(fad.vmap(fad.grad(f))(ws, mine), [fad.grad(s)(w, x) for w, x in zip(ws, xs, strict=True)])
    inside = D.spmd(lambda w, x: np.sum(fad.vmap(ranks(comm), (None, 0))(w, x)), comm, replicated=0)
    _close(fad.grad(inside)(W, mine), sum(fad.grad(s)(W, x) for x in xs))


def compiled(comm, name):
    """The same twice from the recorded program, native and in NumPy, with values that it was not recorded with."""
    from fad.compile.targets.select import using

    ranks, serial = programs(name)
    n, r = comm.size, int(comm.rank)
    for lowering in ("auto", "numpy"):
        with using(lowering):
            f = fad.jit(fad.value_and_grad(D.spmd(ranks(comm), comm, replicated=0), argnums=(0, 1)))
            for seed in range(3):
                xs = all_data(n, SHAPE, seed)
                value, (gw, gx) = f(W + seed, xs[r])
                expected, (ew, ex) = fad.value_and_grad(serial(n), argnums=(0, 1))(W + seed, xs)
                _close(value, expected)
                _close(gw, ew)
                _close(gx, ex[r])
            assert f.cache_info().hits == 2


def jacobians(comm, name):
    """Hessians, and Jacobians of gradients, whose tangents and cotangents are batches."""
    ranks, serial = programs(name)
    n, r = comm.size, int(comm.rank)
    x, xs = data(r, SHAPE), all_data(n, SHAPE)
    f, s = D.spmd(ranks(comm), comm, replicated=0), serial(n)
    _close(fad.hessian(f)(W, x), fad.hessian(s)(W, xs))
    _close(fad.jacfwd(fad.grad(f, 1))(W, x), fad.jacfwd(fad.grad(s, 1))(W, xs)[r])
    _close(fad.jacrev(fad.grad(f))(W, x), fad.jacrev(fad.grad(s))(W, xs))


def one_sided(comm, name):
    """The operand depends on the argument on one rank alone, and one rank alone reads the result."""
    case, whole = CASES[name]
    n, r = comm.size, int(comm.rank)
    x, xs, others = data(r, SHAPE), all_data(n, SHAPE), all_data(n, SHAPE, 1)
    ws, mine = np.stack([W, 2 * W]), np.stack([x, others[r]])
    giver, reader = n - 1, 0

    def loss(w, x):
        y = comm.varying(case(comm, np.sin(w * x) + 1.5 if comm.rank == giver else others[r]))
        return comm.all_reduce(np.array([np.sum(y * y), np.sum(np.sin(y))]) if comm.rank == reader else x[:2])

    def serial(w, xs):
        ys = whole(n, np.stack([np.sin(w * xs[k]) + 1.5 if k == giver else others[k] for k in range(n)]))
        y = ys[reader]
        return np.array([np.sum(y * y), np.sum(np.sin(y))]) + sum(xs[k][:2] for k in range(n) if k != reader)

    f, first = D.spmd(loss, comm, replicated=0), D.spmd(lambda w, x: loss(w, x)[0], comm, replicated=0)
    _close(fad.jacrev(f)(W, x), fad.jacrev(serial)(W, xs))
    _close(fad.jacfwd(f)(W, x), fad.jacfwd(serial)(W, xs))
    _close(fad.jit(fad.hessian(first))(W, x), fad.hessian(lambda w, xs: serial(w, xs)[0])(W, xs))
    _close(fad.jacrev(fad.jacfwd(f))(W, x), fad.jacfwd(fad.jacrev(serial))(W, xs))
    g, s = fad.grad(first), fad.grad(lambda w, xs: serial(w, xs)[0])
    _close(fad.vmap(g, (0, None))(ws, x), [s(w, xs) for w in ws])
    _close(fad.vmap(g, (None, 0))(W, mine), [s(W, xs), s(W, others)])


def one_sided_batch(comm, name):
    """The operand depends on the batch on one rank alone: without derivatives, and in a vmap within what has them."""
    case, whole = CASES[name]
    n, r = comm.size, int(comm.rank)
    xs = all_data(n, SHAPE)
    ws = np.stack([W, 2 * W])

    def operand(w, rank):
        return w + 1.0 if rank == n - 1 else xs[rank]

    expected = [whole(n, np.stack([operand(w, k) for k in range(n)])) for w in ws]
    f = lambda w: case(comm, operand(w, r))
    for g in (fad.vmap(f), fad.jit(fad.vmap(f)), fad.vmap(fad.jit(f)), fad.vmap(f, chunk_size=1)):
        for _ in range(2):
            _close(g(ws), [ys[r] for ys in expected])
    called = fad.jit(lambda x: case(comm, x))
    called(xs[r])  # a program of one example, from before
    _close(fad.vmap(lambda w: called(operand(w, r)))(ws), [ys[r] for ys in expected])
    inside = D.spmd(lambda ws: comm.all_reduce(np.sum(comm.varying(fad.vmap(f)(comm.varying(ws))))), comm, replicated=0)
    serial = lambda ws: sum(np.sum(whole(n, np.stack([operand(w, k) for k in range(n)]))) for w in ws)
    _close(fad.grad(inside)(ws), fad.grad(serial)(ws))


CHECKS = {
    f.__name__: f
    for f in (
        value_and_gradients, forward_mode, second_order, batched, compiled, jacobians, one_sided, one_sided_batch
    )
}  # fmt: skip
