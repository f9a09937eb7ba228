"""Text made of a value is an answer that a jitted program depends on, but for what is only shown."""

import logging
import sys
import warnings

import numpy as np
import pytest

import fad

X = np.array([1.5, 2.5])
log = logging.getLogger("tests")


@pytest.mark.parametrize(
    "read",
    [
        lambda x: float(f"{x[0]:.1f}"),
        lambda x: float(f"{x[0]}"),
        lambda x: float(str(x[0])),
        lambda x: float("%s" % x[0]),  # noqa: UP031
        lambda x: float("{:.3f}".format(x[0])),  # noqa: UP032
        lambda x: sum(map(ord, str(x))),
        lambda x: sum(map(ord, np.array2string(x))),
        lambda x: sum(map(ord, np.array_repr(x))),
        lambda x: sum(map(ord, np.array_str(x))),
        lambda x: float(np.format_float_positional(x[0])),
    ],
)
def test_text_that_the_program_uses_is_of_the_values_of_this_call(read):
    functions = [
        lambda x: x * read(x),
        lambda x: fad.grad(lambda x: np.sum(x**2 * read(fad.stop_gradient(x))))(x),
        lambda x: fad.jvp(lambda y: y * read(x), (x,), (x,))[1],
    ]
    for f in functions:
        fast = fad.jit(f)
        for shift in (0.0, 0.0, 1.0, 2.0, 1.0):
            np.testing.assert_array_equal(fast(X + shift), f(X + shift))


def test_the_text_of_a_number_of_pythons_is_asked_for_as_well():
    fast = fad.jit(lambda n, x: n * float(f"{n:03d}") + x * float(str(x)))
    for n, x in ((1, 2.0), (1, 2.0), (2, 2.0), (2, 3.5)):
        assert fast(n, x) == n * n + x * x


@pytest.mark.parametrize(
    "show",
    [
        lambda x: print(x),
        lambda x: print("value", f"{x[0]:.2f}", str(x), [x, x]),
        lambda x: print(
            "over several lines:",
            f"{np.sum(x):.3e}",
        ),
        lambda x: print("value %8.2f of %d: %g" % (x[0], len(x), x[1])),  # noqa: UP031
        lambda x: log.info("value %s", x),
        lambda x: log.warning(f"value {x}"),
        lambda x: sys.stdout.write(f"{x}"),
        lambda x: warnings.warn(f"value {x}", UserWarning, stacklevel=1),
    ],
)
@pytest.mark.filterwarnings("ignore:value")
def test_what_is_only_shown_is_shown_when_it_is_recorded_and_differentiated(show):
    def f(x):
        show(x)
        return 2.0 * x

    fast = fad.jit(f)
    for shift in range(4):
        np.testing.assert_array_equal(fast(X + shift), 2.0 * (X + shift))
    assert fast.cache_info().paths == 1
    np.testing.assert_array_equal(fad.grad(lambda x: np.sum(f(x)))(X), [2.0, 2.0])


def test_a_body_of_a_loop_that_reads_text_is_unrolled():
    def f(x):
        def body(c, row):
            return c + row * float(f"{row:.1f}"), c

        return fad.scan(body, 0.0, x)[0]

    fast = fad.jit(f)
    for shift in (0.0, 0.0, 1.0):
        np.testing.assert_allclose(fast(X + shift), np.sum((X + shift) ** 2))
