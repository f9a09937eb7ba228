"""autograd's differential operators, in terms of fad's.

They differ in small ways: the argument to differentiate is `argnum` (an int or a tuple), integers are taken for floats,
an output of one element counts as a scalar, and the vector of a product is passed behind the function's arguments.
"""

from __future__ import annotations

import functools
import inspect
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import numpy as np

import fad
from fad import tree
from fad.core.tracing.tracer import Tracer
from fad.transforms.arguments.check import zeros_like


def _as_float(x: Any) -> Any:
    """Return integers as floats, which is what autograd makes of them."""
    if type(x) is Tracer:
        return x
    x = np.asarray(x)[()] if not isinstance(x, np.ndarray) else x
    return x.astype(float) if x.dtype.kind in "iub" else x


def _nary(operator: Callable) -> Callable:
    """Turn an operator on functions of one argument into one that picks an argument of many by `argnum`."""

    @functools.wraps(operator)
    def of_function(fun: Callable, argnum: Any = 0, *op_args: Any, **op_kwargs: Any) -> Callable:
        @functools.wraps(fun, updated=())
        def evaluate(*args, **kwargs):
            nums = tuple(argnum) if isinstance(argnum, (tuple, list)) else (argnum,)

            @functools.wraps(fun, updated=())
            def unary(x):
                full = list(args)
                for i, v in zip(nums, x if isinstance(argnum, (tuple, list)) else (x,), strict=True):
                    full[i] = v
                return fun(*full, **kwargs)

            chosen = tuple(args[i] for i in nums) if isinstance(argnum, (tuple, list)) else args[argnum]
            return operator(unary, tree.map(_as_float, chosen), *op_args, **op_kwargs)

        return evaluate

    return of_function


def _one_element(y: Any) -> Any:
    if np.size(y) != 1:
        raise TypeError(
            f"grad needs a function that returns one number, but it returned an array of shape {np.shape(y)}. "
            "Try jacobian, elementwise_grad or holomorphic_grad"
        )
    return y if np.shape(y) == () else np.reshape(y, ())


@_nary
def grad(fun: Callable, x: Any) -> Any:
    """Return a function that computes the gradient with respect to positional argument number `argnum`.

    >>> grad(lambda x, y: x * y, 1)(3.0, 4.0)
    np.float64(3.0)
    """
    return fad.grad(lambda v: _one_element(fun(v)))(x)


@_nary
def value_and_grad(fun: Callable, x: Any) -> tuple:
    """Return a function that computes value and gradient, as ``scipy.optimize.minimize(jac=True)`` wants them.

    >>> value_and_grad(lambda x: x * x)(3.0)
    (np.float64(9.0), np.float64(6.0))
    """
    return fad.value_and_grad(lambda v: _one_element(fun(v)))(x)


@_nary
def elementwise_grad(fun: Callable, x: Any) -> Any:
    """Return a function that computes the sum of each column of the Jacobian.

    >>> elementwise_grad(np.sin)(np.zeros(2))
    array([1., 1.])
    """
    return fad.elementwise_grad(fun)(x)


egrad = elementwise_grad


@_nary
def deriv(fun: Callable, x: Any) -> Any:
    """Return a function that computes the derivative along the direction of ones, by forward mode.

    >>> deriv(lambda x: x**3)(2.0)
    np.float64(12.0)
    """
    return fad.jvp(fun, (x,), (tree.map(lambda v: zeros_like(v) + 1, x),))[1]


@_nary
def jacobian(fun: Callable, x: Any) -> Any:
    """Return a function that computes the Jacobian, of shape ``out.shape + in.shape``.

    >>> jacobian(lambda x: x**2)(np.array([1.0, 2.0]))
    array([[2., 0.],
           [0., 4.]])
    """
    return fad.jacrev(fun)(x)


@_nary
def holomorphic_grad(fun: Callable, x: Any) -> Any:
    """Return a function that computes the derivative of a complex-differentiable function.

    >>> holomorphic_grad(lambda z: z**2)(1j)
    np.complex128(2j)
    """
    return fad.grad(lambda z: np.real(fun(z)))(x)


def grad_named(fun: Callable, argname: str) -> Callable:
    """Return the gradient with respect to an argument given by name.

    >>> grad_named(lambda x, y: x * y, "y")(3.0, 4.0)
    np.float64(3.0)
    """
    return grad(fun, list(inspect.signature(fun).parameters).index(argname))


@_nary
def hessian(fun: Callable, x: Any) -> Any:
    """Return a function that computes the Hessian.

    >>> hessian(lambda x: np.sum(x**3))(np.array([1.0, 2.0]))
    array([[ 6.,  0.],
           [ 0., 12.]])
    """
    return fad.hessian(fun)(x)


def _make_vjp(fun: Callable, x: Any) -> tuple:
    y, pullback = fad.vjp(fun, x)

    def vjp(g):
        return pullback(tree.map(lambda c, v: _like(c, v), g, y))[0]

    return vjp, y


def _like(c: Any, v: Any) -> Any:
    """Return a cotangent in the dtype of its value; autograd does not insist on it."""
    c = c if type(c) is Tracer else np.asarray(c)
    return c if c.dtype == v.dtype else c.astype(v.dtype)


@_nary
def make_vjp(fun: Callable, x: Any) -> tuple:
    """Return a function that gives ``(vjp, value)``.

    >>> vjp, y = make_vjp(lambda x: x**2)(3.0)
    >>> vjp(1.0)
    np.float64(6.0)
    """
    return _make_vjp(fun, x)


@_nary
def make_jvp(fun: Callable, x: Any) -> Callable:
    """Return a function that gives ``jvp(v) -> (value, derivative along v)``.

    >>> make_jvp(lambda x: x**2)(3.0)(1.0)
    (np.float64(9.0), np.float64(6.0))
    """
    return lambda v: fad.jvp(fun, (x,), (tree.map(_like, v, x),))


@_nary
def make_jvp_reversemode(fun: Callable, x: Any) -> Callable:
    """Return a function that gives ``jvp(v) -> derivative along v``.

    >>> make_jvp_reversemode(lambda x: x**2)(3.0)(1.0)
    np.float64(6.0)
    """
    return lambda v: fad.jvp(fun, (x,), (tree.map(_like, v, x),))[1]


@_nary
def make_hvp(fun: Callable, x: Any) -> tuple:
    """Return a function that gives ``(hvp, gradient)``: the gradient is computed once, the products many times.

    >>> hvp, g = make_hvp(lambda x: np.sum(x**3))(np.array([1.0, 2.0]))
    >>> hvp(np.array([1.0, 0.0]))
    array([6., 0.])
    """
    return _make_vjp(fad.grad(lambda v: _one_element(fun(v))), x)


def hessian_tensor_product(fun: Callable, argnum: int = 0) -> Callable:
    """Return a function of ``(*args, tensor)`` that multiplies the Hessian by a tensor.

    >>> hessian_tensor_product(lambda x: np.sum(x**3))(np.array([1.0, 2.0]), np.array([1.0, 0.0]))
    array([6., 0.])
    """
    gradient = grad(fun, argnum)

    def dot(*args, **kwargs):
        *args, tensor = args
        return np.tensordot(gradient(*args, **kwargs), tensor, np.ndim(tensor))

    return grad(dot, argnum)


hessian_vector_product = hessian_tensor_product


def tensor_jacobian_product(fun: Callable, argnum: int = 0) -> Callable:
    """Return a function of ``(*args, tensor)`` that multiplies the Jacobian from the left by a tensor.

    >>> tensor_jacobian_product(lambda x: x**2)(np.array([1.0, 2.0]), np.array([1.0, 1.0]))
    array([2., 4.])
    """

    def dot(*args, **kwargs):
        *args, tensor = args
        return np.tensordot(tensor, fun(*args, **kwargs), axes=np.ndim(tensor))

    return jacobian(dot, argnum)


vector_jacobian_product = tensor_jacobian_product


def _half_square(x: Any) -> Any:
    return 0.5 * np.sum(x**2, axis=-1)


def make_ggnvp(f: Callable, g: Callable = _half_square, f_argnum: int = 0) -> Callable:
    """Return a function that gives ``ggnvp(v)``, the product with the generalised Gauss-Newton matrix of ``g(f(x))``.

    >>> make_ggnvp(lambda x: 2.0 * x)(np.ones(2))(np.array([1.0, 0.0]))
    array([4., 0.])
    """

    @_nary
    def make(f, x):
        f_x, pull = fad.vjp(f, x)
        gradient = fad.grad(lambda y: _one_element(g(y)))

        def ggnvp(v):
            push = fad.jvp(f, (x,), (tree.map(_like, v, x),))[1]
            return pull(fad.jvp(gradient, (f_x,), (push,))[1])[0]

        return ggnvp

    return make(f, f_argnum)


@_nary
def grad_and_aux(fun: Callable, x: Any) -> tuple:
    """Return a function that gives ``(gradient of the first output, second output)``.

    >>> grad_and_aux(lambda x: (x**2, "aux"))(3.0)
    (np.float64(6.0), 'aux')
    """

    def first(v):
        out, aux = fun(v)
        return _one_element(out), aux

    return fad.grad(first, has_aux=True)(x)


def multigrad_dict(fun: Callable) -> Callable:
    """Return a function that computes the gradients of all arguments, as a dictionary by name.

    >>> dict(multigrad_dict(lambda x, y: x * y)(3.0, 4.0))
    {'x': np.float64(4.0), 'y': np.float64(3.0)}
    """
    signature = inspect.signature(fun)

    def gradients(*args, **kwargs):
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()

        def of_dict(values):
            again = inspect.BoundArguments(signature, OrderedDict(values))
            return fun(*again.args, **again.kwargs)

        arguments = {name: tree.map(_as_float, v) for name, v in bound.arguments.items()}
        found = fad.grad(lambda values: _one_element(of_dict(values)))(arguments)
        return OrderedDict((name, found[name]) for name in bound.arguments)

    return gradients


def checkpoint(fun: Callable) -> Callable:
    """Return a function that keeps only its arguments for the backward pass, and computes the rest again.

    >>> grad(checkpoint(lambda x: np.sin(x)))(0.0)
    np.float64(1.0)
    """
    return fad.checkpoint(fun)
