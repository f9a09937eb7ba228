"""Errors about what a transform was given, and what the function that it transforms returned."""

from __future__ import annotations

from fad.errors.base import FadError


class NonScalarOutputError(FadError, TypeError):
    """``grad`` of a function whose output is not one real number.

    Wrong::

        fad.grad(lambda x: x**2)(np.ones(3))

    Right, depending on what is meant::

        fad.grad(lambda x: np.sum(x**2))(np.ones(3))   # gradient of the sum
        fad.jacobian(lambda x: x**2)(np.ones(3))       # all partial derivatives
        fad.elementwise_grad(lambda x: x**2)(np.ones(3))
    """


class IntegerInputError(FadError, TypeError):
    """A derivative was requested with respect to integers or booleans, which have none.

    Wrong::

        fad.grad(lambda x: x**2)(3)

    Right::

        fad.grad(lambda x: x**2)(3.0)
        fad.grad(lambda x: x**2.0, allow_int=True)(3)    # zeros, where the output is no integer
    """


class IntegerOutputError(FadError, TypeError):
    """A gradient or Jacobian was requested of an output that counts, compares or numbers places: it has no derivative.

    Wrong::

        fad.grad(lambda x: np.argmax(x))(x)
        fad.grad(lambda x: np.sum(x > 0))(x)

    Right, depending on what is meant::

        fad.grad(lambda x: x[np.argmax(x)])(x)                       # of what stands there
        fad.grad(lambda x: np.sum(1 / (1 + np.exp(-x / 0.1))))(x)    # of a smooth count
        fad.grad(lambda x: (loss(x), np.argmax(x)), has_aux=True)(x) # an integer beside a loss
    """


class ComplexGradientError(FadError, TypeError):
    """``grad`` met a complex output, or ``holomorphic=True`` met a real one.

    Wrong::

        fad.grad(lambda z: z**2)(1 + 2j)

    Right::

        fad.grad(lambda z: z**2, holomorphic=True)(1 + 2j)   # the complex derivative
        fad.grad(lambda z: abs(z**2))(1 + 2j)                # a real loss of a complex number
    """


class ArgnumsError(FadError, ValueError):
    """``argnums`` or ``argnames`` points at an argument that was not given, twice at the same, or is no integer.

    Wrong::

        fad.grad(f, argnums=2)(x, y)

    Right::

        fad.grad(f, argnums=1)(x, y)
    """


class TreeMismatchError(FadError, ValueError):
    """Two pytrees that must have the same structure do not: primals and tangents, outputs and cotangents.

    Wrong::

        fad.jvp(f, (x, y), (dx,))

    Right::

        fad.jvp(f, (x, y), (dx, dy))
    """


class ShapeMismatchError(FadError, ValueError):
    """A tangent or cotangent does not have the shape of the value that it belongs to.

    Wrong::

        fad.jvp(np.sin, (np.ones(3),), (1.0,))

    Right::

        fad.jvp(np.sin, (np.ones(3),), (np.ones(3),))
    """


class DtypeMismatchError(FadError, TypeError):
    """A tangent or cotangent does not have the dtype of the value that it belongs to.

    Wrong::

        fad.jvp(np.sin, (np.ones(3, "float32"),), (np.ones(3),))

    Right::

        fad.jvp(np.sin, (np.ones(3, "float32"),), (np.ones(3, "float32"),))
    """


class UnsupportedInputError(FadError, TypeError):
    """A value that fad cannot differentiate: an object array, a string, a masked array, an unknown type.

    Wrong::

        fad.grad(f)(np.array([1.0, None]))

    Right::

        fad.grad(f)(np.array([1.0, np.nan]))
    """


class BatchingError(FadError, ValueError):
    """``in_axes``, ``out_axes`` or the sizes along them do not fit the arguments of a ``vmap``-ed function.

    Wrong::

        fad.vmap(f, in_axes=(0, 0))(np.ones(3), np.ones(4))

    Right::

        fad.vmap(f, in_axes=(0, None))(np.ones(3), np.ones(4))
    """
