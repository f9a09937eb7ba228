"""Make a program that a check objects to smaller, as long as the check objects."""

import ast
import signal

import numpy as np

from .campaign import Finding, examine
from .program import Program, evaluate, literal

_SECONDS = 20  # that a candidate may take: a loop may have lost the statement that ends it


class _Endless(BaseException):
    """A candidate takes too long."""


def _give_up(*_):
    raise _Endless


def shrink(program, check, rounds=6):
    """Return the smallest program found to which the check still objects in the same words."""

    def objection(candidate):
        before = signal.signal(signal.SIGALRM, _give_up)
        signal.alarm(_SECONDS)
        try:
            outcome, message = examine(candidate, check, program.seed)
        except _Endless:
            return False
        finally:
            signal.alarm(0)
            signal.signal(signal.SIGALRM, before)
        return outcome == "finding" and Finding(candidate, check, message).signature

    first = objection(program)

    def fails(candidate):
        return first and objection(candidate) == first

    for _ in range(rounds):
        smaller = program
        for candidates in (fewer_statements, inlined_names, simpler_expressions, simpler_arguments):
            smaller = first_fixpoint(smaller, candidates, fails)
        if smaller == program:
            break
        program = Program(smaller.source, smaller.arguments, program.kind, program.seed)
    return program


def first_fixpoint(program, candidates, fails):
    """Take candidates that still fail until none does."""
    tried = set()
    while True:
        for candidate in candidates(program):
            if (candidate.source, candidate.arguments) in tried or candidate == program:
                continue
            tried.add((candidate.source, candidate.arguments))
            if fails(candidate):
                program = candidate
                break
        else:
            return program


def with_source(program, module):
    return Program(ast.unparse(ast.fix_missing_locations(module)) + "\n", program.arguments, program.kind, program.seed)


def fewer_statements(program):
    """Yield the program without one of its statements, or with a body in the place of its compound statement."""
    count = sum(1 for _ in _bodies(ast.parse(program.source)))
    for number in range(count):
        length = len(list(_bodies(ast.parse(program.source)))[number])
        for k in reversed(range(length)):
            for replacement in ("nothing", "body"):
                module = ast.parse(program.source)
                body = list(_bodies(module))[number]
                old = body[k]
                is_f = isinstance(old, ast.FunctionDef) and old.name == "f"
                if is_f or (isinstance(old, ast.Return) and len(body) == 1):
                    continue
                inner = list(getattr(old, "body", [])) if replacement == "body" else []
                if replacement == "body" and (not inner or isinstance(old, (ast.FunctionDef, ast.ClassDef))):
                    continue
                body[k : k + 1] = inner
                if not body:
                    continue
                yield with_source(program, module)


def _bodies(module):
    """Yield all lists of statements."""
    for node in ast.walk(module):
        for name in ("body", "orelse", "finalbody"):
            found = getattr(node, name, None)
            if isinstance(found, list) and found and isinstance(found[0], ast.stmt):
                yield found


def inlined_names(program):
    """Yield the program without an assignment, whose expression stands where its name was read."""
    count = sum(1 for node in ast.walk(ast.parse(program.source)) if _names_one(node))
    for number in range(count):
        module = ast.parse(program.source)
        assignment = [node for node in ast.walk(module) if _names_one(node)][number]
        name, value = assignment.targets[0].id, assignment.value
        body = next(body for body in _bodies(module) if assignment in body)
        if len(body) == 1:  # it would stay, and hold itself
            continue
        body.remove(assignment)
        for parent, field, place, node in list(_expressions(module)):
            if isinstance(node, ast.Name) and node.id == name:
                _put(parent, field, place, value)
        yield with_source(program, module)


def _names_one(node):
    return isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name)


def simpler_expressions(program):
    """Yield the program with one expression replaced by a part of it, or by a number."""
    total = sum(1 for _ in _expressions(ast.parse(program.source)))
    for number in range(total):
        parent, name, place, node = list(_expressions(ast.parse(program.source)))[number]
        for k in range(len(list(_parts(node)))):
            module = ast.parse(program.source)
            parent, name, place, node = list(_expressions(module))[number]
            _put(parent, name, place, list(_parts(node))[k])
            yield with_source(program, module)


def _expressions(module):
    """Yield all expressions that are read, with where they stand."""
    for parent in ast.walk(module):
        for name, value in ast.iter_fields(parent):
            several = value if isinstance(value, list) else [value]
            for place, node in enumerate(several):
                if isinstance(node, ast.expr) and not isinstance(getattr(node, "ctx", None), (ast.Store, ast.Del)):
                    yield parent, name, place if isinstance(value, list) else None, node


def _put(parent, name, place, node):
    if place is None:
        setattr(parent, name, node)
    else:
        getattr(parent, name)[place] = node


def _parts(node):
    """Yield what might stand in an expression's place."""
    for _, value in ast.iter_fields(node):
        for part in value if isinstance(value, list) else [value]:
            if isinstance(part, ast.expr) and not (isinstance(part, ast.Name) and part.id == "np"):
                yield part
    if isinstance(node, (ast.Tuple, ast.List)) and len(node.elts) > 1:
        for k in range(len(node.elts)):
            yield type(node)(elts=node.elts[:k] + node.elts[k + 1 :], ctx=ast.Load())
    if isinstance(node, ast.Call) and node.keywords:
        for k in range(len(node.keywords)):
            yield ast.Call(func=node.func, args=node.args, keywords=node.keywords[:k] + node.keywords[k + 1 :])


def simpler_arguments(program):
    """Yield the program with one argument less, or with simpler numbers, memory, dtype or shape of one."""
    yield from fewer_arguments(program)
    for k, (text, x) in enumerate(zip(program.arguments, evaluate(program.arguments), strict=True)):
        for simpler in simpler_values(text, x):
            if len(simpler) < len(text) or simpler.count("0.0") > text.count("0.0"):
                yield program.given(*program.arguments[:k], simpler, *program.arguments[k + 1 :])


def fewer_arguments(program):
    """Yield the program without an argument that it does not read."""
    for k in reversed(range(len(program.arguments))):
        module = ast.parse(program.source)
        f = next(node for node in module.body if isinstance(node, ast.FunctionDef) and node.name == "f")
        if len(f.args.args) == len(program.arguments) > 1:
            del f.args.args[k]
            left = program.arguments[:k] + program.arguments[k + 1 :]
            yield with_source(program, module).given(*left)


def simpler_values(text, x):
    """Yield simpler expressions for an argument."""
    yield literal(x)
    x = np.asarray(x)
    if x.dtype.kind in "fc":
        for dtype in ("float64",):
            yield literal(np.real(x).astype(dtype))
        yield literal(np.round(np.real(x) * 2) / 2)
        yield literal(np.arange(1.0, x.size + 1).reshape(x.shape))
        yield literal(np.ones(x.shape))
    for axis, n in enumerate(x.shape):
        if n > 1:
            yield literal(np.delete(x, -1, axis))
        if n == 1 or n == 0:
            yield literal(x.reshape(x.shape[:axis] + x.shape[axis + 1 :])) if n else "np.zeros(0)"
