"""Warnings, loggers and texts in captured loops: they are shown while the program is recorded, as prints are."""

# ruff: noqa: UP031, UP032 - texts are made here as programs make them

import logging
import warnings

import numpy as np
import pytest
from capture.agreement import report_of

import fad

X = np.array([0.71, -0.42, 0.33])
N = 12
log = logging.getLogger("steps")
log.setLevel(logging.INFO)


def a_warning_in_a_branch(x):
    for i in range(N):
        before = x
        x = 0.9 * x + 0.1 * np.sin(x)
        if np.any(np.isnan(x)) or i == 7:
            warnings.warn("numbers are odd at iteration %d" % i, RuntimeWarning, stacklevel=1)
            x = before
            break
    else:
        warnings.warn("it did not converge", stacklevel=1)
    return np.sum(x)


def messages_of_a_logger(x):
    s = x[0]
    for i in range(N):
        s = 0.9 * s + x[1]
        log.info("step %d: %.3f", i, s)
        log.debug(f"not shown: {s}")
        if s < -1.0:
            log.log(logging.WARNING, "low " + str(i))
            logging.error("{} of {n}".format(i, n=N))
    return s


def texts_of_all_kinds(x):
    s = x[0]
    for i in range(N):
        s = 0.9 * s + x[1]
        print("%d: %5.2f" % (i, s), "s = %s" % s, "{:.3f} {k}".format(s, k=i), "at " + str(i) + ".", str(s))
        print("iter " + repr(i) + f" {s:.2f}" + "!")
    return s


def by_a_function_of_its_own(x):
    def warn(text):
        return len(text)

    s = x[0]
    for _ in range(N):
        s = 0.9 * s + x[1] * warn("a text %d" % 3 + "!")
    return s


class Handler(logging.Handler):
    """Keeps what loggers show, with the places where it comes from."""

    found: list = []

    def emit(self, r):
        self.found.append((r.name, r.levelname, r.getMessage(), r.pathname, r.lineno, r.funcName))


@pytest.fixture(autouse=True)
def handler():
    logging.root.addHandler(kept := Handler())
    yield
    logging.root.removeHandler(kept)


def show(f, capsys):
    """Return what a function gives, and shows: what it prints, its warnings and messages with their places."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        value = f(X)
    messages, Handler.found = Handler.found, []
    told = [(w.category, str(w.message), w.filename, w.lineno) for w in found]
    return value, (capsys.readouterr().out, told, messages)


PROGRAMS = [a_warning_in_a_branch, messages_of_a_logger, texts_of_all_kinds, by_a_function_of_its_own]


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_a_loop_shows_what_python_shows_when_it_is_recorded(f, capsys):
    value, wanted = show(f, capsys)
    gradient, _ = show(fad.grad(f), capsys)
    with fad.config.use(loops="capture"):
        fast, slope = fad.jit(f), fad.jit(fad.grad(f))
        for k in range(3):
            got, shown = show(fast, capsys)
            np.testing.assert_allclose(got, value, rtol=1e-12)
            assert shown == (wanted if k == 0 else ("", [], []))
        got, shown = show(slope, capsys)
        np.testing.assert_allclose(got, gradient, rtol=1e-12)
        assert shown == wanted
    (what, text), _ = show(lambda x: report_of(f, x), capsys)
    assert "recorded step by step" not in what, text


@pytest.mark.parametrize("f", [texts_of_all_kinds, messages_of_a_logger], ids=lambda f: f.__name__)
def test_a_loop_that_is_unrolled_shows_the_same_and_depends_on_no_number_for_it(f, capsys):
    _, (printed, _, messages) = show(f, capsys)
    for transformed in (fad.jit(f), fad.jit(fad.grad(f))):
        _, shown = show(transformed, capsys)
        assert shown[0] == printed
        assert [m[:3] for m in shown[2]] == [m[:3] for m in messages]
        _, shown = show(lambda x, g=transformed: g(x * 1.0001), capsys)
        assert shown == ("", [], [])
        assert transformed.cache_info().paths == 1


def test_an_error_of_what_is_shown_is_raised_at_its_line():
    def a_wrong_format(x):
        for i in range(N):
            x = 0.9 * x + 0.1 * np.sin(x)
            if i == 7:
                print(f"{i:s}")
                break
        return np.sum(x)

    for f, error in ((a_warning_in_a_branch, RuntimeWarning), (a_wrong_format, ValueError)):
        for transformed in (f, fad.jit(f), fad.jit(fad.grad(f))):
            with fad.config.use(loops="capture"), pytest.raises(error, match=r"at iteration 7|format code") as caught:
                transformed(X)
            assert str(caught.traceback[-1].path) == __file__


def test_a_silent_logger_is_called_in_a_while_loop():
    def halved(x):
        s = np.sum(x * x)
        while s > 0.01:
            s = s * 0.5
            log.debug("s is %f", s)
        return s

    with fad.config.use(loops="capture"):
        fast = fad.jit(halved)
        np.testing.assert_allclose(fast(X), halved(X), rtol=1e-12)
    assert "captured" in fast.explain()
