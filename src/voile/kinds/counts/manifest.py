"""What a release of tables of counts says about itself."""

from __future__ import annotations

import math
from itertools import combinations
from typing import Literal

from pydantic import Field

from voile.answering.conjuncts.expected import Published, TableComparison, compared
from voile.kinds.counts.terms import CHANGE
from voile.kinds.manifest import Disclosed, Finite, Manifest, Part, free_name, read_off_disclosed
from voile.privacy.interactive.laws import NoiseLaw, noise_law
from voile.schema import Schema

HALF, SIDE, COUNT = "half", "side", "count"


class ConjunctParameters(Part):
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
        "Two figures change with a row, so that the variance is 2·V"
    )


class ConjunctGuarantee(Part):
    """(δ,T)-privacy, and what it amounts to in other words."""

    kind: Literal["delta-T"] = "delta-T"
    delta: Finite = Field(gt=0, description="No belief's log-odds rise by more than δ")
    eta: Finite = Field(gt=0, lt=0.5, description="but for a chance of η")
    breach: Finite = Field(ge=0, description="That chance, for the noise that was drawn")
    rho: Finite = Field(gt=0, description="The same in zCDP, between tables that differ in a row")
    rho_holds: bool = Field(description="False: binomial noise only comes near to that ρ")
    epsilon: float | None = Field(description="The same in (ε, δ)-differential privacy")
    epsilon_delta: Finite = Field(gt=0, description="with this δ")
    unit: str


class ConjunctManifest(Manifest):
    """Noisy counts of every combination of values, for every set of d columns."""

    method: Literal["conjuncts"] = "conjuncts"
    parameters: ConjunctParameters
    guarantee: ConjunctGuarantee

    def check(self) -> None:
        p, columns = self.parameters, len(self.schema_.names)
        if p.arity > columns:
            raise ValueError(f"tables of {p.arity} columns, and there are {columns}")
        if self.public_rows is None or self.public_rows < 1:
            raise ValueError("the number of rows is not told")
        if p.tables != math.comb(columns, p.arity) * max(1, p.halves):
            raise ValueError(f"{p.tables} tables are not all that are told")
        if self.rows != self.published.figures:
            raise ValueError(f"{self.rows} figures are not all that the tables have")
        if p.noise_parameter != self.law.parameter:
            raise ValueError(f"the noise is not {p.noise} noise of 2·{p.unit_variance}")

    @property
    def law(self) -> NoiseLaw:
        return noise_law(self.parameters.noise, self.parameters.unit_variance, CHANGE)

    @property
    def sets(self) -> list[tuple[str, ...]]:
        """The columns of each table, in the order of the files."""
        return list(combinations(self.schema_.names, self.parameters.arity))

    @property
    def published(self) -> Published:
        p = self.parameters
        rho = p.tables / (2 * p.unit_variance)
        return Published(tuple(self.schema_.sizes), p.arity, p.halves, self.public_rows or 0, rho)

    @property
    def comparison(self) -> TableComparison | None:
        return compared(self.published)

    def columns_beside(self) -> tuple[str, str, str]:
        """The names of the half, the side and the count, which no column of the table has."""
        names = self.schema_.names
        return free_name(HALF, names), free_name(SIDE, names), free_name(COUNT, names)


def table_file(number: int) -> str:
    """The file of a table, by its place among the sets of columns."""
    return f"data/table-{number:04d}.parquet"


def conjunct_disclosed(schema: Schema, nulls: str) -> list[Disclosed]:
    """What the release tells as it is, with why."""
    what = "the number of rows" + (" in which nothing is missing" if nulls == "drop" else "")
    found = [Disclosed(what=what, why="what is promised is about which rows, not about how many")]
    return found + read_off_disclosed(schema)
