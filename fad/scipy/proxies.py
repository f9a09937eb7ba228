"""Objects of SciPy's that a program made before a transform runs, and what of fad's stands in for them.

A module's ``prior = stats.norm(0, 1)``, an object's ``self.curve = CubicSpline(t, y)``: their methods want plain
arrays. While a transform runs, a `Proxy` has their places (`fad.core.runs.outside.lend`). It asks fad's object of the
same numbers where a traced value is among the arguments, and else SciPy's.
"""

from __future__ import annotations

import copy
import functools
import importlib
from collections.abc import Callable
from typing import Any

import numpy as np

from fad.core.runs.stand_ins import stand_for
from fad.scipy.choosing import choose, is_traced
from fad.scipy.holders import take_plain


class Standing:
    """What stands for an object of SciPy's, and compares, prints, copies and pickles as that one."""

    stands_for: Any

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        """The class of SciPy's object: what isinstance sees."""
        return type(self.stands_for)

    def __eq__(self, other: object) -> Any:
        return self.stands_for == (other.stands_for if issubclass(type(other), Standing) else other)  # type: ignore

    def __hash__(self) -> int:
        return hash(self.stands_for)

    def __repr__(self) -> str:
        return repr(self.stands_for)

    def __copy__(self) -> Any:
        return stand_for(copy.copy(self.stands_for))

    def __deepcopy__(self, memo: dict) -> Any:
        return stand_for(copy.deepcopy(self.stands_for, memo))

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self.stands_for.__reduce_ex__(protocol)


class Proxy(Standing):
    """An object of SciPy's whose methods are those of fad's for traced values; `make` gives fad's."""

    def __init__(self, original: Any, make: Callable[[Any], Any]):
        self.stands_for, self._make = original, make
        self._own: Any = None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._method("__call__")(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(f"an object of SciPy's has no {name}")
        found = getattr(self.stands_for, name)
        return self._method(name) if callable(found) else found

    def _method(self, name: str) -> Callable:
        if self._own is None:
            self._own = self._make(self.stands_for)
        method = getattr(self.stands_for, name)
        own = getattr(self._own, name, None)
        return method if own is None else choose(method, own)


def _make_polynomial(f: Any) -> Any:
    from fad.scipy.interpolate import PPoly

    return _fill(PPoly, f.c, f.x, f.axis, f.extrapolate)


def _make_spline(f: Any) -> Any:
    from fad.scipy.interpolate import BSpline

    return _fill(BSpline, f.t, f.c, f.k, f.axis, f.extrapolate)


def _fill(kind: Any, *parts: Any) -> Any:
    """Return a curve of parts that SciPy has checked, and turned to where it wants them."""
    new = object.__new__(kind)
    new._set(*parts)
    return new


def _make_line(f: Any) -> Any:
    from fad.scipy.interpolate import interp1d

    kind = f._spline.k if f._kind == "spline" else f._kind
    fill_value = "extrapolate" if f._extrapolate else f.fill_value
    return interp1d(f.x, f.y, kind, f.axis, True, f.bounds_error and not f._extrapolate, fill_value, True)


def _make_grid(f: Any) -> Any:
    from fad.scipy.interpolate import RegularGridInterpolator

    own = RegularGridInterpolator(f.grid, f.values, "linear", f.bounds_error, f.fill_value)
    own.method = f.method
    spline = getattr(f, "_spline", None)  # as SciPy's solver found it
    own.spline = own.fit(f.method) if spline is None else (tuple(spline.t), spline.c)
    return own


class Frozen(Standing):
    """A distribution of SciPy's with its parameters, whose methods are fad's for traced values."""

    def __init__(self, original: Any, own: Any, args: tuple = (), kwargs: dict | None = None, frozen: Any = None):
        self._original, self._own, self._args, self._kwargs = original, own, args, kwargs or {}
        if frozen is None and kwargs is not None and not is_traced((args, kwargs)):
            frozen = original(*args, **self._kwargs)
        self.stands_for = original if frozen is None else frozen

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(f"a distribution of SciPy's has no {name}")
        if type(self) is Frozen and is_traced((self._args, self._kwargs)):
            kept = self._own.keep(*self._args, **self._kwargs)
            if name in kept:
                return kept[name]
        found, own = getattr(self.stands_for, name), getattr(self._own, name, None)
        if not callable(found):
            return found
        method = self._with_parameters(found) if self.stands_for is self._original else found
        if own is None:
            return method
        own = self._with_parameters(own)
        return own if is_traced((self._args, self._kwargs)) else choose(method, own)

    def expect(
        self, func: Any = None, lb: Any = None, ub: Any = None, conditional: bool = False, **options: Any
    ) -> Any:
        """Return the expected value of a function, as the method of SciPy's frozen distributions takes it."""
        own = self._own
        if (func is None or isinstance(func, np.ufunc)) and not is_traced((self._args, self._kwargs, lb, ub)):
            return self.stands_for.expect(func, lb, ub, conditional, **options)
        given = dict(zip((*own.shapes, *own.last), self._args, strict=False)) | self._kwargs
        shapes = tuple([given.pop(name) for name in own.shapes])
        return own.expect(func, shapes, **given, lb=lb, ub=ub, conditional=conditional, **options)

    def _with_parameters(self, method: Callable) -> Callable:
        return lambda *args, **kwargs: method(*args, *self._args, **(self._kwargs | kwargs))


class Distribution(Frozen):
    """A distribution of SciPy's, which is called with its parameters."""

    @property
    def expect(self) -> Callable:
        """Of a distribution without parameters the method takes them."""
        return self.__getattr__("expect")

    def __call__(self, *args: Any, **kwargs: Any) -> Frozen:
        return Frozen(self._original, self._own, take_plain(args), take_plain(kwargs))


def _thaw(frozen: Any) -> Any:
    """Return what stands for a distribution with its parameters, or None if fad has not that one."""
    ours, theirs = (importlib.import_module(f"{package}scipy.stats") for package in ("fad.", ""))
    name = frozen.dist.name
    own, original = getattr(ours, name, None), getattr(theirs, name, None)
    if own is None or type(frozen.dist) is not type(original):
        return None
    return Frozen(original, own, frozen.args, frozen.kwds, frozen)


def _thaw_normal(frozen: Any) -> Frozen:
    ours, theirs = (importlib.import_module(f"{package}scipy.stats") for package in ("fad.", ""))
    parameters = (frozen.mean, frozen.cov_object.covariance, frozen.allow_singular)
    return Frozen(theirs.multivariate_normal, ours.multivariate_normal, parameters, {}, frozen)


def _make_fitpack(f: Any) -> Any:
    from fad.scipy.interpolate import BSpline, UnivariateSpline

    t, c, k = f._eval_args
    return _fill(UnivariateSpline, _fill(BSpline, t, c, k, 0, True), f.ext)


def _make_like(name: str) -> Callable[[Any], Any]:
    """Return what makes an interpolant of fad's class of a name, which takes what SciPy's holds."""

    def make(f: Any) -> Any:
        own = object.__new__(getattr(importlib.import_module("fad.scipy.interpolate"), name))
        own.copy_from(f)
        return own

    return make


def _make_estimate(k: Any) -> Any:
    from fad.scipy.stats import gaussian_kde

    return gaussian_kde(k.dataset, k.factor, k.weights)


def _make_radial(f: Any) -> Any:
    from fad.scipy.interpolate import RBFInterpolator

    d = f.d.view(f.d_dtype).reshape(len(f.y), *f.d_shape)
    degree = int(f.powers.sum(1).max()) if len(f.powers) else -1
    return RBFInterpolator(f.y, d, f.neighbors, f.smoothing, f.kernel, f.epsilon, degree)


def _make_polynomial_through(f: Any) -> Any:
    from fad.scipy.interpolate import KroghInterpolator

    values = f.yi if hasattr(f, "wi") else f(f.xi)  # Krogh's keeps divided differences
    axis = f._y_axis
    shaped = values.reshape(-1, *f._y_extra_shape) if hasattr(f, "wi") else np.moveaxis(values, axis, 0)
    return KroghInterpolator(f.xi, np.moveaxis(shaped, 0, axis), axis)


_CURVES = {
    "PPoly": _make_polynomial, "CubicSpline": _make_polynomial, "CubicHermiteSpline": _make_polynomial,
    "PchipInterpolator": _make_polynomial, "Akima1DInterpolator": _make_polynomial, "BSpline": _make_spline,
    "interp1d": _make_line, "RegularGridInterpolator": _make_grid, "UnivariateSpline": _make_fitpack,
    "InterpolatedUnivariateSpline": _make_fitpack, "LSQUnivariateSpline": _make_fitpack,
    "RBFInterpolator": _make_radial, "KroghInterpolator": _make_polynomial_through,
    "BarycentricInterpolator": _make_polynomial_through,
    **{name: _make_like(name) for name in ("LinearNDInterpolator", "NearestNDInterpolator")},
    **{f"{kind}BivariateSpline": _make_like("BivariateSpline") for kind in ("Rect", "Smooth", "LSQ")},
}  # fmt: skip


def _enter_curves(theirs: Any) -> dict:
    kinds = {getattr(theirs, name): make for name, make in _CURVES.items()}
    for kind in theirs.BivariateSpline.__base__.__subclasses__():  # what `partial_derivative` gives has no public name
        if kind.__name__ == "_DerivedBivariateSpline":
            kinds[kind] = _make_like("BivariateSpline")
    return {kind: functools.partial(Proxy, make=make) for kind, make in kinds.items()}


def _enter_distributions(theirs: Any) -> dict:
    kinds = (type(theirs.norm(0.0, 1.0)), type(theirs.poisson(1.0)))
    return dict.fromkeys(kinds, _thaw) | {
        type(theirs.multivariate_normal(0.0)): _thaw_normal,
        theirs.gaussian_kde: functools.partial(Proxy, make=_make_estimate),
    }


def _enter_rotations(theirs: Any) -> dict:
    ours = importlib.import_module("fad.scipy.spatial.transform")

    def make_rotation(r: Any) -> Any:
        return ours.Rotation(r.as_quat(), normalize=False)

    def make_slerp(f: Any) -> Any:
        last = f.rotations[-1] * theirs.Rotation.from_rotvec(f.rotvecs[-1])
        return ours.Slerp(f.times, ours.Rotation.concatenate([f.rotations, last]))

    return {theirs.Rotation: make_rotation, theirs.Slerp: make_slerp}


def _enter_trees(theirs: Any) -> dict:
    ours = importlib.import_module("fad.scipy.spatial")

    def make(tree: Any) -> Any:
        boxsize = getattr(tree, "boxsize", None)
        return ours.KDTree(np.asarray(tree.data), tree.leafsize, boxsize=boxsize)

    return {kind: functools.partial(Proxy, make=make) for kind in (theirs.KDTree, theirs.cKDTree)}


# How the objects that parts of SciPy make are entered, by their classes.
ENTRIES = {
    "interpolate": _enter_curves, "stats": _enter_distributions, "spatial.transform": _enter_rotations,
    "spatial": _enter_trees,
}
