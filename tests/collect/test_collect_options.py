"""What an operator of a collector chooses: rates, addresses, limits, and the command itself."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.support.collecting import (
    SURVEY,
    application,
    ask,
    codes_submission,
    one,
    survey,
)
from voile.cli import app as command_line
from voile.client import Spec
from voile.collect import opened
from voile.collect.server import RequestLimits, check_origins
from voile.errors import UsageError, in_shell
from voile.extras import SERVING, check_installed
from voile.web.connections import ConnectionLimits, OpenConnections
from voile.web.limits import Rate, RateLimiter, party
from voile.web.server import Address, WebOptions, bound, check_proxy, settings

# ---------------------------------------------------------------------- rates


def test_a_bucket_fills_at_its_rate() -> None:
    """Against exact arithmetic: over t seconds at most burst + rate·t requests pass."""
    now = [0.0]
    buckets = RateLimiter(Rate(2.0, 3), clock=lambda: now[0])
    assert [buckets.wait("10.0.0.1") for _ in range(3)] == [0.0] * 3
    assert buckets.wait("10.0.0.1") == pytest.approx(0.5)
    assert buckets.wait("10.0.0.2") == 0.0  # others are not affected
    now[0] = 0.25
    assert buckets.wait("10.0.0.1") == pytest.approx(0.25)  # being refused costs nothing
    now[0] = 0.5
    assert buckets.wait("10.0.0.1") == 0.0
    passed = 0
    for step in range(1, 1001):
        now[0] = 0.5 + step / 64
        passed += buckets.wait("10.0.0.1") == 0.0
    assert passed == 1000 / 64 * 2 // 1
    now[0] = 1e6
    assert [buckets.wait("10.0.0.1") for _ in range(4)].count(0.0) == 3  # never more than a burst
    now[0] = 0.0
    assert buckets.wait("10.0.0.1") > 0  # a clock that goes back gives nothing


def test_memory_of_addresses_is_bounded() -> None:
    buckets = RateLimiter(Rate(1.0, 1), clock=lambda: 0.0, addresses=100)
    for number in range(1000):
        assert buckets.wait(f"10.0.{number // 256}.{number % 256}") == 0.0
    assert len(buckets) == 100
    assert buckets.wait("10.0.3.231") > 0  # the last one is remembered
    assert buckets.wait("10.0.0.0") == 0.0  # the first one is not


@pytest.mark.parametrize(
    ("address", "shared"),
    [
        ("10.0.0.1", "10.0.0.1"),
        ("::ffff:10.0.0.1", "10.0.0.1"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2::", "2001:db8:1:2::/64"),
        ("nonsense" * 100, ("nonsense" * 100)[:64]),
        ("", ""),
    ],
)
def test_who_shares_a_bucket(address: str, shared: str) -> None:
    assert party(address) == shared


def test_who_asks_too_often_waits(tmp_path: Path) -> None:
    with application(tmp_path / "store", rate=Rate(0.01, 2)) as app:
        for _ in range(2):
            assert one(ask(app, "GET", "/v1/spec")).status == 200
        answer = one(ask(app, "GET", "/v1/nowhere"))
        assert (answer.status, answer.headers["retry-after"]) == (429, "100")
        assert one(ask(app, "GET", "/v1/spec", address="10.0.0.9")).status == 200
        for _ in range(5):
            assert one(ask(app, "GET", "/v1/health")).status == 200


# ---------------------------------------------------------------------- what a user writes


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [("127.0.0.1:8400", "127.0.0.1", 8400), ("localhost:0", "localhost", 0), ("[::1]:1", "::1", 1)],
)
def test_addresses(text: str, host: str, port: int) -> None:
    assert Address.read(text) == Address(host, port)
    assert Address.read(text).to_url() == f"http://{text}"


@pytest.mark.parametrize(
    "text", ["", "8400", ":8400", "host:", "host:x", "host:-1", "host:65536", "::1:8400", "h:١٢"]
)
def test_what_is_no_address(text: str) -> None:
    with pytest.raises(UsageError, match="address="):
        Address.read(text)


@pytest.mark.parametrize("text", ["", "50", "50/", "/s", "0/s", "-1/s", "50/day", "1e3/s", "nan/s"])
def test_what_is_no_rate(text: str) -> None:
    with pytest.raises(UsageError, match="rate="):
        Rate.read(text, 1)


def test_rates_as_people_write_them() -> None:
    assert Rate.read("50/s", 200) == Rate(50.0, 200)
    assert Rate.read("30/min", 1) == Rate(0.5, 1)
    assert Rate.read("900/h", 1) == Rate(0.25, 1)
    with pytest.raises(UsageError, match="burst=0"):
        Rate.read("50/s", 0)


def test_public_addresses_are_refused_unless_asked_for() -> None:
    for host in ("0.0.0.0", "::"):  # noqa: S104
        with (
            pytest.raises(UsageError, match="other machines"),
            bound(Address(host, 0), public=False),
        ):
            pass
    with bound(Address("0.0.0.0", 0), public=True) as listener:  # noqa: S104
        assert listener.getsockname()[1]
    with bound(Address("localhost", 0), public=False) as listener:
        port = listener.getsockname()[1]
        listener.listen()
        taken = Address("localhost", port)
        with pytest.raises(UsageError, match="cannot listen on"), bound(taken, public=False):
            pass
    with pytest.raises(UsageError, match="no host"), bound(Address("a..b", 0), public=False):
        pass


def test_limits_proxies_and_origins_are_checked() -> None:
    with pytest.raises(UsageError, match="rows=0"):
        RequestLimits(rows=0)
    with pytest.raises(UsageError, match="--most-rows 0"), in_shell():
        RequestLimits(rows=0)
    with pytest.raises(UsageError, match="bytes=10"):
        RequestLimits(bytes=10)
    with pytest.raises(UsageError, match="proxy='nginx'"):
        check_proxy("nginx")
    check_proxy("::1")
    assert check_origins(["https://survey.example:8443"]) == ("https://survey.example:8443",)
    for wrong in ("*", "survey.example", "https://survey.example/page", "https://*", ""):
        with pytest.raises(UsageError, match="origins="):
            check_origins([wrong])


def test_a_proxy_is_believed_only_if_it_is_named(tmp_path: Path) -> None:
    """Two clients behind one web server have a rate each; nobody else can claim to be others."""
    for proxy, second in (("127.0.0.1", 200), ("10.9.9.9", 429), (None, 429)):
        with application(tmp_path / f"store {proxy}", rate=Rate(0.001, 1)) as app:
            options = WebOptions(Address.of("localhost", 0), Rate(1, 1), proxy=proxy)
            config = settings(app, options, OpenConnections(ConnectionLimits()))
            config.load()
            for client, status in (("203.0.113.1", 200), ("203.0.113.2", second)):
                headers = {"x-forwarded-for": client}
                answer = one(ask(config.loaded_app, "GET", "/v1/spec", headers=headers))
                assert answer.status == status, proxy


# ---------------------------------------------------------------------- the command


def test_options_that_do_not_go_together(tmp_path: Path) -> None:
    store = ["collect", "--store", str(tmp_path / "store")]
    for options, told in (
        (["--listen", "127.0.0.1:0", "--release", "r.voile"], "exclude each other"),
        (["--overwrite"], "belongs to --release"),
        (["--most-stored", "10KB"], "--most-stored 10240 is too small"),
        ([], "there is no store"),
        (["--spec", str(tmp_path / "none.json")], "there is no spec"),
    ):
        done = CliRunner().invoke(command_line, [*store, *options])
        assert isinstance(done.exception, UsageError)
        assert told in done.exception.message
    assert not (tmp_path / "store").exists()


def test_the_release_of_a_store_as_json_and_for_people(tmp_path: Path) -> None:
    folder, target = tmp_path / "store", tmp_path / "people.voile"
    with opened(folder, survey()) as store:
        store.add([codes_submission([bytes(16), b"1" * 16], [[1, 2, 0], [3, 4, 2]])])
    command = ["collect", "--store", str(folder), "--release", str(target)]
    done = CliRunner().invoke(command_line, [*command, "--json"])
    told = json.loads(done.stdout)
    # ε by hand: 0.3·74/0.7, 0.5·1,000,001/0.5 and 0.5·5/0.5, each with 1 added.
    epsilon = math.log(1 + 0.3 * 74 / 0.7) + math.log(1_000_002) + math.log(6)
    assert told.pop("guarantee")["epsilon"] == pytest.approx(epsilon)
    assert "promises next to nothing" in told.pop("notes")[0]
    assert told.pop("registered") is True
    assert told.pop("register")["data_sets"][0]["left_before"] == 0
    assert told == {
        "release": str(target), "store": str(folder), "rows": 2, "spec": survey().digest,
        "signed_by": None,
    }  # fmt: skip
    done = CliRunner().invoke(command_line, [*command, "--overwrite"])
    assert "as they were perturbed by those who sent them" in done.stdout
    assert "local ε = 19.1 for a row" in " ".join(done.stdout.split())
    assert "promises next to nothing" in " ".join(done.stdout.split())


def test_a_store_whose_rows_could_not_be_released_is_not_filled_further(tmp_path: Path) -> None:
    """A third of a unit is no decimal step: collect refuses such specs, also in an old store."""
    thirds = {"low": 0, "step": 1, "per": 3, "count": 10}
    odd = SURVEY["columns"][1] | {"domain": thirds}
    spec = Spec.from_dict(SURVEY | {"columns": [odd]})
    with opened(tmp_path / "store", spec):
        pass
    command = ["collect", "--store", str(tmp_path / "store"), "--listen", "127.0.0.1:0"]
    done = CliRunner().invoke(command_line, command)
    assert isinstance(done.exception, UsageError)
    assert "could not be released" in done.exception.message
    assert "begin a new --store" in done.exception.hint


def test_what_is_missing_to_serve_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(UsageError, match="needs scipy and numba and fastapi") as refused:
        check_installed("a collector", SERVING, "server")
    assert refused.value.hint == "pip install 'voile[server]'"
