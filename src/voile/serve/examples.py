"""Examples of requests and replies, for /openapi.json: of a server about 500 people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

AT = 1_760_000_000.0
"""A moment, in seconds since 1970."""
COVERS = (
    "the statistic of the table that the server holds, at the stated confidence or more, over the "
    "noise of its answers"
)
COUNTED = {"estimate": 136.0, "stderr": 14.6, "low": 107.0, "high": 165.0}
ANSWERED = {
    "answer": 136.0, "stderr": 14.6, "low": 107.0, "high": 165.0, "charged": 1, "remaining": 7,
    "rows": [{"count": COUNTED}], "columns": ["count"], "confidence": 0.95, "covers": COVERS,
    "notes": [], "subset": "all", "subset_rows": 500, "numbers": [2],
}  # fmt: skip
CSV = "count,count_stderr,count_low,count_high\n136.0,14.6,107.0,165.0\n"
LOSS = {"distance_squared": 0.0094, "rise": 0.46, "rise_adaptive": 0.58, "passed": 4.3e-25}

REQUESTS: Mapping[str, Mapping[str, Any]] = {
    "query": {
        "a count": {"sql": "select count(*) from people where smoker"},
        "groups": {"sql": "select sex, avg(hours) from people group by sex", "confidence": 0.9},
        "what it would cost": {"sql": "select count(*) from people where age > 64",
                               "dry_run": True},
        "half of the rows": {"sql": "select count(*) from people", "subset": {"half": "seed 1"}},
    },
    "issue": {"for an analyst": {"analyst": "bob", "queries": 3, "expires": "30d"}},
    "revoke": {"all tokens of an analyst": {"analyst": "bob"}},
    "set_group": {"a group": {"name": "lab", "queries": 5}},
}  # fmt: skip
"""Bodies by operation, each with what it is about."""

REPLIES: Mapping[str, Mapping[str, Any]] = {
    "query": {
        "answered": ANSWERED,
        "what it would cost": {
            "cost": 1, "remaining": 7, "new": 1, "known": 0, "affordable": True, "groups": 1,
            "stderr": {"count": 14.6}, "notes": [],
        },
    },
    "budget": {
        "an analyst": {
            "analyst": "anna", "queries": None, "used": None, "remaining": 7, "group": None,
            "everyone": {"queries": 9, "used": 2, "remaining": 7}, "role": "analyst",
            "scopes": ["budget", "query"],
        }
    },
    "schema": {
        "a table of people": {
            "id": "12799aba99c4c16cc3eeb7634ece2afb", "name": "people", "people": 500,
            "rows": 500, "declared": True, "queries": 9, "delta": 1.0, "eta": 1e-06,
            "noise": "binomial", "variance": 213.2, "stderr": 14.6, "per_person": 1,
            "id_column": None, "subsets": [],
            "schema": {"attributes": [{
                "name": "smoker", "kind": "boolean", "values": [False, True], "null": False,
                "ordered": True, "public": "declared",
            }]},
            "promise": {"kind": "binomial", "charges": 9, "epsilon": 0.86, "delta": 1e-06},
        }
    },
    "history": {
        "one question": {
            "history": [{
                "number": 2, "at": AT, "question": {"sql": "select count(*) from people"},
                "answer": [136],
            }],
            "repeats": [],
        }
    },
    "health": {"it runs": {"status": "ok"}},
    "people": {
        "an analyst": {"people": [{
            "name": "anna", "role": "analyst", "group": None, "queries": None, "used": 2,
            "tokens": [{
                "id": "87bb2d499007", "role": "analyst", "scopes": ["budget", "query"],
                "created": AT, "expires": None, "revoked": None, "valid": True,
            }],
        }]}
    },
    "groups": {"one group": {"groups": [{"name": "lab", "queries": 5, "used": 0}]}},
    "log": {
        "a line": {"log": [{
            "number": 6, "at": AT, "who": "olga", "what": "group",
            "detail": {"name": "lab", "queries": 5},
        }]}
    },
    "audit": {
        "after two answers": {
            "server": "people", "id": "12799aba99c4c16cc3eeb7634ece2afb", "queries": 9,
            "answers": 2, "lost": 0, "delta": 1.0, "eta": 1e-06, "planned": LOSS, "worst": LOSS,
            "people": {"of": 500, "largest": LOSS},
        }
    },
    "issue": {
        "a token": {
            "token": "0259cbceac10.SHOWN-ONCE", "id": "0259cbceac10", "analyst": "bob",
            "role": "analyst", "scopes": ["budget", "query"], "expires": AT,
        }
    },
    "revoke": {"one token": {"revoked": 1}},
    "set_group": {"a group": {"name": "lab", "queries": 5}},
}  # fmt: skip
"""Bodies of replies by operation."""

REFUSALS: Mapping[int, Mapping[str, str]] = {
    400: {"error": "the body: sql: field required", "hint": "send JSON as /docs says"},
    401: {"error": "no valid token came with the request",
          "hint": "send Authorization: Bearer TOKEN; voile serve token makes one"},
    403: {"error": "this token is not for admin", "hint": "use one that is"},
    408: {"error": "the body did not arrive in time", "hint": "send one question"},
    411: {"error": "the length of the body was not given", "hint": "send Content-Length"},
    413: {"error": "the body is too large", "hint": "send one question, in fewer words"},
    415: {"error": "the body is not application/json",
          "hint": "send Content-Type: application/json"},
    429: {"error": "1 answer is needed, and 0 are left",
          "hint": "ask what was asked before: it is free"},
    503: {"error": "the server cannot answer now", "hint": "ask again: if it was answered "
          "meanwhile, the answer is kept and free"},
}  # fmt: skip
"""By status."""


def named(examples: Mapping[str, Any]) -> dict[str, Any]:
    """Examples as OpenAPI lists them."""
    return {name.replace(" ", "-"): {"summary": name, "value": value}
            for name, value in examples.items()}  # fmt: skip


def put_examples(operation: dict[str, Any], name: str) -> None:
    """Put the examples of an operation into its part of the document."""
    if name in REQUESTS:
        body = operation["requestBody"]["content"]["application/json"]
        body["examples"] = named(REQUESTS[name])
    for status, response in operation["responses"].items():
        content = response["content"]["application/json"]
        if status == "200":
            content["examples"] = named(REPLIES[name])
        else:
            content["example"] = dict(REFUSALS[int(status)])
