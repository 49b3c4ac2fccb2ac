"""The attack on a server: public halves are asked about until the budget is spent.

The steward's own test of a setting. Halves are named by number, so that an attack that is repeated
asks what was answered before, which is free.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Protocol

import numpy as np
import numpy.typing as npt

from voile.engines import connect, open_domain
from voile.engines.rows import PublicDomain
from voile.engines.table import Table
from voile.errors import PromiseError, QueryError, TableError, UsageError, spelled
from voile.evaluate.reconstruction.fitting import (
    MOST_ROWS,
    check_method,
    distance_squared,
    least_squares,
    linear_program,
    normal_ceiling,
)
from voile.noise.keyed import Hashes, members, row_hashes
from voile.progress import Progress, Silent
from voile.query import parse
from voile.query.domain.compare import all_hold, some_hold, truths
from voile.query.predicate import Atom, Predicate, folded
from voile.query.quoting import quote_identifier
from voile.records import Record
from voile.schema import Schema
from voile.units import counted

MOST_CELLS = 2 * 10**8
"""Rows times questions: a number is kept for each."""
"""Questions answered, and questions in all."""


class ServerReply(Protocol):
    """What is used of a reply."""

    @property
    def answer(self) -> float | None:
        """The answer; None where there are several."""

    @property
    def charged(self) -> int:
        """What it cost."""

    @property
    def remaining(self) -> int:
        """What is left of the budget."""


class Answerer(Protocol):
    """What is used of a server: voile.remote.client.Server, or one in this process."""

    def about(self) -> Mapping[str, Any]:
        """What the server says of itself."""

    def budget(self) -> Mapping[str, Any]:
        """What may be asked, and what is left."""

    def ask(self, sql: str, subset: Any = "all") -> ServerReply:
        """The answer to one question about a subset."""


@dataclass(frozen=True)
class ServerTruth:
    """What the steward knows: whose rows there are, and for whom the condition holds."""

    ids: tuple[str, ...]
    holds: npt.NDArray[np.bool_] | None = None


@dataclass(frozen=True)
class Guesses(Record):
    """What came back from a server."""

    condition: str
    method: str
    rows: int
    questions: int
    charged: int
    remaining: int
    noise: str
    variance: float
    ids: tuple[str, ...]
    values: npt.NDArray[np.float64]
    """Between 0 and 1, for every id; what is above ½ is guessed to meet the condition."""
    recovered: float | None
    """Share of rows that were guessed right, where the truth is known."""
    guess: float | None
    """What guessing the commoner value gets right."""
    ceiling: float | None
    """What someone who knows all other rows gets right at most, by the normal law."""
    json_keys: ClassVar[tuple[str, ...]] = (
        "condition", "method", "rows", "questions", "charged", "remaining", "noise", "variance",
        "size", "size_in_root_rows=roots", "recovered", "guess", "ceiling",
    )  # fmt: skip

    @property
    def roots(self) -> float:
        """The size of the noise in √n."""
        return math.sqrt(self.variance / self.rows)

    @property
    def size(self) -> float:
        """The size of the noise: its standard deviation."""
        return math.sqrt(self.variance)


def attack_server(
    server: Answerer,
    condition: str,
    truth: ServerTruth,
    *,
    questions: int,
    method: str = "lsq",
    name: str = "reconstruct",
    progress: Progress | None = None,
) -> Guesses:
    """Ask how many rows of public halves meet the condition, and guess for which rows it holds."""
    about = server.about()
    check(about, truth, method, questions)
    hashes = row_hashes(truth.ids)
    halves, answers, charged, remaining = asked(
        server, f"select count(*) from {quote_identifier(about['name'])} where ({condition})",
        [f"{name}-{number}" for number in range(questions)], progress or Silent(),
    )  # fmt: skip
    if len(answers) < 2:
        raise PromiseError(
            f"the budget allows {len(answers)} questions, and 2 are the least that say something",
            hint="give the token a larger budget: voile serve token DIR --analyst NAME --queries N",
        )
    counted = counted_in(hashes, halves)
    fit = least_squares if method == "lsq" else linear_program
    values = fit(counted, np.array(answers))
    kind, variance = str(about["noise"]), float(about["variance"])
    recovered = guess = most = None
    if truth.holds is not None:
        share = float(truth.holds.mean())
        recovered, guess = float(np.mean((values > 0.5) == truth.holds)), max(share, 1 - share)
        most = mean_ceiling(counted.sum(axis=0) * distance_squared(kind, variance), share)
    return Guesses(
        condition, method, len(truth.ids), len(answers), charged, remaining, kind, variance,
        truth.ids, values, recovered, guess, most,
    )  # fmt: skip


def check(about: Mapping[str, Any], truth: ServerTruth, method: str, questions: int) -> None:
    """Refuse before anything is asked and spent."""
    check_method(method)
    rows, people = int(about["rows"]), len(truth.ids)
    if int(about.get("per_person", 1)) != 1:
        raise UsageError(
            f"people have up to {about['per_person']} rows on this server",
            hint="the attack takes servers where each person has one row",
        )
    if people != rows:
        raise TableError(
            f"{people:,} ids were given, and the server has {counted(rows, 'row')}",
            hint="give the ids of all of its rows",
        )
    if questions < 2:
        raise UsageError(
            f"{spelled('questions', questions)} is less than 2", hint=spelled("questions", 100)
        )
    if rows * questions > MOST_CELLS or (method == "lp" and rows > MOST_ROWS["lp"]):
        raise UsageError(
            f"{questions:,} questions about {rows:,} rows are too many for {method}",
            hint="ask fewer questions"
            + (f"; {spelled('method', 'lsq')} takes more" if method == "lp" else ""),
        )


def asked(
    server: Answerer, sql: str, seeds: Sequence[str], progress: Progress
) -> tuple[list[str], list[float], int, int]:
    """Halves that were answered, their answers, what they cost, and what is left."""
    remaining = int(server.budget()["remaining"])
    halves, answers, charged = list[str](), list[float](), 0
    progress.start("asking", len(seeds))
    for seed in seeds:
        try:
            reply = server.ask(sql, {"half": seed})
        except PromiseError:  # the budget is spent
            break
        if reply.answer is None:
            raise QueryError(
                f"{sql} has no single answer",
                hint=f"{spelled('condition', flag='--column')} takes one condition",
            )
        halves.append(seed)
        answers.append(float(reply.answer))
        charged, remaining = charged + reply.charged, reply.remaining
        progress.advance(1)
    return halves, answers, charged, remaining


def counted_in(hashes: Hashes, halves: Sequence[str]) -> npt.NDArray[np.bool_]:
    """Which rows each half counts."""
    return np.array([members(hashes, seed) for seed in halves])


def mean_ceiling(squares: npt.NDArray[np.float64], share: float) -> float:
    """The mean over rows of the chance to guess right, by how far answers tell their values apart.

    Rows that were counted equally often are as easy to guess.
    """
    found, rows = np.unique(squares, return_counts=True)
    chances = [normal_ceiling(math.sqrt(square), share) for square in found]
    return float(np.average(chances, weights=rows))


# ------- what the steward gives the attack: the rows' public ids, and for whom the condition holds


Codes = Mapping[str, npt.NDArray[np.int64]]
Mask = npt.NDArray[np.bool_]


def known_truth(
    about: Mapping[str, Any],
    condition: str,
    *,
    table: str | None = None,
    ids: Path | None = None,
    null_text: Sequence[str] = (),
) -> ServerTruth:
    """The ids of the server's rows; with its table also for which of them the condition holds."""
    schema = Schema.from_dict(about["schema"])
    where = condition_on(schema, condition)
    column = about.get("id_column")
    if table is not None:
        if ids is not None:
            raise UsageError(
                f"{spelled('table', flag='--truth')} and {spelled('ids')} exclude each other",
                hint="the table has the ids",
            )
        return truth_of(connect(table, null_text=null_text), schema, where, column)
    if ids is not None:
        return ServerTruth(read_ids(ids))
    if column is None:
        return ServerTruth(tuple(str(number) for number in range(int(about["rows"]))))
    raise UsageError(
        f"the server draws halves by the column {column!r}, and nobody said what is in it",
        hint=f"give the ids, one a line, with {spelled('ids', 'ids.txt')}, or the table with "
        f"{spelled('table', 'people.csv', flag='--truth')}",
    )


def condition_on(schema: Schema, condition: str) -> Predicate:
    """The condition as a predicate of the domain."""
    query = parse(f"select count(*) from rows where ({condition})", schema)
    if query.predicate is None or query.groups:
        raise QueryError(
            f"{condition!r} is no condition",
            hint=spelled("condition", "income = '>50K'", flag="--column"),
        )
    return query.predicate


def truth_of(table: Table, schema: Schema, where: Predicate, column: str | None) -> ServerTruth:
    """Rows as the server took them in: known by a column, or by their number."""
    needed = [*schema.names, *([column] if column is not None else [])]
    table.check_columns(list(dict.fromkeys(needed)))
    view = open_domain(schema)
    holds, ids = list[Mask](), list[str]()
    for codes, keys, before in table.coded(schema, drop_nulls=False, row_key=column, clamp=True):
        holds.append(held(where, dict(zip(schema.names, codes, strict=True)), view, schema))
        ids += known_by(column, keys, before, len(codes[0]))
    if not ids:
        raise TableError(f"table {table.name!r} has no rows", hint="give the server's table")
    first = {one: place for place, one in reversed(list(enumerate(ids)))}  # the row that was kept
    kept = sorted(first.values())
    return ServerTruth(tuple(ids[place] for place in kept), np.concatenate(holds)[kept])


def known_by(column: str | None, keys: Any, before: int, count: int) -> list[str]:
    """The ids of a batch of rows."""
    if column is None:
        return [str(number) for number in range(before, before + count)]
    return [str(key) for key in keys.to_pylist()]


def held(where: Predicate, codes: Codes, view: PublicDomain, schema: Schema) -> Mask:
    """For which rows a condition holds: each part is looked up in its truth on the domain."""

    def of(atom: Atom) -> Mask:
        (truth,) = view.domain.evaluate([atom])
        known = truths(truth)
        if not atom.attributes:
            return np.full(len(next(iter(codes.values()))), bool(known[0]))
        shape = tuple(schema[name].size for name in atom.attributes)
        found: Mask = known[np.ravel_multi_index([codes[n] for n in atom.attributes], shape)]
        return found

    return np.asarray(folded(where, of, all_hold, some_hold))


def read_ids(file: Path) -> tuple[str, ...]:
    """One id a line."""
    try:
        found = tuple(line for line in file.read_text(encoding="utf-8").splitlines() if line)
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8"
        raise UsageError(
            f"{spelled('ids', str(file))}: {reason}", hint="one id on each line"
        ) from None
    if not found:
        raise UsageError(f"{spelled('ids', str(file))} is empty", hint="one id on each line")
    if len(set(found)) < len(found):
        raise UsageError(f"{spelled('ids', str(file))} has an id twice", hint="one id for each row")
    return found
