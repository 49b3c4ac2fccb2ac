"""Hierarchies: read and written as files, built from a domain, suggested by counts."""

from voile.hierarchies.csvfile import (
    hierarchy_from_csv,
    hierarchy_to_csv,
    read_hierarchy,
    write_hierarchy,
)
from voile.hierarchies.dates import calendar
from voile.hierarchies.given import hierarchy_options, read_hierarchies
from voile.hierarchies.mapping import mapped, read_mapping
from voile.hierarchies.numbers import equal_depth, equal_width, multiples
from voile.hierarchies.suggest import suggested
from voile.hierarchies.texts import masked, prefixes
from voile.hierarchies.usual import default_levels
from voile.schema.hierarchy import Hierarchy, Levels

__all__ = [
    "Hierarchy", "Levels", "calendar", "default_levels", "equal_depth", "equal_width",
    "hierarchy_from_csv", "hierarchy_options", "hierarchy_to_csv", "mapped", "masked", "multiples",
    "prefixes", "read_hierarchies", "read_hierarchy", "read_mapping", "suggested",
    "write_hierarchy",
]  # fmt: skip
