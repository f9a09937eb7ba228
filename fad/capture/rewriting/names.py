"""Which names statements bind and read, and which are live: read later before they are bound again.

The analysis is of one function's own scope. Names that functions defined in it share with it are always live, for
they may be called at any time.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable
from typing import Any

_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
# Functions of NumPy's that put something behind an array, and what they are asked for besides its elements.
JOINING = frozenset({"append", "concatenate", "vstack", "hstack", "column_stack", "row_stack", "dstack"})
BRACKETS = frozenset({"r_", "c_"})
_FACTS = frozenset({"shape", "size", "ndim", "dtype"})
SUMMARIES = frozenset({"mean", "sum", "std", "var", "min", "max", "prod", "dot"})  # methods that read all elements


class Names(ast.NodeVisitor):
    """The names that some code loads, stores and updates in place, and those that functions within it share."""

    def __init__(self, *nodes: ast.AST | None):
        self.loads: set[str] = set()
        self.stores: set[str] = set()
        self.rebinds: set[str] = set()  # those of the stores that `x += v` alone does not make
        self.updates: set[str] = set()  # what `x[i] = v` and `x += v` may write into
        self.shared: set[str] = set()
        for node in nodes:
            if node is not None:
                self.visit(node)

    def visit_Name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Load):
            self.loads.add(node.id)
        else:
            self.stores.add(node.id)
            self.rebinds.add(node.id)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        if not isinstance(node.target, ast.Name):
            self.generic_visit(node)
            return
        for names in (self.loads, self.stores, self.updates):
            names.add(node.target.id)
        self.visit(node.value)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        base: ast.AST = node
        while isinstance(base, (ast.Subscript, ast.Attribute)):
            base = base.value
        if isinstance(base, ast.Name) and not isinstance(node.ctx, ast.Load):
            self.updates.add(base.id)
        self.generic_visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        self.stores.add(node.name)
        self._inner(node)

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self.stores.add(node.name)
        self._inner(node)

    def visit_Lambda(self, node: ast.Lambda) -> None:
        self._inner(node)

    def _inner(self, node: ast.AST) -> None:
        inner = _free_names(node)
        self.loads |= inner
        self.shared |= inner

    def _comprehension(self, node: ast.AST) -> None:
        inner = Names()
        inner.generic_visit(node)
        walrus = {n.target.id for n in ast.walk(node) if isinstance(n, ast.NamedExpr)}
        self.loads |= inner.loads - (inner.stores - walrus)
        self.stores |= walrus
        self.shared |= inner.shared

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = _comprehension  # type: ignore[assignment]

    def visit_Import(self, node: ast.Import | ast.ImportFrom) -> None:
        self.stores |= {(alias.asname or alias.name).partition(".")[0] for alias in node.names}

    visit_ImportFrom = visit_Import

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> None:
        self.stores |= {node.name} if node.name else set()
        self.generic_visit(node)

    def visit_MatchAs(self, node: ast.MatchAs | ast.MatchStar) -> None:
        self.stores |= {node.name} if node.name else set()
        self.generic_visit(node)

    visit_MatchStar = visit_MatchAs


def _free_names(node: ast.AST) -> set[str]:
    """Return the names that a function or class shares with the code around it, or may share."""
    if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
        return {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
    body = [node.body] if isinstance(node, ast.Lambda) else node.body
    within = {id(n) for part in body for n in ast.walk(part)}
    around = {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and id(n) not in within}  # defaults, decorators
    used = Names(*body)
    declared = {x for s in body for n in walk_scope(s) if isinstance(n, (ast.Nonlocal, ast.Global)) for x in n.names}
    own = {n.arg for n in ast.walk(node.args) if isinstance(n, ast.arg)} | (used.stores - declared)
    return around | declared | ((used.loads | used.shared) - own)


def bound_by(nodes: Iterable[ast.AST]) -> set[str]:
    """Return the names that statements bind."""
    return Names(*nodes).stores


class Liveness:
    """For each loop and branch of a function: the names that are live behind it, in a loop's ``else`` included.

    And for each loop those that are live where a step begins, before it asks its test or binds its target, and where a
    step ends.
    """

    def __init__(self, body: list[ast.stmt], outer: Iterable[str] = ()):
        """`outer` are variables of functions around that the statements bind: others may read them at any time."""
        self.behind: dict[ast.AST, set[str]] = {}
        self.entering: dict[ast.AST, set[str]] = {}
        self.ends: dict[ast.AST, set[str]] = {}
        self.always = Names(*body).shared.union(outer)
        self._block(body, set(self.always), set(), set())

    def _block(self, body: list[ast.stmt], live: set, leaving: set, going_on: set) -> set:
        """Return what is live before statements; `leaving` is live after a break, `going_on` after a continue."""
        for s in reversed(body):
            live = self._statement(s, live, leaving, going_on) | self.always
        return live

    def _statement(self, s: ast.stmt, live: set, leaving: set, going_on: set) -> set:
        if isinstance(s, ast.Break):
            return leaving
        if isinstance(s, ast.Continue):
            return going_on
        if isinstance(s, (ast.Return, ast.Raise)):
            return Names(s).loads
        if isinstance(s, ast.If):
            self._note(self.behind, s, live)
            then = self._block(s.body, live, leaving, going_on)
            other = self._block(s.orelse, live, leaving, going_on)
            return Names(s.test).loads | then | other
        if isinstance(s, (ast.For, ast.While)):
            return self._loop(s, live, leaving, going_on)
        if isinstance(s, (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr, ast.Delete, *_SCOPES)):
            used = Names(s)
            bound = set() if isinstance(s, ast.AugAssign) else used.stores - _walruses(s)
            return (live - bound) | used.loads
        if is_quiet(s):
            return self._block(s.body, live, leaving, going_on) | Names(*s.items).loads  # type: ignore[attr-defined]
        return self._any_order(s, live, leaving, going_on)

    def _loop(self, s: ast.For | ast.While, live: set, leaving: set, going_on: set) -> set:
        end = self._block(s.orelse, live, leaving, going_on)
        self._note(self.behind, s, live | end)
        target = Names(s.target) if isinstance(s, ast.For) else Names()
        asked = Names(s.test).loads if isinstance(s, ast.While) else set()
        head = end | asked
        entering: set = set()
        while True:
            entering = self._block(s.body, head, live, head)
            wider = head | ((entering - target.stores) | target.loads)
            if wider == head:
                break
            head = wider
        self._note(self.entering, s, (entering - target.stores) | target.loads | asked)
        self._note(self.ends, s, head | live)
        return head | (Names(s.iter).loads if isinstance(s, ast.For) else set())

    def _any_order(self, s: ast.stmt, live: set, leaving: set, going_on: set) -> set:
        """Treat a statement whose parts may run or stop anywhere: try, with, match."""
        everything = live | leaving | going_on | Names(s).loads
        for name in ("body", "orelse", "finalbody"):
            self._block(getattr(s, name, None) or [], everything, everything, everything)
        for part in (*getattr(s, "handlers", ()), *getattr(s, "cases", ())):
            self._block(part.body, everything, everything, everything)
        return everything

    def _note(self, table: dict, s: ast.AST, names: set) -> None:
        table[s] = table.get(s, set()) | names


def _walruses(node: ast.AST) -> set[str]:
    return {n.target.id for n in ast.walk(node) if isinstance(n, ast.NamedExpr)}


_SHORTENING = frozenset({"pop", "insert", "clear", "reverse"})
_MOVING = _SHORTENING | {"popleft", "remove", "rotate", "sort", "extendleft"}


def find_appended(body: list[ast.stmt]) -> set[str]:
    """Return the names of lists to which statements append: ``xs.append(x)``, ``xs.extend(...)``, ``xs += [x]``.

    From a list that is a window or a queue, they take elements as well.
    """
    nodes = [n for s in body for n in ast.walk(s)]
    appended = {x.id for x in map(_appended_by, nodes) if isinstance(x, ast.Name)}
    return appended - {x.id for x in map(_shortened_by, nodes) if isinstance(x, ast.Name)}


def find_prepended(body: list[ast.stmt]) -> set[str]:
    """Return the names of what statements change by ``xs.insert(0, x)`` or ``xs.appendleft(x)`` alone."""
    nodes = [n for s in body for n in ast.walk(s)]
    others = [n for n in nodes if not _is_put_in_front(n)]
    changed = (_name_of(x) for n in others for x in (_appended_by(n), _shortened_by(n, _MOVING)))
    items = {_name_of(n.value) for n in nodes if isinstance(n, ast.Subscript) and not isinstance(n.ctx, ast.Load)}
    return {n.func.value.id for n in nodes if _is_put_in_front(n)} - items - {*changed}  # type: ignore[attr-defined]


def _is_put_in_front(node: ast.AST) -> bool:
    f: Any = node.func if isinstance(node, ast.Call) and node.args else None
    if not isinstance(f, ast.Attribute) or not isinstance(f.value, ast.Name):
        return False
    first: Any = node.args[0]  # type: ignore[attr-defined]
    inserts = f.attr == "insert" and isinstance(first, ast.Constant) and type(first.value) is int and first.value == 0
    return inserts or f.attr == "appendleft"


def _appended_by(node: ast.AST) -> ast.expr | None:
    if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add):
        return node.target if isinstance(node.value, (ast.List, ast.Tuple, ast.ListComp)) else None
    f = node.func if isinstance(node, ast.Call) else None
    return f.value if isinstance(f, ast.Attribute) and f.attr in ("append", "extend") else None


def _shortened_by(node: ast.AST, methods: frozenset[str] = _SHORTENING) -> ast.expr | None:
    if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Del):
        return node.value
    f = node.func if isinstance(node, ast.Call) else None
    return f.value if isinstance(f, ast.Attribute) and f.attr in methods else None


def find_filled(body: list[ast.stmt]) -> set[str]:
    """Return the names of what statements bind items of by places that they compute: ``xs[i + 1] = x``."""
    items = (n for s in body for n in ast.walk(s) if isinstance(n, ast.Subscript) and isinstance(n.ctx, ast.Store))
    return {_name_of(n.value) for n in items if any(isinstance(x, ast.Name) for x in ast.walk(n.slice))} - {""}


def find_joined(loop: ast.AST) -> set[str]:
    """Return the names of arrays that a loop makes longer, ``x = np.append(x, v)``, and of which it reads parts alone.

    So nobody in the loop keeps the array that it was before.
    """
    joined: set[str] = set()
    known: Counter[str] = Counter()  # how often the name stands where that may be seen
    for node in ast.walk(loop):
        if isinstance(node, ast.Assign) and (name := _joined_by(node)):
            joined.add(name)
            known[name] += 2
        elif isinstance(node, ast.Subscript) or (isinstance(node, ast.Attribute) and node.attr in _FACTS | SUMMARIES):
            known[_name_of(node.value) if isinstance(node.ctx, ast.Load) else ""] += 1
        elif isinstance(node, ast.Call) and _name_of(node.func) == "len" and len(node.args) == 1:
            known[_name_of(node.args[0])] += 1
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and name_called(node) not in JOINING:
            known.update(map(_name_of, node.args))  # of NumPy's, as is asked when it is called
    every = Counter(n.id for n in ast.walk(loop) if isinstance(n, ast.Name))
    return {name for name in joined if every[name] == known[name]}


def _joined_by(node: ast.Assign) -> str:
    """Return the name of an array that an assignment makes longer; empty if it is none such."""
    value, target = node.value, _name_of(node.targets[0])
    first: Any = None
    if name_called(value) in JOINING and value.args:  # type: ignore[attr-defined]
        first = value.args[0]  # type: ignore[attr-defined]
    elif isinstance(value, ast.Subscript) and getattr(value.value, "attr", _name_of(value.value)) in BRACKETS:
        first = value.slice
    if isinstance(first, (ast.List, ast.Tuple)) and first.elts:
        first = first.elts[0]
    return target if len(node.targets) == 1 and _name_of(first) == target else ""


def _name_of(node: ast.AST | None) -> str:
    return node.id if isinstance(node, ast.Name) else ""


def move_conditions(function: Any) -> None:
    """Let what the condition of a ``while`` loop binds be bound in its steps: ``while (x := f(x)) > 0``."""
    for node in ast.walk(function):
        if isinstance(node, ast.While) and _walruses(node.test) and not node.orelse:
            ends = ast.If(ast.UnaryOp(ast.Not(), node.test), [ast.Break()], [])
            node.body.insert(0, ast.fix_missing_locations(ast.copy_location(ends, node.test)))
            node.test = ast.copy_location(ast.Constant(True), node.test)


def move_globals(function: Any, holder: ast.expr) -> None:
    """Let what a function binds global names to be bound as attributes of an object that has its module's variables."""
    body = function.body if isinstance(function.body, list) else []
    names = {x for s in body for n in walk_scope(s) if isinstance(n, ast.Global) for x in n.names}
    moves = _MoveGlobals(names, holder)
    for s in body if names else ():
        moves.visit(s)


class _MoveGlobals(ast.NodeTransformer):
    def __init__(self, names: set[str], holder: ast.expr):
        self._names = names
        self._holder = holder

    def visit(self, node: ast.AST) -> Any:
        if isinstance(node, _SCOPES):
            return node
        if isinstance(node, ast.Assign):
            node.targets = [self._move(x) for x in node.targets]
        elif isinstance(node, (ast.AugAssign, ast.AnnAssign)):
            node.target = self._move(node.target)  # type: ignore[assignment]
        return self.generic_visit(node)

    def _move(self, target: Any) -> Any:
        if isinstance(target, (ast.Tuple, ast.List)):
            target.elts = [self._move(x) for x in target.elts]
        if not isinstance(target, ast.Name) or target.id not in self._names:
            return target
        return ast.fix_missing_locations(ast.copy_location(ast.Attribute(self._holder, target.id, ast.Store()), target))


def name_super(function: Any) -> None:
    """Let ``super()`` in a function say what it means, for a function within it has no arguments to say so."""
    given = [*function.args.posonlyargs, *function.args.args]
    body = function.body if isinstance(function.body, list) else [function.body]
    for node in (n for s in body for n in walk_scope(s)):
        if given and isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "super":
            if not node.args:
                node.args = [ast.Name("__class__", ast.Load()), ast.Name(given[0].arg, ast.Load())]
                node.args[0].made = True  # type: ignore[attr-defined]
            node.func.made = True  # type: ignore[attr-defined]
            ast.fix_missing_locations(node)


def name_private(node: ast.AST, owner: str) -> None:
    """Let the private names of a class, ``self.__x``, be what they are to the class, ``self._Spring__x``."""
    name = {ast.Attribute: "attr", ast.Name: "id", ast.arg: "arg"}.get(type(node), "")
    text = getattr(node, name, "")
    if text[:2] == "__" != text[-2:]:
        setattr(node, name, f"_{owner.lstrip('_')}{text}")
    for part in ast.iter_child_nodes(node):
        if not isinstance(part, ast.ClassDef):  # which has private names of its own
            name_private(part, owner)


def name_called(node: ast.AST) -> str:
    """Return how what an expression calls is called, of itself or in a module; empty if it is no such call.

    What finds the function can be evaluated twice.
    """
    f = node.func if isinstance(node, ast.Call) else None
    if isinstance(f, ast.Attribute) and isinstance(f.value, ast.Name):
        return f.attr
    return f.id if isinstance(f, ast.Name) else ""


def is_quiet(s: ast.AST) -> bool:
    """Return whether a block is one of ``with np.errstate(...)``, which changes no value; it may jump at its end."""
    if not isinstance(s, ast.With):
        return False
    named = all(item.optional_vars is None and name_called(item.context_expr) == "errstate" for item in s.items)
    jumps = own_jumps(s.body)
    return named and jumps in ([], [s.body[-1]])


def own_jumps(body: list[ast.stmt], loops: bool = True) -> list[ast.stmt]:
    """Return the statements that jump out of a block: return, and break and continue of a loop around it."""
    found: list[ast.stmt] = []
    for s in body:
        if isinstance(s, ast.Return) or (loops and isinstance(s, (ast.Break, ast.Continue))):
            found.append(s)
        if isinstance(s, _SCOPES):
            continue
        inside = loops and not isinstance(s, (ast.For, ast.AsyncFor, ast.While))
        for name in ("body", "orelse", "finalbody"):
            found += own_jumps(getattr(s, name, None) or [], inside if name == "body" else loops)
        for part in (*getattr(s, "handlers", ()), *getattr(s, "cases", ())):
            found += own_jumps(part.body, loops)
    return found


def may_end(body: list[ast.stmt]) -> bool:
    """Return whether the text of some statements lets code come to their end, behind the last one."""
    last = body[-1] if body else None
    if isinstance(last, ast.If):
        return may_end(last.body) or may_end(last.orelse)
    if isinstance(last, ast.While) and isinstance(last.test, ast.Constant) and last.test.value:
        return any(isinstance(x, ast.Break) for x in own_jumps(last.body))
    return not isinstance(last, (ast.Return, ast.Raise, ast.Break, ast.Continue))


def walk_scope(node: ast.AST) -> Iterable[ast.AST]:
    """Walk over a node and what is below it, without the functions and classes defined there."""
    waiting = [node]
    while waiting:
        x = waiting.pop()
        yield x
        waiting += [c for c in ast.iter_child_nodes(x) if not isinstance(c, _SCOPES)]
