"""What the holder of a table asks for when its rows are to be perturbed, checked beforehand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

from voile.engines.table import NULLS, Nulls
from voile.errors import PromiseError, UsageError, did_you_mean
from voile.kinds.options import check_options
from voile.kinds.views.noise_prior import from_mapping, read_mapping
from voile.mechanisms.retention import ColumnNoise, Local, Replace, Retention, WholeRows
from voile.schema import Attribute, Schema
from voile.schema.product import Product

WORDS = ("uniform", "identity", "swap")
SMALLEST_SUPPRESSED = 2


@dataclass(frozen=True)
class PerturbWish:
    """Which columns are perturbed, and how.

    `retention` is one number for all columns, or a mapping by name in which None stands for the
    others; columns that are in neither are public. `replace` likewise: uniform, identity or swap;
    a file or a mapping of chances makes it a declared distribution.
    """

    retention: float | Mapping[str | None, float]
    replace: Any = "uniform"
    columns: Sequence[str] | None = None
    schema: Schema | str | Path | Mapping[str, Any] | None = None
    nulls: Nulls = "error"
    whole_rows: bool = False
    """FRAPP: one coin for the whole row."""
    row_key: str | None = None
    """A column by which this part of a table is joined with others."""
    suppress_below: int | None = None
    """Make values NULL that fewer rows have, in columns that keep their own values."""
    most_epsilon: float | None = None
    """Refuse more than this for a row."""
    name: str | None = None
    simulate_seed: int | None = None

    @classmethod
    def of(cls, options: dict[str, Any]) -> PerturbWish:
        check_options(cls, options)
        return cls(**options)

    def __post_init__(self) -> None:
        for name, retention in self.retentions.items():
            where = "" if name is None else f" of {name!r}"
            number = isinstance(retention, int | float) and not isinstance(retention, bool)
            if not number or not 0 < retention <= 1:
                raise UsageError(
                    f"the retention{where} is {retention!r}, which must lie in (0, 1]",
                    hint="1 leaves a column as it is; 0.3 keeps about a third",
                )
        if self.nulls not in NULLS:
            raise UsageError(f"nulls {self.nulls!r} is not known", hint=f"use {', '.join(NULLS)}")
        self._check_replace()
        least = self.suppress_below
        if least is not None and least < SMALLEST_SUPPRESSED:
            raise UsageError(f"--suppress-below {least} suppresses nothing", hint="such as 5")
        if self.most_epsilon is not None and not self.most_epsilon > 0:
            raise UsageError(
                f"--most-epsilon {self.most_epsilon} must be positive", hint="such as 8"
            )
        if self.whole_rows and set(self.retentions) != {None}:
            raise UsageError(
                "--whole-rows has one coin for all columns", hint="give one --retention"
            )

    def _check_replace(self) -> None:
        if self.distribution is not None:
            if self.whole_rows:
                raise UsageError(
                    "--whole-rows replaces by uniform tuples", hint="leave --replace out"
                )
            return
        for name, word in self.words.items():
            where = "" if name is None else f" for {name!r}"
            if word not in WORDS:
                raise UsageError(
                    f"replace {word!r}{where} is not known",
                    hint=f"use {', '.join(WORDS)}, or a file of chances (.yaml or .json)",
                )
        if self.whole_rows and set(self.words.values()) != {"uniform"}:
            raise UsageError("--whole-rows replaces by uniform tuples", hint="leave --replace out")

    @property
    def retentions(self) -> Mapping[str | None, float]:
        given = self.retention
        return given if isinstance(given, Mapping) else {None: given}

    @property
    def distribution(self) -> Path | Mapping[str, Any] | None:
        """A declared distribution, where one is given."""
        given = self.replace
        if isinstance(given, Path | str) and Path(given).suffix.lower() in (
            ".yaml",
            ".yml",
            ".json",
        ):
            return Path(given)
        if isinstance(given, Mapping) and any(not isinstance(v, str) for v in given.values()):
            return given
        return None

    @property
    def words(self) -> Mapping[str | None, str]:
        given = self.replace
        return given if isinstance(given, Mapping) else {None: str(given)}


def noise_for(schema: Schema, wish: PerturbWish) -> Local:
    """The mechanism that was asked for, on this domain."""
    given = [*wish.retentions, *(wish.words if wish.distribution is None else ())]
    for name in given:
        if name is not None and name not in schema.names:
            raise UsageError(
                f"there is no column {name!r} to perturb", hint=did_you_mean(name, schema.names)
            )
    if wish.whole_rows:
        return WholeRows(float(wish.retentions[None]), tuple(schema.sizes))
    parts = declared(schema, wish)
    return Retention(
        tuple(
            column_noise(attribute, wish, own)
            for attribute, own in zip(schema, parts.parts, strict=True)
        )
    )


def declared(schema: Schema, wish: PerturbWish) -> Product:
    given = wish.distribution
    if given is None:
        return Product((None,) * len(schema.names))
    where = str(given) if isinstance(given, Path) else "replace"
    found = read_mapping(given) if isinstance(given, Path) else given
    return from_mapping(found, schema, where)


def column_noise(
    attribute: Attribute, wish: PerturbWish, parts: tuple[int, ...] | None
) -> ColumnNoise:
    name, size = attribute.name, attribute.size
    fallback = wish.retentions.get(None, 1.0)
    retention = float(wish.retentions.get(name, fallback))
    if parts is not None:
        return ColumnNoise(size, retention, "declared", every_value(attribute, parts))
    word = "uniform"
    if wish.distribution is None:
        word = wish.words.get(name, wish.words.get(None, "uniform"))
    for known in get_args(Replace):
        if word == known:
            return ColumnNoise(size, retention, known)
    raise UsageError(f"replace {word!r} is not known", hint=f"use {', '.join(WORDS)}")


def every_value(attribute: Attribute, parts: tuple[int, ...]) -> tuple[int, ...]:
    """Every value must be drawn now and then."""
    if min(parts) < 1:
        never = next(v for i, v in enumerate(attribute) if parts[i] < 1)
        raise UsageError(
            f"{attribute.name!r}: the value {never!r} is given no chance",
            hint="a value that is never drawn gives away whoever has it; give it a small chance",
        )
    return parts


def check_epsilon(mechanism: Local, schema: Schema, wish: PerturbWish) -> None:
    """Refuse retentions that tell more than was allowed; a public column must be named as such."""
    if wish.most_epsilon is None:
        return
    if isinstance(mechanism, Retention):
        for name, column in zip(schema.names, mechanism.columns, strict=True):
            if column.public and column.size > 1 and wish.retentions.get(name) != 1:
                raise PromiseError(
                    f"column {name!r} is public, and has no ε", hint=f"say --retention {name}=1"
                )
    if not mechanism.epsilon() <= wish.most_epsilon:
        raise PromiseError(
            f"these retentions have ε = {mechanism.epsilon():.4g} for a row, more than "
            f"{wish.most_epsilon:g}",
            hint="`voile plan --local` finds the retentions that keep an ε",
        )
