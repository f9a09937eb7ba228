"""The pages of the documentation do what they say."""

import ast
import doctest
import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGES = sorted((Path(__file__).parents[2] / "docs").glob("*.md"))


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.stem)
def test_every_example_on_a_page_runs_as_shown(page):
    result = doctest.testfile(str(page), module_relative=False, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert result.failed == 0


def test_the_coverage_page_has_a_row_for_every_public_operation():
    page = (Path(__file__).parents[2] / "docs" / "coverage.md").read_text(encoding="utf-8")
    cells = [line.split("|")[1] for line in page.splitlines() if line.startswith("| `")]
    named = {name for cell in cells for name in cell.replace("`", " ").split()}
    peers = pytest.importorskip("oracles.peers", reason="SciPy is not installed")
    missing = {path for path in peers.operations(peers.PARTS[:4]) if peers.shown(path) not in named}
    missing.discard("trapz")  # an old name of trapezoid that NumPy has dropped since
    assert not missing, "run `python benchmarks/operation_coverage.py` with JAX, PyTorch and autograd installed"


SOURCES = sorted((Path(__file__).parents[2] / "fad").rglob("*.py"))
HEADING = re.compile(r"^(?:(Examples|Notes)|[A-Z]\w+)\n---+$", re.MULTILINE)


@pytest.mark.parametrize("folder", sorted({p.relative_to(SOURCES[0].parent).parts[0] for p in SOURCES}))
def test_examples_below_other_sections_of_a_docstring_stand_under_a_heading_of_their_own(folder):
    for path in SOURCES:
        if path.relative_to(SOURCES[0].parent).parts[0] != folder:
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and (text := ast.get_docstring(node)):
                headings = list(HEADING.finditer(text, 0, max(text.find(">>>"), 0)))
                assert not headings or headings[-1][1], f"{path}:{node.lineno}: {node.name}"


def test_the_pictures_of_imports_show_the_folders_that_there_are():
    fad = SOURCES[0].parent
    for name, root in (("imports-fad.svg", fad), ("imports-compile.svg", fad / "compile")):
        drawn = (PAGES[0].parent / name).read_text(encoding="utf-8")
        folders = sorted(p.parent.name for p in root.glob("*/__init__.py"))
        assert [f for f in folders if f">{f}</text>" not in drawn] == [], "run python docs/draw_imports.py"
        assert "#d00000" not in drawn, "an import leads up: a red arc"


def test_how_it_works_names_every_folder_of_the_pipeline():
    page = next(p for p in PAGES if p.name == "how-it-works.md").read_text(encoding="utf-8")
    fad = SOURCES[0].parent
    for package in ("core", "ops", "transforms", "control_flow", "capture", "compile", "compile/legalize"):
        row = next(line for line in page.splitlines() if line.startswith(f"| `fad/{package.partition('/')[0]}`"))
        folders = sorted(p.parent.name for p in (fad / package).glob("*/__init__.py"))
        assert [f for f in folders if f"`{f}`" not in row] == [], f"say what is in these folders of fad/{package}"


TRACE = """
import os, sys
import numpy as np
import fad

def f(w, x):
    return np.sum(np.tanh(x @ w) ** 2)

def entered(run, *args):
    found, root = set(), os.path.dirname(fad.__file__) + os.sep
    def note(frame, event, arg):
        if frame.f_code.co_filename.startswith(root):
            found.add(frame.f_code.co_filename[len(root):].replace(os.sep, "/"))
    sys.setprofile(note)
    try:
        run(*args)
    finally:
        sys.setprofile(None)
    print(*sorted(found))

w, x = np.ones((4, 3)), np.ones((5, 4))
fad.grad(lambda x: np.sum(np.tanh(x)))(x)  # what is imported by need
fast = fad.jit(fad.grad(f))
entered(fad.grad(f), w, x)
entered(fast, w, x)
other = fad.jit(fad.grad(lambda w, x: np.sum(np.cos(x @ w))))
for _ in range(3):
    other(w, x)  # what is imported by need
entered(fast, w, x)
entered(fast, w, x)
"""


def _has_llvm():
    return importlib.util.find_spec("llvmlite") is not None


def test_how_it_works_lists_the_passes_in_the_order_of_the_pipeline():
    page = next(p for p in PAGES if p.name == "how-it-works.md").read_text(encoding="utf-8")
    tree = ast.parse((SOURCES[0].parent / "compile" / "pipeline.py").read_text(encoding="utf-8"))
    file_of = {
        alias.name: f"{node.module.rpartition('.')[2]}.py"
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    lists = [x.elts for x in ast.walk(tree) if isinstance(x, ast.Tuple) and len(x.elts) > 10]
    assert len(lists) == 2
    listed = page[page.index("The passes, in the order") :]
    for passes in lists:
        at = 0
        for name in passes:
            at = listed.find(f"{file_of[name.id]}`", at) + 1
            assert at, f"{name.id} is not listed, or not in its place"


def test_how_it_works_names_every_file_that_its_two_calls_enter():
    page = next(p for p in PAGES if p.name == "how-it-works.md").read_text(encoding="utf-8")
    here = Path(__file__).parents[2]
    run = subprocess.run([sys.executable, "-c", TRACE], capture_output=True, text=True, check=True, cwd=here)
    eager, recorded, compiled, replayed = run.stdout.splitlines()
    assert "transforms/vjp.py" in eager
    assert "staging/record.py" in recorded
    assert "compile/pipeline.py" in compiled or not _has_llvm()
    assert replayed == "jitting/jit.py" or not _has_llvm()
    for file in sorted({*eager.split(), *recorded.split(), *compiled.split()}):
        folder, _, name = file.rpartition("/")
        written = re.compile(rf"`([\w/]*/)?{name}`|`{name.removesuffix('.py')}`|`{folder}/`")
        assert written.search(page), f"{file} is on the way, too"


# --- the reference ------------------------------------------------------------------------------------------------


def _reference(monkeypatch):
    pytest.importorskip("scipy", reason="the reference has fad.scipy")
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "docs"))
    import reference

    return reference


def test_every_public_name_has_a_page_of_its_own(monkeypatch, tmp_path):
    reference = _reference(monkeypatch)
    monkeypatch.setattr(reference, "OUT", tmp_path)
    names = list(reference.everything())
    assert reference.write() >= len(names)
    pages = [f"{n.page.lower()}.rst" for n in names]
    assert len(set(pages)) == len(pages), "two pages differ in the case of letters alone"
    assert {p.name.lower() for p in tmp_path.glob("*.rst")} >= set(pages)


def test_examples_of_the_reference_name_things_as_users_do(monkeypatch):
    import fad

    reference = _reference(monkeypatch)
    text = ">>> a, b = leaves(map(f, t))\n>>> def flatten(k):\n...     return structure(k)\n>>> flatten(a)\nflatten(a)"
    expected = text.replace("leaves(map(", "fad.tree.leaves(fad.tree.map(")
    expected = expected.replace("structure(", "fad.tree.structure(")
    assert reference.full_names(text, fad.tree.leaves, "fad.tree") == expected
    assert ">>> fad.vmap(" in reference.full_names(fad.vmap.__doc__, fad.vmap, "fad")


def test_every_public_module_is_in_the_reference(monkeypatch):
    import types

    import fad

    reference = _reference(monkeypatch)
    spaces = {space for group in reference.NAMESPACES.values() for space, _ in group}
    modules = {f"fad.{n}" for n in fad.__all__ if isinstance(getattr(fad, n), types.ModuleType)}
    elsewhere = {"fad.errors", "fad.compat", "fad.ops"}  # docs/errors.md, docs/migration.md, the table of operations
    assert {m for m in modules if not any(s == m or s.startswith(m + ".") for s in spaces)} == elsewhere


def test_the_addresses_of_the_project_agree():
    import tomllib

    from fad.errors import SITE

    root = Path(__file__).parents[2]
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    citation = (root / "CITATION.cff").read_text(encoding="utf-8")
    assert project["urls"]["Documentation"] == SITE
    assert project["urls"]["Changelog"].startswith(SITE)
    assert f"url: {SITE}\n" in citation
    assert f"repository-code: {project['urls']['Repository']}\n" in citation
    assert f"version: {project['version']}\n" in citation
    assert f'"{project["urls"]["Repository"]}"' in (root / "docs" / "conf.py").read_text(encoding="utf-8")


def test_the_source_distribution_has_every_file_and_folder_of_the_repository():
    import subprocess
    import tomllib

    root = Path(__file__).parents[2]
    listed = subprocess.run(["git", "ls-files"], cwd=root, capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip("this is no checkout of the repository")
    tracked = {"/" + line.partition("/")[0] for line in listed.stdout.splitlines()}
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    included = set(project["tool"]["hatch"]["build"]["targets"]["sdist"]["include"])
    always = {"/pyproject.toml", "/.gitignore"}  # hatchling adds these itself
    assert tracked - included - always == {"/.ci"}
