"""``torch.distributions.constraints``: which values a parameter may have, and where a distribution's values lie."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fad.eager.tensor import Tensor


class Constraint:
    """What values fulfil: `check` gives booleans, one for each event of `event_dim` axes.

    >>> import fad.eager as torch
    >>> positive.check(torch.tensor([1.0, -1.0]))
    tensor([ True, False])
    """

    is_discrete = False
    event_dim = 0

    def __init__(
        self,
        words: str | Callable[[], str],
        holds: Callable[[Any], Any],
        event_dim: int = 0,
        is_discrete: bool = False,
    ):
        self._words, self._holds = words, holds  # the latter is a function of arrays
        self.event_dim, self.is_discrete = event_dim, is_discrete

    def check(self, value: Tensor) -> Tensor:
        """Return for each event whether it fulfils the constraint."""
        return Tensor(self._holds(value.value))

    def __repr__(self) -> str:
        return self._words() if callable(self._words) else self._words


def _whole(x: Any) -> Any:
    return x % 1 == 0


def _sums_to_one(p: Any) -> Any:
    slack = 1e-6 + p.shape[-1] * float(np.finfo(p.dtype).eps)
    return np.all(p >= 0, axis=-1) & (abs(p.sum(-1) - 1.0) < slack)


def is_symmetric(x: Any) -> Any:
    """Return whether matrices are symmetric, to some digits."""
    turned = np.swapaxes(x, -1, -2)
    return np.all(abs(x - turned) <= 1e-6 + 1e-5 * abs(x), axis=(-2, -1))


def _is_lower(x: Any) -> Any:
    return np.all(np.tril(x) == x, axis=(-2, -1))


def _is_lower_with_positive_diagonal(x: Any) -> Any:
    return _is_lower(x) & np.all(np.diagonal(x, 0, -2, -1) > 0, axis=-1)


def _has_one(x: Any) -> Any:
    return np.all((x == 0) | (x == 1), axis=-1) & (x.sum(-1) == 1)


def _is_positive_definite(x: Any) -> Any:
    return is_symmetric(x) & np.all(np.linalg.eigvalsh(x) > 0, axis=-1)


real = Constraint("real numbers", lambda x: x == x)
positive = Constraint("positive numbers", lambda x: x > 0)
nonnegative = Constraint("numbers that are not negative", lambda x: x >= 0)
unit_interval = Constraint("numbers between 0 and 1", lambda x: (x >= 0) & (x <= 1))
boolean = Constraint("zeros and ones", lambda x: (x == 0) | (x == 1), is_discrete=True)
nonnegative_integer = Constraint("whole numbers from 0 on", lambda x: _whole(x) & (x >= 0), is_discrete=True)
positive_integer = Constraint("whole numbers from 1 on", lambda x: _whole(x) & (x >= 1), is_discrete=True)
real_vector = Constraint("vectors of real numbers", lambda x: np.all(x == x, axis=-1), 1)
simplex = Constraint("probabilities that add up to 1", _sums_to_one, 1)
one_hot = Constraint("vectors of one 1 and else zeros", _has_one, 1, True)
lower_triangular = Constraint("lower triangles", _is_lower, 2)
lower_cholesky = Constraint("lower triangles with a positive diagonal", _is_lower_with_positive_diagonal, 2)
positive_definite = Constraint("positive definite matrices", _is_positive_definite, 2)


def _plain(bound: Any) -> Any:
    return bound.value if isinstance(bound, Tensor) else bound


def greater_than(lower_bound: Any) -> Constraint:
    """Return the constraint to be above a bound."""
    return Constraint(lambda: f"numbers above {_plain(lower_bound)}", lambda x: x > _plain(lower_bound))


def greater_than_eq(lower_bound: Any) -> Constraint:
    """Return the constraint to be at a bound or above."""
    return Constraint(lambda: f"numbers from {_plain(lower_bound)} on", lambda x: x >= _plain(lower_bound))


def less_than(upper_bound: Any) -> Constraint:
    """Return the constraint to be below a bound."""
    return Constraint(lambda: f"numbers below {_plain(upper_bound)}", lambda x: x < _plain(upper_bound))


def interval(lower_bound: Any, upper_bound: Any) -> Constraint:
    """Return the constraint to lie between two bounds, which belong to it."""
    inside = lambda x: (x >= _plain(lower_bound)) & (x <= _plain(upper_bound))
    return Constraint(lambda: f"numbers from {_plain(lower_bound)} to {_plain(upper_bound)}", inside)


def integer_interval(lower_bound: Any, upper_bound: Any) -> Constraint:
    """Return the constraint to be a whole number between two bounds, which belong to it."""
    inside = lambda x: _whole(x) & (x >= _plain(lower_bound)) & (x <= _plain(upper_bound))
    return Constraint(
        lambda: f"whole numbers from {_plain(lower_bound)} to {_plain(upper_bound)}", inside, is_discrete=True
    )


def multinomial(total: int) -> Constraint:
    """Return the constraint to be counts that add up to a total, or, as for PyTorch, to less."""
    inside = lambda x: np.all(_whole(x) & (x >= 0), axis=-1) & (x.sum(-1) <= total)
    return Constraint(lambda: f"counts that add up to {total} at most", inside, 1, True)


def independent(base: Constraint, reinterpreted_batch_ndims: int) -> Constraint:
    """Return a constraint whose last axes are one event."""
    n = reinterpreted_batch_ndims
    if n == 0:
        return base
    whole = lambda x: np.all(base.check(Tensor(x)).value, axis=tuple(range(-n, 0)))
    return Constraint(lambda: repr(base), whole, base.event_dim + n, base.is_discrete)
