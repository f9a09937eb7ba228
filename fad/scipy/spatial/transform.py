"""``scipy.spatial.transform``, differentiable: rotations in three dimensions, and their interpolation.

A rotation is held as a unit quaternion, as in SciPy. Source of the formulas: M. D. Shuster, "A Survey of Attitude
Representations", Journal of the Astronautical Sciences 41 (1993); of the angles of `Rotation.as_euler`: E. Bernardes
and S. Viollet, "Quaternion to Euler angles conversion", PLoS ONE 17 (2022).
"""

from __future__ import annotations

import itertools
import math
import re
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.spatial.transform as theirs

from fad import tree
from fad.core.primitives.docstring_sections import refer
from fad.core.tracing.tracer import Tracer
from fad.core.tracing.values import stop_gradient
from fad.ops.arrangement.structural import as_array
from fad.ops.places.indexing import pick
from fad.ops.places.taking import searchsorted
from fad.scipy.linalg import polar
from fad.scipy.registration import missing

__all__ = ["Rotation", "Slerp"]
__getattr__ = missing("spatial.transform")

_DEGREE = math.pi / 180.0
_SMALL = 1e-6  # the square of an angle below which series are exact
_LOCKED = 1e-7  # how near to its ends SciPy takes the second of Euler's angles to be there


def _double(x: Any, length: int | None = None, name: str = "") -> Any:
    """Return an array in double precision, whose last axis has a length if it is given."""
    x = as_array(x).astype(np.float64)
    if length is not None and (x.ndim == 0 or x.shape[-1] != length):
        raise ValueError(f"Expected `{name}` to have shape (..., {length}), got {x.shape}.")
    return x


def _norm(v: Any) -> tuple[Any, Any, Any]:
    """Return the lengths of vectors, 1 for the short ones; their squares; and which are short."""
    square = np.sum(v * v, axis=-1, keepdims=True)
    short = square <= _SMALL
    return np.sqrt(np.where(short, 1.0, square)), square, short


class Rotation:
    """Rotations in three dimensions: one, or an array of them; a tree of their unit quaternions.

    Made by ``from_quat``, ``from_matrix``, ``from_rotvec``, ``from_euler`` and ``from_mrp``, turned back by the methods
    ``as_...``, composed by ``*``. Differentiable in all numbers; `as_euler` at gimbal lock in those that SciPy gives.

    Parameters
    ----------
    quat : array (..., 4)
        Quaternions, the real part last.
    normalize : bool
        Whether they are divided by their lengths.
    copy : bool
        Without effect.
    scalar_first : bool, keyword only
        Whether the real part stands first.

    Raises
    ------
    ValueError
        if a quaternion is zero.

    Examples
    --------
    >>> import numpy as np, fad
    >>> from fad.scipy.spatial.transform import Rotation
    >>> fad.jacobian(lambda a: Rotation.from_euler("z", a).apply(np.array([1.0, 0.0, 0.0])))(0.0)
    array([0., 1., 0.])
    """

    def __init__(self, quat: Any, normalize: bool = True, copy: bool = True, *, scalar_first: bool = False):
        quat = _double(quat, 4, "quat")
        quat = np.roll(quat, -1, axis=-1) if scalar_first else quat
        if normalize:
            square = np.sum(quat * quat, axis=-1, keepdims=True)
            if np.any(stop_gradient(square) == 0):
                raise ValueError("Found zero norm quaternions in `quat`.")
            quat = quat / np.sqrt(square)
        self._quat = quat

    @classmethod
    def _of(cls, quat: Any) -> Rotation:
        """Return rotations of quaternions that have the length 1."""
        new = object.__new__(cls)
        new._quat = quat
        return new

    # --- making ---

    @classmethod
    def from_quat(cls, quat: Any, *, scalar_first: bool = False) -> Rotation:
        """Return rotations of quaternions, of any length but 0."""
        return cls(quat, scalar_first=scalar_first)

    @classmethod
    def from_matrix(cls, matrix: Any, *, assume_valid: bool = False) -> Rotation:
        """Return the rotations nearest to matrices (..., 3, 3) of positive determinant."""
        m = _double(matrix)
        if m.shape[-2:] != (3, 3):
            raise ValueError(f"Expected `matrix` to have shape (..., 3, 3), got {m.shape}")
        if not assume_valid:
            if np.any(stop_gradient(np.linalg.det(m)) <= 0):
                raise ValueError("Non-positive determinant (left-handed or null coordinate frame) in rotation matrix.")
            m = polar(m)[0]
        return cls(_quaternion_of(m))

    @classmethod
    def from_rotvec(cls, rotvec: Any, degrees: bool = False) -> Rotation:
        """Return rotations about vectors (..., 3), by their lengths."""
        v = _double(rotvec, 3, "rot_vec") * (_DEGREE if degrees else 1.0)
        angle, square, short = _norm(v)
        scale = np.where(short, 0.5 - square / 48.0 + square**2 / 3840.0, np.sin(angle / 2.0) / angle)
        w = np.where(short, 1.0 - square / 8.0 + square**2 / 384.0, np.cos(angle / 2.0))
        return cls._of(np.concatenate([v * scale, w], axis=-1))

    @classmethod
    def from_mrp(cls, mrp: Any) -> Rotation:
        """Return rotations of modified Rodrigues parameters (..., 3): the axis times the tangent of a quarter angle."""
        p = _double(mrp, 3, "mrp")
        square = np.sum(p * p, axis=-1, keepdims=True)
        return cls._of(np.concatenate([2.0 * p, 1.0 - square], axis=-1) / (1.0 + square))

    @classmethod
    def from_euler(cls, seq: str, angles: Any, degrees: bool = False) -> Rotation:
        """Return rotations by angles (..., len(seq)) about axes: "xyz" are fixed ones, "XYZ" those of the body."""
        axes, fixed = _read_axes(seq, (1, 2, 3))
        a = _double(angles) * (_DEGREE if degrees else 1.0)
        a = a.reshape(1) if a.ndim == 0 else a
        if a.shape[-1] != len(seq):
            raise ValueError(f"Expected {len(seq)} angles along the last axis for {seq!r}, got {a.shape[-1]}.")
        total = None
        for k, axis in enumerate(axes):
            half, none = a[..., k] / 2.0, 0.0 * a[..., k]
            parts = [none, none, none, np.cos(half)]
            parts[axis] = np.sin(half)
            turn = np.stack(parts, axis=-1)
            total = turn if total is None else _compose(turn, total) if fixed else _compose(total, turn)
        return cls._of(total)

    @classmethod
    def identity(cls, num: int | None = None, *, shape: Any = None) -> Rotation:
        """Return the rotation that leaves all as it is, or an array of them."""
        return cls._of(theirs.Rotation.identity(num, shape=shape).as_quat())

    @classmethod
    def random(cls, *args: Any, **kwargs: Any) -> Rotation:
        """Return random rotations, as SciPy draws them with these arguments: ``num``, ``rng``, ``shape``."""
        return cls._of(theirs.Rotation.random(*args, **kwargs).as_quat())

    @classmethod
    def concatenate(cls, rotations: Any) -> Rotation:
        """Return the rotations of a list one behind the other."""
        if hasattr(rotations, "as_quat"):
            return cls._of(rotations.as_quat())
        return cls._of(np.concatenate([r.as_quat().reshape(-1, 4) for r in rotations]))

    @classmethod
    def align_vectors(cls, a: Any, b: Any, weights: Any = None, return_sensitivity: bool = False) -> tuple:
        """Return the rotation that brings vectors `b` (N, 3) nearest to `a`, and the root of the squares that are left.

        Kabsch's algorithm, for two vectors or more with finite weights; with `return_sensitivity` its covariance too.
        """
        a, b = (_double(v, 3, name).reshape(-1, 3) for name, v in (("a", a), ("b", b)))
        if a.shape != b.shape:
            raise ValueError(f"Expected inputs `a` and `b` to have same shapes, got {a.shape} and {b.shape}.")
        w = np.ones(a.shape[0]) if weights is None else _double(weights)
        if a.shape[0] < 2 or np.any(stop_gradient(w) == np.inf):
            raise NotImplementedError("align_vectors takes two vectors or more here, with finite weights")
        if np.any(stop_gradient(w) < 0):
            raise ValueError("`weights` may not contain negative values")
        moment = (w[:, None] * a).T @ b
        u, s, vh = np.linalg.svd(moment)
        signs = np.stack([1.0, 1.0, np.sign(np.linalg.det(u) * np.linalg.det(vh))])
        s = s * signs
        left = np.sum(w * np.sum(a * a + b * b, axis=1)) - 2.0 * np.sum(s)
        found = cls(_quaternion_of((u * signs) @ vh)), np.sqrt(np.maximum(left, 0.0))
        if not return_sensitivity:
            return found
        zeta = (s[0] + s[1]) * (s[1] + s[2]) * (s[2] + s[0])
        kappa = s[0] * s[1] + s[1] * s[2] + s[2] * s[0]
        return *found, np.mean(w) / zeta * (kappa * np.eye(3) + moment @ moment.T)

    # --- taking apart ---

    def as_quat(self, canonical: bool = False, *, scalar_first: bool = False) -> Any:
        """Return the quaternions; `canonical` ones have a real part that is not negative."""
        q = _turn_up(self._quat) if canonical else self._quat
        return np.roll(q, 1, axis=-1) if scalar_first else q + 0.0

    def as_matrix(self) -> Any:
        """Return the matrices (..., 3, 3)."""
        x, y, z, w = (self._quat[..., k] for k in range(4))
        rows = [
            x * x - y * y - z * z + w * w, 2.0 * (x * y - z * w), 2.0 * (x * z + y * w),
            2.0 * (x * y + z * w), y * y - x * x - z * z + w * w, 2.0 * (y * z - x * w),
            2.0 * (x * z - y * w), 2.0 * (y * z + x * w), z * z - x * x - y * y + w * w,
        ]  # fmt: skip
        return np.stack(rows, axis=-1).reshape(*self.shape, 3, 3)

    def as_rotvec(self, degrees: bool = False) -> Any:
        """Return the vectors (..., 3) about which the rotations turn, by their lengths, up to half a turn."""
        q = _turn_up(self._quat)
        v, w = q[..., :3], q[..., 3:]
        sine, square, short = _norm(v)
        series = 2.0 + square / 3.0 + 0.15 * square**2
        scale = np.where(short, series, 2.0 * np.arctan2(sine, w) / sine)
        return v * scale / (_DEGREE if degrees else 1.0)

    def as_mrp(self) -> Any:
        """Return the modified Rodrigues parameters (..., 3)."""
        q = self._quat * np.where(self._quat[..., 3:] < 0, -1.0, 1.0)
        return q[..., :3] / (1.0 + q[..., 3:])

    def as_euler(self, seq: str, degrees: bool = False, *, suppress_warnings: bool = False) -> Any:
        """Return the angles (..., 3) about three axes; of those that are not unique at gimbal lock the third is 0."""
        axes, fixed = _read_axes(seq, (3,))
        i, j, k = axes if fixed else axes[::-1]
        twice = i == k  # the first axis is also the third
        k = 3 - i - j if twice else k
        sign = float((i - j) * (j - k) * (k - i) // 2)
        x, y, z, w = self._quat[..., i], self._quat[..., j], self._quat[..., k] * sign, self._quat[..., 3]
        a, b, c, d = (w, x, y, z) if twice else (w - y, x + z, y + w, z - x)
        angles = _angles_of(a, b, c, d, fixed, suppress_warnings)
        first, second, third = angles if fixed else angles[::-1]
        if not twice:
            second = second - math.pi / 2.0
            first, third = (first, third * sign) if fixed else (first * sign, third)
        angles = np.stack([first, second, third], axis=-1)
        turns = np.where(angles > math.pi, -1.0, np.where(angles < -math.pi, 1.0, 0.0))
        return (angles + 2.0 * math.pi * turns) / (_DEGREE if degrees else 1.0)

    def magnitude(self) -> Any:
        """Return the angles by which the rotations turn, up to half a turn, in radians."""
        square = np.sum(self._quat[..., :3] ** 2, axis=-1)
        nothing = square == 0
        sine = np.where(nothing, 0.0, np.sqrt(np.where(nothing, 1.0, square)))
        return 2.0 * np.arctan2(sine, np.abs(self._quat[..., 3]))

    # --- computing ---

    def apply(self, vectors: Any, inverse: bool = False) -> Any:
        """Return vectors (..., 3) turned, or turned back."""
        m, v = self.as_matrix(), _double(vectors, 3, "vectors")
        return ((np.swapaxes(m, -1, -2) if inverse else m) @ v[..., None])[..., 0]

    def __mul__(self, other: Any) -> Any:
        """Return the rotations by `other`, then by this."""
        return Rotation._of(_compose(self._quat, other.as_quat())) if hasattr(other, "as_quat") else NotImplemented

    def __rmul__(self, other: Any) -> Any:
        return Rotation._of(_compose(other.as_quat(), self._quat)) if hasattr(other, "as_quat") else NotImplemented

    def __pow__(self, n: Any, modulus: None = None) -> Rotation:
        """Return the rotations about the same axes by `n` times the angles."""
        if modulus is not None:
            raise NotImplementedError("modulus not supported")
        n = as_array(n)
        if n.ndim and n.shape != (1,):
            raise ValueError("Array exponent must be a scalar")
        if type(n) is not Tracer and abs(n) == 1:  # SciPy keeps the quaternion, of a turn by more than a half, too
            return Rotation._of(self._quat + 0.0) if n == 1 else self.inv()
        return Rotation.from_rotvec(n.reshape(()) * self.as_rotvec())

    def inv(self) -> Rotation:
        """Return the rotations back."""
        return Rotation._of(self._quat * np.array([-1.0, -1.0, -1.0, 1.0]))

    def mean(self, weights: Any = None, axis: Any = None) -> Rotation:
        """Return the mean rotation, of all or along axes: the one of the least chordal distance."""
        count = self._quat.ndim - 1
        axes = tuple(range(count)) if axis is None else (axis,) if isinstance(axis, int) else tuple(axis)
        outer = self._quat[..., :, None] * self._quat[..., None, :]
        if weights is not None:
            weights = _double(weights)
            if np.any(stop_gradient(weights) < 0):
                raise ValueError("`weights` must be non-negative.")
            outer = weights[..., None, None] * outer
        return Rotation._of(np.linalg.eigh(np.mean(outer, axis=tuple(a % count for a in axes)))[1][..., -1])

    def approx_equal(self, other: Any, atol: float | None = None, degrees: bool = False) -> Any:
        """Return whether rotations turn by nearly the same: the angle between them is less than `atol`."""
        atol = 1e-8 if atol is None else atol * (_DEGREE if degrees else 1.0)
        return (other * self.inv()).magnitude() < atol

    # --- as an array ---

    @property
    def single(self) -> bool:
        """Whether this is one rotation, not an array."""
        return self._quat.ndim == 1

    @property
    def shape(self) -> tuple:
        """The shape of the array of rotations."""
        return self._quat.shape[:-1]

    def __len__(self) -> int:
        if self.single:
            raise TypeError("Single rotation has no len().")
        return self._quat.shape[0]

    def __bool__(self) -> bool:
        return True

    def __getitem__(self, indexer: Any) -> Rotation:
        if self.single:
            raise TypeError("Single rotation is not subscriptable.")
        return Rotation._of(pick(self._quat, indexer))

    def __iter__(self) -> Iterator[Rotation]:
        return (self[k] for k in range(len(self)))

    def __repr__(self) -> str:
        return f"Rotation.from_quat({self._quat!r})"


tree.register_node(Rotation, lambda r: ([r._quat], None), lambda _, leaves: Rotation._of(leaves[0]))


def _compose(p: Any, q: Any) -> Any:
    """Return the quaternions of the rotations by q, then by p."""
    a, b, c, d = (p[..., k] for k in range(4))
    x, y, z, w = (q[..., k] for k in range(4))
    parts = [
        d * x + a * w + b * z - c * y, d * y + b * w + c * x - a * z,
        d * z + c * w + a * y - b * x, d * w - a * x - b * y - c * z,
    ]  # fmt: skip
    return np.stack(parts, axis=-1)


def _turn_up(q: Any) -> Any:
    """Return quaternions of the same rotations whose last number that is not 0, from the real part on, is positive."""
    x, y, z, w = (q[..., k] for k in range(4))
    down = (w < 0) | ((w == 0) & ((x < 0) | ((x == 0) & ((y < 0) | ((y == 0) & (z < 0))))))
    return q * np.where(down, -1.0, 1.0)[..., None]


def _quaternion_of(m: Any) -> Any:
    """Return quaternions of orthogonal matrices, not yet of the length 1: of four formulas the one with most digits."""
    xx, yy, zz = m[..., 0, 0], m[..., 1, 1], m[..., 2, 2]
    trace = xx + yy + zz
    xy, xz, yz = m[..., 1, 0] + m[..., 0, 1], m[..., 2, 0] + m[..., 0, 2], m[..., 2, 1] + m[..., 1, 2]
    wx, wy, wz = m[..., 2, 1] - m[..., 1, 2], m[..., 0, 2] - m[..., 2, 0], m[..., 1, 0] - m[..., 0, 1]
    rows = [
        [1.0 - trace + 2.0 * xx, xy, xz, wx], [xy, 1.0 - trace + 2.0 * yy, yz, wy],
        [xz, yz, 1.0 - trace + 2.0 * zz, wz], [wx, wy, wz, 1.0 + trace],
    ]  # fmt: skip
    best = np.argmax(np.stack([xx, yy, zz, trace], axis=-1), axis=-1)[..., None]
    found = np.stack(rows[3], axis=-1)
    for k in range(3):
        found = np.where(best == k, np.stack(rows[k], axis=-1), found)
    return found


def _read_axes(seq: str, lengths: tuple) -> tuple[list[int], bool]:
    """Return which axes letters name, and whether these are fixed in space."""
    if len(seq) not in lengths:
        raise ValueError(f"Expected axis specification of {' or '.join(map(str, lengths))} characters, got {seq}")
    if not re.fullmatch("[xyz]+|[XYZ]+", seq):
        raise ValueError(f"Expected axes from `seq` to be from ['x', 'y', 'z'] or ['X', 'Y', 'Z'], got {seq}")
    if any(a == b for a, b in itertools.pairwise(seq)):
        raise ValueError(f"Expected consecutive axes to be different, got {seq}")
    return ["xyz".index(letter) for letter in seq.lower()], seq.islower()


def _angles_of(a: Any, b: Any, c: Any, d: Any, fixed: bool, quiet: bool) -> list:
    """Return the first, second and third angle of rotations about fixed axes, the second from 0 to half a turn.

    At either end of the second angle the others are not unique: one is 0 then.
    """
    whole, rest = _length(a, b), _length(c, d)
    second = 2.0 * np.arctan2(rest, whole)
    low, high = second <= _LOCKED, math.pi - second <= _LOCKED
    locked = low | high
    if not quiet and np.any(stop_gradient(locked)):
        warnings.warn(
            "Gimbal lock detected. Setting third angle to zero since it is not possible to uniquely determine all "
            "angles.",
            stacklevel=3,
        )
    total, difference = np.arctan2(b, np.where(whole == 0, 1.0, a)), np.arctan2(d, np.where(rest == 0, 1.0, c))
    alone = np.where(low, 2.0 * total, (-2.0 if fixed else 2.0) * difference)
    first = np.where(locked, alone if fixed else 0.0, total - difference)
    third = np.where(locked, 0.0 if fixed else alone, total + difference)
    return [first, second, third]


def _length(x: Any, y: Any) -> Any:
    """Return the length of vectors of two numbers, whose slope at 0 is 0."""
    square = x * x + y * y
    nothing = square == 0
    return np.where(nothing, 0.0, np.sqrt(np.where(nothing, 1.0, square)))


class Slerp:
    """Interpolate between rotations along the shortest ways, at constant speeds; a tree of times and rotations.

    Parameters
    ----------
    times : array (n,)
        Increasing.
    rotations : Rotation
        n of them.

    Raises
    ------
    ValueError
        if there are fewer than two rotations, or `times` do not increase.

    Examples
    --------
    >>> import numpy as np, fad
    >>> from fad.scipy.spatial.transform import Rotation, Slerp
    >>> turn = Slerp([0.0, 1.0], Rotation.from_euler("z", np.array([[0.0], [1.0]])))
    >>> fad.grad(lambda t: turn(t).magnitude())(0.25).round(9)
    np.float64(1.0)
    """

    def __init__(self, times: Any, rotations: Any):
        if not hasattr(rotations, "as_quat"):
            raise TypeError("`rotations` must be a `Rotation` instance.")
        q = rotations.as_quat()
        if q.ndim != 2 or q.shape[0] < 2:
            raise ValueError("`rotations` must be a sequence of at least 2 rotations.")
        self.times = _double(times)
        if self.times.shape != (q.shape[0],):
            raise ValueError(f"Expected {q.shape[0]} times, as many as rotations, got {self.times.shape}.")
        if np.any(stop_gradient(np.diff(self.times)) <= 0):
            raise ValueError("Times must be in strictly increasing order.")
        self._known = Rotation._of(q)

    @property
    def rotations(self) -> Rotation:
        """Those from which a time interval starts, as in SciPy: all but the last."""
        return self._known[:-1]

    def __call__(self, times: Any) -> Rotation:
        """Return the rotations at times, a number or an array (m,)."""
        t = _double(times)
        if t.ndim > 1:
            raise ValueError("`times` must be at most 1-dimensional.")
        plain, known = stop_gradient(t), stop_gradient(self.times)
        if np.any((plain < known[0]) | (plain > known[-1])):
            raise ValueError(f"Interpolation times must be within the range [{known[0]}, {known[-1]}], both inclusive.")
        k = np.clip(searchsorted(known, plain) - 1, 0, known.shape[0] - 2)
        start, end = self._known[k], self._known[k + 1]
        first = pick(self.times, k)
        share = (t - first) / (pick(self.times, k + 1) - first)
        return start * Rotation.from_rotvec((start.inv() * end).as_rotvec() * share[..., None])


def _restore_slerp(_: Any, parts: Any) -> Slerp:
    new = object.__new__(Slerp)
    new.times, new._known = parts
    return new


tree.register_node(Slerp, lambda s: ([s.times, s._known], None), _restore_slerp)
refer({name: globals()[name] for name in __all__}, theirs)
