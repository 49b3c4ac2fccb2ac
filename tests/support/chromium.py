"""Which Chromium is installed, asked without what drives it: every test's setup wants to know."""

from __future__ import annotations

import shutil

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
