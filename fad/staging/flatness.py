"""Which values of a recording have no derivative, so that equal ones are one key of a dictionary."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fad.core.programs.graph import Equation
    from fad.staging.record_trace import RecordTrace


def has_no_derivative(trace: RecordTrace, number: int) -> bool:
    """Return whether a value is made of inputs by steps alone, as ``x // h`` and ``np.floor(x)[0]`` are.

    What makes it is found from the end of the program: where such values are keys, they have just been computed.
    """
    pending = {number} - trace.constants.keys()
    for equation in reversed(trace.equations):
        if not pending:
            return True
        made = pending.intersection(equation.outs)
        if made:
            pending -= made
            pending.update(_smooth_operands(trace, equation))
    return not pending


def _smooth_operands(trace: RecordTrace, equation: Equation) -> list[int]:
    """Return the operands of an operation in which its results may have a derivative."""
    if equation.prim.flat is True:
        return []
    ins = [i for i in equation.ins if trace.types[i].dtype.kind in "fc" and i not in trace.constants]
    if equation.prim.flat == "real":
        return [i for i in ins if trace.types[i].dtype.kind == "c"]
    return ins
