"""What tests of compiled programs share."""

import threading

import numpy as np

import fad
from fad import tree
from fad.compile.targets.select import using


def compiled(f, *args):
    """Return a function that was recorded and compiled for such arguments, whatever lowering is the default."""
    with using("llvm"):
        fast = fad.jit(f)
        fast(*args)
        fast(*args)
    return fast


def native(f, *args):
    """Return what the compiled function gives, which must run without a call of NumPy."""
    fast = compiled(f, *args)
    assert "lowering: llvm" in fast.explain()
    assert "calls of NumPy" not in fast.explain(), fast.explain()
    return fast(*args)


def with_pullback(case):
    """Return a case of the contract as a function of its operands that gives its value and its pullback of ones."""

    def program(*xs):
        def smooth(*some):
            full = list(xs)
            for k, x in zip(case.diff, some, strict=True):
                full[k] = x
            return case.smooth(*full)

        ys, back = fad.vjp(smooth, *[xs[k] for k in case.diff])
        return case.call(case.function, *xs), back(tree.map(np.ones_like, ys)) if ys else ()

    return program


def alone(case):
    """Return a case of the contract as a function of its operands that gives its value."""
    return lambda *xs: case.call(case.function, *xs)


def in_threads(work, count=4):
    """Run ``work(k)`` in a thread each, and wait for all."""
    threads = [threading.Thread(target=work, args=(k,)) for k in range(count)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
