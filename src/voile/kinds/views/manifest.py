"""What a noisy view says about itself."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from voile.kinds.manifest import Finite, Manifest, Part
from voile.mechanisms import AlphaBeta, Series, Shaped
from voile.privacy import Adversary, DGamma, Form
from voile.privacy.series import MOST_VIEWS, SeriesNoise
from voile.schema.index import Product

HISTORY_FILES = "history/"
"""Where a view of a series keeps what its views have shown."""


class Parameters(Part):
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


class SeriesPart(Part):
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


class NoisePrior(Part):
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


class Epsilon(Part):
    """The same in differential privacy's terms, between tables that agree in what is disclosed.

    Null where no ε holds: tables that differ by a record do not agree in a disclosed number of
    rows.
    """

    add_remove: float | None
    swap: float | None


class Guarantee(Part):
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


class ViewManifest(Manifest):
    """A noisy view of a table."""

    method: Literal["alphabeta"] = "alphabeta"
    parameters: Parameters
    guarantee: Guarantee

    def check(self) -> None:
        _ = self.mechanism, self.promise

    @property
    def mechanism(self) -> AlphaBeta | Shaped | Series:
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

    @property
    def promise(self) -> DGamma:
        g = self.guarantee
        return DGamma(prior=g.prior, posterior=g.posterior, adversary=g.adversary)
