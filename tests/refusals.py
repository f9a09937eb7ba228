"""What tests of refusals share: an error must be of the right type, say the right things, and show the user's line."""

import contextlib
import sys

import numpy as np
import pytest

X = np.array([1.0, 2.0, 3.0])


@contextlib.contextmanager
def refused(error, *texts):
    """Expect exactly this error, with these texts in its message and a line of the caller's file at its end."""
    here = sys._getframe(2).f_code.co_filename  # behind the context manager's own
    with pytest.raises(error) as caught:
        yield
    assert type(caught.value) is error
    message, _, place = str(caught.value).rpartition("\n  at ")
    for text in texts:
        assert text in message, f"{text!r} is not in {message!r}"
    assert place.startswith(here), f"the user's line is missing in {message!r}"


def elsewhere(*shape):
    """Return a plain array that no function of NumPy made: one that fad cannot follow."""
    return np.frombuffer(bytearray(8 * int(np.prod(shape)))).reshape(shape)


def loaded(name):
    """Return a module where no transform finds it by name, so that nothing of fad's stands in for its functions."""
    return sys.modules[name]
