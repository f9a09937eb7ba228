"""Errors about derivatives: rules of the user's, derivatives that do not exist, and checks that they fail."""

from __future__ import annotations

from fad.errors.base import FadError


class CustomRuleError(FadError, TypeError):
    """A custom derivative rule returned something of the wrong structure, shape or dtype, or is missing.

    Wrong::

        f.defvjp(fwd, lambda res, ct: ct)          # one value for one argument, not in a tuple

    Right::

        f.defvjp(fwd, lambda res, ct: (ct,))
    """


class NotLinearError(FadError, ValueError):
    """``linear_transpose`` was given a function that is not linear in its arguments.

    Wrong::

        fad.linear_transpose(np.sin, x)

    Right::

        fad.linear_transpose(lambda t: 3 * t, x)
    """


class NotSparseError(FadError, ValueError):
    """``fad.sparse`` met a function whose derivative has too many places to be kept as a sparse matrix.

    Wrong, for every element of the result depends on every input::

        fad.sparse.jacobian(lambda x: x / np.sum(x))(np.ones(100_000))

    Right::

        fad.jvp(lambda x: x / np.sum(x), (x,), (v,))  # its product with a vector
    """


class PullbackConsumedError(FadError, RuntimeError):
    """A recorded backward pass that runs once was to run a second time.

    ``fad.vjp`` returns a pullback that may be called as often as you like; this error concerns code that uses fad's own
    tapes (``fad.transforms.vjp.Tape``) with ``pull(keep=False)``, which frees each record when it has been read.

    Wrong::

        tape.pull([ct], keep=False)
        tape.pull([ct], keep=False)

    Right::

        tape.pull([ct], keep=True)
        tape.pull([ct], keep=False)
    """


class DerivativeError(FadError, ArithmeticError):
    """An operation has a value here, but no derivative that fad could give.

    Examples: the order of a Bessel function without a closed form, or an implicit derivative at a point
    that is no solution. The message says which and what to do instead.

    Wrong::

        fad.grad(scipy.special.jv)(0.5, 2.0)              # with respect to the order

    Right::

        fad.grad(scipy.special.jv, argnums=1)(0.5, 2.0)   # the order is a constant
    """


class GradientCheckError(FadError, AssertionError):
    """A derivative disagrees with finite differences or with another mode; raised by :mod:`fad.testing`.

    Wrong::

        sine = fad.custom_jvp(np.sin)
        sine.defjvps(lambda t, y, x: np.sin(x) * t)
        fad.testing.check_grads(sine, (1.0,), order=1)

    Right::

        sine.defjvps(lambda t, y, x: np.cos(x) * t)
        fad.testing.check_grads(sine, (1.0,), order=1)
    """


class GaugeDependenceWarning(UserWarning):
    """A derivative was requested of eigenvectors or singular vectors of repeated values, where it does not exist.

    Any basis of the space that belongs to a repeated value is as good as any other, so a result that depends on the
    choice jumps when the matrix is moved. A result that does not depend on it is differentiated exactly.

    Wrong::

        fad.grad(lambda a: np.linalg.eigh(a).eigenvectors[0, 0])(np.eye(3))

    Right::

        def sqrtm(a):
            w, v = np.linalg.eigh(a)
            return (v * np.sqrt(w)) @ v.T     # the same for every choice of v

        fad.grad(lambda a: sqrtm(a)[0, 0])(np.eye(3))
    """
