"""The model that a release's estimates are refined with: fitted, kept beside it, made into sums."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

from voile.engines.rows import ReleaseRows
from voile.errors import ReleaseError, UsageError, spelled
from voile.kinds.views.alphabeta import AlphaBeta
from voile.kinds.views.estimator import ViewModel
from voile.kinds.views.refinement import storage as refinement_file
from voile.kinds.views.refinement.fit import Refinement, probe_noise, refine
from voile.kinds.views.refinement.fit import agrees as model_agrees
from voile.kinds.views.series import Series
from voile.kinds.views.shaped import Shaped
from voile.progress import Progress
from voile.query.domain import Weights
from voile.schema import Schema

MOST_LOOKED_AT = 2**22
"""Rows of a view that a kept model is compared with; of larger ones, only the totals are."""


def kept(path: Path, digest: str, schema: Schema, *, replace_broken: bool) -> Refinement | None:
    """The model that was fitted before; None where there is none, or it is to be replaced."""
    try:
        return refinement_file.load(path, of=digest, sizes=schema.sizes)
    except ReleaseError:
        if replace_broken:
            return None
        raise


def keep(found: Refinement, path: Path, digest: str) -> None:
    """Write the model beside its release."""
    refinement_file.save(found, path, of=digest)


def fit(
    mechanism: AlphaBeta | Shaped | Series,
    view: Callable[[], ReleaseRows],
    schema: Schema,
    progress: Progress | None,
    *,
    seen: int,
    rows: int | None,
) -> Refinement:
    """Fit a model to a view with even noise; views with other noise are refused."""
    if not isinstance(mechanism, AlphaBeta):
        kind = "of a series" if isinstance(mechanism, Series) else "with shaped noise"
        raise UsageError(
            f"a release {kind} cannot be refined: the model knows even noise only",
            hint=f"ask without {spelled('refine', True)}",
        )
    return refine(
        view().coded(),
        schema.sizes,
        seen=seen,
        noise_mean=mechanism.noise_mean,
        excess=mechanism.excess,
        retention=mechanism.retention,
        noise_variance=mechanism.noise_variance,
        rows=rows,
        domain=schema.size,
        progress=progress,
    )


def agrees(
    found: Refinement,
    mechanism: AlphaBeta | Shaped | Series,
    view: Callable[[], ReleaseRows],
    schema: Schema,
    *,
    seen: int,
    rows: int | None,
) -> bool:
    """Whether a kept model can be of this release; whoever can write beside it may have put it."""
    if not isinstance(mechanism, AlphaBeta):
        return False
    noise = probe_noise(
        noise_mean=mechanism.noise_mean,
        excess=mechanism.excess,
        retention=mechanism.retention,
        noise_variance=mechanism.noise_variance,
        domain=schema.size,
    )
    codes = view().codes() if seen <= MOST_LOOKED_AT else None
    return model_agrees(found, noise, codes, schema.sizes, seen=seen, rows=rows)


def model(found: Refinement, schema: Schema) -> ViewModel:
    """What answering needs of it."""
    mixture, names = found.mixture, schema.names
    left_out = frozenset(names[j] for j in mixture.left_out)
    tables = {
        name: table
        for name, table in zip(names, mixture.tables, strict=True)
        if name not in left_out
    }
    # Nothing reads what was left out; spread evenly, it counts for one.
    size = math.prod(schema[name].size for name in left_out)
    weights = Weights(mixture.mix / float(size), tables)
    return ViewModel(mixture.rows, weights, found.error, left_out)
