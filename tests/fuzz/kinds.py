"""The templates of statements, in tables with shares: what random programs are made of.

A line of a table is a statement with holes (holes.py). A statement with a body is written ``binding ==> text``: the
binding gives the body's names a value while it is grown, ``|`` in the text stands for the end of a line.
"""

from dataclasses import dataclass

from . import functions, writes


@dataclass(frozen=True)
class Table:
    """Templates that share the chance of being drawn; those of ``smooth`` round, so exact programs leave them out."""

    share: float
    exact: tuple[str, ...]
    smooth: tuple[str, ...] = ()

    @property
    def all(self):
        return self.exact + self.smooth


def table(share, exact, smooth=""):
    return Table(share, *(tuple(line.strip() for line in text.strip().splitlines()) for text in (exact, smooth)))


ELEMENTWISE = """
    {new} = {x} {op} {y}
    {new} = {x} {op} {y}
    {new} = {x} {op} {y}
    {new} = {n} {op} {x}
    {new} = -{x}
    {new} = np.abs({x})
    {new} = abs({x}) - {y}
    {new} = np.square({x})
    {new} = {x}**2
    {new} = np.power({x}, 3)
    {new} = np.maximum({x}, {y})
    {new} = np.minimum({x}, {y})
    {new} = np.fmax({x}, {y})
    {new} = np.clip({x}, {k}, 2)
    {new} = np.clip({f}, None, 0.5)
    {new} = {f}.clip(-0.5, 0.5)
    {new} = np.sign({x})
    {new} = np.copysign({f}, {f})
    {new} = np.where({x} {cmp} {y}, {x}, {y})
    {new} = np.where({m}, {x}, 0)
    {new} = np.where({x} > 0, {x} * 2, -{x})
    {new} = np.floor({f})
    {new} = np.rint({f} * 2) / 2
    {new} = np.trunc({f}) + {y}
    {new} = {x} // 0.5
    {new} = {x} % 0.75
    {new} = np.fmod({f}, 1.25)
    {new} = np.mod({f}, -1.5)
    {new} = {x} {cmp} {y}
    {new} = np.logical_and({x} > 0, {y} < 1)
    {new} = ~({x} > 0)
    {new} = ({x} > 0) * {y}
    {new} = np.heaviside({f}, 0.5)
    {new} = np.real({x})
    {new} = {x}.conj()
    {new} = {x}.imag + {y}
    {new} = np.conj({x}) * {x}
    {new} = np.positive({x})
    {new} = np.isfinite({x})
    {new} = np.nan_to_num({f})
    {new} = np.nextafter({f}, 0.0) - {f}
    {new} = np.select([{x} > 1, {x} > 0], [{x}, 2 * {x}], 0.5)
    {new} = np.piecewise({f}, [{f} > 0], [lambda v: 2 * v, lambda v: v])
    {new} = np.interp({f}, np.array([-1.0, 0.0, 2.0]), np.array([0.0, 1.0, 0.5]))
    {new} = np.divmod({f}, 0.75)[0]
    {new} = np.float64(2) * {x}
    {new} = {x} / 2
    {new} = 4 / ({f}**2 + 1)
"""
SMOOTH = """
    {new} = np.sin({x})
    {new} = np.cos({x}) * {y}
    {new} = np.tanh({x})
    {new} = np.exp(-{f}**2)
    {new} = np.exp({x} * 0.3)
    {new} = np.log(np.abs({x}) + 0.5)
    {new} = np.log1p({f}**2)
    {new} = np.expm1({f} * 0.25)
    {new} = np.sqrt({f}**2 + 0.25)
    {new} = np.sqrt({x} + 2.125j)
    {new} = np.arctan2({f}, {f} + 2.5)
    {new} = np.hypot({f}, {y} + 0.1)
    {new} = {x} / ({y}**2 + 1.5)
    {new} = (np.abs({f}) + 0.5) ** {y}
    {new} = np.logaddexp({f}, {y})
    {new} = np.arcsin(np.tanh({f}))
    {new} = np.arctan({f})
    {new} = np.cbrt({f} + 3)
    {new} = np.sinh({x} * 0.5)
    {new} = 1.3 ** {f}
    {new} = np.sinc({f})
    {new} = np.exp(1j * {f})
    {new} = np.angle({x} + 3)
    {new} = 1 / (1 + np.exp(-{f}))
    {new} = np.reciprocal({f}**2 + 1)
    {new} = np.float_power(np.abs({f}) + 0.5, 1.5)
    {new} = np.deg2rad({f}) * 30
    {new} = np.log(np.where({f} > 0, {f}, 1.0))
    {new} = np.where({f} > 0, np.sqrt({f}), {f})
"""
REDUCTIONS = """
    {new} = np.sum({x}, axis={axes}, keepdims={bool})
    {new} = {x}.sum({axes})
    {new} = np.sum({x}, where={m})
    {new} = np.sum({x}, axis={axes}, where={m}, initial=2.0)
    {new} = np.sum({x}, axis={axes}, dtype={floating})
    {new} = np.mean({x}, axis={axes}, keepdims={bool})
    {new} = np.max({f}, axis={axes}, keepdims={bool})
    {new} = {x}.min({axes})
    {new} = np.amax({f}, axis={axes}, where={m}, initial=-1.0)
    {new} = np.ptp({f}, axis={axis})
    {new} = np.cumsum({x}, axis={axis})
    {new} = {x}.cumsum()
    {new} = np.cumprod({x} * 0.5, axis={axis})
    {new} = np.diff({x}, axis={axis})
    {new} = np.diff({x}, n=2, axis={axis}, prepend=0)
    {new} = np.prod({x}, axis={axes})
    {new} = np.sort({f}, axis={axis})
    {new} = {f}[np.argsort({f}, axis=0, kind="stable")]
    {new} = np.take_along_axis({f}, np.argsort({f}, axis={axis}, kind="stable"), axis={axis})
    {new} = np.argmax({f}, axis={axis})
    {new} = np.median({f}, axis={axis})
    {new} = np.any({x} > 0, axis={axes})
    {new} = np.count_nonzero({x}, axis={axes})
    {new} = np.trace({x})
    {new} = np.maximum.accumulate({f}, axis={axis})
    {new} = np.add.reduce({x}, axis={axis})
    {new} = np.multiply.reduce({x}, axis={axis})
    {new} = np.add.outer({x}, {y})
    {new} = np.average({x}, axis={axis})
    {new} = np.nansum(np.where({m}, {x}, np.nan), axis={axes})
    {new} = np.searchsorted(np.sort({f}.ravel()), 0.3)
    {new} = np.convolve({f}.ravel(), {f}.ravel()[:3], {mode})
    {new} = np.partition({f}, 0, axis={axis})
    {new} = np.bincount(np.abs({idx}.ravel()), minlength=3)
    {new} = np.cross({f}[..., :3], {f}[..., :3])
    {new} = sum({x})
    {new} = max({s}, {s})
    {new} = np.trapezoid({x}, axis={axis})
    {new} = np.gradient({f}, axis={axis})
    {new} = np.percentile({f}, 30, axis={axis})
    {new} = np.cov({f})
"""
SMOOTH_REDUCTIONS = """
    {new} = np.std({f}, axis={axes})
    {new} = np.var({x}, axis={axes}, keepdims={bool})
    {new} = np.linalg.norm({x})
    {new} = np.linalg.norm({x}, axis={axis}, keepdims={bool})
    {new} = np.log(np.sum(np.exp({f} - np.max({f})), axis={axes}))
    {new} = np.linalg.norm({f}, 1)
    {new} = {x} - np.mean({x}, axis={axis}, keepdims=True)
    {new} = np.linalg.solve(({f}[..., None] * {f}) / 20 + 2 * np.eye({f}.shape[-1]), {f})
    {new} = np.linalg.inv({x} / 20 + 2 * np.eye({x}.shape[-1]))
    {new} = np.linalg.det({x} / 4 + np.eye({x}.shape[-1]))
    {new} = np.logaddexp.reduce({f}, axis={axis})
    {new} = np.fft.fft({x}, axis={axis})
    {new} = np.fft.rfft({f}, axis={axis}).real
"""
PRODUCTS = """
    {new} = {x} @ {y}
    {new} = {x} @ {x}.T
    {new} = np.dot({x}, {x}.T)
    {new} = np.dot({x}, {y})
    {new} = np.outer({x}, {y})
    {new} = np.inner({x}, {x})
    {new} = np.vdot({x}, {same})
    {new} = np.einsum("i...,i...->...", {x}, {same})
    {new} = np.einsum("...i->...", {x})
    {new} = np.einsum("ij,kj->ik", {x}, {x})
    {new} = np.einsum("ii->i", {x})
    {new} = np.einsum("ij->ji", {x})
    {new} = np.einsum("i,j->ij", {x}, {x})
    {new} = np.tensordot({x}, {same}, axes={tda})
    {new} = np.kron({x}, {n} * np.ones(2))
    {new} = np.matmul({x}[None], {x}.T)
    {new} = np.linalg.matrix_power({x} * 0.5, 2)
    {new} = np.vecdot({x}, {same})
"""
SHAPES = """
    {new} = {x}[{i}]
    {new} = {x}[{i}]
    {new} = {x}[{i}]
    {new} = {x}[{view}]
    {new} = {x}.reshape({shape})
    {new} = np.reshape({x}, {shape}, order={cf})
    {new} = {x}.ravel({cf})
    {new} = {x}.flatten()
    {new} = {x}.T
    {new} = np.transpose({x}, {order})
    {new} = np.swapaxes({x}, {axis}, {axis})
    {new} = np.moveaxis({x}, {axis}, 0)
    {new} = {x}[..., None]
    {new} = np.expand_dims({x}, {axis})
    {new} = np.squeeze({x})
    {new} = np.concatenate([{x}, {same}], axis={axis})
    {new} = np.concatenate([{x}, {x}[:1]])
    {new} = np.stack([{x}, {same}], axis={axis})
    {new} = np.stack([{e}, {e}, {e}])
    {new} = np.hstack([{x}, {same}])
    {new} = np.vstack([{x}, {y}])
    {new} = np.append({x}, {y})
    {new} = np.flip({x}, axis={axes})
    {new} = np.roll({x}, {k}, axis={axes})
    {new} = np.rot90({x})
    {new} = np.tile({x}, 2)
    {new} = np.repeat({x}, 2, axis={axes})
    {new} = np.broadcast_to({x}, np.broadcast_shapes(np.shape({x}), np.shape({y})))
    {new} = np.pad({x}, 1)
    {new} = np.pad({x}, 1, mode={padding})
    {new} = np.diagonal({x})
    {new} = np.diag({x})
    {new} = np.tril({x})
    {new} = np.triu({x}, 1)
    {new} = np.split({x}, 2, axis={axis})[1]
    {new} = np.array_split({x}, 2)[0]
    {new} = np.atleast_2d({x})
    {new} = np.take({x}, [0, -1, 0], axis={axis})
    {new} = np.take({x}, {k})
    {new} = np.delete({x}, 0, axis={axis})
    {new} = np.insert({x}, 1, {e})
    {new} = np.meshgrid({f}, {f})[0]
    {new} = np.compress([True, False, True], {x}, axis={axis})
    {new} = {x}[{m}]
    {new} = np.extract({m}, {x})
    {new} = {x}[np.nonzero({x})]
    {new} = np.choose([0, 1, 0], [{x}, {same}])
    {new} = np.unique({f})
    {new} = np.lib.stride_tricks.sliding_window_view({x}, 2, axis=0)
    {new} = np.block([[{x}, {x}], [{x}, {x}]])
    {new} = np.dstack([{x}, {same}])
    {new} = np.column_stack([{x}, {same}])
    {new} = np.resize({x}, 5)
    {new} = np.trim_zeros({f})
    {new} = np.vander({f}, 3)
    {new} = np.ascontiguousarray({x}.T)
    {new} = np.copy({x})
"""
CASTS = """
    {new} = {x}.astype({dtype})
    {new} = {f}.astype(np.float32) * {y}
    {new} = {x}.astype(np.float32)
    {new} = {f}.astype(int)
    {new} = np.asarray({x})
    {new} = {x} + 0j
    {new} = {x} * (1 + 2j)
    {new} = np.zeros_like({x})
    {new} = np.ones_like({x}) * {y}
    {new} = np.full_like({x}, 2)
    {new} = np.arange({x}.size).reshape({x}.shape) * {x}
    {new} = {x} * {ones}
    {new} = {ones} + {x}
    {new} = {x} @ np.eye({x}.shape[-1])
    {new} = {live} * W
    {new} = {live} + V[:1]
    {new} = W @ {live}
    {new} = {live} - state.w
    {new} = (W * {live}).sum()
    {new} = h({x})
    {new} = g({x}, {y})
    {new} = (lambda v: v * {x})({y})
    {new} = [{x}, {y}][{k}]
    {new} = {x}.dtype.type(2) * {x}
    {new} = len({x}) * {x}
    {new} = {x} if {x}.ndim > 1 else {x} + 1
    {new} = {x}.sum() if {e} {cmp} {e} else {x}.max()
    {new} = {x} * int({e})
    {new} = {x}[int(abs({e})) % {x}.shape[0]]
    {new} = np.array([v * v for v in {f}.ravel().tolist()])
    {new} = np.stack([v * {y} for v in {x}])
    {new} = np.arange({x}.size) + {e}
    {new} = np.linspace({e}, {e}, 3)
    {new} = np.array([{e}, {e}])
    {new} = np.apply_along_axis(lambda v: v - v[0], {axis}, {x})
"""
COMPOUND = """
    i = 0 ==> for i in range(3):|    {body}
    i = 1 ==> for i in range(3):|    {body}|    if {e} > 1:|        break
    i = 1 ==> for i in (2, 0, 1):|    if i == 2 and {e} > 0:|        continue|    {body}
    pass ==> if {e} {cmp} {e}:|    {body}
    pass ==> if np.sum({f}) > 0:|    {body}
    pass ==> if {e} < {e}:|    {body}|else:|    {b} = {b} * 2
    pass ==> if np.any({x} > 1) or {e} > 0:|    {body}
    {new} = 3 ==> {it} = 3|while {it} > 0:|    {it} -= 1|    {body}
    {new} = 1.0 ==> {it} = 1.0|while {it} < 4 and {e} < 9:|    {it} = {it} * 2|    {body}
    row = {x}[0] ==> for row in {x}:|    {body}
    j, row = 0, {x}[0] ==> for j, row in enumerate({x}):|    {body}
    pass ==> try:|    {body}|    {b}[99]|except IndexError:|    {b} = {b} + 1
"""
REBINDING = """
    {b} = {x} {op} {y}
    {b} = {b} {op} {y}
    {b} = {x} * 0.5
    {b} = np.where({m}, {x}, {y})
"""
PRELUDE = """
    W = {array3}
    V = {array2}
    class state:|    w = {array3}
    def h(v):|    return v * v - 1
    def h(v):|    return np.sum(v, axis=0) + v[0]
    def h(v):|    if np.ndim(v) and np.size(v):|        return v[::-1] * 2|    return v + 1
    def g(a, b):|    return np.maximum(a, b) - a * b
    def g(a, b=2.0):|    c = a - b|    for k in range(2):|        c = c * a + k|    return c
"""

KINDS = {
    "pure": [
        table(0.22, ELEMENTWISE, SMOOTH), table(0.12, REDUCTIONS, SMOOTH_REDUCTIONS), table(0.08, PRODUCTS),
        table(0.14, SHAPES), table(0.08, CASTS), table(0.06, COMPOUND), table(0.06, REBINDING),
        table(0.24, functions.EXACT, functions.SMOOTH),
    ],
    "imperative": [
        table(0.12, ELEMENTWISE, SMOOTH), table(0.05, REDUCTIONS), table(0.03, CASTS), table(0.02, PRODUCTS),
        table(0.14, writes.BUFFERS), table(0.12, writes.VIEWS), table(0.20, writes.ITEMS),
        table(0.10, writes.AUGMENTED),
        table(0.08, writes.FUNCTIONS), table(0.05, writes.HELPED), table(0.09, COMPOUND + writes.COMPOUND),
    ],
    "scratch": [
        table(0.25, ELEMENTWISE, SMOOTH), table(0.1, REDUCTIONS), table(0.1, SHAPES), table(0.15, writes.SCRATCH),
        table(0.25, writes.REFILLS), table(0.15, COMPOUND),
    ],
}  # fmt: skip
PRELUDES = {kind: table(1, PRELUDE + (writes.PRELUDE if kind == "imperative" else "")).exact for kind in KINDS}
