"""A first look at a table: what is in it, what should be left out, what can be promised."""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from voile.engines import connect
from voile.engines.findings import ColumnFinding
from voile.engines.spark import SparkSource, without_secrets
from voile.engines.table import Nulls, Table
from voile.errors import PromiseError, VoileError
from voile.kinds.domain import check_domain, columns_option
from voile.kinds.views.alphabeta import AlphaBeta
from voile.kinds.views.options import ViewOptions
from voile.kinds.views.promise import promise_for
from voile.options.reading import ReadingOptions
from voile.privacy import plan
from voile.privacy.boundary import Boundary
from voile.schema.attribute import plain
from voile.schema.infer import ColumnProfile, infer_attribute

FACTOR, POSTERIOR = 10, 0.2
TOTALS = re.compile(
    r"(grand[ -]?|sub[ -]?)?totals?:?|sum|overall|all|insgesamt|gesamt|summe|somme|ensemble|totale",
    re.IGNORECASE,
)
"""What lines of totals begin with."""


@dataclass(frozen=True)
class Inspection:
    """What `voile inspect` shows. For the steward only: it holds true counts."""

    name: str
    rows: int
    complete_rows: int
    duplicates: int
    publishable_duplicates: int
    profiles: tuple[ColumnProfile, ...]
    sizes: tuple[int | None, ...]
    """Domain size of each column; None where a domain cannot be made."""
    findings: tuple[ColumnFinding, ...] = ()
    """What a steward should decide about columns of a text file, or know of."""
    notes: tuple[str, ...] = ()
    """What reading the table did."""
    source: str = ""
    """What the caller calls the table."""
    spark: str = ""
    """The address of the cluster that reads it, without its secrets."""
    reading: ReadingOptions = field(default_factory=ReadingOptions)
    """How the table's text is read, with what the findings suggest."""
    chosen: tuple[str, ...] | None = None
    """The columns that the caller chose."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """What columns are about, where the file of another program says so."""

    @property
    def domain_size(self) -> int:
        """Possible tuples of all columns."""
        return math.prod(size for size in self.sizes if size)

    @property
    def identifiers(self) -> list[str]:
        """Columns in which nearly every row has its own value."""
        return [p.name for p in self.profiles if p.looks_like_identifier]

    @property
    def repeated_identifiers(self) -> list[str]:
        """Columns that seem to say whose a row is, where people have several rows."""
        return [p.name for p in self.profiles if p.looks_like_repeated_identifier]

    @property
    def unpublishable(self) -> list[ColumnProfile]:
        """Columns of types that no release has, such as times of day."""
        return [p for p in self.profiles if p.kind is None]

    @property
    def totals(self) -> list[tuple[str, str]]:
        """Columns in which one row has a text such as 'Total': a line of a spreadsheet's sums."""
        return [
            (p.name, str(value))
            for p in self.profiles
            if p.kind == "categorical"
            and not p.looks_like_identifier
            and p.values is not None
            and p.counts is not None
            for value, count in zip(p.values, p.counts, strict=True)
            if count == 1 and TOTALS.fullmatch(str(value).strip())
        ]

    @property
    def next_words(self) -> list[str]:
        """The command to type next, in words: with the flags that this table needs."""
        kept = self.publishable
        words = ["voile", "publish", self.source or self.name, *self.reading.words()]
        if self.spark:
            words += ["--spark", self.spark]
        if len(kept) < len(self.profiles) or self.chosen:
            words += ["--columns", *shlex.split(columns_option(kept))]
        if any(p.nulls for p in self.profiles if p.name in kept):
            words += ["--nulls", "as-value"]
        return words

    @property
    def next_command(self) -> str:
        """The command to type next, as a shell takes it; empty where nothing can be published."""
        return shlex.join(self.next_words) if self.publishable and self.rows else ""

    @property
    def publishable(self) -> list[str]:
        """Columns that can be published."""
        return publishable(self.profiles, self.sizes)

    @property
    def publishable_size(self) -> int:
        """Possible tuples of the columns that can be published."""
        named = {p.name: size for p, size in zip(self.profiles, self.sizes, strict=True)}
        return math.prod(named[name] or 1 for name in self.publishable)

    @property
    def boundary(self) -> Boundary:
        """What no algorithm can promise about the publishable columns."""
        return Boundary(self.rows, self.publishable_size)

    def feasible(self) -> dict[str, Any]:
        """What the usual promise would take, or why it cannot be made."""
        answer: dict[str, Any] = {"prior_factor": FACTOR, "posterior": POSTERIOR}
        try:
            check_domain(self.publishable_size)
            if not self.rows:
                raise PromiseError("the table has no rows", hint="there is nothing to publish")
            density = Fraction(self.rows, self.publishable_size)
            answer["boundary"] = self.boundary.root_ratio
            answer["largest_prior_factor"] = float(Fraction(POSTERIOR) / density)
            promise = promise_for(density, ViewOptions(prior_factor=FACTOR, posterior=POSTERIOR))
        except PromiseError as refusal:
            return answer | {"possible": False, "why": refusal.message, "hint": refusal.hint}
        planned = plan(promise, "multiset")
        mechanism = AlphaBeta(planned.retention, planned.noise)
        size = self.publishable_size
        return answer | {
            "possible": True,
            "prior": promise.prior,
            "retention": planned.retention,
            "expected_rows": mechanism.retention * self.rows + mechanism.noise_mean * size,
            "largest_stderr": math.sqrt(mechanism.variance(self.rows, size)),
            "epsilon": mechanism.likelihood_ratio().epsilon("add-remove"),
        }

    def to_dict(self) -> dict[str, Any]:
        """The same as plain data, ready for JSON."""
        return {
            "name": self.name,
            "rows": self.rows,
            "domain_size": str(self.domain_size),
            "density": float(Fraction(self.rows, self.domain_size)),
            "duplicates": self.duplicates,
            "complete_rows": self.complete_rows,
            "identifiers": self.identifiers,
            "repeated_identifiers": self.repeated_identifiers,
            "publishable": {
                "columns": self.publishable,
                "domain_size": str(self.publishable_size),
                "duplicates": self.publishable_duplicates,
            },
            "attributes": [
                {
                    "name": p.name,
                    "label": self.labels.get(p.name),
                    "kind": p.kind or "unsupported",
                    "type": p.sql_type,
                    "size": size,
                    "distinct": p.distinct,
                    "nulls": p.nulls,
                    "example": plain(example(p)),
                    "histogram": list(p.histogram),
                    "identifier": p.looks_like_identifier,
                    "repeated_identifier": p.looks_like_repeated_identifier,
                }
                for p, size in zip(self.profiles, self.sizes, strict=True)
            ],
            "feasible": self.feasible(),
            "findings": [finding.to_dict() for finding in self.findings],
            "notes": list(self.notes),
            "next": self.next_command,
        }


def suggested(reading: ReadingOptions, findings: Sequence[ColumnFinding]) -> ReadingOptions:
    """How to read a table's text, with the likeliest answer to what its findings leave open."""
    texts = list(reading.null_text)
    more: dict[str, Any] = {}
    for finding in findings:
        settled = finding.settled_by
        if finding.what == "sentinel":  # those above all other numbers may be real
            texts += [text for _, text in settled if text.startswith("-") and text not in texts]
        elif finding.what in ("missing", "dates", "numbers") and settled:
            name, value = settled[0]
            if getattr(reading, name) is None:
                more.setdefault(name, value)
    if texts != list(reading.null_text):
        more["null_text"] = tuple(texts)
    return ReadingOptions(**reading.given_keywords() | more)


def inspect_source(
    source: str | SparkSource,
    columns: Sequence[str] | None = None,
    *,
    nulls: Nulls = "error",
    reading: ReadingOptions | None = None,
) -> Inspection:
    """Look at a table as the command that is suggested for it would read it."""
    asked = reading or ReadingOptions()
    table = connect(source, **asked.given_keywords())
    findings = tuple(table.findings())
    better = suggested(asked, findings)
    if better != asked:
        table = connect(source, **better.given_keywords())
        # What was hidden behind other texts, such as -999 beside NA.
        again = tuple(f for f in table.findings() if f.what == "sentinel" and f not in findings)
        findings, best = (*findings, *again), suggested(better, again)
        if best != better:
            table = connect(source, **best.given_keywords())
    found = inspect(table, columns, nulls=nulls)
    if isinstance(source, SparkSource):
        shown = [without_secrets(text) for text in (source.what, source.address)]
        return replace(found, findings=findings, source=shown[0], spark=shown[1])
    return replace(found, findings=findings, source=source)


def inspect(
    table: Table, columns: Sequence[str] | None = None, *, nulls: Nulls = "error"
) -> Inspection:
    """Look at a table before it is published."""
    names = table.check_columns(columns if columns is not None else list(table.columns))
    profiles = table.profiles(names)
    sizes = [domain_size(p, null=nulls == "as-value") for p in profiles]
    kept = publishable(profiles, sizes)
    duplicates = table.duplicates(names)
    return Inspection(
        name=table.name,
        rows=len(table),
        complete_rows=table.complete_rows(names),
        duplicates=duplicates,
        publishable_duplicates=duplicates if kept in (names, []) else table.duplicates(kept),
        profiles=tuple(profiles),
        sizes=tuple(sizes),
        findings=tuple(table.findings()),
        notes=tuple(table.notes),
        reading=table.reading,
        chosen=None if columns is None else tuple(names),
        labels=dict(table.labels),
    )


def publishable(profiles: Sequence[ColumnProfile], sizes: Sequence[int | None]) -> list[str]:
    """The columns that a release could have."""
    return [
        p.name
        for p, size in zip(profiles, sizes, strict=True)
        if size and not (p.looks_like_identifier or p.looks_like_repeated_identifier)
    ]


def domain_size(profile: ColumnProfile, *, null: bool) -> int | None:
    """The product of the columns' sizes."""
    if profile.kind is None:
        return None
    try:
        return infer_attribute(profile, null=null).size
    except VoileError:
        return profile.distinct or None


def example(profile: ColumnProfile) -> Any:
    """The most frequent value: the one least likely to point at anybody."""
    if not profile.values or not profile.counts:
        return profile.low if profile.kind not in (None, "categorical") else None
    return profile.values[profile.counts.index(max(profile.counts))]


def bars(histogram: Sequence[int]) -> str:
    """A histogram that fits a table cell."""
    top = max(histogram, default=0)
    return "".join("▁▂▃▄▅▆▇█"[round(7 * count / top)] for count in histogram) if top else ""
