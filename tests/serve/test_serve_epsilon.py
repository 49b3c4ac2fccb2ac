"""A server that promises (ε, δ)-differential privacy: its noise, its words, its files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.serving import begun, served
from voile.errors import UsageError
from voile.privacy.interactive.promise import needed_for_epsilon
from voile.serve.setting import FILE, Setting
from voile.serve.steward import begun_data
from voile.terminal.mining import about_view
from voile.terminal.serving import begun_view, promised


def shown(view: Any) -> str:
    from rich.console import Console

    console = Console(width=400)
    with console.capture() as found:
        console.print(view)
    return found.get()


def epsilon_server(folder: Path, **options: Any) -> Setting:
    given = {"delta": None, "epsilon": 1.0, "epsilon_delta": 1e-6, "queries": 100} | options
    return begun(folder, **given)


def test_noise_is_the_least_that_keeps_epsilon_and_delta(tmp_path: Path) -> None:
    setting = epsilon_server(tmp_path / "server")
    assert setting.variance == needed_for_epsilon("binomial", 1.0, 1e-6, 100).variance
    assert setting.variance / 100 == pytest.approx(17.85, abs=0.005)
    assert Setting.open(tmp_path / "server") == setting
    told = begun_data(tmp_path / "server", setting, [])
    assert (told["epsilon"], told["epsilon_delta"]) == (1.0, 1e-6)
    assert told["promise"]["delta"] == 1e-6
    assert told["promise"]["epsilon"] <= 1 + 1e-6
    # What follows in the words of the other promise is stated, too.
    assert told["eta"] == 1e-6 and 1.1 < told["delta"] < 1.2
    words = promised(told)
    assert "(ε, δ)-differential privacy with ε = 1 and δ = 1e-06" in words
    assert "It follows: no belief" in words
    assert words in shown(begun_view(told)).replace("\n", " ")


def test_delta_of_epsilon_is_small_unless_it_is_chosen(tmp_path: Path) -> None:
    setting = epsilon_server(tmp_path / "server", epsilon_delta=None, queries=9, noise="gaussian")
    assert setting.epsilon_delta == 1e-9


def test_analysts_and_the_page_are_told(tmp_path: Path) -> None:
    epsilon_server(tmp_path / "server", queries=9)
    with served(tmp_path / "server") as server:
        about = server.request("GET", "/schema", token=server.analyst).data
        assert (about["epsilon"], about["epsilon_delta"]) == (1.0, 1e-6)
        assert "differential privacy with ε = 1 and δ = 1e-06" in shown(about_view(about))
    plain = tmp_path / "plain"
    begun(plain, queries=9)
    with served(plain) as server:
        about = server.request("GET", "/schema", token=server.analyst).data
        assert about.get("epsilon") is None
        assert "differential privacy with" not in shown(about_view(about))


def test_a_server_of_an_earlier_release_keeps_its_file_and_fingerprint(tmp_path: Path) -> None:
    """The ledger knows the digest of the file: keys that are new stand there only where used."""
    begun(tmp_path / "server", queries=9)
    written = json.loads((tmp_path / "server" / FILE).read_text())
    assert not {"epsilon", "epsilon_delta"} & written.keys()
    again = Setting.from_dict(written)
    assert again.to_dict() == written
    assert again.epsilon is None and again.accounted_at == 1e-6


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"delta": 1.0}, "delta= and epsilon= exclude each other"),
        ({"epsilon": None, "epsilon_delta": None}, "nothing says what is promised"),
        ({"epsilon": None, "delta": 1.0}, "epsilon_delta= needs epsilon="),
        ({"anytime": True}, "anytime= is for delta="),
        ({"epsilon": 0.0}, "ε = 0.0 is not above 0"),
        ({"epsilon_delta": 2.0}, "δ = 2.0 of"),
        ({"eta": 0.9}, "η = 0.9"),
    ],
)
def test_promises_that_exclude_each_other(
    tmp_path: Path, options: dict[str, Any], says: str
) -> None:
    with pytest.raises(UsageError, match=says):
        epsilon_server(tmp_path / "server", **options)
    assert list(tmp_path.iterdir()) == []


def test_a_delta_that_lets_a_row_out_is_remarked_on(tmp_path: Path) -> None:
    from tests.support.serving import CODEBOOK, table
    from voile.serve.creation import begin

    options: dict[str, Any] = {"schema": CODEBOOK, "queries": 3, "epsilon": 1.0, "register": False}
    options |= {"noise": "gaussian"}
    _, notes = begin(tmp_path / "one", table(), epsilon_delta=1e-2, **options)
    assert any("one over the number of people" in note for note in notes)
    _, notes = begin(tmp_path / "other", table(), epsilon_delta=1e-9, **options)
    assert not any("one over the number of people" in note for note in notes)
