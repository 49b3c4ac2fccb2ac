"""Hierarchies: read and written as files, built from a domain, suggested by counts."""

from voile.hierarchies.csvfile import (
    hierarchy_from_csv,
    hierarchy_to_csv,
    read_hierarchy,
    write_hierarchy,
)

__all__ = ["hierarchy_from_csv", "hierarchy_to_csv", "read_hierarchy", "write_hierarchy"]
