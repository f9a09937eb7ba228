"""What is known to be wrong and not mended yet: such findings are counted, and do not fail.

Each entry is a reason and what it looks like. Whoever mends the cause deletes the entry.
"""


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


def _byte_order(program, check, message):
    """What jit returns of an array in the other byte order has the machine's own."""
    return check.startswith("jit") and "big_endian: " in message and " >" in message


def _sums_into_another_rank(program, check, message):
    """Accumulations take an ``out=`` of another rank in some layouts; in others NumPy says that it does not fit."""
    return "output parameter of cum" in message and "has the wrong shape" in message


KNOWN = {
    "accumulations into arrays of another rank": _sums_into_another_rank,
    "the byte order of what jit returns": _byte_order,
    "the sign of a zero in maximum, minimum, clip and sign": _sign_of_a_zero_at_a_limit,
    "the sign of a zero among sums": _sign_of_a_sum,
    "an infinite partial times zero": _zero_times_infinity,
    "a Python number beside float32": _number_among_arrays,
}


def known(program, check, message):
    """Return the reason if a finding is a known one."""
    return next((reason for reason, looks in KNOWN.items() if looks(program, check, message)), "")
