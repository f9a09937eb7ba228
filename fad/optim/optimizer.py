"""What all optimisers share: a rule written once, as a pure function, and two ways to run it.

A rule ``(g, p, slots, t, lr) -> (p_step, slots)`` says what to subtract from the parameters. The pure way (`init`,
`update`) applies it leaf by leaf, and is itself differentiable. The stateful way (`step`) lays all gradients of
one dtype in one vector, so that a model of many small arrays costs as few calls as one large array, and goes through
it in pieces that stay in the cache.
"""

from __future__ import annotations

import copy
import inspect
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

from fad import tree
from fad.core.tracing.tracer import Tracer
from fad.core.tracing.views import is_writeable
from fad.errors import ShapeMismatchError, TreeMismatchError
from fad.introspect.reachable import OPEN, Open
from fad.nn.structure import leaves_of
from fad.typing import PyTree

_PIECE = 1 << 15  # elements that a rule handles at once
Schedule = Callable[[int], float] | float


class Optimizer:
    """The base of all optimisers but L-BFGS: subclasses give `rule`, and say how many slots of state it has.

    Complex parameters are moved along the conjugate of fad's gradient, which is the direction of descent,
    real and imaginary parts each by the rule. All take `weight_decay`, which adds ``weight_decay p`` to the gradient,
    or to the step where the class says `decoupled`; and `maximize`, which goes up the gradient instead of down.

    >>> w = np.array(np.array([1.0]))
    >>> optimizer = fad.optim.SGD(w, lr=0.5)
    >>> optimizer.step(np.array(np.array([2.0]))); w
    array([0.])
    """

    slots = 0
    decoupled = False
    reads_parameters = False  # whether the rule looks at p

    def __init__(
        self, params: PyTree | None = None, lr: Schedule = 1e-3, weight_decay: float = 0.0, maximize: bool = False
    ):
        if not callable(lr) and not lr >= 0:
            raise ValueError(f"lr must be a number >= 0 or a function of the step, not {lr!r}")
        if not weight_decay >= 0:
            raise ValueError(f"weight_decay must be a number >= 0, not {weight_decay!r}")
        self.lr = lr
        self.weight_decay = weight_decay
        self.maximize = maximize
        self.reads_parameters = self.reads_parameters or bool(weight_decay)
        self.params = params
        self.steps = 0
        self._groups: list[Group] | None = None
        if params is not None:
            self._groups = make_groups(_arrays(params), self.slots)

    def rule(self, g: Any, p: Any, slots: tuple, t: int, lr: float) -> tuple:
        """Return what to subtract from p in step t (the first is 1), and the new slots."""
        raise NotImplementedError(f"{type(self).__name__} does not define rule, its step")

    def descent(self, g: Any, p: Any, slots: tuple, t: int, lr: float) -> tuple:
        """Return what :meth:`rule` does, with `weight_decay` and `maximize`."""
        g = -g if self.maximize else g
        if not self.weight_decay:
            return self.rule(g, p, slots, t, lr)
        if not self.decoupled:
            return self.rule(g + self.weight_decay * p, p, slots, t, lr)
        step, slots = self.rule(g, p, slots, t, lr)
        return step + (lr * self.weight_decay) * p, slots

    def rate(self, steps: int) -> float:
        """Return the learning rate after so many steps."""
        return self.lr(steps) if callable(self.lr) else self.lr

    # --- stateful -------------------------------------------------------------------------------------------------

    def step(self, grads: Any) -> None:
        """Update the model in place with a gradient of its structure.

        Raises TreeMismatchError or ShapeMismatchError, and changes nothing, if the gradient does not fit.
        """
        groups = self._ready()
        arrays = _arrays(self.params)
        leaves = leaves_of(grads)
        check_gradients(arrays, leaves, self.params, grads, groups)
        lr = float(self.rate(self.steps))
        self.steps += 1
        for group in groups:
            if group.dtype.kind == "f":  # whole numbers stay as they are
                group.gather(leaves)
                group.run(self, arrays, lr)

    def zero_grad(self) -> None:
        """Do nothing: gradients are values that `grad` returns, and nothing accumulates. Here for PyTorch's loop."""

    def state_dict(self) -> dict[str, Any]:
        """Return the optimiser's state: a tree of arrays that `fad.save` takes."""
        groups = self._ready()
        return {
            "steps": np.asarray(self.steps),
            "slots": [[s.copy() for s in group.slots] for group in groups],
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take over a state of :meth:`state_dict`; raises ValueError, and changes nothing, if it does not fit."""
        groups = self._ready()
        slots = state["slots"]
        shapes = [[np.shape(s) for s in given] for given in slots]
        if shapes != [[s.shape for s in group.slots] for group in groups]:
            raise ValueError("this optimiser state belongs to a model of other parameters, or to another optimiser")
        self.steps = int(state["steps"])
        for group, given in zip(groups, slots, strict=True):
            group.slots = [np.array(s, dtype=group.dtype) for s in given]

    def split(self) -> list[Optimizer]:
        """Return one optimiser for each parameter, in the order of the leaves, each with its share of the state."""
        arrays = _arrays(self.params)
        parts: list[Any] = [None] * len(arrays)
        for group in self._ready():
            for (a, b), i in zip(itertools.pairwise(group.bounds), group.members, strict=True):
                part = parts[i] = copy.copy(self)
                part.params = [arrays[i]]
                part._groups = make_groups(part.params, self.slots)
                wide = len(part._groups[0].g.view(group.dtype)) // max(b - a, 1)  # 2 for complex numbers
                part._groups[0].slots = [s[wide * a : wide * b].copy() for s in group.slots]
        return parts

    def _ready(self) -> list[Group]:
        if self._groups is None:
            raise TypeError(f"{type(self).__name__} was made without a model: give it one, or use init and update")
        return self._groups

    # --- pure -----------------------------------------------------------------------------------------------------

    def init(self, params: Any) -> dict[str, Any]:
        """Return the state for a tree of parameters, for :meth:`update`."""
        return {"steps": 0, "slots": [tree.zeros_like(params) for _ in range(self.slots)]}

    def update(self, grads: Any, state: dict[str, Any], params: Any) -> tuple[Any, dict[str, Any]]:
        """Return ``(new parameters, new state)``; pure, and differentiable in everything."""
        ps, structure = tree.flatten(params)
        gs = tree.leaves(grads)
        check_gradients(ps, gs, params, grads, None)
        columns = [tree.leaves(s) for s in state["slots"]]
        t, lr = state["steps"] + 1, self.rate(state["steps"])
        new_ps, new_slots = [], []
        for i, (p, g) in enumerate(zip(ps, gs, strict=True)):
            new_p, slots = _apply(self.descent, g, p, tuple(c[i] for c in columns), t, lr)
            new_ps.append(new_p)
            new_slots.append(slots)
        slots = [tree.unflatten(structure, [s[k] for s in new_slots]) for k in range(self.slots)]
        found = iter(new_ps)
        return tree.map(lambda _: next(found), params), {"steps": t, "slots": slots}

    def __repr__(self) -> str:
        names = [n for n in inspect.signature(type(self)).parameters if n != "params"]
        return f"{type(self).__name__}({', '.join(f'{n}={getattr(self, n)!r}' for n in names)})"


OPEN[Optimizer] = Open(others=frozenset({"params", "steps"}), called=frozenset({"rule", "descent", "rate"}))


def _apply(rule: Callable, g: Any, p: Any, slots: tuple, t: int, lr: float) -> tuple:
    """Apply a rule to one leaf; to the real and imaginary parts of a complex one. Whole numbers stay as they are."""
    if np.result_type(p).kind not in "fc":
        return p, slots
    g = g if hasattr(g, "dtype") else np.asarray(g)[()]
    if g.dtype.kind != "c":
        step, slots = rule(g, p, slots, t, lr)
        return p - step, slots
    re, re_slots = rule(g.real, p.real, tuple(s.real for s in slots), t, lr)
    im, im_slots = rule(-g.imag, p.imag, tuple(s.imag for s in slots), t, lr)
    return p - (re + 1j * im), tuple(a + 1j * b for a, b in zip(re_slots, im_slots, strict=True))


class Group:
    """The parameters of one dtype: one gradient vector and one vector per slot, with a view for each parameter."""

    __slots__ = ("dtype", "members", "shapes", "bounds", "g", "p", "g_views", "p_views", "slots")

    def __init__(self, dtype: Any, members: list, arrays: list, slots: int):
        self.members = members
        self.shapes = [arrays[i].shape for i in members]
        sizes = [arrays[i].size for i in members]
        self.bounds = np.concatenate([[0], np.cumsum(sizes, dtype=np.intp)]).tolist()
        flat = np.zeros_like(arrays[members[0]], shape=(self.bounds[-1],))
        self.dtype = np.dtype(flat.real.dtype)  # complex vectors are worked on as pairs of real numbers
        self.g = flat
        self.p: Any = None
        self.g_views = self._views(flat)
        self.p_views: list = []
        width = 2 if flat.dtype.kind == "c" else 1
        self.slots = [np.zeros_like(flat, shape=(width * flat.size,), dtype=self.dtype) for _ in range(slots)]

    def __getstate__(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("dtype", "members", "shapes", "bounds", "g", "slots")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, value in state.items():
            setattr(self, name, value)
        self.g_views = self._views(self.g)  # copied one by one, they would be views of nothing
        self.p, self.p_views = None, []

    def _views(self, flat: Any) -> list:
        cuts = zip(self.bounds, self.bounds[1:], self.shapes, strict=False)
        return [flat[a:b].reshape(shape) for a, b, shape in cuts]

    def gather(self, grads: list) -> None:
        for view, i in zip(self.g_views, self.members, strict=True):
            view[...] = grads[i]
        if self.g.dtype.kind == "c":
            np.conjugate(self.g, out=self.g)

    def run(self, optimizer: Optimizer, arrays: list, lr: float) -> None:
        """Apply the rule, leaving the step in the gradient vector, and subtract it from the parameters."""
        if optimizer.reads_parameters:
            if self.p is None:
                self.p = np.empty_like(self.g)
                self.p_views = self._views(self.p)
            for view, i in zip(self.p_views, self.members, strict=True):
                view[...] = arrays[i]
        g = self.g.view(self.dtype)
        p = None if self.p is None else self.p.view(self.dtype)
        if g.size <= _PIECE:
            g[:], slots = optimizer.descent(g, p, tuple(self.slots), optimizer.steps, lr)
            self.slots = list(slots)
        else:
            self._run_in_pieces(optimizer, g, p, lr)
        for view, i in zip(self.g_views, self.members, strict=True):
            x = arrays[i]
            np.subtract(x, view, out=x)

    def _run_in_pieces(self, optimizer: Optimizer, g: Any, p: Any, lr: float) -> None:
        for a in range(0, g.size, _PIECE):
            b = a + _PIECE
            slots = tuple(s[a:b] for s in self.slots)
            g[a:b], new = optimizer.descent(g[a:b], None if p is None else p[a:b], slots, optimizer.steps, lr)
            for slot, value in zip(slots, new, strict=True):
                slot[:] = value


def make_groups(arrays: list, slots: int) -> list[Group]:
    by_dtype: dict[Any, list[int]] = {}
    for i, x in enumerate(arrays):
        by_dtype.setdefault(x.dtype, []).append(i)
    return [Group(dtype, members, arrays, slots) for dtype, members in by_dtype.items()]


def _arrays(params: Any) -> list:
    """Return the leaves of a model, which must be arrays that can be written."""
    leaves = leaves_of(params)
    for x in leaves:
        if type(x) is np.ndarray and is_writeable(x):
            continue
        if type(x) is Tracer or not hasattr(x, "__setitem__") or not hasattr(x, "dtype"):
            raise TypeError(
                f"opt.step changes the parameters in place, which a {type(x).__name__} does not allow. "
                "Use arrays (np.array(x)), or the pure form: state = opt.init(params); opt.update(grads, state, params)"
            )
        if type(x) is np.ndarray:
            raise TypeError("opt.step changes the parameters in place, but one is a read-only array: copy it first")
    return leaves


def check_gradients(ps: list, gs: list, params: Any, grads: Any, groups: list | None) -> None:
    """Raise unless gradients fit parameters, leaf by leaf, and parameters those of which groups were made."""
    if len(ps) != len(gs):
        raise TreeMismatchError(
            f"the gradient has {len(gs)} leaves, but there are {len(ps)} parameters to update. "
            f"The parameters are {_describe(params)}; the gradient is {_describe(grads)}"
        )
    for i, (p, g) in enumerate(zip(ps, gs, strict=True)):
        if np.shape(p) != np.shape(g):
            raise ShapeMismatchError(
                f"leaf {i} of the gradient has shape {np.shape(g)}, but its parameter has {np.shape(p)}. "
                f"The parameters are {_describe(params)}; the gradient is {_describe(grads)}"
            )
    if groups is not None and len(ps) != sum(len(group.members) for group in groups):
        raise TreeMismatchError(
            "the model has other trainable parameters than when this optimiser was made (frozen, unfrozen or added): "
            "make a new optimiser"
        )


def _describe(x: Any) -> str:
    return str(tree.map(lambda leaf: np.shape(leaf), tree.leaves(x)))[:200]
