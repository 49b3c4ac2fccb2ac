"""The collector's OpenAPI document, and its examples."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema

from tests.support.collecting import application, ask, one, survey
from voile.client import read_submission
from voile.collect.openapi import example_submission


def got(app: Any, method: str, path: str, body: bytes = b"") -> Any:
    return one(ask(app, method, path, body))


def test_the_document_has_every_address_with_examples_that_hold(tmp_path: Path) -> None:
    with application(tmp_path / "store") as app:
        found = got(app, "GET", "/v1/openapi.json").data
        assert set(found["paths"]) == {"/v1/spec", "/v1/health", "/v1/count", "/v1/rows"}
        for path, operations in found["paths"].items():
            for method, said in operations.items():
                for status, response in said["responses"].items():
                    content = response["content"]["application/json"]
                    jsonschema.validate(content["example"], content["schema"])
                    assert set(content["example"]) == {"error", "hint"} or status == "200"
                body = b""
                if "requestBody" in said:
                    content = said["requestBody"]["content"]["application/json"]
                    [example] = content["examples"].values()
                    jsonschema.validate(example["value"], content["schema"])
                    body = json.dumps(example["value"]).encode()
                done = got(app, method.upper(), path, body)
                assert done.status == 200, path
                schema = said["responses"]["200"]["content"]["application/json"]["schema"]
                jsonschema.validate(done.data, schema)
        assert got(app, "GET", "/v1/count").data == {"rows": 1}


def test_the_example_is_a_submission_of_the_survey() -> None:
    spec = survey()
    read = read_submission(json.dumps(example_submission(spec)).encode(), spec)
    assert len(read.ids) == 1
    assert read.codes.tolist() == [[0, 0, 0]]


def test_the_document_is_one_of_openapi(tmp_path: Path) -> None:
    import schemathesis

    with application(tmp_path / "store") as app:
        found = got(app, "GET", "/v1/openapi.json").data
    labels = set()
    for operation in schemathesis.openapi.from_dict(found).get_all_operations():
        known: Any = operation  # refused by `ok` where the document is wrong
        labels.add(known.ok().label)
    assert labels == {"GET /v1/spec", "GET /v1/health", "GET /v1/count", "POST /v1/rows"}
