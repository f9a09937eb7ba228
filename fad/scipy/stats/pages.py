"""What ``help()`` shows of a distribution, made from its definition: formula, methods, an example that is run."""

from __future__ import annotations

from typing import Any

import scipy.stats

from fad.core.primitives.docstrings import as_written, run_example, summary
from fad.scipy.stats.moments import MOMENTS

_METHODS = ("logpdf", "pdf", "logpmf", "pmf", "cdf", "sf", "logcdf", "logsf", "ppf", "isf")

_PAGE = """{summary} {differentiable}
{formula}
Methods
-------
{methods}

Parameters
----------
{x} : array_like
    Where to evaluate{quantiles}.
{shapes}loc{and_scale} : array_like, real
    The shift{by_scale}.

Returns
-------
ndarray or scalar
    In double precision; NaN for impossible parameters.

Raises
------
TypeError
    if a parameter is missing, unknown, or given twice.

References
----------
scipy.stats.{name}, https://docs.scipy.org/doc/scipy/reference/generated/scipy.stats.{name}.html

Examples
--------
>>> import numpy as np, fad
{example}
"""


def page(distribution: Any) -> str:
    """Return the docstring of a distribution."""
    discrete = hasattr(distribution, "pmf")
    log, x = ("logpmf", "k") if discrete else ("logpdf", "x")
    shapes = ", ".join(distribution.shapes)
    standard = vars(distribution).get(f"_{log}")
    formula = as_written(standard, (x, *distribution.shapes)) if standard else ""
    last = ["loc=0"] if discrete else ["loc=0", "scale=1"]
    given = ", ".join([*distribution.shapes, *last])
    methods = [f"{m}({'q' if m in ('ppf', 'isf') else x}, {given})" for m in _METHODS if hasattr(distribution, m)]
    moments = ("mean", "var", "std") if distribution.name in MOMENTS else ()
    methods += [f"{m}({given})" for m in (*moments, *(() if discrete else ("median",)))]
    return _PAGE.format(
        name=distribution.name,
        summary=summary(getattr(scipy.stats, distribution.name).__doc__ or ""),
        differentiable="Differentiable in its real parameters; a count has no derivative."
        if discrete
        else "Differentiable in the argument, the shapes, loc and scale.",
        formula=f"\nThe standard form has {log} = {formula}\n" if formula else "",
        methods="\n".join([*methods, f"rvs({given}, size=1, random_state=None)"]),
        x=x,
        quantiles="" if not hasattr(distribution, "ppf") else "; ``q`` is a probability",
        shapes=f"{shapes} : array_like, real\n    The shapes.\n" if shapes else "",
        and_scale="" if discrete else ", scale",
        by_scale="" if discrete else ", and the positive scale: the standard form is evaluated at (x - loc) / scale",
        example="\n".join(_example(distribution, log, discrete)),
    )


def _example(distribution: Any, log: str, discrete: bool) -> list[str]:
    middle = [round((low + high) / 2, 2) if type(low) is float else low for low, high in distribution.domains]
    first = distribution.counts[1] if discrete else round(0.4 * sum(distribution.points), 2) or 0.5
    point = ", ".join(map(repr, [first, *middle]))
    path = f"fad.scipy.stats.{distribution.name}.{log}"
    which = f", argnums={len(middle)}" if discrete else ""
    return [*run_example(f"{path}({point})"), *run_example(f"fad.grad({path}{which})({point})")]
