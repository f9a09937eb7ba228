"""What is known to be wrong and not mended yet: such findings are counted, and do not fail.

Each entry is a reason and what it looks like. Whoever mends the cause deletes the entry.
"""

import re


def _zero_times_infinity(program, check, message):
    """A derivative is NaN where an infinite partial meets a cotangent or tangent that is exactly zero."""
    return "nan" in message and check not in ("value under grad", "value under jvp", "vmap", "jit")


def _number_among_arrays(program, check, message):
    """A Python number that is differentiated is float64, and a float32 array beside it becomes float64."""
    numbers = any(not a.startswith("np.") for a in program.arguments)
    text = program.script() + message
    return numbers and not check.startswith("jit") and ("float32" in text or "complex64" in text)


def _sign_of_a_zero_at_a_limit(program, check, message):
    return "the sign of a zero" in message and any(name in program.source for name in ("clip", "max", "min", "sign"))


def _sign_of_a_sum(program, check, message):
    """A sum begins with zero in one order of computing and with its first term in another."""
    sums = ("einsum", "tensordot", "dot", "@", "matmul", "inner", "matvec", "kron", "trace", "cov", "conv", "diag")
    return "the sign of a zero" in message and any(name in program.source for name in sums)


def _read_only(program, check, message):
    """An argument that the caller's hands may not write is a value in a transform, and may be written."""
    return "read-only" in message


def _number_or_array(program, check, message):
    """An array without axes becomes a number where NumPy keeps an array that can be written, without a batch too."""
    return "does not support item assignment" in message or "to change'" in message


def _outside(program, check, message):
    """A function that changes V or W may run more than once; every finding in such a program is set aside."""
    return bool(re.search(r"\b[VW]\b(\[.*\]|\.\w+(\[.*\])?)? [-+*/%@|]*\*?= |\(\b[VW]\b", program.source))


KNOWN = {
    "arguments that may not be written": _read_only,
    "numbers and arrays without axes": _number_or_array,
    "arrays from outside that are changed": _outside,
    "the sign of a zero in maximum, minimum, clip and sign": _sign_of_a_zero_at_a_limit,
    "the sign of a zero among sums": _sign_of_a_sum,
    "an infinite partial times zero": _zero_times_infinity,
    "a Python number beside float32": _number_among_arrays,
}


def known(program, check, message):
    """Return the reason if a finding is a known one."""
    return next((reason for reason, looks in KNOWN.items() if looks(program, check, message)), "")
