"""A drop-in for HIPS autograd: the names and signatures of that library, on fad's engine.

Change ``import autograd`` to ``import fad.compat.autograd as autograd``, ``from autograd import grad`` to
``from fad.compat.autograd import grad``, and ``import autograd.numpy as np`` to
``import fad.compat.autograd.numpy as np`` (or to plain ``import numpy as np``).
New code uses fad's own names; ``docs/migration.md`` has the table.
"""

from fad.compat.autograd import builtins, extend
from fad.compat.autograd.builtins import dict, isinstance, list, tuple, type
from fad.compat.autograd.operators import (
    checkpoint,
    deriv,
    egrad,
    elementwise_grad,
    grad,
    grad_and_aux,
    grad_named,
    hessian,
    hessian_tensor_product,
    hessian_vector_product,
    holomorphic_grad,
    jacobian,
    make_ggnvp,
    make_hvp,
    make_jvp,
    make_jvp_reversemode,
    make_vjp,
    multigrad_dict,
    tensor_jacobian_product,
    value_and_grad,
    vector_jacobian_product,
)

__all__ = [
    "builtins", "checkpoint", "deriv", "dict", "egrad", "elementwise_grad", "extend", "grad", "grad_and_aux",
    "grad_named", "hessian", "hessian_tensor_product", "hessian_vector_product", "holomorphic_grad", "isinstance",
    "jacobian", "list", "make_ggnvp", "make_hvp", "make_jvp", "make_jvp_reversemode", "make_vjp", "multigrad_dict",
    "tensor_jacobian_product", "tuple", "type", "value_and_grad", "vector_jacobian_product",
]  # fmt: skip
