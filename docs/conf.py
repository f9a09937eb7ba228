"""Sphinx configuration: ``make docs`` builds the pages into docs/_build/html.

Nothing is fetched while they are built. With ``DOCS_INTERSPHINX=1`` links lead to other libraries' pages as well, for
which their inventories are read from the network.
"""

import contextlib
import io
import os
import re
import runpy
import sys
import warnings
from pathlib import Path

import matplotlib
from docutils import nodes

matplotlib.use("agg")
HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

import reference
import shorter

import fad

REPOSITORY = "https://github.com/fad-project/fad"

project = "fad"
author = "the fad developers"
copyright = f"2026, {author}"
version = release = fad.__version__
extensions = [
    "myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.viewcode", "sphinx.ext.mathjax",
    "sphinx.ext.intersphinx", "sphinx_gallery.gen_gallery", "sphinx_design", "sphinx_copybutton",
]  # fmt: skip
exclude_patterns = ["_build", "tutorials", "*.py", "learn/**.ipynb", "gallery/**.ipynb"]
# The design notes quote shapes of code, not cross-references; a page of the reference is reached from its table.
# Types of one name in two packages (fad.nn.Module, fad.eager.nn.Module) are both meant where an annotation has it.
# The examples of fad.distributed have names that others have, and are not in the gallery; a folder may have a space.
suppress_warnings = [
    "myst.xref_missing", "config.cache", "ref.python", "sphinx_gallery.duplicate_filename",
    "sphinx_gallery.space_in_filename",
]  # fmt: skip

# --- the look -----------------------------------------------------------------------------------------------------

html_theme = "pydata_sphinx_theme"
html_title = "fad"
html_logo = "_static/logo.svg"
html_favicon = "_static/logo.svg"
html_static_path = ["_static"]
html_css_files = ["fad.css"]
html_show_sourcelink = False
html_theme_options = {
    "logo": {"text": f"fad {release}", "alt_text": "fad: the first page"},
    "icon_links": [{"name": "Repository", "url": REPOSITORY, "icon": "fa-brands fa-github"}],
    "header_links_before_dropdown": 6,
    "navbar_align": "left",
    "navigation_with_keys": False,
    "show_toc_level": 2,
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
# Thousands of pages have no place in a sidebar, and are built ten times as quickly without one.
html_sidebars = {"index": [], "generated/reference/fad.**": [], "coverage": [], "generated/operations": []}

# --- words and code -----------------------------------------------------------------------------------------------

nb_execution_mode = "off"
myst_enable_extensions = ["dollarmath", "colon_fence", "deflist"]
myst_heading_anchors = 3
autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented_params"
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
copybutton_only_copy_prompt_lines = True
intersphinx_mapping = {}
if os.environ.get("DOCS_INTERSPHINX"):
    intersphinx_mapping = {
        "python": ("https://docs.python.org/3", None),
        "numpy": ("https://numpy.org/doc/stable", None),
        "scipy": ("https://docs.scipy.org/doc/scipy", None),
    }

# --- programs that are run ----------------------------------------------------------------------------------------

sphinx_gallery_conf = {
    "examples_dirs": ["tutorials", "../examples"],
    "gallery_dirs": ["learn", "gallery"],
    "filename_pattern": r"\.py$",
    "ignore_pattern": r"__init__\.py|/distributed/",  # those are for several ranks
    "subsection_order": [f"../examples/{d}" for d in (
        "physics", "biology", "chemistry", "statistics", "finance", "imaging", "robotics")],
    "within_subsection_order": "FileNameSortKey",
    "backreferences_dir": "generated/backreferences",
    "doc_module": ("fad",),
    "inspect_global_variables": False,
    "reset_argv": shorter.Arguments(),
    "abort_on_example_error": True,
    "plot_gallery": "True",
    "download_all_examples": True,
    "remove_config_comments": True,
    "show_memory": False,
    "show_signature": False,
    "min_reported_time": 20,
    "image_srcset": ["2x"],
    "thumbnail_size": (480, 250),
    "image_scrapers": ("matplotlib",),
    "matplotlib_animations": False,
    "default_thumb_file": str(HERE / "_static" / "logo.svg"),
}  # fmt: skip
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
warnings.filterwarnings("ignore", message="FigureCanvasAgg is non-interactive")

# --- pages that are written from the registry ----------------------------------------------------------------------

_ABOUT = """Read off the registry when these pages are built; `python -m fad.ops` prints the same.

The columns *jvp*, *vjp* and *batch* (for `vmap`) say where a rule comes from: *written* by hand, filled in by the
*archetype* from one partial derivative, *derived* from another rule, *composed* of other operations, *flat* (the
derivative is zero), or a *loop* over the batch. The last column has the NumPy functions that the operation answers for,
and *lowering* the expression that `jit` fuses."""


def _write_operations():
    """Write the matrix of operations from the registry, so that the page cannot be out of date."""
    here = HERE / "generated"
    here.mkdir(exist_ok=True)
    module = runpy.run_module("fad.ops.__main__", run_name="operations")
    with contextlib.redirect_stdout(io.StringIO()):
        text = module["table"](markdown=True)
    page = f"# Every operation and where its rules come from\n\n{_ABOUT}\n\n{text}\n"
    path = here / "operations.md"
    if not path.exists() or path.read_text(encoding="utf-8") != page:
        path.write_text(page, encoding="utf-8")


def _write_changelog():
    """Copy what lies at the top of the repository into the pages."""
    for name in ("CHANGELOG", "CONTRIBUTING"):
        text = (HERE.parent / f"{name}.md").read_text(encoding="utf-8")
        path = HERE / "generated" / f"{name.lower()}.md"
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


_write_operations()
_write_changelog()
reference.write()


def _without_last_blank_lines(app, doctree):
    """An example on a page ends with a blank line, for doctest's sake, which readers need not see."""
    for block in doctree.findall(nodes.literal_block):
        text = block.astext().rstrip()
        block.rawsource = text
        block[:] = [nodes.Text(text)]


def _others(app, what, name, member, skip, options):
    """What a namespace hands on unchanged from NumPy or SciPy is described there, in words with links of their own."""
    return True if (getattr(member, "__module__", None) or "").startswith(("scipy.", "numpy.")) else None


def _clean(app, what, name, thing, options, lines):
    """Leave out of docstrings that NumPy's and SciPy's parameters were taken into what only their pages resolve."""
    if what == "module":  # the page around it says what it is about
        lines.clear()
    space = name.rpartition(".")[0]
    lines[:] = reference.full_names("\n".join(lines), thing, space).splitlines()
    if name.startswith(("fad.numpy", "fad.scipy")):
        lines[:] = reference.clean("\n".join(lines)).splitlines()
    # (n, *kernel_size) is no emphasis
    lines[:] = [re.sub(r"(?<=[ (\[])\*(?=\w+[\])])", r"\\*", line) for line in lines]


def setup(app):
    app.connect("autodoc-process-docstring", _clean, priority=400)  # before napoleon
    app.connect("doctree-read", _without_last_blank_lines)
    app.connect("autodoc-skip-member", _others)
