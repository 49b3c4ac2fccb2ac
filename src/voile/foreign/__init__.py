"""Files of other programs: workbooks, and tables of SPSS, Stata and R, turned into Arrow.

Their formats are large, their readers are written in C and Rust, and a file of a few bytes may ask
for all memory that there is. So a process of its own reads a file, with bounded memory, and leaves
an Arrow file: see `reading`. What is done with that is what is done with any Arrow file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

WORKBOOKS = (".xlsx", ".xlsm", ".ods")
STATA, SPSS, R = (".dta",), (".sav", ".zsav"), (".rds", ".rdata", ".rda")
ENDINGS = (*WORKBOOKS, *STATA, *SPSS, *R)
"""The endings of files that are read so."""
PACKAGES = {
    **dict.fromkeys(WORKBOOKS, "python_calamine"),
    **dict.fromkeys((*STATA, *SPSS), "pyreadstat"),
    **dict.fromkeys(R, "pyreadr"),
}
"""The package that reads each; all come with the extra `files`."""
METADATA = b"voile.foreign"
"""Where a stream of Arrow says what was found besides rows, as JSON."""
READY = b"rows\n"
"""What the process says before it sends the stream."""


@dataclass(frozen=True)
class ForeignTable:
    """A table as another program's file has it."""

    rows: Any
    """An Arrow table."""
    notes: Sequence[str] = ()
    mixed: Sequence[str] = ()
    """Columns of texts that hold numbers, dates or truth values besides."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """What each column is about, in words of whoever made the file."""
    categories: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Columns whose values are shown by their labels, with all labels in the order of the codes."""

    def facts(self) -> dict[str, Any]:
        """All but the rows, as plain data."""
        return {
            "notes": list(self.notes),
            "mixed": list(self.mixed),
            "labels": dict(self.labels),
            "categories": {name: list(texts) for name, texts in self.categories.items()},
        }
