"""`voile wire` as it is typed, rightly and wrongly."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from tests.support.processes import started
from tests.support.running import voile as run
from tests.support.wire import ByteClient, query, rows_of
from tests.wire.test_clients import people

__all__ = ["people"]
TOKEN = "a-token-that-nobody-guesses"  # noqa: S105


def test_the_first_line_says_where_and_what(people: object) -> None:
    place = str(people.path)  # type: ignore[attr-defined]
    with started("wire", place, "--port", "0", "--trust", "--json") as (process, data):
        assert data == {
            "url": f"postgresql://127.0.0.1:{data['port']}/voile", "host": "127.0.0.1",
            "port": data["port"], "tls": False,
            "password": "none is asked for", "tables": ["people"],
        }  # fmt: skip
        with ByteClient(data["port"]) as client:
            assert rows_of(client.ask(query("select 1"))) == [[b"1"]]
            process.send_signal(signal.SIGTERM)
            _, errors = process.communicate(timeout=30)
        assert (process.returncode, errors.strip()) == (0, "stopped")


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ([], "nobody could be let in"),
        (["--trust", "--token-file", "TOKENS"], "exclude each other"),
        (["--token-file", "none"], "cannot be read"),
        (["--trust", "--host", "0.0.0.0"], "would let in"),  # noqa: S104
        (["--token-file", "TOKENS", "--host", "0.0.0.0"], "without TLS"),  # noqa: S104
        (["--trust", "--port", "65536"], "is no port"),
        (["--trust", "--tls-cert", "c.pem"], "--tls-key is missing"),
        (["--trust", "--tls-key", "k.pem"], "--tls-cert is missing"),
        (["--trust", "--tls-cert", "c.pem", "--tls-key", "k.pem"], "is no file"),
        (["--trust", "--seconds", "0"], "is no time"),
        (["--trust", "--connections", "0"], "is out of range"),
        (["--trust", "--confidence", "2"], "confidence"),
        (["--trust", "--host", "nowhere.invalid"], "there is no host"),
    ],
)
def test_wrong_inputs_are_refused_before_anything_is_listened_on(
    given: list[str], words: str, tmp_path: Path, people: object
) -> None:
    tokens = tmp_path / "tokens"
    tokens.write_text(TOKEN)
    place = str(people.path)  # type: ignore[attr-defined]
    done = run("wire", place, *[str(tokens) if one == "TOKENS" else one for one in given])
    assert done.returncode == 2
    assert words in done.stderr
    assert "hint:" in done.stderr


def test_releases_that_are_none_or_twice(tmp_path: Path, people: object) -> None:
    place = str(people.path)  # type: ignore[attr-defined]
    for given, words in (
        (["none.voile"], "there is no release"),
        ([place, place], "two releases are called 'people'"),
        ([str(tmp_path)], "release"),
    ):
        done = run("wire", *given, "--trust", "--port", "0")
        assert done.returncode != 0
        assert words in done.stderr
