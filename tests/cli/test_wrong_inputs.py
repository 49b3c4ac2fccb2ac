"""Sixty wrong inputs: each is answered with the value, the place, and what to type instead.

What stands in the second line of a case is typed: it must differ from the first by words that the
answer names (or that it says to leave out), and it must work.
"""

from __future__ import annotations

import random
import re
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support.running import voile
from tests.support.soak import some

PROMISE = "--prior 0.01 --posterior 0.3 --simulate-seed 1 --no-register"
MADE = f"-o made.voile {PROMISE}"
COUNT = "select count(*) from people"


class WrongInput(NamedTuple):
    """A line that is refused, what the answer says, and the line that it leads to."""

    line: str
    says: tuple[str, ...]
    """The value and the place, in the first lines of the answer."""
    instead: str


def wrong(line: str, *says: str, instead: str) -> WrongInput:
    return WrongInput(f"voile {line}", says, f"voile {instead}")


CASES = [
    # ------------------------------------------------------------------ names
    wrong("inspect poeple.csv", "poeple.csv", instead="inspect people.csv"),
    wrong("inspect nofolder/people.csv", "nofolder/people.csv", instead="inspect people.csv"),
    wrong("inspect folder", "folder", "Parquet", instead="inspect 'folder/*.csv'"),
    wrong("inspect 'commass*.csv'", "commass*.csv", instead="inspect commas.csv"),
    wrong("inspect dataset:adlut", "adlut", instead="inspect dataset:adult"),
    wrong("inspect people.csv::t", "'::t'", "people.csv", instead="inspect people.csv"),
    wrong("inspct people.csv", "'inspct'", instead="inspect people.csv"),
    wrong("inspect people.csv --nullls drop", "--nullls",
          instead="inspect people.csv --nulls drop"),
    wrong("inspect people.csv --columns city,agee", "'agee'", "'people'",
          instead="inspect people.csv --columns city,age"),
    wrong(f"publish people.csv --columns cities,age {MADE}", "'cities'", "'people'",
          instead=f"publish people.csv --columns city,age {MADE}"),
    wrong(f"publish people.csv --person nobody {MADE}", "'nobody'", "'people'",
          instead=f"publish people.csv --person smoker {MADE}"),
    wrong(f"query view.voil '{COUNT}'", "'view.voil'", instead=f"query view.voile '{COUNT}'"),
    wrong("verify viev.voile", "'viev.voile'", instead="verify view.voile"),
    wrong("verify people.csv", "'people.csv'", instead="publish people.csv --yes --no-register"),
    # ------------------------------------------------------------------ files
    wrong("inspect latin.csv", "latin.csv", "Line: ", "byte ",
          instead="inspect latin.csv --encoding cp1252"),
    wrong("inspect latin.csv --encoding utf-16", "utf-16", "byte 1",
          instead="inspect latin.csv --encoding cp1252"),
    wrong("inspect ragged.csv", "Line: 9", "Found: 3",
          instead="inspect ragged.csv --bad-rows drop"),
    wrong("inspect short.csv", "Line: 9", "Found: 1", instead="inspect short.csv --bad-rows drop"),
    wrong("inspect quoted.csv", "Line: 7", "quote", instead="inspect quoted.csv --bad-rows drop"),
    wrong("inspect title.csv", "line 1 has 1 cell", "line 2", instead="inspect title.csv --skip 1"),
    wrong("inspect titles.csv", "line 1 has 1 cell", "line 3",
          instead="inspect titles.csv --skip 2"),
    wrong("inspect bare.csv", "bare.csv", "39", instead="inspect bare.csv --header no"),
    wrong("inspect year.csv", "year.csv", "1.5e3", instead="inspect year.csv --header yes"),
    wrong("inspect people.csv --skip 999", "999", "people.csv", instead="inspect people.csv"),
    wrong("inspect people.csv --skip -1", "--skip -1", instead="inspect people.csv --skip 0"),
    wrong("inspect semicolons.csv --separator ab", "--separator ab",
          instead="inspect semicolons.csv --separator ';'"),
    wrong("inspect latin.csv --encoding klingon", "klingon",
          instead="inspect latin.csv --encoding cp1252"),
    wrong("inspect people.csv --dates ddmm", "--dates ddmm",
          instead="inspect people.csv --dates dmy"),
    wrong("inspect people.csv --header maybe", "--header maybe",
          instead="inspect people.csv --header yes"),
    wrong("inspect people.csv --decimal ';'", "--decimal ';'",
          instead="inspect people.csv --decimal ,"),
    wrong("inspect people.csv --thousands x", "--thousands x",
          instead="inspect people.csv --thousands ,"),
    wrong("inspect people.csv --decimal , --thousands ,", "--decimal ,", "--thousands ,",
          instead="inspect people.csv --decimal , --thousands ."),
    wrong("inspect people.csv --bad-rows keep", "--bad-rows keep",
          instead="inspect people.csv --bad-rows drop"),
    wrong("inspect people.parquet --separator ';'", "--separator ';'", "people.parquet",
          instead="inspect people.parquet"),
    wrong("inspect packed.csv.gz", "packed.csv.gz", "not packed", instead="inspect packed.csv"),
    # ------------------------------------------------------------------ columns
    wrong(f"publish na.csv --nulls as-value {MADE}", "'age'", "'NA'", "45 rows",
          instead=f"publish na.csv --nulls as-value --na {MADE}"),
    wrong(f"publish na.csv --nulls drop {MADE}", "'age'", "'NA'",
          instead=f"publish na.csv --nulls drop --no-na {MADE}"),
    wrong(f"publish dots.csv --nulls drop {MADE}", "'age'", "'.'",
          instead=f"publish dots.csv --nulls drop --na {MADE}"),
    wrong(f"publish gaps.csv {MADE}", "'age'", "45 rows",
          instead=f"publish gaps.csv --nulls drop {MADE}"),
    wrong("publish gaps.csv --yes", "'age'", "45 rows",
          instead="publish gaps.csv --nulls as-value --yes --no-register"),
    wrong(f"publish dates.csv {MADE}", "'day'", "03/03/2020",
          instead=f"publish dates.csv --dates dmy {MADE}"),
    wrong(f"publish dates.csv {MADE}", "'day'", "03/03/2020",
          instead=f"publish dates.csv --dates text {MADE}"),
    wrong(f"publish commas.csv {MADE}", "'size'", "1,1",
          instead=f"publish commas.csv --thousands , {MADE}"),
    wrong(f"publish ids.csv {MADE}", "'id'", "400",
          instead=f"publish ids.csv --columns city,age {MADE}"),
    wrong(f"publish people.csv --columns city,city {MADE}", "city, city",
          instead=f"publish people.csv --columns city {MADE}"),
    wrong("plan people.csv --columns city,agee", "'agee'", "'people'",
          instead="plan people.csv --columns city,age"),
    wrong(f"publish na.csv --schema ages.yaml {MADE}", "row 1, column 'age'", "'NA'",
          instead=f"publish na.csv --schema ages.yaml --na {MADE}"),
    # ------------------------------------------------------------------ promises
    wrong("publish people.csv --epsilon 0 --yes", "--epsilon 0",
          instead="publish people.csv --epsilon 1 --yes --no-register"),
    wrong("publish people.csv --epsilon -2 --yes", "--epsilon -2",
          instead="publish people.csv --epsilon 1 --yes --no-register"),
    wrong("publish people.csv --epsilon 50 --yes --no-register", "ε = 50",
          instead="publish people.csv --epsilon 50 --yes --no-register --weak"),
    wrong("publish people.csv --epsilon 20 --yes --no-register", "ε = 20",
          instead="publish people.csv --epsilon 1 --yes --no-register"),
    wrong("publish people.csv --prior 1e-9 --no-register", "1e-09",
          instead="publish people.csv --prior 1e-9 --no-register --weak"),
    wrong("publish people.csv --delta 2 --yes", "--delta 2",
          instead="publish people.csv --delta 1e-9 --yes --no-register"),
    wrong("publish people.csv --schema-share 2 --yes", "--schema-share 2",
          instead="publish people.csv --schema-share 0.1 --yes --no-register"),
    wrong("publish people.csv --person city --rows-per-person 0 --yes", "--rows-per-person 0",
          instead="publish people.csv --person city --rows-per-person 1 --yes --no-register"),
    wrong("publish people.csv --nulls maybe --yes", "--nulls maybe",
          instead="publish people.csv --nulls drop --yes --no-register"),
    wrong(f"publish people.csv --method magic {PROMISE}", "--method magic",
          instead=f"publish people.csv --method alphabeta {PROMISE}"),
    wrong("publish people.csv --method marginals --pure", "--pure", "δ = 0",
          instead="publish people.csv --method marginals"),
    wrong(f"publish people.csv --epsilon 1 {PROMISE}", "--epsilon and --prior",
          instead=f"publish people.csv {PROMISE}"),
    wrong("publish people.csv --no-register", "nothing of use", "ε = 1",
          instead="publish people.csv --no-register --yes"),
    # ------------------------------------------------------------------ places
    wrong(f"publish people.csv -o view.voile {PROMISE}", "'view.voile'",
          instead=f"publish people.csv -o view.voile {PROMISE} --overwrite"),
    wrong("schema people.csv -o ages.yaml", "'ages.yaml'",
          instead="schema people.csv -o ages.yaml --overwrite"),
    # ------------------------------------------------------------------ questions
    wrong(f"query view.voile '{COUNT} where agee > 3'", "'agee'", "line 1, column 35",
          instead=f"query view.voile '{COUNT} where age > 3'"),
    wrong("query view.voile 'select citty, count(*) from people group by 1'", "'citty'", "column 8",
          instead="query view.voile 'select city, count(*) from people group by 1'"),
    wrong("query view.voile 'select max(age) from people'", "MAX(age)", "column 8",
          instead="query view.voile 'select quantile_disc(age, 0.99) from people'"),
    wrong("query view.voile 'select * from people join more'", "'more'", "column 27",
          instead="query view.voile 'select count(*) from people join more using (city)' "
          "--with more=file.csv"),
    wrong(f"query view.voile '{COUNT}' --confidence 2", "confidence 2",
          instead=f"query view.voile '{COUNT}' --confidence 0.95"),
]  # fmt: skip


def test_there_are_sixty() -> None:
    assert len(CASES) >= 60


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wrong")
    coin = random.Random(3)  # noqa: S311
    rows = [(coin.choice(["Ulm", "Bonn"]), coin.randrange(60), coin.choice(["yes", "no"]))
            for _ in range(400)]  # fmt: skip

    def write(name: str, head: str, line: Callable[[int, str, int, str], str]) -> None:
        lines = [head, *(line(i, *row) for i, row in enumerate(rows))]
        (folder / name).write_text("\n".join(lines) + "\n", encoding="utf-8")

    write("people.csv", "city,age,smoker", lambda _, a, b, c: f"{a},{b},{c}")
    write("semicolons.csv", "city;age", lambda _, a, b, __: f"{a};{b}")
    write("ragged.csv", "city,age", lambda i, a, b, _: f"{a},{b}" + ",x" * (i == 7))
    write("short.csv", "city,age", lambda i, a, b, _: a if i == 7 else f"{a},{b}")
    write("quoted.csv", "city,age", lambda i, a, b, _: f'"{a}"x,{b}' if i == 5 else f"{a},{b}")
    write("title.csv", "My survey\ncity,age", lambda _, a, b, __: f"{a},{b}")
    write("titles.csv", "My survey\n\ncity,age", lambda _, a, b, __: f"{a},{b}")
    write("bare.csv", "39,Ulm,77", lambda i, a, b, _: f"{b},{a},{i % 7}")
    write("year.csv", "city,1.5e3", lambda _, a, b, __: f"{a},{b}")
    write("na.csv", "city,age", lambda i, a, b, _: f"{a},{b if i % 9 else 'NA'}")
    write("dots.csv", "city,age", lambda i, a, b, _: f"{a},{b if i % 9 else '.'}")
    write("gaps.csv", "city,age", lambda i, a, b, _: f"{a},{b if i % 9 else ''}")
    write("dates.csv", "city,day", lambda _, a, b, __: f"{a},0{b % 9 + 1}/0{b % 7 + 1}/2020")
    write("commas.csv", "city,size", lambda _, a, b, __: f'{a},"{b % 9 + 1},{100 + b}"')
    write("ids.csv", "id,city,age", lambda i, a, b, _: f"p{i},{a},{b}")
    latin = (folder / "people.csv").read_text().replace("Ulm", "Köln").encode("cp1252")
    (folder / "latin.csv").write_bytes(b"city,age,smoker\n" + latin.partition(b"\n")[2])
    (folder / "folder").mkdir()
    for copy in ("folder/a.csv", "packed.csv.gz", "packed.csv"):
        shutil.copy(folder / "people.csv", folder / copy)
    (folder / "file.csv").write_text("city,land\nUlm,BW\nBonn,NRW\n")
    age = "kind: integer\n  range: [0, 99]\n  'null': true"
    (folder / "ages.yaml").write_text(f"attributes:\n- name: age\n  {age}\n")
    typed(f"voile publish people.csv -o view.voile {PROMISE}", folder)
    import duckdb

    duckdb.sql(f"COPY (FROM '{folder}/people.csv') TO '{folder}/people.parquet'")
    return folder


@pytest.mark.parametrize("case", some(CASES, 24), ids=lambda case: case.line)
def test_a_wrong_input_is_answered_with_what_works(case: WrongInput, world: Path) -> None:
    for name in ("made", "people", "gaps"):
        shutil.rmtree(world / f"{name}.voile", ignore_errors=True)
    refused = voile(*shlex.split(case.line)[1:], cwd=world, columns=400)
    assert refused.returncode in (1, 2), refused.stdout
    assert "Traceback" not in refused.stderr
    answer = refused.stderr
    complaint = answer.partition("hint: ")[0]
    assert [word for word in case.says if word not in complaint] == [], answer
    assert [word for word in changed_words(case) if word not in spoken(answer)] == [], answer
    typed(case.instead, world)


def changed_words(case: WrongInput) -> set[str]:
    """Words that are typed now, and those that are left out now."""
    before, now = (set(re.findall(r"[\w.*/-]+", line)) for line in (case.line, case.instead))
    gone = {word for word in before - now if word.startswith("--")}
    return (now - before - HELPERS) | gone


HELPERS = {*["publish", "--yes", "--no-register", "count", "using", "city", "*"]}
"""What is typed besides: another command, or the rest of a question."""


def spoken(answer: str) -> str:
    """An answer without the frames and line breaks of a terminal."""
    return re.sub(r"[\s│]+", " ", answer)


def typed(line: str, folder: Path) -> None:
    done = voile(*shlex.split(line)[1:], cwd=folder, columns=400)
    assert done.returncode == 0, f"{line}\n{done.stderr}"
