"""An error in a captured loop is Python's, and says at which line it was raised and in which step."""

import numpy as np
import pytest

import fad

X = np.linspace(0.1, 1.0, 20)


def read(x, n):
    s = x[0]
    for i in range(9):
        s = s + x[i + n]
    return s


def write(x, n):
    a = np.zeros(20) * x[0]
    for i in range(9):
        a[i + n] = x[i]
    return np.sum(a)


def stop(x, n):
    i, s = 0, 0.0 * x[0]
    while s < 9.0:
        s = s + x[i + n] ** 2 + 0.6
        i = i + 1
    return s


def nest(x, n):
    s = x[0]
    for i in range(4):
        for j in range(i + 3):
            s = s + x[i] * x[j + n]
    return s


def over_elements(x, n):
    s, k = x[0], 0
    for v in x[:9]:
        s = s + v * x[k + n]
        k = k + 1
    return s


def element(x, i):
    return x[i] * x[0]


def call(x, n):
    s = x[0]
    for k, v in enumerate(x[:9]):
        s = s + v * element(x, k + n)
    return s


TRANSFORMS = {
    "value": lambda f: f,
    "gradient": fad.grad,
    "tangent": lambda f: lambda x, n: fad.jvp(lambda y: f(y, n), (x,), (x,))[1],
    "batch": lambda f: lambda x, n: fad.vmap(lambda y: f(y, n))(np.stack([x, x])),
}


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize(
    ("f", "line", "step"),
    [
        (read, "s = s + x[i + n]", "i = 6"), (write, "a[i + n] = x[i]", "i = 6"),
        (stop, "s = s + x[i + n] ** 2 + 0.6", "i = 6"), (nest, "s = s + x[i] * x[j + n]", "i = 3, j = 5"),
        (over_elements, "s = s + v * x[k + n]", "k = 6"), (call, "return x[i] * x[0]", "k = 6"),
    ],
)  # fmt: skip
def test_an_index_out_of_range_shows_its_line_and_step(f, line, step, transform):
    n, loop = 15 if f is nest else 14, {nest: "for j", stop: "while s", over_elements: "for v", call: "for k"}
    for loops in ("capture", "auto"):
        with fad.config.use(loops=loops):
            seen, new = fad.jit(TRANSFORMS[transform](f)), fad.jit(TRANSFORMS[transform](f))
            for _ in range(3):
                seen(X, 1)
            for g in (seen, new):  # a program that was compiled, and one that is recorded
                with pytest.raises(IndexError, match="index 20 is out of bounds") as error:
                    g(X, n)
                here = [at for at in error.traceback if str(at.path) == __file__]
                assert str(here[-1].statement).strip() == line
                notes = [note for note in error.value.__notes__ if f"  in step {step} of the loop at" in note]
                assert loop.get(f, "for i") in notes[0]


def test_an_error_outside_of_loops_names_no_step():
    def f(x, n):
        for i in range(5):
            x = x * (1.0 + i)
        return x[n]

    g = fad.jit(f)
    g(X, 3)
    with pytest.raises(IndexError) as error:
        g(X, 20)
    assert not [note for note in getattr(error.value, "__notes__", ()) if "in step" in note]


def pairs(x):
    total = 0.0
    for _ in range(60):
        d = x[:, None] - x
        r = np.sqrt(d * d)  # with an infinite slope at the zeros of the diagonal, of which triu keeps none
        r[r > 0] = 1.0 / r[r > 0]
        total = total + np.sum(np.triu(r, 1))
        x = x * 0.99
    return total


def test_a_derivative_in_a_captured_loop_gives_no_warning_that_it_does_not_give_in_python():
    x = np.linspace(1.0, 2.0, 5) ** 2
    compiled = fad.jit(fad.grad(pairs))
    wanted = fad.grad(pairs)(x)  # a warning would be an error here, and jit would leave the function to Python
    for _ in range(3):
        np.testing.assert_allclose(compiled(x), wanted, rtol=1e-12)
    assert compiled.cache_info().misses == 1


@pytest.mark.parametrize(
    "transform",
    [
        lambda f: fad.grad(f),
        lambda f: fad.jit(fad.grad(f)),
        lambda f: lambda x, k: fad.jvp(lambda x: f(x, k), (x,), (x,)),
        lambda f: lambda x, k: fad.vmap(lambda x: f(x, k))(np.stack([x, x])),
    ],
    ids=["grad", "jit of grad", "jvp", "vmap"],
)
def test_an_index_out_of_range_in_a_derivative_names_the_line_of_the_user(transform):
    def f(x, k):
        s = 0.0
        for i in range(400):
            s = s + x[i * k % 19]  # the line
        return s

    g, x = transform(f), np.arange(17.0)
    g(x, 0), g(x, 0)
    with pytest.raises(IndexError, match="index 17 is out of bounds") as caught:
        g(x, 1)
    notes = "\n".join(caught.value.__notes__)
    assert "# the line" in notes
    assert "call the function without jit" not in notes
