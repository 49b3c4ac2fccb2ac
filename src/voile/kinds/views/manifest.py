"""What a noisy view says about itself."""

from __future__ import annotations

import math
from typing import Literal

from pydantic import Field

from voile.kinds.manifest import (
    MEANINGFUL_EPSILON,
    MEANINGFUL_PRIOR,
    Disclosed,
    Finite,
    ManifestPart,
    read_off_disclosed,
)
from voile.kinds.people import PeopleManifest, ProtectedPeople
from voile.kinds.views.alphabeta import AlphaBeta, Publishing
from voile.kinds.views.series import Series
from voile.kinds.views.shaped import Shaped
from voile.options.choices import Form
from voile.privacy import Adversary, DGamma, LikelihoodRatio
from voile.privacy.guarantee import log
from voile.privacy.series import MOST_VIEWS, SeriesNoise
from voile.schema import Schema
from voile.schema.index import Product

HISTORY_FILES = "history/"
"""Where a view of a series keeps what its views have shown."""


class Parameters(ManifestPart):
    """The mechanism's public parameters."""

    form: Form = Field(description="'multiset': records may repeat; 'set': they may not")
    distinct: bool = Field(description="set: repeated rows were dropped; counts are of tuples")
    retention: float = Field(gt=0, le=1, description="Chance that a record is kept (α+β)")
    noise: float = Field(
        ge=0, lt=1, description="multiset: q, where a tuple gets j noise copies with chance "
        "(1−q)·q^j; set: β, the chance that a tuple outside the table is inserted; the least "
        "where noise has a shape",
    )  # fmt: skip
    noise_prior: NoisePrior | None = Field(default=None, exclude_if=lambda value: value is None)
    series: SeriesPart | None = Field(
        default=None,
        exclude_if=lambda value: value is None,
        description="Where the release is one of many views of a table that changes",
    )


class SeriesPart(ManifestPart):
    """Which view of a series it is, and the noise of all of them."""

    name: str = Field(pattern="^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$")
    view: int = Field(ge=1, description="The number of this view")
    views: int = Field(ge=2, le=MOST_VIEWS, description="How many views the series may have")
    unseen: list[float] = Field(
        description="For each view, the noise of tuples that no view before it has shown"
    )
    seen: float = Field(gt=0, lt=1, description="The noise of tuples that one has shown")
    seen_tuples: int = Field(ge=0, description="How many tuples the views before this one showed")
    changes_at_most: int | None = Field(
        ge=0, description="At most so many rows are added or removed between two views, if declared"
    )
    always_fresh: bool = Field(
        description="False: that there is a new view tells that the table has changed"
    )
    rows_told: bool = Field(description="True: the prior tells the rows of the first table")
    posterior: float = Field(
        description="The largest belief that the views so far allow, from the prior"
    )


class NoisePrior(ManifestPart):
    """What noise is shaped by: t has floor + min(strength·Π p_j(t_j), cap) noise rows."""

    floor: Finite = Field(gt=0, le=1e12, description="Mean noise of every tuple")
    strength: Finite = Field(
        ge=0, le=1e12, description="Noise rows spread by the prior, on average"
    )
    cap: Finite = Field(gt=0, le=1e12, description="No tuple has more than this above the floor")
    learnt: bool = Field(description="True: the prior is the table's own marginals")
    parts: dict[str, list[int]] = Field(
        description="For each attribute, 2³² times the chances of its values; others are even"
    )


class Epsilon(ManifestPart):
    """The same in differential privacy's terms, between tables that agree in what is disclosed.

    Null where no ε holds: tables that differ by a record do not agree in a disclosed number of
    rows.
    """

    add_remove: float | None
    swap: float | None


class ViewGuarantee(ManifestPart):
    """What is promised, against whom, and about what."""

    kind: Literal["d-gamma"] = "d-gamma"
    prior: float = Field(description="d: beliefs up to this are protected")
    posterior: float = Field(description="γ: no such belief exceeds this after the release")
    adversary: Adversary
    unit: str = Field(description="What the promise is about: one record, or one tuple")
    likely: str | None = Field(
        default=None,
        exclude_if=lambda value: value is None,
        description="What is promised beyond that where noise has a shape",
    )
    epsilon: Epsilon


class ViewManifest(PeopleManifest):
    """A noisy view of a table."""

    method: Literal["alphabeta"] = "alphabeta"
    parameters: Parameters
    guarantee: ViewGuarantee

    def check(self) -> None:
        """Refuse parameters that no mechanism or promise has."""
        _ = self.mechanism, self.promise
        self.check_people()
        p, several = self.parameters, self.rows_per_person > 1
        if self.people is not None and (p.series is not None or p.form == "set"):
            raise ValueError("people have several rows in a view of a multiset, and in no series")
        if several and p.noise_prior is not None:
            raise ValueError("noise with a shape is for people with one row")

    @property
    def likelihood_ratio(self) -> LikelihoodRatio:
        """What one record, or all records of a person, can do to the chance of the view."""
        return self.mechanism.likelihood_ratio().of_group(self.rows_per_person)

    @property
    def mechanism(self) -> AlphaBeta | Shaped | Series:
        """The mechanism with these parameters."""
        p = self.parameters
        if p.series is not None:
            s, changing = p.series, p.series.changes_at_most != 0
            if len(s.unseen) != s.views:
                raise ValueError(f"{len(s.unseen)} noises for {s.views} views")
            if s.view > 1 and not changing and not s.always_fresh:
                raise ValueError("a table that never changes has no second view")
            noise = SeriesNoise(p.form, p.retention, tuple(s.unseen), s.seen, changing)
            return Series(noise, s.view, s.seen_tuples)
        if p.noise_prior is None:
            return AlphaBeta(retention=p.retention, noise=p.noise, form=p.form)
        schema, shape = self.schema_, p.noise_prior
        for name in shape.parts:
            schema[name]  # refused where there is no such attribute
        listed = (shape.parts.get(name) for name in schema.names)
        prior = Product(tuple(None if parts is None else tuple(parts) for parts in listed))
        sizes = tuple(schema.sizes)
        return Shaped(p.retention, shape.floor, shape.strength, shape.cap, prior, sizes)

    def weakness(self) -> str:
        """Beliefs that are protected are smaller than anyone's, and no ε says more."""
        ratio, promise = self.likelihood_ratio, self.promise
        up = math.inf if ratio.high is None else log(ratio.high)
        stated = self.guarantee.epsilon.add_remove
        if stated is not None and stated <= MEANINGFUL_EPSILON:
            return ""
        if promise.prior < MEANINGFUL_PRIOR:
            of = "" if self.guarantee.likely is None else "about records that are unlikely "
            return (
                f"it protects beliefs {of}up to d = {promise.prior:.2g} only, and who knows "
                "anything about a person believes more beforehand"
            )
        if up > MEANINGFUL_EPSILON:
            return f"odds may rise by e^{up:.3g}: a belief of 1 % may become near certainty"
        return ""

    @property
    def promise(self) -> DGamma:
        """The promise that the guarantee states."""
        g = self.guarantee
        return DGamma(prior=g.prior, posterior=g.posterior, adversary=g.adversary)


# ----------------------------------------------------------------------
# what a release must say about itself: written once, and recomputed to verify it


ROWS, MARGINALS = "the number of", "how often each value of"
"""How such disclosures begin."""


def promised(requested: DGamma, mechanism: Publishing) -> DGamma:
    """What is promised for every tuple; with shaped noise that is less than was requested."""
    if not isinstance(mechanism, Shaped):
        return requested
    from voile.privacy.planner import promise_everywhere  # noqa: PLC0415  (not for answering)

    return promise_everywhere(requested, mechanism.likelihood_ratio())


def parameters_of(
    mechanism: Publishing,
    schema: Schema,
    *,
    distinct: bool,
    learnt: bool,
    series: SeriesPart | None = None,
) -> Parameters:
    """A mechanism's parameters as they are written down."""
    if isinstance(mechanism, Series):
        noise, shape = mechanism.on_unseen.noise, None
    elif isinstance(mechanism, AlphaBeta):
        noise, shape = mechanism.noise, None
    else:
        assert isinstance(mechanism, Shaped)  # noqa: S101
        noise = mechanism.floor / (1 + mechanism.floor)
        listed = zip(schema.names, mechanism.prior.parts, strict=True)
        shape = NoisePrior(
            floor=mechanism.floor,
            strength=mechanism.strength,
            cap=mechanism.cap,
            learnt=learnt,
            parts={name: list(parts) for name, parts in listed if parts is not None},
        )
    return Parameters(
        form=mechanism.form,
        distinct=distinct,
        retention=mechanism.retention,
        noise=noise,
        noise_prior=shape,
        series=series,
    )


def guarantee(
    promise: DGamma,
    mechanism: Publishing,
    parameters: Parameters,
    *,
    rows_are_public: bool,
    people: ProtectedPeople | None = None,
) -> ViewGuarantee:
    """The promise as it is written down, with what follows from the likelihood ratio.

    Where the number of rows is told exactly, tables that differ by a record are told apart by
    it, and no ε holds between them; nor where the noise follows the table itself.
    """
    most = 1 if people is None else people.rows_per_person
    ratio = mechanism.likelihood_ratio().of_group(most)
    shape = parameters.noise_prior
    learnt = shape is not None and shape.learnt
    rows_are_public = rows_are_public or (
        parameters.series is not None and parameters.series.rows_told
    )
    return ViewGuarantee(
        prior=promise.prior,
        posterior=promise.posterior,
        adversary=promise.adversary,
        unit=unit(parameters, people),
        epsilon=Epsilon(
            add_remove=None if rows_are_public or learnt else finite(ratio.epsilon("add-remove")),
            swap=None if learnt else finite(ratio.epsilon("swap")),
        ),
        likely=None if shape is None else likely(promise, mechanism.retention, shape),
    )


def series_part(written: SeriesPart, mechanism: Series, promise: DGamma) -> SeriesPart:
    """What a view says about its series, with what follows from the rest computed."""
    so_far = mechanism.noise.likelihood_ratio(mechanism.view_number)
    return written.model_copy(update={"posterior": reached(promise, so_far)})


def reached(promise: DGamma, ratio: LikelihoodRatio) -> float:
    """The largest belief of an adversary that the promise is about, within these bounds."""
    exclusive = promise.adversary == "exclusive"
    return float((ratio.linked_posterior if exclusive else ratio.posterior)(promise.prior))


def unit(parameters: Parameters, people: ProtectedPeople | None = None) -> str:
    """What the promise is about."""
    if people is not None:
        return f"{people.one}, there or not, whatever the other rows are"
    multiset, series = parameters.form == "multiset", parameters.series
    if series is not None:
        what = "one record, i.e. one row with its values," if multiset else "one tuple"
        edited = "" if series.changes_at_most == 0 else (
            "; a row that is edited is another record from then on, with a promise of its own"
        )  # fmt: skip
        return (
            f"whether {what} has ever been in the series, at any of its {series.views} views, "
            f"against never; whatever the other rows are and do{edited}"
        )
    if multiset:
        return "one record, i.e. one person with one row, whatever the other rows are"
    return "one tuple of the table, which is a set"


def likely(promise: DGamma, retention: float, shape: NoisePrior) -> str:
    """What shaped noise promises about tuples that its prior takes for likely."""
    from voile.privacy.planner import promise_where_likely  # noqa: PLC0415  (not for answering)

    factor, most = promise_where_likely(promise, retention, shape.strength, shape.cap)
    text = (
        f"a belief in a tuple t of at most min({factor:.6g}·s(t), {most:.4g}), s(t) its chance "
        "under the noise prior, does not exceed the posterior either"
    )
    if not shape.learnt:
        return text
    return text + (
        "; the noise prior is the table's own marginals, which are told exactly: all of this is "
        "about the view, its noise taken as given, and nothing bounds what the marginals tell"
    )


def finite(x: float) -> float | None:
    """A number as JSON has it: None where it is infinite."""
    return x if math.isfinite(x) else None


def disclosed(schema: Schema, parameters: Parameters, *, rows_are_public: bool) -> list[Disclosed]:
    """What the release tells outside its promise, with why.

    That the table lies in its declared domain is what declaring it means, and is not listed.
    """
    found = told_by_series(parameters, rows_are_public=rows_are_public)
    if rows_are_public:
        rows = "different rows" if parameters.distinct else "rows"
        what = f"{ROWS} {rows} of the table"
        why = (
            "the prior, or the size of the view, was asked for relative to it; with --prior and "
            "without --max-view-ratio it is not told"
        )
        found.append(Disclosed(what=what, why=why))
    if parameters.form == "set" and not parameters.distinct:
        why = "the set form was asked for, which refuses tables with repetitions"
        found.append(Disclosed(what="that no row of the table repeats another", why=why))
    if parameters.noise_prior and parameters.noise_prior.learnt:
        why = "the noise follows the table's own marginals; a public noise prior avoids that"
        found += [
            Disclosed(what=f"{MARGINALS} {name} occurs", why=why)
            for name in parameters.noise_prior.parts
        ]
    return found + read_off_disclosed(schema)


def told_by_series(parameters: Parameters, *, rows_are_public: bool) -> list[Disclosed]:
    """What a view tells by being one of several."""
    series = parameters.series
    if series is None or series.view == 1:
        return []
    found = []
    if series.rows_told and not rows_are_public:
        why = "the prior was asked for relative to it; with --prior it is not told"
        found.append(Disclosed(what="the number of rows of the table at the first view", why=why))
    if not series.always_fresh:
        why = "unchanged tables give the identical view again; --always-fresh avoids that"
        what = "that the table has changed since the view before"
        found.append(Disclosed(what=what, why=why))
    if series.changes_at_most:
        what = f"that at most {series.changes_at_most:,} rows came or went between two views"
        found.append(Disclosed(what=what, why="it was declared, and is checked"))
    return found
