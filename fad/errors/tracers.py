"""Errors about traced values in a program, and about arrays that it writes into."""

from __future__ import annotations

from fad.errors.base import FadError


class LeakedTracerError(FadError, RuntimeError):
    """A traced value was used after its transform had finished.

    Wrong::

        kept = []
        fad.grad(lambda x: kept.append(x) or x**2)(3.0)
        kept[0] + 1

    Right: return the value, with ``has_aux=True`` if it is not the thing to differentiate::

        g, x = fad.grad(lambda x: (x**2, x), has_aux=True)(3.0)
    """


class TracerConversionError(FadError, TypeError):
    """A traced value was about to become a plain array or number, which would lose its derivative.

    Wrong::

        fad.grad(lambda x: math.frexp(x)[0])(1.0)
        fad.grad(lambda x: np.sum(fill(table, x)))(1.0)     # where fill does table[0] = x

    Right::

        fad.grad(lambda x: np.frexp(x)[0])(1.0)
        fad.grad(lambda x: np.sum(fill(table.copy(), x)))(1.0)

    An array that the function makes takes traced values; one from outside is a plain array.

    For the number itself, without its derivative, write ``float(fad.stop_gradient(x))``.
    """

    caller = ""  # the function of another library that requested it


class ItemAssignmentError(FadError, TypeError):
    """A traced value was written into an array of integers, or code that runs again wrote into what is not its own.

    An array of integers would round the value, and a rounded value has no derivative. A function under ``checkpoint``
    runs again in the backward pass, so it may write into copies of its arguments and into arrays that it makes. A
    function given to a solver is called with plain numbers: what it wrote into an array of the program has no
    derivative, and is not read.

    Wrong::

        y = np.zeros(3, int)
        y[0] = x[0]

    Right::

        y = np.zeros(3)
        y[0] = x[0]
    """


class MissingRuleError(FadError, TypeError):
    """A NumPy function was called on a traced value, and fad has no derivative rule for it.

    Wrong::

        fad.grad(lambda x: np.busday_count(x, x))(1.0)

    Right: use an operation that has a rule, or give one with :func:`fad.custom_jvp` or :func:`fad.custom_vjp`.
    """


class RefusedAttributeError(MissingRuleError, AttributeError):
    """An attribute was read of a traced value that its plain value lacks, too: a method that NumPy has given up.

    It is an AttributeError, so that ``hasattr`` answers False, as it does for the plain value.

    Wrong::

        fad.grad(lambda x: x.ptp())(np.arange(3.0))

    Right::

        fad.grad(lambda x: np.ptp(x))(np.arange(3.0))
    """


class BatchedValueError(FadError, TypeError):
    """A batched value, which stands for many numbers, was converted to one, as by ``math.ulp(x)``.

    Wrong::

        fad.vmap(lambda x: math.ulp(x) + 1)(np.arange(3.0))

    Right::

        fad.vmap(lambda x: x + 1)(np.arange(3.0))
    """

    caller = ""  # as of TracerConversionError


class MutationError(FadError, RuntimeError):
    """An array was overwritten after an operation had saved it for the derivative, and fad has no copy of it.

    The derivative would be silently wrong, so it is refused. Plain arrays that meet traced values are copied, large
    ones up to 1 GiB; so this is about what a function does to its own inputs, and about still larger arrays.

    Wrong::

        fad.grad(lambda x: np.sum(x * x) + clear(w))(w)    # where clear does w[:] = 0

    Right::

        fad.grad(lambda x: np.sum(x * x) + clear(w))(w.copy())
    """
