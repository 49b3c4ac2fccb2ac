"""What is said where there is nothing to show, or no room to show it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.running import voile


def test_no_group_is_told_instead_of_an_interval(tmp_path: Path) -> None:
    (tmp_path / "few.csv").write_text(
        "age,sex\n" + "".join(f"{i % 90},{'FM'[i % 2]}\n" for i in range(300))
    )
    codebook = "attributes:\n- {name: age, kind: integer, range: [0, 99]}\n"
    codebook += "- {name: sex, kind: categorical, values: [F, M]}\n"
    (tmp_path / "few.yaml").write_text(codebook)
    promise = ["--retention", "0.5", "--simulate-seed", "1", "-o", "rows.voile"]
    done = voile("perturb", "few.csv", "--schema", "few.yaml", *promise, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    groups = "select sex, count(*) from few group by sex"
    none = voile("query", "rows.voile", f"{groups} limit 0", cwd=tmp_path)
    assert "no group is left" in none.stderr
    assert "interval" not in none.stderr
    some = voile("query", "rows.voile", groups, cwd=tmp_path)
    assert "no group is left" not in some.stderr
    assert "each interval covers" in some.stderr
    shell = voile("shell", "rows.voile", text=f"{groups} limit 0;\n", cwd=tmp_path)
    assert "no group is left" in shell.stderr


def test_an_empty_log_says_so(tmp_path: Path) -> None:
    (tmp_path / "few.csv").write_text("age\n31\n45\n52\n")
    begin = ["--table", "few.csv", "--queries", "9", "--delta", "1"]
    assert voile("serve", "init", "clinic", *begin, cwd=tmp_path).returncode == 0
    assert "nothing has happened yet" in voile("serve", "log", "clinic", cwd=tmp_path).stdout
    token = ["--analyst", "iris", "--queries", "5", "-o", "iris.token"]
    assert voile("serve", "token", "clinic", *token, cwd=tmp_path).returncode == 0
    assert "nothing has happened" not in voile("serve", "log", "clinic", cwd=tmp_path).stdout


@pytest.mark.parametrize("command", ["schema t.csv -o t.yaml", "publish t.csv -o t.voile"])
def test_a_table_without_rows_is_not_one_of_nulls(tmp_path: Path, command: str) -> None:
    (tmp_path / "t.csv").write_text("a,b\n")
    done = voile(*command.split(), cwd=tmp_path)
    assert done.returncode == 1
    assert "no rows" in done.stderr
    assert "NULL" not in done.stderr


@pytest.mark.parametrize(
    ("command", "hint"),
    [
        ("verify nothing", "name the folder"),
        ("inspect nothing", "nothing/*.csv"),
        ("inspect empty.csv", "hint:"),
        ("inspect blank.csv", "the first line names the columns"),
        ("spec nothing --retention 0.5 -o spec.json", "Is a directory\nhint: a codebook is"),
        ("spec empty.csv --retention 0.5 -o spec.json", "voile schema TABLE"),
    ],
)
def test_what_is_empty_is_refused_with_what_to_do(tmp_path: Path, command: str, hint: str) -> None:
    (tmp_path / "nothing").mkdir()
    (tmp_path / "empty.csv").touch()
    (tmp_path / "blank.csv").write_text("\n \n")
    done = voile(*command.split(), cwd=tmp_path)
    assert done.returncode in (1, 2)
    assert hint in done.stderr


@pytest.mark.parametrize(("columns", "is_drawn"), [(60, False), (80, True)])
def test_inspect_cuts_no_name(tmp_path: Path, columns: int, is_drawn: bool) -> None:
    lines = ["visit_identifier,ward_of_admission,age"]
    lines += [f"V{i},{'paediatrics' if i % 3 else 'oncology'},{i % 90}" for i in range(400)]
    (tmp_path / "visits.csv").write_text("\n".join(lines))
    shown = voile("inspect", "visits.csv", cwd=tmp_path, columns=columns).stdout
    assert "…" not in shown
    assert ("████████████" in shown) is is_drawn
    # A command is not broken, so that it can be copied.
    lines = [line for line in shown.splitlines() if not line.startswith("next: ")]
    assert all(len(line) <= columns for line in lines)
