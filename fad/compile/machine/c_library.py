"""What native code calls of the C library."""

from __future__ import annotations

# By the names of templates: functions of a single number, for which the library's tables take less time than a
# polynomial, whose steps wait for each other. NumPy and Python call the same for single numbers.
OF_NUMBERS = {
    **{
        name: name
        for name in (
            "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan", "sinh", "cosh", "tanh",
            "cbrt", "erf", "pow",
        )
    },
    **{f"arc{name}": f"a{name}" for name in ("sin", "cos", "tan", "tan2", "sinh", "cosh", "tanh")},
}  # fmt: skip
CALLED = (*OF_NUMBERS.values(), "fmod", "memcmp")
