"""Answers as CSV, Arrow and Parquet, by Accept; and the examples of /openapi.json."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from typing import Any, cast

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pydantic import TypeAdapter

from tests.support.serving import Served, begun, served
from voile.serve import examples, formats, wire
from voile.serve.app import OPERATIONS

GROUPS = "select sex, count(*) as n from people group by sex"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("formats") / "server"
    begun(folder, queries=40)
    with served(folder) as made:
        yield made


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        (None, formats.JSON),
        ("*/*", formats.JSON),
        ("text/html,application/xhtml+xml;q=0.9,*/*;q=0.8", formats.JSON),
        ("text/csv", formats.CSV),
        ("TEXT/CSV; charset=utf-8", formats.CSV),
        ("application/json;q=0.5, text/csv", formats.CSV),
        ("text/csv;q=0.5, application/json;q=0.9", formats.JSON),
        ("text/csv, application/vnd.apache.arrow.stream;q=0.9", formats.CSV),
        ("application/vnd.apache.arrow.stream", formats.ARROW),
        ("application/vnd.apache.parquet, */*", formats.PARQUET),
        ("text/csv;q=0", formats.JSON),
        ("text/csv;q=wrong", formats.JSON),
        (",;q=,", formats.JSON),
    ],
)
def test_what_is_wanted(accept: str | None, expected: str) -> None:
    assert formats.wanted(accept) == expected


def asked(server: Served, accept: str, **more: Any) -> Any:
    body = {"sql": GROUPS, **more}
    return server.request("POST", "/query", body, server.analyst, headers={"accept": accept})


def test_an_answer_is_the_same_in_every_form(server: Served) -> None:
    first = server.query(GROUPS).data
    rows = [
        {"sex": row["sex"], "n": row["n"]["estimate"], "n_stderr": row["n"]["stderr"],
         "n_low": row["n"]["low"], "n_high": row["n"]["high"]}
        for row in first["rows"]
    ]  # fmt: skip
    csv = asked(server, "text/csv")
    assert csv.headers["content-type"] == "text/csv; charset=utf-8"
    assert (csv.headers["voile-charged"], csv.headers["vary"]) == ("0", "Accept")
    assert csv.headers["voile-remaining"] == str(first["remaining"])
    lines = csv.body.decode().splitlines()
    assert lines == [",".join(rows[0]), *(",".join(map(str, row.values())) for row in rows)]
    arrow = asked(server, formats.ARROW)
    assert arrow.headers["content-type"] == formats.ARROW
    table = pa.ipc.open_stream(arrow.body).read_all()
    assert table.to_pylist() == rows
    parquet = asked(server, formats.PARQUET)
    assert parquet.headers["content-type"] == formats.PARQUET
    assert parquet.headers["voile-remaining"] == str(first["remaining"])
    again = pq.read_table(io.BytesIO(parquet.body))
    assert again.to_pylist() == rows
    for one in (table, again):
        said = json.loads(one.schema.metadata[b"voile"])
        assert said["covers"] == first["covers"]
        assert said["charged"] == 0


def test_costs_and_refusals_are_json(server: Served) -> None:
    cost = asked(server, "text/csv", dry_run=True)
    assert cost.headers["content-type"] == "application/json"
    assert cost.data["cost"] == 0
    refused = server.request("POST", "/query", {"sql": "select wrong from people"},
                             server.analyst, headers={"accept": "text/csv"})  # fmt: skip
    assert refused.status == 403
    assert set(refused.data) == {"error", "hint"}


# ---------------------------------------------------------------------- examples


def document(server: Served) -> Any:
    return server.request("GET", "/openapi.json").data


def test_every_operation_has_examples_of_all_that_it_takes_and_gives(server: Served) -> None:
    found = document(server)
    for operation in OPERATIONS:
        said = found["paths"][operation.path][operation.method.lower()]
        if operation.body is not None:
            bodies = said["requestBody"]["content"]["application/json"]["examples"]
            for example in bodies.values():
                wire.read(cast("Any", operation.body), json.dumps(example["value"]).encode())
        for status, response in said["responses"].items():
            content = response["content"]["application/json"]
            if status != "200":
                wire.RefusalResponse.model_validate(content["example"])
                continue
            models: Any = operation.answers[0]
            for other in operation.answers[1:]:
                models = models | other
            replies = [example["value"] for example in content["examples"].values()]
            assert replies
            for reply in replies:
                kept = TypeAdapter(models).validate_python(reply).model_dump(by_alias=True)
                assert set(reply) <= set(kept)
    kinds = found["paths"]["/query"]["post"]["responses"]["200"]["content"]
    assert set(kinds) == set(formats.KNOWN)
    assert kinds["text/csv"]["example"].startswith("count,count_stderr")


def test_the_examples_are_what_the_server_does(server: Served) -> None:
    """Each request of the document, sent; the replies have the keys of the examples."""
    for operation in sorted(OPERATIONS, key=lambda one: one.name != "set_group"):
        bodies = examples.REQUESTS.get(operation.name, {"": None})
        for about, body in bodies.items():
            sent = dict(body, group="lab") if operation.name == "issue" and body else body
            done = server.request(operation.method, operation.path, sent, server.admin)
            assert done.status == 200, (operation.name, about, done.body)
            shown = examples.REPLIES[operation.name]
            keys = [set(reply) for reply in shown.values()]
            assert any(each <= set(done.data) for each in keys), (operation.name, about)
