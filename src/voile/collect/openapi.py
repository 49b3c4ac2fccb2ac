"""The collector's OpenAPI document: its addresses, with examples for its own survey."""

from __future__ import annotations

import json
from typing import Any

from voile.client import Spec

ID = "00112233445566778899aabbccddeeff"
JSON = "application/json"
LONGEST = 2**16
"""Bytes of a spec that is an example of itself."""
TAKEN = {"accepted": 1, "repeated": 0}
REFUSED = {
    "type": "object", "required": ["error", "hint"], "additionalProperties": False,
    "properties": {"error": {"type": "string"}, "hint": {"type": "string"}},
}  # fmt: skip
COUNT = {"type": "integer", "minimum": 0}
WHY = {
    400: ("The submission is not what the wire format says.",
          "the submission, row 0: 'id' is not 32 hexadecimal digits", "send what the client made"),
    408: ("The body did not arrive in time.", "the body did not arrive in time",
          "send fewer rows at once"),
    411: ("The body's length was not given.", "the length of the body was not given",
          "send Content-Length"),
    413: ("The body is too large.", "the body is too large", "send fewer rows at once"),
    415: ("The body is not plain application/json.", "the body is not application/json",
          "send Content-Type: application/json"),
    422: ("The submission is for another spec.", "the submission is for another spec",
          "read the spec anew"),
    429: ("Requests come too fast; there is a Retry-After.", "requests come too fast",
          "wait as Retry-After says"),
    503: ("Rows cannot be taken now; the same bytes may be sent again.",
          "the store does not work", "the operator must look after its disk"),
}  # fmt: skip
"""Refusals by status: what they mean, and an example."""


def example_submission(spec: Spec) -> dict[str, Any]:
    """A submission of one row: the first value of every column. It is an example, and no answer."""
    values = [column.decode([0]).tolist()[0] for column in spec.columns]
    return {
        "format": "voile-rows",
        "version": 1,
        "spec": spec.digest,
        "rows": [{"id": ID, "values": values}],
    }


def document(spec: Spec) -> dict[str, Any]:
    """The document, for the survey of this spec."""
    columns = len(spec.columns)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": f"Voile: perturbed rows of {spec.name or 'a survey'}",
            "version": "1",
            "description": "Rows are perturbed before they are sent.",
        },
        "paths": {
            "/v1/spec": {"get": operation(
                "spec", "How to perturb a row; its digest is in every submission.",
                {"type": "object"}, json.loads(spec.raw) if len(spec.raw) < LONGEST else {},
            )},
            "/v1/health": {"get": operation(
                "health", "Whether rows are taken.",
                {"type": "object", "required": ["status"],
                 "properties": {"status": {"const": "ok"}}}, {"status": "ok"}, 503,
            )},
            "/v1/count": {"get": operation(
                "count", "How many rows have been taken.",
                {"type": "object", "required": ["rows"], "properties": {"rows": COUNT}},
                {"rows": 1200},
            )},
            "/v1/rows": {"post": {
                **operation(
                    "rows", "Send perturbed rows; the reply comes when all of them are on disk.",
                    {"type": "object", "required": ["accepted", "repeated"],
                     "properties": {"accepted": COUNT, "repeated": COUNT}}, TAKEN,
                    400, 408, 411, 413, 415, 422, 503,
                ),
                "requestBody": {"required": True, "content": {JSON: {
                    "schema": submission_schema(spec.digest, columns),
                    "examples": {"one-row": {
                        "summary": "one row", "value": example_submission(spec),
                    }},
                }}},
            }},
        },
    }  # fmt: skip


def operation(
    name: str, summary: str, schema: dict[str, Any], example: Any, *refusals: int
) -> dict[str, Any]:
    """An address: what it replies, and how it refuses."""
    responses: dict[str, Any] = {
        "200": {"description": "Done.", "content": {JSON: {"schema": schema, "example": example}}}
    }
    for status in sorted({*refusals, 429, 503} if name != "health" else {503}):
        about, error, hint = WHY[status]
        content = {JSON: {"schema": REFUSED, "example": {"error": error, "hint": hint}}}
        responses[str(status)] = {"description": about, "content": content}
    return {"operationId": name, "summary": summary, "responses": responses}


def submission_schema(digest: str, columns: int) -> dict[str, Any]:
    """A submission of rows with a value for each column, as the wire format says."""
    row = {
        "type": "object", "required": ["id", "values"], "additionalProperties": False,
        "properties": {
            "id": {"type": "string", "pattern": "^[0-9a-f]{32}$"},
            "values": {"type": "array", "minItems": columns, "maxItems": columns},
        },
    }  # fmt: skip
    return {
        "type": "object", "required": ["format", "version", "spec", "rows"],
        "additionalProperties": False,
        "properties": {
            "format": {"const": "voile-rows"}, "version": {"const": 1},
            "spec": {"const": digest}, "rows": {"type": "array", "items": row},
        },
    }  # fmt: skip
