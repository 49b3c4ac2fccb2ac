"""Every kind of release, by the way that it publishes a table with a seed and is asked."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import voile
from voile.engines.encode import values_at
from voile.schema import Schema

Publish = Callable[[pd.DataFrame, int, Path], Any]


@dataclass(frozen=True)
class PublishedKind:
    """How a kind publishes a table with a seed, and how its releases are asked."""

    publish: Publish
    ask: Mapping[str, Any] = field(default_factory=dict)
    sharp: bool = True
    """Whether averages of many rows are held to the width of ± 1.96 standard errors."""
    table: Callable[[pd.DataFrame, int], pd.DataFrame] = lambda frame, _: frame
    """The rows that a release is about."""
    raw: bool = False
    """Whether numbers are given as they are, and are in bins of the release."""


def view(**options: Any) -> Publish:
    """A noisy view."""

    def publish(frame: pd.DataFrame, seed: int, folder: Path) -> Any:
        made = voile.publish(frame, name="t", prior=0.01, simulate_seed=seed, **options)
        return made.save(folder / "view.voile", overwrite=True)

    return publish


def shaped(frame: pd.DataFrame, seed: int, folder: Path) -> Any:
    """A view whose noise is shaped as the columns are."""
    return view(retention=0.5, noise_prior="product")(frame, seed, folder)


def series(frame: pd.DataFrame, seed: int, folder: Path) -> Any:
    """The third view of a table that grows by a hundredth of its rows each time."""
    some = len(frame) // 100
    schema = whole_schema(frame)
    for number in range(3):
        rows = frame.iloc[: len(frame) - (2 - number) * some]
        found = voile.publish(
            rows, name="t", prior=0.01, schema=schema, series="t", views=3,
            ledger=folder / f"{seed}.series", to=folder / f"{seed}-{number}.voile",
            register=False, simulate_seed=seed + number,
        )  # fmt: skip
    return found


def whole_schema(frame: pd.DataFrame) -> dict[str, Any]:
    """Every value that a column has."""
    found = []
    for name in frame:
        values = sorted(frame[name].unique().tolist())
        kind = "categorical" if isinstance(values[0], str) else "integer"
        domain = {"values": values} if kind == "categorical" else {"range": [values[0], values[-1]]}
        found.append({"name": name, "kind": kind, **domain})
    return {"attributes": found}


def marginals(**options: Any) -> Publish:
    """Noisy tables of every few columns."""

    def publish(frame: pd.DataFrame, seed: int, folder: Path) -> Any:  # noqa: ARG001
        given: dict[str, Any] = {"method": "marginals", "schema": "active", "epsilon": 1} | options
        return voile.publish(frame, name="t", simulate_seed=seed, register=False, **given)

    return publish


def automatic(frame: pd.DataFrame, seed: int, folder: Path) -> Any:  # noqa: ARG001
    """What `voile publish` makes of a table, with a domain that it learns."""
    return voile.publish(frame, name="t", simulate_seed=seed, register=False)


def perturbed(frame: pd.DataFrame, seed: int, folder: Path) -> Any:  # noqa: ARG001
    """Rows perturbed one by one."""
    return voile.perturb(frame, 0.5, name="t", simulate_seed=seed)


def counts(**options: Any) -> Publish:
    """Tables of counts."""

    def publish(frame: pd.DataFrame, seed: int, folder: Path) -> Any:  # noqa: ARG001
        return voile.publish(frame, method="conjuncts", name="t", simulate_seed=seed, **options)

    return publish


def classes(**options: Any) -> Publish:
    """Classes of rows: the column with the most even values is sensitive, others may be known."""

    def publish(frame: pd.DataFrame, seed: int, folder: Path) -> Any:
        sensitive = min(frame, key=lambda name: frame[name].value_counts(normalize=True).max())
        qi = [name for name in frame if name != sensitive]
        return voile.publish(
            frame, to=folder / f"{seed}-{'-'.join(map(str, options.values()))}", name="t", qi=qi,
            sensitive=[sensitive], register=False, simulate_seed=seed, **options,
        )  # fmt: skip

    return publish


def some_rows(frame: pd.DataFrame, seed: int) -> pd.DataFrame:
    """Grouping has no noise, so each release is of another part of the rows."""
    return frame.sample(frac=0.7, random_state=seed).reset_index(drop=True)


def distinct_rows(frame: pd.DataFrame, seed: int) -> pd.DataFrame:  # noqa: ARG001
    """Each row once."""
    return frame.drop_duplicates(ignore_index=True)


def grouped(**options: Any) -> PublishedKind:
    """Classes: errors are of the questions, not of noise; widths are not compared with noise's."""
    return PublishedKind(classes(**options), sharp=False, table=some_rows)


KINDS = {
    "view": PublishedKind(view(retention=0.5)),
    # Refined sums and averages are better than stated: they state the plain estimate's error.
    "view, refined": PublishedKind(view(retention=0.5), {"refine": True}, sharp=False),
    "view, a set": PublishedKind(view(retention=0.5, rows="set"), table=distinct_rows),
    "view, shaped": PublishedKind(shaped),
    "view, series": PublishedKind(series),
    "marginals": PublishedKind(marginals(order=3), sharp=False),
    "marginals, tables alone": PublishedKind(marginals(order=3), {"refine": False}),
    "full table": PublishedKind(marginals(method="full-table")),
    "default": PublishedKind(automatic, sharp=False),
    "default, bins": PublishedKind(automatic, sharp=False, raw=True),
    "counts": PublishedKind(counts(direct=True, arity=3, rho=0.1)),
    "counts, halves": PublishedKind(counts(arity=2, subsets=60, rho=2.0), sharp=False),
    "perturbed": PublishedKind(perturbed),
    "perturbed, em": PublishedKind(perturbed, {"method": "em"}),
    "classes, mondrian": grouped(method="mondrian", k=10),
    "classes, mondrian, entropy": PublishedKind(
        classes(method="mondrian", k=10), {"method": "entropy"}, sharp=False, table=some_rows
    ),
    "classes, bucketized": grouped(method="mondrian", recode="bucketize", l=2),
    "classes, anatomy": grouped(method="anatomy", l=2),
    "classes, anatomy, entropy": PublishedKind(
        classes(method="anatomy", l=2), {"method": "entropy"}, sharp=False, table=some_rows
    ),
    "classes, full domain": grouped(method="fulldomain", k=10),
}
"""By name."""


def in_steps(frame: pd.DataFrame, values: Sequence[str], steps: int = 8) -> pd.DataFrame:
    """The table with numbers in a few steps, each about as frequent, which are whole numbers."""
    found = frame.copy()
    for name in values:
        if found[name].nunique() > steps:
            ranks = found[name].rank(method="min", pct=True)
            found[name] = np.minimum((ranks * steps).astype(int), steps - 1)
        else:
            found[name] = found[name].rank(method="dense").astype(int)
    return found


def as_published(frame: pd.DataFrame, schema: Schema) -> pd.DataFrame:
    """What a release's schema makes of a table: rare values in one, numbers within its range."""
    codes, _ = voile.read(frame).columns_of_codes(schema, drop_nulls=False)
    found = {}
    for attribute, code in zip(schema, codes, strict=True):
        edges = getattr(attribute.domain, "edges", None)
        if edges is None:
            found[attribute.name] = values_at(attribute, code).to_pandas()
        else:
            found[attribute.name] = frame[attribute.name].clip(float(edges[0]), float(edges[-1]))
    return pd.DataFrame(found)
