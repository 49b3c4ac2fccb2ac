"""Project files: choices that survive a crash, and files that are not ours."""

from __future__ import annotations

import json
import os
import shlex
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voile.errors import UsageError
from voile.studio.calls import ShownCall, publish_call, publish_options
from voile.studio.project import ENDING, Project, Role, name_for, read_project, write_project
from voile.studio.state import Studio

COLUMNS = ["id", "age", "town", "diagnosis", "note"]


def project(**more: Any) -> Project:
    roles: dict[str, Role] = {
        "id": "identifier",
        "age": "quasi-identifier",
        "town": "quasi-identifier",
        "diagnosis": "sensitive",
        "note": "other",
    }
    return Project(source="people.csv", roles=roles, **more)


def test_what_is_saved_is_read_again(tmp_path: Path) -> None:
    made = project(options={"epsilon": 0.5}, questions=["select count(*) from people"],
                   reading={"na": True, "null_text": ["?"]}, nulls="as-value")  # fmt: skip
    path = tmp_path / f"people{ENDING}"
    write_project(path, made)
    assert read_project(path) == made


def test_every_change_is_on_disk_before_the_page_is(tmp_path: Path) -> None:
    studio = Studio(tmp_path)
    opened = studio.begin_project("people.csv")
    opened.change(nulls="drop")
    assert read_project(opened.path).nulls == "drop"
    with pytest.raises(ValueError, match="nulls"):
        opened.change(nulls="sometimes")
    assert read_project(opened.path).nulls == "drop" and opened.project.nulls == "drop"
    studio.close()


def test_a_change_that_cannot_be_written_is_not_made(tmp_path: Path) -> None:
    studio = Studio(tmp_path)
    opened = studio.begin_project("people.csv")
    opened.path.unlink()
    opened.path.mkdir()
    with pytest.raises(UsageError, match="is a folder"):
        opened.change(nulls="drop")
    assert opened.project.nulls == "error"
    studio.close()


def test_two_studios_do_not_share_a_project(tmp_path: Path) -> None:
    first, second = Studio(tmp_path), Studio(tmp_path)
    path = first.begin_project("people.csv").path
    with pytest.raises(UsageError, match="another studio"):
        second.open_project(path)
    first.close()
    assert second.open_project(path).project.source == "people.csv"
    second.close()


def test_the_same_table_is_the_same_project_and_another_one_is_not(tmp_path: Path) -> None:
    studio = Studio(tmp_path)
    one = studio.begin_project("a/people.csv")
    assert studio.begin_project("a/people.csv") is one
    other = studio.begin_project("b/people.csv")
    assert other.name == "people-2" and other.path != one.path
    studio.close()


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "not a project file"),
        ("[]", "not a project file"),
        ("{}", "source"),
        ('{"source": "x", "rows": [1, 2]}', "rows"),
        ('{"source": "x", "format": 2}', "format"),
        ('{"source": "x", "roles": {"a": "boss"}}', "roles.a"),
        ('{"source": "x", "reading": {"decimal": "!"}}', "decimal"),
        ('{"source": "postgresql://me:pw@host/db::t"}', "password"),
        ("[" * 100_000, "not a project file"),
    ],
)
def test_files_that_are_wrong_say_where(content: str, words: str, tmp_path: Path) -> None:
    path = tmp_path / "x.voile-project"
    path.write_text(content)
    with pytest.raises(UsageError, match=words):
        read_project(path)


def test_a_file_without_end_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "x.voile-project"
    with path.open("wb") as file:
        os.truncate(file.fileno(), 2**33)
    with pytest.raises(UsageError, match="too large"):
        read_project(path)


def test_the_file_holds_no_secret_and_no_row(tmp_path: Path) -> None:
    """All that can stand in it is listed: a new field is looked at here."""
    path = tmp_path / f"people{ENDING}"
    write_project(path, project())
    assert set(json.loads(path.read_text())) <= set(Project.model_fields)
    assert set(Project.model_fields) >= {"source", "roles", "sign"}


# ---------------------------------------------------------------------- calls


def test_the_default_publishes_all_but_identifiers() -> None:
    options = publish_options(project(options={"epsilon": 0.5}), COLUMNS)
    assert options == {"columns": COLUMNS[1:], "epsilon": 0.5}
    with_people = publish_options(project(person="id", rows_per_person=2), COLUMNS)
    assert with_people["person"] == "id" and with_people["rows_per_person"] == 2
    assert "id" not in with_people.get("columns", [])


def test_classes_say_what_every_column_is_for() -> None:
    options = publish_options(project(method="mondrian", options={"k": 5}), COLUMNS)
    assert options == {
        "method": "mondrian", "qi": ["age", "town"], "sensitive": ["diagnosis"],
        "insensitive": ["note"], "identifiers": ["id"], "k": 5,
    }  # fmt: skip


def test_a_candidate_stands_for_the_choice() -> None:
    options = publish_options(project(), COLUMNS, method="mondrian", options={"k": 3})
    assert options["method"] == "mondrian" and options["k"] == 3


TEXTS = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=12)


@given(TEXTS.filter(lambda text: not text.startswith("-")), st.lists(TEXTS, max_size=3))
def test_commands_survive_any_name(table: str, questions: list[str]) -> None:
    """What a shell makes of the command are the words that were meant."""
    call = ShownCall("publish", "voile.publish", table, options={"on": questions, "epsilon": 0.5})
    words = shlex.split(call.command())
    assert words[:3] == ["voile", "publish", table]
    found = [w.partition("=")[2] if w.startswith("--on=") else words[i + 1]
             for i, w in enumerate(words) if w == "--on" or w.startswith("--on=")]  # fmt: skip
    assert found == questions
    assert words[-2:] == ["--epsilon", "0.5"]


@given(TEXTS, st.dictionaries(TEXTS, TEXTS, max_size=2))
def test_python_is_python(table: str, hierarchies: dict[str, str]) -> None:
    """The line, run with a stand-in for Voile, calls it with what was meant."""
    heard: list[Any] = []

    class Voile:
        @staticmethod
        def read(source: str, **how: Any) -> Any:
            return (source, how)

        @staticmethod
        def publish(given: Any, **options: Any) -> None:
            heard.append((given, options))

    call = ShownCall("publish", "voile.publish", table, {"na": True},
                options={"hierarchies": hierarchies, "output": "x.voile"})  # fmt: skip
    exec(call.python().replace("import voile", ""), {"voile": Voile})  # noqa: S102
    assert heard == [((table, {"na": True}), {"hierarchies": hierarchies, "to": "x.voile"})]


def test_the_call_of_a_project_names_its_file_and_key() -> None:
    made = project(output="out.voile", sign="key.pem", reading={"decimal": ","})
    command = publish_call(made, COLUMNS).command()
    assert command == (
        "voile publish people.csv --decimal , --columns age,town,diagnosis,note -o out.voile "
        "--sign key.pem"
    )


@pytest.mark.parametrize(
    ("source", "name"),
    [("people.csv", "people"), ("/a/b/my people.csv.gz", "my-people"), ("dataset:adult/x", "x"),
     ("db.duckdb::patients", "patients"), ("....", "table"), ("s3://b/é.parquet", "é")],
)  # fmt: skip
def test_projects_are_called_like_their_tables(source: str, name: str) -> None:
    assert name_for(source) == name
