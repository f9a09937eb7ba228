"""How the native code of jitted programs is made: as users get it, or in a hurry."""

from contextlib import contextmanager, nullcontext

from fad.compile.targets.select import has_llvm, using

HURRIED = 0.8  # share of the programs that are compiled in a hurry, in a search


def lowering(case):
    """Return the lowering of this check: native where that is installed, NumPy's for one in four."""
    if case.r.random() < 0.25 or not has_llvm():
        return using("numpy")
    return in_a_hurry() if case.search and case.r.random() < HURRIED else nullcontext()


@contextmanager
def in_a_hurry():
    """Leave out LLVM's passes and its slow choice of instructions, which take four times as long: the text is the same.

    Nothing that is compiled so may come into the cache on disk, where others find it: a search has none.
    """
    from fad.compile.runtime import jit_engine

    compile_well = jit_engine._compile
    jit_engine._compile = lambda text, options: compile_well(text, options._replace(optimise=False, level=0))
    try:
        yield
    finally:
        jit_engine._compile = compile_well
