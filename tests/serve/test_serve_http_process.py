"""A server as its steward runs it: commands, TLS, signals, kill -9."""

from __future__ import annotations

import datetime as dt
import ipaddress
import json
import shutil
import signal
import ssl
import subprocess
import sys
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.support.paths import ROOT
from tests.support.processes import plain
from tests.support.serving import CODEBOOK, begun, running, table
from tests.support.soak import rounds
from voile.cli import app
from voile.errors import UsageError, VoileError
from voile.serve.server import check_certificate, serve
from voile.serve.steward import as_printed, issue_token, ledger_of
from voile.units import duration
from voile.web.limits import Rate
from voile.web.server import Address, WebOptions

COUNT = "select count(*) from people where age >= 40"
HERE = Address("127.0.0.1", 0)
RATE = Rate(50, 200)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("serve") / "server"
    begun(made)
    return made


@pytest.fixture
def own(folder: Path, tmp_path: Path) -> Path:
    """A copy, with a ledger of its own."""
    return Path(shutil.copytree(folder, tmp_path / "server"))


def new_token(folder: Path, analyst: str = "anna", queries: int | None = None) -> str:
    made, _ = issue_token(
        folder, analyst, queries=queries, group=None, role="analyst", scopes=None, seconds=None
    )
    return made


def command(*arguments: str, capsys: pytest.CaptureFixture[str]) -> Any:
    """What a command says with --json."""
    capsys.readouterr()
    app([*arguments, "--json"], standalone_mode=False)
    return json.loads(capsys.readouterr().out)


def refused(*arguments: str) -> VoileError:
    with pytest.raises(VoileError) as found:
        app(list(arguments), standalone_mode=False)
    assert found.value.hint
    return found.value


# ---------------------------------------------------------------------- commands


def test_from_a_table_to_a_log(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import pyarrow.csv

    pyarrow.csv.write_csv(table(rows=50), tmp_path / "people.csv")
    (tmp_path / "codebook.json").write_text(json.dumps(CODEBOOK))
    server = str(tmp_path / "server")
    begun = command(
        "serve", "init", server, "--table", str(tmp_path / "people.csv"), "--schema",
        str(tmp_path / "codebook.json"), "--queries", "100", "--delta", "1", "--eta", "1e-6",
        "--subset", "young=age < 30", capsys=capsys,
    )  # fmt: skip
    assert (begun["people"], begun["queries"], begun["noise"]) == (50, 100, "binomial")
    assert begun["variance"] == pytest.approx(23.6 * 100, rel=0.001)  # errata: V/T at (1, 1e-6)
    assert begun["promise"]["rho"] == pytest.approx(100 / (2 * begun["variance"]))
    assert begun["as_printed"]["variance"] == 100
    group = command("serve", "group", server, "lab", "--queries", "9", capsys=capsys)
    assert group == {"name": "lab", "queries": 9}
    made = command(
        "serve", "token", server, "--analyst", "iris", "--queries", "5", "--group", "lab",
        "--expires", "30d", "--scope", "query", capsys=capsys,
    )  # fmt: skip
    assert (made["analyst"], made["role"], made["scopes"]) == ("iris", "analyst", ["query"])
    command("serve", "token", server, "--analyst", "olga", "--admin", capsys=capsys)
    status = command("serve", "status", server, capsys=capsys)
    assert status["everyone"] == {"queries": 100, "used": 0, "remaining": 100}
    assert [one["name"] for one in status["analysts"]] == ["iris", "olga"]
    assert made["token"] not in json.dumps(status)
    gone = command("serve", "revoke", server, "--token", made["id"], capsys=capsys)
    assert gone == {"revoked": 1}
    log = command("serve", "log", server, "--show", "2", capsys=capsys)["log"]
    assert [line["what"] for line in log] == ["revoked", "token"]
    assert command("serve", "recover", server, capsys=capsys) == {"lost": 0, "revoked": 0}


def test_what_people_see(own: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The token alone on standard output; words beside it on standard error."""
    app(["serve", "token", str(own), "--analyst", "iris"], standalone_mode=False)
    out, err = capsys.readouterr()
    assert len(out.split()) == 1
    assert "shown once" in err
    assert out.strip() not in err
    app(["serve", "status", str(own)], standalone_mode=False)
    shown = capsys.readouterr().out
    assert "iris" in shown
    assert "no bound of their own" in shown
    app(["serve", "log", str(own)], standalone_mode=False)
    assert "steward" in capsys.readouterr().out


def test_a_token_goes_to_a_new_file_or_nowhere(
    own: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "iris.token"
    given = ["serve", "token", str(own), "--analyst", "iris", "-o", str(file)]
    refused(*given, "--group", "nobody")
    assert not file.exists()
    app(given, standalone_mode=False)
    assert capsys.readouterr().out.strip().replace("\n", "") == str(file)
    assert file.stat().st_mode & 0o777 == 0o600
    with ledger_of(own) as ledger:
        found = ledger.identify(file.read_text().strip())
        assert found is not None
        assert found.name == "iris"
        count = len(ledger.people()[0]["tokens"])
    refused(*given)
    with ledger_of(own) as ledger:
        assert len(ledger.people()[0]["tokens"]) == count


def test_the_printed_variance_breaks_the_promise(folder: Path) -> None:
    """N(½, 1) exceeds 1 with chance Φ(−½) = .3085: the errata's walk at V = T."""
    from voile.serve.setting import Setting

    assert as_printed(Setting.open(folder))["breach"] == pytest.approx(0.30854, abs=1e-5)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["serve", "run", "nowhere"], "no server's folder"),
        (["serve", "status", "nowhere"], "no server's folder"),
        (["serve", "token", "nowhere", "--analyst", "a"], "no server's folder"),
        (["serve", "token", "SERVER", "--analyst", ""], "no name"),
        (["serve", "token", "SERVER", "--analyst", "a", "--queries", "-1"], "no budget"),
        (["serve", "token", "SERVER", "--analyst", "a", "--group", "x"], "no group"),
        (["serve", "token", "SERVER", "--analyst", "a", "--scope", "admin"], "scope"),
        (["serve", "token", "SERVER", "--analyst", "a", "--expires", "soon"], "not a time"),
        (["serve", "group", "SERVER", "lab", "--queries", "-2"], "no budget"),
        (["serve", "revoke", "SERVER"], "either"),
        (["serve", "revoke", "SERVER", "--analyst", "nobody"], "nobody"),
        (["serve", "run", "SERVER", "--port", "70000"], "no port"),
        (["serve", "run", "SERVER", "--host", ""], "no host"),
        (["serve", "run", "SERVER", "--host", "::"], "other machines"),
        (["serve", "run", "SERVER", "--rate", "fast"], "not a rate"),
        (["serve", "run", "SERVER", "--burst", "0"], "nobody in"),
        (["serve", "run", "SERVER", "--proxy", "nginx"], "not an IP address"),
        (["serve", "run", "SERVER", "--certificate", "c.pem"], "--key is missing"),
        (["serve", "run", "SERVER", "--key", "k.pem"], "--certificate is missing"),
        (["serve", "run", "SERVER", "--certificate", "c", "--key", "k"], "is no file"),
        (["serve", "init", "SERVER", "--table", "TABLE", "--queries", "5", "--delta", "1"],
         "exists already"),
        (["serve", "init", "new", "--table", "no.csv", "--queries", "5", "--delta", "1"], "no.csv"),
        (["serve", "init", "new", "--table", "TABLE", "--queries", "0", "--delta", "1"], "T = 0"),
        (["serve", "init", "new", "--table", "TABLE", "--queries", "5", "--delta", "0"], "δ = 0"),
        (["serve", "init", "new", "--table", "TABLE", "--queries", "5", "--delta", "1", "--eta",
          "1"], "η = 1"),
        (["serve", "init", "new", "--table", "TABLE", "--queries", "5", "--delta", "1", "--noise",
          "laplace"], "laplace"),
        (["serve", "init", "new", "--table", "TABLE", "--queries", "5", "--delta", "1",
          "--subset", "young"], "NAME=SQL"),
        (["serve", "init", "new", "--table", "TABLE", "--queries", "5", "--delta", "1",
          "--subset", "a=age < 3", "--subset", "a=age < 4"], "twice"),
        (["serve", "init", "new", "--table", "TABLE", "--queries", "5", "--delta", "1",
          "--subset", "a=no_such < 3"], "no_such"),
        (["serve", "init", "new", "--table", "TABLE", "--queries", "5", "--delta", "1",
          "--per-person", "2"], "--person"),
        (["serve", "init", "new", "--table", "TABLE", "--queries", "5", "--delta", "1",
          "--person", "nobody"], "nobody"),
    ],
)  # fmt: skip
def test_wrong_commands_say_what_is_wrong(
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    words: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "people.csv").write_text("age,sex\n31,Male\n42,Female\n")
    meant = {"SERVER": str(folder), "TABLE": "people.csv"}
    assert words in refused(*[meant.get(word, word) for word in arguments]).message
    assert sorted(path.name for path in tmp_path.iterdir()) == ["people.csv"]


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90min", 5400.0), ("12h", 43_200.0), ("30d", 2_592_000.0), (" 1w ", 604_800.0)],
)  # fmt: skip
def test_durations(text: str, seconds: float) -> None:
    assert duration(text) == seconds


@pytest.mark.parametrize("text", ["", "d", "0d", "1.5h", "-1d", "30 d", "30m", "1y", "1" * 9 + "d"])
def test_wrong_durations(text: str) -> None:
    with pytest.raises(UsageError, match="not a time"):
        duration(text)


# ---------------------------------------------------------------------- running


def test_running_stopping_and_managing_beside_it(own: Path) -> None:
    token = new_token(own)
    with running(own) as server:
        assert set(server.data) == {"url", "server", "name", "queries", "used"}
        status, found = server.ask(COUNT, token)
        assert (status, found["charged"]) == (200, 1)
        # A second server is kept out; the steward's commands are not.
        with pytest.raises(UsageError, match="another server"):
            serve(own, WebOptions(HERE, RATE), ready=lambda _: None, note=print)
        late = new_token(own, "bob", queries=0)
        assert server.ask(COUNT, late)[1]["charged"] == 0
        assert server.ask("select count(*) from people where age < 9", late)[0] == 429
        with ledger_of(own) as ledger:
            ledger.revoke(analyst="bob")
        assert server.ask(COUNT, late)[0] == 401
        code, errors = server.stop(signal.SIGINT)
    assert code == 0
    assert "answers in the ledger" in errors
    assert token not in errors
    with running(own) as server:
        assert server.data["used"] == 1
        again = server.ask(COUNT, token)[1]
        assert (again["answer"], again["charged"]) == (found["answer"], 0)
        assert server.stop()[0] == 0
    with ledger_of(own) as ledger:
        said = [event.what for _, event in ledger.events()]
    assert said.count("started") == 2
    assert said.count("stopped") == 2


def test_tls(own: Path, tmp_path: Path) -> None:
    certificate, key = certificate_of(tmp_path)
    token = new_token(own)
    context = ssl.create_default_context(cafile=str(certificate))
    options = ("--certificate", str(certificate), "--key", str(key))
    with running(own, *options, context=context) as server:
        assert server.data["url"].startswith("https://")
        assert server.ask(COUNT, token)[0] == 200
        bare = HTTPConnection(server.host, server.port, timeout=5)
        with pytest.raises((OSError, HTTPException)):
            bare.request("GET", "/health")
            bare.getresponse()
        bare.close()
        stranger = HTTPSConnection(server.host, server.port, timeout=5)
        with pytest.raises(ssl.SSLCertVerificationError):
            stranger.connect()
        stranger.close()


def test_wrong_certificates(tmp_path: Path) -> None:
    certificate, key = certificate_of(tmp_path)
    other = tmp_path / "other"
    other.mkdir()
    _, foreign = certificate_of(other)
    locked = tmp_path / "locked.pem"
    private = serialization.load_pem_private_key(key.read_bytes(), None)
    locked.write_bytes(
        private.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.BestAvailableEncryption(b"words"),
        )
    )
    nothing = tmp_path / "nothing.pem"
    nothing.write_text("no certificate")
    check_certificate(WebOptions(HERE, RATE, certificate=certificate, key=key))
    for one, two in ((certificate, foreign), (certificate, locked), (nothing, key), (key, key)):
        with pytest.raises(UsageError, match="TLS cannot use"):
            check_certificate(WebOptions(HERE, RATE, certificate=one, key=two))


def certificate_of(folder: Path) -> tuple[Path, Path]:
    """A certificate that signs itself, for 127.0.0.1, and its key."""
    private = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test")])
    now = dt.datetime.now(dt.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(private.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(hours=1))
        .not_valid_after(now + dt.timedelta(hours=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]),
            critical=False,
        )
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(private, hashes.SHA256())
    )
    certificate, key = folder / "certificate.pem", folder / "key.pem"
    certificate.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    key.write_bytes(
        private.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return certificate, key


def test_killed_servers_have_told_nothing_that_is_not_charged(tmp_path: Path) -> None:
    """Kills at random moments under load; tools/faults.py --http goes on for longer."""
    kills = rounds(8, 30)
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "tests.support.serve_http_faults",
            str(tmp_path),
            "--kills",
            str(kills),
        ],
        capture_output=True,
        text=True,
        env=plain(),
        cwd=ROOT,
        timeout=300,
        check=False,
    )
    assert done.stdout, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["wrong"] == []
    assert found["kills"] == kills
    assert found["answers"] > 0
    assert set(found["statuses"]) <= {"200"}
