"""The trace of ``vmap``: how operations, writes and questions run on a batch.

A batched tracer's value carries the batch axis in front, always; its shape does not show it. Batch elements whose paths
part here raise a `Split`, with which `vmap` runs the function again for each group of them.
"""

from __future__ import annotations

import contextlib
import operator
import warnings
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Any

import numpy as np

from fad.backends import host, made_like
from fad.core.programs.graph import EFFECT
from fad.core.programs.refusals import refuses
from fad.core.tracing.conversions import to_number_of_batch
from fad.core.tracing.ended_runs import end_run
from fad.core.tracing.layers import fresh_layers
from fad.core.tracing.trace import Trace
from fad.core.tracing.tracer import Tracer, any_of, bind, tracer
from fad.core.tracing.values import class_of_element
from fad.core.tracing.views import RUNS, copy_layout, fresh, own_memory, replace_root, shares, snapshot
from fad.errors import BatchedValueError, BatchingError, LoopFallbackWarning, TracerConversionError
from fad.transforms.arguments.check import as_flat, as_operand
from fad.transforms.batching.batch_axes import (
    put_behind_batch,
)
from fad.transforms.reverse.layered_writes import overwrite_layers

_warned: set[str] = set()


FLAT = "flat"  # the info of values that steps have made, which have no derivative


class Split(BaseException):
    """Batch elements take different paths from here on. Not an Exception: user code may catch those."""

    def __init__(self, trace: BatchTrace, groups: list):
        self.trace = trace
        self.groups = groups  # [(path, numbers of elements)]


batching: ContextVar[tuple] = ContextVar("batching", default=())
"""The traces of the runs under vmap that are in progress, outermost first."""


@contextlib.contextmanager
def replaced(trace: BatchTrace) -> Iterator[None]:
    """Run the same batch by another vmap, in the place of one that is in progress."""
    token = batching.set(tuple([other for other in batching.get() if other is not trace]))
    try:
        yield
    finally:
        batching.reset(token)


class BatchTrace(Trace):
    """The trace of vmap, for one run over the batch elements that share a path."""

    __slots__ = ("size", "path", "taken", "on_branch", "writes")
    kind = "vmap"
    batched = True
    parts = ("wrapped",)

    def __init__(self, size: int, path: tuple, on_branch: str):
        super().__init__()
        self.size = size
        self.path = path
        self.taken = 0
        self.on_branch = on_branch
        self.writes = False

    def note_writes(self) -> None:
        self.writes = True

    def overwrite(self, root: Tracer, path: list, template: tuple, v: Any, arrays: tuple) -> bool:
        """Write into memory that only this trace knows, at an index that is the same for every example."""
        mine = type(v) is Tracer and v.owner is self
        value = v.wrapped if mine else v
        if RUNS.depth > 1 or Tracer in (type(root.wrapped), type(value)):
            return overwrite_layers(self, root, path, template, v, arrays)
        if arrays or root.owner is not self:
            return False
        if not all(prim.view.in_place for prim, _ in path):
            return False
        memory = own_memory(root, _copy)
        place = root.wrapped
        for prim, params in path:
            place = prim.batch(self if prim.needs_trace else self.size, (True,), [place], params)
        if path and not shares(place, root.wrapped):
            return False
        place = place[(slice(None), *template)]
        place[...] = put_behind_batch(value, place) if mine else value
        memory.version += 1
        return True

    def give_back(self, x: Tracer) -> None:
        """Let an array from outside stand for what the last example wrote, as after a loop over the examples."""
        y = x.wrapped[-1]
        replace_root(x, snapshot(y) if type(y) is Tracer else tracer(np.array(y), Trace.of_plain, None))

    def shape(self, x: Tracer) -> tuple[int, ...]:
        return x.wrapped.shape[1:]

    def class_of(self, x: Tracer) -> type:
        return bool if x.info is bool else class_of_element(x.wrapped)  # a flag that is Python's for each element

    def show(self, x: Tracer) -> str:
        return f"{self.size} batch elements of shape {self.shape(x)}: {x.wrapped}"

    def format(self, x, spec):
        if self.shape(x):
            return format(np.empty(self.shape(x)), spec)  # which NumPy refuses
        return f"{self.size} batch elements of shape (): [{' '.join(format(v, spec) for v in x.wrapped)}]"

    def stop(self, x: Tracer) -> Tracer:
        v = x.wrapped
        return tracer(v.owner.stop(v) if type(v) is Tracer else v, self, None)

    # --- the hot path: elementwise operations of values that need no aligning -----------------------------------

    def unary(self, prim: Any, x: Tracer) -> Any:
        if self.dead or prim.partials is None or (self.writes and self._may_share(prim, x)):
            return bind(prim, x)
        try:
            return self._wrap(prim, prim(x.wrapped))
        except Exception:
            return bind(prim, x)  # `process` knows what to do

    def both(self, prim: Any, x: Tracer, y: Tracer) -> Any:
        a, b = x.wrapped, y.wrapped
        if self.dead or prim.partials is None or a.ndim != b.ndim:
            return bind(prim, x, y)
        if self.writes and (self._may_share(prim, x) or type(y.memory) is tuple):
            return bind(prim, x, y)
        try:
            return self._wrap(prim, prim(a, b))
        except Exception:
            return bind(prim, x, y)

    def left(self, prim: Any, x: Tracer, b: Any) -> Any:
        if type(b) not in (float, int) or self.dead or prim.partials is None:
            return super().left(prim, x, b)
        if self.writes and self._may_share(prim, x):
            return super().left(prim, x, b)
        try:
            return self._wrap(prim, prim(x.wrapped, b))
        except Exception:
            return super().left(prim, x, b)

    def right(self, prim: Any, a: Any, y: Tracer) -> Any:
        if type(a) not in (float, int) or self.dead or prim.partials is None:
            return super().right(prim, a, y)
        if self.writes and self._may_share(prim, y):
            return super().right(prim, a, y)
        try:
            return self._wrap(prim, prim(a, y.wrapped))
        except Exception:
            return super().right(prim, a, y)

    def _may_share(self, prim: Any, x: Tracer) -> bool:
        """Return whether an operand is a view, to be taken again, or an operation may hand it on."""
        return type(x.memory) is tuple or type(prim.forward) is not np.ufunc

    def _wrap(self, prim: Any, y: Any) -> Tracer:
        out = Tracer()
        out.wrapped = y
        out.owner = self
        out.info = FLAT if prim.flat is True else None
        out.memory = None
        return out

    def process(self, prim: Any, args: tuple, params: dict) -> Any:
        if self.dead:
            self.check_alive()
        values, batched = [], []
        for x in args:
            if type(x) is Tracer and x.owner is self:
                values.append(x.wrapped)
                batched.append(True)
            else:
                x = as_operand(x, args)
                if x is NotImplemented:
                    return x
                values.append(x)
                batched.append(False)
        try:
            if prim.batch is None:
                y = self._loop(prim, values, batched, params)
            else:
                y = prim.batch(self if prim.needs_trace else self.size, tuple(batched), values, params)
        except Exception as error:
            if prim.archetype != EFFECT and refuses(prim, args, error):
                self.separate_errors(error, lambda *element: bind(prim, *element, **params), values, batched)
            raise
        if prim.multi:
            return tuple(tracer(v, self, None) for v in y)
        out = tracer(as_flat(y), self, FLAT if prim.flat is True or _moves_flat(prim, args) else None)
        if self.writes and not (prim.view is not None and prim.view.is_view(args[0], out, params)):
            out.wrapped = fresh_layers(y, values) if type(y) is Tracer else fresh(y, values)
        return out

    def _loop(self, prim: Any, values: list, batched: list, params: dict) -> Any:
        if prim.name not in _warned:
            _warned.add(prim.name)
            warnings.warn(
                f"{prim.name} has no batching rule; vmap runs it in a loop over the batch",
                LoopFallbackWarning,
                stacklevel=4,
            )
        elements = [bind(prim, *element, **params) for element in _elements(values, batched, self.size)]
        if prim.multi:
            return tuple(np.stack(column) for column in zip(*elements, strict=True))
        return np.stack(elements)

    # --- splitting by path --------------------------------------------------------------------------------------

    def concrete(self, x: Tracer, convert: Callable) -> Any:
        if x.wrapped.shape[1:] != ():
            if x.size == 1 and convert is not operator.index:
                return self.concrete(x.reshape(()), convert)
            if convert is operator.index:
                raise TypeError("only integer scalar arrays can be converted to a scalar index")
            raise ValueError(
                f"the truth value of an array of shape {self.shape(x)} is ambiguous: use a.any() or a.all()"
            )
        return convert(self.decide(x.wrapped))

    def is_flat(self, x: Tracer) -> bool:
        below = x.wrapped
        return x.info is FLAT or (below.owner.is_flat(below) if type(below) is Tracer else super().is_flat(x))

    def decide(self, value: Any) -> Any:
        """Return the one outcome of a batched value in this run; split the batch if there are several.

        `value` carries the batch axis in front; the outcome may be an array (a boolean mask).
        """
        if self.dead:
            self.check_alive()
        plain = _plain(value)
        if self.taken < len(self.path):
            outcome = self.path[self.taken]
            self.taken += 1
            if np.shape(outcome) != plain.shape[1:] or outcome.dtype != plain.dtype:
                raise BatchingError(
                    "the batch elements of a vmap take different paths, and the function, run again for some of them, "
                    f"came to a question of shape {plain.shape[1:]} and dtype {plain.dtype} where it had been one of "
                    f"shape {np.shape(outcome)} and dtype {outcome.dtype}: it does not do the same twice"
                )
            return outcome
        if not self.size:
            return made_like(np.zeros_like, plain, plain.shape[1:])[()]  # the batch is empty: any will do
        flat = plain.reshape(self.size, -1)
        if self.size and (flat == flat[:1]).all():
            outcome = plain[0]
            self.path += (outcome,)
            self.taken += 1
            return outcome
        if self.ended is not None:
            return plain[0]  # the function caught what ends this run, and is to come to its end
        if self.on_branch == "error":
            why = "Python control flow on a batched value, and on_branch='error'. "
            end_run(self, BatchedValueError(why + "Use np.where, or vmap(..., on_branch='split')"))
        _, first, inverse = np.unique(flat, axis=0, return_index=True, return_inverse=True)
        inverse = inverse.reshape(-1)
        groups = [((*self.path, plain[i]), np.flatnonzero(inverse == k)) for k, i in enumerate(first)]
        self.withheld = Split(self, groups)
        end_run(self, self.withheld)

    def outcome(self, x: Tracer) -> Any:
        return self.decide(x.wrapped)

    def any_of(self, x: Tracer) -> bool:
        flat = x.wrapped.reshape(self.size, -1)
        found = any_of(flat)
        if found:
            self._separate([any_of(condition) for condition in flat])
        return found

    def separate_errors(self, error: Exception, run: Callable, values: list, batched: list) -> None:
        """Split the batch if what raised an error, run for one element at a time, raises for some of them alone.

        The function may catch the error: elements that have none go another way then.
        """
        if isinstance(error, (BatchedValueError, TracerConversionError)) or not self._splits:
            return
        errors: list = []
        for element in _elements(values, batched, self.size):
            try:
                run(*element)
                errors.append(None)
            except Exception as found:
                errors.append(type(found))
        self._separate(errors, error)

    @property
    def _splits(self) -> bool:
        """Whether this is the batch of a vmap in progress, and not that of a rule that runs a part on its own."""
        return any(trace is self for trace in batching.get())

    def _separate(self, outcomes: list, error: Exception | None = None) -> None:
        """Split the batch if an operation is an error for some of its elements.

        It is no question, whose answer would be part of the path: each group comes here again, and does alike.
        """
        kinds = list(dict.fromkeys(outcomes))
        if len(kinds) == 1 or not self._splits:
            return
        if self.on_branch == "error":
            why = "an operation raises for some batch elements, and on_branch='error'. "
            why += "Use np.where to avoid the error, or vmap(..., on_branch='split')"
            end_run(self, BatchedValueError(why), error)
        groups = [(self.path, np.array([i for i, k in enumerate(outcomes) if k is kind])) for kind in kinds]
        self.withheld = Split(self, groups)
        end_run(self, self.withheld)

    def number(self, x: Tracer, convert: Callable) -> Any:
        self.check_alive()
        raise self.refusal(to_number_of_batch(self.size))


def _moves_flat(prim: Any, args: tuple) -> bool:
    """Return whether an operation only moves elements of a value that has no derivative."""
    return prim.view is not None and type(args[0]) is Tracer and args[0].info is FLAT


def _elements(values: list, batched: list, size: int) -> Iterator[list]:
    """Return the operands of each batch element."""
    return ([v[i] if b else v for v, b in zip(values, batched, strict=True)] for i in range(size))


def _plain(x: Any) -> Any:
    """Return the plain array behind a value that other transforms may be tracing too."""
    while type(x) is Tracer:
        # An outer vmap splits its own batch first, so that its elements agree on what all inner ones do.
        x = x.owner.decide(x.wrapped) if isinstance(x.owner, BatchTrace) else x.owner.outcome(x)
    return np.asarray(host(x))


def _copy(root: Tracer) -> None:
    root.wrapped = copy_layout(root.wrapped)


def plain_state(value: Any) -> Any:
    """Return the plain array that a model's state gets: of a batched value, the mean over the batch elements."""
    while type(value) is Tracer and value.owner.kind != "jit":
        batched = isinstance(value.owner, BatchTrace)
        value = value.wrapped
        if batched and value.dtype.kind in "fc":
            value = np.add.reduce(value, axis=0) / len(value)
        elif batched:
            value = value[0]
    return value
