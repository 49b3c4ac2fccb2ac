"""Types of expressions, whatever an engine calls them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class ValueKind(Enum):
    """What the values of an expression are, as far as a query must know."""

    BOOLEAN = "boolean"
    INTEGER = "integer"
    NUMBER = "number"
    TEXT = "text"
    DATE = "date"
    TIME = "time"
    TIMESTAMP = "timestamp"
    INTERVAL = "interval"
    OTHER = "other"


SUMMED = frozenset([ValueKind.BOOLEAN, ValueKind.INTEGER, ValueKind.NUMBER])
GROUPED = SUMMED | {ValueKind.TEXT, ValueKind.DATE, ValueKind.TIME, ValueKind.TIMESTAMP}


@dataclass(frozen=True)
class ValueType:
    """The type of an expression: its kind, and the engine's name for messages."""

    kind: ValueKind
    name: str

    @property
    def is_condition(self) -> bool:
        """Whether its values are true and false."""
        return self.kind is ValueKind.BOOLEAN

    @property
    def can_be_summed(self) -> bool:
        """Whether its values have sums, averages and quantiles."""
        return self.kind in SUMMED

    @property
    def can_be_grouped(self) -> bool:
        """Whether its values can be keys of groups."""
        return self.kind in GROUPED

    def __str__(self) -> str:
        return self.name
