"""How the documentation is built: `make docs`. Nothing here or in the pages needs a network."""

from __future__ import annotations

import voile

project = "Voile"
author = "the authors of Voile"
release = voile.__version__
version = release

# Formulas are written in plain text: a math renderer would be fetched from elsewhere.
extensions = ["myst_parser"]
myst_heading_anchors = 3
exclude_patterns = ["_build"]

html_theme = "furo"
html_title = f"Voile {release}"
html_extra_path = ["reference/manifest.schema.json"]
html_show_copyright = False
html_show_sphinx = False
html_copy_source = False
