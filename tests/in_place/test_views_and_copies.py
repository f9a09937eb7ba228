"""Which results are views: a traced array shares memory with what NumPy's would, and with nothing else."""

import numpy as np
import pytest
from numpy_versions import BEFORE_2_4

import fad
from fad.errors import FadError

EXPRESSIONS = """
    np.sum(x) | np.sum(x,axis=()) | np.sum(x,axis=0) | np.sum(x,0,keepdims=True) | np.mean(x) |
    np.mean(x,axis=()) | np.prod(x) | np.max(x) | np.min(x,axis=()) | np.max(x,axis=()) | np.cumsum(x) |
    np.cumsum(x,0) | np.cumprod(x) | np.sort(x) | np.sort(x,axis=None) | np.partition(x,0) | np.flip(x) |
    np.flip(x,()) | np.fliplr(x) | np.flipud(x) | np.roll(x,0) | np.roll(x,1) | np.rot90(x) | np.rot90(x,0) |
    np.rot90(x,4) | np.transpose(x) | x.T | x.transpose() | np.swapaxes(x,0,0) | np.moveaxis(x,0,0) |
    np.rollaxis(x,0) | np.squeeze(x) | np.expand_dims(x,0) | np.ravel(x) | x.flatten() | x.ravel() |
    np.reshape(x,x.shape) | np.reshape(x,-1) | np.atleast_1d(x) | np.atleast_2d(x) | np.atleast_3d(x) |
    np.array(x) | np.array(x,copy=False) | np.array(x,copy=None) | np.array(x,ndmin=2) |
    np.array(x,ndmin=2,copy=None) | np.asarray(x) | np.asanyarray(x) | np.ascontiguousarray(x) |
    np.asfortranarray(x) | np.asarray_chkfinite(x) | np.require(x) | np.copy(x) | x.copy() | x.view() |
    x.astype(float) | x.astype(float,copy=False) | np.asarray(x,dtype=float) | np.asarray(x,float) |
    np.array(x,dtype=float,copy=None) | np.real(x) | x.real | np.imag(x) | np.real_if_close(x) | x.conj() |
    np.conj(x) | x.conjugate() | +x | np.positive(x) | abs(x) | np.fabs(x) | x*1 | x+0 | x**1 | x/1 |
    np.power(x,1) | np.clip(x,None,9) | np.clip(x,-9,9) | np.clip(x,None,None) | x.clip(-9) | np.round(x) |
    np.round(x,3) | x.round(2) | np.around(x) | np.rint(x) | np.nan_to_num(x) | np.nan_to_num(x,copy=False) |
    np.where(True,x,0) | np.where(x==x,x,0) | np.broadcast_to(x,x.shape) | np.broadcast_to(x,(2,)+x.shape) |
    np.broadcast_arrays(x,x)[0] | np.concatenate([x]) | np.concatenate([x,x]) | np.concatenate([x],axis=None) |
    np.stack([x]) | np.stack([x])[0] | np.hstack([x]) | np.vstack([x]) | np.dstack([x]) | np.column_stack([x]) |
    np.block([x]) | np.block(x) | np.append(x,[]) | np.append(x,np.zeros(0)) | np.split(x,1)[0] |
    np.array_split(x,1)[0] | np.hsplit(x,1)[0] | np.vsplit(x,1)[0] | np.tile(x,1) | np.tile(x,(1,1)) |
    np.repeat(x,1) | np.repeat(x,1,axis=0) | np.take(x,[0]) | np.take(x,0) | np.take(x,slice(None)) |
    np.pad(x,0) | np.insert(x,0,[]) | np.delete(x,[]) | np.delete(x,[],0) | np.resize(x,x.shape) |
    np.resize(x,x.size) | np.trim_zeros(x) | np.unique(x) | np.diff(x,n=0) | np.diff(x) | np.ediff1d(x) |
    np.gradient(x) | np.convolve(x,[1.]) | np.dot(x,1.) | np.dot(x,x) | np.multiply(x,1) | np.matmul(x,x) |
    np.vdot(x,x) | np.inner(x,1.) | np.kron(x,1.) | np.tensordot(x,1.,0) | np.einsum('...->...',x) |
    np.einsum('i->i',x) | np.einsum('ij->ij',x) | np.einsum('ij->ji',x) | np.einsum('ii->i',x) |
    np.einsum('i->',x) | np.diagonal(x) | np.diag(x) | np.diag(x).copy() | np.tril(x,9) | np.triu(x,-9) |
    np.triu(x) | np.maximum(x,x) | np.maximum(x,-99) | np.fmax(x,x) | np.minimum(x,99) | np.hypot(x,0) |
    np.average(x) | np.average(x,axis=()) | np.nansum(x) | np.nanmax(x) | np.nanmean(x) | np.nanmedian(x) |
    np.nancumsum(x) | np.add.reduce(x) | np.add.reduce(x,axis=()) | np.add.reduce(x,axis=None) |
    np.add.accumulate(x) | np.multiply.reduce(x,axis=()) | np.maximum.reduce(x) | np.maximum.reduce(x,axis=None)
    | np.add.reduceat(x,[0]) | np.add.outer(x,0) | x[...] | x[:] | x[()] | x[0] | x[0,...] | x[0:1] | x[[0]] |
    x[x==x] | x[None] | x[...,None] | x[::-1] | x[-1] | x.sum() | x.mean() | x.max() | x.cumsum() | x.squeeze()
    | x.reshape(x.shape) | x.swapaxes(0,0) | x.diagonal() | x.repeat(1) | x.take([0]) | x.compress([True]) |
    x.dot(1.) | np.compress([True],x) | np.extract(x==x,x) | np.choose([0],[x]) | np.select([True],[x]) |
    np.select([x==x],[x]) | np.piecewise(x,[x==x],[lambda v:v]) | np.apply_over_axes(np.sum,x,[]) |
    np.meshgrid(x)[0] | np.meshgrid(x,copy=False)[0] | np.meshgrid(x,x)[0] | np.ix_(x)[0] | np.polyval(x,0.) |
    np.modf(x)[0] | np.copysign(x,x) | np.lib.stride_tricks.sliding_window_view(x,1) | np.matrix_transpose(x) |
    x.mT | np.permute_dims(x) | np.astype(x,float) | np.astype(x,float,copy=False) |
    np.linalg.matrix_transpose(x) | np.linalg.diagonal(x) | np.linalg.matrix_power(x,1) | np.unstack(x)[0] |
    list(x)[0] | np.cumulative_sum(x) | np.concat([x]) | np.nanmax(x,axis=()) | np.poly1d(x).coeffs |
    np.polymul(x,[1.]) | np.polynomial.polynomial.polyadd(x,[0.]) | np.polynomial.polynomial.polytrim(x) |
    np.sort_complex(x) | np.fix(x) | sum([x]) | sum(x) | x.flat[0] | x.flat[:] | x.flat.copy()
"""
if BEFORE_2_4:  # NumPy copied an array without axes
    EXPRESSIONS = EXPRESSIONS.replace("np.trim_zeros(x) |", "")
ARRAYS = [np.array(1.5), np.arange(1.0, 7.0)[::2], np.asfortranarray(np.arange(1.0, 7.0).reshape(2, 3)), np.eye(2)]


def writing(f, into):
    """Return the function that writes into its argument or into the result of f, and returns the other one."""

    def g(x):
        y = f(x)
        if into == "argument":
            x[...] = 77.0
            return y
        y[...] = 55.0
        return x

    return g


def again(x):
    """Return a copy that lies in memory as the array does."""
    y = np.empty(x.size * 2)[::2] if not x.flags.forc else np.empty_like(x)
    y[...] = x
    return y


@pytest.mark.parametrize("into", ["argument", "result"])
@pytest.mark.parametrize("text", [" ".join(e.split()) for e in EXPRESSIONS.split(" | ")])
def test_a_result_is_a_view_of_a_traced_array_where_it_is_one_in_numpy(text, into):
    f = eval("lambda x: " + text, {"np": np})
    g = writing(f, into)
    for x in ARRAYS:
        try:
            wanted = g(again(x))
        except Exception:  # NumPy has something against it
            continue
        if not isinstance(wanted, (np.ndarray, np.number)):
            continue
        for transform in (lambda g, x: fad.vjp(g, x)[0], lambda g, x: fad.jvp(g, (x,), (again(x),))[0]):
            try:
                got = transform(g, again(x))
            except FadError:
                continue
            np.testing.assert_array_equal(got, wanted, f"{text}, shape {x.shape}")


COPIES = {
    "np.array": lambda x: np.array(x),
    "np.copy": lambda x: np.copy(x),
    "np.asarray": lambda x: np.asarray(x, copy=True),
    "copy": lambda x: x.copy(),
    "astype": lambda x: x.astype(float),
}


@pytest.mark.parametrize("name", COPIES)
@pytest.mark.parametrize("x", [np.arange(10.0)[::2], np.arange(24.0).reshape(4, 6)[:, ::2].T], ids=["vector", "matrix"])
def test_copies_leave_out_the_gaps_between_elements(name, x):
    def f(x):
        a = COPIES[name](x)
        t = np.asfortranarray(a)  # the copy itself, as NumPy has laid it out, or another one
        t *= -2.0
        return a

    wanted = f(x)
    runs = [fad.jvp(f, (x,), (x,))[0], fad.vjp(f, x)[0], fad.vmap(f)(np.stack([x, x]))[0], fad.jit(f)(x)]
    for got in runs:
        np.testing.assert_array_equal(got, wanted)


VIEWS_OF_ONE_NUMBER = {
    "expand_dims": lambda a: np.expand_dims(a, 0),
    "reshape": lambda a: a.reshape(1),
    "ravel": np.ravel,
    "atleast_2d": np.atleast_2d,
    "a new axis": lambda a: a[None],
    "all of it": lambda a: a[...],
}


@pytest.mark.parametrize("view", VIEWS_OF_ONE_NUMBER.values(), ids=VIEWS_OF_ONE_NUMBER)
@pytest.mark.parametrize("batched", [fad.vmap, lambda f: fad.vmap(fad.grad(lambda x: f(x)[0] + np.sum(f(x)[1])))])
def test_views_of_an_array_without_axes_see_writes_in_every_example_of_a_batch(view, batched):
    def f(x):
        a = np.array(x * 2)
        b = view(a)
        b += x * x
        a[...] = a * 3
        return a * x, b * 1.0

    xs = np.array([0.5, -2.0])
    alone = fad.grad(lambda x: f(x)[0] + np.sum(f(x)[1])) if batched is not fad.vmap else f
    for k, x in enumerate(xs):
        for got, wanted in zip(fad.tree.leaves(batched(f)(xs)), fad.tree.leaves(alone(x)), strict=True):
            np.testing.assert_allclose(got[k], wanted)


ARRAYS_OF_ONE_NUMBER = {
    "copy": getattr(np, "copy"),  # noqa: B009  the name is looked up here, so no transform puts its own in its place
    "copy of an array": lambda x: np.array(x).copy(),
    "where": lambda x: np.where(x > 0, x, -x),
    "select": lambda x: np.select([x > 0], [x]),
    "vectorize": lambda x: np.vectorize(lambda v: v * 2)(x),
    "asarray": lambda x: np.asarray(x),
}
PUT = np.put


@pytest.mark.parametrize("make", ARRAYS_OF_ONE_NUMBER.values(), ids=ARRAYS_OF_ONE_NUMBER)
@pytest.mark.parametrize("transform", ["vjp", "jvp", "vmap", "jit"])
def test_where_numpy_makes_an_array_of_a_number_it_can_be_written(make, transform):
    def f(x):
        a = make(x * 2)
        kind = isinstance(a, np.ndarray)
        PUT(a, 0, x * 3)
        return a * 1.0, kind * 1.0

    x = np.float64(0.5)
    got = {
        "vjp": lambda: fad.vjp(f, x)[0],
        "jvp": lambda: fad.jvp(f, (x,), (x,))[0],
        "vmap": lambda: fad.tree.map(lambda y: y[1], fad.vmap(f)(np.array([2.0, 0.5]))),
        "jit": lambda: fad.jit(f)(x),
    }[transform]()
    assert got == f(x)
