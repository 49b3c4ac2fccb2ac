"""Requests made from the OpenAPI document, right and wrong ones: no fault, and answers as it says.

Without a network, and with fixed examples: a run passes always or never.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.checks import CHECKS

from tests.support.serving import GENEROUS, Served, begun, served
from tests.support.soak import rounds
from voile.serve import api

EXAMPLES = rounds(12, 25)
"""Of right ones and of wrong ones, for each operation."""
WAYS = [
    ("POST", "/query"), ("GET", "/budget"), ("GET", "/schema"), ("GET", "/history"),
    ("GET", "/health"), ("GET", "/admin/people"), ("GET", "/admin/groups"), ("GET", "/admin/log"),
    ("GET", "/admin/audit"), ("POST", "/admin/tokens"), ("POST", "/admin/revoke"),
    ("POST", "/admin/groups"),
]  # fmt: skip
QUESTIONS = [
    "select count(*) from people",
    "select count(*) from people where age > 30",
    "select sex, avg(hours) from people group by sex",
    "select sum(hours) / count(*) as each from people where smoker",
    "select 1",
    "select age from people",
]
"""Documents cannot say what SQL is: some that is."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("openapi") / "server"
    begun(folder, queries=9)
    with pytest.MonkeyPatch.context() as changed:
        changed.setattr(api, "GUESSES", GENEROUS)  # wrong tokens are tried all the time
        with served(folder) as made:
            yield made


@pytest.fixture(scope="module")
def document(server: Served) -> Any:
    return schemathesis.openapi.from_asgi("/openapi.json", server.app)


def test_every_operation_is_tried(document: Any) -> None:
    found = {operation.ok().label for operation in document.get_all_operations()}
    assert found == {f"{method} {path}" for method, path in WAYS}


@pytest.mark.parametrize(
    ("method", "path", "mode"),
    [
        (*way, mode)
        for way in WAYS
        for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE)
        # Nothing can be wrong with a request that has neither parameters nor a token.
        if way != ("GET", "/health") or mode == GenerationMode.POSITIVE
    ],
)
def test_no_fault_and_answers_as_documented(
    server: Served, document: Any, method: str, path: str, mode: GenerationMode
) -> None:
    """All checks of schemathesis: no 500, statuses, kinds, headers and bodies as documented,
    wrong requests and wrong tokens refused, other methods refused.

    Left out is that whatever fits the document is accepted: it has no words for SQL or for names
    that exist.
    """
    statuses: Counter[int] = Counter()
    left_out = CHECKS.get_by_names(["positive_data_acceptance"])

    @settings(
        max_examples=EXAMPLES, derandomize=True, database=None, deadline=None,
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(
        document[path][method].as_strategy(generation_mode=mode),
        st.sampled_from([None, *QUESTIONS]),
    )
    def try_out(case: Any, question: str | None) -> None:
        if question and path == "/query" and mode == GenerationMode.POSITIVE:
            case.body["sql"] = question
        headers = {"Authorization": f"Bearer {server.admin}"}
        answer = case.call_and_validate(headers=headers, excluded_checks=left_out)
        statuses[int(answer.status_code)] += 1

    try_out()
    assert not {status for status in statuses if status >= 500}
    if mode == GenerationMode.POSITIVE and path != "/admin/revoke":  # there is nobody to revoke
        assert statuses[200] > 0
