"""How large a release will be, before it is made: rows by their expectation, bytes by a sample."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np

from voile.engines import connect
from voile.errors import PromiseError, UsageError, spelled
from voile.evaluate.planning.expected import (
    ExpectedError,
    PlannedQuestions,
    PlannedSelections,
    Workload,
    finite,
)
from voile.evaluate.planning.strongest import (
    Ground,
    PromiseCandidate,
    StrongestPromises,
    factor_of,
    limits,
    strongest,
)
from voile.files import temporary_folder
from voile.kinds.domain import columns_option
from voile.kinds.parquet import ROW_GROUP, write_part
from voile.kinds.people import kept_rows
from voile.kinds.views.alphabeta import AlphaBeta
from voile.kinds.views.options import ViewOptions, ViewTableKeywords
from voile.kinds.views.promise import PRIOR_FACTOR, weak_prior
from voile.kinds.views.publishing import prepare
from voile.noise import Key
from voile.options.reading import ReadingOptions
from voile.privacy import DGamma, LikelihoodRatio
from voile.privacy.boundary import ARBITRARY, Limit
from voile.progress import Silent
from voile.schema import Keys, Schema, TupleIndex

SAMPLE = 2**16
"""Rows of the smaller sample; the larger one has twice as many."""
SEED = 0
"""The coins of a sample that is thrown away; always the same, so that plans are repeatable."""


@dataclass(frozen=True)
class ViewSize:
    """What publishing would write."""

    rows: float
    bytes: float
    """Of the Parquet files; the descriptions beside them are small."""


def view_size(mechanism: AlphaBeta, members: Keys, schema: Schema) -> ViewSize:
    """Expected rows, and bytes as a sample of the view has them.

    Two stretches of D are perturbed and written as publishing would, the second twice as long.
    How much it takes more is what a row takes; what is left is the price of each row group,
    which is mostly its lists of values.
    """
    rows = mechanism.excess * len(members) + mechanism.noise_mean * float(schema.size)
    if rows <= 2 * SAMPLE:
        _, size = sample(mechanism, members, schema, 1.0)
        return ViewSize(rows, size)
    share = SAMPLE / rows
    (few, small), (many, large) = (
        sample(mechanism, members, schema, part) for part in (share, 2 * share)
    )
    row = max(large - small, 1) / max(many - few, 1)
    group = max(small - row * few, 0.0)
    return ViewSize(rows, row * rows + group * math.ceil(rows / ROW_GROUP))


def sample(mechanism: AlphaBeta, members: Keys, schema: Schema, share: float) -> tuple[int, int]:
    """Rows and bytes of the view of a first part of D."""
    index = TupleIndex(schema.sizes)
    last = max(1, math.ceil(index.limbs[0].size * min(share, 1.0)))
    if last < index.limbs[0].size:
        members = members[: np.searchsorted(members, index.first_key(last))[0]]
    key = Key.from_seed(SEED)
    noise = mechanism.noise_rows(index, key, 0, 0, last)
    with temporary_folder() as folder:
        file = folder / "sample.parquet"
        rows = write_part(file, schema, mechanism.view(members, noise, key, 0))
        return rows, file.stat().st_size


# ------------ what a promise would cost, before anything is published; made from the private table


FOR_THE_STEWARD = (
    "these numbers were made from the private table: they are for the steward, not for publication"
)
CHOSEN_BY_ERROR = (
    "a promise chosen by its errors on the table tells a little about the table; a round number "
    "that would do for any such table tells nothing"
)
POINTS = 24
"""Points of a curve, besides the plan's own."""


@dataclass(frozen=True)
class CurvePoint:
    """The expected errors at another promise."""

    at: float
    expected_error: float
    means: tuple[float | None, ...]
    """In the order of the plan's `errors`."""
    relative: tuple[float | None, ...]
    """The same as shares of the numbers that are asked for."""

    def to_dict(self, name: str) -> dict[str, Any]:
        """The same as plain data, ready for JSON."""
        return {
            name: self.at,
            "expected_error": finite(self.expected_error),
            "errors": [finite(mean) for mean in self.means],
            "relative": [finite(share) for share in self.relative],
        }


@dataclass(frozen=True)
class Foresight:
    """What `voile plan` shows."""

    ground: Ground
    mechanism: AlphaBeta
    size: ViewSize
    errors: tuple[ExpectedError, ...]
    expected_error: float
    by_posterior: tuple[CurvePoint, ...]
    by_prior_factor: tuple[CurvePoint, ...]
    strongest: StrongestPromises | None
    limits: tuple[Limit, ...]
    notes: tuple[str, ...]
    source: str
    reading: ReadingOptions

    @property
    def promise(self) -> DGamma:
        """The promise that is planned."""
        return self.ground.prepared.promise

    @property
    def rows(self) -> int:
        """Records of the table."""
        return len(self.ground.prepared.members)

    @property
    def domain_size(self) -> int:
        """Possible tuples."""
        return self.ground.prepared.schema.size

    @property
    def prior_factor(self) -> float:
        """k = d·m/n."""
        return factor_of(self.promise, self.ground.options, self.ground.boundary.density)

    @property
    def measure(self) -> str:
        """What the expected error is of."""
        return self.ground.workload.measure

    def command(self, options: ViewOptions) -> str:
        """The line that would publish it."""
        return publish_command(self.source, options, self.reading)

    def epsilon(self, unit: Any) -> float | None:
        """ε of the view for this unit; None where there is none."""
        return finite(self._ratio.epsilon(unit))

    @property
    def _ratio(self) -> LikelihoodRatio:
        """Of a record, or of all records of a person."""
        rows = self.ground.options.rows_per_person or 1
        return self.mechanism.likelihood_ratio().of_group(rows)

    @property
    def linked_posterior(self) -> float:
        """The belief of someone who knows that one of a list of records is there."""
        return float(self._ratio.linked_posterior(self.promise.prior))

    def to_dict(self) -> dict[str, Any]:
        """The same as plain data, ready for JSON."""
        return {
            "rows": self.rows,
            "domain_size": str(self.domain_size),
            "prior": self.promise.prior,
            "prior_factor": self.prior_factor,
            "posterior": self.promise.posterior,
            "adversary": self.promise.adversary,
            "form": self.mechanism.form,
            "retention": self.mechanism.retention,
            "noise": self.mechanism.noise,
            "expected_rows": self.size.rows,
            "expected_bytes": round(self.size.bytes),
            "expected_error": finite(self.expected_error),
            "measure": self.measure,
            "errors": [line.to_dict() for line in self.errors],
            "epsilon": self.epsilon("add-remove"),
            "epsilon_swap": self.epsilon("swap"),
            "linked_posterior": self.linked_posterior,
            "curves": {
                "posterior": [p.to_dict("posterior") for p in self.by_posterior],
                "prior_factor": [p.to_dict("prior_factor") for p in self.by_prior_factor],
            },
            "strongest": self._strongest(),
            "limits": [limit.to_dict() for limit in self.limits],
            "command": self.command(self.ground.options),
            "notes": list(self.notes),
        }

    def _strongest(self) -> dict[str, Any] | None:
        found = self.strongest
        if found is None:
            return None
        by_posterior, by_prior = found.least_errors
        return {
            "max_error": found.max_error,
            "smallest_posterior": self._candidate(found.smallest_posterior),
            "largest_prior": self._candidate(found.largest_prior),
            "least_error": {"posterior": finite(by_posterior), "prior": finite(by_prior)},
        }

    def _candidate(self, found: PromiseCandidate | None) -> dict[str, Any] | None:
        return found.to_dict() | {"command": self.command(found.options)} if found else None


def plan_table(
    table: Any,
    *,
    on: Sequence[str] = (),
    max_error: float | None = None,
    null_text: Sequence[str] = (),
    source: str | None = None,
    **options: Unpack[ViewTableKeywords],
) -> Foresight:
    """What publishing the table with these options would give.

    `on` are queries whose errors matter, instead of all small selections. With `max_error` the
    strongest promises that allow it are found too. `source` and `null_text` are how the table is
    named on the command line.
    """
    if options.get("noise_prior") is not None:
        raise UsageError(
            "noise that has a shape cannot be foreseen", hint=f"leave out {spelled('noise_prior')}"
        )
    adversary: object = options.get("adversary")
    if adversary == "arbitrary":
        raise PromiseError(
            f"{ARBITRARY.theorem}: {ARBITRARY.says}",
            hint=f"use {spelled('adversary', 'independent')} or "
            f"{spelled('adversary', 'exclusive')}",
        )
    asked = ViewOptions(**options)
    check_max_error(max_error)
    private = connect(table, null_text=tuple(null_text))
    kept = kept_rows(private, asked.but(simulate_seed=SEED))
    prepared = prepare(private if kept is None else kept.table, asked, Silent())
    known_rows = len(prepared.members) if asked.tells_rows else None
    workload: Workload = (
        PlannedQuestions(on, prepared.members, prepared.schema, known_rows)
        if on
        else PlannedSelections.of(prepared.members, prepared.schema.sizes)
    )
    ground = Ground(prepared, asked, workload)
    mechanism = ground.mechanism(prepared.promise)
    errors = workload.errors(mechanism)
    return Foresight(
        ground=ground,
        mechanism=mechanism,
        size=view_size(mechanism, prepared.members, prepared.schema),
        errors=errors,
        expected_error=workload.overall(errors),
        by_posterior=by_posterior(ground),
        by_prior_factor=by_prior_factor(ground),
        strongest=None if max_error is None else strongest(ground, max_error),
        limits=limits(ground, prepared.promise, max_error),
        notes=(
            FOR_THE_STEWARD,
            *([CHOSEN_BY_ERROR] if max_error is not None else []),
            *prepared.notes,
            *weak_prior(prepared.promise, prepared.schema.size),
        ),
        source=source or private.name,
        reading=private.reading,
    )


def check_max_error(max_error: float | None) -> None:
    """Refuse an error that is not above 0."""
    if max_error is not None and not 0 < max_error < math.inf:
        raise UsageError(
            f"{spelled('max_error', max_error)} must be above 0",
            hint="it is how far an answer may be off on average, e.g. 100",
        )


# ---------------------------------------------------------------------- curves


def by_posterior(ground: Ground) -> tuple[CurvePoint, ...]:
    """The error against γ, at the requested prior: in even steps of γ's odds, by which it falls."""
    prior, own = ground.prepared.promise.prior, ground.prepared.promise.posterior
    lowest = min(own, max(1.5 * prior, min(own / 4, 0.01)))
    odds = around(odds_of(own), odds_of(lowest), odds_of(0.98))
    posteriors = [own if x == odds_of(own) else x / (1 + x) for x in odds]
    return curve(ground, [(gamma, prior, gamma) for gamma in posteriors])


def by_prior_factor(ground: Ground) -> tuple[CurvePoint, ...]:
    """The error against k, at the requested posterior."""
    density, promise = ground.boundary.density, ground.prepared.promise
    own = factor_of(promise, ground.options, density)
    highest = min(0.95 * promise.posterior / float(density), 100 * max(own, 1.0))
    factors = around(own, min(1.0, own / 4), highest)
    return curve(ground, [(k, k * float(density), promise.posterior) for k in factors])


def odds_of(chance: float) -> float:
    """The odds of a probability."""
    return chance / (1 - chance)


def around(own: float, low: float, high: float) -> list[float]:
    """Values evenly apart on a logarithmic axis, with one's own among them."""
    return sorted({own, *np.geomspace(min(low, own), max(high, own), POINTS).tolist()})


def curve(ground: Ground, places: Iterable[tuple[float, float, float]]) -> tuple[CurvePoint, ...]:
    """Points at (where on the axis, prior, posterior), where that promise can be made."""
    found = []
    for at, prior, posterior in places:
        try:
            mechanism = ground.mechanism(DGamma(prior, posterior, ground.options.adversary))
        except PromiseError:
            continue
        errors = ground.workload.errors(mechanism)
        means = tuple(line.mean for line in errors)
        shares = tuple(line.relative for line in errors)
        found.append(CurvePoint(at, ground.workload.overall(errors), means, shares))
    return tuple(found)


# ---------------------------------------------------------------------- the line to type


def publish_command(source: str, options: ViewOptions, reading: ReadingOptions) -> str:
    """Options as a line for a shell; what is as by default is left out."""
    usual = ViewOptions()
    if options.prior is None and options.prior_factor is None:
        options = options.but(prior_factor=PRIOR_FACTOR)
    parts = ["voile publish", shlex.quote(source)]
    for name in ("prior_factor", "prior", "posterior", "adversary", "retention", "max_view_ratio",
                 "person", "rows_per_person"):  # fmt: skip
        value = getattr(options, name)
        if value is not None and (value != getattr(usual, name) or name == "posterior"):
            text = f"{value:.10g}" if isinstance(value, float | int) else shlex.quote(value)
            parts.append(f"--{name.replace('_', '-')} {text}")
    if options.columns is not None:
        parts.append(f"--columns {columns_option(options.columns)}")
    if options.schema_ is not None:
        parts.append(f"--schema {shlex.quote(str(options.schema_))}")
    if options.form == "set":
        parts.append("--rows set" + " --distinct" * options.distinct)
    if options.nulls != usual.nulls:
        parts.append(f"--nulls {options.nulls}")
    parts += map(shlex.quote, reading.words())
    return " ".join(parts)
