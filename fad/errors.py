"""Every exception of fad. Each docstring is that error's page in the documentation: a wrong program, and the right one.

All of them derive from :class:`FadError` and from the built-in exception a NumPy user would expect,
so ``except TypeError`` keeps working. The message ends with the user's own line
and the address of the error's page.
"""

from __future__ import annotations

import importlib
from typing import Any

from fad import config
from fad.introspect.frames import user_line

SITE = "https://fad.readthedocs.io/en/stable/"
"""Where the documentation is. The project's addresses in pyproject.toml begin with it too."""


class FadError(Exception):
    """Base of all errors of fad; appends the line of the user's program that led to it, and the error's page.

    ``fad.config.error_links.set(False)`` leaves the address of the page out.
    """

    def __init__(self, message: str = ""):
        line, page = user_line(), page_of(type(self))
        at = f"\n  at {line}" if line else ""
        see = f"\n  see {page}" if page and config.error_links.get() else ""
        super().__init__(f"{message}{at}{see}")


def page_of(error: type) -> str:
    """Return the address of the page about an error, or ``""`` for one that has none.

    >>> page_of(NotLinearError)
    'https://fad.readthedocs.io/en/stable/errors.html#fad.errors.NotLinearError'
    """
    for cls in error.__mro__:
        if cls.__module__.startswith("fad.") and cls is not FadError:
            return f"{SITE}errors.html#{cls.__module__}.{cls.__name__}"
    return ""


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
    """A derivative was asked with respect to integers or booleans, which have none.

    Wrong::

        fad.grad(lambda x: x**2)(3)

    Right::

        fad.grad(lambda x: x**2)(3.0)
        fad.grad(lambda x: x**2.0, allow_int=True)(3)    # zeros, where the output is no integer
    """


class IntegerOutputError(FadError, TypeError):
    """A gradient or Jacobian was asked of an output that counts, compares or numbers places: it has no derivative.

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

        fad.grad(lambda x: math.sin(x))(1.0)
        fad.grad(lambda x: np.sum(fill(table, x)))(1.0)     # where fill does table[0] = x

    Right::

        fad.grad(lambda x: np.sin(x))(1.0)
        fad.grad(lambda x: np.sum(fill(table.copy(), x)))(1.0)

    An array that the function makes takes traced values; one from outside is a plain array.

    For the number itself, without its derivative, write ``float(fad.stop_gradient(x))``.
    """

    caller = ""  # the function of another library that requested it


class ItemAssignmentError(FadError, TypeError):
    """A traced value was written into an array of integers, or code that runs again wrote into what is not its own.

    An array of integers would round the value, and a rounded value has no derivative. A function under ``checkpoint``
    runs again in the backward pass, so it may write into copies of its arguments and into arrays that it makes.

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
    """An attribute of an array's memory was asked of a traced array: ``x.strides``, ``x.ctypes``, ``x.data``.

    It is an AttributeError too, so that ``hasattr`` answers False.

    Wrong::

        fad.grad(lambda x: x.data[0])(x)

    Right: use the values, ``x[0]``, or the plain array behind them, ``fad.stop_gradient(x)``.
    """


class BatchingError(FadError, ValueError):
    """``in_axes``, ``out_axes`` or the sizes along them do not fit the arguments of a ``vmap``-ed function.

    Wrong::

        fad.vmap(f, in_axes=(0, 0))(np.ones(3), np.ones(4))

    Right::

        fad.vmap(f, in_axes=(0, None))(np.ones(3), np.ones(4))
    """


class BatchedValueError(FadError, TypeError):
    """``float(x)`` or ``x.item()`` was asked of a batched value, which stands for many numbers.

    Wrong::

        fad.vmap(lambda x: float(x) + 1)(np.arange(3.0))

    Right::

        fad.vmap(lambda x: x + 1)(np.arange(3.0))
    """


class BackendMismatchError(FadError, TypeError):
    """Arrays of two backends (NumPy on the host, CuPy on the GPU) met in one operation.

    Wrong::

        np.ones(3) * cupy.ones(3)

    Right::

        fad.device_put(np.ones(3), "cupy") * cupy.ones(3)
    """


class BackendFunctionError(FadError, TypeError):
    """A function was called on arrays of a device that the device's library does not have, nor fad by other means.

    Wrong::

        scipy.special.airy(fad.device_put(np.ones(3), "cupy"))      # CuPy has no airy

    Right::

        fad.device_put(scipy.special.airy(np.ones(3)), "cupy")      # on the host, and back
    """


class BackendNotFoundError(FadError, ImportError):
    """A backend was requested whose package is not installed, or which finds no device that works.

    Right::

        pip install 'cupy-cuda12x[ctk]'      # then, with an NVIDIA GPU and its driver, fad.backends.use("cupy")
    """


class ExtraNotInstalledError(FadError, ImportError):
    """A part of fad was requested that needs a package which is not installed.

    Right::

        pip install 'fad[scipy]'
    """


def load_with_scipy(name: str) -> Any:
    """Return a module of fad that needs SciPy; raise an error that says what to install where there is none."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "scipy":
            raise
        raise ExtraNotInstalledError(f"{name} needs SciPy: pip install 'fad[scipy]'") from None


class MutationError(FadError, RuntimeError):
    """An array was overwritten after an operation had saved it for the derivative, and fad has no copy of it.

    The derivative would be silently wrong, so it is refused. Plain arrays that meet traced values are copied, large
    ones up to 1 GiB; so this is about what a function does to its own inputs, and about still larger arrays.

    Wrong::

        fad.grad(lambda x: np.sum(x * x) + clear(w))(w)    # where clear does w[:] = 0

    Right::

        fad.grad(lambda x: np.sum(x * x) + clear(w))(w.copy())
    """


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


class MemoryLimitError(FadError, MemoryError):
    """A loop cannot be differentiated in reverse within ``fad.config.memory_limit``; the message says what would do.

    Wrong, for a state of 8 MB and its cotangent need more::

        with fad.config.use(memory_limit="10MB"):
            fad.jit(fad.grad(lambda x: fad.fori_loop(0, 1000, step, x).sum()))(np.ones(10**6))

    Right::

        with fad.config.use(memory_limit="500MB"):
            fad.jit(fad.grad(lambda x: fad.fori_loop(0, 1000, step, x).sum()))(np.ones(10**6))
    """


class LoopFallbackWarning(UserWarning):
    """An operation has no batching rule, so ``vmap`` ran it in a loop over the batch; or ``jit`` unrolls a long loop.

    A loop is unrolled whose body asks a question about values that differ from step to step (``if``, ``int(x)``,
    a plain list or array indexed by the number of the step), or that changes state outside of it.

    Wrong::

        fad.jit(lambda x: fad.fori_loop(0, 5000, lambda i, s: s * 0.5 if s > 1 else s + 0.1, x))(3.0)

    Right::

        fad.jit(lambda x: fad.fori_loop(0, 5000, lambda i, s: np.where(s > 1, s * 0.5, s + 0.1), x))(3.0)
    """


class GaugeDependenceWarning(UserWarning):
    """A derivative was asked of eigenvectors or singular vectors of repeated values, where it does not exist.

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


class ImpureFunctionError(FadError, RuntimeError):
    """A jitted or checkpointed function depends on something besides its arguments.

    Wrong::

        fad.jit(lambda x: x if np.random.rand() * x > 0.5 else -x)

    Right::

        fad.jit(lambda key, x: x if fad.random.uniform(key) * x > 0.5 else -x)
    """


class ImpureFunctionWarning(UserWarning):
    """A jitted function drew random numbers outside of ``fad.random``, or read a clock, while it was recorded.

    Its program repeats the numbers of the first call in all later ones.

    Wrong::

        fad.jit(lambda x: x + np.random.normal(size=x.shape))

    Right::

        fad.jit(lambda key, x: x + fad.random.normal(key, x.shape))
    """


class StaticArgumentError(FadError, TypeError):
    """A static argument of a jitted function cannot be hashed.

    Wrong::

        fad.jit(f, static_argnums=1)(x, [2, 3])

    Right::

        fad.jit(f, static_argnums=1)(x, (2, 3))
    """


class NonArrayOutputError(FadError, TypeError):
    """A jitted or recorded function returned something that is neither an array nor a number.

    Wrong::

        fad.jit(lambda x: {"y": x * 2, "name": "layer"})(1.0)

    Right::

        fad.jit(lambda x: {"y": x * 2})(1.0)
    """


class DonatedArrayError(FadError, RuntimeError):
    """An array that was donated to a jitted call was used again.

    A call that raised because of its values has given its arguments back; one that was interrupted may have not.

    Wrong::

        step = fad.jit(update, donate_argnums=0)
        new = step(params, x)
        new = step(params, x)

    Right::

        params = step(params, x)
        params = step(params, x)
    """


class PathLimitWarning(UserWarning):
    """A jitted function has more ways through it than jit keeps, or is called with new kinds of arguments every time.

    Further ways through it run without jit. Of the kinds of arguments those that are not in use are forgotten.

    Wrong, for each call has another function as its argument::

        step = fad.jit(lambda x, f: f(x), static_argnums=1)
        for x in data:
            step(x, lambda y: y * 2)

    Right::

        double = lambda y: y * 2
        for x in data:
            step(x, double)
    """


class NativeFallbackWarning(UserWarning):
    """A program could not be compiled to native code, and runs in NumPy instead.

    Results are the same; only the speed is NumPy's. The warning carries the compiler's reason and comes once. It is a
    bug of fad if the program is an ordinary one: please report it with the text of the warning.
    """
