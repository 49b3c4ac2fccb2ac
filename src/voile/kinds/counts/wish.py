"""What was asked of tables of counts, checked before the table is read."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from voile.engines.table import NULLS, Nulls
from voile.errors import PromiseError, UsageError, did_you_mean
from voile.kinds.options import check_options
from voile.privacy.interactive.confidence import check_promise
from voile.schema import Schema

CONJUNCTS = ("conjuncts",)
NOISES = ("binomial", "gaussian")
DELTA, ETA, ARITY = 1.0, 1e-6, 2
MOST_HALVES = 100_000
MOST_TABLES = 5_000
"""Sets of columns; each is a file."""
MOST_FIGURES = 2**24


@dataclass(frozen=True)
class ConjunctWish:
    """Tables of `arity` columns, of `subsets` halves or, if direct, of all rows."""

    method: str = "conjuncts"
    columns: Sequence[str] | None = None
    schema: Schema | str | Path | Mapping[str, Any] | None = None
    arity: int = ARITY
    subsets: int | None = None
    """t, the number of halves; what errs least if nothing is said."""
    direct: bool = False
    delta: float | None = None
    eta: float = ETA
    rho: float | None = None
    noise: str = "binomial"
    nulls: Nulls = "error"
    name: str | None = None
    simulate_seed: int | None = None

    @classmethod
    def of(cls, options: dict[str, Any]) -> ConjunctWish:
        check_options(cls, options)
        return cls(**options)

    def __post_init__(self) -> None:
        if self.method not in CONJUNCTS:
            raise UsageError(f"method {self.method!r} is not known",
                             hint=did_you_mean(self.method, list(CONJUNCTS)))  # fmt: skip
        if self.nulls not in NULLS:
            raise UsageError(f"nulls {self.nulls!r} is not known", hint=f"use {', '.join(NULLS)}")
        if self.arity < 1:
            raise UsageError(f"--arity {self.arity} is less than 1", hint="2 is usual")
        if self.direct and self.subsets is not None:
            raise UsageError("--subsets does not go with --direct, which counts all rows at once",
                             hint="leave one of them out")  # fmt: skip
        if self.subsets is not None and not 2 <= self.subsets <= MOST_HALVES:
            raise UsageError(
                f"--subsets {self.subsets} is not between 2 and {MOST_HALVES:,}",
                hint="leave it out for the number that errs least, or say --direct",
            )
        if self.noise not in NOISES:
            raise UsageError(f"--noise {self.noise!r} is not known",
                             hint=f"use {' or '.join(NOISES)}")  # fmt: skip
        self._check_promise()

    def _check_promise(self) -> None:
        if self.rho is not None and self.delta is not None:
            raise UsageError("--delta and --rho were both given", hint="give one of them")
        if self.rho is not None and not (math.isfinite(self.rho) and self.rho > 0):
            raise UsageError(f"ρ = {self.rho} is not above 0",
                             hint="0.5 is usual; a smaller one promises more")  # fmt: skip
        check_promise(DELTA if self.delta is None else self.delta, self.eta, 1)

    @property
    def drop_nulls(self) -> bool:
        return self.nulls == "drop"


def check_sizes(arity: int, sizes: Sequence[int], figures: int) -> None:
    """Refuse what would be too much to write, or has no tables."""
    if arity > len(sizes):
        raise UsageError(
            f"--arity {arity} is more than the {len(sizes)} columns that are published",
            hint=f"use at most {len(sizes)}, or more --columns",
        )
    if (tables := math.comb(len(sizes), arity)) > MOST_TABLES:
        raise PromiseError(
            f"there are {tables:,} sets of {arity} of {len(sizes)} columns, more than "
            f"{MOST_TABLES:,}",
            hint="publish fewer columns (--columns), or a smaller --arity",
        )
    if figures > MOST_FIGURES:
        raise PromiseError(
            f"the tables would have {figures:,} figures, more than {MOST_FIGURES:,}",
            hint="declare coarser domains (bins) with --schema, or use fewer --subsets, a smaller "
            "--arity or fewer --columns",
        )
