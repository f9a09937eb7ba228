"""Templates of statements that write into arrays: buffers, views, item assignment, augmented assignment, out=."""

BUFFERS = """
    {new} = np.zeros({size})
    {new} = np.zeros({size}, dtype={dtype})
    {new} = np.ones({size})
    {new} = np.full({size}, 0.5)
    {new} = np.zeros_like({x})
    {new} = np.ones_like({x})
    {new} = np.zeros({size}, order="F")
    {new} = np.full_like({x}, 3)
    {new} = np.empty_like({x}); {it}[...] = {v}
    {new} = np.empty(3); {it}[:] = {e}
    {new} = {x}.copy()
    {new} = np.copy({x})
    {new} = np.array({x})
    {new} = np.arange(4.0)
    {new} = np.arange(3)
    {new} = np.eye(3)
    {new} = np.array([1.0, 2.0, 3.0])
    {new} = np.array([{e}, 0.0, {e}])
    {new} = np.array([[{e}, 1.0], [0.0, {e}]])
    {new} = np.linspace(0, 1, 4)
    {new} = np.ones(3) * 2
    {new} = np.floor({f})
    {new} = +{x}
    {new} = {x}.astype({floating})
    {new} = np.ascontiguousarray({x})
    {new} = np.zeros((2, 3)).T
    {new} = np.ndarray({size}); {it}.fill(1.5)
    {new} = [{x}, {x}]
    {new} = dict(a={x}, b={x})
"""
VIEWS = """
    {new} = {w}[{view}]
    {new} = {w}[{view}]
    {new} = {w}[{view}]
    {new} = {w}.reshape({shape})
    {new} = {w}.reshape({shape}, order={cf})
    {new} = {w}.ravel()
    {new} = {w}.ravel({cf})
    {new} = {w}.T
    {new} = {w}.T.ravel()
    {new} = {w}.T.reshape({shape})
    {new} = np.swapaxes({w}, {axis}, {axis})
    {new} = np.moveaxis({w}, {axis}, 0)
    {new} = np.squeeze({w})
    {new} = {w}[..., None]
    {new} = np.expand_dims({w}, 0)
    {new} = np.flip({w}, {axis})
    {new} = np.rot90({w})
    {new} = np.diagonal({w})
    {new} = np.broadcast_to({w}, (2, *np.shape({w})))
    {new} = np.split({w}, 2, axis={axis})[1]
    {new} = np.array_split({w}, 2)[0]
    {new} = np.atleast_1d({w})
    {new} = np.atleast_2d({w})
    {new} = np.asarray({w})
    {new} = np.asanyarray({w})
    {new} = np.ascontiguousarray({w})
    {new} = {w}.astype({w}.dtype, copy=False)
    {new} = {w}.real
    {new} = {w}.imag
    {new} = np.real({w})
    {new} = np.nan_to_num({w}, copy=False)
    {new} = np.einsum("ii->i", {w})
    {new} = np.einsum("ij->ji", {w})
    {new} = {w}.view()
    {new} = {w}
    {new} = {w}.flatten()
    {new} = np.reshape({w}, -1)
    {new} = np.transpose({w}, {order})
    {new} = list({w})[0]
    {new} = {w}[{i}]
"""
ITEMS = """
    {p} = {v}
    {p} = {v}
    {p} = {v}
    {p} = {v}
    {p} += {v}
    {p} *= {v}
    {p} -= {v}
    {p} /= 2
    {p} **= 2
    {p} = {e}
    {p} = {e} * {e}
    {p} = [{e}, {e}, 1.0]
    {w}[{m}] = {n}
    {w}[{m}] *= {n}
    {w}[{m}] = {w}[{m}] + 1
    {w}[...] = {v}
    {w}[:] = {v}
    {w}[1:] = {w}[:-1]
    {w}[1:] += {w}[:-1]
    {w}[:-1] *= {w}[1:]
    {w}[::-1] = {w}
    {w}[0], {w}[1] = {w}[1], {w}[0]
    {w}[[0, 1]] = {w}[[1, 0]]
    {w}[[0, 0, 1]] += {n}
    {w}[:, 0] = {w}[0]
    {w}[..., -1] = {v}
    {w}.flat[0] = {e}
    {w}.flat[1:3] = {e}
    {w}.T[0] = {v}
    {w}.ravel()[0] = {e}
    {w}.reshape(-1)[1:] *= {n}
    {w}[1:][0] = {v}
    {w}[::2][...] = {n}
    {w}.real = {v}
    {w}.imag[0] = {e}
    {w}[0][...] = {n}
    np.diagonal({w})[0] = {e}
"""
AUGMENTED = """
    {w} += {v}
    {w} += {y}
    {w} -= {y}
    {w} *= {y}
    {w} *= {n}
    {w} /= 2
    {w} **= 2
    {w} += {w}
    {w} *= {w}[::-1]
    {w} -= {w}[0]
    {w} += {x}
    {w} //= 0.5
    {w} %= 0.75
    {w} @= {w}
    {w} += 1j
    {w} += 0.5
    {w} |= {m}
"""
FUNCTIONS = """
    np.add({w}, {v}, out={w})
    np.multiply({x}, {y}, out={w})
    np.sin({x}, out={w})
    {new} = np.exp({w} * 0.25, out={w})
    np.maximum({w}, 0.25, out={w})
    np.negative({w}, out={w}, where={m})
    np.add({x}, {y}, {w})
    np.cumsum({w}, out={w}.reshape(-1))
    np.sum({x}, axis=0, out={w})
    np.matmul({x}, {y}, out={w})
    np.dot({x}, {y}, out={w})
    np.clip({w}, -0.5, 0.5, out={w})
    {w}.clip(-0.5, 0.5, out={w})
    np.einsum("i...->...", {x}, out={w})
    np.concatenate([{x}, {same}], out={w})
    np.copyto({w}, {v})
    np.copyto({w}, {y}, where={m})
    np.put({w}, [0, -1], {n})
    np.put({w}, [0], {e})
    {w}.put([0, 1], {n})
    np.putmask({w}, {m}, {n})
    np.place({w}, {m}, [{n}])
    np.put_along_axis({w}, np.argmax({w}, axis={axis}, keepdims=True), {n}, axis={axis})
    np.fill_diagonal({w}, {e})
    np.fill_diagonal({w}, {n})
    np.add.at({w}, [0, 0, 1], {n})
    np.add.at({w}, [0, 0], {e})
    np.multiply.at({w}, [0, 1], {e})
    np.negative.at({w}, [0])
    {w}.sort()
    {w}.sort(axis=0)
    {w}.fill({e})
    {w}.fill({n})
    {w}.partition(0)
    {w}[...] = np.sort({w}, axis=0)
    np.nan_to_num({w}, copy=False)
    np.real({w})[...] = {n}
    np.multiply({w}[1:], {w}[:-1], out={w}[1:])
"""
HELPED = """
    scale_({w})
    scale_({w}[{view}])
    fill_({w}, {v})
    fill_({p}, {v})
    swap_({w})
    {new} = norm_({w})
    {new} = norm_({w}.copy())
    tail({w})[...] = {n}
    {new} = history({e})
    {new} = (lambda v: fill_(v, {e}))({w})
    W[...] = {v}
    W += 1
    state.w[0] = {e}
    {w}.__setitem__(0, {e})
    {w}[...].__imul__({n})
"""
COMPOUND = """
    row = {w}[0] ==> for row in {w}:|    {body}
    row = {w}[0] ==> for row in {w}:|    row += 1|    {body}
    row = {w}[0] ==> for row in {w}:|    row[...] = row * {e}
    i = 1 ==> for i in range(1, len({w})):|    {w}[i] = {w}[i - 1] * {n} + {w}[i]
    i = 1 ==> for i in range(len({w})):|    {w}[i] = {e} * i|    {body}
    i = 1 ==> for i in range(2):|    {p} = {v}|    {body}
    each = {w} ==> for each in [{w}, {w}]:|    each *= {n}
    each = {w} ==> for each in (d for d in ({w}, {w})):|    each[0] = {e}
"""
SCRATCH = """
    {buf} = np.ones(np.shape({x}))
    {buf} = np.zeros(np.shape({x}), bool)
    {buf} = np.arange(np.size({x}))
    {buf} = np.ones({size})
    {buf} = np.array([True, False, True])
    {buf} = np.array([0, 2, 1])
    {buf} = np.eye(3)
"""
REFILLS = """
    {plain} *= -1
    {plain} += 1
    {plain}[...] = 0
    {plain}[0] = 1
    {plain}[-1] = {n}
    {plain}[:] = {plain}[::-1].copy()
    np.logical_not({plain}, out={plain})
    {plain}[1:] = {plain}[:-1].copy()
    {plain}.fill(1)
    {plain}.sort()
    np.copyto({plain}, 1)
    {plain}[...] = np.roll({plain}, 1)
    {new} = {x} * {plain}
    {new} = np.where({plainmask}, {x}, 0)
    {new} = np.where({plain} > 0, {x}, {y})
    {new} = {x}[{plainints}]
    {new} = {x}[{plainmask}]
    {new} = {x} @ {plain}
    {new} = np.sum({x} * {plain}) + {y}
"""
PRELUDE = """
    def scale_(v):|    v *= 0.5
    def fill_(v, a):|    v[...] = a
    def fill_(v, a):|    np.copyto(v, a)
    def swap_(v):|    v[0], v[-1] = v[-1], v[0]
    def swap_(v):|    first = v[0].copy()|    v[0] = v[-1]|    v[-1] = first
    def norm_(v):|    v /= np.sqrt(np.sum(v * v) + 1)|    return v
    def tail(v):|    return v[1:]
    def history(a):|    b = np.zeros(4)|    for k in range(4):|        b[k] = b[k - 1] * 0.5 + a|    return b
"""
