"""The contract: every operation's samples, tried against every clause."""

from __future__ import annotations

import dataclasses
import traceback
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from fad.core.primitives.primitive import REGISTRY, Composite, Operation, Primitive
from fad.errors import GradientCheckError
from fad.testing import clauses as c
from fad.testing.cases import Case, cases, is_defined

DOUBLE, SINGLE = (np.float64,), (np.float32, np.complex64)
BOTH = (np.float64, np.complex128)

# group -> [(clause, dtypes of the samples)]
CLAUSES: dict[str, list[tuple[Callable[[Case], None], tuple]]] = {
    "value": [(c.value_is_numpys, BOTH), (c.nothing_is_mutated, DOUBLE)],
    "first": [
        (c.jvp_is_numerical, BOTH),
        (c.vjp_is_the_transpose, BOTH),
        (c.each_operand_alone, BOTH),
        (c.written_rules_are_the_derived_ones, BOTH),
        (c.flat_operations_are_constant, BOTH),
    ],
    "second": [(c.second_derivatives, BOTH)],
    "vmap": [(c.vmap_is_a_loop, BOTH)],
    "vmap_derivatives": [(c.vmap_and_derivatives, DOUBLE)],
    "dtypes": [(c.single_precision_stays_single, SINGLE), (c.vmap_stays_single, SINGLE)],
    "errors": [(c.unknown_keywords_are_refused, DOUBLE), (c.out_is_refused, DOUBLE), (c.misfits_are_refused, DOUBLE)],
}


def contract(
    operation: Any, samples: Callable | None = None, groups: Iterable[str] | None = None, *, seed: int = 0
) -> None:
    """Try an operation on its samples against every clause that each operation of fad itself must pass.

    The value equals NumPy's under each transform and nothing is mutated; the JVP equals differences of values, the
    VJP is its transpose, and both are right to second order; vmap equals a loop for each choice of batched operands;
    single precision and complex numbers keep their dtypes; bad arguments are refused.

    A module may write notes for its operation beside the rule: ``complex=False`` (no complex operands), ``order=1``
    (no second derivative), ``constants=(1, "rcond")`` (arguments that are never traced, by position or name),
    ``kinks=lambda x, y: (x - y,)`` (of the arguments of a call, arrays that are zero where there is a kink or a jump:
    samples close to one are redrawn), ``numerical=False`` (the result's shape depends on the numbers, so differences
    are meaningless), ``rounding="single"`` (of single precision operands the reference rounds in single precision on
    the way to a double result, so that the digits beyond are noise).

    Parameters
    ----------
    operation : str, operation or callable
        A registered operation or its name; or any differentiable function, such as one with a custom rule.
    samples : callable, optional
        ``samples(s) -> [call(...), ...]``: legal calls with arrays drawn from a :class:`fad.testing.Sampler`.
        Needed for a plain callable only.
    groups : iterable of str, optional
        Some of ``fad.testing.CLAUSES``; all if not given.
    seed : int, keyword only
        The same operation and seed draw the same numbers; another seed draws others.

    Raises
    ------
    GradientCheckError
        naming the operation, and for each failure the sample, the clause and the numbers;
        also for an operation without samples.

    Examples
    --------
    >>> from fad.testing import call, contract
    >>> contract("sin")
    >>> contract(lambda x: np.exp(x) / (1 + np.exp(x)), samples=lambda s: [call(s.real(3, 4))])
    """
    operation = _operation(operation, samples)
    chosen = list(CLAUSES) if groups is None else list(groups)
    unknown = set(chosen) - set(CLAUSES)
    if unknown:
        raise ValueError(f"no such groups of clauses: {sorted(unknown)}; there are {list(CLAUSES)}")
    failures = list(breaches(operation, chosen, seed))
    if failures:
        more = f"\n  and {len(failures) - 8} more" if len(failures) > 8 else ""
        text = "\n".join(failures[:8]) + more
        raise GradientCheckError(f"the operation {operation.name} breaks its contract:\n{text}")


def breaches(operation: Any, groups: Iterable[str], seed: int = 0) -> Iterator[str]:
    """Give what goes wrong, sample by sample and clause by clause, as it is found."""
    for dtype in (np.float64, np.complex128, np.float32, np.complex64):
        wanted = [clause for group in groups for clause, dtypes in CLAUSES[group] if dtype in dtypes]
        if wanted and _is_tried_in(operation, dtype):
            for case in cases(operation, dtype, seed=seed):
                if _applies(case, dtype):
                    yield from (text for clause in wanted if (text := _failure(clause, case)))


def _operation(operation: Any, samples: Callable | None) -> Any:
    if isinstance(operation, str):
        if operation not in REGISTRY:
            raise KeyError(f"no operation is called {operation!r}")
        operation = REGISTRY[operation]
    if isinstance(operation, (Primitive, Composite)) and samples is None:
        return operation
    if isinstance(operation, (Primitive, Composite)):
        run: Any = operation
        noted = {f.name: getattr(operation, f.name) for f in dataclasses.fields(Operation)}
        return Composite(operation.name, run, **{**noted, "samples": samples, "numpy": ()})
    return Composite(getattr(operation, "__name__", repr(operation)), operation, samples=samples)


def _is_tried_in(operation: Any, dtype: Any) -> bool:
    """Return whether the operation allows this dtype: ``complex=False`` says that complex operands are not defined."""
    if np.dtype(dtype).kind != "c":
        return True
    return operation.complex


def _applies(case: Case, dtype: Any) -> bool:
    """Leave out calls that NumPy does not know in this dtype, and those that the dtype does not change."""
    if dtype is np.float64:
        return True
    return any(x.dtype == dtype for x in case.operands) and is_defined(case)


def _failure(clause: Callable, case: Case) -> str:
    """Run one clause on one case; return what went wrong, or ''."""
    try:
        clause(case)
    except GradientCheckError as error:
        what = str(error).split("\n  at ")[0]
    except Exception as error:
        frames = [f for f in traceback.extract_tb(error.__traceback__) if "/fad/" in f.filename]
        at = f" at {frames[-1].filename.split('/fad/')[-1]}:{frames[-1].lineno}" if frames else ""
        what = f"{type(error).__name__}: {str(error)[:300]}{at}"
    else:
        return ""
    return f"  {clause.__name__}, {case}:\n    {what}"
