"""Native code rounds each operation of a program as NumPy does: sums, products, quotients and roots have its bits."""

import contextlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from natively import native

import fad
import fad.scipy.special  # its operations have words as well
from fad import control, tree
from fad.compile.codegen import cuda
from fad.compile.codegen.llvm import loop_nest, simd
from fad.compile.codegen.llvm.builder import Emitter
from fad.compile.codegen.llvm.math import erf, exp_log_trig, inverse, powers
from fad.compile.runtime import jit_engine
from fad.compile.targets.select import using
from fad.core.primitives.primitive import REGISTRY, Primitive

pytest.importorskip("llvmlite")
RNG = np.random.default_rng(0)
REAL = [np.float64, np.float32]
LENGTHS = [1, 3, 16, 37, 1030]  # a vector's tail alone, whole vectors, both, and more than one chunk of a sum


def bits(x):
    """Return an array's bits; every NaN has those of one, and every zero of one sign."""
    x = np.asarray(x)
    if x.dtype.kind == "c":
        return bits(x.real), bits(x.imag)
    x = np.where(np.isnan(x), np.nan, x + 0.0).astype(x.dtype)
    return x.shape, x.dtype, x.tobytes()


def same_bits(found, wanted):
    assert [*map(bits, tree.leaves(found))] == [*map(bits, tree.leaves(wanted))]


def jitted(f, *args):
    """Return what the replay of a compiled function gives."""
    with using("llvm"):
        fast = fad.jit(f)
        fast(*args)
        return fast(*args)


@pytest.fixture
def scalar_loops(monkeypatch):
    """Leave the search for vectors to LLVM, as on a CPU whose vectors cannot be masked."""
    monkeypatch.setenv("FAD_CACHE_DIR", "")
    monkeypatch.setattr(jit_engine, "_addresses", {})
    monkeypatch.setattr(simd, "register_bytes", lambda: 0)


CANCELLING = {
    "difference of squares": lambda x, y: np.sqrt(x * x - y * y),
    "determinant": lambda x, y: x * (y + 1) - (y + 1) * x,
    "sum of products": lambda x, y: x * y + (-y) * x,
    "square less product": lambda x, y: x**2 - x * y,
    "product less number": lambda x, y: x * 0.1 - y * 0.1,
    "nested": lambda x, y: (x * y) * x - (y * x) * y,
}


@pytest.mark.parametrize("dtype", REAL)
@pytest.mark.parametrize("name", CANCELLING)
def test_equal_products_cancel(name, dtype):
    f = CANCELLING[name]
    for n in LENGTHS:
        x = RNG.normal(size=n).astype(dtype)
        for a, b in ((x, x.copy()), (np.repeat(x, 2)[::2], x[::-1][::-1].copy()), (x[0], x[0])):
            assert np.all(native(f, a, b) == 0)


@pytest.mark.parametrize("dtype", REAL)
def test_equal_products_cancel_in_loops_that_llvm_makes_vectors_of(dtype, scalar_loops):
    x = RNG.normal(size=1001).astype(dtype)
    for f in CANCELLING.values():
        assert np.all(native(f, x, x.copy()) == 0)
        assert native(lambda x, y, f=f: np.sum(f(x, y)), x, x.copy()) == 0


@pytest.mark.parametrize("dtype", REAL)
def test_a_vector_is_parallel_to_itself(dtype):
    v = RNG.normal(size=(100, 3)).astype(dtype)
    assert not np.any(jitted(np.cross, v, v.copy()))


@pytest.mark.parametrize("dtype", REAL)
@pytest.mark.parametrize("axis", [0, 1, None])
def test_what_a_reduction_adds_up_is_rounded_first(dtype, axis):
    x = RNG.normal(size=(40, 30)).astype(dtype)
    assert np.all(native(lambda x, y: np.sum(x * x - y * y, axis=axis), x, x.copy()) == 0)
    x = x.reshape(600, 2)  # the sum of two numbers has one rounding
    f = lambda x, y: (np.sum(x * y, axis=1), np.sum(x * y + x, axis=1), np.max(x * y - x, axis=1))
    same_bits(native(f, x, x[::-1].copy()), f(x, x[::-1].copy()))


@pytest.mark.parametrize("dtype", REAL)
@pytest.mark.parametrize("shape", [(), (5,)])  # a state in registers, and one in memory
def test_steps_of_loops_have_numpys_bits(dtype, shape):
    xs = RNG.normal(size=(50, *shape)).astype(dtype)
    first = RNG.normal(size=shape).astype(dtype)[()]

    def step(c, x):
        y = (c * x - x * x) / (1 + c * c)
        return y, np.sqrt(np.abs(c * c - x * x)) + c * y

    def plain(c, xs):
        ys = []
        for x in xs:
            c, y = step(c, x)
            ys.append(y)
        return c, np.stack(ys)

    wanted = plain(first, xs)
    same_bits(jitted(lambda c, xs: control.scan(step, c, xs), first, xs), wanted)
    same_bits(jitted(plain, first, xs), wanted)
    loop = lambda c, xs: control.fori_loop(0, 50, lambda i, c: step(c, xs[i])[0], c)
    same_bits(jitted(loop, first, xs), wanted[0])
    going = lambda s: s[1] < 50
    loop = lambda c, xs: control.while_loop(going, lambda s: (step(s[0], xs[s[1]])[0], s[1] + 1), (c, 0))[0]
    same_bits(jitted(loop, first, xs), wanted[0])


@pytest.mark.parametrize("dtype", [np.complex128, np.complex64])
@pytest.mark.parametrize("shapes", [((37,), (37,)), ((37,), ()), ((1,), (37,)), ((5, 3), (5, 1)), ((1030,), (1030,))])
def test_complex_arithmetic_has_numpys_bits(dtype, shapes):
    """NumPy fuses an operation of each part of a product of arrays where the CPU can: a known formula as well."""
    z, w = ((RNG.normal(size=s) + 1j * RNG.normal(size=s)).astype(dtype)[()] for s in shapes)
    f = lambda z, w: (z * w, z * w - w * z, z * np.conj(z), z / w, z + w, z - 2 * w, z**2, 1 / w, z * w + z / w)
    same_bits(native(f, z, w), f(z, w))


def test_complex_scalars_have_no_fused_products_as_in_numpy():
    z, w = np.complex128(0.3 + 0.7j), np.complex128(1.1 - 0.9j)
    f = lambda z, w: (z * w - w * z, (z * z.conjugate()).imag)
    assert f(z, w) == (0, 0)
    assert jitted(f, z, w) == (0, 0)


UNARY = [np.sqrt, np.abs, np.negative, np.square, np.reciprocal, lambda x: x * x]
BINARY = [
    np.add, np.subtract, np.multiply, np.divide, lambda x, y: x * y - y * x, lambda x, y: x - x * y,
    # where both are zero, NumPy's choice of a sign depends on how the arrays lie
    lambda x, y: np.maximum(x, y) + 0.0, lambda x, y: np.minimum(x, y) + 0.0, lambda x, y: np.where(x > y, x, y),
]  # fmt: skip
NUMBERS = [2.0, 0.1, -3, 0.5, 3, np.float64(0.7)]
SHAPES = [(), (1,), (7,), (37,), (1030,), (5, 3), (4, 5, 3), (33, 17)]
LAYOUTS = [
    lambda x: x, lambda x: x[()], lambda x: x[..., ::-1] if x.ndim else x, np.asfortranarray, lambda x: x[:1],
    lambda x: np.repeat(x, 2, -1)[..., ::2] if x.ndim else x,
]  # fmt: skip


@st.composite
def programs(draw):
    """Draw what each step does to earlier values: a function and their numbers, or a number in place of one."""
    steps = []
    for k in range(2, 2 + draw(st.integers(1, 12))):
        if draw(st.integers(0, 3)) == 0:
            steps.append((draw(st.sampled_from(UNARY)), [draw(st.integers(0, k - 1))]))
        else:
            number = st.sampled_from(NUMBERS).map(lambda x: [x])  # in a list: no number of a value
            operands = [draw(st.integers(0, k - 1)), draw(st.integers(0, k - 1) | number)]
            steps.append((draw(st.sampled_from(BINARY)), operands[:: draw(st.sampled_from([1, -1]))]))
    return steps


def program(steps):
    def run(x, y):
        values = [x, y]
        for f, operands in steps:
            values.append(f(*[i[0] if isinstance(i, list) else values[i] for i in operands]))
        return values[2:]

    return run


@st.composite
def arrays(draw):
    shape, r = draw(st.sampled_from(SHAPES)), np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    found = []
    for _ in range(2):
        x = np.asarray(r.normal(size=shape) * 10.0 ** r.integers(-3, 4, shape), draw(st.sampled_from(REAL)))
        layout = draw(st.sampled_from(LAYOUTS))
        found.append(layout(x) if x.ndim or layout is not LAYOUTS[4] else x)
    return found


@given(programs(), arrays())
def test_a_drawn_elementwise_program_has_numpys_bits(steps, xs):
    f = program(steps)
    with np.errstate(all="ignore"):
        same_bits(jitted(f, *xs), f(*xs))
        last = lambda *xs: f(*xs)[-1]  # where nothing in between is stored
        same_bits(jitted(last, *xs), last(*xs))


@given(programs(), arrays())
def test_the_gradient_of_a_drawn_elementwise_program_has_the_bits_of_the_eager_one(steps, xs):
    def pulled(*xs):
        y, pullback = fad.vjp(lambda *xs: program(steps)(*xs)[-1], *xs)
        return y, pullback(y)

    with np.errstate(all="ignore"):
        same_bits(jitted(pulled, *xs), pulled(*xs))


def test_polynomials_have_fused_operations_and_no_instruction_has_a_licence():
    for emit in (exp_log_trig.exp, exp_log_trig.log, exp_log_trig.trig("sin"), inverse.arctan, erf.erf, powers.cbrt):
        e = Emitter()
        emit(e, "%x")
        assert sum("@llvm.fma." in line for line in e.lines) >= 5
    modes = {"types": ("double", "double"), "modes": ("c", "c"), "node_types": ("double",) * 2}
    for reduce in ("", "inner", "axis0"):
        product = loop_nest.Node("({0} * {1})", (0, 1), "double", False)
        nodes = (product, loop_nest.Node("exp({0})", (2,), "double", False))
        kernel = loop_nest.Kernel(rank=2, nodes=nodes, outs=(3,), reduce=reduce, **modes)
        for text in (loop_nest.kernel_module(kernel).text, loop_nest._text(kernel, 1)):
            assert not {"contract", "fast", "afn", "arcp"} & set(text.split())


@pytest.mark.parametrize("kind", ["double", "float"])
def test_on_a_gpu_no_sum_and_product_of_floats_are_in_words_that_a_compiler_contracts(kind):
    primitives = [p for p in REGISTRY.values() if isinstance(p, Primitive)]
    known = {text for p in primitives for text in (p.lower, *p.lower_for.values()) if text}
    written = []
    for text in known:
        with contextlib.suppress(cuda.Cannot):
            written.append(cuda.Spelling(text, kind, kind, 3).write(["t0", "t1", "t2"]))
    assert sum("_rn(" in text for text in written) > 10
    assert not [text for text in written if {"+", "-", "*"} & set(text.split())]


def rest_of_rounding(x):
    terms = np.sin(x) * np.exp(-x)
    rest = np.sum(terms) / 3.0 - np.sum(terms / 3.0)
    return np.sum(x) if rest == 0.0 else 2.0 * np.sum(x) if rest > 0.0 else 3.0 * np.sum(x)


def test_calls_that_rounding_leads_to_no_path_are_not_all_recorded_again():
    fast, rng = fad.jit(rest_of_rounding), np.random.default_rng(0)

    def count_recordings(x, calls):
        before = fast._misses
        for _ in range(calls):
            assert fast(x) in (np.sum(x), 2.0 * np.sum(x), 3.0 * np.sum(x))
        return fast._misses - before

    odd = next(x for x in rng.normal(size=(4000, 37)) if count_recordings(x, 3) == 3 and count_recordings(x, 1))
    assert count_recordings(odd, 500) < 20
    assert "rounding" in fast.explain()
    x = next(x for x in rng.normal(size=(50, 37)) if not count_recordings(x, 1))
    assert count_recordings(x, 3) == 0


def factor(x, h):
    update = lambda x, a: x @ a @ np.linalg.inv(a.T @ a)
    for _ in range(200):
        w = update(x, h.T)
        h = update(x.T, w).T
        loss = np.sum((x - w @ h) ** 2)
        if loss <= 1e-4:
            break
    return loss


def test_a_function_whose_questions_rounding_decides_is_not_taken_for_an_impure_one():
    def least(x):
        best = np.inf
        for k in range(5):  # all of which end at the same minimum, but for rounding
            loss = factor(x, 1.5 + np.cos(np.arange(10.0) * (k + 1)).reshape(2, 5))
            if loss <= best:
                best = loss
        return best

    fast, rng = fad.jit(least), np.random.default_rng(0)
    for x in np.abs(rng.normal(size=(3, 6, 5))):
        for _ in range(2):
            np.testing.assert_allclose(fast(x), least(x), rtol=1e-9)
