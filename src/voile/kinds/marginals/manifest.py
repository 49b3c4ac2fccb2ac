"""What a release of noisy marginals says about itself."""

from __future__ import annotations

import math
from collections import Counter
from functools import cached_property
from typing import Annotated, Any, Literal

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer

from voile.errors import spelled
from voile.kinds.manifest import (
    Disclosed,
    Finite,
    ManifestPart,
    chosen_disclosed,
    read_off_disclosed,
    weak_delta,
    weak_epsilon,
)
from voile.kinds.marginals.measuring import Measurement, MeasurementPlan, PlaceMeasurement
from voile.kinds.people import PeopleManifest, ProtectedPeople, about_people
from voile.learning.account import SchemaAccount
from voile.noise.normal import LARGEST_SCALE
from voile.options.choices import Unit
from voile.privacy.guarantees.statements import Statement, not_kept, void
from voile.privacy.spent import NOTHING
from voile.schema import Schema
from voile.schema.places import NumberPlaces, domain_ends, places_of

MEASUREMENT, CELL, FIGURE = "measurement", "cell", "figure"
PRODUCT, COLUMN, VALUE, SHARE = "product", "column", "value", "share"
MODEL_FILE = "model/mixture.parquet"
AT = 1e-9
"""δ of the (ε, δ) that is stated where ρ was asked for."""


MOST_FIGURES = 2**24
"""Of all tables together, and shares of a model: both are read as a whole."""
LARGEST = 1e60
"""No number of a law is larger, nor smaller than one over it: squares and products stay floats."""
MOST_ROWS = 2**62
"""Of a table, as a noisy figure says or a model."""
NotNegative = Annotated[float, Field(ge=0, le=LARGEST, allow_inf_nan=False)]
TableChoice = Literal["all", "given", "workload", "selected"]
"""How the tables were chosen."""
GuaranteeKind = Literal["dp", "approximate-dp", "zcdp"]
"""What was asked for."""


class MeasuredTable(ManifestPart):
    """A table of whole figures, and the noise on each."""

    columns: list[str]
    scale: Finite = Field(ge=0, description="σ of rounded normal noise, or b of geometric noise")


class MeasuredMeans(ManifestPart):
    """Sums of places within the bins of a column, and the noise on each."""

    column: str
    low: Finite = Field(description="Where the first bin begins, if not at the end of the domain")
    high: Finite = Field(description="Where the last bin ends, if not at the end of the domain")
    steps: Literal[65536] = Field(default=65536, description="Into which a bin is cut")
    scale: Finite = Field(
        gt=0, le=LARGEST_SCALE, description="σ of rounded normal noise, or b, in steps"
    )


class MarginalParameters(ManifestPart):
    """What was measured, with which noise."""

    noise: Literal["gaussian", "geometric"]
    unit: Unit
    order: int = Field(ge=0, description="The columns of the largest table, or of every set")
    tables: TableChoice = Field(
        description="Which tables: all up to the order, those that were named, those of a "
        "workload, or a private choice"
    )
    rows_scale: float | None = Field(
        default=None, gt=0, description="The noise on a first look at the number of rows"
    )
    rows_figure: int | None = Field(
        default=None, ge=-MOST_ROWS, le=MOST_ROWS, description="What that look showed"
    )
    selection_rho: Finite = Field(
        default=0.0, ge=0, description="ρ that choosing tables cost, for one row"
    )
    selection_epsilon: Finite = Field(
        default=0.0, ge=0, description="ε that it cost, where noise is geometric"
    )
    measurements: list[MeasuredTable] = Field(min_length=1)
    means: list[MeasuredMeans] = Field(
        default=[], description="Columns of numbers whose means within bins were measured; their "
        "figures follow those of the tables",
    )  # fmt: skip
    schema_account: SchemaAccount | None = Field(
        default=None, description="How the domain was learnt, and at what cost; absent: it was not"
    )

    @model_serializer(mode="wrap")
    def _without_account(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Releases without means, or whose domain was not learnt, are written as always."""
        found: dict[str, Any] = handler(self)
        if not self.means:
            found.pop("means", None)
        if self.schema_account is None:
            found.pop("schema_account", None)
        return found


class LawNumbers(ManifestPart):
    """Coefficients of the law of the model's errors: see errors.py."""

    rows: Finite = Field(ge=0, le=MOST_ROWS)
    rows_variance: NotNegative
    unit: Finite = Field(ge=1 / LARGEST, le=LARGEST)
    scale: Finite = Field(ge=1 / LARGEST, le=LARGEST)
    error: list[NotNegative] = Field(max_length=32)
    shared: list[NotNegative] = Field(max_length=32)
    unmeasured: list[NotNegative] = Field(max_length=32)
    order: int = Field(ge=0, le=16)
    caution: Finite = Field(ge=1, le=1e6)
    far: Finite = Field(gt=0, le=1e6)


class ModelParameters(ManifestPart):
    """The model, and how far it is off."""

    products: int = Field(ge=1, le=100_000)
    rows: Finite = Field(ge=0, le=MOST_ROWS, description="How many rows the model counts in all")
    seed: int = Field(ge=0, lt=2**63, description="From which synthetic rows are drawn; public")
    law: LawNumbers


class MarginalGuarantee(ManifestPart):
    """(ε, δ)-differential privacy, ρ-zCDP, and ε alone where noise is geometric."""

    kind: GuaranteeKind
    unit: Unit
    epsilon: Finite = Field(gt=0)
    delta: Finite = Field(ge=0, lt=1)
    rho: Finite = Field(gt=0)
    mu: float | None = Field(description="μ of Gaussian differential privacy, where it holds")


class MarginalManifest(PeopleManifest):
    """Noisy tables of every few columns, and a model fitted to them."""

    method: Literal["marginals", "full-table"] = "marginals"
    parameters: MarginalParameters
    guarantee: MarginalGuarantee
    model: ModelParameters

    @property
    def schema_account(self) -> SchemaAccount | None:
        """What learning the domain cost, where it was learnt."""
        return self.parameters.schema_account

    def check(self) -> None:
        """Refuse tables, figures or noise that do not agree."""
        p, g = self.parameters, self.guarantee
        self.check_people()
        if p.unit != g.unit:
            raise ValueError(f"noise for {p.unit}, and a promise for {g.unit}")
        account = p.schema_account
        if account is not None and (account.unit, account.noise) != (p.unit, p.noise):
            raise ValueError(
                f"a domain learnt with {account.noise} noise for {account.unit}, and tables with "
                f"{p.noise} noise for {p.unit}"
            )
        if account is not None and account.rows_per_person != self.rows_per_person:
            raise ValueError(
                f"a domain learnt for {account.rows_per_person} rows of a person, and tables for "
                f"{self.rows_per_person}"
            )
        if (p.rows_scale is None) != (p.rows_figure is None):
            raise ValueError("a look at the number of rows has a figure and a scale")
        if (self.public_rows is None) != (p.unit == "add-remove"):
            raise ValueError("the number of rows is public if rows are exchanged, else it is not")
        if self.rows != self.plan.figures:
            raise ValueError(f"{self.rows} figures are not all that the tables have")
        if self.rows > MOST_FIGURES:
            raise ValueError(f"{self.rows:,} figures are more than {MOST_FIGURES:,}")
        shares = self.model.products * (1 + sum(self.schema_.sizes))
        if shares > MOST_FIGURES:
            raise ValueError(f"a model of {shares:,} shares is larger than {MOST_FIGURES:,}")
        if p.tables == "selected" and not (p.selection_rho or p.selection_epsilon):
            raise ValueError(
                "tables were chosen by looking, and the choice is said to cost nothing"
            )
        if p.order != (found := order_of(self.plan, p.tables)):
            raise ValueError(f"the order is {p.order}, and what was measured has {found}")

    def weakness(self) -> str:
        """ε is so large that a belief may become near certainty."""
        return weak_epsilon(self.guarantee.epsilon) or weak_delta(self.guarantee.delta)

    def stronger(self) -> str:
        """A smaller ε, or a smaller δ where that is what is wrong."""
        if weak_epsilon(self.guarantee.epsilon):
            return super().stronger()
        return f"ask for a smaller δ: {spelled('delta', 1e-9)}"

    @cached_property
    def places(self) -> dict[str, NumberPlaces]:
        """Where the bins lie whose means were measured, by column."""
        return {one.column: measured_places(self.schema_, one) for one in self.parameters.means}

    @cached_property
    def plan(self) -> MeasurementPlan:
        """What was measured, with its account."""
        place = {name: i for i, name in enumerate(self.schema_.names)}
        p = self.parameters
        unknown = next((n for m in p.measurements for n in m.columns if n not in place), None)
        if unknown is not None:
            raise ValueError(f"a table of {unknown!r}, which is no column")
        found = tuple(
            Measurement(tuple(place[n] for n in m.columns), m.scale) for m in p.measurements
        )
        sizes = tuple(self.schema_.sizes)
        return MeasurementPlan(
            sizes,
            p.noise,
            p.unit,
            found,
            p.rows_scale,
            p.selection_rho,
            p.selection_epsilon,
            p.schema_account.spent() if p.schema_account is not None else NOTHING,
            self.rows_per_person,
            tuple(
                PlaceMeasurement(place[one.column], self.places[one.column].size, one.scale)
                for one in p.means
            ),
        )

    @property
    def public_cells(self) -> list[int]:
        """How many figures each measurement has, tables and then means."""
        tables = [self.plan.cells(m) for m in self.plan.measurements]
        return [*tables, *(one.bins for one in self.plan.places)]


def measured_places(schema: Schema, means: MeasuredMeans) -> NumberPlaces:
    """The bins of a column as its means were measured; refused where it can have none."""
    attribute = next((a for a in schema if a.name == means.column), None)
    places = None if attribute is None else places_of(attribute, (means.low, means.high))
    if attribute is None or places is None:
        raise ValueError(f"means within bins of {means.column!r}, which has none")
    low, high = domain_ends(attribute)
    beyond = means.low < low or means.high > high
    whole = means.low.is_integer() and means.high.is_integer()
    if means.low > low or means.high < high or (beyond and not attribute.clamp):
        raise ValueError(
            f"the bins of {means.column!r} are said to reach from {means.low:g} to "
            f"{means.high:g}, and its domain from {low:g} to {high:g}"
        )
    if places.whole and not whole:
        raise ValueError(f"the bins of {means.column!r} do not end at whole numbers")
    return places


def order_of(plan: MeasurementPlan, tables: TableChoice) -> int:
    """The columns of the largest table; of all tables, as many as every set of them was measured.

    With geometric noise larger tables stand for several: some sets of more columns are known.
    """
    if tables != "all":
        return max(len(m.columns) for m in plan.measurements)
    columns, order = sum(size > 1 for size in plan.sizes), 0
    wide = (c for c in plan.residual_plan().variances if all(plan.sizes[i] > 1 for i in c))
    number = Counter(map(len, wide))
    while order < columns and number[order + 1] == math.comb(columns, order + 1):
        order += 1
    return order


def guarantee_of(plan: MeasurementPlan, wanted: GuaranteeKind, delta: float) -> MarginalGuarantee:
    """All that follows from the noise that is drawn."""
    pure = plan.pure_epsilon
    return MarginalGuarantee(
        kind=wanted,
        unit=plan.unit,
        epsilon=pure if pure is not None else plan.epsilon_at(delta),
        delta=plan.schema.delta if pure is not None else delta,
        rho=plan.rho,
        mu=plan.mu,
    )


def marginals_disclosed(
    schema: Schema, nulls: str, unit: Unit, account: SchemaAccount | None
) -> list[Disclosed]:
    """What the release discloses exactly, with why."""
    found = []
    if unit == "exchange":
        what = "the number of rows" + (" in which nothing is missing" if nulls == "drop" else "")
        why = "what is promised is about which rows, not about how many"
        found.append(Disclosed(what=what, why=why))
    return found + read_off_disclosed(schema) + chosen_disclosed(schema, nulls, account)


# ----------------------------------------------------------------------
# what noisy marginals promise, as statements that can be compared and converted


ANYONE = "anyone, even who knows every other row"
UNITS = {"add-remove": "add-remove", "exchange": "swap"}
"""As statements spell them."""
DOING = {"add-remove": "adding or removing a row", "exchange": "exchanging a row for another"}


def marginal_statements(manifest: MarginalManifest) -> list[Statement]:
    """ε alone, or (ε, δ) and ρ-zCDP."""
    g = manifest.guarantee
    unit, doing = UNITS[g.unit], doing_of(g.unit, manifest.people)
    who = "exclusive" if g.unit == "exchange" else "independent"
    if g.kind == "dp":
        found = [Statement(
            {"kind": "dp", "epsilon": g.epsilon, "unit": unit}, who, ANYONE,
            "geometric noise: ε of each table adds up",
            f"ε-differential privacy with ε = {g.epsilon:.4g}, for {doing}.",
        )]  # fmt: skip
    elif threshold_delta(manifest):
        found = [Statement(
            {"kind": "approximate-dp", "epsilon": g.epsilon, "delta": g.delta, "unit": unit},
            who, ANYONE, "what the domain cost and what the tables cost, together",
            f"(ε, δ)-differential privacy with ε = {g.epsilon:.4g} and δ = {g.delta:g}, for "
            f"{doing}; the domain, which was learnt from the table, is part of it.",
        )]  # fmt: skip
    else:
        how = "the exact account of Gaussian noise" if g.mu is not None else "ρ of zCDP adds up"
        found = [
            Statement(
                {"kind": "approximate-dp", "epsilon": g.epsilon, "delta": g.delta, "unit": unit},
                who, ANYONE, how,
                f"(ε, δ)-differential privacy with ε = {g.epsilon:.4g} and δ = {g.delta:g}, for "
                f"{doing}.",
            ),
            Statement(
                {"kind": "zcdp", "rho": g.rho, "unit": unit}, who, ANYONE,
                "ρ of each table adds up",
                f"Zero-concentrated differential privacy with ρ = {g.rho:.4g}, for {doing}.",
            ),
        ]  # fmt: skip
        if g.kind == "zcdp":
            found.reverse()
        if g.mu is not None:
            found.append(Statement(
                {"kind": "gdp", "mu": g.mu, "unit": unit}, who, ANYONE, how,
                f"Gaussian differential privacy with μ = {g.mu:.4g}, for {doing}.",
            ))  # fmt: skip
    kept = [void(one) for one in found] if manifest.simulated else found
    return about_people(kept, manifest.people)


def doing_of(unit: Unit, people: ProtectedPeople | None) -> str:
    """Between which tables a promise holds, in words."""
    if people is None:
        return DOING[unit]
    if unit == "add-remove":
        return f"adding or removing {people.one}"
    return f"exchanging the rows of {people.one} for as many others"


def threshold_delta(manifest: MarginalManifest) -> float:
    """The probability that the domain lists a value of one person alone; 0 where it cannot."""
    account = manifest.schema_account
    return account.spent().delta if account is not None else 0.0


def marginals_not_promised(manifest: MarginalManifest) -> list[Statement]:
    """What noisy marginals must not be taken to promise."""
    g = manifest.guarantee
    if g.kind != "dp":
        why = (
            "With a small chance normal noise is so far out that it excludes a possibility, or "
            "nearly"
        )
        if manifest.parameters.noise == "geometric":
            why = "With a small chance the domain lists a value that only one person has"
        found = [not_kept(
            {"kind": "dp", "unit": UNITS[g.unit]}, "exclusive", "anyone", "does not follow",
            f"{why}: no ε holds with δ = 0.",
        )]  # fmt: skip
    else:
        found = []
    if g.unit == "exchange":
        found.append(not_kept(
            {"kind": "dp", "unit": "add-remove"}, "exclusive", "anyone", "does not follow",
            "The number of rows is public: tables with a row more or less can be told apart.",
        ))  # fmt: skip
    return found
