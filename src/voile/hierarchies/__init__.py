"""Hierarchies: read and written as files, built from a domain, suggested by counts."""

from voile.hierarchies.files import (
    hierarchy_from_csv,
    hierarchy_options,
    hierarchy_to_csv,
    mapped,
    read_hierarchies,
    read_hierarchy,
    read_mapping,
    write_hierarchy,
)
from voile.hierarchies.numbers import calendar, default_levels, equal_depth, equal_width, multiples
from voile.hierarchies.stacking import masked, prefixes
from voile.hierarchies.suggest import suggested
from voile.schema.hierarchy import Hierarchy, Levels

__all__ = [
    "Hierarchy", "Levels", "calendar", "default_levels", "equal_depth", "equal_width",
    "hierarchy_from_csv", "hierarchy_options", "hierarchy_to_csv", "mapped", "masked", "multiples",
    "prefixes", "read_hierarchies", "read_hierarchy", "read_mapping", "suggested",
    "write_hierarchy",
]  # fmt: skip
