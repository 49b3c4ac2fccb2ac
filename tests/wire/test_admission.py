"""Who is let in: SCRAM, tokens told over TLS, guesses, and what may be listened on."""

from __future__ import annotations

import base64
import socket
import ssl
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.serve.test_serve_http_process import certificate_of
from tests.support.wire import ByteClient, kinds, message, query, rows_of, said, served, startup
from voile.errors import UsageError
from voile.wire.admission import (
    OpenGuard,
    ScramError,
    ScramVerifier,
    TokenList,
    attributes,
    fits,
    read_tokens,
    scram_keys,
)
from voile.wire.opening import guard_of
from voile.wire.server import WireOptions, tls_context

TOKEN, OTHER = "a-token-that-nobody-guesses", "another-token-for-somebody-else"


class ToldTokens(TokenList):
    """Is told tokens, as a server is that keeps digests."""

    def __init__(self, tokens: list[str]) -> None:
        super().__init__(tokens)
        self.scram = None  # type: ignore[assignment]


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Path]]:
    yield certificate_of(tmp_path_factory.mktemp("tls"))


def test_scram_as_in_the_rfc() -> None:
    """The exchange of RFC 7677, section 3."""
    nonce = b"rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
    bare, binding = b"n=user,r=rOprNGfwEbeRWgbNEkqO", b"c=biws,r=" + nonce
    challenge = b"r=" + nonce + b",s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
    keys = scram_keys("pencil", base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ=="))
    signed = b",".join([bare, challenge, binding])
    proof = base64.b64decode("dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=")
    assert fits(keys, signed, proof)
    assert not fits(keys, signed, bytes(32))


@pytest.mark.parametrize(
    "first", [b"", b"p=tls-unique,,n=,r=abc", b"n,,r=abc", b"n,,n=", b"n,,n=,r=", b"n,x=1,n=,r=a",
              b"n,,n=,n=,r=abc", b"\xff\xff"],
)  # fmt: skip
def test_scram_refuses_what_begins_no_exchange(first: bytes) -> None:
    with pytest.raises(ScramError):
        ScramVerifier([TOKEN]).begin(first)


def test_scram_refuses_proofs_that_fit_nothing() -> None:
    for last in (
        b"",
        b"c=biws,r=abc,p=",
        b"c=biws,p=AAAA",
        b"r=abc,p=%%",
        b"c=biws,r=NONCE,p=AAAA",
    ):
        exchange = ScramVerifier([TOKEN, OTHER]).begin(b"n,,n=,r=abc")
        nonce = attributes(exchange.challenge)["r"]
        with pytest.raises(ScramError):
            exchange.finish(last.replace(b"NONCE", nonce))


def test_any_of_the_tokens_opens_and_others_do_not(certificate: tuple[Path, Path]) -> None:
    psycopg = pytest.importorskip("psycopg")
    chain, key = certificate
    guards = (TokenList([TOKEN, OTHER]), ToldTokens([TOKEN, OTHER]))
    for guard in guards:
        with served(guard=guard, certificate=chain, key=key) as server:
            place = f"host=127.0.0.1 port={server.port} dbname=voile user=me"
            for token in (TOKEN, OTHER):
                secure = f"sslmode=verify-ca sslrootcert={chain} password={token}"
                with psycopg.connect(f"{place} {secure}") as known:
                    assert known.execute("select count(*) as n from people").fetchone() == (12.5,)
                    assert known.pgconn.ssl_in_use
            with psycopg.connect(f"{place} sslmode=disable password={TOKEN}") as local:
                assert local.execute("select 1").fetchone() == (1,)
            for wrong in ("wrong", "x" * 500):
                with pytest.raises(psycopg.OperationalError, match="no valid token"):
                    psycopg.connect(f"{place} sslmode=disable password={wrong}")


def test_wrong_tokens_of_an_address_have_to_wait() -> None:
    with served(guard=ToldTokens([TOKEN])) as server:
        codes = []
        for _ in range(22):
            with ByteClient(server.port, start=False) as client:
                client.send(startup())
                kind, body = client.read()
                if kind == "R":
                    assert struct.unpack("!i", body) == (3,)
                    client.send(message(b"p", b"guess\0"))
                    kind, body = client.read()
                codes.append(said(body)["M"])
                assert client.ended()
    assert codes[0] == "the password is no valid token"
    assert codes[-1].startswith("too many wrong tokens")


def test_something_else_than_a_password_ends_it() -> None:
    with served(guard=ToldTokens([TOKEN])) as server:
        for sent in (query("select 1"), message(b"p", b"x" * 3000), message(b"p", b"no end")):
            with ByteClient(server.port, start=False) as client:
                client.send(startup())
                assert client.read()[0] == "R"
                client.send(sent)
                assert said(client.read()[1])["C"] == "08P01"
                assert client.ended()


def test_nothing_that_comes_before_tls_counts_within_it(certificate: tuple[Path, Path]) -> None:
    """What a machine on the way put in front is not taken for the client's (CVE-2021-23214)."""
    chain, key = certificate
    context = ssl.create_default_context(cafile=str(chain))
    with served(certificate=chain, key=key) as server:
        raw = socket.create_connection(("127.0.0.1", server.port), timeout=20)
        with raw:
            raw.sendall(struct.pack("!ii", 8, 80_877_103) + startup() + query("select 1"))
            assert raw.recv(1) == b"S"
            with pytest.raises((ssl.SSLError, ConnectionError)):
                context.wrap_socket(raw, server_hostname="127.0.0.1")
        with socket.create_connection(("127.0.0.1", server.port), timeout=20) as raw:
            raw.sendall(struct.pack("!ii", 8, 80_877_103))
            assert raw.recv(1) == b"S"
            client = ByteClient.__new__(ByteClient)
            client.socket = context.wrap_socket(raw, server_hostname="127.0.0.1")
            assert kinds(client.ask(startup())).endswith("Z")
            assert rows_of(client.ask(query("select 1"))) == [[b"1"]]
            client.socket.close()


@pytest.mark.parametrize(
    ("options", "asks", "words"),
    [
        ({"host": "0.0.0.0"}, True, "without TLS"),  # noqa: S104
        ({"host": "0.0.0.0"}, False, "anybody is let in"),  # noqa: S104
        ({"host": "nowhere.invalid"}, True, "there is no host"),
        ({"host": ""}, True, "there is no host"),
        ({"port": 70_000}, True, "is no port"),
        ({"seconds": 0.0}, True, "is no time"),
        ({"connections": 0}, True, "is out of range"),
        ({"certificate": Path("c.pem")}, True, "is missing"),
        ({"key": Path("k.pem")}, True, "is missing"),
    ],
)
def test_what_is_not_listened_on(options: dict[str, object], asks: bool, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        WireOptions(**options).checked(asks=asks)  # type: ignore[arg-type]


def test_other_machines_get_tls_and_tokens(certificate: tuple[Path, Path]) -> None:
    chain, key = certificate
    open_to_all = WireOptions("0.0.0.0", 0, chain, key)  # noqa: S104
    assert open_to_all.checked(asks=True) is open_to_all
    with pytest.raises(UsageError, match="no certificate and its key"):
        tls_context(WireOptions(certificate=chain, key=chain))
    with pytest.raises(UsageError, match="is no file"):
        tls_context(WireOptions(certificate=chain, key=Path("nothing.pem")))


def test_files_of_tokens(tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    file.write_text(f"# of the team\n{TOKEN}  # anna\n\n{OTHER}\n")
    found = read_tokens(file)
    assert found.admits(TOKEN)
    assert found.admits(OTHER)
    assert not found.admits(TOKEN + "x")
    for text, words in (
        ("", "holds no token"), ("short\n", "can be guessed"), ("two words of one token\n", "have"),
        ("\n".join(f"{TOKEN}-{i}" for i in range(101)), "at most 100"), ("ü" * 20, "characters"),
    ):  # fmt: skip
        file.write_text(text)
        with pytest.raises(UsageError, match=words):
            read_tokens(file)
    with pytest.raises(UsageError, match="cannot be read"):
        read_tokens(tmp_path / "none")


def test_nobody_is_let_in_by_accident(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="nobody could be let in"):
        guard_of(WireOptions(), None, trust=False)
    with pytest.raises(UsageError, match="exclude each other"):
        guard_of(WireOptions(), tmp_path, trust=True)
    with pytest.raises(UsageError, match="would let in"):
        guard_of(WireOptions(host="0.0.0.0"), None, trust=True)  # noqa: S104
    assert isinstance(guard_of(WireOptions(), None, trust=True), OpenGuard)
