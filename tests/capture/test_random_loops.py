"""Random loop programs: captured, recorded and run by Python, they give one value, gradient and second derivative.

``LOOP_PROGRAMS=5000 pytest tests/capture/test_random_loops.py`` runs more of them, ``LOOP_SEED`` others.
"""

import os
import warnings

import numpy as np
import pytest
from capture.layer_programs import LayerProgram
from capture.loop_programs import GrowingProgram, HandlingProgram, ObjectProgram, Program, compiled

import fad
from fad.core.programs.graph import GuardFailed

SEED, COUNT = int(os.environ.get("LOOP_SEED", "0")), int(os.environ.get("LOOP_PROGRAMS", "8"))
X = np.array([0.71, -0.42, 1.13, 0.33, 0.89])
ELSEWHERE = np.array([0.35, 0.62, -0.77, 0.94, -0.21])


REFUSED = (ArithmeticError, LookupError, NameError, ValueError)


def result(f, x):
    """Return what a call gives, or the error that it raises."""
    try:
        return f(x.copy())
    except REFUSED as error:
        return type(error)


def replayed(f, x):
    """Return what the program that is recorded for one argument gives for another: None if it is another path."""
    try:
        graph = fad.make_graph(f)(X)
        return graph(x)[0]
    except GuardFailed:
        return None
    except REFUSED as error:
        return type(error)


def check(got, wanted, what):
    if isinstance(wanted, type):
        assert got is wanted, f"{what} gave {got} and not {wanted.__name__}"
    else:
        assert (np.shape(got), np.asarray(got).dtype) == (np.shape(wanted), np.asarray(wanted).dtype), what
        np.testing.assert_allclose(got, wanted, rtol=1e-8, atol=1e-9, err_msg=what)


def check_replay(f, wanted, what):
    """Compare what a recorded program gives for another argument, if that takes the same path."""
    got = replayed(f, ELSEWHERE)
    if got is not None:
        check(got, wanted, what)


KINDS = [Program, ObjectProgram, HandlingProgram, GrowingProgram, LayerProgram]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("seed", range(SEED, SEED + COUNT))
def test_a_random_program_gives_what_python_gives(seed, kind):
    text = kind(seed).text
    f = compiled(text, f"<{kind.__name__} {seed}>")
    wanted = result(f, X)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for loops in ("capture", "record"):
            with fad.config.use(loops=loops):
                check(result(fad.jit(f), X), wanted, f"the value by loops={loops} of\n{text}")
        if not isinstance(wanted, type):
            check_derivatives(f, seed, text)


def check_derivatives(f, seed, text):
    """Compare first and, of every third program, second derivatives, captured and recorded, with those without jit."""
    gradient = fad.grad(f)
    second = fad.grad(lambda y: np.sum(gradient(y) * ELSEWHERE))
    slope, curve = gradient(X), second(X) if seed % 3 == 0 else None
    for loops in ("capture", "record"):
        with fad.config.use(loops=loops):
            fast = fad.jit(gradient)
            check(fast(X), slope, f"the gradient by loops={loops} of\n{text}")
            if seed % 5 == 0:
                check(fast(X), slope, f"the compiled gradient by loops={loops} of\n{text}")
            if curve is not None:
                check(fad.jit(second)(X), curve, f"the second derivative by loops={loops} of\n{text}")
    with fad.config.use(loops="capture"):
        check_replay(f, result(f, ELSEWHERE), f"the replay captured of\n{text}")
        if seed % 2 == 0:
            check_replay(gradient, result(gradient, ELSEWHERE), f"the replayed gradient captured of\n{text}")
