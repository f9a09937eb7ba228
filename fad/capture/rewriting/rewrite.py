"""Conversion of the syntax tree: loops become calls of helpers, their bodies and branches functions.

The functions share their variables with the function around them (``nonlocal``), so a body is the user's own code, and
the helper finds the state of a loop in the body's cells. Jumps are returns: a body returns None at its end and at
``continue``, and an outcome at ``break``, ``return`` and ``raise``. An ``if`` that jumps takes the
statements behind it along.
"""

from __future__ import annotations

import ast
import copy
import itertools
from collections.abc import Iterable
from typing import Any

from fad.capture.rewriting.comprehensions import as_statements, called_for, form_of, generator_of
from fad.capture.rewriting.expressions import MADE, Expressions, Iterables, as_index
from fad.capture.rewriting.helpers import HELPERS, helper
from fad.capture.rewriting.names import (
    Liveness,
    Names,
    bound_by,
    find_appended,
    find_filled,
    find_joined,
    find_prepended,
    is_quiet,
    may_end,
    name_called,
    own_jumps,
    walk_scope,
)
from fad.capture.rewriting.sites import Branch, Loop
from fad.capture.rewriting.syntax import (
    bound_on,
    falls_through,
    form_for,
    kind_of,
    load,
    may_raise,
    may_return,
    place_at,
    store,
    stores,
)
from fad.capture.rewriting.tries import Raising, find_refusal, rewrite_try

_WAITING = (ast.Yield, ast.YieldFrom, ast.Await, ast.AsyncFor, ast.AsyncWith)
_REASONS: tuple = (
    (_WAITING, "it yields or waits"), (ast.TryStar, "it has try"),
    ((ast.Import, ast.ImportFrom), "it imports"), (ast.ClassDef, "it defines a class"), (ast.Match, "it has match"),
    ((ast.Global, ast.Nonlocal), "it declares global or nonlocal names"),
)  # fmt: skip
_FRAME = frozenset({"super", "locals", "vars", "eval", "exec", "dir", "__class__"})


def _mark_raises(body: list[ast.stmt]) -> list[ast.stmt]:
    """Return the statements of a loop's body with what raises, an ``assert`` too, as a way in which a step ends."""
    return [_mark_raise(s) for s in body]


def _mark_raise(s: ast.stmt) -> ast.stmt:
    if isinstance(s, ast.Raise):
        return Raising.of(s)
    if isinstance(s, ast.Assert):
        message = [] if s.msg is None else [s.msg]
        error = ast.Raise(ast.Call(ast.Name("AssertionError", ast.Load()), message, []), None)
        return place_at(ast.If(ast.UnaryOp(ast.Not(), s.test), [Raising.of(place_at(error, s))], []), s)  # type: ignore[arg-type]
    if isinstance(s, (ast.If, ast.For, ast.While, ast.Try)):
        s.body, s.orelse = _mark_raises(s.body), _mark_raises(s.orelse)
    return s


class NotConvertible(Exception):
    """A function holds what cannot be converted where all of it must be."""


class Rewriter:
    """Rewrites one function; with `everywhere` its branches, too, for code that is recorded once for all steps."""

    def __init__(self, file: str, body: list[ast.stmt], outer: set[str], everywhere: bool, stops: bool = False):
        self.file = file
        self.stops = stops  # whether it is a generator that tells how the body of the loop over it has ended
        self.everywhere = everywhere
        # Nonlocal variables are places of the body that calls the function, as attributes are.
        self.declared = [s for s in body if isinstance(s, ast.Nonlocal)] if everywhere else []
        declared = {x for s in self.declared for x in s.names}
        self.outer = outer - declared  # other names that the function declares global or nonlocal
        self.live = Liveness(body, declared)
        self.loops: list[Loop] = []
        self.branches: list[Branch] = []
        self.moved: set[str] = set()  # names that generated functions bind
        self.lifted: list[ast.stmt] = []  # functions that comprehensions have become
        self.numbers = itertools.count(1)

    def function(self, body: list[ast.stmt]) -> list[ast.stmt]:
        """Return the statements of the converted function."""
        if not self.everywhere:
            return self._declare_names(self._plain_block(body))
        said = [*self.declared, *(s for s in body if isinstance(s, ast.Global))]
        body = [s for s in body if s not in said] or [ast.copy_location(ast.Pass(), body[0])]
        why = next((r for s in body for r in [self._reason(s)] if r), "")
        if why:
            raise NotConvertible(why)
        body = _mark_raises(body)
        raises = any(isinstance(x, Raising) for x in own_jumps(body))
        if not raises and not any(own_jumps([s]) for s in body if not isinstance(s, ast.Return)):
            *first, last = body
            done = [*self._staged_block(first, frozenset()), *self._last(last)]
            return self._declare_names(done)
        if may_end(body) and not self.stops:  # None is another value than those of its other ends
            body = [*body, place_at(ast.Return(ast.Constant(None)), body[-1])]
        name = self._name("body")
        inner = self._function(name, [], body, self._staged_block(body, frozenset()), body[0])
        end = "outcome" if self.stops else "result_or_raise" if raises else "result"
        result = ast.Return(helper(end, ast.Call(ast.Name(name, ast.Load()), [], [])))
        return self._declare_names([inner, place_at(result, body[-1])])

    def split_step(self, first: list[ast.stmt], loop: ast.While, place: int) -> list[ast.stmt]:
        """Return the statements of a function that begins a generator, and returns what its step does in two functions.

        The step yields by the statement at a place: the one function returns what it yields, the other goes on behind.
        """
        first = [s for s in first if s not in self.declared and not isinstance(s, ast.Global)]
        why = next((r for s in (*first, *loop.body) if s is not loop.body[place] for r in [self._reason(s)] if r), "")
        if why:
            raise NotConvertible(why)
        yielded: Any = loop.body[place]
        end, parts = frozenset(self.live.ends[loop]), (loop.body[:place], loop.body[place + 1 :])
        value = place_at(ast.Return(self._expression(yielded.value.value or ast.Constant(None), True)), yielded)
        codes = [*self._staged_block(parts[0], end), value], self._staged_block(parts[1], end)
        names = self._name("before"), self._name("behind")
        made = [self._function(x, [], of, code, loop) for x, of, code in zip(names, parts, codes, strict=True)]
        both = ast.Return(ast.Tuple([load(x) for x in names], ast.Load()))
        return self._declare_names([*self._staged_block(first, end), *made, place_at(both, loop)])

    def _last(self, s: ast.stmt) -> list[ast.stmt]:
        if isinstance(s, ast.Return):
            s.value = None if s.value is None else self._expression(s.value, True)
            return [s]
        return self._staged_block([s], frozenset())

    def _declare_names(self, body: list[ast.stmt]) -> list[ast.stmt]:
        """Bind, in code that never runs, the names that generated functions bind: so they are this function's own."""
        body = [*self.lifted, *body]
        if not self.moved:
            return [*self.declared, *body]
        names = [ast.Name(x, ast.Store()) for x in sorted(self.moved)]
        never = ast.If(ast.Constant(False), [ast.Assign(names, ast.Constant(None))], [])  # type: ignore[arg-type]
        return [*self.declared, place_at(never, body[0]), *body]

    # --- statements that run as they are --------------------------------------------------------------------------

    def _plain_block(self, body: list[ast.stmt]) -> list[ast.stmt]:
        out: list[ast.stmt] = []
        for s in body:
            if isinstance(s, (ast.For, ast.While)):
                out += self._plain_loop(s)
                continue
            for field in ("body", "orelse", "finalbody"):
                if not isinstance(s, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)) and getattr(s, field, None):
                    setattr(s, field, self._plain_block(getattr(s, field)))
            for part in (*getattr(s, "handlers", ()), *getattr(s, "cases", ())):
                part.body = self._plain_block(part.body)
            out.append(self._with_calls(s))
        return out

    def _with_calls(self, s: ast.stmt) -> ast.stmt:
        """Let the calls of a statement be converted; its blocks have been rewritten."""
        if isinstance(s, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            return s
        for field, value in ast.iter_fields(s):
            if isinstance(value, ast.expr):
                setattr(s, field, self._expression(value, False))
            elif isinstance(value, list) and value and isinstance(value[0], (ast.expr, ast.withitem)):
                setattr(s, field, [self._expression(x, False) for x in value])
        return s

    def _plain_loop(self, s: ast.For | ast.While) -> list[ast.stmt]:
        why = self._reason(s)
        if why:
            number = self._note_loop(s, why)
            s.body, s.orelse = self._plain_block(s.body), self._plain_block(s.orelse)
            return [place_at(ast.Expr(helper("note", ast.Constant(number))), s), self._with_calls(s)]
        s.body = _mark_raises(s.body)
        out, result = self._loop(s, False)
        if may_raise(s):
            out.append(place_at(ast.Expr(helper("leave_if_raised", load(result))), s))
        if s.orelse:
            out.append(place_at(ast.If(helper("finished", load(result)), self._plain_block(s.orelse), []), s))
        if may_return(s):
            value = ast.Return(helper("result", load(result)))
            out.append(place_at(ast.If(helper("returned", load(result)), [value], []), s))
        return out

    # --- statements that are recorded once for all steps ----------------------------------------------------------

    def _staged_block(self, body: list[ast.stmt], end: frozenset[str]) -> list[ast.stmt]:
        """Return statements of a function that returns an outcome; `end` is live where the function ends."""
        out: list[ast.stmt] = []
        for n, s in enumerate(body):
            rest = body[n + 1 :]
            if isinstance(s, ast.If):
                if own_jumps([s]):
                    return [*out, *self._jumping(s, rest, end)]
                out += self._branch(s, end)
            elif isinstance(s, (ast.For, ast.While)):
                made, result = self._loop(s, True)
                out += made
                after = self._after_loop(s, result)
                if after:
                    return [*out, *self._staged_block([*after, *rest], end)]
            elif isinstance(s, ast.With):
                for item in s.items:
                    item.context_expr = helper("context", self._expression(item.context_expr, True))
                s.body = self._staged_block(s.body, end)
                out.append(s)
            elif isinstance(s, ast.Try):
                out += self._try(s, end)
            elif isinstance(s, Raising):
                outcome = ast.If(helper("captures"), [ast.Return(helper("raising"))], [])
                return [*out, place_at(outcome, s), *self._statement(s.plain)]  # type: ignore[attr-defined]
            elif isinstance(s, (ast.Return, ast.Break, ast.Continue)):
                return [*out, place_at(ast.Return(self._outcome(s)), s)]
            else:
                out += self._statement(s)
        return out

    def _try(self, s: ast.Try, end: frozenset[str]) -> list[ast.stmt]:
        def function(name: str, part: list[ast.stmt]) -> ast.stmt:
            return self._function(name, [], part, self._staged_block(part, end), s)

        return rewrite_try(s, self._name, function, lambda part: self._staged_block(part, end))

    def _after_loop(self, s: ast.For | ast.While, result: str) -> list[ast.stmt]:
        """Return what follows a loop in captured code: its else, and the way out if it returned."""
        behind = self.live.behind[s]
        after: list[ast.stmt] = []
        if s.orelse:
            after.append(place_at(ast.If(helper("finished", load(result)), s.orelse, []), s))
        ways_out = {"returned": helper("again", load(result))} if may_return(s) else {}
        if may_raise(s):
            ways_out["raised"] = helper("raising")
        for how, outcome in ways_out.items():
            way_out = ast.Return(outcome)
            way_out.outcome = True  # type: ignore[attr-defined]
            after.append(place_at(ast.If(helper(how, load(result)), [way_out], []), s))
        for made in after:
            self.live.behind[made] = behind
        return after

    def _outcome(self, s: ast.Return | ast.Break | ast.Continue) -> ast.expr:
        if isinstance(s, ast.Continue):
            return ast.Constant(None)
        if isinstance(s, ast.Break):
            return helper("broken")
        if hasattr(s, "outcome"):
            return s.value or ast.Constant(None)
        value = ast.Constant(None) if s.value is None else self._expression(s.value, True)
        return helper("returning", value)

    def _branch(self, s: ast.If, end: frozenset[str]) -> list[ast.stmt]:
        names = bound_by([*s.body, *s.orelse])
        return self._two_ways(s, s.body, s.orelse, names, frozenset(self.live.behind[s]), end, False)

    def _jumping(self, s: ast.If, rest: list[ast.stmt], end: frozenset[str]) -> list[ast.stmt]:
        """Rewrite an ``if`` that jumps: each way goes on with the rest of the block, unless it has jumped."""
        names = bound_on([*s.body, *s.orelse, *rest])
        out: list[ast.stmt] = []
        tail: list[ast.stmt] = []
        if rest:
            name = self._name("rest")
            out.append(self._function(name, [], rest, self._staged_block(rest, end), rest[0]))
            call = ast.Return(ast.Call(ast.Name(name, ast.Load()), [], []))
            call.outcome = True  # type: ignore[attr-defined]
            call.binds = bound_on(rest)  # type: ignore[attr-defined]
            tail = [place_at(call, rest[0])]
        ways = [[*part, *copy.deepcopy(tail)] if falls_through(part) else part for part in (s.body, s.orelse)]
        return [*out, *self._two_ways(s, ways[0], ways[1], names, end, end, True)]

    def _two_ways(self, s, then, other, names, behind, end, jumps: bool) -> list[ast.stmt]:
        test = self._expression(s.test, True)
        out: list[ast.stmt] = []
        functions = []
        for part in (then, other):
            name = self._name("branch")
            code = self._staged_block(part, end)
            out.append(self._function(name, [], [*then, *other, *stores(names)], code, s))
            functions.append(load(name))
        self.branches.append(Branch(s.lineno, tuple(sorted(names)), behind))
        call = helper("if_", ast.Constant(len(self.branches) - 1), test, *functions)
        return [*out, place_at(ast.Return(call) if jumps else ast.Expr(call), s)]

    def _statement(self, s: ast.stmt) -> list[ast.stmt]:
        if isinstance(s, ast.AnnAssign):
            if s.value is None:
                return []
            s = ast.copy_location(ast.Assign([s.target], s.value), s)
        if isinstance(s, ast.Assign):
            value = self._expression(s.value, True)
            if len(s.targets) > 1:
                temporary = self._name("value")
                made: list[ast.stmt] = [ast.Assign([store(temporary)], value)]
                for target in s.targets:
                    made += self._assign(target, load(temporary))
            else:
                made = self._assign(s.targets[0], value)
            return [place_at(x, s) for x in made]
        if isinstance(s, ast.AugAssign):
            return [place_at(x, s) for x in self._rewrite_augmented(s)]
        if isinstance(s, ast.Delete):
            return [place_at(self._delete(target), s) for target in s.targets]
        if isinstance(s, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return [s]
        for field, value in ast.iter_fields(s):
            if isinstance(value, ast.expr):
                setattr(s, field, self._expression(value, True))
        return [s]

    def _delete(self, target: ast.expr) -> ast.stmt:
        if not isinstance(target, ast.Subscript):
            return ast.Delete([target])
        place = [self._expression(target.value, True), as_index(self._expression(target.slice, True))]
        return ast.Expr(helper("delete_item", *place))

    def _assign(self, target: ast.expr, value: ast.expr) -> list[ast.stmt]:
        if isinstance(target, ast.Subscript):
            place = [self._expression(target.value, True), as_index(self._expression(target.slice, True))]
            return [ast.Expr(helper("setitem", value, *place))]
        if isinstance(target, ast.Attribute):
            holder = self._expression(target.value, True)
            return [ast.Expr(helper("setattr", value, holder, ast.Constant(target.attr)))]
        if isinstance(target, (ast.Tuple, ast.List)) and any(
            isinstance(x, (ast.Subscript, ast.Attribute)) for x in ast.walk(target)
        ):
            names = [self._name("part") for _ in target.elts]
            stars = [isinstance(x, ast.Starred) for x in target.elts]
            parts: list[ast.expr] = [
                ast.Starred(store(x), ast.Store()) if star else store(x) for x, star in zip(names, stars, strict=True)
            ]
            out: list[ast.stmt] = [ast.Assign([ast.Tuple(parts, ast.Store())], value)]
            for x, name in zip(target.elts, names, strict=True):
                out += self._assign(x.value if isinstance(x, ast.Starred) else x, load(name))
            return out
        return [ast.Assign([target], value)]

    def _rewrite_augmented(self, s: ast.AugAssign) -> list[ast.stmt]:
        name = ast.Constant(type(s.op).__name__)
        target = s.target
        if isinstance(target, ast.Name):
            value = self._expression(s.value, True)
            return [ast.Assign([store(target.id)], helper("update", name, load(target.id), value))]
        holder = self._name("holder")
        out: list[ast.stmt] = [ast.Assign([store(holder)], self._expression(target.value, True))]
        if isinstance(target, ast.Attribute):
            old: ast.expr = ast.Attribute(load(holder), target.attr, ast.Load())
            new = helper("update", name, old, self._expression(s.value, True))
            return [*out, ast.Expr(helper("setattr", new, load(holder), ast.Constant(target.attr)))]
        index = self._name("index")
        out.append(ast.Assign([store(index)], as_index(self._expression(target.slice, True))))
        new = helper("update", name, helper("getitem", load(holder), load(index)), self._expression(s.value, True))
        return [*out, ast.Expr(helper("setitem", new, load(holder), load(index)))]

    # --- loops ----------------------------------------------------------------------------------------------------

    def _loop(self, s: ast.For | ast.While, staged: bool) -> tuple[list[ast.stmt], str]:
        """Return the statements that run a loop by its helper, and the name of the outcome."""
        number = self._note_loop(s, "")
        end = frozenset(self.live.ends[s])
        body, result = self._name("body"), self._name("outcome")
        if isinstance(s, ast.For):
            item = self._name("item")
            first = self._assign(s.target, load(item))
            code = [*[place_at(x, s) for x in first], *self._staged_block(s.body, end)]
            bound: list[ast.AST] = [ast.Assign([s.target], ast.Constant(None)), *s.body]
            made: list[ast.stmt] = [self._function(body, [item], bound, code, s)]
            source = self._expression(Iterables().visit(s.iter), staged)
        else:
            made = [self._function(body, [], s.body, self._staged_block(s.body, end), s)]
            test = self._name("test")
            value = ast.Return(self._expression(s.test, True))
            made.append(self._function(test, [], [ast.Expr(s.test)], [place_at(value, s)], s))
            source = load(test)
        call = helper(f"{kind_of(s)}_", ast.Constant(number), source, load(body))
        return [*made, place_at(ast.Assign([store(result)], call), s)], result

    def _note_loop(self, s: ast.For | ast.While, reason: str) -> int:
        used = Names(s)
        entering = self.live.entering.get(s, set())
        carried = tuple(sorted(used.stores & entering))
        behind = frozenset(self.live.behind.get(s, set()))
        operations = sum(
            isinstance(n, (ast.Call, ast.BinOp, ast.Subscript, ast.AugAssign, ast.Compare)) for n in ast.walk(s)
        )
        nested = any(isinstance(n, (ast.For, ast.While)) for x in s.body for n in ast.walk(x))
        leaves = any(
            isinstance(x, (ast.Break, ast.Return)) for x in own_jumps(s.body, True) if not isinstance(x, ast.Continue)
        )
        appended = find_appended(s.body) - Names(getattr(s, "iter", None)).loads
        filled, joined = find_filled(s.body), find_joined(s) - self.live.always
        self.loops.append(
            Loop(self.file, s.lineno, kind_of(s), tuple(sorted(used.stores)), carried, behind,
                 frozenset(used.rebinds), tuple(sorted(used.updates)), operations, nested, leaves,
                 tuple(sorted(appended)), tuple(sorted(filled)), tuple(sorted(joined)),
                 tuple(sorted(find_prepended(s.body) - Names(getattr(s, "iter", None)).loads)), reason,
                 hasattr(s, "comprehension"), form_for(s), may_raise(s))
        )  # fmt: skip
        return len(self.loops) - 1

    def _reason(self, s: ast.stmt) -> str:
        """Return why statements cannot be captured, or ``""``."""
        for node in walk_scope(s):
            for kinds, why in _REASONS:
                if isinstance(node, kinds):
                    return why
            if isinstance(node, ast.Try) and (why := find_refusal(node)):
                return why
            if isinstance(node, ast.With) and not is_quiet(node):
                return "it has with"
            if isinstance(node, ast.Name) and node.id in _FRAME and not hasattr(node, "made"):
                return f"it uses {node.id}"
            if isinstance(node, ast.While) and any(isinstance(x, ast.NamedExpr) for x in ast.walk(node.test)):
                return "its condition binds a name, and it has else"
            if isinstance(node, ast.Delete) and not all(isinstance(x, (ast.Name, ast.Subscript)) for x in node.targets):
                return "it deletes attributes"
        found = bound_by([s]) & self.outer
        return f"it binds {min(found)}, which is global or nonlocal" if found else ""

    # --- pieces ---------------------------------------------------------------------------------------------------

    def _expression(self, node: ast.AST, staged: bool) -> ast.expr:
        return Expressions(staged, self._lift).visit(node)

    def _lift(self, node: ast.expr, within: Expressions) -> ast.expr | None:
        """Return what calls a function with a loop that does what a comprehension does; None where that cannot be.

        For a call that is given a generator it is a choice, whose other way is the call as it stands.
        """
        form = form_of(node) if isinstance(node, ast.Call) else "list"
        if form is None:
            return None
        if isinstance(node, ast.Call):
            node = copy.deepcopy(node)  # the call that stands is rewritten, too
            node.generating = copy.deepcopy(called_for(node))  # type: ignore[attr-defined]
        given: Any = generator_of(node) if isinstance(node, ast.Call) else node
        found = as_statements(given, form)
        if found is None or any(map(self._reason, found[1])):
            return None
        name = self._name("comprehension")
        source = within.visit(Iterables().visit(given.generators[0].iter))
        self.lifted.append(self._loop_of_its_own(name, *found, within.staged))
        call = ast.Call(load(name), [source], [])
        done = self._in_place_of(node, form, call, within) if isinstance(node, ast.Call) else call
        done.made = True  # type: ignore[attr-defined]
        return ast.copy_location(done, node)

    def _in_place_of(self, call: ast.Call, form: str, done: ast.Call, within: Expressions) -> ast.expr:
        """Return what stands for a call of a function, if that is Python's own."""
        more: list = [within.visit(x) for x in call.args[1:]]
        if form == "list":
            keywords: list = [within.visit(k) for k in call.keywords]
            done = ast.Call(helper("call", call.func), [done, *more], keywords)
        elif form in ("sum", "max", "min"):
            done.args += [copy.deepcopy(call.func), *(more or ([ast.Constant(0)] if form == "sum" else []))]
        generating = call.generating  # type: ignore[attr-defined]
        asked = [call.func] if generating is None else [call.func, generating]
        builtin = helper("is_builtin", ast.Constant(name_called(call)), *map(copy.deepcopy, asked))
        return ast.IfExp(builtin, done, ast.Constant(None))

    def _loop_of_its_own(self, name: str, arguments: list[str], body: list[ast.stmt], staged: bool) -> ast.stmt:
        """Return a function of statements that have their own variables, rewritten."""
        within = Rewriter(self.file, body, set(), staged)
        within.loops, within.branches, within.numbers = self.loops, self.branches, self.numbers
        return self._function(name, arguments, [], within.function(body), body[-1])

    def _name(self, what: str) -> str:
        return f"{MADE}{what}_{next(self.numbers)}"

    def _function(
        self, name: str, args: list[str], of: Iterable[ast.AST], code: list[ast.stmt], at: ast.AST
    ) -> ast.stmt:
        """Return a function of some statements, which shares its variables with those around it."""
        names = sorted(bound_by(of))
        self.moved.update(names)
        head: list[ast.stmt] = [ast.Nonlocal(names)] if names else []
        arguments = ast.arguments([], [ast.arg(x) for x in args], None, [], [], None, [])
        made = ast.FunctionDef(name, arguments, [*head, *code] if head or code else [ast.Pass()], [], None, None)
        return place_at(made, at)


__all__ = ["HELPERS", "MADE", "NotConvertible", "Rewriter"]
