"""Errors and warnings about recorded and compiled programs: loops, jit, and what a recording depends on."""

from __future__ import annotations

from fad.errors.base import FadError


class MemoryLimitError(FadError, MemoryError):
    """A loop cannot be differentiated in reverse within ``fad.config.memory_limit``; the message says what would do.

    Wrong, for a state of 8 MB and its cotangent need more::

        with fad.config.use(memory_limit="10MB"):
            fad.jit(fad.grad(lambda x: fad.fori_loop(0, 1000, step, x).sum()))(np.ones(10**6))

    Right::

        with fad.config.use(memory_limit="500MB"):
            fad.jit(fad.grad(lambda x: fad.fori_loop(0, 1000, step, x).sum()))(np.ones(10**6))
    """

    def __init__(self, message: str = "", least: int = 0):
        super().__init__(message)
        self.least = least  # bytes


class LoopFallbackWarning(UserWarning):
    """An operation has no batching rule, so ``vmap`` ran it in a loop over the batch; or ``jit`` unrolls a long loop.

    A loop is unrolled whose body asks a question about values that differ from step to step (``if``, ``int(x)``,
    a plain list or array indexed by the number of the step), or that changes state outside of it.

    Wrong::

        fad.jit(lambda x: fad.fori_loop(0, 5000, lambda i, s: s * 0.5 if s > 1 else s + 0.1, x))(3.0)

    Right::

        fad.jit(lambda x: fad.fori_loop(0, 5000, lambda i, s: np.where(s > 1, s * 0.5, s + 0.1), x))(3.0)
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
