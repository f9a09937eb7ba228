"""What is known to be wrong and not mended yet: such findings are counted, and do not fail.

Each entry is a reason and what it looks like. Whoever mends the cause deletes the entry.
"""

import re


def _byte_order(program, check, message):
    """What jit returns of an array in the other byte order has the machine's own."""
    return check.startswith("jit") and "big_endian: " in message and " >" in message


def _layout(program, check, message):
    """jit has one program for all layouts of an argument; ravel and reshape are views in some and copies in others."""
    views = "ravel" in program.source or "reshape" in program.source
    return check.startswith("jit") and "layouts: " in message and views


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
    "the byte order of what jit returns": _byte_order,
    "arguments that may not be written": _read_only,
    "views of arguments in several layouts under jit": _layout,
    "numbers and arrays without axes": _number_or_array,
    "arrays from outside that are changed": _outside,
}


def known(program, check, message):
    """Return the reason if a finding is a known one."""
    return next((reason for reason, looks in KNOWN.items() if looks(program, check, message)), "")
