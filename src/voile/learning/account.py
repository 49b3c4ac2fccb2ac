"""What was looked at in order to learn a schema, with which noise: the account is recomputed."""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    model_serializer,
)

from voile.learning.budget import failure, moved
from voile.noise.normal import LARGEST_SCALE
from voile.options.choices import MOST_ROWS_PER_PERSON, Unit
from voile.privacy.gaussian import composed
from voile.privacy.spent import UP, Spent
from voile.schema import Schema, Values

MOST_LOOKS = 8
"""At one column."""
MOST_ROWS = 2**62
Scale = Annotated[float, Field(gt=0, le=LARGEST_SCALE, allow_inf_nan=False)]


class LearntPart(BaseModel):
    """Strict data of a manifest."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class LearntColumn(LearntPart):
    """The looks at one column: each is a histogram in which a row has at most one cell."""

    name: str
    scales: list[Scale] = Field(
        min_length=1, max_length=MOST_LOOKS,
        description="σ of rounded normal noise, or b of geometric noise, of each histogram",
    )  # fmt: skip
    threshold: int | None = Field(
        default=None, ge=2, le=MOST_ROWS,
        description="From which noisy count on a value is listed, by the first histogram; null: "
        "its cells do not depend on the table",
    )  # fmt: skip
    open: bool = Field(
        default=False,
        description="Whether noise hid how far the numbers reach beyond the domain",
    )

    @model_serializer(mode="wrap")
    def _written(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Written where it is so: earlier releases did not say."""
        found: dict[str, Any] = handler(self)
        if not self.open:
            found.pop("open", None)
        return found


class SchemaAccount(LearntPart):
    """How the schema was learnt, and what that costs."""

    noise: Literal["gaussian", "geometric"]
    unit: Unit
    rows_per_person: int = Field(default=1, ge=1, le=MOST_ROWS_PER_PERSON)
    rows_scale: Scale | None = Field(
        default=None, description="The noise on the number of rows; null where that is public"
    )
    rows_figure: int = Field(
        ge=-MOST_ROWS, le=MOST_ROWS, description="The number of rows with that noise"
    )
    columns: list[LearntColumn] = Field(default=[], max_length=100_000)
    left_out: list[str] = Field(
        default=[], max_length=100_000,
        description="Columns of the table that the steward left out, besides the one that says "
        "whose a row is",
    )  # fmt: skip
    delta: float = Field(
        default=0.0, ge=0, lt=1,
        description="The probability that a value of one person alone is listed, at most",
    )  # fmt: skip

    @property
    def rows(self) -> int:
        """The noisy number of rows, at least 1."""
        return max(1, self.rows_figure)

    def spent(self) -> Spent:
        """What all looks cost together, recomputed from their scales."""
        by = moved(self.noise, self.unit, self.rows_per_person)
        rates = [by / scale for column in self.columns for scale in column.scales]
        if self.rows_scale is not None and self.unit == "add-remove":
            rates.append(self.rows_per_person / self.rows_scale)
        delta = math.fsum(self._failure(column) for column in self.columns)
        if self.noise == "gaussian":
            return Spent(mu=composed(rates) * UP, delta=delta * UP)
        return Spent(epsilon=math.fsum(rates) * UP, delta=delta * UP)

    def exchanged(self) -> Spent:
        """What the same looks cost where rows are exchanged, and their number stays."""
        return self.model_copy(update={"unit": "exchange"}).spent()

    def _failure(self, column: LearntColumn) -> float:
        if column.threshold is None:
            return 0.0
        return failure(self.noise, column.scales[0], column.threshold, self.rows_per_person)

    def check(self, schema: Schema) -> None:
        """Refuse an account that does not pay for every learnt column of a schema."""
        names = [column.name for column in self.columns]
        if len(set(names)) < len(names):
            raise ValueError("a column was learnt twice")
        if both := set(self.left_out) & set(schema.names):
            raise ValueError(f"{min(both)!r} is a column, and is said to be left out")
        paid = {column.name: column for column in self.columns}
        for attribute in schema:
            column = paid.pop(attribute.name, None)
            if (column is not None) != (attribute.public == "learnt"):
                raise ValueError(
                    f"the domain of {attribute.name!r} is {attribute.public}, and "
                    f"the account of the schema has {'no' if column is None else 'a'} look at it"
                )
            # Cells of numbers are public; a list of values is of those that occur.
            listed = isinstance(attribute.domain, Values) or attribute.other is not None
            if column is not None and column.threshold is None and listed:
                raise ValueError(
                    f"the values of {attribute.name!r} were listed without a threshold"
                )
        if paid:
            raise ValueError(f"a look at {next(iter(paid))!r}, which is no learnt column")
        if self.unit == "add-remove" and self.rows_scale is None:
            raise ValueError("the number of rows was looked at without noise")
        if not math.isclose(self.delta, found := self.spent().delta, rel_tol=1e-6, abs_tol=1e-300):
            raise ValueError(
                f"δ of the schema is {self.delta!r}, and from its thresholds follows {found!r}"
            )
