"""The site of the documentation: ``sphinx-build docs build/site`` with the extra ``docs`` makes it."""

from __future__ import annotations

import logging
import re
import sys
from importlib.metadata import metadata
from pathlib import Path

from sphinx.application import Sphinx

import mc2core

DOCS = Path(__file__).parent
sys.path[:0] = [str(DOCS), str(DOCS.parent / "tools")]

import example_texts  # noqa: E402

example_texts.main(DOCS / "examples/crafts.csv", 500)  # read by an example, which links it

project = "mc2core"
author = "The MC2 experiments team"
version = release = mc2core.__version__
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx_gallery.gen_gallery",
    "commands",
    "mathml",
    "pictures",
    "tables",
]
exclude_patterns = ["examples", "gallery/**/*.md"]

myst_enable_extensions = ["deflist", "dollarmath"]
myst_fence_as_directive = ["math"]
myst_heading_anchors = 4

autosummary_generate = False
autodoc_member_order = "bysource"
autodoc_typehints = "none"  # docstrings say types, with shapes
autodoc_class_signature = "mixed"
napoleon_google_docstring = False
napoleon_use_rtype = False

sphinx_gallery_conf = {
    "examples_dirs": "examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"\.py$",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "show_signature": False,
    "min_reported_time": 10**6,
    "remove_config_comments": True,
    "within_subsection_order": "FileNameSortKey",
    "write_computation_times": False,  # their page asks the network for a script
}

html_theme = "furo"
html_title = f"mc2core {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_js_files = ["copy.js", "filter.js"]
html_math_renderer = "mathml"
html_copy_source = False
html_show_copyright = False
html_show_sphinx = False
html_search_scorer = str(DOCS / "search_scorer.js")
html_show_search_summary = False  # browsers do not fetch pages of a folder

#: [project.urls] of pyproject.toml, by name in lower case
URLS = {
    name.strip().lower(): address.strip()
    for name, _, address in (one.partition(",") for one in metadata("mc2core").get_all("Project-URL") or ())
}
if "repository" in URLS:
    html_theme_options = {
        "source_repository": URLS["repository"],
        "source_branch": "main",
        "source_directory": "docs/",
        "footer_icons": [{"name": "Repository", "url": URLS["repository"], "html": "Repository", "class": ""}],
    }

# what fits log is no part of the site
logging.getLogger("mc2core").setLevel(logging.ERROR)

#: files that are pages of the site elsewhere, from the root or from here, and where
INCLUDED = {
    "config/README.md": "how_to/configuration.md",
    "CONTRIBUTING.md": "development/contributing.md",
    "CHANGELOG.md": "development/changes.md",
    "benchmarks/README.md": "development/benchmarks.md",
    "examples/README.rst": "gallery/index.rst",
}


def link_pages(app: Sphinx, name: str, source: list[str]) -> None:
    """Links to pages that the site includes lead there, paths of pages in code become links, and no menu has notes."""
    if name.startswith("notes/"):
        source[0] = f"---\norphan: true\n---\n{source[0]}"
    for path, page in INCLUDED.items():
        source[0] = re.sub(rf"\]\((?:\.\./)*(?:docs/)?{re.escape(path)}", f"](/{page}", source[0])
    source[0] = re.sub(r"(?<!\[)`docs/([\w/]+\.md)`(?!\])", _linked, source[0])


def _linked(found: re.Match[str]) -> str:
    """A page by its title, a note as one."""
    text = "note" if found[1].startswith("notes/") else ""
    return f"[{text}](/{found[1]})" if (DOCS / found[1]).is_file() else found[0]


def link_included(app: Sphinx, path: Path, parent: str, source: list[str]) -> None:
    """The same for the text of an included file."""
    link_pages(app, parent, source)


def link_docstring(app: Sphinx, what: str, name: str, one: object, options: object, lines: list[str]) -> None:
    """Paths of pages in docstrings become links."""
    lines[:] = [re.sub(r"(?:``)?docs/([\w/]+)\.md(?:``)?", r":doc:`/\1`", line) for line in lines]


def setup(app: Sphinx) -> None:
    app.connect("autodoc-process-docstring", link_docstring)
    app.connect("source-read", link_pages)
    app.connect("include-read", link_included)
