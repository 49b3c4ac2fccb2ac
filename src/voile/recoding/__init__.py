"""Grouping rows into classes, and what is then shown of each class.

Works on numbers only: codes of quasi-identifiers and of sensitive values. A generalized value is
an interval of positions in its column's order.
"""

from voile.recoding.grouping import Grouping, Recode, Shown, bounding, shown
from voile.recoding.mondrian import mondrian
from voile.recoding.units import Units

__all__ = ["Grouping", "Recode", "Shown", "Units", "bounding", "mondrian", "shown"]
