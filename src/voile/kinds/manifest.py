"""manifest.json: all that a release says about itself, as documented, checked data.

The JSON Schema in docs/reference/manifest.schema.json is generated from these classes and those of
local_manifest.py.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field

from voile.engines.parquet import sha256
from voile.mechanisms import AlphaBeta, Series, Shaped
from voile.privacy import Adversary, DGamma, Form
from voile.privacy.series import MOST_VIEWS, SeriesNoise
from voile.schema import Schema
from voile.schema.product import Product

MANIFEST = "manifest.json"
DATA_PACKAGE = "datapackage.json"
HISTORY_FILES = "history/"
"""Where a view of a series keeps what its views have shown."""
PARTIAL = ".partial-"
"""In the name of a folder that is still being written."""
FORMAT = "voile-release"
VERSION = 1


Finite = Annotated[float, Field(allow_inf_nan=False)]


class Part(BaseModel):
    """Strict data: an unknown key is an error, not something to skip."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class File(Part):
    """One file of the release, with what it must hash to."""

    path: str
    bytes: int = Field(ge=0)
    sha256: str = Field(pattern="^[0-9a-f]{64}$")
    rows: int | None = Field(default=None, ge=0, description="Rows, for Parquet files")


def file_entry(folder: Path, path: Path, rows: int | None = None) -> File:
    """A file of the release as it is on disk."""
    return File(
        path=path.relative_to(folder).as_posix(),
        bytes=path.stat().st_size,
        sha256=sha256(path),
        rows=rows,
    )


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


class Disclosed(Part):
    """Something about the table that the release tells exactly, outside the promise."""

    what: str
    why: str


class Manifest(Part):
    """A Voile release: what is written down of every kind of them."""

    format: Literal["voile-release"] = "voile-release"
    version: Literal[1] = 1
    voile: str = Field(description="Version of Voile that wrote the release")
    name: str = Field(pattern="^[^\\x00-\\x1f\\x7f]{1,200}$", description="The table's name")
    method: str
    parameters: Part
    guarantee: Part
    simulated: bool = Field(description="True: made from a chosen seed, promises nothing")
    nulls: Literal["error", "drop", "as-value"] = Field(description="What was done with NULLs")
    disclosed: list[Disclosed]
    public_rows: int | None = Field(description="Rows of the table, where that is disclosed")
    rows: int = Field(ge=0, description="Rows of the view")
    domain_size: str = Field(pattern="^[0-9]+$", description="m, as text: it may be huge")
    attributes: list[dict[str, Any]] = Field(description="The schema: the public domain")
    files: list[File]
    digest: str = Field(default="", description="SHA-256 of this manifest with an empty digest")

    @property
    def schema_(self) -> Schema:
        return Schema.from_dict({"attributes": self.attributes})

    def check(self) -> None:
        """Construct what the parameters stand for, which refuses them where they are wrong."""

    def sealed(self) -> Self:
        return self.model_copy(update={"digest": self._digest()})

    def _digest(self) -> str:
        return hashlib.sha256(self.model_copy(update={"digest": ""}).text().encode()).hexdigest()

    def is_whole(self, raw: bytes) -> bool:
        """Whether these bytes are this manifest, as it was sealed."""
        try:
            return self.text().encode() == raw and self.digest == self._digest()
        except UnicodeEncodeError:  # half a character, which no text that we write has
            return False

    def text(self) -> str:
        """The one spelling of this manifest, so that any changed byte shows."""
        return json.dumps(self.model_dump(mode="json"), ensure_ascii=False, indent=1) + "\n"


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
