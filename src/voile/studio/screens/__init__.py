"""The screens in the order of the work, and the areas that belong to no project."""

from __future__ import annotations

from collections.abc import Sequence

from voile.studio.pages import Area, Screen
from voile.studio.screens import (
    attack,
    codebook,
    compare,
    hierarchies,
    preview,
    promise,
    publish,
    releases,
    risk,
    servers,
    start,
    table,
)

SCREENS: Sequence[Screen] = (
    table.SCREEN,
    codebook.SCREEN,
    hierarchies.SCREEN,
    risk.SCREEN,
    promise.SCREEN,
    compare.SCREEN,
    preview.SCREEN,
    attack.SCREEN,
    publish.SCREEN,
)
AREAS: Sequence[Area] = (start.AREA, releases.AREA, servers.AREA)
"""The start is the first."""
