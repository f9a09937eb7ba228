"""fad differentiates ordinary NumPy programs."""

from fad import backends, config, errors, ops, tree
from fad.core.spec import ShapeDtypeStruct
from fad.core.tracer import stop_gradient
from fad.transforms.grad import grad, value_and_grad
from fad.transforms.jacobian import elementwise_grad, hessian, hvp, jacfwd, jacobian, jacrev, vhp
from fad.transforms.jvp import jvp
from fad.transforms.linearize import linear_transpose, linearize
from fad.transforms.shapes import eval_shape
from fad.transforms.vjp import vjp
from fad.transforms.vmap import vmap
