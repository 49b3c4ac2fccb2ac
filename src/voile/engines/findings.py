"""What a text file's columns hold besides plain values, for the steward to decide about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from voile.errors import TableError, spelled
from voile.records import Record
from voile.units import counted

FindingKind = Literal["missing", "maybe-missing", "sentinel", "numbers", "dates", "mixed"]


@dataclass(frozen=True)
class ColumnFinding(Record):
    """Something about a column of a text file that a person should decide, or know of."""

    column: str
    what: FindingKind
    texts: Mapping[str, int]
    """The texts that are meant, the most frequent first, each with its rows."""
    settled_by: tuple[tuple[str, Any], ...] = ()
    """Options of reading, any of which decides it; the first is the likeliest."""
    beside: str = "texts"
    """What the rest of the column holds, in words."""
    stops: bool = field(default=False)
    """Whether a release without a codebook has to wait for the decision."""

    json_keys: ClassVar[tuple[str, ...]] = (
        "column", "what", "texts", "rows", "beside", "flags", "stops",
    )  # fmt: skip

    @property
    def rows(self) -> int:
        """How many rows hold one of the texts."""
        return sum(self.texts.values())

    @property
    def flags(self) -> list[str]:
        """The options as the caller writes them."""
        return [spelled(name, value) for name, value in self.settled_by]

    @property
    def shown(self) -> str:
        """Some of the texts."""
        some = ", ".join(repr(text) for text in list(self.texts)[:3])
        return some + (", …" if len(self.texts) > 3 else "")

    def message(self) -> str:
        """What was found, in a sentence."""
        where = f"column {self.column!r}"
        match self.what:
            case "missing" | "maybe-missing":
                return f"{where} holds {self.beside}, and {self.shown} in " + counted(
                    self.rows, "row"
                )
            case "sentinel":
                return (
                    f"{where}: {self.shown} lies far from all other numbers and may mean "
                    f"'missing' ({counted(self.rows, 'row')})"
                )
            case "numbers":
                return f"{where} holds {self.shown}: numbers that can be read in two ways"
            case "dates":
                return f"{where} holds {self.shown}: dates that can be read in two orders"
            case "mixed":
                return (
                    f"{where} is text: mostly {self.beside}, but also {self.shown} "
                    f"({counted(self.rows, 'row')})"
                )

    def hint(self) -> str:
        """What decides it."""
        flags = self.flags
        match self.what:
            case "missing":
                return f"add {flags[0]} to read it as NULL" + (
                    f", or {spelled('na', False)} to keep it as a text" if self.stops else ""
                )
            case "sentinel":
                return (
                    f"if it means 'missing', add {' '.join(flags)}"
                    if flags
                    else ("if it means 'missing', make those cells empty")
                )
            case "maybe-missing" | "mixed":
                return f"if it means 'missing', add {flags[0]}"
            case _:
                return f"add {' or '.join(flags)}"


def refuse_undecided(findings: Sequence[ColumnFinding], names: Sequence[str]) -> None:
    """Refuse columns that would be taken for categories and may hold something else."""
    for finding in findings:
        if finding.stops and finding.column in names:
            raise TableError(finding.message(), hint=finding.hint())
