"""``jit``: record a call, optimise the recording, replay it.

The first call of a signature (tree structure, shapes, dtypes, static arguments) runs the function and records it;
later ones run the recorded program. A program is right for one *path*: the outcomes of ``if``, ``int`` and the like.
They are checked on replay, and another path is recorded when one is first taken.

A call with traced arguments runs its transform inside: under ``grad`` the pullback is a jitted function of its own,
under ``vmap`` the batched function is, under ``jvp`` the pushed one. Where several transforms meet, and inside another
``jit``, the function itself runs on the tracers, and every transform sees the operations one by one.
"""

from __future__ import annotations

import functools
import sys
import threading
from collections import namedtuple
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fad import tree
from fad.backends import DEVICE_ARRAYS, open_memmap
from fad.compile.pipeline import optimise
from fad.compile.targets.select import load_compiler
from fad.core.primitives.limits import Crowded
from fad.core.programs.graph import GuardFailed
from fad.core.runs import effects
from fad.core.runs.journal import run_instead
from fad.core.runs.transformed import Wrapping, as_run, name_of
from fad.core.tracing.tracer import Tracer, youngest
from fad.core.tracing.weak import number
from fad.jitting.call import JittedCall, describe, own
from fad.jitting.donated_arrays import DONATED, donate, refuse_gone, take_back
from fad.jitting.nested import RULES
from fad.jitting.notebook import programs_as_html
from fad.jitting.programs import (
    MAX_SIGNATURES,
    Path,
    Signature,
    again,
    is_of_values,
    note_operation,
)
from fad.jitting.static_arguments import StaticArguments, as_tuple, hashable
from fad.staging.record import make_graph
from fad.staging.record_trace import LARGEST, is_traceable
from fad.transforms.arguments.check import separate
from fad.transforms.arguments.mutation import overlaps
from fad.transforms.arguments.undo_writes import outside
from fad.transforms.batching.batch_trace import plain_state
from fad.transforms.outside.handles import closes_over_tracer
from fad.tree.nodes import flatten_with_orders

CacheInfo = namedtuple("CacheInfo", "hits misses signatures paths")
_ARRAY = np.ndarray
_SCALARS = frozenset({bool, complex, np.float32, np.int64, np.int32, np.bool_, np.complex128})


class Jitted(Wrapping):
    """What ``jit`` returns: a function that records its calls and replays them."""

    def __init__(self, fun: Callable, static_argnums: Any, static_argnames: Any, donate_argnums: Any):
        self.adopt(fun)
        self.fun = fun
        self._options = (static_argnums, static_argnames, donate_argnums)
        self._static = StaticArguments(fun, static_argnums, static_argnames)
        self._donated = as_tuple(donate_argnums)
        self._signatures: dict[Any, Signature] = {}
        self._quick: dict[Any, Path] = {}
        self._inner: dict[Any, Jitted] = {}
        self._lock = threading.RLock()
        self._hits = self._misses = 0
        self._crowded = False  # whether a warning has said that there are many signatures
        self._asks = False  # whether its loops met repeated values: then they are recorded step by step
        self._warned_random = False  # whether a warning has said that the function draws random numbers of its own
        self._plain = not (self._static or self._donated)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def __reduce__(self) -> Any:
        """Pickle and copy by name where a module knows it, as functions are; otherwise as a jit without recordings."""
        module, name = getattr(self, "__module__", None), getattr(self, "__qualname__", "")
        found: Any = sys.modules.get(module or "")
        for part in name.split("."):
            found = getattr(found, part, None)
        return name if found is self else (Jitted, (self.fun, *self._options))

    def __repr__(self) -> str:
        return f"<fad.jit of {name_of(self.fun)}>"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._plain and not kwargs:
            key: tuple = ()  # of few: adding to a tuple is quicker than to a list
            for x in args:
                kind = type(x)
                if kind is _ARRAY:
                    key += (x.shape, x.dtype)
                elif kind is float or kind is np.float64 or kind in _SCALARS or (kind is int and _fits(x)):
                    key += (kind,)
                elif kind in DEVICE_ARRAYS:
                    key += (kind, x.shape, x.dtype)
                else:
                    break
            else:
                path = self._quick.get(key)
                if path is not None and not (path.depends and path.differs(path.table) and path.is_unfit(args)):
                    if DONATED:
                        refuse_gone(args)
                    try:
                        out = path.entry(args)[0] if path.simple else path.run(args)
                    except (GuardFailed, Crowded):
                        pass
                    except Exception as error:
                        note_operation(error)
                        if not is_of_values(error):
                            raise
                        return again(error, run_instead, error, self.fun, *map(own, args))
                    else:
                        self._hits += 1
                        return out
        return self._call(args, kwargs)

    def _call(self, args: tuple, kwargs: dict) -> Any:
        args_given = args
        fun, args, kwargs, static = self._static.split(args, kwargs)
        leaves, in_tree, orders, state = effects.open_flatten((args, kwargs), flatten_with_orders)
        program = effects.with_changes(fun) if state else fun
        if DONATED:
            refuse_gone(leaves)
        leaves = [open_memmap(x) for x in leaves]
        traced, key = [], []
        for x in leaves:
            if is_traceable(x):
                traced.append(True)
                key.append((*describe(x),))
            elif type(x) is Tracer:
                return _settle(state, self._under(program, leaves, in_tree, (orders, static)))
            elif hasattr(x, "dtype"):
                return _settle(state, _on_own(program, in_tree, leaves))  # an array of Python's objects
            else:
                traced.append(False)
                key.append(hashable(x, "an argument that is no array"))
        xs = [x for x, t in zip(leaves, traced, strict=True) if t]
        donated, given = self._give(args_given, leaves, xs) if self._donated else ((), [])
        call = JittedCall(self, program, in_tree, leaves, traced, xs, donated)
        try:
            out = call.run((in_tree, (*key, orders), static), self._quick_key(leaves, in_tree, traced))
        except BaseException:
            for x in given if not call.written else ():
                take_back(x)
            raise
        return _settle(state, out)

    def _quick_key(self, leaves: list, in_tree: Any, traced: list) -> Any:
        if not self._plain or not all(traced) or in_tree != tree.structure((tuple(leaves), {})):
            return None
        key: list = []
        for x in leaves:
            key += describe(x)
        return tuple(key)

    def _under(self, fun: Callable, leaves: list, in_tree: Any, static: Any) -> Any:
        """Run a call with traced arguments: compiled if one transform of plain values calls, else on the tracers."""
        trace: Any = youngest(leaves)
        mine = [type(x) is Tracer and x.owner is trace for x in leaves]
        values = [number(trace.lower(x)) for x in leaves]
        rule = RULES.get(type(trace))
        if rule is None or not all(map(is_traceable, values)) or closes_over_tracer(self.fun):
            return _on_own(fun, in_tree, leaves)

        def flat(*xs):
            args, kwargs = tree.unflatten(in_tree, xs)
            return as_run(fun)(*args, **kwargs)

        def cache(kind, make):
            key = (kind, in_tree, tuple(mine), static)
            found = self._inner.get(key)
            if found is None:
                if len(self._inner) >= MAX_SIGNATURES:
                    self._inner.clear()
                found = self._inner[key] = jit(make())
            return found

        return rule(trace, flat, leaves, values, mine, cache, functools.partial(outside, self.fun))

    def _give(self, args: tuple, leaves: list, xs: list) -> tuple[tuple, list]:
        """Take the donated arrays from the caller; return their numbers among the program's inputs, and themselves."""
        given = {id(x) for n in self._donated if n < len(args) for x in tree.leaves(args[n]) if type(x) is np.ndarray}
        arrays = [x for x in leaves if type(x) is np.ndarray]
        mine = [x for x in arrays if id(x) in given]
        for x in mine:
            donate(x)
        numbers = tuple(k for k, x in enumerate(xs) if id(x) in given)
        if not overlaps(mine, [x for x in arrays if id(x) not in given]):
            return numbers, mine
        for k in numbers:  # what a result is written into may not be another argument as well
            xs[k] = xs[k].copy()
        return (), mine

    # --- what users may inspect -----------------------------------------------------------------------------------

    def cache_info(self) -> CacheInfo:
        """Return hits, misses, and the numbers of signatures and paths recorded."""
        signatures = [s for s in list(self._signatures.values()) if not s.by_layout]  # another thread may be recording
        return CacheInfo(self._hits, self._misses, len(signatures), sum(len(s.paths) for s in signatures))

    def captured(self) -> list:
        """Return the arrays from outside that recordings have as constants."""
        return [x for s in list(self._signatures.values()) for path in s.paths for x, *_ in path.outer.arrays]

    def clear_cache(self) -> None:
        """Forget all recordings."""
        with self._lock:
            self._signatures.clear()
            self._quick.clear()
            self._inner.clear()
            self._hits = self._misses = 0

    def explain(self) -> str:
        """Return what was recorded, under which guards, and how each program runs, as text."""
        name = getattr(self.fun, "__name__", "function")
        lines = [f"jit of {name}: {self.cache_info()}"]
        for signature in list(self._signatures.values()):
            lines += signature.describe()
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return programs_as_html(repr(self), self.cache_info(), list(self._signatures.values()))


def _settle(state: list, out: Any) -> Any:
    """Return the output of a call, after writing what it changed of the state of its arguments."""
    return effects.apply_changes(state, out, plain_state) if state else out


def _on_own(fun: Callable, in_tree: Any, leaves: list) -> Any:
    """Run a function without jit on arguments of its own; its results share no memory, as those of a program."""
    args, kwargs = tree.unflatten(in_tree, list(map(own, leaves)))
    ys, out_tree = tree.flatten(fun(*args, **kwargs))
    return tree.unflatten(out_tree, separate(ys, leaves))


def _fits(n: int) -> bool:
    return -LARGEST < n < LARGEST


def jit(
    fun: Callable | None = None,
    *,
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Sequence[str] | None = None,
    donate_argnums: int | Sequence[int] | None = None,
) -> Any:
    """Return a function that records `fun` on its first call and replays the recording, optimised, on later ones.

    The compiler is loaded here, when the first function is given, and not in a call.

    Parameters
    ----------
    fun : callable
        A pure function of arrays, numbers and pytrees; ``@jit`` and ``@jit(...)`` both work. What it prints or appends
        happens when it is recorded, and not on replay. What it takes from outside its arguments is constant until an
        array is overwritten, or a variable, attribute or element bound to something else: then it is recorded again.
    static_argnums : int or tuple of int, keyword only
        Arguments that are part of the signature: any hashable values.
    static_argnames : str or tuple of str, keyword only
    donate_argnums : int or tuple of int, keyword only
        Arguments whose arrays the caller donates: native programs may write results of the same shape and dtype
        into their memory, where they are large. Passing such an array to a jitted function again raises; so look only
        at what was returned. A call that raises because of its values (a singular matrix, an index out of range) leaves
        them as they were, and gives them back; one that is interrupted may not.

    Returns
    -------
    callable
        With ``.cache_info()``, ``.clear_cache()`` and ``.explain()``.
        Python's ``if``, ``while`` and ``int(x)`` work on its values: each answer is checked on replay.
        Arrays of a device have programs of their own, in which groups of elementwise operations are kernels.
        Native programs give no floating point warnings; under ``np.errstate(all="raise")`` calls run in NumPy.

    Raises
    ------
    StaticArgumentError
        for a static argument that cannot be hashed; ImpureFunctionError if the function is seen to depend on something
        besides its arguments; DonatedArrayError for a donated array that is used again.

    Examples
    --------
    >>> import numpy as np
    >>> f = jit(lambda x: np.sum(np.sin(x) ** 2))
    >>> f(np.zeros(3)), f(np.full(3, np.pi / 2))
    (np.float64(0.0), np.float64(3.0))
    """
    if fun is None:
        return functools.partial(
            jit, static_argnums=static_argnums, static_argnames=static_argnames, donate_argnums=donate_argnums
        )
    load_compiler()
    return Jitted(fun, static_argnums, static_argnames, donate_argnums)


def source(fun: Callable, *, name: str | None = None) -> Callable:
    """Return a function that gives the program that `fun` runs, as NumPy source that a person can read and paste.

    Parameters
    ----------
    fun : callable
        May itself be a derivative: ``source(grad(f))(x)`` is the derivative written out.
    name : str, keyword only
        The name of the function in the text: an identifier. ``"program"`` by default.

    Returns
    -------
    callable
        Takes the arguments of `fun` and returns the text of a module; its one function takes the leaves of the
        arguments in order. It holds for arguments of the same shapes and dtypes that lead down the same path.

    Raises
    ------
    MissingRuleError
        for an operation that cannot be written with NumPy alone.
    ValueError
        for a name that is no identifier, or that the text has for something else, as ``np``.

    Examples
    --------
    >>> import fad, numpy as np
    >>> print(source(fad.grad(lambda x: np.sum(x * x)))(np.ones(3)))
    import numpy as np
    <BLANKLINE>
    <BLANKLINE>
    def program(a):
        b = a + a
        return b
    <BLANKLINE>
    """
    from fad.compile.codegen.numpy_printer import checked_name, readable

    chosen = "program" if name is None else checked_name(name)

    def text(*args: Any, **kwargs: Any) -> str:
        inner = fun.fun if isinstance(fun, Jitted) else fun
        return readable(optimise(make_graph(inner)(*args, **kwargs)), chosen)

    return text
