"""Estimates in the rows and columns of a query."""

from __future__ import annotations

import csv
import io
import itertools
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from voile.estimate.estimate import Estimate, jsonable
from voile.formulas import as_text, is_formula


@dataclass(frozen=True)
class Answer:
    """The answer to a query: one row for each group (one row without groups), in the query's order.

    A row maps each column of SELECT to a group's key or to an Estimate.
    """

    rows: tuple[dict[str, Any], ...]
    confidence: float
    covers: str
    notes: tuple[str, ...] = ()
    columns: Mapping[str, bool] = field(default_factory=dict)
    """The names of the columns, and which hold estimates: known also where there is no row."""
    assumption: str = ""
    """What the estimates rest on besides the release; then certain bounds stand beside them."""

    @property
    def scalar(self) -> Estimate:
        """The only estimate of the answer."""
        found = [v for row in self.rows for v in row.values() if isinstance(v, Estimate)]
        if len(found) != 1:
            raise ValueError(f"the answer holds {len(found)} estimates, not one")
        return found[0]

    @property
    def value(self) -> float:
        """The number itself, where the answer is a single one."""
        return self.scalar.value

    @property
    def stderr(self) -> float:
        """The standard error of that number."""
        return self.scalar.stderr

    def interval(self, confidence: float | None = None) -> tuple[float, float]:
        """Its interval, at the confidence of the query if no other is given."""
        return self.scalar.interval(confidence)

    # ------------------------------------------------------------------ for other programs

    def to_dict(self) -> dict[str, Any]:
        """Plain data: the keys that `voile query --json` prints."""
        plain = [
            {k: v.to_dict() if isinstance(v, Estimate) else jsonable(v) for k, v in row.items()}
            for row in self.rows
        ]
        answer: dict[str, Any] = {
            "rows": plain,
            "confidence": self.confidence,
            "covers": self.covers,
        }
        answer |= {"assumption": self.assumption} if self.assumption else {}
        return answer | ({"notes": list(self.notes)} if self.notes else {})

    def flat(self) -> list[dict[str, Any]]:
        """One row for each group with plain columns: NAME, NAME_stderr, NAME_low, NAME_high.

        Where values were grouped, NAME_certain_low and NAME_certain_high stand beside them.
        """
        return [flattened(row) for row in self.rows]

    def _names(self) -> list[str]:
        if self.rows:
            return list(flattened(self.rows[0]))
        ends = ["", "_stderr", "_low", "_high"]
        ends += ["_certain_low", "_certain_high"] if self.assumption else []
        return [name + end for name, numbers in self.columns.items()
                for end in (ends if numbers else [""])]  # fmt: skip

    def to_arrow(self) -> Any:
        """The rows of `flat` as an Arrow table."""
        import pyarrow as pa  # noqa: PLC0415  (only for this)

        rows = self.flat()
        return pa.table({name: pa.array([row[name] for row in rows]) for name in self._names()})

    def __arrow_c_schema__(self) -> Any:
        """The columns of `flat`, for any tool that speaks Arrow's PyCapsule protocol."""
        return self.to_arrow().schema.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """The rows of `flat`, for any such tool: `polars.DataFrame(answer)`."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def to_pandas(self) -> Any:
        """The rows of `flat` as a pandas DataFrame; needs pandas."""
        import pandas  # noqa: PLC0415  (an optional package)

        return pandas.DataFrame(self.flat(), columns=self._names())

    def to_polars(self) -> Any:
        """The rows of `flat` as a polars DataFrame; needs polars."""
        import polars  # noqa: PLC0415  (an optional package)

        return polars.from_arrow(self.to_arrow())

    def to_csv(self, *, safe: bool = False) -> str:
        """The rows of `flat` as CSV text with a header.

        With `safe`, texts that a spreadsheet would compute have an apostrophe in front.
        """
        names = self._names()
        lines = [names, *([row.get(name, "") for name in names] for row in self.flat())]
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerows([as_text(c) for c in line] if safe else line for line in lines)
        return text.getvalue()

    def to_parquet(self) -> bytes:
        """The rows of `flat` as a Parquet file; its metadata (`voile`) has all that is no row."""
        import pyarrow.parquet as pq  # noqa: PLC0415  (only for this)

        about = {key: value for key, value in self.to_dict().items() if key != "rows"}
        said = {b"voile": json.dumps(about, ensure_ascii=False).encode()}
        file = io.BytesIO()
        pq.write_table(self.to_arrow().replace_schema_metadata(said), file)
        return file.getvalue()

    @property
    def formulas(self) -> int:
        """How many cells of `to_csv` a spreadsheet might compute."""
        rows = [row.values() for row in self.flat()]
        return sum(map(is_formula, itertools.chain(self._names(), *rows)))

    # ------------------------------------------------------------------ for reading

    def __repr__(self) -> str:
        return f"Answer({self})"

    def __str__(self) -> str:
        lines = ["  ".join(f"{name} {value}" for name, value in row.items()) for row in self.rows]
        return "\n".join([*lines, *(f"note: {note}" for note in self.notes)])

    def __rich__(self) -> Any:
        from voile.estimate.tables import table_of  # noqa: PLC0415  (only when printed)

        return table_of(self)

    def _repr_html_(self) -> str:
        from voile.estimate.html import answer_html  # noqa: PLC0415  (only in a notebook)

        assumed = f" Assumed: {self.assumption}." if self.assumption else ""
        caption = f"Intervals at {self.confidence:.12g} cover {self.covers}.{assumed}"
        return answer_html(self.rows, self.columns, caption=caption, notes=self.notes)


def flattened(row: dict[str, Any]) -> dict[str, Any]:
    """A row with plain columns: NAME, NAME_stderr, NAME_low, NAME_high."""
    flat: dict[str, Any] = {}
    for name, value in row.items():
        if not isinstance(value, Estimate):
            flat[name] = value
            continue
        low, high = value.interval()
        flat |= {
            name: value.value,
            f"{name}_stderr": value.stderr,
            f"{name}_low": low,
            f"{name}_high": high,
        }
        if value.certain:
            flat |= {
                f"{name}_certain_low": value.certain[0],
                f"{name}_certain_high": value.certain[1],
            }
        if value.plain:
            flat[f"{name}_plain"] = value.plain.value
    return flat
