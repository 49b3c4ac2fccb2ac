"""The hierarchy of a column for which none is given."""

from __future__ import annotations

from voile.errors import SchemaError
from voile.hierarchies.dates import calendar
from voile.hierarchies.numbers import multiples, usual_widths
from voile.hierarchies.stacking import stacked
from voile.schema import Attribute
from voile.schema.hierarchy import Levels

FEW = 4
"""So few numbers need no ranges."""


def default_levels(attribute: Attribute) -> Levels:
    """Numbers get ranges that suit them, days the calendar; other values lie under '*' at once."""
    if attribute.domain.size and attribute.kind == "date":
        return calendar(attribute)
    if attribute.domain.size > FEW and attribute.kind in ("integer", "numeric"):
        try:
            return multiples(attribute, usual_widths(attribute))
        except SchemaError:  # numbers of too many digits for ranges by arithmetic
            pass
    return stacked(attribute, ())
