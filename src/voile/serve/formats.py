"""Answers in the form that a request asks for with Accept: JSON, CSV, Arrow or Parquet."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from typing import Any

from fastapi.responses import Response

from voile.remote.client import Reply
from voile.serve import examples

JSON, CSV, ARROW = "application/json", "text/csv", "application/vnd.apache.arrow.stream"
PARQUET = "application/vnd.apache.parquet"
KNOWN = (JSON, CSV, ARROW, PARQUET)
TABLES: Mapping[str, Any] = {
    CSV: {"schema": {"type": "string"}, "example": examples.CSV},
    ARROW: {"schema": {"type": "string", "format": "binary"}},
    PARQUET: {"schema": {"type": "string", "format": "binary"}},
}
"""What the OpenAPI document says of answers that are tables."""


def wanted(accept: str | None) -> str:
    """The form that a request likes best of those that there are.

    JSON where it names none of them: a refusal could not be told in another form either.
    """
    found: dict[str, float] = {}
    for part in (accept or "").split(","):
        kind, *more = (word.strip().lower() for word in part.split(";"))
        weight = next((word[2:] for word in more if word.startswith("q=")), "1")
        if kind in KNOWN and kind not in found:
            found[kind] = quality(weight)
    best = max(found.values(), default=0.0)
    return next((kind for kind in KNOWN if found.get(kind) == best > 0), JSON)


def quality(text: str) -> float:
    """A weight of Accept; what is none counts for nothing."""
    try:
        weight = float(text)
    except ValueError:
        return 0.0
    return weight if 0 <= weight <= 1 else 0.0


def in_json(made: bytes | None) -> Response:
    """A reply as it was made."""
    return Response(made, media_type=JSON, headers={"Vary": "Accept"})


def rendered(made: bytes | None, kind: str) -> Response:
    """A reply as a table; what it cost stands in headers.

    What a question would cost is no table, and is always JSON.
    """
    data = json.loads(made or b"{}")
    if "rows" not in data:
        return in_json(made)
    answer = Reply.from_dict(data).estimates
    headers = {
        "Vary": "Accept",
        "Voile-Charged": str(data["charged"]),
        "Voile-Remaining": str(data["remaining"]),
        "Voile-Confidence": f"{data['confidence']:.12g}",
    }
    if kind == CSV:
        return Response(answer.to_csv(), media_type=CSV, headers=headers)
    made_of = parquet_file if kind == PARQUET else arrow_stream
    return Response(made_of(described(answer, data)), media_type=kind, headers=headers)


def described(answer: Any, data: Mapping[str, Any]) -> Any:
    """The rows as a table of Arrow, whose metadata (`voile`) have all that is no row."""
    about = {key: value for key, value in data.items() if key != "rows"}
    said = {b"voile": json.dumps(about, ensure_ascii=False).encode()}
    return answer.to_arrow().replace_schema_metadata(said)


def arrow_stream(table: Any) -> bytes:
    """A table as a stream of Arrow."""
    import pyarrow as pa  # noqa: PLC0415  (most answers are JSON)

    file = io.BytesIO()
    with pa.ipc.new_stream(file, table.schema) as writer:
        writer.write_table(table)
    return file.getvalue()


def parquet_file(table: Any) -> bytes:
    """A table as a file of Parquet."""
    import pyarrow.parquet as pq  # noqa: PLC0415  (most answers are JSON)

    file = io.BytesIO()
    pq.write_table(table, file)
    return file.getvalue()
