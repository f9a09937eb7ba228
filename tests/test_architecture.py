"""How the package is built: layers, no cycles, small files, documented API, few dependencies."""

import ast
import functools
import gc
import importlib
import inspect
import subprocess
import sys
from pathlib import Path

import pytest
from each import each

import fad
import fad.testing
from fad.core.primitives.primitive import Primitive

ROOT = Path(fad.__file__).parent

# A file may import lower layers and earlier entries of its own layer; lazy imports inside functions count.
# An entry that ends in a dot is a folder and stands for all its files, among which only cycles are forbidden.
LAYERS = [
    [
        "typing", "config", "introspect", "introspect.collection", "introspect.frames", "introspect.loops",
        "introspect.outer_values", "introspect.reachable", "errors.", "tree.",
    ],
    ["viz."],
    ["backends."],
    [
        "core",
        "core.tracing", "core.tracing.spec", "core.tracing.like_users", "core.tracing.conversions",
        "core.tracing.views", "core.tracing.weak", "core.tracing.numpy_dispatch", "core.tracing.numpy_versions",
        "core.tracing.array_likes",
        "core.tracing.lengths", "core.tracing.own_attributes", "core.tracing.tracer", "core.tracing.trace",
        "core.tracing.ended_runs", "core.tracing.layers", "core.tracing.values",
        "core.primitives", "core.primitives.options", "core.primitives.samples", "core.primitives.docstring_sections",
        "core.primitives.docstrings", "core.primitives.primitive", "core.primitives.cotangent",
        "core.primitives.archetypes", "core.primitives.limits",
        "core.programs", "core.programs.liveness", "core.programs.graph", "core.programs.rewriter",
        "core.programs.refusals",
        "core.handles", "core.handles.buffers", "core.handles.structured_arrays", "core.handles.structured_functions",
        "core.handles.makers", "core.handles.iterators", "core.handles.random_sources",
        "core.handles.results_as_handles",
        "core.runs", "core.runs.stand_ins", "core.runs.outside", "core.runs.transformed", "core.runs.errstate",
        "core.runs.journal", "core.runs.callees", "core.runs.overlay", "core.runs.overlay_needs", "core.runs.running",
        "core.runs.effects",
    ],
    [
        "ops.layout", "ops.layout.asking", "ops.layout.memory_order", "ops.layout.index_layout", "ops.layout.elements",
        "ops.layout.packing",
        "ops.arrangement", "ops.arrangement.structural", "ops.arrangement.arranging", "ops.arrangement.splitting",
        "ops.arrangement.padding",
        "ops.ufuncs", "ops.ufuncs.bounds", "ops.ufuncs.strong_zero", "ops.ufuncs.elementwise", "ops.ufuncs.activation",
        "ops.ufuncs.complexes", "ops.ufuncs.selection", "ops.ufuncs.conversion", "ops.ufuncs.predicates",
        "ops.ufuncs.pairs", "ops.ufuncs.scimath",
        "ops.places", "ops.places.traced_index", "ops.places.indexing", "ops.places.functional_updates",
        "ops.places.diagonals", "ops.places.taking", "ops.places.creation", "ops.places.mapping", "ops.places.strided",
        "ops.places.writing", "ops.places.in_place",
        "ops.reductions", "ops.reductions.reduction", "ops.reductions.flat_reductions", "ops.reductions.norms",
        "ops.reductions.scans", "ops.reductions.differences", "ops.reductions.statistics",
        "ops.reductions.nan_statistics",
        "ops.python", "ops.python.numbers", "ops.python.python_functions", "ops.python.compiled_functions",
        "ops.python.python_math", "ops.python.python_cmath", "ops.python.python_statistics", "ops.python.number_types",
        "ops.ordering", "ops.ordering.histograms", "ops.ordering.sorting", "ops.ordering.quantiles",
        "ops.ordering.sets",
        "ops.products", "ops.products.einsum", "ops.products.contraction", "ops.products.convolution",
        "ops.products.windows", "ops.products.device_conv", "ops.products.conv", "ops.products.pooling",
        "ops.linalg.", "ops.polynomials", "ops.curves",
        "ops.fft", "ops.refused", "ops", "ops.__main__",
        "ops.__main__",
    ],
    [
        "transforms",
        "transforms.arguments", "transforms.arguments.check", "transforms.arguments.mutation",
        "transforms.arguments.undo_writes",
        "transforms.outside", "transforms.outside.handles", "transforms.outside.kept_names",
        "transforms.outside.closed_over", "transforms.outside.closures",
        "transforms.reverse", "transforms.reverse.accumulate", "transforms.reverse.tape",
        "transforms.reverse.layered_writes", "transforms.reverse.overwrites", "transforms.reverse.operand_cotangents",
        "transforms.reverse.slopes", "transforms.reverse.steep_programs", "transforms.reverse.backward_sweep",
        "transforms.batching", "transforms.batching.batch_axes", "transforms.batching.batch_trace",
        "transforms.vjp", "transforms.grad", "transforms.push_tangents", "transforms.jvp", "transforms.vmap",
        "transforms.linearize", "transforms.jacobian", "transforms.checkpoint", "transforms.custom_rules",
        "transforms.custom", "transforms.implicit", "transforms.jet", "transforms.eval_shape", "transforms.tape_hooks",
    ],
    [
        "staging", "staging.counters", "staging.may_raise", "staging.outer_state", "staging.live_constants",
        "staging.mixed_types", "staging.python_numbers", "staging.flatness", "staging.prints", "staging.record_trace",
        "staging.record",
    ],
    [
        "control_flow",
        "control_flow.bodies", "control_flow.bodies.loop_layout", "control_flow.bodies.axis_positions",
        "control_flow.bodies.subgraph", "control_flow.bodies.intervals", "control_flow.bodies.counters",
        "control_flow.bodies.interpreter", "control_flow.bodies.dependence",
        "control_flow.lengths", "control_flow.lengths.slice_bounds", "control_flow.lengths.traced_length",
        "control_flow.lengths.padded", "control_flow.lengths.padded_functions", "control_flow.lengths.traced_masks",
        "control_flow.lengths.traced_slices",
        "control_flow.derivatives", "control_flow.derivatives.final_reads", "control_flow.derivatives.split_pullback",
        "control_flow.derivatives.branch_pieces", "control_flow.derivatives.stack",
        "control_flow.derivatives.checkpoints", "control_flow.derivatives.pullback",
        "control_flow.derivatives.linear_map",
        "control_flow.recording", "control_flow.recording.compose_views", "control_flow.recording.kinds_of_numbers",
        "control_flow.recording.untouched_rows", "control_flow.recording.independent_steps",
        "control_flow.recording.unread_places",
        "control_flow.scan", "control_flow.record_loop", "control_flow.cond", "control_flow.run_scan",
    ],
    [
        "capture",
        "capture.rewriting", "capture.rewriting.names", "capture.rewriting.sites", "capture.rewriting.helpers",
        "capture.rewriting.texts", "capture.rewriting.expressions", "capture.rewriting.matches",
        "capture.rewriting.tries", "capture.rewriting.yields", "capture.rewriting.comprehensions",
        "capture.rewriting.syntax", "capture.rewriting.rewrite", "capture.rewriting.same_source",
        "capture.rewriting.convert",
        "capture.body", "capture.body.places", "capture.body.context", "capture.body.trial", "capture.body.outcomes",
        "capture.body.objects", "capture.body.stacked_lists", "capture.body.state", "capture.body.held_arrays",
        "capture.body.labels", "capture.body.element_tables", "capture.body.aliases", "capture.body.unseen",
        "capture.body.windows", "capture.body.keyed_looks", "capture.body.values", "capture.body.draws",
        "capture.containers", "capture.containers.dict_methods", "capture.containers.grown_entries",
        "capture.containers.array_lists", "capture.containers.row_lists", "capture.containers.preallocated",
        "capture.containers.growing_lists", "capture.containers.prepended_lists", "capture.containers.growing_arrays",
        "capture.containers.growing_dicts", "capture.containers.growth", "capture.containers.number_dicts",
        "capture.containers.number_lists",
        "capture.choices", "capture.choices.common_types", "capture.choices.choice",
        "capture.choices.branches",
        "capture.callees", "capture.callees.resumable", "capture.callees.printing", "capture.callees.messages",
        "capture.callees.calls",
        "capture.iteration", "capture.iteration.sequences", "capture.iteration.iterables",
        "capture.iteration.generators", "capture.iteration.folds",
        "capture.recording", "capture.recording.integer_rules", "capture.recording.integer_range",
        "capture.recording.step", "capture.recording.capture", "capture.recording.loops",
        "capture.runtime",
    ],
    [  # the pipeline, in its order
        "compile", "compile.machine.", "compile.ir.", "compile.passes.", "compile.legalize.", "compile.schedule.",
        "compile.codegen.", "compile.runtime.", "compile.pipeline", "compile.targets.",
    ],
    [
        "jitting", "jitting.static_arguments", "jitting.donated_arrays", "jitting.impurity", "jitting.programs",
        "jitting.notebook", "jitting.call", "jitting.reverse", "jitting.nested", "jitting.jit",
    ],
    ["doctor", "control", "numpy.", "scipy.", "sparse.", "random.", "files"],
    [
        "distributed.errors", "distributed.communicator", "distributed.sequence", "distributed.threads",
        "distributed.messages", "distributed.window", "distributed.mpi", "distributed.nccl", "distributed.worlds",
        "distributed.ties", "distributed.primitives", "distributed.nonblocking", "distributed.agreement",
        "distributed.ranks", "distributed.collective_calls", "distributed.collectives", "distributed.handles",
        "distributed.derivatives", "distributed.checking", "distributed.solve", "distributed.parts",
        "distributed.checkpoints", "distributed",
    ],
    [
        "data", "nn.", "optim.", "keeping", "profiler", "debug", "eager.", "testing.", "compat.", "demo",
    ],
]  # fmt: skip
PLACES = {name: (i, j) for i, layer in enumerate(LAYERS) for j, name in enumerate(layer)}


def _module_name(path):
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {_module_name(path): path for path in sorted(ROOT.rglob("*.py"))}


@functools.cache
def _tree(module):
    """Return the syntax tree of a module."""
    return ast.parse(MODULES[module].read_text(encoding="utf-8"))


@functools.cache
def _nodes(module):
    """Return all nodes of a module's syntax tree."""
    return list(ast.walk(_tree(module)))


@pytest.fixture(scope="module", autouse=True)
def _trees_are_let_go():
    """Leave no tree behind: they are most of a million objects, at which each full garbage collection would look."""
    yield
    _tree.cache_clear()
    _nodes.cache_clear()


def _entry(module):
    """Return the entry of LAYERS that a module belongs to: its own, or that of a folder it lies in."""
    parts = module.split(".")
    folders = (".".join(parts[:n]) + "." for n in range(len(parts), 0, -1))
    return next((name for name in (module, *folders) if name in PLACES), None)


def _place(module):
    """Return (layer, position) of a module, or None if it has no place yet."""
    return PLACES.get(_entry(module))


def _typing_only(module):
    """Return the nodes under ``if TYPE_CHECKING``."""
    guards = (x for x in _nodes(module) if isinstance(x, ast.If) and "TYPE_CHECKING" in ast.dump(x.test))
    return {id(y) for x in guards for y in ast.walk(x)}


@functools.cache
def _imports(module):
    """Return the modules of fad that a module imports, anywhere in its text."""
    found, skipped = set(), _typing_only(module)
    for node in _nodes(module):
        if id(node) in skipped:
            continue
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module} has a relative import in line {node.lineno}; write it out"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            if name == "fad" or name.startswith("fad."):
                found.add(_resolve(name.removeprefix("fad").removeprefix(".")))
    return found - {module}


def _resolve(name):
    """Return the module that a dotted name means: itself, or the one that defines it."""
    while name not in MODULES:
        name = name.rpartition(".")[0]
    return name


@each("module", [m for m in MODULES if m])
def test_a_module_has_its_place_in_a_layer(module):
    assert _place(module) is not None, f"put {module} into LAYERS in this test, after what it imports"


@each("module", [m for m in MODULES if m])
def test_imports_only_point_down(module):
    here = _place(module)
    for other in _imports(module):
        if other == "":
            assert here[0] == len(LAYERS) - 1, f"{module} imports fad itself; only the top layer may"
        elif here and _place(other) and _entry(other) != _entry(module):
            assert _place(other) < here, f"{module} imports {other}, which stands above it or beside it, not before it"


def test_there_are_no_import_cycles():
    done, path = set(), []

    def visit(module):
        if module in path:
            cycle = path[path.index(module) :]
            pytest.fail("import cycle: " + " -> ".join([*cycle, module]))
        if module in done or module == "":
            return
        path.append(module)
        for other in sorted(_imports(module)):
            visit(other)
        path.pop()
        done.add(module)

    for module in MODULES:
        visit(module)


@each("module", list(MODULES))
def test_files_are_short(module):
    assert len(MODULES[module].read_text(encoding="utf-8").splitlines()) <= 520  # "about 500"


@each("module", list(MODULES))
def test_a_module_says_what_it_is(module):
    text = MODULES[module].read_text(encoding="utf-8")
    assert not text.strip() or ast.get_docstring(_tree(module)), f"{module} has no docstring"


@each("module", list(MODULES))
def test_a_constant_is_bound_once(module):
    # a second list of the same name would be the one that the functions above it read, too
    bound = [
        target.id for node in _tree(module).body if isinstance(node, ast.Assign)
        for target in node.targets if isinstance(target, ast.Name) and target.id.isupper()
    ]  # fmt: skip
    assert len(bound) == len(set(bound)), sorted(bound)


def test_every_file_of_tests_has_a_name_of_its_own():
    # pytest imports them by it, from folders that are no packages
    files = [f for f in Path(__file__).parent.rglob("test_*.py") if not (f.parent / "__init__.py").exists()]
    names = [f.name for f in files]
    assert len(names) > 50
    assert sorted(set(names)) == sorted(names)


# --- functions are verbs ----------------------------------------------------------------------------------------------

# Names of functions that end as participles do: public ones, decorators, and what is no participle.
PARTICIPLES = {
    "sharded", "joined", "transformed", "captured", "saved", "stored", "copied", "marked", "searchsorted", "replaced",
    "factorized",
}  # fmt: skip
VERBS_IN_ED = {"embed", "feed", "need", "seed", "shed", "exceed", "_seed"}


@each("module", list(MODULES))
def test_functions_are_named_by_verbs_and_not_by_bare_participles(module):
    owners = [_tree(module), *(x for x in _nodes(module) if isinstance(x, ast.ClassDef))]
    functions = [x for owner in owners for x in owner.body if isinstance(x, ast.FunctionDef)]
    plain = [f.name for f in functions if not any("property" in ast.unparse(d) for d in f.decorator_list)]
    bare = {n for n in plain if n.endswith("ed") and "_" not in n.strip("_")}
    assert bare - PARTICIPLES - VERBS_IN_ED == set(), "say what it does: `restore`, not `restored`"


# --- an operation's facts stand in its module ------------------------------------------------------------------------

# These speak of functions by the names of somebody else: PyTorch, MPI, LLVM and CUDA, SciPy, or Python's modules.
OTHER_WORDS = (
    "ops", "eager", "distributed", "compat", "nn", "optim", "numpy", "scipy", "backends", "random", "control", "tree",
    "profiler", "demo", "compile.codegen.llvm", "compile.codegen.cuda", "compile.runtime",
)  # fmt: skip


def _named_in():
    """Return the modules in which each primitive is named, besides those with words of their own."""
    gc.unfreeze()  # to see what was made before the tests
    names = {op.name for op in gc.get_objects() if issubclass(type(op), Primitive)}
    gc.freeze()
    found = {name: set() for name in names}
    for module in MODULES:
        if module and not any(module == w or module.startswith(f"{w}.") for w in OTHER_WORDS):
            for node in _nodes(module):
                if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in names:
                    found[node.value].add(module)
    return found


def test_an_operation_is_named_in_at_most_five_files_outside_its_module():
    often = {name: sorted(modules) for name, modules in _named_in().items() if len(modules) > 5}
    assert often == {}, "state what others know of an operation in a field of Primitive"


# The words of programs, which rewrites match: `docs/design/vocabulary.md` says why they are named in more files.
VOCABULARY = {
    "getitem", "permute", "reshape_to", "broadcast", "join", "scatter", "index_set", "convert", "to_number",
    "where_select", "add", "subtract", "multiply", "matmul", "sum_over", "logical_and", "logical_not",
}  # fmt: skip
REWRITING = ("core", "transforms", "staging", "control_flow", "capture", "compile", "jitting", "sparse")
IN_TWO_FILES = [{"getitem", "reshape_to"}]  # what adds or takes away axes of one place


def _modules_that_rewrite():
    """Return the modules that rewrite programs, each with its tree and the primitives among its names."""
    for module in MODULES:
        if module.split(".")[0] in REWRITING:
            names = vars(importlib.import_module(f"fad.{module}"))
            yield module, _tree(module), {n: x.name for n, x in names.items() if isinstance(x, Primitive)}


def test_operations_are_matched_in_at_most_five_files_besides_the_vocabulary_of_programs():
    found = {}
    for module, tree, primitives in _modules_that_rewrite():
        for node in ast.walk(tree):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in primitives:
                found.setdefault(primitives[node.id], set()).add(module)
    often = {name for name, modules in found.items() if len(modules) > 5}
    assert often - VOCABULARY == set(), "state what others know of an operation in a field of Primitive"
    assert VOCABULARY - often == set(), "take it out of VOCABULARY"


def test_no_two_files_list_the_same_operations():
    found = {}
    for module, tree, primitives in _modules_that_rewrite():
        for node in ast.walk(tree):
            parts = getattr(node, "elts", None) or getattr(node, "keys", ()) or ()
            names = {primitives.get(getattr(part, "id", None)) for part in parts}
            if len(names) > 1 and None not in names:
                found.setdefault(frozenset(names), set()).add(module)
    twice = {names: modules for names, modules in found.items() if len(modules) > 1 and names not in IN_TWO_FILES}
    assert twice == {}, "state it in a field of Primitive, or in one place"


def _compares_a_name(node):
    """Return whether a piece of code compares the name of a primitive with a word."""
    if not isinstance(node, ast.Compare) or not isinstance(node.ops[0], (ast.Eq, ast.NotEq, ast.In, ast.NotIn)):
        return False
    words = [x for x in ast.walk(node.comparators[0]) if isinstance(x, ast.Constant) and isinstance(x.value, str)]
    return ast.unparse(node.left).endswith("prim.name") and bool(words)


@each("module", [m for m in MODULES if not m.startswith(("ops", "eager"))])
def test_what_matches_an_operation_compares_the_primitive_and_not_its_name(module):
    lines = [node.lineno for node in _nodes(module) if _compares_a_name(node)]
    assert not lines, "write `eq.prim is matmul`, or read a field of Primitive"


# --- the public API --------------------------------------------------------------------------------------------------


def _documented(module):
    """Return the public functions and classes of a module that are its own."""
    names = getattr(module, "__all__", None) or [n for n in vars(module) if not n.startswith("_")]
    for name in names:
        thing = getattr(module, name)
        if (inspect.isfunction(thing) or inspect.isclass(thing)) and thing.__module__.startswith("fad"):
            yield name, thing


PUBLIC = {
    f"{module.__name__}.{name}": thing
    for module in (fad, fad.testing, fad.tree, fad.errors)
    for name, thing in _documented(module)
    if module is not fad.errors or inspect.isclass(thing)
}


@each("thing", PUBLIC.values(), ids=PUBLIC)
def test_a_public_name_has_a_docstring_with_an_example(thing):
    text = inspect.getdoc(thing) or ""
    if isinstance(thing, type) and issubclass(thing, Exception):
        assert len(text) > 40, "an error's docstring is its page in the documentation"
    else:
        assert ">>> " in text, "a runnable example is missing"


@each("error", [e for _, e in _documented(fad.errors) if isinstance(e, type)])
def test_an_error_is_also_the_built_in_error_a_numpy_user_expects(error):
    assert issubclass(error, (fad.errors.FadError, Warning))
    built_in = [b for b in error.__mro__ if b.__module__ == "builtins" and b not in (Exception, BaseException, object)]
    assert built_in or error is fad.errors.FadError


LISTED = ["", ".random", ".tree", ".debug", ".data", ".profiler", ".testing", ".numpy", ".compat"]


@each("name", LISTED)
def test_what_a_module_lists_is_its_own_and_is_there_without_another_import(name):
    listed = [n for n in dir(importlib.import_module(f"fad{name}")) if not n.startswith("__")]
    assert not {"Any", "annotations", "importlib", "np", "Tracer"} & set(listed)
    program = f"import fad\nfor name in {listed!r}: getattr(fad{name}, name)"
    assert "fad" in _loaded_by(program)


# --- dependencies ---------------------------------------------------------------------------------------------------


def _loaded_by(program):
    here = str(Path(fad.__file__).parents[1])  # the tree that is tested, whatever else is installed
    report = "print(*sorted({m.split('.')[0] for m in sys.modules}))"
    code = f"import sys\nsys.path.insert(0, {here!r})\n{program}\n{report}"
    run = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True)
    return set(run.stdout.split())


def test_import_fad_loads_numpy_and_optree_and_nothing_else():
    plain = _loaded_by("import numpy, optree")
    loaded = _loaded_by("import fad") - plain - set(sys.stdlib_module_names)
    assert loaded == {"fad"}


@each("package", ["scipy", "cupy", "llvmlite", "hypothesis", "matplotlib", "sklearn", "tqdm"])
def test_import_fad_leaves_optional_packages_alone(package):
    assert package not in _loaded_by("import fad")


def test_import_fad_brings_no_slow_part_of_the_standard_library():
    plain = _loaded_by("import numpy, optree")
    assert not (_loaded_by("import fad") - plain) & {"hashlib", "html", "pathlib", "shutil", "tempfile", "urllib"}


def test_import_fad_testing_does_not_need_hypothesis():
    assert "hypothesis" not in _loaded_by("import fad.testing")


# --- rules live where their data lives --------------------------------------------------------------------------------

MAKERS = {"np.zeros", "np.ones", "np.full", "np.eye", "np.identity"}  # not `empty`: nobody computes with its contents


def _host_arrays(module):
    """Return the lines, outside of samples, that make numbers from a shape alone: they would be on the host."""
    found = []

    def visit(node):
        if isinstance(node, ast.FunctionDef) and node.args.args and node.args.args[0].arg == "s":
            return  # draws samples
        if isinstance(node, ast.keyword) and node.arg == "samples":
            return
        if isinstance(node, ast.Assign) and any("sample" in ast.unparse(t) for t in node.targets):
            return
        if isinstance(node, ast.Call) and ast.unparse(node.func) in MAKERS and not _makes_an_index(node):
            found.append(f"{module}:{node.lineno}: {ast.unparse(node)}")
        for child in ast.iter_child_nodes(node):
            visit(child)

    visit(_tree(module))
    return found


def _makes_an_index(call):
    """Return whether the array is one of integers or booleans, which choose places and are no part of a computation."""
    last = [*call.args[1:], *[k.value for k in call.keywords if k.arg == "dtype"]]
    return bool(last) and ast.unparse(last[-1]) in {"int", "bool", "np.intp", "np.int64", "np.bool_"}


@each("module", [m for m in MODULES if m.startswith("ops")])
def test_rules_make_arrays_like_their_operands_and_not_from_shapes(module):
    assert not _host_arrays(module), "write np.zeros_like(x, shape=..., dtype=...)"


@each("module", [m for m in MODULES if m.startswith(("ops", "transforms", "core"))])
def test_no_library_code_changes_numpys_global_state(module):
    for node in _nodes(module):
        if isinstance(node, ast.Call):
            assert ast.unparse(node.func) not in {"np.seterr", "np.random.seed", "np.set_printoptions"}


def test_every_module_can_be_imported_first():
    # Run one by one in fresh interpreters only where it matters: the entries that users import by name.
    for name in ("fad.testing", "fad.numpy", "fad.tree", "fad.errors"):
        _loaded_by(f"import {name}")
        importlib.import_module(name)
