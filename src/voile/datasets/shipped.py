"""The hierarchies that ship with the tables."""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).resolve().parent / "hierarchies"


def hierarchies(name: str) -> dict[str, Path]:
    """Files with the hierarchies of a shipped table's columns; empty for any other table.

    `name` is that of the dataset, with or without 'dataset:' in front.
    """
    table = name.removeprefix("dataset:").split("/")[0]
    return {path.stem: path for path in sorted((FOLDER / table).glob("*.csv"))}
