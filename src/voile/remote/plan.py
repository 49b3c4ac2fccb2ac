"""The plan of mining: what to ask each server, what that costs, and the error to expect."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Protocol

from voile.errors import PromiseError, TableError, UsageError, spelled
from voile.noise.keyed import Key
from voile.query.quoting import quote_identifier
from voile.remote.client import Subset
from voile.remote.implication import LEAST, expected_error, halves_needed
from voile.remote.sides import SideProducts, products, read_expression
from voile.schema import Schema


class CountReply(Protocol):
    """What mining reads of an answer."""

    @property
    def answer(self) -> float | None:
        """The noisy count."""

    @property
    def stderr(self) -> float | None:
        """The standard error of the count."""

    @property
    def charged(self) -> int:
        """How many answers it took from the budget."""

    @property
    def subset_rows(self) -> int | None:
        """How many rows the subset has, where the server says it."""


class CountCost(Protocol):
    """What mining reads of a cost."""

    @property
    def cost(self) -> int:
        """How many new answers the question needs."""


class CountServer(Protocol):
    """A server, or whatever answers like one; several threads may ask it."""

    def about(self) -> Mapping[str, Any]:
        """The table's schema, its noise and its size."""

    def budget(self) -> Mapping[str, Any]:
        """How many answers are left."""

    def cost(self, sql: str, subset: Subset = "all") -> CountCost:
        """What a question would cost; nothing is charged."""

    def ask(self, sql: str, subset: Subset = "all") -> CountReply:
        """The noisy answer to a question."""


# ---------------------------------------------------------------------- plan


TOGETHER = 4
"""Requests at a time."""
MOST_HALVES = 1_000_000
MOST_DRY_RUNS = 20_000


@dataclass(frozen=True)
class ServerSide:
    """One server's part."""

    name: str
    server: CountServer
    table: str
    conditions: tuple[str, ...]
    variance: float
    """Of the noise of one count."""
    remaining: int
    """How many answers the budget has left."""
    id_column: str | None

    def queries(self, halves: int) -> int:
        """One of all rows for each condition, and one of each half."""
        return len(self.conditions) * (halves + 1)

    def sql(self, condition: str) -> str:
        """The question that counts the rows with a condition."""
        return f"select count(*) from {self.table} where {condition}"


@dataclass(frozen=True, eq=False)
class MiningPlan:
    """What will be asked; `halves` is 0 where one server alone can answer."""

    expression: str
    products: SideProducts
    sides: tuple[ServerSide, ...]
    """Those that are asked: none, if the function is constant."""
    rows: int
    halves: int
    seed: str
    error: float
    """The standard error to expect, at most, if all classes of rows are equally frequent."""
    notes: tuple[str, ...]
    searching: bool = False
    """Whether the halves are searched for a biased one, about which alone the second is asked."""

    def asked(self, side: ServerSide) -> int:
        """How many questions the server is asked, at most."""
        if self.searching and side is self.sides[-1]:
            return 2 * len(side.conditions)
        return side.queries(self.halves)

    def questions(self) -> list[tuple[ServerSide, str, Subset]]:
        """All questions, half by half, so that both servers progress together."""
        subsets: list[Subset] = ["all", *({"half": half} for half in self.half_seeds())]
        return [
            (side, side.sql(condition), subset)
            for subset in subsets
            for side in self.sides
            for condition in side.conditions
        ]

    def half_seeds(self) -> list[str]:
        """The public seeds of the halves, one for each."""
        return [f"{self.seed}/{number}" for number in range(1, self.halves + 1)]

    def new(self, side: ServerSide) -> int:
        """How many answers the server has not given yet; it is asked, which costs nothing."""
        mine = [(sql, subset) for one, sql, subset in self.questions() if one is side]
        with ThreadPoolExecutor(TOGETHER) as pool:
            return sum(pool.map(lambda question: side.server.cost(*question).cost, mine))

    def check(self) -> None:
        """Refuse before anything is asked if a budget does not suffice."""
        for side in self.sides:
            needed = self.asked(side)
            if side.remaining >= needed:
                continue
            if needed <= MOST_DRY_RUNS and (needed := self.new(side)) <= side.remaining:
                continue
            raise PromiseError(
                f"{side.name} would be asked {needed:,} new questions and its budget has "
                f"{side.remaining:,} left; nothing was asked",
                hint=self.instead(),
            )

    def instead(self) -> str:
        """What the budgets allow."""
        most = affordable(self.sides)
        if not self.halves or most < LEAST:
            return "ask the server's steward for more"
        error = self.error_of(most)
        halves = spelled("halves", most)
        return f"{halves} is what the budgets allow; expect an error up to {error:.3g}"

    def error_of(self, halves: int) -> float:
        """The standard error to expect with this many halves."""
        return error_at(self.products, self.sides, self.rows, halves)

    def to_dict(self) -> dict[str, Any]:
        """The plan as JSON."""
        return {
            "expression": self.expression,
            "rows": self.rows,
            "halves": self.halves,
            "seed": self.seed,
            "expected_error": self.error,
            "queries": {
                side.name: {
                    "conditions": list(side.conditions),
                    "queries": self.asked(side),
                    "remaining": side.remaining,
                    "enough": side.remaining >= self.asked(side),
                }
                for side in self.sides
            },
            "notes": list(self.notes),
        }


def planned(
    servers: Mapping[str, CountServer],
    expression: str,
    *,
    halves: int | None = None,
    error: float | None = None,
    seed: str | None = None,
) -> MiningPlan:
    """Read the expression, look at the servers, and say what will be asked; nothing is spent."""
    check_effort(halves, error)
    if not servers:
        raise UsageError(
            "there is no server to ask",
            hint=spelled("servers", {"A": "URL", "B": "URL"}, flag="--db"),
        )
    abouts = {name: server.about() for name, server in servers.items()}
    schemas = {name: Schema.from_dict(about["schema"]) for name, about in abouts.items()}
    found = read_expression(expression, schemas)
    parts = products(found)
    pairs = zip(found.sides, parts.conditions, strict=False)
    sides = tuple(
        side_of(name, servers[name], abouts[name], conditions)
        for name, conditions in pairs
        if conditions
    )
    rows = aligned([(side, abouts[side.name]) for side in sides])
    wanted = how_many(parts, sides, rows, halves, error)
    return MiningPlan(
        expression=expression,
        products=parts,
        sides=sides,
        rows=rows,
        halves=wanted,
        seed=fresh_seed() if seed is None else checked_seed(seed),
        error=error_at(parts, sides, rows, wanted),
        notes=(*found.remarks, *matching(sides)),
    )


def check_effort(halves: int | None, error: float | None) -> None:
    """Refuse a number of halves or an error that cannot be had."""
    if halves is not None and error is not None:
        raise UsageError(
            f"{spelled('halves')} and {spelled('error')} exclude each other",
            hint="give one of them",
        )
    if halves is not None and not LEAST <= halves <= MOST_HALVES:
        raise UsageError(
            f"{halves} halves cannot be asked", hint=f"from {LEAST} to {MOST_HALVES:,}"
        )
    if error is not None and not 1e-6 <= error < 1:
        raise UsageError(
            f"the error {error!r} is not one of a probability",
            hint=f"such as {spelled('error', 0.02)}",
        )


def checked_seed(seed: str) -> str:
    """The seed, if servers take it."""
    if not 0 < len(seed) <= 100 or not seed.isprintable():
        raise UsageError(f"the seed {seed!r} is not 1 to 100 printable characters", hint="spring-1")
    return seed


def fresh_seed() -> str:
    """A random public seed."""
    return f"{int(Key.fresh().stream('public seed').words(1)[0]):016x}"


def side_of(
    name: str, server: CountServer, about: Mapping[str, Any], conditions: tuple[str, ...]
) -> ServerSide:
    """A server's part of the plan, from what it says about itself."""
    return ServerSide(
        name=name,
        server=server,
        table=quote_identifier(str(about["name"])),
        conditions=conditions,
        variance=float(about["variance"]),
        remaining=int(server.budget()["remaining"]),
        id_column=about.get("id_column"),
    )


def aligned(sides: list[tuple[ServerSide, Mapping[str, Any]]]) -> int:
    """How many rows all of them hold; refuse what cannot be of the same people."""
    if not sides:
        return 0
    sizes = {side.name: int(about["rows"]) for side, about in sides}
    for side, about in sides:
        if int(about["per_person"]) > 1:
            raise TableError(
                f"{side.name} keeps up to {about['per_person']} rows of a person",
                hint="conditions are matched person by person: mine servers with one row of each",
            )
    if len({about["id"] for _, about in sides}) < len(sides):
        raise UsageError(
            f"{' and '.join(sizes)} are the same server",
            hint="it holds all of these columns: voile ask can count them together",
        )
    if len(set(sizes.values())) > 1:
        listed = ", ".join(f"{name} {rows:,}" for name, rows in sizes.items())
        raise TableError(
            f"the servers do not hold the same people: rows of {listed}",
            hint="both must be made from the same people, with equal ids or in the same order",
        )
    if len({side.id_column is None for side, _ in sides}) > 1:
        without = next(side.name for side, _ in sides if side.id_column is None)
        raise TableError(
            f"{without} draws halves by row numbers, the other server by an id column",
            hint="begin both with voile serve init --id, or none of them",
        )
    return next(iter(sizes.values()))


def matching(sides: tuple[ServerSide, ...]) -> tuple[str, ...]:
    """The assumption about how the servers' rows match, as a note."""
    if len(sides) < 2:
        return ()
    if sides[0].id_column is None:
        return (
            "rows are matched by their numbers: that both servers hold the same people in the "
            "same order cannot be checked from here",
        )
    columns = " and ".join(f"{side.name}.{side.id_column}" for side in sides)
    return (
        f"rows are matched by {columns}: that equal ids are the same people cannot be checked from "
        "here",
    )


def how_many(
    parts: SideProducts,
    sides: tuple[ServerSide, ...],
    rows: int,
    halves: int | None,
    error: float | None,
) -> int:
    """How many halves to ask about: as given, or as the error needs."""
    if len(sides) < 2:
        return 0
    if halves is not None:
        return halves
    if error is None:
        most = affordable(sides)
        allowed = f"{spelled('halves', most)} is what the budgets allow, with an error up to "
        raise UsageError(
            f"neither {spelled('halves')} nor {spelled('error')} says how much to ask",
            hint=f"{allowed}{error_at(parts, sides, rows, most):.3g}"
            if most >= LEAST
            else spelled("error", 0.02),
        )
    variances = sides[0].variance, sides[1].variance
    sized = knows_sizes(sides)
    needed = halves_needed(parts.form, parts.classes, rows, variances, error, sized=sized)
    if needed > MOST_HALVES:
        least = error_at(parts, sides, rows, MOST_HALVES)
        raise PromiseError(
            f"an error of {error:g} needs {needed:,} halves; nothing was asked",
            hint=f"a million halves have an error up to {least:.3g}; more rows would help",
        )
    return needed


def knows_sizes(sides: tuple[ServerSide, ...]) -> bool:
    """Whether the halves' sizes are public: those of row numbers are, those of ids are not."""
    return all(side.id_column is None for side in sides)


def affordable(sides: tuple[ServerSide, ...]) -> int:
    """The most halves that all budgets allow."""
    return min((s.remaining // len(s.conditions) - 1 for s in sides), default=0)


def error_at(parts: SideProducts, sides: tuple[ServerSide, ...], rows: int, halves: int) -> float:
    """The standard error to expect with this many halves."""
    if len(sides) == 2:
        variances = sides[0].variance, sides[1].variance
        sized = knows_sizes(sides)
        return expected_error(parts.form, parts.classes, rows, variances, halves, sized=sized)
    return sides[0].variance ** 0.5 / rows if sides else 0.0
