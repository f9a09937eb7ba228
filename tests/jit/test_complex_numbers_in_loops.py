"""Python's complex numbers in loops under jit: native, with Python's values, kinds and errors."""

import numpy as np
import pytest

import fad


def repeat(step):
    def f(c):
        z = 0.3 + 0.2j
        for k in range(500):
            z = step(z, c, k)
        return z

    return f


def outcome(f, c):
    try:
        return f(c)
    except Exception as error:
        return type(error), str(error).partition("\n")[0]


STEPS = {
    "square": lambda z, c, k: z * z * 0.5 + c,
    "quotient": lambda z, c, k: z / (z + 2) + c,
    "newton": lambda z, c, k: (z**3 - 1) / (3 * z**2) + 0.1 * c if k % 2 else z * 0.5,
    "power": lambda z, c, k: z**7 * 0.5 + z**2.0 * 0.1 + c * 0.2,
    "parts": lambda z, c, k: z.conjugate() * abs(z) * 0.5 + z.real * 1j + z.imag * c,
    "not taken": lambda z, c, k: z / (z - c) if z != c else z + 1,
    "on the circle": lambda z, c, k: (z if abs(z) < 2 else z / abs(z)) + 0.01 * c,
    "negative": lambda z, c, k: -z * 2j / 3 + c,
}
RAISING = {
    "division by zero": lambda z, c, k: 1 / (z - z) if k == 400 else z * 0.9 + c,
    "by a number that is zero": lambda z, c, k: z / (c - c),
    "overflow": lambda z, c, k: z**8 + 2 + c,
    "of a fraction": lambda z, c, k: z**0.5 + c,
}


@pytest.mark.parametrize("name", [*STEPS, *RAISING])
def test_a_loop_gives_or_raises_what_python_does(name):
    f = repeat({**STEPS, **RAISING}[name])
    fast = fad.jit(f)
    for c in (0.1, 0.1 + 0.1j, 0.3 + 0.2j, 2, 0.1):
        for _ in range(2):
            found, wanted = outcome(fast, c), outcome(f, c)
            if type(wanted) is tuple:
                assert found == wanted
            else:
                assert type(found) is complex
                np.testing.assert_allclose(found, wanted, rtol=1e-9)


@pytest.mark.parametrize("name", STEPS)
def test_a_loop_is_native(name):
    pytest.importorskip("llvmlite")
    fast = fad.jit(repeat(STEPS[name]))
    fast(0.1), fast(0.1)
    if "lowering: llvm" in fast.explain():
        assert "captured" in fast.explain()
        assert "calls of NumPy" not in fast.explain()


def escapes(width, height, shift):
    counts = np.zeros((height, width))
    for i in range(height):
        for j in range(width):
            c, z = complex(shift + 3.0 * j / width - 2.0, 2.0 * i / height - 1.0), 0j
            for k in range(40):  # noqa: B007  it is read after the loop
                if abs(z) > 2.0:
                    break
                z = z * z + c
            counts[i, j] = k
    return counts


def test_the_mandelbrot_set_with_static_sizes_is_one_native_loop():
    fast = fad.jit(escapes, static_argnums=(0, 1))
    for shift in (0.0, 0.0, 0.25):
        np.testing.assert_array_equal(fast(30, 20, shift), escapes(30, 20, shift))
    report = [line for line in fast.explain().splitlines() if "loop at" in line]
    assert report
    assert all(": captured: " in line for line in report)
