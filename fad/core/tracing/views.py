"""Arrays that change: which traced arrays are views of which, and what a write does to the handles on them.

A tracer is a *handle*: what user code holds. Its value never changes; a write computes a new value
(``index_set``) and points the handle at it, so every transform is right without knowing of writes. A view keeps how it
was taken from its parent and is taken again, at its next use, once the root of the views has been written. A slice,
a reshape or a transpose made by NumPy's rules is a view; everything else is a value of its own.

Computing a new value copies the array. A trace that can do better overwrites memory that it owns
(`Trace.overwrite`); see docs/design/in-place.md.
"""

from __future__ import annotations

import gc
import math
import threading
import weakref
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from fad.backends import ARRAYS, DEVICE_ARRAYS, behind


class _Runs(threading.local):
    def __init__(self) -> None:
        self.depth = 0  # how many transforms are running in this thread, one inside the other
        self.orders = 0  # of the derivatives that are being taken in this thread, all together
        self.buffers = 0  # how many of them need arrays that user code makes to be handles
        self.structured = 0  # how many of them need structured arrays to be handles as well
        self.rules = False  # whether a derivative's rules are running, and no code of the user's
        self.effects = False  # whether results of effects are kept until the outermost transform has come to its end
        self.below = False  # whether a layer is written of an array of a younger trace, and layers are all that runs
        self.touched: Any = None  # while a function runs that may run again: a `finding_writes`
        self.written = False  # whether a traced array was written
        self.asked = False  # whether something is a view or a copy, as arrays lie in memory
        self.aliases: Any = None  # while a program is recorded: arrays that may have another name, and their writes
        self.laid_out = False  # whether the program itself read how an array lies in memory
        self.refused: Any = None  # the last error of a traced value that was to become or to fill a plain array


RUNS = _Runs()
_LARGER = 8  # an array is at least so many times its part, of which a view would keep the whole of it


def refuse(error: Exception) -> Exception:
    """Keep an error that is raised now: a program may catch it, and go on with what would be wrong."""
    RUNS.refused = error
    return error


class running_rules:
    """For the length of a block a derivative's rules run, of which nobody writes into the results."""

    __slots__ = ("before",)

    def __enter__(self) -> None:
        self.before, RUNS.rules = RUNS.rules, True

    def __exit__(self, *_: Any) -> None:
        RUNS.rules = self.before


class Memory:
    """What a written array knows of itself: how often it was written, and whether its trace owns the memory."""

    __slots__ = ("version", "exchanged", "contents", "private", "borrowed", "outside", "lies_as")

    def __init__(self) -> None:
        self.version = 0
        self.exchanged = 0  # how many of these times no write was: it stood for something else for a while
        self.contents = 0  # how often plain memory was written, which its views see by themselves
        self.private = False  # nobody else holds the memory: it may be overwritten
        self.outside = False  # it is plain memory that others know, too: traced values cannot be written into it
        self.borrowed = False  # it is plain memory of the caller's: the first write goes into a copy
        self.lies_as: Any = None  # a plain array that shows how NumPy's would lie, where it is another way: a field


class ViewRule(NamedTuple):
    """How an operation relates to its operand, of which NumPy makes its result a view."""

    is_view: Callable  # (x, y, params) -> bool: whether this result is a view
    put_back: Callable | None  # (x, y, **params) -> x with the viewed part replaced by y; None if it is read-only
    in_place: bool = True  # whether the operation on plain arrays gives a view that cotangents can be moved through
    of_plain: Callable | None = None  # (x, **params) -> NumPy's view of a plain array, where the values are a copy


# The slot `memory` of a tracer holds None, a `Memory`, or for a view (parent, operation, parameters, version of root).


def root_of(x: Any) -> Any:
    """Return the array that a view was taken from in the end; an array that is no view is its own root."""
    while type(x.memory) is tuple:
        x = x.memory[0]
    return x


def version_of(x: Any) -> int:
    """Return how often the memory behind an array has been written."""
    memory = root_of(x).memory
    return 0 if memory is None else memory.version


def contents_of(x: Any) -> tuple[int, int]:
    """Return how often the memory behind an array has been written, plain memory included."""
    memory = root_of(x).memory
    return (0, 0) if memory is None else (memory.version - memory.exchanged, memory.contents)


def forget_writes(x: Any, before: tuple[int, int]) -> None:
    """Count only the writes that there had been `before`: an array stands again for what it stood for then."""
    if x.memory is not None:
        x.memory.exchanged, x.memory.contents = x.memory.version - before[0], before[1]


def is_outside(root: Any) -> bool:
    """Return whether the memory of a root belongs to an array from outside of the function that is transformed."""
    return type(root.memory) is Memory and root.memory.outside


def path_of(x: Any) -> list:
    """Return the steps (operation, parameters) that lead from the root to a view."""
    steps = []
    while type(x.memory) is tuple:
        steps.append(x.memory[1:3])
        x = x.memory[0]
    return steps[::-1]


def refresh(x: Any) -> None:
    """Take a view again if its root was written since."""
    memory = x.memory
    if type(memory) is not tuple:
        return
    root = memory[0].memory
    if type(root) is not tuple:  # what most views are: taken from an array that is no view itself
        version = 0 if root is None else root.version
        if memory[3] != version and ("template" in memory[2] or not memory[0].owner.take_view(x, memory[0])):
            _take_again(x, version)
        return
    stale = []
    y = x
    while type(y.memory) is tuple:
        stale.append(y)
        y = y.memory[0]
    version = 0 if y.memory is None else y.memory.version
    if x.memory[3] == version or y.owner.take_view(x, y):
        return
    for view in reversed(stale):
        if view.memory[3] != version:
            _take_again(view, version)


def _take_again(view: Any, version: int) -> None:
    parent, prim, params, _ = view.memory
    if "template" in params:
        point(view, parent.owner.index(prim, parent, params["template"]))
    else:
        point(view, prim(parent, **params))
    view.memory = parent, prim, params, version


def point(x: Any, y: Any) -> None:
    """Let a handle stand for what another one stands for."""
    x.wrapped, x.owner, x.info = y.wrapped, y.owner, y.info


def link(x: Any, y: Any, prim: Any, params: dict) -> None:
    """Note that a result is a view of the operand it was taken from."""
    if prim.view.is_view(x, y, params):
        y.memory = x, prim, params, version_of(x)
    elif y.owner.physical and type(x) is type(y) and shares(y.wrapped, x.wrapped):
        y.wrapped = y.wrapped.copy()  # of a field, which lies in memory of its own and not as in NumPy


def snapshot(x: Any) -> Any:
    """Return a tracer that stays what `x` is now, whatever is written into `x`."""
    if x.memory is not None:
        refresh(x)
        memory = root_of(x).memory
        if memory is not None:
            memory.private = False  # the next write goes into a copy
    y = type(x)()
    point(y, x)
    y.memory = None
    if x.owner.physical:
        y.wrapped, y.info = copy_layout(x.wrapped), None
    return y


def replace_root(root: Any, new: Any) -> None:
    """Let a root stand for its new value; its views follow at their next use."""
    if root.memory is None:
        root.memory = Memory()
    root.memory.version += 1
    root.memory.private = False
    RUNS.written = True
    root.owner.note_writes()
    if RUNS.touched is not None:
        RUNS.touched.add(root)
    if new.owner is not root.owner:
        new.owner.note_writes()
        new.owner.adopted.append(weakref.ref(root))
    point(root, new)


class Aliased(BaseException):
    """An array was written that a recording has under two names, where nothing says whether it is one array.

    Not an Exception: user code may catch those. The program is recorded again, with its loops step by step.
    """


class noting_aliases:
    """For the length of a block, note arrays that may be one and the same, and raise `Aliased` if one is written."""

    __slots__ = ("around",)

    def __enter__(self) -> None:
        self.around, RUNS.aliases = RUNS.aliases, []

    def __exit__(self, kind: Any, *_: Any) -> None:
        noted, RUNS.aliases = RUNS.aliases, self.around
        if kind is None and any(contents_of(x) != writes for x, writes in noted):
            raise Aliased


def note_alias(arrays: Iterable[Any]) -> None:
    """Note arrays that may be one and the same from now on, as later values decide."""
    if RUNS.aliases is not None:
        RUNS.aliases += [(x, contents_of(x)) for x in map(root_of, arrays)]


class finding_writes:
    """Find the arrays that code wrote into and that outlive it; with `undoable`, keep them as they were.

    Those that were values of a trace from the birth `since` on are the code's own, however long they live.
    """

    __slots__ = ("around", "found", "since", "undoable", "written")

    def __init__(self, undoable: bool = False, since: float = math.inf) -> None:
        self.undoable = undoable
        self.since = since

    def __enter__(self) -> finding_writes:
        self.around, RUNS.touched = RUNS.touched, self
        self.undoable = self.undoable or (self.around is not None and self.around.undoable)
        self.written: dict[int, tuple] = {}  # by id: a weak reference, what the array stood for, the birth of its trace
        self.found: list = []
        return self

    def add(self, root: Any) -> None:
        """Note that an array is about to be written."""
        known = self.written.get(id(root))
        if known is None or known[0]() is not root:
            then = (root.wrapped, root.owner, root.info, snapshot(root)) if self.undoable else None
            self.written[id(root)] = weakref.ref(root), then, root.owner.birth

    def __exit__(self, *_: Any) -> None:
        RUNS.touched = self.around
        for key, (reference, then, birth) in self.written.items():
            root = reference()
            if root is None or birth >= self.since:
                continue
            self.found.append((root, then))
            if self.around is not None:
                known = self.around.written.get(key)
                if known is None or known[0]() is not root:
                    self.around.written[key] = reference, then, birth

    def first_of_others(self) -> Any:
        """Return the first array that outlives the code since somebody else knows it; None if there is none.

        Cycles of references, as of a function that calls itself, let the code's own arrays live on for a while.
        """
        found = [weakref.ref(root) for root, _ in self.found]
        self.found = []
        for generation in range(3):  # the youngest objects first: that is fast
            if any(reference() is not None for reference in found):
                gc.collect(generation)
        return next((root for reference in found if (root := reference()) is not None), None)

    def undo(self, but: Any = ()) -> bool:
        """Let the arrays be what they were; return whether there are any. Those of the results are left out."""
        own = {id(root_of(x)) for x in but}
        changed = [(x, then) for x, then in self.found if id(x) not in own and x.memory is not None]  # a write may fail
        self.found = []
        for root, (value, trace, info, then) in changed:
            if trace.physical:
                root.wrapped, root.owner, root.info = value, trace, info
                value[...] = then.wrapped
                root.memory.contents += 1
            else:
                point(root, then)
            root.memory.private = False
            root.memory.version += 1
        return bool(changed)


def own_memory(root: Any, copy: Callable) -> Any:
    """Return the `Memory` of a root whose arrays its trace may overwrite; the first time they are copied."""
    memory = root.memory
    if memory is None:
        memory = root.memory = Memory()
    if not memory.private:
        root.owner.note_writes()
        copy(root)
        memory.private = True
        RUNS.written = True
        memory.version += 1  # views are taken again, of the copy
    return memory


class noticing_layouts:
    """Notice whether what a function does depends on how its arguments lie in memory."""

    __slots__ = ("around", "found")

    def __enter__(self) -> noticing_layouts:
        self.around = RUNS.written, RUNS.asked, RUNS.laid_out
        RUNS.written = RUNS.asked = RUNS.laid_out = self.found = False
        return self

    def __exit__(self, *_: Any) -> None:
        inside = RUNS.written, RUNS.asked, RUNS.laid_out
        self.found = RUNS.laid_out or (RUNS.asked and (RUNS.written or RUNS.buffers > 0))
        RUNS.written, RUNS.asked, RUNS.laid_out = (a or b for a, b in zip(self.around, inside, strict=True))


_WRITEABLE = 0x400  # NumPy's NPY_ARRAY_WRITEABLE


def is_writeable(x: np.ndarray) -> bool:
    """Return the flag ``writeable``; reading it by name warns where np.broadcast_arrays made the array."""
    return bool(x.flags.num & _WRITEABLE)


def repeats_elements(x: np.ndarray) -> bool:
    """Return whether several places of an array are one in memory, as in ``np.broadcast_to(x, (3, 4))``."""
    return 0 in x.strides and any(s == 0 and n > 1 for s, n in zip(x.strides, x.shape, strict=True))


def copy_layout(x: Any) -> Any:
    """Return a copy in which the same axes lie side by side as in the array, for on that depends what is a view."""
    if type(x) is not np.ndarray:
        return x.copy("K")  # of a device
    if x.flags.forc or not x.size:
        return np.array(x, order="K")
    if repeats_elements(x):
        return np.array(x, order="C")  # a value that stands for a new array, though its elements are one
    strides = [x.itemsize] * x.ndim
    start, wanted, step, last = 0, x.itemsize, x.itemsize, x.itemsize
    for axis in sorted([k for k, n in enumerate(x.shape) if n > 1], key=lambda k: abs(x.strides[k])):
        n, old = x.shape[axis], abs(x.strides[axis])
        step = step if old == wanted else step + x.itemsize  # a gap where there is one, but a small one
        strides[axis] = step if x.strides[axis] > 0 else -step
        start += step * (n - 1) if x.strides[axis] < 0 else 0
        last += step * (n - 1)
        wanted, step = old * n, step * n
    y = np.ndarray(x.shape, x.dtype, np.empty(last, np.uint8), start, strides)
    y[...] = x
    return y


def copy_argument(x: np.ndarray) -> np.ndarray:
    """Return a copy of an array as it was given: what is repeated along an axis, and no more in memory, stays so."""
    if 0 not in x.strides or not x.size:
        return copy_layout(x)
    once = x[tuple([slice(1) if s == 0 else slice(None) for s in x.strides])]
    return np.broadcast_to(copy_layout(once), x.shape)


def follow(x: Any, path: list) -> Any:
    """Return the part of a plain array that a path of views leads to, or None if that is no view of it."""
    if not path:
        return x
    part = x
    for prim, params in path:
        if not prim.view.in_place:
            return None
        part = prim.forward(part, **params)
    return part if shares(part, x) else None


def pick(place: np.ndarray, index: Any) -> Any:
    """Return what stands at an index, in memory of its own."""
    x = place[index]
    return copy_layout(x) if type(x) is np.ndarray and x.base is not None else x


def fresh(y: Any, operands: Any) -> Any:
    """Return a result in memory of its own: some operations hand an operand through."""
    if type(y) not in ARRAYS:
        return y
    for x in operands:
        if y is x or (y.base is not None and shares(y, x)):
            return copy_layout(y)
    return y


def pin_index(x: Any) -> Any:
    """Return an index or a mask that is looked at later as one that nobody overwrites until then."""
    if type(x) is not np.ndarray or x.dtype.kind not in "biu":
        return x
    return x.copy() if is_writeable(x) or x.base is not None else x


def unwrap(x: Any) -> Any:
    """Return the plain array or number behind a tracer, batch axes included."""
    while type(x).__name__ == "Tracer":
        x = x.wrapped
    return x


def layout(x: Any) -> Any:
    """Return a plain array that lies in memory as the array behind a tracer does; one example of a batch."""
    if type(x).__name__ == "Tracer" and type(x.memory) is tuple and (view := _view_of_plain(x)) is not None:
        return view
    if type(x).__name__ == "Tracer" and x.memory is not None and (view := _view_of_field(x)) is not None:
        return view
    batches = 0
    while type(x).__name__ == "Tracer":
        batches += x.owner.batched
        x = x.wrapped
    if not batches or type(x) not in ARRAYS:
        return x
    return x[(0,) * batches] if x.size else np.empty(x.shape[batches:], x.dtype)


def _view_of_field(x: Any) -> Any:
    """Return the layout of a field of a structured array, or of a view of one; None for all others."""
    memory = root_of(x).memory
    return None if memory is None or memory.lies_as is None else follow(memory.lies_as, path_of(x))


def _view_of_plain(x: Any) -> Any:
    """Return the layout of a view of which the values are a copy, or of a view of one; None for all others."""
    below = []  # views of the view of a plain array: pullbacks of a thousand np.append make as many
    parent, prim, params, _ = x.memory
    while prim.view.of_plain is None:
        if type(parent.memory) is not tuple or not prim.view.in_place:
            return None
        below.append((prim, params))
        parent, prim, params, _ = parent.memory
    view = prim.view.of_plain(layout(parent), **params)
    for prim, params in reversed(below):
        view = prim.forward(view, **params)
    return view


def owner(x: Any) -> Any:
    """Return the array that owns the memory of a plain array, or what stands for the memory of a device's."""
    if type(x) is not np.ndarray:
        return behind(x).memory_of(x)
    while type(x.base) is np.ndarray:
        x = x.base
    return x


def shares(x: Any, y: Any) -> bool:
    """Return whether two plain arrays lie in the same memory."""
    return type(x) in ARRAYS and type(y) in ARRAYS and owner(x) is owner(y)


def own_small_part(y: Any) -> Any:
    """Return a small part of an array as an array of its own: a view keeps the memory of all, and rules keep views."""
    if type(y) is not np.ndarray or not y.flags.c_contiguous or y.nbytes * _LARGER >= getattr(y.base, "nbytes", 0):
        return y
    part = y.copy()
    part.flags.writeable = is_writeable(y)
    return part


def may_be_view(y: Any) -> bool:
    """Return whether what stands at a basic index of a plain array is an array: a number is a copy, on a device too."""
    return type(y) is np.ndarray or (type(y) in DEVICE_ARRAYS and y.ndim > 0)


def is_array(x: Any) -> bool:
    """Return whether a tracer stands for an array, and not for a NumPy scalar, which no write can change."""
    memory = x.memory
    if x.shape or type(memory) is Memory:
        return True
    if type(memory) is tuple:
        template = memory[2].get("template")
        return is_array(memory[0]) if template is None else Ellipsis in template
    return issubclass(type(unwrap(x)), np.ndarray) and type(layout(x)) is np.ndarray


def as_one_array(x: Any) -> Any:
    """Let a result without axes stand for an array, which can be written, where NumPy gives one and no scalar."""
    if type(x).__name__ == "Tracer" and x.memory is None and not x.shape and not is_array(x):
        x.memory = Memory()
    return x
