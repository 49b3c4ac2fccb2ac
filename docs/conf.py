"""How the documentation is built: `make docs`. Nothing here or in the pages needs a network."""

from __future__ import annotations

import importlib
import itertools
import re
from typing import Any

import voile

project = "Voile"
author = "the authors of Voile"
release = voile.__version__
version = release

# Formulas are written in plain text: a math renderer would be fetched from elsewhere.
extensions = ["myst_nb", "sphinx.ext.autodoc"]
myst_heading_anchors = 3
exclude_patterns = ["_build"]

# Notebooks are saved with their outputs; tests/docs/test_notebooks.py runs them.
nb_execution_mode = "off"
# Widgets would load a script from elsewhere, and there are none.
nb_ipywidgets_js: dict[str, dict[str, str]] = {}

autodoc_default_options = {"members": True, "undoc-members": True}
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 80

html_theme = "furo"
html_title = f"Voile {release}"
html_extra_path = ["reference/manifest.schema.json"]
html_static_path = ["_static"]
html_css_files = ["frames.css"]
html_show_copyright = False
html_show_sphinx = False
html_copy_source = False


def as_restructured(line: str) -> str:
    """A docstring's line, which is Markdown, with its code marked and nothing else special."""
    pieces = line.split("`")
    plain = [re.sub(r"([*|\\]|(?<=\w)_(?!\w))", r"\\\1", piece) for piece in pieces[::2]]
    code = [f"``{piece}``" for piece in pieces[1::2]]
    return "".join(itertools.chain(*itertools.zip_longest(plain, code, fillvalue="")))


def rewrite(
    _app: Any, _kind: str, _name: str, _member: Any, _options: Any, lines: list[str]
) -> None:
    """Our docstrings are Markdown, and autodoc reads reStructuredText."""
    lines[:] = [line if ">>>" in line else as_restructured(line) for line in lines]


def readable(
    _app: Any, _kind: str, _name: str, _member: Any, _options: Any, signature: Any, returns: Any
) -> tuple[Any, Any]:
    """Defaults that are made anew each time have no value to show."""
    return signature and signature.replace("<factory>", "..."), returns


def home(name: str, member: Any) -> str | None:
    """The module nearest to `voile` that exports it, above the one where it is defined."""
    parts = str(getattr(member, "__module__", None) or "").split(".")
    for depth in range(1, len(parts) + 1):
        module = ".".join(parts[:depth])
        if parts[0] == "voile" and name in getattr(importlib.import_module(module), "__all__", ()):
            return module
    return None


def skip(app: Any, kind: str, name: str, member: Any, _skip: bool, _options: Any) -> bool | None:
    """What several modules export is described once, at its home."""
    if kind != "module":
        return None
    found = home(name, member)
    return True if found not in (None, app.env.current_document.autodoc_module) else None


def setup(app: Any) -> None:
    """Called by Sphinx."""
    app.connect("autodoc-process-docstring", rewrite)
    app.connect("autodoc-process-signature", readable)
    app.connect("autodoc-skip-member", skip)
