"""Random SQL against the query path: python tools/fuzz.py --inputs 100000 --seed 1

Soups of tokens, queries from a grammar, and mutations of tests/sql. Each input is parsed, planned
and, where it is accepted, answered on a tiny view beside the auxiliary tables. It must be answered
or refused with a VoileError within the time limit, without a warning, without opening a file or a
socket, and without leaving a thread behind.
"""

from __future__ import annotations

import argparse
import faulthandler
import json
import random
import signal
import sys
import tempfile
import threading
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from types import FrameType
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from sqlglot.errors import SqlglotError  # noqa: E402
from tests.support.sqlfiles import TABLES, TINY, cases, people, view_of  # noqa: E402

from voile.engines.duckdb.rows import DuckRows  # noqa: E402
from voile.engines.rows import ReleaseRows  # noqa: E402
from voile.errors import VoileError  # noqa: E402
from voile.kinds.views.answering import answer  # noqa: E402
from voile.kinds.views.estimator import ViewSource as Source  # noqa: E402
from voile.mechanisms import AlphaBeta  # noqa: E402
from voile.query import DomainSums, parse  # noqa: E402
from voile.query.text import Dialect  # noqa: E402

SECONDS = 5.0
STUCK = 120.0
"""Seconds after which the process gives up on a call that no signal reaches."""
MEMORY = 2**24
WATCHED = ("open", "socket.connect", "socket.bind", "subprocess.Popen", "os.system", "os.exec")
SHOWN = 400
REPORTED = 5000
"""Inputs after which a line says how far it is."""

WORDS = """select from where group by having order limit offset and or not xor in is null between
like ilike similar to case when then else end as on join left using exists all any distinct filter
within over partition union with true false interval date cast asc desc nulls first last values
( ) , . * + - / % = <> < > <= >= || :: ; ' " [ ] { } : ? $ @ ! ~ ^ & | -- /* */ => -> \\ `
0 1 2 7 10 -1 0.5 1e308 1e-9 99999999999999999999 0x1F 'Kenya' '' 'x' '%' '2004-02-30' '2004-02-29'
count count(*) sum avg median stddev corr min max quantile_cont percentile_cont width_bucket
count_if coalesce nullif abs sqrt ln exp round floor length lower upper substring year month
date_trunc strftime lpad repeat random now current_date read_csv getenv unnest range generate_series
people regions grades age nationality score balance height joined member "odd name" größe "select"
country continent gdp grade low high code p r t n x""".split()  # noqa: SIM905
KEYWORDS = {*Dialect.Tokenizer.KEYWORDS} - {"DATE", "YEAR", "MONTH", "LENGTH", "ROUND"}
ODD = "\u0000\u00a0\u200b\u202e\ufeff\ud7ff😀é́ſİ\\'\"`;\r\n\t\x1b%{}"


# ---------------------------------------------------------------------- inputs


@dataclass
class Inputs:
    """Random SQL; the same seed gives the same inputs."""

    random: random.Random

    @cached_property
    def fixtures(self) -> list[str]:
        """The SQL of the test cases about the table of people."""
        every = [*cases("answer"), *cases("refuse")]
        return [case.sql for case in every if case.table == "people"]

    @cached_property
    def tokenised(self) -> list[list[str]]:
        """The same as lists of tokens."""
        return [tokens(sql) for sql in self.fixtures]

    def __iter__(self) -> Iterator[str]:
        kinds: list[Callable[[], str]] = [self.soup, self.grammar, self.mutated, self.spliced]
        while True:
            yield self.random.choices(kinds, weights=(1, 2, 6, 1))[0]()

    def soup(self) -> str:
        """Words in any order."""
        return " ".join(self.random.choices(WORDS, k=self.random.randint(1, 25)))

    def mutated(self) -> str:
        """A test case with a few tokens changed, sometimes with an odd character."""
        words = list(self.random.choice(self.tokenised))
        for _ in range(self.random.choice((1, 1, 1, 2, 3))):
            self._mutate(words)
        text = " ".join(words)
        if self.random.random() < 0.1:
            at = self.random.randrange(len(text) + 1)
            text = text[:at] + self._odd() + text[at:]
        return text

    def spliced(self) -> str:
        """The start of one test case and the end of another."""
        first, second = self.random.choice(self.tokenised), self.random.choice(self.tokenised)
        cut, start = self.random.randint(0, len(first)), self.random.randint(0, len(second))
        return " ".join([*first[:cut], *second[start:]])

    def _mutate(self, words: list[str]) -> None:
        if not words:
            words.append(self.random.choice(WORDS))
            return
        i, j = (self.random.randrange(len(words)) for _ in range(2))
        match self.random.randrange(10):
            case 0:
                del words[i]
            case 1:
                words.insert(i, words[j])
            case 2:
                words[i], words[j] = words[j], words[i]
            case 3:
                words[i] = self.random.choice(WORDS)
            case 4:
                words[i] = self.random.choice(self.random.choice(self.tokenised) or WORDS)
            case 5:
                words[i : i + 1] = ["(", *words[i : j + 1], ")"]
            case _:
                words[i] = self.random.choice(self.alike.get(kind_of(words[i]), WORDS))

    @cached_property
    def alike(self) -> dict[str, list[str]]:
        """Every token of the files by its kind, so that some mutants are SQL."""
        found: dict[str, list[str]] = {}
        for words in self.tokenised:
            for word in words:
                found.setdefault(kind_of(word), []).append(word)
        return found

    def _odd(self) -> str:
        if self.random.random() < 0.3:
            return chr(self.random.choice([*range(1, 0xD800), *range(0xE000, 0x11000)]))
        return self.random.choice(ODD)

    def grammar(self) -> str:
        """A query that the grammar makes."""
        return Grammar(self.random).query()


def kind_of(word: str) -> str:
    """Whether a token is a keyword, a name, a number, a text or a sign."""
    if word.upper() in KEYWORDS:
        return "keyword"
    return "name" if word[0].isalpha() or word[0] == '"' else "number" if word[0].isdigit() else (
        "text" if word[0] == "'" else "sign")  # fmt: skip


def tokens(sql: str) -> list[str]:
    """The tokens of SQL; its words where it cannot be tokenised."""
    try:
        found = Dialect().tokenize(sql)
    except SqlglotError:
        return sql.split(" ")
    return [sql[token.start : token.end + 1] for token in found]


@dataclass
class Grammar:
    """Queries that are SQL, and mostly of the language."""

    random: random.Random
    depth: int = 0
    numbers: list[str] = field(
        default_factory=lambda: ["age", "score", "balance", "height", '"odd name"', "p.age"]
    )

    def pick(self, *choices: Callable[[], str] | str) -> str:
        """One of the choices; those that are functions are called."""
        chosen = self.random.choice(choices)
        return chosen if isinstance(chosen, str) else chosen()

    def number(self) -> str:
        """An expression that is mostly a number."""
        self.depth += 1
        if self.depth > 12:
            return "1"
        return self.pick(
            *self.numbers, *self.numbers, lambda: str(self.random.randint(-20, 100)), "0.5", "null",
            lambda: f"{self.number()} {self.pick('+', '-', '*', '/', '//', '%')} {self.number()}",
            lambda: f"({self.number()})", lambda: f"-{self.number()}",
            lambda: f"{self.pick('abs', 'sqrt', 'ln', 'exp', 'floor', 'sign')}({self.number()})",
            lambda: f"case when {self.condition()} then {self.number()} else {self.number()} end",
            lambda: f"coalesce({self.number()}, {self.number()})",
            lambda: f"width_bucket({self.number()}, 0, 100, {self.number()})",
            lambda: f"power({self.number()}, {self.number()})", "length(größe)", "year(joined)",
            lambda: f"cast({self.text()} as {self.pick('integer', 'double', 'date')})",
            lambda: f"(select {self.pick('max(gdp)', 'gdp', 'count(*)')} from regions "
                    f"{self.pick('', 'where country = nationality')})",
        )  # fmt: skip

    def text(self) -> str:
        """An expression that is mostly a text."""
        return self.pick(
            "nationality", '"größe"', "'Kenya'", "''", "dayname(joined)", "null",
            lambda: f"{self.pick('upper', 'lower', 'trim', 'reverse')}({self.plain_text()})",
            lambda: f"{self.plain_text()} || {self.plain_text()}",
            lambda: f"substring({self.plain_text()}, {self.random.randint(-3, 5)}, 2)",
            lambda: f"left({self.plain_text()}, {self.number()})",
        )  # fmt: skip

    def plain_text(self) -> str:
        """A text without functions inside of functions."""
        return self.pick("nationality", "größe", "'a%'", "'Per'", "strftime(joined, '%m')")

    def condition(self) -> str:
        """A condition, nested to a limited depth."""
        self.depth += 1
        if self.depth > 12:
            return "true"
        compare = ("=", "<>", "<", "<=", ">", ">=", "is distinct from")
        return self.pick(
            *[lambda: f"{self.number()} {self.pick(*compare)} {self.number()}"] * 3,
            lambda: f"{self.text()} {self.pick('=', '<', 'like', 'ilike', '~')} {self.text()}",
            lambda: f"({self.condition()}) {self.pick('and', 'or', 'xor')} ({self.condition()})",
            lambda: f"{self.condition()} {self.pick('and', 'or')} {self.condition()}",
            lambda: f"not {self.condition()}", "member", '"select"', "null", "joined > '2004-1-1'",
            lambda: f"{self.number()} {self.pick('', 'not ')}between {self.number()} and 50",
            lambda: f"{self.number()} {self.pick('', 'not ')}in (1, 2, {self.number()})",
            lambda: f"{self.pick(self.number, self.text)} is {self.pick('', 'not ')}null",
            lambda: f"nationality {self.pick('', 'not ')}in (select country from regions where "
                    f"{self.pick('gdp > 2000', 'continent is null', 'gdp > age * 100', 'true')})",
            lambda: f"exists (select 1 from grades where low < {self.number()})",
        )  # fmt: skip

    def aggregate(self) -> str:
        """An aggregate, perhaps with FILTER."""
        kind = self.pick("sum", "avg", "median", "stddev", "var_pop", "count", "mean", "stddev_pop")
        only = self.pick("", "", "", lambda: f" filter (where {self.condition()})")
        return self.pick(
            "count(*)", "count(*)", f"{kind}({self.number()}){only}", f"count(*){only}",
            lambda: f"{self.pick('corr', 'covar_pop', 'covar_samp')}({self.number()}, age)",
            lambda: f"quantile_{self.pick('cont', 'disc')}({self.number()}, 0.{self.digit()})",
            lambda: f"count_if({self.condition()})",
        )  # fmt: skip

    def digit(self) -> str:
        """A digit."""
        return str(self.random.randint(0, 9))

    def formula(self) -> str:
        """Arithmetic on aggregates."""
        self.depth += 1
        if self.depth > 14:
            return "count(*)"
        return self.pick(
            *[self.aggregate] * 5,
            lambda: f"{self.formula()} {self.pick('+', '-', '*', '/')} {self.formula()}",
            lambda: f"{self.pick('abs', 'sqrt', 'ln', 'exp', 'round', '-')}({self.formula()})",
            lambda: f"power({self.formula()}, {self.pick('2', '0.5', '-1', 'count(*)')})",
            lambda: f"{self.formula()} / nullif({self.formula()}, 0)",
            lambda: f"{self.pick('2', '0', '-1.5', '1e300')} * {self.formula()}",
        )  # fmt: skip

    def query(self) -> str:
        """A whole query."""
        join = self.pick("", "", "", " join regions on country = nationality",
                         " left join grades on score between low and high",
                         " left join regions r on r.country = nationality")  # fmt: skip
        if "regions" in join:
            self.numbers += ["gdp"]
        keys = [self.pick(self.number, self.text, "member", "nationality", *self.numbers)
                for _ in range(self.random.choice((0, 0, 1, 1, 2)))]  # fmt: skip
        shown = [*keys, *(self.formula() for _ in range(self.random.randint(1, 3)))]
        parts = [f"select {', '.join(shown)} from people p{join}"]
        parts += self._maybe(lambda: f"where {self.condition()}", 0.7)
        if keys:
            names = (str(i + 1) for i in range(len(keys)))
            parts.append(self.pick("group by all", f"group by {', '.join(names)}",
                                   f"group by {', '.join(keys)}"))  # fmt: skip
        comparison = self.pick("<", ">", "=", "between 3 and")
        parts += self._maybe(lambda: f"having {self.formula()} {comparison} {self.formula()}", 0.2)
        parts += self._maybe(lambda: f"order by {self.pick('1', '2 desc', self.formula)}", 0.4)
        parts += self._maybe(lambda: f"limit {self.random.randint(0, 9)}", 0.2)
        return " ".join(parts)

    def _maybe(self, made: Callable[[], str], chance: float) -> list[str]:
        return [made()] if self.random.random() < chance else []


# ---------------------------------------------------------------------- what must not happen


class TooSlowError(BaseException):
    """Not an Exception, so that nothing on the way catches it."""


class Watch:
    """Notes what is opened while an input is worked on. An audit hook cannot be taken out again."""

    def __init__(self) -> None:
        self.on = False
        self.seen: list[str] = []
        sys.addaudithook(self._hook)

    def _hook(self, event: str, args: tuple[Any, ...]) -> None:
        if self.on and event in WATCHED:
            what = str(args[0]) if args else ""
            late = what.endswith((".py", ".pyc", ".so"))  # a module that is loaded now
            swept = Path(what).name.startswith("voile-")  # the spill of a table that is collected
            if not late and not swept:
                self.seen.append(f"{event} {what}")


def alarm(_signal: int, _frame: FrameType | None) -> None:
    """End an input that takes too long."""
    raise TooSlowError


class Target:
    """A tiny view with the auxiliary tables, queried as `Release.query` does."""

    def __init__(self, folder: Path) -> None:
        view = view_of(TINY, people(60, schema=TINY), folder)
        check_closed(view)
        self.tables = {name: view.add_table(name, table) for name, table in TABLES.items()}
        sums = DomainSums(TINY, view.domain, memory=MEMORY)
        self.source = Source(view, sums, AlphaBeta(0.6, 0.01))

    def ask(self, sql: str) -> None:
        """Answer a query, and write the answer in every form."""
        found = answer(parse(sql, TINY, self.tables), self.source)
        json.dumps(found.to_dict(), allow_nan=False)
        found.to_csv()
        str(found)


def check_closed(view: ReleaseRows) -> None:
    """DuckDB must be unable to reach files, whatever SQL gets to it."""
    settings = (
        "select current_setting('enable_external_access'), current_setting('lock_configuration')"
    )
    assert isinstance(view, DuckRows)
    external, locked = view._con.execute(settings).fetchall()[0]
    assert not external and locked, "DuckDB can reach files"


@dataclass
class Report:
    """What became of the inputs."""

    outcomes: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)
    slowest: tuple[float, str] = (0.0, "")
    unhelpful: list[str] = field(default_factory=list)
    """Refusals without a hint."""


class Fuzzer:
    """Gives random SQL to the target and notes what must not happen."""

    def __init__(self, folder: Path, patience: float = SECONDS) -> None:
        self.target, self.watch, self.patience = Target(folder), Watch(), patience
        signal.signal(signal.SIGALRM, alarm)

    def run(self, seed: int, *, inputs: int | None = None, seconds: float | None = None) -> Report:
        """So many inputs, or as many as fit into the time."""
        report, made = Report(), iter(Inputs(random.Random(seed)))  # noqa: S311
        end = None if seconds is None else time.monotonic() + seconds
        done = 0
        while (inputs is None or done < inputs) and (end is None or time.monotonic() < end):
            self.one(next(made), report)
            done += 1
            if inputs and done % REPORTED == 0:
                print(f"{done:,} inputs, {len(report.failures)} failures", file=sys.stderr)
        return report

    def one(self, sql: str, report: Report) -> None:
        """Try one input and add its outcome to the report."""
        threads, start = threading.active_count(), time.monotonic()
        self.watch.seen.clear()
        outcome, problem = self._outcome(sql, report)
        taken = time.monotonic() - start
        report.slowest = max(report.slowest, (taken, sql))
        if self.watch.seen:
            problem = f"opened: {self.watch.seen}"
        if threading.active_count() > threads:
            problem = "a thread was left running"
        report.outcomes["failed" if problem else outcome] += 1
        if problem:
            report.failures.append(f"{problem}\n  {sql!r}")

    def _outcome(self, sql: str, report: Report) -> tuple[str, str]:
        faulthandler.dump_traceback_later(STUCK + self.patience, exit=True)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                signal.setitimer(signal.ITIMER_REAL, self.patience)
                self.watch.on = True
                self.target.ask(sql)
        except VoileError as error:
            if not error.hint:
                report.unhelpful.append(f"{error.message.splitlines()[0]}\n  {sql!r}")
            return "refused", ""
        except TooSlowError:
            return "", f"took more than {self.patience:g} s"
        except BaseException as error:
            if "Query interrupted" in str(error):  # what DuckDB makes of the alarm
                return "", f"took more than {self.patience:g} s"
            return "", traceback.format_exc(limit=-3)
        finally:
            self.watch.on = False
            signal.setitimer(signal.ITIMER_REAL, 0)
            faulthandler.cancel_dump_traceback_later()
        return "answered", ""


def main() -> int:
    """Run the fuzzer and print its report; 1 if an input failed."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--inputs", type=int, default=100_000)
    arguments.add_argument("--seed", type=int, default=1)
    given = arguments.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        report = Fuzzer(Path(folder)).run(given.seed, inputs=given.inputs)
    for failure in report.failures[:SHOWN]:
        print(failure)
    for text in report.unhelpful[:20]:
        print(f"no hint: {text}")
    seconds, sql = report.slowest
    print(f"slowest: {seconds:.2f} s {sql!r}")
    print(dict(report.outcomes))
    return 1 if report.failures else 0


if __name__ == "__main__":
    sys.exit(main())
