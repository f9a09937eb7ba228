"""The same program rounded otherwise: results of what rounds, and operands of sums, move by a unit in the last place.

Sums may be added up in another order, and a logarithm may be off by a unit. Where a plain run gives other numbers for
that, a program jumps there, as np.modf does at a whole number, and no comparison of two runs says anything.
"""

import ast

import numpy as np

from fad import tree

from .case import Case
from .compare import Difference, observe, same_tree
from .program import Program, evaluate

ELEMENTWISE = (
    "sin cos tan arcsin arccos arctan arctan2 sinh cosh tanh arcsinh arccosh arctanh exp exp2 expm1 log log2 log10 "
    "log1p power float_power logaddexp logaddexp2 hypot cbrt sinc i0 angle"
)
SUMS = (
    "sum mean var std prod cumsum cumprod nansum nanmean nanstd nanvar nanprod nancumsum average trace dot inner vdot "
    "matmul einsum tensordot vecdot matvec convolve correlate cov corrcoef trapezoid interp percentile quantile "
    "reduce accumulate reduceat logspace geomspace linspace polyval polyfit roots unwrap"
)
LINALG = (
    "norm vector_norm matrix_norm det slogdet inv pinv solve tensorsolve lstsq eigvals eigvalsh eigh eig svd qr "
    "cholesky cond matrix_power multi_dot fft ifft rfft irfft fft2 fftn hfft"
)
ADDS = {*SUMS.split(), *LINALG.split()}
ROUNDS = {*ELEMENTWISE.split(), *ADDS}
PRELUDE = "from tests.fuzz.rounding import Mover as _Mover\n_moved = _Mover({draw})\n"


class Mover:
    """A function that moves the numbers of what it is given by a unit in the last place, or leaves them."""

    def __init__(self, draw):
        self.r = np.random.default_rng(draw)

    def __call__(self, x):
        if isinstance(x, (list, tuple)) and all(isinstance(y, (float, complex, np.ndarray, np.generic)) for y in x):
            return tree.map(self, x)
        kind = np.dtype(type(x)) if type(x) in (float, complex) else getattr(x, "dtype", np.dtype(object))
        if kind.kind not in "fc":
            return x
        return x * (1 + self.r.integers(-1, 2, np.shape(x)).astype(kind) * np.finfo(kind).eps)


class _Moving(ast.NodeTransformer):
    def visit_Call(self, node):
        self.generic_visit(node)
        name = getattr(node.func, "attr", "")
        if name not in ROUNDS or any(k.arg == "out" for k in node.keywords):
            return node
        if name in ADDS:
            node.args = [a if isinstance(a, (ast.Starred, ast.Constant)) else _moved(a) for a in node.args]
            if not ast.unparse(node.func).startswith("np."):
                node.func.value = _moved(node.func.value)
        return _moved(node)

    def visit_BinOp(self, node):
        self.generic_visit(node)
        if isinstance(node.op, ast.MatMult):
            return _moved(ast.BinOp(_moved(node.left), node.op, _moved(node.right)))
        return _moved(node) if isinstance(node.op, ast.Pow) and ast.unparse(node.right) != "2" else node


def _moved(node):
    return ast.Call(ast.Name("_moved", ast.Load()), [node], [])


def rounded_otherwise(program, draw):
    """Return a program that rounds otherwise; each ``draw`` is another one."""
    module = ast.fix_missing_locations(_Moving().visit(ast.parse(program.source)))
    return Program(PRELUDE.format(draw=draw) + ast.unparse(module) + "\n", program.arguments, program.kind)


def depends_on_rounding(program, gradients):
    """Return whether outputs, or with ``gradients`` also those, are others when a program rounds otherwise."""
    return any(_differ(program, rounded_otherwise(program, draw), gradients) for draw in range(4))


def _differ(program, other, gradients):
    found = []
    for p in (program, other):
        world = p.world()
        call = Case(p).gradient_of(world.f) if gradients else world.f
        found.append(observe(call, world, evaluate(p.arguments)))
    if any(run.error is not None for run in found):
        return False
    try:
        same_tree(found[0].outputs, found[1].outputs, "output", close=1e-6 if gradients else None, zeros=False)
    except Difference as difference:
        return difference.numeric
    return False
