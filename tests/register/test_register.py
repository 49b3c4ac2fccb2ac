"""The register: what leaves is in it before it does, totals add up, limits hold."""

from __future__ import annotations

import json
import os
import re
import shlex
import sqlite3
import stat
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import EntryPoints
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pytest

import voile
from tests.kinds.test_rounded import POINT
from tests.support.running import told
from tests.support.running import voile as run
from tests.support.soak import SOAK
from voile.errors import PromiseError, UsageError
from voile.kinds.registration import Departure
from voile.privacy.gaussian import epsilon_of
from voile.register import Register, RegisterError, SpendingLimit
from voile.register.accounts import DataSetAccount, RegisteredDeparture
from voile.register.keys import FingerprintKey, KeyFile
from voile.register.places import register_place

ROWS = 400


@pytest.fixture
def people(tmp_path: Path) -> Path:
    """A table of people, each with a value of their own in one column."""
    rng = np.random.default_rng(1)
    path = tmp_path / "people.csv"
    pacsv.write_csv(rows_of(rng, ROWS), path)
    return path


def rows_of(rng: np.random.Generator, number: int) -> pa.Table:
    return pa.table(
        {
            "age": rng.integers(18, 90, number),
            "zip": rng.integers(10_000, 99_999, number),
            "ill": rng.choice(["yes", "no"], number),
        }
    )


def perturbed(table: Any, to: Path, **options: Any) -> Any:
    return voile.perturb(table, 0.5, to=to, columns=["age", "ill"], **options)


def accounts(place: Path | None = None) -> dict[str, DataSetAccount]:
    return {one.data_set: one for one in Register.open(place).accounts()}


# ---------------------------------------------------------------------- what is written down


def test_every_command_that_publishes_writes_it_down(people: Path, tmp_path: Path) -> None:
    table, out = str(people), tmp_path
    commands = [
        ["publish", table, "-o", f"{out}/view.voile", "--columns", "age,ill",
         "--prior", "0.01"],
        ["publish", table, "-o", f"{out}/class.voile", "--method", "mondrian", "--k", "5",
         "--qi", "age,zip", "--sensitive", "ill"],
        ["publish", table, "-o", f"{out}/counts.voile", "--method", "conjuncts", "--arity", "1",
         "--columns", "age,ill"],
        ["perturb", table, "-o", f"{out}/rows.voile", "--retention", "0.5", "--columns", "ill"],
        ["generalize", table, "-o", f"{out}/coarse.csv", "--k", "5", "--qi", "age,zip",
         "--sensitive", "ill"],
        ["publish", table, "-o", f"{out}/one.voile", "--series", "s", "--columns", "age,ill",
         "--prior", "0.01"],
        ["serve", "init", f"{out}/server", "--table", table, "--queries", "10", "--delta", "1",
         "--columns", "age,ill"],
    ]  # fmt: skip
    for number, command in enumerate(commands, 1):
        told(command)
        (account,) = Register.open().accounts()
        assert account.data_set == "people"
        assert len(account.left) == number
        assert account.left[-1].state == "left"
        assert command[0] == "serve" or account.left[-1].what_is.path == command[3]
    kinds = {one.what_is.kind for one in account.left}
    assert len(kinds) == 6
    for name in ("view", "class", "counts", "rows", "one"):
        assert voile.open(out / f"{name}.voile").manifest.registered is True


def test_a_kind_of_another_package_is_written_down(
    people: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("voile.kinds.registry.entry_points", lambda **_: EntryPoints((POINT,)))
    method: Any = "rounded"
    voile.publish(people, method, to=tmp_path / "r.voile", columns=["age", "ill"])
    (account,) = Register.open().accounts()
    assert account.left[0].what_is.method == "rounded"
    assert account.unit_total("exchange").apart
    assert "promises nothing that adds up" in account.summary


def test_no_register_writes_nothing_down_and_says_so(
    people: Path, tmp_path: Path, register: Path
) -> None:
    done = told(["perturb", str(people), "-o", f"{tmp_path}/a.voile", "--retention", "0.5",
                 "--columns", "age,ill", "--no-register"])  # fmt: skip
    assert done["registered"] is False and done["register"] is None
    assert voile.open(tmp_path / "a.voile").manifest.registered is False
    perturbed(people, tmp_path / "b.voile", register=False)
    assert not register.exists()
    refused = run("perturb", str(people), "--retention", "0.5", "--no-register", "--register", "x")
    assert refused.returncode == 2


def test_a_simulation_is_not_written_down(people: Path, tmp_path: Path, register: Path) -> None:
    made = perturbed(people, tmp_path / "a.voile", simulate_seed=1)
    assert made.manifest.registered is False
    assert not register.exists()


def test_a_temporary_release_is_written_down_when_it_is_saved(people: Path, tmp_path: Path) -> None:
    made = voile.perturb(people, 0.5, columns=["ill"])
    assert made.manifest.registered is False
    assert not accounts()
    saved = made.save(tmp_path / "a.voile")
    assert saved.manifest.registered is True
    voile.verify(saved)
    assert len(accounts()["people"].left) == 1
    saved.save(tmp_path / "copy.voile")  # a copy of what has left tells nobody more
    assert len(accounts()["people"].left) == 1
    cost = accounts()["people"].total["epsilon"]
    made.save(tmp_path / "again.voile")
    account = accounts()["people"]
    assert len(account.left) == 2 and account.total["epsilon"] == cost


def test_a_temporary_release_needs_no_register_until_it_is_saved(
    people: Path, tmp_path: Path
) -> None:
    place = tmp_path / "a file"
    place.write_text("x")
    made = voile.perturb(people, 0.5, columns=["ill"], register=place / "r.db")
    with pytest.raises(UsageError, match="cannot make the register"):
        made.save(tmp_path / "a.voile")
    assert not (tmp_path / "a.voile").exists()


def test_a_refused_release_is_refused_again(people: Path, tmp_path: Path) -> None:
    made = voile.perturb(people, 0.5, columns=["ill"])
    Register.open().set_limit("people", SpendingLimit(0.1))
    for _ in range(2):
        with pytest.raises(PromiseError, match="limit"):
            made.save(tmp_path / "a.voile")
    assert not (tmp_path / "a.voile").exists()


def test_a_coarser_table_is_written_down_when_it_is_written(people: Path, tmp_path: Path) -> None:
    made = voile.generalize(people, qi=["age", "zip"], sensitive=["ill"], k=5)
    assert not accounts()
    made.write(tmp_path / "a.csv")
    (one,) = accounts()["people"].left
    assert one.what_is.digest
    assert one.guarantee[0]["kind"] == "k"


def test_names_of_environment_and_options(
    people: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("VOILE_REGISTER")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    assert register_place().file == tmp_path / "data" / "voile" / "register.db"
    perturbed(people, tmp_path / "a.voile")
    assert len(accounts()["people"].left) == 1
    place = tmp_path / "other.db"
    perturbed(people, tmp_path / "b.voile", register=place)
    assert len(accounts(place)["people"].left) == 1
    monkeypatch.setenv("VOILE_REGISTER", str(place))
    assert len(accounts()["people"].left) == 1
    with pytest.raises(UsageError, match="mysql"):
        register_place("mysql://there")


# ---------------------------------------------------------------------- privacy of the register


def test_files_are_for_their_owner_and_the_key_is_not_in_the_database(
    people: Path, tmp_path: Path, register: Path
) -> None:
    perturbed(people, tmp_path / "a.voile")
    key = register.with_name(f"{register.name}.key")
    for path in (register, key):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    (secret,) = json.loads(key.read_text())["keys"]
    raw = b"".join(path.read_bytes() for path in register.parent.glob(f"{register.name}*")
                   if path != key)  # fmt: skip
    assert secret.encode() not in raw and bytes.fromhex(secret) not in raw


def test_a_key_that_others_may_read_is_refused(
    people: Path, tmp_path: Path, register: Path
) -> None:
    perturbed(people, tmp_path / "a.voile")
    key = register.with_name(f"{register.name}.key")
    key.chmod(0o644)
    with pytest.raises(UsageError, match="others may read"):
        perturbed(people, tmp_path / "b.voile")
    assert not (tmp_path / "b.voile").exists()
    key.chmod(0o600)
    key.unlink()
    with pytest.raises(UsageError, match="recognises rows by the key"):
        perturbed(people, tmp_path / "b.voile")


def test_other_files_are_not_taken_for_a_register(people: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.db"
    with sqlite3.connect(other) as connection:
        connection.execute("CREATE TABLE t (a)")
    before = other.read_bytes()
    with pytest.raises(RegisterError, match="cannot be used as a register"):
        perturbed(people, tmp_path / "a.voile", register=other)
    assert other.read_bytes() == before
    assert not (tmp_path / "a.voile").exists()


def test_nothing_leaves_without_the_register(people: Path, tmp_path: Path) -> None:
    place = tmp_path / "a file"
    place.write_text("x")
    with pytest.raises(UsageError, match="cannot make the register"):
        perturbed(people, tmp_path / "a.voile", register=place / "r.db")
    assert not (tmp_path / "a.voile").exists()


# ---------------------------------------------------------------------- recognition


def test_the_same_rows_under_another_name(people: Path, tmp_path: Path) -> None:
    perturbed(people, tmp_path / "a.voile")
    other = tmp_path / "leute.csv"
    lines = people.read_text().splitlines()
    other.write_text("\n".join([lines[0], *reversed(lines[1:])]))
    done = told(["perturb", str(other), "-o", f"{tmp_path}/b.voile", "--retention", "0.5",
                 "--columns", "age,ill"])  # fmt: skip
    (found,) = done["register"]["data_sets"]
    assert found["data_set"] == "people" and found["by"] == "rows"
    assert found["left_before"] == 1
    assert any("1 release of 'people' left before" in note for note in done["notes"])
    assert list(accounts()) == ["people"]


def test_the_same_name_with_other_rows_counts_and_says_why(people: Path, tmp_path: Path) -> None:
    perturbed(people, tmp_path / "a.voile")
    pacsv.write_csv(rows_of(np.random.default_rng(2), ROWS), people)
    done = told(["perturb", str(people), "-o", f"{tmp_path}/b.voile", "--retention", "0.5",
                 "--columns", "age,ill"])  # fmt: skip
    (found,) = done["register"]["data_sets"]
    assert found["by"] == "name"
    assert "by its name alone" in " ".join(done["notes"])
    assert found["overlap"]["share"] < 0.1


def test_tables_that_were_put_together_count_for_both(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    first, second = rows_of(rng, ROWS), rows_of(rng, ROWS)
    for name, table in (("a", first), ("b", second), ("c", pa.concat_tables([first, second]))):
        pacsv.write_csv(table, tmp_path / f"{name}.csv")
        perturbed(tmp_path / f"{name}.csv", tmp_path / f"{name}.voile")
    found = accounts()
    assert {name: len(one.left) for name, one in found.items()} == {"a": 2, "b": 2}


# ---------------------------------------------------------------------- totals


def departure(number: int, *guarantee: dict[str, Any], **more: Any) -> RegisteredDeparture:
    what = Departure("a release", "m", "t", f"digest {number}", "p", guarantee, **more)
    return RegisteredDeparture(f"id {number}", float(number), what, "left", "")


def dp(epsilon: float, unit: str = "swap") -> dict[str, Any]:
    return {"kind": "dp", "epsilon": epsilon, "unit": unit}


def test_units_are_kept_apart_and_converted_by_theorem() -> None:
    account = DataSetAccount(
        "t",
        (
            departure(1, dp(1.0, "add-remove")),
            departure(2, dp(0.5)),
            departure(3, dp(0.25), unit="person"),
        ),
    )
    exchange, add, person = (
        account.unit_total(unit) for unit in ("exchange", "add-remove", "person")
    )  # fmt: skip
    assert exchange.sum.pure == pytest.approx(2 * 1.0 + 0.5 + 0.25)
    assert exchange.complete
    assert add.sum.pure == pytest.approx(1.0) and len(add.apart) == 2
    assert person.sum.pure == pytest.approx(0.25) and len(person.apart) == 2


@pytest.mark.parametrize(
    ("stated", "alone", "exchanged"),
    [
        ({"kind": "zcdp", "rho": 0.02}, "rho", 4.0),
        ({"kind": "gdp", "mu": 0.2}, "rho", 4.0),
        ({"kind": "approximate-dp", "epsilon": 0.5, "delta": 1e-10}, "epsilon", 2.0),
    ],
)
def test_small_probabilities_are_counted_for_their_unit(
    stated: dict[str, Any], alone: str, exchanged: float
) -> None:
    """A unit that is not stated is exchanging; adding or removing leads to it by theorem."""
    unstated = DataSetAccount("t", (departure(1, stated),))
    assert not unstated.unit_total("add-remove").complete
    once = getattr(unstated.unit_total("exchange").sum, alone)
    added = DataSetAccount("t", (departure(1, stated | {"unit": "add-remove"}),))
    assert getattr(added.unit_total("add-remove").sum, alone) == pytest.approx(once)
    assert getattr(added.unit_total("exchange").sum, alone) == pytest.approx(exchanged * once)
    assert not added.unit_total("person").complete


def test_gaussian_releases_add_up_by_the_squares_of_mu() -> None:
    said = {"kind": "gdp", "mu": 0.3, "unit": "add-remove"}
    account = DataSetAccount("t", tuple(departure(n, said) for n in range(4)))
    added, exchanged = (account.unit_total(unit).sum for unit in ("add-remove", "exchange"))
    assert added.epsilon == pytest.approx(epsilon_of(0.6, 1e-9))
    assert exchanged.epsilon == pytest.approx(epsilon_of(1.2, 1e-9))
    assert "GDP" in added.way


def test_a_view_alone_gives_no_epsilon_for_adding_a_record() -> None:
    said = {"kind": "relative", "d": 0.01, "delta": 1.0, "condition": "of the view alone: n"}
    account = DataSetAccount("t", (departure(1, said),))
    assert not account.unit_total("add-remove").complete
    assert account.unit_total("add-remove").sum.epsilon is None


def test_beliefs_add_up_from_pure_parts_alone() -> None:
    said = {"kind": "d-gamma", "d": 0.001, "gamma": 0.01, "adversary": "independent"}
    one = DataSetAccount("t", (departure(1, said),))
    assert one.beliefs is not None and one.beliefs.posterior == pytest.approx(0.01)
    two = DataSetAccount("t", (departure(1, said), departure(2, said)))
    assert two.beliefs is not None
    # Beliefs fall to at least (d/γ)² of what they were: γ = d·(γ/d)².
    assert two.beliefs.posterior == pytest.approx(0.1)
    mixed = two.with_departure(departure(3, {"kind": "zcdp", "rho": 0.1}))
    assert mixed.beliefs is None


def test_what_keeps_one_promise_together_counts_once() -> None:
    views = [departure(n, dp(1.0), group="series s", member=str(n)) for n in (1, 2, 3)]
    assert DataSetAccount("t", tuple(views)).unit_total("exchange").sum.pure == pytest.approx(1)
    again = departure(4, dp(1.0), group="series s", member="2")  # a second view 2
    account = DataSetAccount("t", (*views, again))
    assert account.unit_total("exchange").sum.pure == pytest.approx(2)


def test_the_views_of_a_series_count_once(people: Path, tmp_path: Path) -> None:
    rng = np.random.default_rng(4)
    options: dict[str, Any] = {"columns": ["age", "ill"], "series": "s", "prior": 0.001}
    totals = []
    for number in range(3):
        table = rows_of(rng, ROWS)
        pacsv.write_csv(table, people)
        voile.publish(people, to=tmp_path / f"{number}.voile", **options)
        totals.append(accounts()["people"].unit_total("exchange").sum.pure)
    assert totals[0] is not None and totals == [totals[0]] * 3
    voile.publish(people, to=tmp_path / "same.voile", **options)  # the identical view again
    account = accounts()["people"]
    assert len(account.left) == 4
    assert account.unit_total("exchange").sum.pure == totals[0]


def test_a_server_that_promises_epsilon_says_so_first(people: Path, tmp_path: Path) -> None:
    """Its own δ may be larger than that of totals; these count it at theirs."""
    told(["serve", "init", f"{tmp_path}/s", "--table", str(people), "--queries", "20", "--epsilon",
          "1", "--epsilon-delta", "1e-6", "--columns", "age,ill"])  # fmt: skip
    account = accounts()["people"]
    assert account.left[0].guarantee[0] == {
        "kind": "approximate-dp", "epsilon": 1.0, "delta": 1e-6,
    }  # fmt: skip
    assert account.left[0].promise == "approximate-dp(epsilon=1, delta=1e-06)"
    total = account.unit_total("exchange").sum
    assert total.delta <= 1e-9
    assert total.epsilon is not None and 1 < total.epsilon < 1.5
    assert not account.unit_total("add-remove").complete


def test_a_server_counts_with_all_answers_it_may_give(people: Path, tmp_path: Path) -> None:
    told(["serve", "init", f"{tmp_path}/s", "--table", str(people), "--queries", "20", "--delta",
          "1", "--noise", "geometric", "--person", "zip", "--per-person", "2",
          "--columns", "age,ill"])  # fmt: skip
    (account,) = Register.open().accounts()
    total = account.unit_total("person")
    assert total.complete and total.sum.pure is not None
    setting = json.loads((tmp_path / "s" / "server.json").read_text())
    rate = 2 * np.arcsinh(np.sqrt(1 / (2 * setting["variance"])))
    assert total.sum.pure == pytest.approx(20 * rate, rel=1e-6)
    assert account.unit_total("exchange").sum.pure == total.sum.pure
    assert not account.unit_total("add-remove").complete


# ---------------------------------------------------------------------- limits


def test_a_limit_refuses_before_anything_leaves(people: Path, tmp_path: Path) -> None:
    first = perturbed(people, tmp_path / "a.voile")
    cost = first.manifest.guarantee.epsilon
    told(["register", "limit", "people", "--epsilon", f"{1.5 * cost}"])
    with pytest.raises(PromiseError, match="all of it would add up to ε") as refused:
        perturbed(people, tmp_path / "b.voile")
    assert "1 release left before" in refused.value.message
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.voile", "people.csv"]
    assert len(accounts()["people"].left) == 1
    command = shlex.split(refused.value.hint.split("limit: ")[1])
    assert run(*command[1:]).returncode == 0  # the hint does what it says
    perturbed(people, tmp_path / "b.voile")
    assert len(accounts()["people"].left) == 2


def test_a_limit_holds_for_the_same_rows_under_another_name(people: Path, tmp_path: Path) -> None:
    perturbed(people, tmp_path / "a.voile")
    told(["register", "limit", "people", "--epsilon", "0.1"])
    with pytest.raises(PromiseError, match="'people'"):
        perturbed(people, tmp_path / "b.voile", name="others")


def test_classes_are_refused_under_a_limit(people: Path, tmp_path: Path) -> None:
    told(["register", "limit", "people", "--epsilon", "1000"])
    made = voile.generalize(people, qi=["age", "zip"], sensitive=["ill"], k=5)
    with pytest.raises(PromiseError, match="no limit in ε bounds") as refused:
        made.write(tmp_path / "a.csv")
    assert not (tmp_path / "a.csv").exists()
    command = shlex.split(refused.value.hint.split("limit: ")[1])
    assert run(*command[1:]).returncode == 0
    made.write(tmp_path / "a.csv")


def test_a_limit_with_a_delta(people: Path, tmp_path: Path) -> None:
    counts: dict[str, Any] = {
        "method": "conjuncts", "arity": 1, "columns": ["age", "ill"], "rho": 0.04,
        "noise": "gaussian",
    }  # fmt: skip
    told(["register", "limit", "people", "--epsilon", "1"])
    with pytest.raises(PromiseError, match="at δ = 1e-06"):
        voile.publish(people, to=tmp_path / "a.voile", **counts)
    told(["register", "limit", "people", "--epsilon", "2", "--delta", "1e-5"])
    for number in range(20):
        try:
            voile.publish(people, to=tmp_path / f"{number}.voile", **counts)
        except PromiseError:
            break
    total = accounts()["people"].unit_total("exchange").sum
    assert total.epsilon is not None and 1 < total.epsilon <= 2
    assert total.rho == pytest.approx(0.04 * number, rel=0.01)


def test_limits_that_make_no_sense() -> None:
    for arguments in (
        ["--epsilon", "-1"], ["--epsilon", "nan"], ["--epsilon", "1", "--delta", "1"], [],
        ["--epsilon", "1", "--unit", "person?"], ["--epsilon", "1", "--none"],
    ):  # fmt: skip
        assert run("register", "limit", "people", *arguments).returncode == 2, arguments
    assert run("register", "show", "people").returncode == 2


TWO = """
import sys, voile
voile.perturb(sys.argv[1], 0.5, to=sys.argv[2], columns=["age", "ill"])
"""


def of_programs(table: Path, places: list[Path]) -> list[str]:
    """What each of several programs says at last."""
    racing = [
        subprocess.Popen(
            [sys.executable, "-c", TWO, str(table), str(place)], stderr=subprocess.PIPE, text=True
        )
        for place in places
    ]
    ends = [process.communicate()[1] for process in racing]
    assert sorted(process.returncode for process in racing) == [0, 1]
    return ends


def of_threads(table: Path, places: list[Path]) -> list[str]:
    """The same of threads of this program, which starts none: each has its own connection."""
    meeting = threading.Barrier(len(places))

    def publish(place: Path) -> str:
        meeting.wait()
        try:
            perturbed(table, place)
        except PromiseError as refusal:
            return str(refusal)
        return ""

    with ThreadPoolExecutor(len(places)) as pool:
        return list(pool.map(publish, places))


def test_of_two_who_publish_at_once_a_limit_allows_one(people: Path, tmp_path: Path) -> None:
    cost = perturbed(people, tmp_path / "a.voile").manifest.guarantee.epsilon
    told(["register", "limit", "people", "--epsilon", f"{2.5 * cost}"])
    race = of_programs if SOAK else of_threads
    ends = race(people, [tmp_path / f"{n}.voile" for n in range(2)])
    assert sorted(bool(end) for end in ends) == [False, True]
    assert sum("would add up to" in end for end in ends) == 1
    assert len(list(tmp_path.glob("[0-9].voile"))) == 1
    assert len(accounts()["people"].left) == 2


# ---------------------------------------------------------------------- commands


def test_what_the_commands_print(people: Path, tmp_path: Path) -> None:
    assert told(["register"]) == []
    assert "nothing has left yet" in run("register").stdout
    perturbed(people, tmp_path / "a.voile")
    (one,) = told(["register"])
    assert {"data_set", "left", "total", "limit"} <= set(one)
    assert {"when", "what", "guarantee"} <= set(one["left"][0])
    assert one["total"]["epsilon"] > 0 and one["total"]["delta"] == 0
    assert told(["register", "show", "people"]) == [one]
    assert one["limit"] is None
    (limited,) = told(["register", "limit", "people", "--epsilon", "50", "--delta", "1e-9"])
    assert limited["limit"] == {"epsilon": 50, "delta": 1e-9, "unit": "exchange"}
    assert "people" in run("register").stdout
    assert "did you mean 'people'" in run("register", "show", "peple").stderr


def test_a_withdrawn_release_still_counts(people: Path, tmp_path: Path) -> None:
    perturbed(people, tmp_path / "a.voile")
    before = accounts()["people"].total
    (found,) = told(["register", "withdraw", "people", str(tmp_path / "a.voile"), "--note", "why"])
    assert found["left"][0]["state"] == "withdrawn" and found["left"][0]["notes"] == ["why"]
    assert found["total"] == before
    assert run("register", "withdraw", "people", "elsewhere").returncode == 2


def test_backup_and_merge(people: Path, tmp_path: Path) -> None:
    perturbed(people, tmp_path / "a.voile")
    copy = tmp_path / "copy.db"
    assert told(["register", "backup", str(copy)])["written"] == [str(copy), f"{copy}.key"]
    assert run("register", "backup", str(copy)).returncode == 2
    for path in (copy, tmp_path / "copy.db.key"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert accounts(copy)["people"].to_dict() == accounts()["people"].to_dict()

    other = tmp_path / "other.db"
    pacsv.write_csv(rows_of(np.random.default_rng(5), ROWS), tmp_path / "others.csv")
    perturbed(tmp_path / "others.csv", tmp_path / "b.voile", register=other)
    assert told(["register", "merge", str(other)])["entries"] == 1
    assert told(["register", "merge", str(other)])["entries"] == 0
    assert set(accounts()) == {"people", "others"}
    # Rows of merged tables are recognised, since their key came along.
    renamed = tmp_path / "renamed.csv"
    (tmp_path / "others.csv").rename(renamed)
    perturbed(renamed, tmp_path / "c.voile")
    assert len(accounts()["others"].left) == 2


def test_one_table_by_two_names_in_merged_registers(people: Path, tmp_path: Path) -> None:
    """The next release of it counts with all that left before, by either name."""
    other = tmp_path / "other.db"
    leute = tmp_path / "leute.csv"
    leute.write_text(people.read_text())
    cost = perturbed(people, tmp_path / "a.voile").manifest.guarantee.epsilon
    perturbed(leute, tmp_path / "b.voile", register=other)
    told(["register", "merge", str(other)])
    assert {name: len(one.left) for name, one in accounts().items()} == {"people": 1, "leute": 1}
    told(["register", "limit", "people", "--epsilon", f"{2.5 * cost}"])
    with pytest.raises(PromiseError, match="2 releases left before"):
        perturbed(leute, tmp_path / "c.voile")


def test_a_backup_replaces_nothing_unless_it_is_whole(
    people: Path, tmp_path: Path, register: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    perturbed(people, tmp_path / "a.voile")
    copy = tmp_path / "copy.db"
    Register.open().backup(copy)
    before = copy.read_bytes()

    def broken(*_: Any) -> None:
        raise OSError(28, "no space left")

    monkeypatch.setattr("voile.register.register.insert_missing", broken)
    with pytest.raises(OSError, match="no space"):
        Register.open().backup(copy, overwrite=True)
    assert copy.read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "a.voile", "copy.db", "copy.db.key", "people.csv",
    ]  # fmt: skip
    assert run("register", "backup", str(register), "--overwrite").returncode == 2


def test_a_merged_register_without_its_key(people: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.db"
    perturbed(people, tmp_path / "a.voile", register=other)
    (tmp_path / "other.db.key").unlink()
    assert len(told(["register", "merge", str(other)])["keys_missing"]) == 1
    assert len(accounts()["people"].left) == 1


def test_the_page_is_whole_and_escapes_what_it_shows(people: Path, tmp_path: Path) -> None:
    perturbed(people, tmp_path / "<b>a.voile")
    perturbed(people, tmp_path / "b.voile")
    page = tmp_path / "page.html"
    told(["register", "show", "people", "-o", str(page)])
    text = page.read_text()
    assert "<b>a.voile" not in text and "&lt;b&gt;a.voile" in text
    assert "prefers-color-scheme: dark" in text and "width=device-width" in text
    assert not re.search(r"(src|href)=|https?://", text)
    assert text.count("<circle") == 2


def test_entries_that_cannot_be_read(people: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.db"
    perturbed(people, tmp_path / "a.voile", register=other)
    for wrong in ("{", "[]", '{"kind": 1}', "null"):
        with sqlite3.connect(other) as connection:
            connection.execute("UPDATE entries SET what = ?", [wrong])
        with pytest.raises(RegisterError, match="cannot be read"):
            accounts(other)
        with pytest.raises(RegisterError, match="cannot be read"):
            Register.open().merge(Register.open(other))
    assert not accounts()


def test_old_entries_are_never_changed(people: Path, tmp_path: Path, register: Path) -> None:
    perturbed(people, tmp_path / "a.voile")

    def entries() -> list[Any]:
        with sqlite3.connect(register) as connection:
            return connection.execute("SELECT * FROM entries ORDER BY at").fetchall()

    before = entries()
    told(["register", "withdraw", "people", str(tmp_path / "a.voile")])
    perturbed(people, tmp_path / "b.voile")
    assert entries()[:1] == before


# ---------------------------------------------------------------------- failures


def test_what_cannot_be_put_in_place_has_not_left(
    people: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Path) -> None:
        raise OSError(28, "no space left")

    monkeypatch.setattr(Path, "rename", broken)
    with pytest.raises(OSError, match="no space"):
        perturbed(people, tmp_path / "a.voile")
    assert not accounts()["people"].left
    (only,) = Register.open().store.read(lambda run: run("SELECT what FROM events"))
    assert only == ("stayed",)


def test_two_who_begin_a_register_share_its_key(tmp_path: Path) -> None:
    file = KeyFile(tmp_path / "new" / "k")
    (first,) = file.begin()
    assert file.begin() == (first,)
    file.put_all((FingerprintKey(os.urandom(32)),))  # too late: replaces nothing
    assert file.read() == (first,)


# ---------------------------------------------------------------------- PostgreSQL


def test_a_register_in_postgresql(
    postgres: Callable[..., str], people: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VOILE_REGISTER_KEY", str(tmp_path / "shared.key"))
    url = postgres()
    assert told(["register", "--register", url]) == []
    first = perturbed(people, tmp_path / "a.voile", register=url)
    (one,) = told(["register", "--register", url])
    assert one["data_set"] == "people"
    assert stat.S_IMODE((tmp_path / "shared.key").stat().st_mode) == 0o600
    told(["register", "limit", "people", "--epsilon", f"{first.manifest.guarantee.epsilon}",
          "--register", url])  # fmt: skip
    with pytest.raises(PromiseError, match="limit"):
        perturbed(people, tmp_path / "b.voile", register=url)
    copy = tmp_path / "copy.db"
    told(["register", "backup", str(copy), "--register", url])
    assert len(accounts(copy)["people"].left) == 1
    told(["register", "merge", url])
    assert len(accounts()["people"].left) == 1
    monkeypatch.setenv("VOILE_REGISTER_KEY", str(tmp_path / "absent.key"))
    with pytest.raises(UsageError, match="recognises rows by the key"):
        perturbed(people, tmp_path / "c.voile", register=url)


def test_limits_are_lifted(people: Path, tmp_path: Path) -> None:
    register = Register.open()
    register.set_limit("people", SpendingLimit(0.1))
    with pytest.raises(PromiseError, match="nothing left before"):
        perturbed(people, tmp_path / "a.voile")
    register.set_limit("people", None)
    perturbed(people, tmp_path / "a.voile")
