"""The hierarchies that ship with the tables."""

from __future__ import annotations

import glob
from pathlib import Path

FOLDER = Path(__file__).resolve().parent / "hierarchies"


def hierarchies(name: str) -> dict[str, Path]:
    """Files with the hierarchies of a shipped table's columns; empty for any other table.

    `name` is as users write it: 'dataset:adult/frontier'. The views of a table share its files.
    """
    if not name.startswith("dataset:"):
        return {}
    table = name.removeprefix("dataset:").split("/")[0]
    return {path.stem: path for path in sorted(FOLDER.glob(f"{glob.escape(table)}/*.csv"))}
