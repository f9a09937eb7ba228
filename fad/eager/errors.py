"""The exceptions of the eager API; each docstring shows a wrong program and the right one."""

from __future__ import annotations

from fad.errors import FadError, IntegerInputError, NonScalarOutputError


class BackwardError(FadError, RuntimeError):
    """``backward`` or ``autograd.grad`` needs something that the graph cannot give.

    Wrong::

        y = (x * x).sum()
        y.backward()
        y.backward()                      # what the first pass needed is gone

    Right::

        y.backward(retain_graph=True)
        y.backward()
    """


class InPlaceError(FadError, RuntimeError):
    """A tensor was changed in place where its history does not allow it.

    Wrong::

        w = torch.ones(3, requires_grad=True)
        w += 1

    Right::

        with torch.no_grad():             # an update of a parameter
            w += 1
        v = w + 1                         # a step of the computation
    """


class RequiresGradError(FadError, RuntimeError):
    """A tensor that requires grad was to become a plain array, which would lose its history.

    Wrong::

        plt.plot(x, y)          # x requires grad

    Right::

        plt.plot(x.detach(), y.detach())
    """


class ImplicitGradientError(NonScalarOutputError, RuntimeError):
    """``backward()`` without a vector was called on a tensor that is not one number.

    Wrong::

        (x * x).backward()

    Right::

        (x * x).sum().backward()
        (x * x).backward(torch.ones_like(x))
    """


class IntegerTensorError(IntegerInputError, RuntimeError):
    """Integers and booleans cannot require grad: write ``torch.tensor(3.0)``, or ``x.float()``."""
