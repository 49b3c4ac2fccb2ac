"""What a release of tables of counts says about itself."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from typing import Literal

from pydantic import Field

from voile.errors import PromiseError, spelled
from voile.kinds.counts.expected import Published, TableComparison, compared
from voile.kinds.manifest import (
    Disclosed,
    Finite,
    ManifestPart,
    free_name,
    read_off_disclosed,
    weak_epsilon,
)
from voile.kinds.people import PeopleManifest, ProtectedPeople, about_people
from voile.privacy.guarantees.statements import Statement, not_kept, void
from voile.privacy.interactive.laws import Change, NoiseLaw, noise_law
from voile.privacy.interactive.promise import account, breaches, needed
from voile.schema import Schema

# ----------------------------------------------------------------------
# what tables of counts promise: (δ,T)-privacy, and the same in other words


CHANGE = Change(l1=2, l2_squared=2)
"""A row that is replaced leaves one cell of a table and enters another, on the same side of a
half, whatever side that is: the tables of both sides are one histogram."""


def change_of(rows: int) -> Change:
    """What a person with so many rows does to a table, at most: all of them leave one cell."""
    return Change(l1=CHANGE.l1 * rows, l2_squared=CHANGE.l2_squared * rows**2)


def unit_of(people: ProtectedPeople | None) -> str:
    """What the promise is about."""
    if people is None:
        return UNIT
    return f"{people.one}, replaced by {'another' if people.rows_per_person == 1 else 'any others'}"


AT = 1e-6
"""δ of the (ε, δ) that is stated."""
UNIT = "one row, replaced by any other; a person with c rows has c² times the ρ"
CLOSE, MOST = 5e-4, 8.0
"""Of the factor by which exact laws need more than the normal one, or keep a larger δ."""


@dataclass(frozen=True)
class CountPromise:
    """The noise, and all that is said of it."""

    unit_variance: float
    delta: float
    eta: float
    breach: float
    rho: float
    rho_holds: bool
    epsilon: float | None
    epsilon_delta: float
    unit: str = UNIT


def promise_for_delta(
    kind: str, delta: float, eta: float, tables: int, people: ProtectedPeople | None = None
) -> CountPromise:
    """The least noise that keeps (δ,T)-privacy over all tables."""
    change = change_of(rows_of(people))
    least = needed(kind, delta, eta, tables).variance

    def kept(more: float) -> bool:
        return breaches(kind, least * more, tables, delta, change).end <= eta

    return promised(kind, least * raised(kept), delta, eta, tables, people)


def promise_for_rho(
    kind: str, rho: float, eta: float, tables: int, people: ProtectedPeople | None = None
) -> CountPromise:
    """Noise that amounts to ρ over all tables, and the δ that it keeps."""
    from scipy.special import ndtri  # noqa: PLC0415  (slow to import)

    change = change_of(rows_of(people))
    variance = tables / (2 * rho)
    least = rho - float(ndtri(eta)) * math.sqrt(2 * rho)

    def kept(more: float) -> bool:
        return breaches(kind, variance, tables, least * more, change).end <= eta

    if not kept(MOST):
        raise PromiseError(
            f"{kind} noise of ρ = {rho:g} over {tables:,} tables is so little that it excludes "
            f"what is not true with a probability above η = {eta:g}",
            hint=f"ask for a smaller {spelled('rho')}, a larger {spelled('eta')}, or "
            f"{spelled('noise', 'gaussian')}",
        )
    return promised(kind, variance, least * raised(kept), eta, tables, people)


def raised(kept: Callable[[float], bool]) -> float:
    """The least factor, 1 or a little more, with which a promise is kept."""
    if kept(1.0):
        return 1.0
    low, high = 1.0, 1.0 + CLOSE
    while not kept(high) and high < MOST:
        low, high = high, 1.0 + 2 * (high - 1.0)
    while high - low > CLOSE:
        middle = (low + high) / 2
        low, high = (low, middle) if kept(middle) else (middle, high)
    return high


def rows_of(people: ProtectedPeople | None) -> int:
    """c: the rows that one person can have."""
    return 1 if people is None else people.rows_per_person


@lru_cache(maxsize=64)
def promised(
    kind: str,
    variance: float,
    delta: float,
    eta: float,
    tables: int,
    people: ProtectedPeople | None = None,
) -> CountPromise:
    """All that is said of noise whose unit variance is that."""
    change = change_of(rows_of(people))
    spent = account(kind, variance, tables, at=AT, change=change)
    return CountPromise(
        unit_variance=variance,
        delta=delta,
        eta=eta,
        breach=breaches(kind, variance, tables, delta, change).end,
        rho=spent.rho,
        rho_holds=spent.rho_holds,
        epsilon=spent.epsilon if math.isfinite(spent.epsilon) else None,
        epsilon_delta=AT,
        unit=unit_of(people),
    )


# ----------------------------------------------------------------------
# what a release of tables of counts says about itself


HALF, SIDE, COUNT = "half", "side", "count"


class ConjunctParameters(ManifestPart):
    """Which tables there are, and their noise."""

    arity: int = Field(ge=1, description="d: there is a table for every set of so many columns")
    halves: int = Field(
        ge=0,
        description="t: tables are of both sides of so many random halves of the rows; 0: of all "
        "rows",
    )
    tables: int = Field(
        ge=1, description="T: how many are charged for; the two sides of a half are one"
    )
    noise: Literal["binomial", "gaussian"] = Field(
        description="The law of the noise on each figure"
    )
    unit_variance: Finite = Field(
        gt=0, description="V: the variance of noise that would hide a change of one count by 1"
    )
    noise_parameter: int | Finite = Field(
        description="binomial: R, the fair coins of which half are subtracted; gaussian: σ. "
        "Two figures change with a row, so that the variance is 2·V; 2·c²·V where people have up "
        "to c rows"
    )


class ConjunctGuarantee(ManifestPart):
    """(δ,T)-privacy, and what it amounts to in other words."""

    kind: Literal["delta-T"] = "delta-T"
    delta: Finite = Field(gt=0, description="No belief's log-odds rise by more than δ")
    eta: Finite = Field(gt=0, lt=0.5, description="except with probability η")
    breach: Finite = Field(ge=0, description="That chance, for the noise that was drawn")
    rho: Finite = Field(gt=0, description="The same in zCDP, between tables that differ in a row")
    rho_holds: bool = Field(description="False: binomial noise only comes near to that ρ")
    epsilon: float | None = Field(description="The same in (ε, δ)-differential privacy")
    epsilon_delta: Finite = Field(gt=0, description="with this δ")
    unit: str


class ConjunctManifest(PeopleManifest):
    """Noisy counts of every combination of values, for every set of d columns."""

    method: Literal["conjuncts"] = "conjuncts"
    parameters: ConjunctParameters
    guarantee: ConjunctGuarantee

    def check(self) -> None:
        """Refuse numbers of tables, figures or noise that do not agree."""
        p, columns = self.parameters, len(self.schema_.names)
        self.check_people()
        if p.arity > columns:
            raise ValueError(f"tables of {p.arity} columns, and there are {columns}")
        if self.public_rows is None or self.public_rows < 1:
            raise ValueError("the number of rows is missing")
        if p.tables != math.comb(columns, p.arity) * max(1, p.halves):
            raise ValueError(f"{p.tables} tables are not all that there must be")
        if self.rows != self.published.figures:
            raise ValueError(f"{self.rows} figures are not all that the tables have")
        if p.noise_parameter != self.law.parameter:
            changed = change_of(self.rows_per_person).l2_squared
            raise ValueError(f"the noise is not {p.noise} noise of {changed}·{p.unit_variance}")

    def weakness(self) -> str:
        """Log-odds may rise by so much that a belief may become near certainty."""
        return weak_epsilon(self.guarantee.delta)

    @property
    def law(self) -> NoiseLaw:
        """The law of the noise on each figure."""
        change = change_of(self.rows_per_person)
        return noise_law(self.parameters.noise, self.parameters.unit_variance, change)

    @property
    def sets(self) -> list[tuple[str, ...]]:
        """The columns of each table, in the order of the files."""
        return list(combinations(self.schema_.names, self.parameters.arity))

    @property
    def published(self) -> Published:
        """The tables, for computing the error to expect."""
        p = self.parameters
        rho = p.tables / (2 * p.unit_variance * self.rows_per_person**2)
        return Published(tuple(self.schema_.sizes), p.arity, p.halves, self.public_rows or 0, rho)

    @property
    def comparison(self) -> TableComparison | None:
        """Both ways to publish at the same promise, where there are two."""
        return compared(self.published)

    def columns_beside(self) -> tuple[str, str, str]:
        """The names of the half, the side and the count, which no column of the table has."""
        names = self.schema_.names
        return free_name(HALF, names), free_name(SIDE, names), free_name(COUNT, names)


def table_file(number: int) -> str:
    """The file of a table, by its place among the sets of columns."""
    return f"data/table-{number:04d}.parquet"


def conjunct_disclosed(schema: Schema, nulls: str) -> list[Disclosed]:
    """What the release discloses exactly, with why."""
    what = "the number of rows" + (" in which nothing is missing" if nulls == "drop" else "")
    found = [Disclosed(what=what, why="what is promised is about which rows, not about how many")]
    return found + read_off_disclosed(schema)


# ----------------------------------------------------------------------
# what tables of counts promise, as statements that can be compared and converted


ANYONE = "anyone, even who knows every other row"
DEFINED = "(δ,T)-privacy: the law of the sum of all losses"


def conjunct_statements(manifest: ConjunctManifest) -> list[Statement]:
    """(δ,T)-privacy, ρ-zCDP where it holds, and (ε, δ)."""
    g, tables = manifest.guarantee, manifest.parameters.tables
    found = [
        Statement(
            {"kind": "delta-T", "delta": g.delta, "T": tables, "eta": g.eta},
            "exclusive", ANYONE, DEFINED,
            f"Over all {tables:,} tables the log-odds of the truth about a row rise by more than "
            f"{g.delta:.4g} with probability at most {g.eta:g}.",
        ),
    ]  # fmt: skip
    if g.rho_holds:
        found.append(Statement(
            {"kind": "zcdp", "rho": g.rho}, "exclusive", ANYONE,
            "ρ of each table adds up",
            f"Zero-concentrated differential privacy with ρ = {g.rho:.4g}, for replacing a row.",
        ))  # fmt: skip
    if g.epsilon is not None:
        found.append(Statement(
            {"kind": "approximate-dp", "epsilon": g.epsilon, "delta": g.epsilon_delta},
            "exclusive", ANYONE, DEFINED,
            f"(ε, δ)-differential privacy with ε = {g.epsilon:.4g} and δ = {g.epsilon_delta:g}, "
            "for replacing a row.",
        ))  # fmt: skip
    kept = [void(one) for one in found] if manifest.simulated else found
    return about_people(kept, manifest.people)


def conjuncts_not_promised() -> list[Statement]:
    """What tables of counts must not be taken to promise."""
    return [
        not_kept(
            {"kind": "dp", "unit": unit}, "exclusive", "anyone", "does not follow",
            "With a small chance noise is so far out that it excludes a possibility, or nearly: "
            "no ε holds with δ = 0." if unit == "swap" else
            "The number of rows is disclosed: tables with a row more or less can be told apart.",
        )
        for unit in ("swap", "add-remove")
    ]  # fmt: skip
