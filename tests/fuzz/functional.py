"""The same program without writes: every write becomes an assignment of a changed copy.

That is another program where arrays have two names. So a form counts only if it gives what the program gives, on the
arguments and on others near them.
"""

import ast

import numpy as np

import fad.numpy

from .arguments import with_noise
from .compare import Difference, observe, same_tree
from .program import Program, evaluate

WRITERS = {
    "copyto", "put", "putmask", "place", "put_along_axis", "fill_diagonal", "at", "sort", "partition", "fill", "flat",
    "nan_to_num", "__setitem__", "__imul__",
}  # fmt: skip
PRELUDE = """from tests.fuzz.functional import changed, cast
"""


def changed(x, index, value):
    """Return a copy of an array with a value at an index, which is cast to the array's dtype."""
    value = fad.numpy.array(value)
    if value.dtype.kind == "c" and x.dtype.kind != "c":
        raise Unfit
    value = value.astype(x.dtype)
    return fad.numpy.at(x)[index].set(value)


def cast(x, value):
    """Return what ``x op= value`` leaves in an array; a number is bound again."""
    if np.ndim(x) == 0 and not isinstance(x, np.ndarray):
        return value
    return np.broadcast_to(value, np.shape(x)).astype(x.dtype)


class Unfit(Exception):
    """This program writes in a way that has no such form here."""


class Writes(ast.NodeTransformer):
    """Replace writes into variables."""

    def visit_Assign(self, node):
        self.generic_visit(node)
        (target,) = node.targets if len(node.targets) == 1 else (None,)
        if isinstance(target, ast.Name):
            return node
        return self._written(target, node.value)

    def visit_AugAssign(self, node):
        self.generic_visit(node)
        read = ast.parse(ast.unparse(node.target), mode="eval").body
        value = ast.BinOp(read, node.op, node.value)
        if isinstance(node.target, ast.Name):
            return ast.Assign([node.target], _call("cast", read, value))
        return self._written(node.target, value)

    def visit_For(self, node):
        if not isinstance(node.target, ast.Name) or "range" not in ast.unparse(node.iter):
            raise Unfit
        return self.generic_visit(node)

    def visit_Attribute(self, node):
        if node.attr in WRITERS:
            raise Unfit
        return self.generic_visit(node)

    def visit_Call(self, node):
        if any(k.arg in ("out", "copy") for k in node.keywords):
            raise Unfit
        if isinstance(node.func, ast.Name) and node.func.id not in ("len", "range", "int", "abs", "max", "min", "sum"):
            raise Unfit  # a helper may write
        return self.generic_visit(node)

    def _written(self, target, value):
        if not isinstance(target, ast.Subscript) or not isinstance(target.value, ast.Name):
            raise Unfit
        index = ast.Subscript(ast.parse("np.s_", mode="eval").body, target.slice, ast.Load())
        name = target.value.id
        return ast.Assign([ast.Name(name, ast.Store())], _call("changed", ast.Name(name, ast.Load()), index, value))


def _call(name, *args):
    return ast.Call(ast.Name(name, ast.Load()), list(args), [])


def without_writes(program, r):
    """Return a program without writes that gives the same, or raise Unfit."""
    module = ast.parse(program.source)
    f = next(node for node in module.body if isinstance(node, ast.FunctionDef) and node.name == "f")
    f.body = [Writes().visit(node) for node in f.body]
    source = PRELUDE + ast.unparse(ast.fix_missing_locations(module)) + "\n"
    if source == PRELUDE + ast.unparse(ast.parse(program.source)) + "\n":
        raise Unfit  # there were none
    form = Program(source, program.arguments, program.kind)
    for texts in (program.arguments, with_noise(r, program.arguments), with_noise(r, program.arguments, 0.5)):
        runs = []
        for world in (program.world(), form.world()):
            runs.append(observe(world.f, world, evaluate(texts)))
        if any(run.error is not None for run in runs):
            raise Unfit
        try:
            same_tree(runs[0].outputs, runs[1].outputs, "output", zeros=False)
        except Difference:
            raise Unfit from None
    return form
