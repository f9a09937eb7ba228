"""Looking into a program while it is differentiated: where a NaN came from, printing values, calling back.

``nans()`` watches every backward pass of a block, of `fad.grad` and of the eager API alike.
"""

from __future__ import annotations

import builtins
import contextlib
import string
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from fad import tree
from fad.core.primitives.primitive import Primitive
from fad.core.programs.graph import EFFECT
from fad.core.runs.journal import once
from fad.core.tracing.tracer import Tracer
from fad.core.tracing.values import stop_gradient
from fad.errors import DerivativeError
from fad.staging.record import recorder
from fad.staging.record_trace import RecordTrace
from fad.transforms.tape_hooks import Note, Watcher, describe, has_nan, watching

__all__ = ["NaNGradientError", "callback", "nans", "print"]


def __dir__() -> list[str]:
    return __all__


class NaNGradientError(DerivativeError):
    """A backward rule made a NaN out of a cotangent that had none; raised under :func:`fad.debug.nans`.

    The message names the line of the forward call, and the values there. Wrong::

        fad.grad(lambda x: np.sum(np.sqrt(x) * x))(np.zeros(3))

    Right: keep the argument away from where the derivative is infinite::

        fad.grad(lambda x: np.sum(np.where(x > 0, np.sqrt(np.where(x > 0, x, 1.0)) * x, 0.0)))(np.zeros(3))
    """


class _NaNs(Watcher):
    def backward(self, note: Note, cts: list, run: Callable) -> None:
        clean = not any(map(has_nan, cts))
        found = run()
        if clean and any(map(has_nan, found)):
            raise NaNGradientError(_report(note, cts))


def _report(note: Note, cts: list) -> str:
    lines = [f"the backward rule of {note.name} made the first NaN.", f"  its forward call was at {note.place}"]
    lines += [f"  it saved: {describe(x)}" for x in note.saved]
    lines += [f"  the cotangent had: {describe(c)}" for c in cts]
    return "\n".join(lines)


@contextlib.contextmanager
def nans() -> Iterator[None]:
    """Stop at the first NaN that a backward pass makes, and name the forward line whose rule made it.

    Costs time while it is on, and nothing when it is off. A NaN that comes out of the forward pass is not its business:
    ``np.errstate(invalid="raise")`` finds those.

    Raises
    ------
    NaNGradientError
        naming the operation, the user's line, and shapes and ranges of what the rule saw.

    Examples
    --------
    >>> import fad, numpy as np
    >>> with nans(), np.errstate(all="ignore"):
    ...     fad.grad(lambda x: np.sqrt(x) * x)(0.0)
    Traceback (most recent call last):
    fad.debug.NaNGradientError: the backward rule of sqrt made the first NaN.
    ...
    """
    with watching(_NaNs()):
        yield


def print(fmt: str, *args: Any, **kwargs: Any) -> None:
    """Print values of a running program: `fmt` as for ``str.format``, filled with the numbers behind traced values.

    Under ``grad`` and ``vmap`` the numbers are those being computed; a batched value shows all its batch elements. A
    function under ``jit`` prints in every call, in the order of its program. Differentiation does not see the call.

    >>> import fad
    >>> def f(x):
    ...     fad.debug.print("x is {}", x)
    ...     return x * x
    >>> fad.grad(f)(3.0)
    x is 3.0
    np.float64(6.0)
    """
    callback(lambda *xs, **named: builtins.print(string.Formatter().vformat(fmt, xs, named)), *args, **kwargs)


def callback(fun: Callable, *args: Any, **kwargs: Any) -> None:
    """Call ``fun(*args)`` with the plain numbers behind traced values, for its side effects; it returns nothing.

    Under ``jit`` it is called in every call, in the order of the program.

    >>> import fad
    >>> seen = []
    >>> def f(x):
    ...     fad.debug.callback(seen.append, x)
    ...     return x**2
    >>> _ = fad.grad(f)(3.0)
    >>> seen
    [3.0]
    """
    leaves, structure = tree.flatten((args, kwargs))
    leaves = [_number_behind(stop_gradient(x)) for x in leaves]
    places = [i for i, x in enumerate(leaves) if isinstance(x, (Tracer, np.ndarray))]

    def run(*values: Any) -> None:
        filled = list(leaves)
        for i, x in zip(places, values, strict=True):
            filled[i] = x
        args, kwargs = tree.unflatten(structure, filled)
        fun(*args, **kwargs)

    values = tuple([leaves[i] for i in places])
    trace = recorder.get()
    if trace is None:
        once(run, *values)
    else:
        trace.process(callback_p, values, {"run": run})


def _number_behind(x: Any) -> Any:
    """Return the number behind a traced value, or the value of a program that is being recorded."""
    while type(x) is Tracer and not isinstance(x.owner, RecordTrace):
        x = x.wrapped
    return x


def _call(*values: Any, run: Callable) -> np.ndarray:
    trace = recorder.get()
    if trace is None or not trace.of_examples:
        once(run, *values)
    return np.zeros(())


callback_p = Primitive("debug.callback", _call, flat=True, archetype=EFFECT)
callback_p.batch = lambda size, batched, xs, params: np.broadcast_to(callback_p(*xs, **params), (size,))
