"""NumPy's random numbers as user code sees them while a transform runs: what is drawn are handles."""

from __future__ import annotations

import functools
import operator
import pickle
import random
import sys
import types
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from fad.core.handles.makers import maker, wrap_made
from fad.core.primitives.primitive import has_tracer
from fad.core.tracing.tracer import Tracer, stack_list

check_draw: list[Callable[[], None]] = []  # called before a draw; put here by `fad.capture`, which stands above


@functools.cache
def _generator_class() -> type:
    """Return the class of generators of random numbers whose arrays are handles while a transform runs."""
    methods = vars(np.random.Generator).items()
    drawing = {n: _drawing(f) for n, f in methods if callable(f) and not n.startswith("_") and n != "spawn"}
    drawing["shuffle"] = lambda self, x, axis=0: _shuffle(functools.partial(np.random.Generator.shuffle, self), x, axis)
    drawing["multivariate_normal"] = _plain(np.random.Generator.multivariate_normal)
    permute = np.random.Generator.permutation
    drawing["permutation"] = lambda self, x, axis=0: _permute(functools.partial(permute, self), x, axis)
    drawing["choice"] = _choosing(drawing["choice"])
    drawing["permuted"] = _permuting_each(drawing["permuted"])
    return _Source("Generator", (np.random.Generator,), drawing)


class _Source(type):
    """A class that stands for one of NumPy's sources of random numbers: NumPy's own are its instances, too."""

    def __instancecheck__(cls, x: Any) -> bool:
        base = cls.__base__ or object
        stands_in = type(base) is type  # and is no subclass of the user's
        return isinstance(x, base) if stands_in else super().__instancecheck__(x)


@functools.cache
def _state_class() -> type:
    """Return the class of NumPy's older generators, which shuffle and permute traced arrays, too."""
    own = np.random.RandomState
    drawing = {n: _drawing(f) for n, f in vars(own).items() if callable(f) and n[0] != "_" and not n.endswith("state")}
    drawing["shuffle"] = lambda self, x: _shuffle(functools.partial(own.shuffle, self), x)
    drawing["permutation"] = lambda self, x: _permute(functools.partial(own.permutation, self), x)
    drawing["choice"] = _choosing(drawing["choice"])
    return _Source("RandomState", (own,), drawing)


def _plain(draw: Callable) -> Callable:
    """Return a function that draws by way of other methods, whose arrays NumPy changes in ways that handles refuse."""

    @functools.wraps(draw)
    def drawn(self: Any, *args: Any, **kwargs: Any) -> Any:
        _check_draw()
        return wrap_made(draw(np.random.Generator(self.bit_generator), *args, **kwargs))

    return drawn


def _permute(permute: Callable, x: Any, axis: int = 0) -> Any:
    """Return a permuted copy of an array, a traced one too, with the numbers that NumPy draws for its rank."""
    _check_draw()
    if type(x) is not Tracer or not x.shape:
        return wrap_made(permute(x) if axis == 0 else permute(x, axis))
    places = np.arange(x.shape[axis]).reshape((-1, *[1] * (x.ndim - 1)))
    return np.take(x, permute(places).reshape(-1), axis)


def _choosing(choose: Callable) -> Callable:
    """Return ``choice`` of a generator as one that chooses among traced values, too, by the places that it draws."""

    @functools.wraps(choose)
    def chosen(self: Any, a: Any, *args: Any, axis: int = 0, **kwargs: Any) -> Any:
        if type(a) is not Tracer or not a.shape:
            return choose(self, a, *args, **kwargs, **({"axis": axis} if axis else {}))
        return np.take(a, np.asarray(choose(self, a.shape[axis], *args, **kwargs)), axis)

    return chosen


def _permuting_each(permuted: Callable) -> Callable:
    """Return ``permuted`` of a generator as one of traced values, too, by the places that it draws."""

    @functools.wraps(permuted)
    def drawn(self: Any, x: Any, *, axis: int | None = None, out: Any = None) -> Any:
        if type(x) is not Tracer or not x.shape:
            return permuted(self, x, axis=axis, out=out)
        rng = np.random.Generator(self.bit_generator)
        if axis is None:
            y = np.take(x, rng.permuted(np.arange(x.size))).reshape(x.shape)
        else:
            rank = [1] * x.ndim
            rank[axis] = -1
            places = np.broadcast_to(np.arange(x.shape[axis]).reshape(rank), x.shape)
            y = np.take_along_axis(x, rng.permuted(places, axis=axis), axis)
        if out is None:
            return y
        out[...] = y
        return out

    return drawn


def _check_draw() -> None:
    for check in check_draw:
        check()


# Draws that are a standard one, shifted and scaled, and what their parameters are if they are not given.
_SCALED: dict[str, dict[str, float]] = {
    **{name: {"loc": 0.0, "scale": 1.0} for name in ("normal", "laplace", "logistic", "gumbel")},
    **{name: {"scale": 1.0} for name in ("exponential", "rayleigh")},
    "uniform": {"low": 0.0, "high": 1.0}, "lognormal": {"mean": 0.0, "sigma": 1.0},
}  # fmt: skip


def is_scaled(name: str, args: tuple, kwargs: dict) -> bool:
    """Return whether a draw by one of NumPy's functions follows its parameters, and some of them are traced."""
    return name in _SCALED and has_tracer((*args, *kwargs.values()))


def draw_scaled(name: str, args: tuple, kwargs: dict, standard: Callable) -> Any:
    """Return what NumPy draws for traced parameters, computed as NumPy does from standard numbers.

    ``standard(name, size)`` draws these.
    """
    defaults = _SCALED[name]
    given = dict(zip((*defaults, "size"), args, strict=False))
    if len(args) > len(defaults) + 1 or not {*defaults, "size"} >= kwargs.keys() or not given.keys().isdisjoint(kwargs):
        raise TypeError(f"{name}() takes {', '.join(defaults)} and size, each of them once")
    given = defaults | given | kwargs
    size = given.pop("size", None)
    shift, scale = (0.0, *map(stack_list, given.values()))[-2:]
    scale = scale - shift if name == "uniform" else scale
    if name != "uniform" and np.any(scale < 0):
        raise ValueError(f"{'sigma' if name == 'lognormal' else 'scale'} < 0")
    shape = np.broadcast_shapes(np.shape(shift), np.shape(scale))
    wanted = shape if size is None else tuple(size) if np.iterable(size) else (operator.index(size),)
    if len(shape) > len(wanted) or any(n not in (1, m) for n, m in zip(shape[::-1], wanted[::-1], strict=False)):
        raise ValueError(f"Output size {wanted} is not compatible with broadcast dimensions of inputs {shape}.")
    z = standard("normal" if name == "lognormal" else name, wanted if wanted or size is not None else None)
    y = scale * z if len(defaults) == 1 else shift + scale * z
    return np.exp(y) if name == "lognormal" else y


def _drawing(draw: Callable) -> Callable:
    """Return a function that draws random numbers as one that makes handles, or fills one that is given by ``out=``."""
    make = maker(draw)

    @functools.wraps(draw)
    def drawn(source: Any, *args: Any, out: Any = None, **kwargs: Any) -> Any:
        _check_draw()
        if is_scaled(draw.__name__, args, kwargs):
            own = np.random.Generator if isinstance(source, np.random.Generator) else np.random.RandomState
            standard = lambda name, size: getattr(own, name)(source, size=size)
            return wrap_made(draw_scaled(draw.__name__, args, kwargs, standard))
        args = (source, *args)
        if type(out) is not Tracer:
            return make(*args, **kwargs) if out is None else draw(*args, out=out, **kwargs)
        size = {} if draw.__name__ == "permuted" else {"size": out.shape}
        out[...] = draw(*args, **kwargs | size)
        return out

    return drawn


def _shuffle(shuffle: Callable, x: Any, axis: int = 0) -> None:
    """Shuffle an array in place, a traced one too: with the numbers that NumPy draws for an array of its rank."""
    _check_draw()
    if type(x) is not Tracer:
        return shuffle(x) if axis == 0 else shuffle(x, axis)
    places = np.arange(x.shape[axis]).reshape((-1, *[1] * (x.ndim - 1)))
    shuffle(places)
    x[...] = np.take(x, places.reshape(-1), axis)
    return None


def _drawing_shared(draw: Callable) -> Callable:
    """Return a function of numpy.random, which draws from the generator that all share, as one that makes handles."""
    make = maker(draw)

    @functools.wraps(draw)
    def drawn(*args: Any, **kwargs: Any) -> Any:
        if is_scaled(draw.__name__, args, kwargs):
            standard = lambda name, size: getattr(np.random, name)(size=size)
            return wrap_made(draw_scaled(draw.__name__, args, kwargs, standard))
        return make(*args, **kwargs)

    return drawn


def own_generator(rng: Any) -> Any:
    """Return a generator that draws from the stream of another one, and makes handles."""
    return _generator_class()(rng.bit_generator)


def random_module() -> types.ModuleType:
    """Return numpy.random as user code sees it."""
    module = types.ModuleType("numpy.random", np.random.__doc__)
    vars(module).update(vars(np.random))
    drawing = {n: f for n, f in vars(np.random).items() if type(f) is type(np.random.normal)}
    vars(module).update({name: _drawing_shared(f) for name, f in drawing.items()})
    vars(module)["shuffle"] = functools.partial(_shuffle, np.random.shuffle)
    vars(module)["permutation"] = functools.partial(_permute, np.random.permutation)
    vars(module)["RandomState"] = _state_class()
    vars(module)["Generator"] = _generator_class()
    vars(module)["default_rng"] = lambda *args, **kwargs: own_generator(np.random.default_rng(*args, **kwargs))
    return module


# --- the states of generators ----------------------------------------------------------------------------------------


class GeneratorStates:
    """The states of the generators of random numbers among some things, as they are when this is made."""

    __slots__ = ("_states",)

    def __init__(self, things: Iterable[Any]):
        found = {id(x): access for x in things if (access := _access(x)) is not None}
        self._states = [(read, write, read()) for read, write in found.values()]

    def put_back(self) -> bool:
        """Put the states back; return whether one had changed."""
        changed = [(write, before) for read, write, before in self._states if not _is_equal(read(), before)]
        for write, before in changed:
            write(before)
        return bool(changed)


def _is_equal(x: Any, y: Any) -> bool:
    """Return whether two states are equal: they are numbers, arrays, and containers of these."""
    return pickle.dumps(x) == pickle.dumps(y)


def _access(x: Any) -> tuple[Callable, Callable] | None:
    """Return what reads the state of a generator and what sets it; None of anything else."""
    kind = type(x)
    if x is random:
        return random.getstate, random.setstate
    if issubclass(kind, random.Random) and not issubclass(kind, random.SystemRandom):
        return x.getstate, x.setstate
    if "numpy.random" not in sys.modules:  # whose import would take longer than the rest
        return None
    if issubclass(kind, np.random.Generator):
        bits = x.bit_generator
        return lambda: bits.state, lambda state: setattr(bits, "state", state)
    if issubclass(kind, np.random.RandomState):
        return lambda: x.get_state(legacy=False), x.set_state
    return None
