"""One statement on an array does under every transform what it does in NumPy: the same error, the same arrays left."""

import warnings

import numpy as np
import pytest
from numpy_versions import BEFORE_2_4

import fad
from fad.core.handles.buffers import buffer
from fad.core.tracing.tracer import up_to_date
from fad.core.tracing.views import unwrap

X = np.array([1.1, 2.2, 0.7, 3.4])
STATEMENTS = """
np.broadcast_to(x,(2,4))[0]=1
np.diagonal(x.reshape(2,2))[0]=1
x[7]=1
x[:]=np.zeros(3)
x+=np.zeros((2,4))
x+=1j
x[0,0]=1
x[1.5]=1
x['a']=1
x[0][0]=1
x[np.array([True,False])]=1
np.add(x,x,out=b)
np.add(b,b,out=np.zeros(3,int))
np.sum(x,out=b)
b[[0,5]]=x[:2]
np.copyto(b,1j)
np.put(b,[9],x[0])
np.add.at(b,[0,9],x[0])
np.add.at(b,[0,9],x[:3])
np.multiply.at(b,[0,9],x[0])
x[[1,2,3]]=x[:2]
x[:,0]=1
x[None,None,5]=1
x[0]=x[:2]
x[0]=[x[1],x[2]]
x[[0]]=[x[1],x[2]]
x[...,7]=1
x.fill(x)
x.fill(x[:2])
x.fill([1,2])
x.sort(3)
x.partition(9)
np.fill_diagonal(x,1)
x.flat[9]=1
x.flat[9]=x[0]
x.flat[:]=[]
x.flat[[0,9]]=x[:2]
x.flat['a']=1
x.real=x[:2]
x.imag=1
np.copyto(x,x[:2])
np.copyto(b,x)
np.putmask(x,[True,False],1)
np.place(x,[True,False],1)
np.place(x,x>0,[])
np.put_along_axis(x,np.array([9]),1,0)
np.put_along_axis(x,np.array([[0]]),1,0)
np.put_along_axis(x,np.array([0.]),1,0)
np.sin(x,out=(x,x))
np.sin(x,out=None)
np.modf(x,out=(b,b))
np.divmod(x,2,out=(x,None))
np.frexp(x,out=(x,None))
np.cumsum(x,out=b)
np.matmul(x,x,out=b)
np.matmul(x.reshape(2,2),x.reshape(2,2),out=x)
np.matmul(x.reshape(2,2),x.reshape(2,2),out=x.reshape(2,2))
np.clip(x,0,1,out=b)
np.take(x,[0,1,2],out=b)
np.take(x,[0,1],out=b)
np.concatenate([x[:1],x[:2]],out=b)
np.concatenate([x[:1],x[:3]],out=b)
np.stack([x[:3]],out=b)
np.stack([x[:3]],out=b.reshape(1,3))
np.mean(x,out=b)
np.mean(x,out=b[0])
np.mean(x,out=b[0:1])
np.mean(x,out=b[0,...])
np.mean(x,keepdims=True,out=b[0:1])
np.add(x,1,out=x,where=x>1)
np.add(x,1,out=x,where=[True,False])
np.add(x,1,where=x>1,out=x)
np.add(x,1j,out=x)
np.add(x,1j,out=x,casting='unsafe')
np.equal(x,1,out=x)
np.greater(x,1,out=x)
np.floor(x,out=x)
np.add(x,x,out=x,dtype=np.float32)
x<<=1
x|=1
x**=-1
x//=0.3
x[x>1]=x[:1]
x[x>1]=x[:2]
x[x>1]=x[:3]
x[x>1]=x
x[x>1]=[1,2,3]
x[[True,False,True,False]]=[x[1],5]
x[(0,1)]=1
x[[0,1],]=x[2:]
x[np.array([0,1]),None]=5
x[[]]=1
x[[]]=[]
x[[]]=x[:0]
x[[]]=x[:2]
x[True]=5
x[False]=5
x[True,0]=5
x[np.array(True)]=x[::-1]
x[np.int64(1)]=x[0]
x[np.array(1)]=x[0]
x[np.array(1),...]=x[0]
x[1,...]=x[0]
x[...]=x[0]
x[()]=x[1]
x[:]=x[:1]
x[:]=x.reshape(1,4)
x[:]=x.reshape(1,1,4)
x[:]=x.reshape(4,1)
x[:2]=x.reshape(1,1,4)[:,:,:2]
x+=x.reshape(1,4)
x[:]=range(4)
x[:]=(1,2,3,4)
x[:]=[x[0],x[1],2,3]
x[:]='1'
x[:]='abc'
x[:]={}
x[:]={1,2}
x[0]={}
x[0]=None
x[:]=[None]*4
x[:]=True
x[:]=10**400
x[0]=10**400
x[:]=b'1'
x[0]=np.float32(2)
x[:]=np.arange(4,dtype=object)
x[:]=np.array(['1','2','3','4'])
x[:]=1+2j
x[0]=1+2j
x[:]=np.array(1+2j)
x[0]=np.complex128(1j)
x[0:2]=iter([1,2])
x[slice(None,None,-2)]=x[:2]
x[slice('a')]=1
x[1.0:2]=1
x[None]=x
x[None]=7
x[...,None]=x[:,None]
x[...,...]=1
x[object()]=1
x[[0.5]]=1
x[np.zeros(0)]=1
x[np.zeros(0,int)]=x[:0]
x[-5]=1
x[-4]=x[3]
x[5:]=x[:0]
x[5:]=x[:2]
x[5:]=3
x[2:1]=[]
x[0],x[1]=x[1],x[0]
x[:2],x[2:]=x[2:],x[:2]
np.add.at(x,[0,0],[1,2,3])
np.add.at(x,slice(1,3),x[0])
np.add.at(x,(np.array([0,0]),),x[:2])
np.add.at(x,[True,False,True,False],1)
np.add.at(x,0,x[1])
np.add.at(x,[0,0],1j)
np.add.at(x,...,x)
np.negative.at(x,[0,0])
np.sin.at(x,[0,0,1])
np.divide.at(x,[0,0,1],x[1])
np.maximum.at(x,[0,0,1],x[1:])
np.power.at(x,[[0,0],[1,2]],x[:2])
np.modf.at(x,0)
np.clip.at(x,0,0,1)
np.add.reduceat(x,[0,2],out=x[:2])
np.add.reduce(x,out=x[0,...])
np.add.accumulate(x,out=x)
np.multiply.outer(x[:2],x[:2],out=x.reshape(2,2))
np.add.reduce(x,out=b)
np.maximum.accumulate(x[::-1],out=x)
np.nan_to_num(x,copy=False)
np.put(x,[0,1],[5])
np.put(x,[0,1],[])
np.put(x,[0,1,2],x[:2])
np.put(x,0,x)
np.put(x,[9],1,mode='clip')
np.put(x,[-9],x[1],mode='wrap')
np.put(x.reshape(2,2).T,[1],x[3])
x.put([1],x[3])
np.putmask(x,x>1,x*2)
np.putmask(x,x>1,x[:2])
np.putmask(x,x>1,[1,2,3])
np.place(x,x>1,x[:2])
np.fill_diagonal(x.reshape(2,2),x[:2])
np.fill_diagonal(x.reshape(2,2),x)
np.fill_diagonal(x.reshape(2,2),x[0])
np.fill_diagonal(x.reshape(2,2).T,[x[0],1])
np.fill_diagonal(x.reshape(4,1),x[3],wrap=True)
np.fill_diagonal(x.reshape(1,4),x[3],wrap=True)
np.fill_diagonal(x.reshape(2,1,2),x[3])
x.sort()
x[::-1].sort()
x.sort(kind='stable')
x.reshape(2,2).sort(axis=0)
x.partition(2)
x.partition([0,2])
x.reshape(2,2).T.flat[1]=x[3]
x.reshape(2,2).T.flat[1:3]=x[3]
x.flat[x>1]=x[0]
x.flat=x[:2]
x.flat=x[0]
x.flat=range(4)
x.flat[1:]=[x[0],x[1]]
x.flat[[0,0]]=x[1:3]
x.flat[-1]=x[0]
x.flat[...]=x[0]
x.flat+=1
x.real[:]=x[::-1]
x.real=3
x.real+=x
x[1:].real[0]=x[3]
np.real(x)[0]=x[1]
x.view()[0]=x[1]
x.view(float)[0]=x[1]
x.copy()[0]=1
x[:].copy()[0]=1
x.flatten()[0]=1
x.ravel()[0]=x[1]
x[::2].ravel()[1]=x[3]
x[::-1].ravel()[1:]*=2; x[::-1].reshape(4)[0]=5
y=x.reshape(2,2)[::-1,::-1].ravel(); y.ravel()[0]=5; x[0]=y[0]
y=x.reshape(2,2)[::-1].T.ravel("F"); y.reshape(2,2).T[1]=5; x[1:]=y[:-1]
x.ravel('F')[0]=x[1]
x.reshape(2,2).ravel('F')[1]=x[3]
x.reshape(2,2).ravel('K')[1]=x[3]
x.reshape(2,2).T.ravel('K')[1]=x[3]
x.reshape(2,2).T.ravel('A')[1]=x[3]
x.reshape(2,2).T.ravel()[1]=x[3]
x.reshape(2,2,order='F').ravel()[1]=x[3]
x.reshape(2,2,order='F')[0,1]=x[3]
x.reshape(2,2).reshape(4,order='F')[1]=x[3]
x.reshape(2,2).reshape(4,order='A')[1]=x[3]
x.reshape(2,2).T.reshape(4,order='A')[1]=x[3]
x.reshape(2,2).T.reshape(4)[1]=x[3]
x.reshape(2,2)[:,:1].reshape(2)[1]=x[3]
x[::2].reshape(2,1)[1]=x[3]
x.reshape(2,2)[::-1].reshape(4)[1]=x[3]
x.reshape(2,2).swapaxes(0,1)[0]=x[3]
np.swapaxes(x.reshape(2,2),0,1)[0]=x[3]
np.rollaxis(x.reshape(2,2),1)[0]=x[3]
np.transpose(x.reshape(2,2))[0]=x[3]
np.flip(x)[0]=x[1]
np.fliplr(x.reshape(2,2))[0]=x[1]
np.flipud(x.reshape(2,2))[0]=x[1]
np.rot90(x.reshape(2,2))[0]=x[1]
np.rot90(x.reshape(2,2),2)[0]=x[1]
np.split(x,2)[0][1]=x[3]
np.hsplit(x,2)[1][0]=x[3]
np.array_split(x,3)[1][0]=x[3]
np.vsplit(x.reshape(2,2),2)[1][0]=x[3]
np.dsplit(x.reshape(1,2,2),2)[1][0]=x[3]
np.atleast_1d(x)[0]=x[1]
np.atleast_2d(x)[0,1]=x[2]
np.atleast_3d(x)[0,1]=x[2]
np.squeeze(x)[0]=x[1]
x.squeeze()[0]=x[1]
np.expand_dims(x,1)[0]=x[1]
np.asarray(x)[0]=x[1]
np.asarray(x,dtype=float)[0]=x[1]
np.asarray(x,dtype=np.float32)[0]=x[1]
np.asanyarray(x)[0]=x[1]
np.ascontiguousarray(x)[0]=x[1]
np.ascontiguousarray(x[::2])[0]=x[1]
np.asfortranarray(x)[0]=x[1]
np.asfortranarray(x.reshape(2,2))[0]=x[1]
np.asarray_chkfinite(x)[0]=x[1]
np.array(x,copy=False)[0]=x[1]
np.array(x,copy=None)[0]=x[1]
np.array(x)[0]=x[1]
np.array(x,ndmin=2,copy=None)[0,1]=x[3]
np.array(x,ndmin=2)[0,1]=x[3]
np.copy(x)[0]=x[1]
x.astype(float)[0]=x[1]
x.astype(float,copy=False)[0]=x[1]
x.astype(np.float32,copy=False)[0]=x[1]
np.diagonal(x.reshape(2,2)).copy()[0]=1
x.reshape(2,2).diagonal()[0]=1
np.diag(x.reshape(2,2))[0]=1
np.diag(x)[0]=1
np.einsum('ii->i',x.reshape(2,2))[0]=x[1]
np.einsum('ij->ji',x.reshape(2,2))[0]=x[1]
np.einsum('i',x)[0]=x[1]
np.einsum('i->i',x)[0]=x[1]
np.einsum('...ij->...ji',x.reshape(2,2))[0]=x[1]
np.einsum('ij',x.reshape(2,2))[0]=x[3]
np.einsum('ij->i',x.reshape(2,2))[0]=x[3]
np.lib.stride_tricks.sliding_window_view(x,2)[0]=1
np.broadcast_to(x,(4,))[0]=1
np.real_if_close(x)[0]=x[1]
np.nan_to_num(x)[0]=x[1]
np.trim_zeros(x)[0]=x[1]
np.tile(x,1)[0]=x[1]
np.repeat(x,1)[0]=x[1]
np.resize(x,4)[0]=x[1]
np.concatenate([x])[0]=x[1]
np.append(x,[])[0]=x[1]
np.roll(x,0)[0]=x[1]
np.take(x,[0,1])[0]=x[1]
np.compress([1,1,0,0],x)[0]=x[3]
np.extract([1,1,0,0],x)[0]=x[3]
np.choose([0,0,0,0],[x])[0]=x[3]
np.select([x>0],[x])[0]=x[3]
np.where(x>0,x,x)[0]=x[3]
np.sort(x)[0]=x[3]
np.unique(x)[0]=x[3]
np.clip(x,None,9)[0]=x[3]
np.maximum(x,x)[0]=x[3]
np.positive(x)[0]=x[3]
np.conjugate(x)[0]=x[3]
x.conj()[0]=x[3]
x.conjugate()[0]=x[3]
np.real(x)[0]=x[3]
np.abs(x)[0]=x[3]
np.triu(x.reshape(2,2))[0]=x[3]
np.delete(x,[])[0]=x[3]
np.insert(x,0,1)[0]=x[3]
np.pad(x,0)[0]=x[3]
np.block([x])[0]=x[3]
np.hstack([x])[0]=x[3]
np.moveaxis(x,0,0)[0]=x[3]
np.transpose(x)[0]=x[3]
x.T[0]=x[3]
x.mT[0]=x[3]
x.reshape(2,2).mT[0]=x[3]
np.matrix_transpose(x.reshape(2,2))[0]=x[3]
np.permute_dims(x.reshape(2,2),(1,0))[0]=x[3]
np.linalg.diagonal(x.reshape(2,2))[0]=x[3]
np.linalg.matrix_transpose(x.reshape(2,2))[0]=x[3]
np.unstack(x.reshape(2,2))[0][0]=x[3]
np.ix_([0,1])[0][0]=3
np.ravel(x)[0]=x[3]
np.sum(x,axis=())[0]=x[3]
np.mean(x.reshape(1,4),axis=0)[0]=x[3]
np.cumsum(x)[0]=x[3]
np.meshgrid(x,x)[0][0]=x[3]
np.vander(x,1)[0]=x[3]
np.hypot(x,0)[0]=x[3]
np.array_split(x,1)[0][0]=x[3]
np.ediff1d(x)[0]=x[3]
np.gradient(x)[0]=x[3]
np.full_like(x,1)[0]=x[3]
np.fmax(x,x)[0]=x[3]
np.kron(1,x)[0]=x[3]
np.dot(1,x)[0]=x[3]
np.linalg.inv(x.reshape(2,2))[0]=x[3]
for row in x.reshape(2,2): row[0]=x[3]
for row in x.reshape(2,2).T: row+=row[0]
for i,row in enumerate(x.reshape(2,2)): row[i]*=x[0]
a,b2=x.reshape(2,2); a[:],b2[:]=b2.copy(),a.copy()
a,b2=x.reshape(2,2); a+=b2; b2*=a
a,*r=x; a+=1; x[0]=r[0]
(a,),(c,)=x[:2].reshape(2,1); a+=1; x[1]=a
y=x; y=y+1; y[0]=5
y=x; y+=1; y[0]=x[3]
y=+x; y+=1
y=x[:]; del x[:0]
del x[0]
np.lexsort((x,))[0]=1
x.__setitem__(0,x[1])
x.__iadd__(x)
x[0]+=x[1]; x[0]*=x[1]
x[1:]+=x[:-1]; x[:-1]*=x[1:]
x[::2]+=x[1::2]
x[[0,0]]+=1
x[[0,0,1]]*=x[:3]
x[x>1]+=x[0]
x[x>1]*=x[x>1][::-1]
x[1:][x[1:]>1]=x[0]
x[1:3][::-1][0]=x[0]
x[::-1][:2]=x[:2]
x[1:]=x[:-1]
x[:-1]=x[1:]
x[::-1]=x
x[::2]=x[1::2]
x.reshape(2,2)[...]=x.reshape(2,2).T
x.reshape(2,2)[:]+=x.reshape(2,2).T
x.reshape(2,2).T[...]+=x[:2]
np.add(x[:-1],x[1:],out=x[1:])
np.add(x[:-1],x[1:],out=x[:-1])
np.multiply(x,x[::-1],out=x)
np.dot(x.reshape(2,2),x.reshape(2,2),out=x.reshape(2,2))
np.cumsum(x[::-1],out=x)
np.copyto(x[1:],x[:-1])
np.copyto(x,x[::-1],where=x>1)
""".strip().splitlines()
if not BEFORE_2_4:  # NumPy called it a ValueError
    STATEMENTS.append("x.flat[x.reshape(2,2)>1]=x[0]")


def run(statement, x, b):
    try:
        exec(compile(statement, "<statement>", "exec"), {"np": np, "x": x, "b": b})
    except Exception as error:
        return type(error)


def left(x):
    return np.array(unwrap(up_to_date(x)))


def under(transform, statement):
    """Return the error and the arrays that a statement leaves under a transform."""
    found = []

    def f(x):
        y, b = x * 1.0, x[:3] * 1.0
        if transform == "a buffer":
            y, b = buffer(unwrap(X.copy())), buffer(unwrap(X[:3].copy()))
        found[:] = [run(statement, y, b), left(y), left(b)]
        return np.sum(x)

    if transform == "vmap":
        fad.vmap(f)(X[None])
        return found[0], found[1].reshape(X.shape), found[2].reshape(3)
    if transform == "jvp":
        fad.jvp(f, (X,), (X,))
    else:
        fad.grad(f)(X)
    return found


@pytest.mark.parametrize("statement", STATEMENTS)
def test_a_statement_raises_and_leaves_what_numpy_does(statement):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        x, b = X.copy(), X[:3].copy()
        error = run(statement, x, b)
        for transform in ("grad", "jvp", "vmap", "a buffer"):
            found = under(transform, statement)
            assert found[0] is error or issubclass(found[0] or int, error or str), transform
            np.testing.assert_allclose(found[1], x, 1e-14, err_msg=transform)
            np.testing.assert_allclose(found[2], b, 1e-14, err_msg=transform)


@pytest.mark.parametrize("dtype", [float, np.float32])
@pytest.mark.parametrize(
    "reduce",
    [
        lambda x, out: np.sum(x, axis=0, out=out), lambda x, out: np.cumsum(x[0], out=out),
        lambda x, out: np.mean(x, axis=0, out=out), lambda x, out: np.add.reduce(x, out=out),
        lambda x, out: np.add.accumulate(x[1], out=out),
    ],
)  # fmt: skip
def test_reductions_write_into_arrays_of_any_dtype_as_numpy_does(reduce, dtype):
    def f(x):
        out = np.zeros(3, dtype)
        reduce(x * (1 + 2j), out)
        return out

    x = np.arange(6.0).reshape(2, 3)
    with pytest.warns(np.exceptions.ComplexWarning):
        wanted = f(x)
    for got in (lambda: fad.jvp(f, (x,), (x,))[0], lambda: fad.jvp(f, (x,), (x,))[1], lambda: fad.jit(f)(x)):
        with pytest.warns(np.exceptions.ComplexWarning):
            y = got()
        assert y.dtype == wanted.dtype
        np.testing.assert_allclose(y, wanted, 1e-6)
