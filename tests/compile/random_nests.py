"""Random loop nests over a small state: two arrays of two axes, two vectors and a number.

A statement takes the state and a position inside the arrays, one place away from their edges, and gives a new state.
"""

import numpy as np

import fad

ROWS, COLUMNS = 6, 5


def _element(r):
    a, b, c, d = r.integers(-1, 2, 4)

    def run(state, i, j):
        A, B, x, y, s = state
        A = A.copy()
        A[i, j] = 0.3 * A[i + a, j + b] + 0.3 * B[i + c, j + d] - 0.1 * x[j] * y[i]
        return A, B, x, y, s

    return run


def _added(r):
    a, b = r.integers(-1, 2, 2)

    def run(state, i, j):
        A, B, x, y, s = state
        x, y = x.copy(), y.copy()
        x[j + a] += 0.2 * A[i, j] * x[j]
        y[i] += 0.1 * np.dot(A[i], x) + b
        return A, B, x, y, s

    return run


def _row(r):
    kind = r.integers(5)

    def run(state, i, j):
        A, B, x, y, s = state
        B = B.copy()
        if kind == 0:
            B[i, 1:-1] = 0.5 * A[i - 1, 2:] - 0.25 * B[i, :-2] * x[1:-1]
        elif kind == 1:
            B[1:-1, j] = 0.4 * B[2:, j - 1] + A[:-2, j] * y[1:-1]
        elif kind == 2:
            B[i] += 0.1 * x[::-1]
        elif kind == 3:
            B[:, j] = 0.5 * A[:, j + 1] + 0.1 * s
        else:
            B[1:-1, 1:-1] += 0.1 * (A[2:, 1:-1] - 2.0 * A[1:-1, 1:-1] + A[:-2, 1:-1])
        return A, B, x, y, s

    return run


def _shift(r):
    kind = r.integers(4)

    def run(state, i, j):
        A, B, x, y, s = state
        x = x.copy()
        if kind == 0:
            x[1:] = 0.9 * x[:-1]
        elif kind == 1:
            x[:-1] = x[1:] + 0.1
        elif kind == 2:
            x[::2] = 0.5 * x[::2] - 0.1 * x[j]
        else:
            x[1:-1] += 0.1 * (x[2:] - 2 * x[1:-1] + x[:-2])
        return A, B, x, y, s

    return run


def _swap(r):
    def run(state, i, j):
        A, B, x, y, s = state
        return 0.9 * B, A, x, y, s

    return run


def _number(r):
    kind = r.integers(5)

    def run(state, i, j):
        A, B, x, y, s = state
        if kind == 0:
            s = 0.5 * s + 0.1 * np.sum(A[i] * x)
        elif kind == 1:
            s = np.where(A[i, j] > 0.1, 0.5 * s, s - 0.1 * B[i, j])
        elif kind == 2:
            s = np.maximum(np.minimum(s, 2.0), A[i, j] * y[i])
        elif kind == 3:
            s = 0.3 * s + 0.01 * np.max(A[:, j]) + 0.1 * np.mean(B[i])
        else:
            s = np.tanh(s + A[i, j])
        return A, B, x, y, s

    return run


def _branch(r):
    kind = r.integers(3)
    one, other = _STATEMENTS[r.integers(6)](r), _STATEMENTS[r.integers(6)](r)

    def run(state, i, j):
        s, A = state[4], state[0]
        chosen = (s > 0.1) if kind == 0 else (A[i, j] < 0.3) if kind == 1 else ((i + j) % 2 == 0)
        return fad.cond(chosen, lambda state: one(state, i, j), lambda state: other(state, i, j), state)

    return run


def _product(r):
    def run(state, i, j):
        A, B, x, y, s = state
        return A, B, 0.5 * x + 0.1 * (y @ A), 0.5 * y + 0.1 * (B @ x), s

    return run


def _inner(r):
    body, kind = _sequence(r, r.integers(1, 3), 1), r.integers(3)

    def run(state, i, j):
        if kind == 0:
            return fad.fori_loop(1, COLUMNS - 1, lambda j, state: body(state, i, j), state)
        if kind == 1:
            return fad.fori_loop(1, ROWS - 1, lambda i, state: body(state, i, j), state)

        def step(state, row):
            state = body(state, i, j)
            return state, row * state[4]

        state, rows = fad.scan(step, state, state[0], reverse=bool(j == 3) if type(j) is int else False)
        return (0.5 * state[0] + 0.1 * rows, *state[1:])

    return run


def _until(r):
    body = _sequence(r, 1, 0)

    def run(state, i, j):
        def step(loop):
            n, state = loop
            return n + 1, body(state, i, j)

        return fad.while_loop(lambda loop: (loop[0] < 4) & (loop[1][4] < 1.0), step, (0, state))[1]

    return run


_STATEMENTS = (_element, _added, _row, _shift, _swap, _number, _branch, _product, _inner)


def _sequence(r, count, depth):
    kinds = [_STATEMENTS[r.integers(len(_STATEMENTS) - (depth == 0))] for _ in range(count)]
    parts = [kind(r) for kind in kinds]

    def run(state, i, j):
        for part in parts:
            state = part(state, i, j)
        return state

    return run


def random_nest(seed, whiles=False):
    """Return a function of five arguments that runs a random nest, and arguments for it."""
    r = np.random.default_rng(seed)
    body, steps = _sequence(r, r.integers(1, 5), 2), int(r.integers(1, 5))
    last = _until(r) if whiles else None

    def sweep(t, state):
        def row(i, state):
            return fad.fori_loop(1, COLUMNS - 1, lambda j, state: body(state, i, j), state)

        return fad.fori_loop(1, ROWS - 1, row, state)

    def run(A, B, x, y, s):
        state = fad.fori_loop(0, steps, sweep, (A, B, x, y, s))
        if last is not None:
            state = last(state, 1, 2)
        return state

    args = (r.normal(size=(ROWS, COLUMNS)), r.normal(size=(ROWS, COLUMNS)), r.normal(size=COLUMNS), r.normal(size=ROWS))
    return run, (*args, r.normal())


def total(f):
    """Return the sum of all that a function gives, each part bounded."""
    return lambda *args: sum(np.sum(np.tanh(0.1 * x)) for x in f(*args))
