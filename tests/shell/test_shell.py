"""The shell: statements, commands, completion, history, pipes, and the bars of an answer."""

from __future__ import annotations

import csv
import importlib.util
import json
import math
import os
import signal
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document
from prompt_toolkit.history import InMemoryHistory
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput
from rich.console import Console

import voile
from tests.support.paths import ROOT
from tests.support.running import voile as run
from voile.estimate import Answer, Estimate
from voile.evaluate import answer_plot
from voile.release import Release, ViewRelease
from voile.schema import Attribute, Range, Schema, Values
from voile.shell import prompt
from voile.shell.commands import COMMANDS, perform, print_bars
from voile.shell.prompt import AGGREGATES, FUNCTIONS, MOST_SHOWN, ShellCompleter
from voile.shell.session import Session, complete, split, statements

COVERS = "the statistic of the table that was published"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("shell")
    towns, lines = ["Ash", "Elm", "O'ak"], ["town,age,smokes,full name"]
    lines += [f"{towns[i % 3]},{20 + i % 40},{i % 2 == 0},N{i % 4}" for i in range(4000)]
    (place / "people.csv").write_text("\n".join(lines))
    voile.publish(
        voile.read(place / "people.csv"),
        to=place / "people.voile",
        prior=0.01,
        posterior=0.3,
        simulate_seed=3,
    )
    (place / "regions.csv").write_text("place,region\nAsh,north\nElm,south\n")
    return place


@pytest.fixture
def session(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Session:
    monkeypatch.chdir(tmp_path)
    return Session(Release.open(folder / "people.voile"))


# ---------------------------------------------------------------------- statements


@pytest.mark.parametrize(
    ("text", "found", "rest"),
    [
        ("select 1; select 2;", ["select 1", "select 2"], ""),
        ("select 1", [], "select 1"),
        ("select 1\nfrom t\n\nselect 2", ["select 1\nfrom t"], "select 2"),
        ("select 1\n   \n", ["select 1"], ""),
        ("select ';' from t;", ["select ';' from t"], ""),
        ("select 'it''s; so';", ["select 'it''s; so'"], ""),
        ('select "a;b";', ['select "a;b"'], ""),
        ("select 1 -- a; b\nfrom t;", ["select 1 -- a; b\nfrom t"], ""),
        ("select 1 /* ;\n\n */;", ["select 1 /* ;\n\n */"], ""),
        ("select /* open ;", [], "select /* open ;"),
        ("select 'open ;", [], "select 'open ;"),
        ("select 'open\n\n.help\n", ["select 'open", ".help"], ""),
        ("-- only a comment\n", [], ""),
        ("  ;;\n;", [], ""),
        (".plot a.png\n\\d age\n", [".plot a.png", "\\d age"], ""),
        (".help", [], ".help"),
        ("select .5;", ["select .5"], ""),
    ],
)
def test_statements_end_where_they_should(text: str, found: list[str], rest: str) -> None:
    assert split(text) == (found, rest)
    assert statements(text) == found + [rest] * bool(rest)


def test_a_command_is_complete_on_its_line_and_sql_is_not() -> None:
    assert complete(".plot") and complete("\\d") and complete("select 1;")
    assert not complete("select 1") and not complete("select 1; select 2")


# ---------------------------------------------------------------------- at the prompt


def typed(session: Session, *keys: str, history: Any = None) -> None:
    """What a user types, then Ctrl-D."""
    session.interactive = True
    with create_pipe_input() as pipe:
        for key in keys:
            pipe.send_text(key)
        pipe.send_text("\x04")
        prompt.interact(session, history=history, input=pipe, output=DummyOutput())


def test_multi_line_input_waits_for_its_end(
    session: Session, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = InMemoryHistory()
    typed(
        session, "select count(*) as people\r", "from people\r", "where age < 30;\r", history=kept
    )
    assert session.sql == "select count(*) as people\nfrom people\nwhere age < 30"
    assert "people" in capsys.readouterr().out
    assert kept.get_strings() == ["select count(*) as people\nfrom people\nwhere age < 30;"]


def test_a_blank_line_ends_a_statement(session: Session) -> None:
    typed(session, "select count(*)\r", "from people\r", "\r", history=InMemoryHistory())
    assert session.sql == "select count(*)\nfrom people"


def test_errors_have_caret_and_hint_and_the_shell_goes_on(
    session: Session, capsys: pytest.CaptureFixture[str]
) -> None:
    typed(
        session,
        "select count(*) from people where agee = 1;\r",
        "select count(*) from people;\r",
        history=InMemoryHistory(),
    )
    told = capsys.readouterr().err
    assert "there is no column 'agee'" in told and "^" in told and "did you mean 'age'" in told
    assert session.sql == "select count(*) from people"


def test_ctrl_c_gives_up_what_is_typed(session: Session) -> None:
    typed(session, "select nonsense", "\x03", ".confidence 0.8\r", history=InMemoryHistory())
    assert (session.sql, session.confidence) == ("", 0.8)


def test_quit_leaves(session: Session) -> None:
    typed(session, ".quit\r", ".confidence 0.8\r", history=InMemoryHistory())
    assert session.confidence == 0.95


@pytest.mark.parametrize("command", [".quit", "\\q", ".exit", "  .quit  ", ".quit;"])
def test_quit_leaves_from_the_continuation_prompt_too(session: Session, command: str) -> None:
    typed(
        session, "select count(*)\r", f"{command}\r", ".confidence 0.8\r",
        history=InMemoryHistory(),
    )  # fmt: skip
    assert (session.sql, session.confidence) == ("", 0.95)


def test_any_command_ends_the_sql_before_it(session: Session) -> None:
    typed(
        session, "select count(*)\r", "from people\r", ".confidence 0.8\r",
        history=InMemoryHistory(),
    )  # fmt: skip
    assert (session.sql, session.confidence) == ("select count(*)\nfrom people", 0.8)


@pytest.mark.parametrize("key", ["\x03", "\x04"])
def test_ctrl_c_and_ctrl_d_give_up_what_is_continued(session: Session, key: str) -> None:
    after = [".confidence 0.8\r"] if key == "\x03" else []
    typed(session, "select count(*)\r", key, *after, history=InMemoryHistory())
    assert (session.sql, session.confidence) == ("", 0.8 if after else 0.95)


def test_a_command_within_a_text_or_a_number_is_none() -> None:
    text = "select count(*) from people where name = 'a\n.quit\n' and age >\n.5"
    assert statements(text + ";") == [text]
    assert statements("select 1\n\n.quit") == ["select 1", ".quit"]
    assert statements("select `a;\n.quit` from t;") == ["select `a;\n.quit` from t"]


def test_ctrl_c_gives_up_a_query_and_the_next_is_answered(
    session: Session, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    answered = ViewRelease.query

    def slow(self: ViewRelease, sql: str, *more: Any, **named: Any) -> Answer:
        if "slow" not in sql:
            return answered(self, sql, *more, **named)
        threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
        try:
            time.sleep(20)
        finally:  # as DuckDB does when it is cut off
            raise RuntimeError("Query interrupted")

    monkeypatch.setattr(ViewRelease, "query", slow)
    before = signal.getsignal(signal.SIGINT)
    typed(session, "select slow;\r", "select count(*) from people;\r", history=InMemoryHistory())
    assert "cancelled" in capsys.readouterr().err
    assert session.sql == "select count(*) from people"
    assert signal.getsignal(signal.SIGINT) is before


def test_history_is_kept_in_the_state_folder(
    session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    typed(session, ".confidence 0.9\r")
    file = tmp_path / "state" / "voile" / "history"
    assert file == prompt.history_file()
    assert "+.confidence 0.9" in file.read_text()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    kept = prompt.kept_history(session)
    assert list(kept.load_history_strings()) == [".confidence 0.9"]


def test_history_is_never_in_the_release(
    session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(session.release.path.resolve()))
    assert isinstance(prompt.kept_history(session), InMemoryHistory)
    monkeypatch.setenv("XDG_STATE_HOME", "relative")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert prompt.history_file() == tmp_path / ".local" / "state" / "voile" / "history"
    (tmp_path / ".local").write_text("not a folder")
    assert isinstance(prompt.kept_history(session), InMemoryHistory)


# ---------------------------------------------------------------------- completion


def offered(session: Session, text: str, *, asked: bool = True) -> list[str]:
    event = CompleteEvent(text_inserted=not asked, completion_requested=asked)
    return [c.text for c in ShellCompleter(session).get_completions(Document(text), event)]


@pytest.mark.parametrize(
    ("text", "some"),
    [
        ("sel", ["select"]),
        ("SEL", ["SELECT"]),
        ("select ag", ["age"]),
        ("select count(*) from ", ["people"]),
        ("select count(*) from people where to", ["town"]),
        ("select count(*) from people where town = '", ["Ash'", "Elm'", "O''ak'"]),
        ("select count(*) from people where town = 'e", ["Elm'"]),
        ("select count(*) from people where town='o''", ["O''ak'"]),
        ("select count(*) from people where town <> ", ["'Ash'", "'Elm'", "'O''ak'"]),
        ("select count(*) from people where town in ('", ["Ash'", "Elm'", "O''ak'"]),
        ("select count(*) from people where town not in ('Ash', 'E", ["Elm'"]),
        ("select count(*) from people where TOWN in ('O''ak', ", ["'Ash'", "'Elm'", "'O''ak'"]),
        ("select count(*) from people where smokes = ", ["false", "true"]),
        ("select count(*) from people where age = 2", [str(age) for age in range(20, 30)]),
        ('select count(*) from people where "full name" = \'', ["N0'", "N1'", "N2'", "N3'"]),
        ("select ful", ['"full name"']),
        ('select "fu', ['full name"']),
        ("select count(*) from people;\nselect to", ["town"]),
        (".pl", [".plot"]),
        ("\\", ["\\d"]),
        ("\\d a", ["age"]),
        (".timing o", ["on", "off"]),
        (".explain select ag", ["age"]),
    ],
)
def test_completion(session: Session, text: str, some: list[str]) -> None:
    found = offered(session, text)
    assert found[: len(some)] == some


def test_completion_of_tables_of_ones_own(session: Session, folder: Path) -> None:
    assert perform(session, f".with regions={folder / 'regions.csv'}")
    assert "regions" in offered(session, "select count(*) from people join ")
    assert offered(session, "select regions.") == ["place", "region"]
    assert "regions" in offered(session, "\\d re")


def test_completion_keeps_quiet_where_nothing_is_known(session: Session) -> None:
    assert offered(session, "select count(*) from people where x = 'a") == []
    assert offered(session, "select count(*) from people where age = '2") == []
    assert offered(session, "select ", asked=False) == []
    assert "and" in offered(session, "select count(*) from people where town = 'Ash' an")


def test_completion_never_lists_a_large_domain(session: Session) -> None:
    many = Values(tuple(f"v{i}" for i in range(200_000)))
    large = Schema(
        (Attribute("id", "categorical", many), Attribute("n", "integer", Range(0, 10**15)))
    )
    session.release.__dict__["schema"] = large
    start = time.perf_counter()
    assert len(offered(session, "select count(*) from people where id = '")) == MOST_SHOWN
    assert len(offered(session, "select count(*) from people where n = ")) == MOST_SHOWN
    assert time.perf_counter() - start < 5


def test_every_function_offered_is_answered(session: Session) -> None:
    refused = []
    two = {"greatest", "least", "nullif", "strpos", "starts_with", "ends_with", "contains"}
    for name in FUNCTIONS:
        call = {
            "extract": "extract(year from date '2020-01-01')",
            "date_part": "date_part('year', date '2020-01-01')",
            "date_trunc": "date_trunc('year', date '2020-01-01')",
            "strftime": "strftime(date '2020-01-01', '%Y')",
            "replace": "replace(town, 'A', 'B')",
            "substring": "substring(town, 1, 2)",
            "right": "right(town, 1)",
            "regexp_matches": "regexp_matches(town, 'A')",
        }.get(name)
        if call is None:
            dated = {"year", "month", "day", "quarter", "week", "dayofweek", "dayname", "monthname"}
            texts = {"lower", "upper", "length", "trim", "concat", "coalesce", *two}
            of = "date '2020-01-01'" if name in dated else "town" if name in texts else "age"
            call = f"{name}({of}, 'A')" if name in two else f"{name}({of})"
        try:
            session.release.query(f"select count(*) from people where ({call}) is not null")
        except voile.VoileError as error:
            refused.append((name, error.message))
    for name in AGGREGATES:
        extra = {"corr": ", age", "covar_samp": ", age", "covar_pop": ", age"}.get(name, "")
        extra = ", 0.5" if name.startswith("quantile") else extra
        try:
            session.release.query(f"select {name}(age{extra}) from people")
        except voile.VoileError as error:
            refused.append((name, error.message))
    assert not refused


# ---------------------------------------------------------------------- commands


def test_every_command_is_in_the_help_and_in_the_docs(
    session: Session, capsys: pytest.CaptureFixture[str]
) -> None:
    assert perform(session, "\\?")
    shown = capsys.readouterr().out
    page = (ROOT / "docs" / "guides" / "shell.md").read_text(encoding="utf-8")
    for name in COMMANDS:
        assert name in shown
        assert f"`{name}" in page


def test_attributes_are_shown(session: Session, capsys: pytest.CaptureFixture[str]) -> None:
    assert perform(session, "\\d")
    shown = capsys.readouterr().out
    assert all(name in shown for name in ("town", "age", "smokes", "full name"))
    assert perform(session, "\\d TOWN")
    assert "Ash, Elm, O'ak" in capsys.readouterr().out
    assert not perform(session, "\\d tow")
    assert "did you mean 'town'" in capsys.readouterr().err


def test_settings_reach_the_query(session: Session, folder: Path) -> None:
    for command in (".confidence 0.9", ".simultaneous on", f".with r={folder / 'regions.csv'}"):
        assert perform(session, command)
    sql = "select region, count(*) from people join r on town = place group by region"
    assert perform(session, sql)
    answer = session.last()
    assert answer.confidence == 0.9
    assert {row["region"] for row in answer.rows} == {"north", "south"}
    plain = session.release.query(sql, 0.9, tables=session.tables)
    wide, narrow = (next(iter(a.rows))["count"].interval() for a in (answer, plain))
    assert wide[1] - wide[0] > narrow[1] - narrow[0]


@pytest.mark.parametrize(
    "command",
    [
        ".confidence 2", ".confidence high", ".timing maybe", ".with x", ".with 1x=regions.csv",
        ".with x=missing.csv", ".nothing", ".explain", ".plot", ".csv out.csv", ".parquet",
    ],
)  # fmt: skip
def test_wrong_commands_are_refused(
    session: Session, command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert not perform(session, command)
    assert capsys.readouterr().err.startswith("error: ")
    assert list(Path.cwd().iterdir()) == []


def test_the_last_answer_is_written_whole(session: Session) -> None:
    assert perform(session, "select town, count(*) from people group by town")
    for name in ("a.csv", "a.parquet", "a.json"):
        assert perform(session, f".{name.partition('.')[2]} {name}")
    with Path("a.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["town"] for row in rows] == [row["town"] for row in session.last().rows]
    assert set(rows[0]) == {"town", "count", "count_stderr", "count_low", "count_high"}
    assert pq.read_table("a.parquet").num_rows == 3
    assert json.loads(Path("a.json").read_text()) == session.last().to_dict()
    assert sorted(p.name for p in Path.cwd().iterdir()) == ["a.csv", "a.json", "a.parquet"]


def test_nothing_is_written_into_the_release(
    session: Session, capsys: pytest.CaptureFixture[str]
) -> None:
    assert perform(session, "select count(*) from people")
    inside = session.release.path / "data" / "x.png"
    for command in (".csv", ".parquet", ".json", ".plot"):
        assert not perform(session, f"{command} {inside}")
        assert "lies in the release" in capsys.readouterr().err
    assert not inside.exists()


def test_modes_and_timing(session: Session, capsys: pytest.CaptureFixture[str]) -> None:
    for statement in (".json", "select count(*) from people", ".csv", "select count(*) from people",
                      ".table", ".timing on", "select count(*) from people"):  # fmt: skip
        assert perform(session, statement)
    done = capsys.readouterr()
    first, header, values, *table = done.out.splitlines()
    assert json.loads(first)["rows"][0]["count"]["estimate"] == float(values.split(",")[0])
    assert header == "count,count_stderr,count_low,count_high"
    assert "estimate" in "".join(table)
    assert done.err.splitlines()[-1].endswith(" s")


def test_long_answers_are_cut_at_the_prompt_only(
    session: Session, capsys: pytest.CaptureFixture[str]
) -> None:
    sql = 'select town, age, smokes, "full name", count(*) from people group by all'
    session.interactive = True
    assert perform(session, sql)
    done = capsys.readouterr()
    rows = len(session.last().rows)
    assert rows > 200
    assert f"{rows - 200:,} more rows" in done.err
    assert done.out.count("│ Ash") <= 200


# ---------------------------------------------------------------------- in a pipe


def piped(folder: Path, *arguments: str, text: str = "") -> subprocess.CompletedProcess[str]:
    return run("shell", "people.voile", *arguments, cwd=folder, text=text)


def test_statements_from_a_pipe(folder: Path) -> None:
    done = piped(folder, text="select count(*) from people;\nselect avg(age)\nfrom people\n")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("estimate") == 2
    assert "voile>" not in done.stdout


def test_a_refusal_in_a_pipe_is_exit_code_1_and_the_rest_is_answered(folder: Path) -> None:
    done = piped(folder, "--json", text="select nope from people; select count(*) from people;")
    assert done.returncode == 1
    assert "error: " in done.stderr
    [line] = done.stdout.splitlines()
    assert set(json.loads(line)) >= {"rows", "confidence", "covers"}


def test_commands_given_and_json_keys_of_query(folder: Path) -> None:
    sql = "select count(*) from people where town = 'Ash'"
    done = piped(folder, "-c", ".confidence 0.9", "-c", f"{sql}; {sql}", "--json")
    assert done.returncode == 0, done.stderr
    first, second = (json.loads(line) for line in done.stdout.splitlines())
    assert first == second == voile.open(folder / "people.voile").query(sql, 0.9).to_dict()


def test_a_table_of_ones_own_as_an_option(folder: Path) -> None:
    sql = "select count(*) from people join r on town = place"
    assert piped(folder, "--with", "r=regions.csv", "-c", sql).returncode == 0
    assert piped(folder, "--with", "r=missing.csv", "-c", sql).returncode == 2


# ---------------------------------------------------------------------- bars


def estimate(value: float, low: float, high: float) -> Estimate:
    return Estimate(value, 1.0, 0.95, COVERS, lambda _: (low, high))


def towns(*rows: tuple[str, float, float, float]) -> Answer:
    found = tuple({"town": name, "count": estimate(*ends)} for name, *ends in rows)
    return Answer(found, 0.95, COVERS)


ODD = towns(
    ("Ash", 40.0, 30.0, 50.0),
    ("Elm", math.nan, 10.0, math.inf),
    ("Fir", -20.0, -math.inf, math.inf),
    ("Oak", 30.0, math.nan, math.nan),
    ("Yew", 25.0, 5.0, 9000.0),
    ("Box", math.nan, math.nan, math.nan),
)


def bars(answer: Answer, sql: str = "", width: int = 60) -> list[str]:
    console = Console(width=width, color_system=None)
    with console.capture() as captured:
        print_bars(answer, sql, console)
    return captured.get().splitlines()


def test_bars_of_letters_have_whiskers() -> None:
    title, ash, elm = bars(towns(("Ash", 100.0, 80.0, 120.0), ("Elm", -50.0, -70.0, -30.0)))
    assert title == "count by town"
    assert ash.index("├") < ash.index("●") < ash.index("┤") < ash.index("100")
    assert elm.index("├") < elm.index("●") < elm.index("┤") < elm.index("-50")
    assert elm.index("●") < ash.index("█")
    assert max(map(len, (title, ash, elm))) <= 60


def test_bars_of_letters_say_what_is_unknown_or_unbounded() -> None:
    shown = bars(ODD, "select … order by town")
    lines = {line.split()[0]: line for line in shown}
    assert "▶" in lines["Elm"] and "unknown" in lines["Elm"] and "●" not in lines["Elm"]
    assert "◀" in lines["Fir"] and "▶" in lines["Fir"]
    assert "├" not in lines["Oak"] and "█" in lines["Oak"]
    assert "▶" in lines["Yew"]
    assert "unknown" in lines["Box"] and "█" not in lines["Box"]
    assert "2 of 6 estimates are unknown" in shown


def test_bars_keep_control_characters_from_the_terminal() -> None:
    assert "\x1b" not in "".join(bars(towns(("A\x1b[31m", 1.0, 0.0, 2.0))))


def test_rows_stand_in_the_order_asked_for_and_else_by_size() -> None:
    answer = towns(*((f"a long name {i}", float(i), i - 1.0, i + 1.0) for i in range(12)))
    free = answer_plot.drawing(answer, "select town, count(*) from t group by town")
    asked = answer_plot.drawing(answer, "select town, count(*) from t group by 1 ORDER  BY 1")
    assert asked.names == [f"a long name {i}" for i in range(12)]
    assert free.names == asked.names[::-1]


drawn = pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in ("altair", "vl_convert")),
    reason="needs the extra 'plots'",
)


def spec_of(answer: Answer, sql: str = "select …") -> dict[str, Any]:
    found: dict[str, Any] = answer_plot.draw(answer, sql).to_dict()
    return found


def panels(spec: dict[str, Any]) -> list[dict[str, Any]]:
    inner = spec["hconcat"][0]
    found: list[dict[str, Any]] = inner.get("vconcat") or inner["hconcat"]
    return found


def rows_of(spec: dict[str, Any]) -> list[dict[str, Any]]:
    """The rows of a picture with one panel."""
    [found] = spec["datasets"].values()
    return list(found)


@drawn
def test_pictures_have_the_signature_of_their_format(
    session: Session, capsys: pytest.CaptureFixture[str]
) -> None:
    assert perform(session, "select town, count(*) from people group by town")
    signatures = {"png": b"\x89PNG", "pdf": b"%PDF", "svg": b"<svg", "html": b"<!doctype html"}
    for kind, signature in signatures.items():
        assert perform(session, f".plot 'my picture.{kind}'")
        assert Path(f"my picture.{kind}").read_bytes().startswith(signature)
    assert perform(session, ".plot") and perform(session, ".plot")
    assert Path("people-1.png").exists() and Path("people-2.png").exists()
    done = capsys.readouterr()
    assert "wrote people-2.png" in done.err
    assert "●" in done.out
    assert not perform(session, ".plot picture.gif")
    assert ".svg" in capsys.readouterr().err


def test_without_the_extra_there_still_are_bars(
    session: Session, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "altair", None)
    assert perform(session, "select count(*) from people")
    assert perform(session, ".plot")
    done = capsys.readouterr()
    assert "●" in done.out and "pip install 'voile[plots]'" in " ".join(done.err.split())
    assert not perform(session, ".plot x.png")
    assert list(Path.cwd().iterdir()) == []


@drawn
def test_a_picture_says_what_was_asked_and_what_is_covered() -> None:
    answer = towns(("Ash", 40.0, 30.0, 50.0), ("Elm", 20.0, 10.0, 30.0))
    spec = spec_of(answer, "select town,\n  count(*) from t group by town;")
    title = spec["hconcat"][0]["title"]
    assert " ".join(title["text"]) == "select town, count(*) from t group by town"
    assert COVERS in " ".join(title["subtitle"]) and "95 %" in " ".join(title["subtitle"])
    [panel] = panels(spec)
    assert [(r["group"], r["value"], r["low"], r["high"]) for r in rows_of(spec)] == [
        ("Ash", 40, 30, 50), ("Elm", 20, 10, 30)]  # fmt: skip
    marks = [layer["mark"]["type"] for layer in panel["layer"]]
    assert marks[:3] == ["bar", "rule", "rule"] and "tick" in marks
    long = spec_of(answer, "select " + "very_long_name, " * 40)
    assert len(long["hconcat"][0]["title"]["text"]) == 3


@drawn
def test_long_labels_lie_down_and_short_ones_stand() -> None:
    short = panels(spec_of(towns(("Ash", 1.0, 0.0, 2.0), ("Elm", 2.0, 1.0, 3.0))))[0]
    assert short["layer"][0]["encoding"]["x"]["field"] == "group"
    name = "a name that would not fit"
    long = panels(spec_of(towns((name, 1.0, 0.0, 2.0), ("Elm", 2.0, 1.0, 3.0))))[0]
    assert long["layer"][0]["encoding"]["y"]["field"] == "group"


@drawn
def test_two_group_columns_are_places_and_colours() -> None:
    rows = tuple(
        {"decade": float(d), "sex": s, "people": estimate(d, d - 5.0, d + 5.0)}
        for d in range(20, 90, 10)
        for s in ("Female", "Male")
    )
    [panel] = panels(spec_of(Answer(rows, 0.95, COVERS)))
    encoding = panel["layer"][0]["encoding"]
    assert encoding["x"]["sort"] == ["20", "30", "40", "50", "60", "70", "80"]
    assert encoding["xOffset"]["field"] == "colour"
    assert encoding["color"]["scale"]["domain"] == ["Female", "Male"]
    assert encoding["color"]["legend"]["title"] == "sex"


@drawn
def test_several_aggregates_are_small_multiples() -> None:
    rows = tuple(
        {"town": t, "count": estimate(9000.0, 8000.0, 9900.0), "avg": estimate(40.0, 38.0, 42.0)}
        for t in ("Ash", "Elm")
    )
    both = panels(spec_of(Answer(rows, 0.95, COVERS)))
    assert [panel["title"]["text"] for panel in both] == ["count", "avg"]
    ends = [panel["layer"][0]["encoding"]["y"]["scale"]["domain"][1] for panel in both]
    assert ends[0] > 9900 and 42 < ends[1] < 100


@drawn
def test_a_picture_draws_no_interval_that_it_does_not_know() -> None:
    spec = spec_of(ODD, "… order by town")
    [panel] = panels(spec)
    rows = {row["group"]: row for row in rows_of(spec)}
    axis = panel["layer"][0]["encoding"]["x" if "x2" in panel["layer"][0]["encoding"] else "y"]
    low, high = axis["scale"]["domain"]
    assert rows["Elm"]["value"] is None and rows["Elm"]["high cut"] and not rows["Elm"]["low cut"]
    assert rows["Fir"]["low cut"] and rows["Fir"]["high cut"]
    assert rows["Yew"]["high cut"] and high < 1000
    assert rows["Oak"]["low"] is None and rows["Oak"]["value"] == 30
    assert rows["Box"]["value"] is None and rows["Box"]["estimate"] == "unknown"
    for row in rows.values():
        assert all(low <= row[end] <= high for end in ("low", "high") if row[end] is not None)
    caption = " ".join(spec["title"]["text"])
    assert "2 of 6 estimates are unknown" in caption and "no end" in caption
    assert "NaN" not in json.dumps(spec) and "Infinity" not in json.dumps(spec)


@drawn
def test_a_picture_of_many_groups_says_that_it_is_cut() -> None:
    many = towns(*((f"group number {i}", 5.0, 4.0, 6.0) for i in range(500)))
    spec = spec_of(many)
    assert len(rows_of(spec)) == answer_plot.MOST_BARS
    assert "the first 60 of 500 rows" in " ".join(spec["title"]["text"]).lower()


def test_an_answer_without_rows_is_refused() -> None:
    with pytest.raises(voile.VoileError, match="nothing to draw"):
        answer_plot.drawing(Answer((), 0.95, COVERS), "select …")
