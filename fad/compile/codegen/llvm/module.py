"""A module of LLVM's text, and how it is compiled."""

from __future__ import annotations

from typing import NamedTuple


class Options(NamedTuple):
    """How a module is compiled; modules of equal options are compiled together."""

    optimise: bool = False  # by LLVM's passes, which find the vectors in its loops
    level: int = 3  # of code generation
    unroll: bool = True  # whether LLVM may write a loop's step several times: half of the time for a nest of many


WRITTEN = Options()  # vectors are written out: only code generation is left
SCALAR = Options(optimise=True)  # loops over single elements
NEST = Options(optimise=True, unroll=False)
CONTROL = Options(level=0)  # calls and little else: code that is there soon is worth more than code that is quick


class Module(NamedTuple):
    """Functions and declarations as text, and the options to compile them with."""

    text: str
    options: Options = WRITTEN
