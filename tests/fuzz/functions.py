"""Templates of rarer functions, of methods, and of what Python does with arrays."""

EXACT = """
    {new} = np.nanmax(np.where({m}, {x}, np.nan), axis={axes})
    {new} = np.nancumsum(np.where({m}, {f}, np.nan), axis={axis})
    {new} = np.nanmean(np.where({m}, {x}, np.nan), axis={axes}, keepdims={bool})
    {new} = np.nanprod(np.where({m}, {f}, np.nan), axis={axes})
    {new} = np.nanmedian(np.where({m}, {f}, np.nan), axis={axes})
    {new} = np.nanargmax({f}, axis={axis})
    {new} = np.polyval({f}.ravel(), {e})
    {new} = np.polyval([1, -2, 0.5], {x})
    {new} = np.polyder({f}.ravel())
    {new} = np.polyint({f}.ravel())
    {new} = np.polyadd({f}.ravel(), {f}.ravel())
    {new} = np.polymul({f}.ravel()[:3], {f}.ravel())
    {new} = np.correlate({x}.ravel(), {x}.ravel()[:2], {mode})
    {new} = np.histogram({f}, bins=3, range=(-2, 2), weights={same})[0]
    {new} = np.digitize({f}, [-1.0, 0.0, 1.0])
    {new} = np.bincount(np.array([0, 1, 1]), weights={f}[:3], minlength=4)
    {new} = np.ediff1d({x}, to_end={e})
    {new} = np.quantile({f}, [0.25, 0.5], axis={axes})
    {new} = np.quantile({f}, 0.4, method="nearest")
    {new} = np.lexsort([{f}[::-1], {f}])
    {new} = {f}[np.argpartition({f}, 1)[:1]]
    {new} = np.unique({f}, return_inverse=True)[1]
    {new} = np.setdiff1d({f}, {f}[:1])
    {new} = np.union1d({f}, {f})
    {new} = np.isin({x}, {x}[:1])
    {new} = np.tri({f}.shape[-1]) * {f}
    {new} = {x}[np.ix_([0, -1], [1, 0])]
    {new} = {x}[np.triu_indices({x}.shape[0])]
    {new} = {x}[np.tril_indices_from({x})]
    {new} = {x}[np.unravel_index(1, {x}.shape)]
    {new} = np.apply_over_axes(np.sum, {x}, [0])
    {new} = np.broadcast_arrays({x}, {y})[0]
    {new} = np.add.reduceat({x}, [0, 1], axis={axis})
    {new} = np.multiply.outer({x}, {x})
    {new} = np.subtract.accumulate({x}, axis={axis})
    {new} = np.add.accumulate({x}, axis={axis}, dtype={floating})
    {new} = np.minimum.reduce({f}, axis={axes}, keepdims={bool}, initial=0.5)
    {new} = np.logical_xor({x} > 0, {y} > 0)
    {new} = np.equal({x}, {y}) | np.less({f}, 0)
    {new} = np.ldexp({f}, 2)
    {new} = np.frexp({f})[0]
    {new} = np.modf({f})[0]
    {new} = np.modf({f})[1]
    {new} = np.signbit({f}) * {f}
    {new} = np.spacing({f}) * 0
    {new} = np.round({x}, 1)
    {new} = np.around({f})
    {new} = np.fix({f})
    {new} = np.ceil({f}) * {f}
    {new} = np.unwrap({f} * 3)
    {new} = np.absolute({x}, dtype={floating})
    {new} = np.add({x}, {y}, dtype={dtype})
    {new} = np.multiply({x}, {y}, dtype=np.float32, casting="same_kind")
    {new} = np.require({x}, dtype=float)
    {new} = np.asarray({x}, dtype={floating})
    {new} = np.array({x}, ndmin=3)
    {new} = np.asfortranarray({x})
    {new} = {x}; {it} = np.lib.stride_tricks.as_strided({it}, {it}.shape[:1], {it}.strides[:1])
    {new} = np.shape({x})[0] * {x}
    {new} = np.iscomplexobj({x}) * {x}
    {new} = np.isclose({x}, {y})
    {new} = np.array_equal({x}, {y}) + {x}
    {new} = np.allclose({x}, {x}) * {y}
    {new} = np.isrealobj({x})
    {new} = np.argwhere({x} > 0)
    {new} = np.flatnonzero({x})
    {new} = np.fliplr({x})
    {new} = np.flipud({x})
    {new} = np.rollaxis({x}, {axis})
    {new} = np.matrix_transpose({x})
    {new} = np.permute_dims({x}, {order})
    {new} = np.concat([{x}, {same}], axis={axis})
    {new} = np.concatenate([{x}, {same}], axis=None, dtype={floating})
    {new} = np.stack([{x}, {same}], dtype={floating})
    {new} = np.unstack({x})[0]
    {new} = np.cumulative_sum({x}, axis={axis}, include_initial={bool})
    {new} = np.array_split({x}, [1], axis={axis})[0]
    {new} = np.insert({x}, [0, 1], {e}, axis={axis})
    {new} = np.delete({x}, [0], axis={axis})
    {new} = np.roll({x}, (1, -1), axis=(0, 1))
    {new} = np.pad({x}, ((1, 0),) * {x}.ndim, constant_values=2)
    {new} = np.pad({f}, 1, mode="linear_ramp")
    {new} = np.pad({f}, 1, mode="symmetric", reflect_type="odd")
    {new} = np.pad({f}, 2, mode="mean")
    {new} = np.repeat({x}, [1, 2, 0], axis={axis})
    {new} = np.where({m})[0]
    {new} = np.einsum("ij,jk,kl", {x}, {x}.T, {x})
    {new} = np.einsum({x}, [0, 1], [1, 0])
    {new} = np.einsum("i,i,i", {x}, {x}, {x})
    {new} = np.einsum("ij->i", {x})
    {new} = np.linalg.multi_dot([{x}, {x}.T, {x}])
    {new} = np.linalg.outer({x}, {x})
    {new} = np.linalg.trace({x})
    {new} = np.linalg.vecdot({x}, {same})
    {new} = np.matvec({x}, {x}[0])
    {new} = {x}.max()
    {new} = {f}.argmax({axis})
    {new} = {x}.mean({axes}, keepdims={bool})
    {new} = {x}.prod({axes})
    {new} = {x}.take([0, -1], {axis})
    {new} = {x}.repeat(2)
    {new} = {x}.diagonal()
    {new} = {x}.trace()
    {new} = {x}[{x}.nonzero()]
    {new} = {f}.round(1)
    {new} = {x}.dot({same})
    {new} = {x}.swapaxes(0, -1)
    {new} = {x}.squeeze()
    {new} = {x}.transpose()
    {new} = {x}.compress([True, True], {axis})
    {new} = {f}.argsort({axis})
    {new} = {x}.cumprod({axis})
    {new} = {x}.conjugate()
    {new} = {x}.any()
    {new} = {x}.item(0) * {y}
    {new} = {x}.flat[1]
    {new} = {x}.size * {x}
    {new} = {x}.mT
    {new} = {x}[()]
    {new} = {x}[True]
    {new} = {x}[None, True]
    {new} = {x}[[True, False, True]]
    {new} = {x}[np.array(1)]
    {new} = {x}[np.int64(0)]
    {new} = {x}[..., [0, -1]]
    {new} = {x}[[0, -1], ..., 0]
    {new} = {x}[:, None, [0]]
    {new} = {x}[[[0], [1]], [0, 1]]
    {new} = {x}[0] if len({x}) > 2 else {x}[-1]
    {new} = divmod({f}, 0.75)[1]
    {new} = pow({x}, 2)
    {new} = round({e}, 1)
    {new} = {x} + [1, 2, 3]
    {new} = (1, 2, 3) - {x}
    {new} = np.float32(2) * {x}
    {new} = {x} * np.int8(3)
    {new} = True * {x}
    {new} = {x} - True
    {new} = 2 ** {f}
    {new} = {x} ** -1.0
    {new} = {f} ** 0
    {new} = {x} ** 1
    {new} = {x} ** np.array([0, 1, 2])
    {new} = min({e}, {e})
    {new} = max([{e}, {e}, 0.5])
    {new} = sum(v for v in {x})
    {new} = sum([v * v for v in {x}], 1.0)
    {new} = sorted({f}.ravel(), key=lambda v: -v)[0]
    {new} = list(reversed({x}))[0]
    {new} = [a * b for a, b in zip({x}, {same})][-1]
    b0, *b1 = {x}; {new} = b0 * 2
    {new} = {e} if {e} in (0.5, 1.0) else {e} * 2
    {new} = ({e} > 0) and {e}
    {new} = ({e} or 2.0) * {x}
    {new} = not ({e} > 0)
    {new} = (lambda *a, **k: a[0] * k["s"])({x}, s={y})
    {new} = __import__("functools").reduce(np.add, list({x}))
    {new} = __import__("functools").reduce(lambda a, b: a * b, {x})
    {new} = __import__("copy").deepcopy({x}) * 2
    {new} = dict(a={x}, b={y})["a"] * 2
    {new} = {x} if {x} is not None else {y}
    {new} = hash(str({x}.shape)) * 0 + {x}
    {new} = int({e} * 2) + {x}
    {new} = [{x}[i] for i in range(len({x}))][-1]
    {new} = np.stack([np.roll({x}, k) for k in range(2)])
    {new} = np.array([{x}[0], {x}[-1]])
    {new} = np.r_[{x}, {e}]
    {new} = np.c_[{x}, {x}]
    {new} = np.mgrid[0:2] * {e}
    {new} = np.vectorize(lambda v: v * v)({f})
    {new} = np.fromiter((v for v in {f}.ravel()), float)
"""
SMOOTH = """
    {new} = np.linalg.eigvalsh({f} + {f}.T)
    {new} = np.linalg.eigh({f} + {f}.T)[0]
    {new} = np.linalg.svd({f}, compute_uv=False)[..., :1]
    {new} = np.linalg.cholesky({f} @ {f}.T + np.eye({f}.shape[0]))
    {new} = np.linalg.qr({f})[1]
    {new} = np.linalg.lstsq({f}, {f}[:, 0], rcond=None)[0]
    {new} = np.linalg.pinv({f})
    {new} = np.linalg.slogdet({f} + 3 * np.eye({f}.shape[-1]))[1]
    {new} = np.linalg.norm({f}, axis={axis}, ord=3)
    {new} = np.linalg.norm({f}, "nuc")
    {new} = np.linalg.norm({x}, np.inf)
    {new} = np.linalg.matrix_norm({x})
    {new} = np.linalg.vector_norm({x}, axis={axes}, keepdims={bool})
    {new} = np.linalg.cond({f} + 3 * np.eye({f}.shape[-1]))
    {new} = np.linalg.tensorsolve(3 * np.eye({f}.size).reshape({f}.shape * 2), {f})
    {new} = np.linalg.eigvals({f} + np.diag([0.0, 5.0, 11.0])).real
    {new} = np.fft.ifft({x}, axis={axis})
    {new} = np.fft.rfft({f}, n=5)
    {new} = np.fft.irfft({x})
    {new} = np.fft.fft2({x})
    {new} = np.fft.fftshift({x})
    {new} = np.abs(np.fft.fftn({x}))
    {new} = np.fft.hfft({x})
    {new} = np.corrcoef({f})
    {new} = np.cov({f}, ddof=0)
    {new} = np.cov({f}, {same})
    {new} = np.std({x}, axis={axis}, ddof=1)
    {new} = np.nanstd(np.where({m}, {f}, np.nan), axis={axes})
    {new} = np.average({f}, axis={axis}, weights=np.exp({f} * 0.1))
    {new} = np.i0({f})
    {new} = np.logaddexp2({f}, {f})
    {new} = np.exp2({f} * 0.5)
    {new} = np.log2({f}**2 + 1)
    {new} = np.log10(np.abs({f}) + 1)
    {new} = np.arcsinh({x})
    {new} = np.arccosh({f}**2 + 1.5)
    {new} = np.arctanh(np.tanh({f}) * 0.9)
    {new} = np.arccos(np.sin({f}) * 0.9)
    {new} = np.tan({f} * 0.5)
    {new} = np.cosh({x} * 0.5)
    {new} = np.degrees({f})
    {new} = np.emath.sqrt({f})
    {new} = np.emath.log({f} - 3)
    {new} = np.float_power({f}**2 + 0.5, {y} * 0.5)
    {new} = np.polyfit(np.arange({f}.size), {f}.ravel(), 1)
    {new} = np.geomspace(abs({e}) + 0.5, 3.0, 3)
    {new} = np.logspace({e}, 0.5, 3)
    {new} = np.interp({e}, np.sort({f}.ravel()), {f}.ravel())
    {new} = np.interp({f}, np.arange(3), np.sin({f}.ravel()[:3]))
    {new} = np.gradient({f}, 0.5, axis={axis}, edge_order=2)
    {new} = np.trapezoid({f}, x=np.cumsum(np.exp({f}), axis=-1))
    {new} = np.hypot.reduce({f}, axis={axis})
    {new} = np.roots({f}.ravel()[:3] + [3, 1, -4]).real
    {new} = {f}.std()
    {new} = {f}.var({axis})
    {new} = np.piecewise({f}, [{f} < 0, {f} >= 0], [np.sin, np.cos])
    {new} = np.blackman(3) * {f}
    {new} = np.quantile({f}, abs(np.tanh({e})))
    {new} = np.sqrt({x} * {x} + 1) / (1 + {x} * {x})
"""
