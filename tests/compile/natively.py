"""What tests of native programs share."""

import fad
from fad.compile.lowering import using


def compiled(f, *args):
    """Return a function that was recorded and compiled for such arguments, whatever lowering is the default."""
    with using("llvm"):
        fast = fad.jit(f)
        fast(*args)
        fast(*args)
    return fast
