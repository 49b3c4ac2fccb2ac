"""The client of a server: what it sends, what it makes of answers, refusals, and lost connections.

The server here is a stub that says what a test tells it to; the real one is asked in
test_serve_pages.py and test_serve_app.py.
"""

from __future__ import annotations

import json
import math
import ssl
import subprocess
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import voile
from voile.cli import app
from voile.errors import PromiseError, QueryError, UsageError, VoileError
from voile.estimate import Estimate
from voile.remote.client import Cost, Reply, Server, connect, read_subset
from voile.remote.connection import NOT_VALID, ServerAddress, ServerError, plain

TOKEN = "abcdefghijkl.0123456789"  # noqa: S105
COUNT: dict[str, Any] = {
    "answer": 16200.0, "stderr": 52.5, "low": 16097.0, "high": 16303.0,
    "charged": 1, "remaining": 49,
    "rows": [{"count(*)": {"estimate": 16200.0, "stderr": 52.5, "low": 16097.0, "high": 16303.0}}],
    "columns": ["count(*)"], "confidence": 0.95, "covers": "the noise", "notes": ["a note"],
    "subset": "all", "subset_rows": 48842, "numbers": [7],
}  # fmt: skip
GROUPS: dict[str, Any] = COUNT | {
    "answer": None, "stderr": None, "low": None, "high": None, "charged": 0,
    "rows": [
        {"sex": "Female", "people": {"estimate": 10.0, "stderr": 2.0, "low": 6.0, "high": 14.0}},
        {"sex": None, "people": {"estimate": -1.0, "stderr": 2.0, "low": None, "high": None}},
    ],
    "columns": ["sex", "people"], "notes": [],
}  # fmt: skip
COST = {"cost": 2, "remaining": 49, "new": 2, "known": 1, "affordable": True, "groups": 1,
        "stderr": {"count(*)": 52.5, "avg(age)": None}}  # fmt: skip
BUDGET = {"analyst": "iris", "queries": 50, "used": 1, "remaining": 49, "group": None,
          "everyone": {"queries": 100, "used": 4, "remaining": 96},
          "scopes": ["budget", "query"]}  # fmt: skip
QUESTION = {"sql": "select count(*) from t", "subset": "all"}
HISTORY = {"history": [{"number": 7, "at": 1.0, "answer": [16200], "question": QUESTION}]}


@dataclass
class Asked:
    """A request as the stub saw it."""

    method: str
    path: str
    token: str
    body: Any
    peer: int


@dataclass
class Stub:
    """Answers each request with the next of `answers`, the last of them for ever."""

    answers: list[Any]
    asked: list[Asked] = field(default_factory=list)
    url: str = ""
    lock: threading.Lock = field(default_factory=threading.Lock)
    wait: threading.Event | None = None

    def next(self, asked: Asked) -> Any:
        if self.wait:
            self.wait.wait(5)
        with self.lock:
            self.asked.append(asked)
            return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


DROP = object()
"""The connection is closed without a word."""


def handler(stub: Stub) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            asked = Asked(self.command, self.path, self.headers.get("Authorization", ""),
                          json.loads(body) if body else None, self.client_address[1])  # fmt: skip
            found = stub.next(asked)
            if found is DROP:
                self.close_connection = True
                return
            status, content, headers = found if isinstance(found, tuple) else (200, found, {})
            data = content if isinstance(content, bytes) else json.dumps(content).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = answer  # noqa: N815

        def log_message(self, *_: Any) -> None:
            pass

    return Handler


class Quiet(ThreadingHTTPServer):
    """Says nothing of clients that go away."""

    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        pass


Start = Callable[..., Stub]


@pytest.fixture
def start() -> Iterator[Start]:
    servers: list[Quiet] = []

    def begin(*answers: Any, tls: ssl.SSLContext | None = None) -> Stub:
        stub = Stub(list(answers))
        server = Quiet(("127.0.0.1", 0), handler(stub))
        if tls:
            server.socket = tls.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        servers.append(server)
        stub.url = f"{'https' if tls else 'http'}://127.0.0.1:{server.server_port}"
        return stub

    yield begin
    for server in servers:
        server.shutdown()
        server.server_close()


# ---------------------------------------------------------------------- asking


def test_a_question_is_sent_as_it_was_asked_and_the_reply_is_what_was_answered(
    start: Start,
) -> None:
    stub = start(COUNT)
    with connect(stub.url, TOKEN) as server:
        reply = server.ask("select count(*) from t", "half:a:b", 0.9)
    (asked,) = stub.asked
    assert (asked.method, asked.path, asked.token) == ("POST", "/query", f"Bearer {TOKEN}")
    assert asked.body == {"sql": "select count(*) from t", "subset": {"half": "a:b"},
                          "confidence": 0.9, "dry_run": False}  # fmt: skip
    assert reply.to_dict() == COUNT
    assert (reply.answer, reply.low, reply.high, reply.charged) == (16200.0, 16097.0, 16303.0, 1)
    assert reply.estimates.value == 16200.0
    assert reply.estimates.interval() == (16097.0, 16303.0)
    assert "49 left" in str(reply)


def test_groups_are_rows_of_keys_and_estimates(start: Start) -> None:
    reply = Server(start(GROUPS).url, TOKEN).ask("select sex, count(*) as people …")
    assert reply.answer is None
    first, second = reply.estimates.rows
    assert isinstance(first["people"], Estimate)
    assert (first["sex"], second["sex"]) == ("Female", None)
    assert second["people"].interval() == (-math.inf, math.inf)
    assert reply.estimates.to_pandas()["people_low"].tolist() == [6.0, -math.inf]
    assert reply.estimates.columns == {"sex": False, "people": True}
    with pytest.raises(UsageError, match=r"at 0\.95, not 0\.5") as refused:
        first["people"].interval(0.5)
    assert "costs nothing" in refused.value.hint


def test_costs_budgets_histories_and_the_promise_are_asked_for(start: Start) -> None:
    stub = start(COST, BUDGET, HISTORY, {"name": "t"})
    server = Server(stub.url + "/", TOKEN)
    cost = server.cost("select avg(age) from t")
    assert cost == Cost(2, 49, 2, 1, {"count(*)": 52.5, "avg(age)": None}, 1)
    assert cost.affordable
    assert not Cost(2, 1, 2, 0).affordable
    assert server.budget() == BUDGET
    assert server.history() == HISTORY["history"]
    assert server.about() == {"name": "t"}
    assert stub.asked[0].body["dry_run"] is True
    assert [a.path for a in stub.asked] == ["/query", "/budget", "/history", "/schema"]


def test_a_connection_is_kept_and_threads_have_their_own(start: Start) -> None:
    stub = start(COUNT)
    with Server(stub.url, TOKEN) as server:
        for _ in range(5):
            server.ask("q")
        assert len({a.peer for a in stub.asked}) == 1
        with ThreadPoolExecutor(8) as pool:
            replies = list(pool.map(lambda i: server.ask(f"q{i}"), range(64)))
    assert all(r.answer == 16200.0 for r in replies)
    assert {a.body["sql"] for a in stub.asked[5:]} == {f"q{i}" for i in range(64)}
    assert len({a.peer for a in stub.asked}) <= 9


# ---------------------------------------------------------------------- what goes wrong


def test_a_question_whose_connection_was_lost_is_asked_once_more(start: Start) -> None:
    stub = start(DROP, COUNT)
    assert Server(stub.url, TOKEN).ask("q").answer == 16200.0
    assert len(stub.asked) == 2
    gone = start(DROP)
    with pytest.raises(ServerError, match="cannot be reached"):
        Server(gone.url, TOKEN).ask("q")
    assert len(gone.asked) == 2


def test_a_kept_connection_that_the_server_closed_meanwhile_is_no_error(start: Start) -> None:
    stub = start((200, COUNT, {}), DROP, COUNT)
    with Server(stub.url, TOKEN) as server:
        assert server.ask("q").answer == 16200.0
        assert server.ask("q").answer == 16200.0


@pytest.mark.parametrize(
    ("status", "headers", "kind", "code"),
    [
        (400, {}, UsageError, 2),
        (401, {}, UsageError, 2),
        (403, {}, QueryError, 2),
        (404, {}, UsageError, 2),
        (429, {}, PromiseError, 1),
        (429, {"Retry-After": "3600"}, ServerError, 1),
        (503, {}, ServerError, 1),
        (503, {"Retry-After": "1"}, ServerError, 1),
    ],
)
def test_refusals_keep_the_servers_words(
    start: Start, status: int, headers: dict[str, str], kind: type[VoileError], code: int
) -> None:
    stub = start((status, {"error": "no such thing", "hint": "ask\x1b[31m else"}, headers))
    with pytest.raises(kind, match="no such thing") as refused:
        Server(stub.url, TOKEN).ask("q")
    assert type(refused.value) is kind
    wanted = NOT_VALID if status == 401 else "ask\N{REPLACEMENT CHARACTER}[31m else"
    assert refused.value.hint == wanted
    assert refused.value.exit_code == code
    assert len(stub.asked) == 1


def test_who_asked_too_often_waits_as_long_as_the_server_says(start: Start) -> None:
    busy = (429, {"error": "too many requests", "hint": ""}, {"Retry-After": "0"})
    stub = start(busy, busy, COUNT)
    assert Server(stub.url, TOKEN).ask("q").answer == 16200.0
    assert len(stub.asked) == 3
    always = start(busy)
    with pytest.raises(ServerError, match="too many requests"):
        Server(always.url, TOKEN, timeout=0.5).ask("q")
    assert 2 <= len(always.asked) <= 7


@pytest.mark.parametrize(
    "answer",
    [b"<html>hello</html>", b"", b"[1]", b'{"rows": 3}', b"{}", b"[" * 100_000,
     json.dumps(COUNT | {"rows": [3]}).encode(), json.dumps(COUNT | {"charged": "x"}).encode()],
)  # fmt: skip
def test_what_is_no_server_of_ours_is_called_so(start: Start, answer: bytes) -> None:
    with pytest.raises(ServerError) as refused:
        Server(start((200, answer, {})).url, TOKEN).ask("q")
    assert refused.value.hint


def test_a_server_that_does_not_answer_in_time_is_left(start: Start) -> None:
    waiting = threading.Event()
    stub = start(COUNT)
    stub.wait = waiting
    with pytest.raises(ServerError, match="no answer in time") as refused:
        Server(stub.url, TOKEN, timeout=0.2).ask("q")
    waiting.set()
    assert "free" in refused.value.hint


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("", "not the address"),
        ("127.0.0.1:8420", "not the address"),
        ("ftp://example.org", "not the address"),
        ("http://localhost:99999", "not the address"),
        ("http://[::1", "not the address"),
        ("https://host\r\nX: y", "not the address|cannot be reached"),
        ("https://iris:secret@example.org", "more than a host"),
        ("http://127.0.0.1:1/?token=x", "more than a host"),
        ("http://example.org", "not encrypted"),
        ("http://127.0.0.1.example.org", "not encrypted"),
        ("http://10.0.0.1:8420", "not encrypted"),
        ("http://127.0.0.1:1", "cannot be reached"),
    ],
)
def test_wrong_addresses_are_refused(url: str, words: str) -> None:
    with pytest.raises(VoileError, match=words) as refused:
        Server(url, TOKEN).about()
    assert refused.value.hint
    assert "secret" not in str(refused.value)


def test_another_machine_is_asked_without_tls_only_if_told() -> None:
    assert ServerAddress.read("http://10.0.0.1:8420", insecure=True).port == 8420
    for local in ("http://localhost:1", "http://127.0.0.1", "http://[::1]:1"):
        assert not ServerAddress.read(local).secure
    assert ServerAddress.read("https://a.org/voile/").prefix == "/voile"


@pytest.mark.parametrize("token", ["", "a b", "a\r\nHost: b", "ä", "\x00"])
def test_wrong_tokens_are_refused_and_never_repeated(token: str) -> None:
    with pytest.raises(UsageError, match="token") as refused:
        Server("http://127.0.0.1:1", token)
    assert not token or token not in str(refused.value)


def test_the_token_is_in_no_repr(start: Start) -> None:
    assert TOKEN not in repr(Server(start(COUNT).url, TOKEN))


@pytest.mark.parametrize("subset", ["", "half:", {"half": ""}, {"half": 3}, {"part": "x"}, 3])
def test_wrong_subsets_are_refused(subset: Any) -> None:
    with pytest.raises(UsageError, match="subset"):
        read_subset(subset)


def test_subsets_are_read() -> None:
    assert read_subset("all") == "all"
    assert read_subset("adults") == "adults"
    assert read_subset("half:7") == {"half": "7"} == read_subset({"half": "7"})


@pytest.mark.parametrize("wrong", [0, 1, 95, math.nan, "x"])
def test_wrong_confidences_are_refused_before_anything_is_sent(start: Start, wrong: Any) -> None:
    stub = start(COUNT)
    with pytest.raises(UsageError, match="confidence"):
        Server(stub.url, TOKEN).ask("q", confidence=wrong)
    assert not stub.asked


def test_words_cannot_steer_a_terminal() -> None:
    assert plain("a\x1b]0;b\x07\r\nc\u202e") == "a\ufffd]0;b\ufffd c\ufffd"
    assert len(plain("x" * 10_000)) == 2000


def test_where_in_the_question_is_shown_as_the_server_drew_it(start: Start) -> None:
    drawn = "there is no column 'x'\n  select x\n         ^"
    with pytest.raises(QueryError) as refused:
        Server(start((403, {"error": drawn, "hint": "y"}, {})).url, TOKEN).ask("select x")
    assert refused.value.message == drawn


# ---------------------------------------------------------------------- TLS


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A certificate of 127.0.0.1 that signs itself, and its key."""
    folder = tmp_path_factory.mktemp("tls")
    cert, key = folder / "cert.pem", folder / "key.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
         "-nodes", "-keyout", key, "-out", cert, "-days", "1", "-subj", "/CN=test",
         "-addext", "subjectAltName=IP:127.0.0.1"],
        check=True, capture_output=True,
    )  # fmt: skip
    return cert, key


def test_a_server_behind_tls_is_believed_by_its_authority_only(
    start: Start, certificate: tuple[Path, Path]
) -> None:
    cert, key = certificate
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    stub = start(COUNT, tls=context)
    assert Server(stub.url, TOKEN, ca=cert).ask("q").answer == 16200.0
    with pytest.raises(ServerError, match="cannot be reached") as refused:
        Server(stub.url, TOKEN).ask("q")
    assert "ca=" in refused.value.hint
    assert len(stub.asked) == 1, "the token went to a server that nobody vouches for"


def test_tls_to_a_server_without_it_says_so(start: Start) -> None:
    with pytest.raises(ServerError, match="cannot be reached") as refused:
        Server(start(COUNT).url.replace("http:", "https:"), TOKEN, timeout=2).ask("q")
    assert refused.value.hint


@pytest.mark.parametrize("content", [None, "no certificate"])
def test_an_authority_that_is_none_is_refused(tmp_path: Path, content: str | None) -> None:
    file = tmp_path / "ca.pem"
    if content:
        file.write_text(content)
    with pytest.raises(UsageError, match=r"ca\.pem"):
        Server("https://127.0.0.1:1", TOKEN, ca=file)


# ---------------------------------------------------------------------- voile ask


def ask(*arguments: str, token: str | None = TOKEN) -> Any:
    done = CliRunner(env={"VOILE_TOKEN": token}).invoke(app, ["ask", *arguments])
    if done.exception and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done


def test_voile_ask_prints_the_keys_of_the_interface(start: Start) -> None:
    found = json.loads(ask(start(COUNT).url, "select count(*) from t", "--json").stdout)
    assert {"answer", "stderr", "low", "high", "charged", "remaining"} <= set(found)
    assert found["answer"] == 16200.0


def test_voile_ask_shows_answers_costs_budgets_and_histories(start: Start) -> None:
    shown = ask(start(COUNT).url, "q")
    assert "16,200" in shown.stdout
    assert "charged 1; 49 left" in shown.stderr
    assert "a note" in shown.stderr
    groups = ask(start(GROUPS).url, "q")
    assert "Female" in groups.stdout
    assert "free" in groups.stderr
    assert ask(start(GROUPS).url, "q", "--csv").stdout.splitlines()[0].startswith("sex,people,")
    cost = ask(start(COST).url, "q", "--dry-run").stdout
    assert "cost 2 of the 49" in cost
    assert "52.5" in cost
    budget = ask(start(BUDGET).url, "--budget").stdout
    assert "iris" in budget
    assert "96" in budget
    assert "select count(*) from t" in ask(start(HISTORY).url, "--history").stdout
    assert json.loads(ask(start(HISTORY).url, "--history", "--json").stdout) == HISTORY["history"]


def test_voile_ask_takes_the_token_from_a_file_an_option_or_the_variable(
    start: Start, tmp_path: Path
) -> None:
    file = tmp_path / "token"
    file.write_text("from-file\n")
    stub = start(COUNT)
    ask(stub.url, "q")
    ask(stub.url, "q", "--token-file", str(file))
    ask(stub.url, "q", "--token", "given", token=None)
    assert [a.token for a in stub.asked] == [f"Bearer {TOKEN}", "Bearer from-file", "Bearer given"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "no question"),
        (["q", "--budget"], "exclude each other"),
        (["--about", "--budget"], "exclude each other"),
        (["--about", "--dry-run"], "exclude each other"),
        (["--budget", "--subset", "young"], "exclude each other"),
        (["--history", "--csv"], "exclude each other"),
        (["  "], "no question"),
        (["q", "--ca", "ca.pem"], "no certificate"),
        (["q", "--token", "a", "--token-file", "b"], "exclude each other"),
        (["q", "--token-file", "/nonexistent/token"], "cannot be read"),
        (["q", "--confidence", "95"], "confidence"),
        (["q", "--subset", "half:"], "subset"),
        (["q", "--timeout", "0"], "timeout"),
    ],
)
def test_wrong_calls_of_voile_ask_send_nothing(
    start: Start, arguments: list[str], words: str
) -> None:
    stub = start(COUNT)
    with pytest.raises(UsageError, match=words):
        ask(stub.url, *arguments)
    assert not stub.asked


def test_voile_ask_needs_a_token(start: Start) -> None:
    with pytest.raises(UsageError, match="no token"):
        ask(start(COUNT).url, "q", token=None)


def test_a_servers_words_are_no_markup(start: Start) -> None:
    odd = GROUPS | {"rows": [{"sex": "[red]x[/red]\x1b[2J", "people": 3}], "columns": ["sex"]}
    shown = ask(start(odd).url, "q").stdout
    assert "[red]x[/red]" in shown
    assert "\x1b[2J" not in shown
    tricky = BUDGET | {"analyst": "[bold]i\x1b[2J"}
    assert "[bold]i" in ask(start(tricky).url, "--budget").stdout


def test_connect_is_offered_by_the_package(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    stub = start(COUNT)
    monkeypatch.setenv("VOILE_TOKEN", "of-the-variable")
    assert isinstance(voile.connect(stub.url).ask("q"), Reply)
    assert stub.asked[0].token == "Bearer of-the-variable"  # noqa: S105
