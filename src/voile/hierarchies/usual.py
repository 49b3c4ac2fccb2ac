"""The hierarchy of a column for which none is given."""

from __future__ import annotations

from voile.hierarchies.dates import calendar
from voile.hierarchies.numbers import multiples, usual_widths
from voile.hierarchies.stacking import stacked
from voile.schema import Attribute
from voile.schema.hierarchy import Levels


def default_levels(attribute: Attribute) -> Levels:
    """Numbers get ranges that suit them, days the calendar; other values lie under '*' at once."""
    if attribute.kind == "date":
        return calendar(attribute)
    if attribute.kind in ("integer", "numeric") and (widths := usual_widths(attribute)):
        return multiples(attribute, widths)
    return stacked(attribute, ())
