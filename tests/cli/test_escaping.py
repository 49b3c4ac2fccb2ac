"""Nothing that tables and releases hold reaches a terminal as more than text."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from rich.console import Console
from rich.table import Table
from rich.text import Text

import voile
from tests.support.forging import sealed
from tests.support.running import voile as run
from voile.kinds.manifest import MANIFEST
from voile.terminal.consoles import EscapingConsole
from voile.terminal.escaping import EscapingStream, escaped, json_text

ACTIVE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
"""All controls but tab and newline, and all marks of direction."""
TRICKS = "\x1b]0;title\x07 \x1b[2J \x9b31m \x7f \u202egnp\u2066 \u061c\u200f\r\x08"
HEBREW, ARABIC = "שלום", "سلام"


def active(text: str) -> list[str]:
    return ACTIVE.findall(text)


def test_the_pattern_of_this_test_is_every_control_and_mark_of_unicode() -> None:
    import unicodedata

    for number in range(0x110000):
        sign = chr(number)
        control = unicodedata.category(sign) in ("Cc", "Zl", "Zp") and sign not in "\n\t"
        turned = unicodedata.bidirectional(sign) in (
            "LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI",
        )  # fmt: skip
        if control or turned or sign in "\u061c\u200e\u200f":
            assert active(sign), hex(number)
            assert not active(escaped(sign)), hex(number)
        else:
            assert escaped(sign) == sign, hex(number)


def test_json_means_the_same() -> None:
    data = {TRICKS: [TRICKS, HEBREW, ARABIC]}
    text = json_text(data, indent=2)
    assert not active(text)
    assert json.loads(text) == data
    assert HEBREW in text


# ---------------------------------------------------------------------- streams and consoles


def test_a_stream_keeps_colours_and_nothing_else() -> None:
    beneath = io.StringIO()
    stream = EscapingStream(beneath)
    print("\x1b[1;31mred\x1b[0m \x1b[2J", HEBREW, "\x9b2J", file=stream)
    assert beneath.getvalue() == f"\x1b[1;31mred\x1b[0m \\x1b[2J {HEBREW} \\x9b2J\n"


@pytest.mark.parametrize("given", ["text", "string", "table"])
def test_a_console_keeps_its_own_colours_and_none_of_the_values(given: str) -> None:
    file = io.StringIO()
    console = EscapingConsole(file=file, force_terminal=True, color_system="standard", width=200,
                              highlight=False)  # fmt: skip
    value = "\x1b[8mhidden\x1b[0m \u202e"
    shown: Any = Text(value, style="red") if given == "text" else f"[red]{value}[/red]"
    if given == "table":
        table = Table(value)
        table.add_row(f"[red]{value}[/red]")
        shown = table
    console.print(shown)
    text = file.getvalue()
    assert "\x1b[8m" not in text
    assert "\\x1b[8mhidden\\x1b[0m \\u202e" in text
    assert "\x1b[31m" in text


def test_what_is_escaped_keeps_a_table_straight() -> None:
    file = io.StringIO()
    table = Table("value", "number")
    table.add_row("\x1b[2J\u202e", "1")
    table.add_row(HEBREW, "2")
    EscapingConsole(file=file, width=80).print(table)
    lines = [line for line in file.getvalue().split("\n") if "│" in line]
    plain = Console(width=80)
    assert len({plain.measure(line).maximum for line in lines}) == 1


# ---------------------------------------------------------------------- commands


def rows(tricks: str) -> pd.DataFrame:
    values = ["plain", f"a{tricks}", f"{HEBREW} {ARABIC}", "\x1b[31mred"]
    ages = [i % 5 for i in range(200)]
    return pd.DataFrame({f"n{tricks}": [values[i % 4] for i in range(200)], "age": ages})


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A CSV file whose header and values are hostile."""
    path = tmp_path_factory.mktemp("hostile") / f"people {TRICKS[:3]}\u202e.csv"
    frame = rows(TRICKS.replace("\r", ""))  # which would end a line
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, quoting=csv.QUOTE_ALL)
        writer.writerow(frame.columns)
        writer.writerows(frame.itertuples(index=False))
    return path


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A release of it, whose manifest was tampered with as well, and sealed again."""
    place = tmp_path_factory.mktemp("releases") / "hostile.voile"
    voile.publish(rows(TRICKS), to=place, prior=0.1, posterior=0.5, name="people")
    data = json.loads((place / MANIFEST).read_bytes())
    data["name"] = "people\x9b2J\u202e"
    data["voile"] = f"0.1{TRICKS}"
    data["disclosed"] = [{"what": f"what{TRICKS}", "why": f"[x](http://x/) `{TRICKS}`"}]
    (place / MANIFEST).write_text(json.dumps(data))
    return sealed(place)


def test_the_fixture_is_hostile(hostile: Path) -> None:
    release = voile.open(hostile)
    assert active(release.name)
    assert active(release.schema.names[0])
    assert any(active(str(value)) for value in release.schema.attributes[0])


QUESTION = 'select "{0}", count(*) from "{1}" group by "{0}"'


COMMANDS = ["describe", "verify", "guarantees", "query", "query --no-check", "explain", "shell",
            "refine", "wrong", "wrong column"]  # fmt: skip


@pytest.mark.parametrize(
    ("command", "form"),
    [
        *((command, form) for command in COMMANDS for form in ([], ["--json"])),
        ("query --csv", []),
        ("shell --csv", []),
    ],
)
def test_commands_on_a_hostile_release(hostile: Path, command: str, form: list[str]) -> None:
    release = voile.open(hostile)
    sql = QUESTION.format(release.schema.names[0].replace('"', '""'), release.name)
    verb, *flags = command.split()
    arguments = [verb, str(hostile), *flags]
    if verb in ("query", "explain"):
        arguments = [verb, str(hostile), sql, *flags]
    elif command.startswith("shell"):
        lines = [".csv"] if flags else []
        given = [
            *lines,
            sql,
            "\\d",
            f'\\d "{release.schema.names[0]}"',
            ".explain " + sql,
            "bad sql",
        ]
        arguments = [verb, str(hostile), *(part for line in given for part in ("-c", line))]
    elif command == "wrong":
        arguments = ["query", str(hostile.with_name(f"no{TRICKS}")), "select 1"]
    elif command == "wrong column":
        arguments = ["query", str(hostile), f'select count(*) from people where "x{TRICKS}" = 1']
    done = run(*arguments, *form)
    assert done.stdout or done.stderr
    assert not active(done.stdout)
    assert not active(done.stderr)
    if form and done.returncode == 0 and verb in ("query", "describe", "explain", "verify"):
        json.loads(done.stdout)
    if command == "query":
        assert done.returncode == 0, done.stderr
        assert HEBREW in done.stdout
        assert ARABIC in done.stdout


@pytest.mark.parametrize("form", [[], ["--json"]])
def test_commands_on_a_hostile_table(table: Path, tmp_path: Path, form: list[str]) -> None:
    table_, release, out = str(table), str(tmp_path / "x.voile"), str(tmp_path / "x.csv")
    outputs = [
        run("inspect", str(table), *form),
        run("schema", str(table)),
        run("publish", table_, release, "--prior", "0.1", *form),
        run("generalize", table_, "-o", out, "--qi", "age", "--k", "5", *form),
        run("publish", str(table), str(tmp_path / f"no{TRICKS[:2]}" / "x.voile"), *form),
        run("inspect", str(table.with_name(f"no{TRICKS}.csv")), *form),
        run(f"verb{TRICKS}"),
    ]  # fmt: skip
    for done in outputs:
        assert done.stdout or done.stderr, done.args
        assert not active(done.stdout), done.args
        assert not active(done.stderr), done.args
    assert outputs[0].returncode == 0


def test_nothing_changes_where_nothing_is_hostile(tmp_path: Path) -> None:
    frame = pd.DataFrame({"name": [HEBREW, ARABIC, "é", "😀"] * 50, "n": range(200)})
    release = voile.publish(
        frame[["name"]], to=tmp_path / "x.voile", prior=0.1, posterior=0.5, name="x"
    )
    done = run("query", str(release.path), "select name, count(*) from x group by name", "--csv")
    answer = release.query("select name, count(*) from x group by name")
    assert done.stdout == answer.to_csv()
