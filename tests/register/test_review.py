"""What a hostile reader of the register found: totals that were too small, limits that moved."""

from __future__ import annotations

import gc
import json
import shlex
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pytest

import voile
from tests.support.collecting import SIZES, codes_submission, survey
from tests.support.running import told
from tests.support.running import voile as run
from voile.collect import opened
from voile.errors import PromiseError
from voile.register import Register, RegisterError, SpendingLimit

SMOKERS = pa.table({"smoker": pa.array([True, False] * 20)})


def test_draws_that_come_out_equal_count_each(tmp_path: Path) -> None:
    """Of 8 releases of 1 row, with two possible outcomes, most are equal; none is free."""
    register = Register.open(tmp_path / "r.db")
    one = pa.table({"smoker": pa.array([True])})
    codebook = {"attributes": [{"name": "smoker", "kind": "boolean", "values": [False, True]}]}
    for i in range(8):
        voile.perturb(one, 0.3, schema=codebook, to=tmp_path / f"{i}.voile", register=register)
    (account,) = register.accounts()
    digests = {left.what_is.digest for left in account.left}
    assert len(account.left) == 8 and len(digests) < 8
    alone = voile.open(tmp_path / "0.voile").manifest.guarantee.epsilon  # type: ignore[attr-defined]
    assert account.total["epsilon"] == pytest.approx(8 * alone, rel=1e-9)


def test_what_holds_of_the_view_alone_makes_no_total(tmp_path: Path) -> None:
    """The number of rows is disclosed: someone who knows the others can count."""
    rows = pa.table({"a": list(range(60)) * 40, "b": ["x", "y", "z"] * 800})
    voile.publish(rows, prior=0.05, posterior=0.5, max_view_ratio=5, to=tmp_path / "v.voile",
                  register=tmp_path / "r.db")  # fmt: skip
    (account,) = Register.open(tmp_path / "r.db").accounts()
    assert account.total.get("d_gamma") is None


def test_merging_raises_no_limit(tmp_path: Path) -> None:
    mine, other = (Register.open(tmp_path / name) for name in ("a.db", "b.db"))
    mine.set_limit("people", SpendingLimit(1.0))
    other.set_limit("people", SpendingLimit(100.0))
    other.set_limit("others", SpendingLimit(3.0))
    mine.merge(other)
    limits = {one.data_set: one.limit and one.limit.epsilon for one in mine.accounts()}
    assert limits == {"people": 1.0, "others": 3.0}
    other.merge(mine)
    limits = {one.data_set: one.limit and one.limit.epsilon for one in other.accounts()}
    assert limits["people"] == 1.0


# ---------------------------------------------------------------------- one table by several names


def people(seed: int = 1, rows: int = 400) -> pa.Table:
    rng = np.random.default_rng(seed)
    return pa.table({
        "age": rng.integers(18, 90, rows), "zip": rng.integers(10_000, 99_999, rows),
        "ill": rng.choice(["yes", "no"], rows),
    })  # fmt: skip


def perturbed(table: pa.Table, name: str, to: Path, **options: Any) -> Any:
    return voile.perturb(table, 0.5, to=to, columns=["ill"], name=name, overwrite=True, **options)


def test_a_limit_of_a_new_name_counts_what_left_by_the_old_one(tmp_path: Path) -> None:
    register = Register.open()
    cost = perturbed(people(), "people", tmp_path / "a.voile").manifest.guarantee.epsilon
    register.set_limit("leute", SpendingLimit(1.5 * cost))
    with pytest.raises(PromiseError, match="1 release left before"):
        perturbed(people(), "leute", tmp_path / "b.voile")
    assert not (tmp_path / "b.voile").exists()
    register.set_limit("leute", SpendingLimit(2.5 * cost))
    perturbed(people(), "leute", tmp_path / "b.voile")
    (account,) = register.accounts()  # from now on the limit holds by either name
    assert account.data_set == "people" and account.aliases == ("leute",)
    assert account.limit == SpendingLimit(2.5 * cost)
    with pytest.raises(PromiseError, match="for 'leute'; 2 releases left before") as refused:
        perturbed(people(), "people", tmp_path / "c.voile")
    command = refused.value.hint.split("change the limit: ")[1]
    told(shlex.split(command)[1:])
    perturbed(people(), "people", tmp_path / "c.voile")


def test_a_limit_of_a_known_name_counts_rows_that_left_by_another(tmp_path: Path) -> None:
    """Also where the name has had releases of its own, of other people."""
    register = Register.open()
    cost = perturbed(people(), "people", tmp_path / "a.voile").manifest.guarantee.epsilon
    perturbed(people(2), "leute", tmp_path / "b.voile")
    register.set_limit("leute", SpendingLimit(2.5 * cost))
    with pytest.raises(PromiseError, match="2 releases left before"):
        perturbed(people(), "leute", tmp_path / "c.voile")
    register.set_limit("leute", None)
    perturbed(people(), "leute", tmp_path / "c.voile")
    assert {one.data_set: len(one.left) for one in register.accounts()} == {
        "people": 2, "leute": 3,
    }  # fmt: skip


def test_a_name_that_is_known_by_its_rows_is_kept_and_shown(tmp_path: Path) -> None:
    perturbed(people(), "people", tmp_path / "a.voile")
    done = told(["perturb", str(saved(people(), tmp_path / "leute.csv")), "-o",
                 str(tmp_path / "b.voile"), "--retention", "0.5", "--columns", "ill"])  # fmt: skip
    assert done["register"]["data_sets"][0]["aliases"] == ["leute"]
    (one,) = told(["register"])
    assert (one["data_set"], one["aliases"], len(one["left"])) == ("people", ["leute"], 2)
    assert told(["register", "show", "leute"]) == [one]
    assert "leute" in run("register").stdout and "leute" in run("register", "show", "people").stdout
    # The name alone is enough from now on, whatever its rows.
    perturbed(people(3), "leute", tmp_path / "c.voile")
    (account,) = Register.open().accounts()
    assert len(account.left) == 3 and "its name 'leute' alone" in account.left[-1].how
    page = tmp_path / "page.html"
    told(["register", "show", "leute", "-o", str(page)])
    assert "Also called leute" in page.read_text()
    copy = Register.open(tmp_path / "copy.db")
    copy.merge(Register.open())
    assert copy.accounts()[0].aliases == ("leute",)


def saved(table: pa.Table, path: Path) -> Path:
    pacsv.write_csv(table, path)
    return path


def test_a_table_of_two_data_sets_is_limited_by_what_left_of_both(tmp_path: Path) -> None:
    both = pa.concat_tables([people(), people(2)])
    cost = perturbed(people(), "a", tmp_path / "a.voile").manifest.guarantee.epsilon
    perturbed(people(2), "b", tmp_path / "b.voile")
    register = Register.open()
    register.set_limit("c", SpendingLimit(2.5 * cost))
    with pytest.raises(PromiseError, match="2 releases left before"):
        perturbed(both, "c", tmp_path / "c.voile")
    register.set_limit("c", SpendingLimit(3.5 * cost))
    perturbed(both, "c", tmp_path / "c.voile")
    assert len(register.account("c").left) == 3
    perturbed(people(4), "a", tmp_path / "d.voile", register=tmp_path / "elsewhere.db")
    with pytest.raises(PromiseError, match="limit"):  # 'c' stands for people of 'a'
        perturbed(people(), "a", tmp_path / "d.voile")


def test_merging_keeps_limits_of_other_units(tmp_path: Path) -> None:
    mine, other = (Register.open(tmp_path / name) for name in ("a.db", "b.db"))
    mine.set_limit("people", SpendingLimit(1.0, unit="person"))
    other.set_limit("people", SpendingLimit(0.5))
    mine.merge(other)
    assert mine.accounts()[0].limit == SpendingLimit(1.0, unit="person")


# ---------------------------------------------------------------------- temporary releases


@pytest.mark.parametrize("how", ["opened", "copied", "kept"])
def test_a_temporary_release_that_was_opened_again_is_written_down(
    tmp_path: Path, how: str
) -> None:
    made = voile.perturb(people(), 0.5, columns=["ill"], name="people")
    if how == "opened":
        again: Any = voile.open(made.path)
    else:
        shutil.copytree(made.path, tmp_path / "copied.voile")
        if how == "kept":
            del made
            gc.collect()
        again = voile.open(tmp_path / "copied.voile")
    done = again.save(tmp_path / "a.voile")
    assert done.manifest.registered is True
    (account,) = Register.open().accounts()
    assert [one.what_is.digest for one in account.left] == [done.manifest.digest]


def test_what_has_no_entry_says_so(tmp_path: Path) -> None:
    made = voile.perturb(people(), 0.5, columns=["ill"], register=False)
    again = voile.open(made.path).save(tmp_path / "a.voile")
    assert again.manifest.registered is False and not Register.open().accounts()
    limited = voile.perturb(people(), 0.5, columns=["ill"], name="people")
    Register.open().set_limit("people", SpendingLimit(0.1))
    with pytest.raises(PromiseError, match="limit"):
        voile.open(limited.path).save(tmp_path / "b.voile")
    assert not (tmp_path / "b.voile").exists()


# ---------------------------------------------------------------------- servers


@pytest.mark.parametrize("flags", [[], ["--no-register"]])
def test_a_server_says_whether_it_is_registered(tmp_path: Path, flags: list[str]) -> None:
    table, folder = saved(people(), tmp_path / "people.csv"), tmp_path / "server"
    done = told(["serve", "init", str(folder), "--table", str(table), "--queries", "10",
                 "--delta", "1", "--columns", "age,ill", *flags])  # fmt: skip
    said = json.loads((folder / "server.json").read_text())
    assert said["registered"] is done["registered"] is (not flags)
    assert told(["serve", "status", str(folder)])["registered"] is (not flags)
    assert ("not in the steward's register" in run("serve", "status", str(folder)).stdout) == bool(
        flags
    )
    assert len(Register.open().accounts()) == (not flags)


# ---------------------------------------------------------------------- made of what had left


CODEBOOK = {"attributes": [{"name": "ill", "kind": "categorical", "values": ["no", "yes"]}]}


def parts(folder: Path, **options: Any) -> list[Path]:
    made = []
    for seed, name in ((1, "ulm"), (2, "bonn")):
        made.append(folder / f"{name}.voile")
        voile.perturb(people(seed).select(["ill", "zip", "age"]), 0.5, columns=None,
                      schema=CODEBOOK, to=made[-1], name=name, **options)  # fmt: skip
    return made


def test_what_is_combined_of_registered_parts_adds_nothing(tmp_path: Path) -> None:
    made = parts(tmp_path)
    register = Register.open()
    before = {one.data_set: one.total["epsilon"] for one in register.accounts()}
    for name, epsilon in before.items():
        register.set_limit(name, SpendingLimit(epsilon * 1.01))
    done = told(["combine", *map(str, made), "-o", str(tmp_path / "both.voile")])
    assert done["registered"] is True
    assert {one["by"] for one in done["register"]["data_sets"]} == {"parts"}
    for account in register.accounts():
        assert account.total["epsilon"] == before[account.data_set] and len(account.left) == 2
        last = account.left[-1]
        assert last.what_is.path.endswith("both.voile") and not last.what_is.adds
        assert last.guarantee == account.left[0].guarantee  # what was perturbed locally
        assert last.how == "made of releases of it"


def test_what_is_combined_of_unknown_parts_counts_once(tmp_path: Path) -> None:
    made = [str(path) for path in parts(tmp_path, register=False)]
    for name in ("both", "again"):
        told(["combine", *made, "-o", str(tmp_path / f"{name}.voile"), "--name", "towns"])
    (account,) = Register.open().accounts()
    alone = voile.open(made[0]).manifest.guarantee.epsilon  # type: ignore[attr-defined]
    assert account.data_set == "towns" and len(account.left) == 2
    assert account.total["epsilon"] == pytest.approx(alone)
    Register.open().set_limit("towns", SpendingLimit(alone * 1.5))
    other = voile.perturb(people(3).select(["ill"]), 0.5, schema=CODEBOOK, register=False,
                          to=tmp_path / "kiel.voile")  # fmt: skip
    refused = run("combine", *made, str(other.path), "-o", str(tmp_path / "c.voile"), "--name",
                  "towns")  # fmt: skip
    assert refused.returncode == 1 and "limit" in refused.stderr
    assert not (tmp_path / "c.voile").exists()
    done = told(["combine", *made, "-o", str(tmp_path / "d.voile"), "--no-register"])
    assert done["registered"] is False and done["register"] is None


def test_all_releases_of_what_was_collected_count_once(tmp_path: Path) -> None:
    """With what each client kept: the same perturbed rows are shown again."""
    rng, folder = np.random.default_rng(8), tmp_path / "store"
    with opened(folder, survey()) as store:
        for name in ("a", "b"):
            ids = [rng.bytes(16) for _ in range(200)]
            codes = np.stack([rng.integers(0, size, 200) for size in SIZES], axis=1)
            store.add([codes_submission(ids, codes.tolist())])
            done = told(["collect", "--store", str(folder), "--release",
                         str(tmp_path / f"{name}.voile")])  # fmt: skip
            assert done["registered"] is True and len(done["register"]["data_sets"]) == 1
        aside = told(["collect", "--store", str(folder), "--release", str(tmp_path / "c.voile"),
                      "--no-register"])  # fmt: skip
        assert aside["registered"] is False and aside["register"] is None
    (account,) = Register.open().accounts()
    assert len(account.left) == 2 and account.left[0].what_is.adds
    assert account.total["epsilon"] == pytest.approx(survey().epsilon())
    told(["register", "limit", account.data_set, "--epsilon", "0.01"])
    refused = run("collect", "--store", str(folder), "--release", str(tmp_path / "d.voile"))
    assert refused.returncode == 1 and not (tmp_path / "d.voile").exists()


# ---------------------------------------------------------------------- old copies


def test_an_old_copy_is_refused_until_it_is_accepted(tmp_path: Path, register: Path) -> None:
    perturbed(people(), "people", tmp_path / "a.voile")
    old = register.read_bytes()
    perturbed(people(), "people", tmp_path / "b.voile")
    newest = tmp_path / "newest.db"
    Register.open().backup(newest)
    put(register, old)
    for attempt in (
        lambda: perturbed(people(), "people", tmp_path / "c.voile"),
        lambda: Register.open().accounts(),
        lambda: Register.open().set_limit("people", SpendingLimit(9.0)),
        lambda: Register.open().merge(Register.open(newest)),
    ):
        with pytest.raises(RegisterError, match="old copy") as refused:
            attempt()
    assert not (tmp_path / "c.voile").exists()
    done = run(*accepting(refused.value.hint))
    assert done.returncode == 0 and "not in it" in done.stderr + done.stdout
    perturbed(people(), "people", tmp_path / "c.voile")
    assert len(Register.open().account("people").left) == 2  # it has forgotten one
    assert "older copy was put back" in run("register").stderr
    told(["register", "merge", str(newest)])
    assert len(Register.open().account("people").left) == 3
    assert told(["register", "accept"])["changes_missing"] == 0


def put(place: Path, content: bytes) -> None:
    """Put a copy in the place of a register."""
    for beside in place.parent.glob(f"{place.name}-*"):  # SQLite's log
        beside.unlink()
    place.write_bytes(content)


def accepting(hint: str) -> list[str]:
    """The arguments of the command that a hint names."""
    return shlex.split(hint[hint.index("voile register accept") :])[1:]


def test_the_newest_backup_may_be_put_back(tmp_path: Path, register: Path) -> None:
    perturbed(people(), "people", tmp_path / "a.voile")
    copy = tmp_path / "copy.db"
    Register.open().backup(copy)
    put(register, copy.read_bytes())
    perturbed(people(), "people", tmp_path / "b.voile")
    assert len(Register.open().account("people").left) == 2


def test_a_copy_that_went_on_elsewhere_is_noticed(
    tmp_path: Path, register: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same number of changes, and others: as of two machines on a database restored."""
    perturbed(people(), "people", tmp_path / "a.voile")
    old = register.read_bytes()
    perturbed(people(), "people", tmp_path / "b.voile")
    put(register, old)
    elsewhere = tmp_path / "machine" / "r.key"
    elsewhere.parent.mkdir()
    shutil.copy(f"{register}.key", elsewhere)
    with monkeypatch.context() as other:
        other.setenv("VOILE_REGISTER_KEY", str(elsewhere))
        for name in ("c", "d"):
            perturbed(people(), "people", tmp_path / f"{name}.voile")
    with pytest.raises(RegisterError, match="old copy, or another"):
        Register.open().accounts()


def test_a_register_that_is_gone_does_not_begin_anew(tmp_path: Path, register: Path) -> None:
    perturbed(people(), "people", tmp_path / "a.voile")
    register.unlink()
    for _ in range(2):
        with pytest.raises(RegisterError, match="not there any more") as refused:
            perturbed(people(), "people", tmp_path / "b.voile")
        assert not register.exists()
        with pytest.raises(RegisterError, match="not there any more"):
            Register.open().accounts()
    assert run(*accepting(refused.value.hint)).returncode == 0
    perturbed(people(), "people", tmp_path / "b.voile")
    assert len(Register.open().account("people").left) == 1


def test_a_kill_between_the_register_and_its_counter_is_no_old_copy(
    tmp_path: Path, register: Path
) -> None:
    perturbed(people(), "people", tmp_path / "a.voile")
    (counter,) = register.parent.glob(f"{register.name}.key.*.counter")
    assert counter.stat().st_mode & 0o077 == 0
    before = counter.read_bytes()
    Register.open().set_limit("people", SpendingLimit(9.0))
    counter.write_bytes(before)
    assert Register.open().account("people").limit == SpendingLimit(9.0)
    counter.write_text("{}")
    with pytest.raises(RegisterError, match="does not say how far"):
        Register.open().accounts()


def test_another_program_that_goes_on_meanwhile_is_no_old_copy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A change between the look at the register and the look at its counter."""
    perturbed(people(), "people", tmp_path / "a.voile")
    mine, other = Register.open(), Register.open()
    read = mine.store.read

    def slowly(work: Any) -> Any:
        def late(run: Any) -> Any:
            run("SELECT 1 FROM about")  # the state that is seen from now on
            other.set_limit("people", SpendingLimit(9.0))
            return work(run)

        return read(late)

    monkeypatch.setattr(mine.store, "read", slowly)
    assert len(mine.account("people").left) == 1


# ---------------------------------------------------------------------- the page


def test_the_page_says_that_the_limit_is_exceeded_already(tmp_path: Path) -> None:
    perturbed(people(), "people", tmp_path / "a.voile")
    done = run("register", "limit", "people", "--epsilon", "0.1")
    assert "beyond it already: all of it adds up to" in done.stderr
    page = tmp_path / "page.html"
    told(["register", "show", "people", "-o", str(page)])
    assert "beyond the limit already" in page.read_text()
    assert "would" not in page.read_text()
