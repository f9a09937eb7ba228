"""Checks of jit: a sequence of calls, beside a twin of the program whose function is not jitted.

Both worlds see the same calls: the first, the second, then some of other contents, layouts, dtypes, shapes, arguments
that are overwritten or share memory, arrays outside of the function that are overwritten, results that the caller
writes into.
"""

import numpy as np

import fad

from . import arguments
from .checks import check, single, spoil
from .compare import Difference, Skipped, identical, observe, same_error, same_left, same_run, same_tree
from .native_code import lowering
from .program import evaluate


class Twins:
    """Two worlds of one program: in one ``f`` is called as it is, in the other through jit."""

    def __init__(self, case, transform, compare):
        self.case, self.compare = case, compare
        self.worlds = case.program.world(), case.program.world()
        slow, fast = (transform(w.f) for w in self.worlds)
        self.calls = slow, fad.jit(fast)
        self.kept, self.results, self.wrote = None, None, False
        self.known = {}  # what calls without jit did that wrote nothing, by what they saw

    def step(self, label, lists):
        """Call both with the arguments of their own."""
        before = [np.copy(x) for x in lists[1]]
        slow, result = self.without_jit(lists[0])
        fast, other = self.call(1, lists[1])
        try:
            self.compare(self.case, slow, fast, before)
        except Difference as found:
            raise Difference(f"{label}: {found}", found.numeric) from found
        changed = any(not identical(a, b) for a, b in zip(before, lists[0], strict=True))
        self.kept = None if changed else lists
        self.results = (result, other) if slow.error is None and fast.error is None else None
        self.wrote = self.wrote or changed

    def call(self, which, values):
        """Return what a call in one of the worlds did, and its result itself."""
        results = []

        def keep(*given):
            results.append(self.calls[which](*given))
            return results[-1]

        run = observe(keep, self.worlds[which], values)
        return run, results[0] if results else None

    def without_jit(self, values):
        """Return what `call` does for the first world; a call that is known is not made again."""
        before = [seen(x) for x in (*values, *self.worlds[0].outside().values())]
        if (run := self.known.get(tuple(before))) is not None:
            return run, None
        run, result = self.call(0, values)
        if run.error is None and before == [seen(x) for x in (*values, *self.worlds[0].outside().values())]:
            self.known[tuple(before)] = run
        return run, result


def seen(x):
    """Return all that a program can see of an argument: its type, layout and bits."""
    array = np.asarray(x)
    return type(x), array.dtype.str, array.shape, array.strides, array.flags.writeable, array.tobytes()


def fresh(texts):
    return evaluate(texts), evaluate(texts)


def first(twins):
    return fresh(twins.case.program.arguments)


def same_objects(twins):
    return twins.kept


def contents(twins):
    return fresh(arguments.with_contents(twins.case.r, twins.case.program.arguments))


def noise(twins):
    return fresh(arguments.with_noise(twins.case.r, twins.case.program.arguments, 0.3))


def layouts(twins):
    r = twins.case.r
    texts = twins.case.program.arguments
    return fresh([arguments.lay(r, t) if arguments.is_array(t) else t for t in texts])


def narrow(twins):
    return fresh(arguments.with_dtype(twins.case.program.arguments, "narrow"))


def wide(twins):
    return fresh(arguments.with_dtype(twins.case.program.arguments, "wide"))


def complex_numbers(twins):
    return fresh(arguments.with_dtype(twins.case.program.arguments, "complex"))


def big_endian(twins):
    return fresh(arguments.with_dtype(twins.case.program.arguments, "big-endian"))


def shapes(twins):
    return fresh(arguments.with_longer_axes(twins.case.program.arguments))


def overwritten(twins):
    """The same arrays as before, overwritten in place."""
    if twins.kept:
        for values in twins.kept:
            for x in values:
                if isinstance(x, np.ndarray) and x.flags.writeable and x.dtype.kind in "fc":
                    x[...] = x * 0.5 - 0.25
    return twins.kept


def aliases(twins):
    """One array as two arguments, or two that overlap; not for programs that write into their arguments."""
    values = evaluate(twins.case.program.arguments)
    pairs = [(j, k) for k in range(len(values)) for j in range(k) if _alike(values[j], values[k])]
    if not pairs or twins.wrote:
        return None
    j, k = pairs[twins.case.r.integers(len(pairs))]
    overlap = values[j].ndim > 0 and twins.case.r.random() < 0.5
    found = fresh(twins.case.program.arguments)
    for some in found:
        if overlap:
            memory = np.concatenate([some[j], some[k][-1:]])
            some[j], some[k] = memory[:-1], memory[1:]
        else:
            some[k] = some[j]
    return found


def _alike(x, y):
    arrays = isinstance(x, np.ndarray) and isinstance(y, np.ndarray)
    return arrays and (x.shape, x.dtype) == (y.shape, y.dtype) and x.size > 0


def outside(twins):
    """The arrays outside of the function are overwritten between two calls."""
    arrays = [w.outside() for w in twins.worlds]
    if not arrays[0]:
        return None
    for found in arrays:
        for x in found.values():
            x[...] = x[::-1].copy() * 0.5 + 1
    return first(twins)


def results_overwritten(twins):
    """The caller writes into what it got."""
    if twins.results and twins.kept:
        for values, result, world in zip(twins.kept, twins.results, twins.worlds, strict=True):
            held = [x for x in [*values, *world.outside().values()] if isinstance(x, np.ndarray)]
            spoil(result, held)
    return first(twins)


LATER = [
    contents, noise, layouts, layouts, narrow, wide, complex_numbers, big_endian, shapes, overwritten, aliases, outside,
    results_overwritten, first, noise,
]  # fmt: skip


def run_sequence(case, transform, compare, length=7):
    """Make the calls."""
    if case.plain.error is not None and length:
        length = 1
    twins = Twins(case, transform, compare)
    order = [LATER[k] for k in case.r.permutation(len(LATER))[: length - 2 * case.search]]
    kind = ""
    with lowering(case):
        for number, make in enumerate([first, same_objects, first, *order], 1):
            lists = make(twins)
            if lists is not None:
                kind = make.__name__ if make not in (same_objects, overwritten) else f"{make.__name__} after {kind}"
                twins.step(f"call {number}, {kind}", lists)


@check("jit")
def jit(case):
    """A jitted program gives in every call what a plain run gives."""

    def same(_case, wanted, got, before):
        same_run(wanted, got, before, 2e-4 if narrow_numbers(case, before) else None)

    run_sequence(case, lambda f: f, same)


def narrow_numbers(case, values):
    """Return whether a call computes in single precision somewhere."""
    return single(case) or any(x.dtype.char in "fF" for x in values)


@check("jit of grad")
def jit_of_grad(case):
    """A jitted gradient is the gradient, in every call."""
    case.needs_derivative()
    case.succeeded(case.reverse)
    run_sequence(case, case.gradient_of, _same_gradients, 5)


def _same_gradients(case, wanted, got, before):
    if wanted.error is not None:
        if got.error is None:
            raise Difference(f"without jit {wanted.error!r} is raised")
        return
    if not same_error(wanted, got):
        close = 1e-2 if narrow_numbers(case, before) else 1e-8
        same_tree(wanted.outputs, got.outputs, "output", close=close, zeros=False)
        same_left(wanted, got, before)


@check("jit of vmap")
def jit_of_vmap(case):
    """A jitted batch of gradients is a batch of gradients."""
    case.needs_derivative()
    case.succeeded(case.reverse)
    world, wanted = case.program.world(), case.gradients
    writes = any(not identical(x, wanted.outside[name]) for name, x in world.outside().items())
    fast = fad.jit(fad.vmap(case.gradient_of(world.f)))
    with lowering(case):
        for number in range(1, 4):
            if wanted.error is not None:
                raise Skipped("the batch raises")
            got = observe(fast, world, case.batch())
            try:
                _same_gradients(case, wanted, got, case.stacked)
            except Difference as found:
                raise Difference(f"call {number}: {found}", found.numeric) from found
            if writes:
                wanted = case.mapped_gradient()
