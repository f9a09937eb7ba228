"""What is known to be wrong and not mended yet: such findings are counted, and do not fail.

Each entry is a reason and what it looks like. Delete the entry when the cause is mended.
"""

import copy

import numpy as np
import pytest

import fad

from .case import Case
from .program import evaluate

VALUES = ("value under grad", "value under jvp", "vmap", "jit")


def _zero_times_infinity(program, check, message):
    """A derivative is NaN where an infinite partial meets zero: sqrt(x)**2 has slope 1 there, x**1.5 has 0.

    By IEEE the product is not a number, and no rule can know which one is right; but a zero that comes of a choice, a
    mask or an index array is no factor. A slice's still is, in reverse mode: np.sqrt(x)[1] at x[0] == 0. And that of an
    element which was overwritten is, in forward mode: x[0] = 0; np.sqrt(x).
    """
    return "nan" in message and check not in VALUES and _meets_infinity(Case(program))


def _meets_infinity(case):
    """Return whether a derivative divides by zero, and computes what is no number more often than the program does."""
    world = case.program.world()
    loss, point = case.loss_of_some(world.f)
    plain = _warnings_of(lambda: loss(*copy.deepcopy(point)))  # which it may write into
    for derivative in (lambda: fad.vjp(loss, *point)[1](1.0), lambda: fad.jvp(loss, point, case.tangents)):
        seen = _warnings_of(derivative)
        infinite = any(seen.count(kind) > plain.count(kind) for kind in ("divide by zero", "overflow"))
        if infinite and seen.count("invalid value") > plain.count("invalid value"):
            return True
    return False


def _warnings_of(run):
    """Return the kinds of warnings that NumPy gives in a run."""
    seen = []
    with np.errstate(all="call", call=lambda kind, _: seen.append(kind)):
        run()
    return seen


def _sign_of_a_zero(program, check, message):
    """jit's sums of one term are that term, where NumPy adds it to zero, and its max has zeros ordered by sign."""
    return check == "jit" and "the sign of a zero" in message


_PRODUCTS = ("dot(", "inner(", "matmul(", "einsum(", "tensordot(", " @ ")


def _sign_of_a_product(program, check, message):
    """NumPy's dot is BLAS's, and begins with a term; its matmul and einsum, which stand for it, may begin with 0."""
    return check in VALUES and "the sign of a zero" in message and any(name in program.source for name in _PRODUCTS)


def _sign_of_a_part(program, check, message):
    """ufunc.reduceat begins with the first element, -0. + -0. with -0.; the sums that stand for it begin with 0."""
    return "the sign of a zero" in message and "add.reduceat" in program.source


_CHOOSES = ("fmax", "fmin", "unique", "union1d", "intersect1d", "setdiff1d", "quantile", "percentile", "partition")


def _either_of_two_zeros(program, check, message):
    """NumPy's fmax and fmin take another one of 0. and -0. in the middle of an array than at its end, as sorts do.

    And as what is interpolated between two zeros is by its formula for either half.
    """
    return "the sign of a zero" in message and any(name in program.source for name in _CHOOSES)


def _phase_of_size_one(program, check, message):
    """NumPy's abs of a complex number and of an array of them round apart: it shows where exp(1j * x) has size 1.

    So does the sign of a complex number, where a division rounded down follows.
    """
    of_phase = check in VALUES and "np.exp(1j" in program.source and "True" in message
    of_sign = "np.sign(" in program.source and "//" in program.source and "is wanted, not" in message
    return "abs(" in program.source and (of_phase or of_sign)


_ADDS = (*_PRODUCTS, "sum(", "mean(", "trace(", "norm(", "cov(", "logaddexp.reduce(")


def _single_precision_in_double(program, check, message):
    """Sums of single precision, added up in another order, show where a NumPy scalar makes the result double."""
    of_numbers = "is wanted, not" in message and not any(w in message for w in (": dtype", ": shape", "sign of a zero"))
    if not of_numbers or not any(name in program.source for name in _ADDS):
        return False
    from .campaign import examine  # which imports this module

    wide = [x.replace("np.float32", "np.float64").replace("np.complex64", "np.complex128") for x in program.arguments]
    return program.given(*wide) != program and examine(program.given(*wide), check)[0] == "same"


_JUMPS = (
    *("count_nonzero", "nonzero(", "sign", "astype(int", "//", "floor", "ceil", "trunc", "fix(", "rint", "round"),
    *(" > ", " == "),
)


def _zero_but_for_rounding(program, check, message):
    """The least-squares solution is that of the pseudo-inverse: a coefficient of zero comes out as 1e-17 or as 0."""
    return check in VALUES and "lstsq(" in program.source and any(name in program.source for name in _JUMPS)


_OF_INVERTIBLE = ("slogdet", "det", "inv", "solve")


def _singular_but_for_rounding(program, check, message):
    """The inverse of a matrix whose rank is deficient, whatever its numbers are, consists of rounding."""
    used = [name for name in _OF_INVERTIBLE if f"linalg.{name}(" in program.source]
    if not used or "is wanted, not" not in message or any(w in message for w in (": dtype", ": shape")):
        return False
    conditions = []
    with pytest.MonkeyPatch.context() as patch:
        for name in used:
            patch.setattr(np.linalg, name, _noting_condition(getattr(np.linalg, name), conditions))
        arguments = evaluate(program.arguments)
        with np.errstate(all="ignore"):
            program.world().f(*arguments)
    kinds = {np.asarray(x).dtype.char for x in arguments} & set("efdFD")
    return max(conditions, default=0.0) * max(np.finfo(kind).eps for kind in kinds or "d") > 0.1


def _noting_condition(function, conditions):
    """Return a function of matrices that notes their condition numbers."""

    def noting(a, *others):
        found = function(a, *others)
        conditions.extend(np.ravel(np.nan_to_num(np.linalg.cond(a), nan=np.inf)))
        return found

    return noting


def _sums_into_an_array_of_another_size(program, check, message):
    """NumPy refuses such an ``out=`` too, unless it has to convert the sums: then it writes some of the elements."""
    return "output parameter of cum" in message and "has the wrong shape" in message


def _roll_of_no_axes(program, check, message):
    """NumPy's roll fails in itself on an array without axes; under vmap there is one, and the array is what it was."""
    return "not enough values to unpack (expected 2, got 0)" in message and "shift(" in program.source


def _diagonal_of_nothing(program, check, message):
    """NumPy's einsum lets an axis without elements pass for one of another length: it reads what is not there."""
    return "dimensions of the repeated index" in message and "do not match: 0 and" in message


def _complex_number_written_outside(program, check, message):
    """NumPy drops the imaginary part of an array without axes, with a warning; of what jit traces it wants a float."""
    return check == "jit" and "setting an array element with a sequence" in message and "complex" in message


def _number_of_a_batch(program, check, message):
    """Allclose gives a bool, tolist and item Python's numbers; under vmap they are a batch, whose dtype counts."""
    of_numbers = any(name in program.source for name in ("allclose(", ".tolist()", ".item("))
    return of_numbers and "vmap" in check and ("float32 is wanted" in message or "complex64 is wanted" in message)


KNOWN = {
    "a Python number for each element of a batch": _number_of_a_batch,
    "a complex number written into an array outside": _complex_number_written_outside,
    "the size of a complex number in an array": _phase_of_size_one,
    "what jumps at zero, of coefficients that are zero but for rounding": _zero_but_for_rounding,
    "the inverse of a matrix that is singular but for rounding": _singular_but_for_rounding,
    "sums of single precision in a result of double": _single_precision_in_double,
    "einsum's diagonals of empty arrays": _diagonal_of_nothing,
    "cumulative sums into an array of another size": _sums_into_an_array_of_another_size,
    "a roll of no axes": _roll_of_no_axes,
    "an infinite partial times zero": _zero_times_infinity,
    "the sign of a zero in jit": _sign_of_a_zero,
    "the sign of a zero in a product": _sign_of_a_product,
    "the sign of a zero in add.reduceat": _sign_of_a_part,
    "which of two zeros NumPy takes": _either_of_two_zeros,
}


def known(program, check, message):
    """Return the reason if a finding is a known one."""
    return next((reason for reason, looks in KNOWN.items() if looks(program, check, message)), "")
