"""Sphinx configuration: ``make docs`` builds the pages into docs/_build/html."""

import contextlib
import io
import runpy
from pathlib import Path

from docutils import nodes

project = "fad"
copyright = "2026, the fad developers"
extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.viewcode", "sphinx.ext.mathjax"]
html_theme = "furo"
html_title = "fad"
html_theme_options = {"light_css_variables": {"--code-font-size": "0.78rem"}}  # a line of 95 characters fits its box
nb_execution_mode = "off"
myst_enable_extensions = ["dollarmath", "colon_fence"]
myst_heading_anchors = 3
autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented_params"
exclude_patterns = ["_build", "generated/README.md"]
# The design notes quote shapes of code, not cross-references.
suppress_warnings = ["myst.xref_missing"]


_ABOUT = """Read off the registry when these pages are built; `python -m fad.ops` prints the same.

The columns *jvp*, *vjp* and *batch* (for `vmap`) say where a rule comes from: *written* by hand, filled in by the
*archetype* from one partial derivative, *derived* from another rule, *composed* of other operations, *flat* (the
derivative is zero), or a *loop* over the lanes. The last column has the NumPy functions that the operation answers for,
and *lowering* the expression that `jit` fuses.

<style>table.docutils td, table.docutils th {font-size: 0.72rem; padding: 0.1rem 0.3rem}</style>"""


def _write_operations():
    """Write the matrix of operations from the registry, so that the page cannot be out of date."""
    here = Path(__file__).parent / "generated"
    here.mkdir(exist_ok=True)
    module = runpy.run_module("fad.ops.__main__", run_name="operations")
    with contextlib.redirect_stdout(io.StringIO()):
        text = module["table"](markdown=True)
    (here / "operations.md").write_text(f"# Every operation and where its rules come from\n\n{_ABOUT}\n\n{text}\n")


_write_operations()


def _without_last_blank_lines(app, doctree):
    """An example on a page ends with a blank line, for doctest's sake, which readers need not see."""
    for block in doctree.findall(nodes.literal_block):
        text = block.astext().rstrip()
        block.rawsource = text
        block[:] = [nodes.Text(text)]


def _others(app, what, name, member, skip, options):
    """What a namespace hands on unchanged from NumPy or SciPy is described there, in words with links of their own."""
    return True if (getattr(member, "__module__", None) or "").startswith(("scipy.", "numpy.")) else None


def setup(app):
    app.connect("doctree-read", _without_last_blank_lines)
    app.connect("autodoc-skip-member", _others)
