"""Checking tables of counts: every figure is there, and the promise follows from the noise."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import Any

import numpy as np

from voile.errors import ReleaseError
from voile.kinds.counts.manifest import conjunct_disclosed, table_file
from voile.kinds.counts.release import ConjunctRelease
from voile.kinds.counts.terms import promised

CLOSE = 1e-3
"""By which chances that are computed again may differ: transforms on another machine."""
FAR = 1e-15
"""The chance that noise is so far out that a figure is not believed."""


def check_tables(release: ConjunctRelease) -> None:
    """Everything that is told, computed again."""
    manifest = release.manifest
    paths = [file.path for file in manifest.files if file.rows is not None]
    if paths != [table_file(i + 1) for i in range(len(manifest.sets))]:
        raise ReleaseError("data/ does not have one table for every set of columns, in order")
    for some in manifest.sets:
        check_cells(release, some)
        check_counts(release, some)
    check_promise(release)
    if manifest.disclosed != conjunct_disclosed(release.schema, manifest.nulls):
        raise ReleaseError("manifest.json does not say all that the release discloses")


def check_cells(release: ConjunctRelease, some: tuple[str, ...]) -> None:
    """Every cell of the domain stands there once, in order, for both sides of every half."""
    cells = math.prod(release.schema[name].size for name in some)
    halves = release.manifest.parameters.halves
    found = release.listed(some)
    wanted = (
        (np.repeat(np.arange(halves) + 1, 2 * cells),
         np.tile(np.repeat([1, 2], cells), halves),
         np.tile(np.arange(cells), 2 * halves))
        if halves else (np.arange(cells),)
    )  # fmt: skip
    if not all(np.array_equal(a, b) for a, b in zip(found, wanted, strict=True)):
        raise ReleaseError(f"the table of {', '.join(some)} does not list its cells in order")


def check_counts(release: ConjunctRelease, some: tuple[str, ...]) -> None:
    """No figure is further out than its noise can take it."""
    law, counts = release.manifest.law, release.counts(some)
    off = law.deviation(FAR)
    rows = release.rows if not release.manifest.parameters.halves else -(-release.rows // 2)
    if (counts < -off).any() or (counts > rows + off).any():
        raise ReleaseError(f"a figure of the table of {', '.join(some)} is no noisy count")


def check_promise(release: ConjunctRelease) -> None:
    p, g = release.manifest.parameters, release.manifest.guarantee
    kept = promised(p.noise, p.unit_variance, g.delta, g.eta, p.tables)
    for name, value in asdict(kept).items():
        if name != "unit_variance" and not agree(getattr(g, name), value):
            raise ReleaseError(
                f"manifest.json: {name} is {getattr(g, name)!r}, and from the noise follows "
                f"{value!r}"
            )
    if g.breach > g.eta * (1 + CLOSE):
        raise ReleaseError(f"the noise does not keep δ = {g.delta:g} with η = {g.eta:g}")


def agree(told: Any, found: Any) -> bool:
    if isinstance(told, float) and isinstance(found, float):
        return math.isclose(told, found, rel_tol=CLOSE)
    return bool(told == found)
