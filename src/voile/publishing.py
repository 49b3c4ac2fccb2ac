"""From a private table to a release: read, plan, perturb, verify, put in place."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Unpack, overload

from voile.kinds.registry import publishing_kind

if TYPE_CHECKING:
    from voile.kinds.classes.generalizing import Generalized, generalize
    from voile.kinds.classes.options import ClassKeywords
    from voile.kinds.classes.publishing import Grouped, group_table
    from voile.kinds.classes.release import ClassRelease
    from voile.kinds.counts.options import CountKeywords
    from voile.kinds.counts.release import ConjunctRelease
    from voile.kinds.perturbed.publishing import Perturbation, perturb, perturb_table
    from voile.kinds.release import Release
    from voile.kinds.views.options import ViewKeywords
    from voile.kinds.views.publishing import Publication, publish_table
    from voile.kinds.views.release import ViewRelease
    from voile.options.choices import Form, Method
    from voile.progress import Progress
    from voile.signing import KeySource

__all__ = [
    "Generalized",
    "Grouped",
    "Perturbation",
    "Progress",
    "Publication",
    "generalize",
    "group_table",
    "perturb",
    "perturb_table",
    "publish",
    "publish_table",
]

_HOMES = {
    "voile.kinds.classes.generalizing": ("Generalized", "generalize"),
    "voile.kinds.classes.publishing": ("Grouped", "group_table"),
    "voile.kinds.perturbed.publishing": ("Perturbation", "perturb", "perturb_table"),
    "voile.kinds.views.publishing": ("Publication", "publish_table"),
    "voile.progress": ("Progress",),
}


def __getattr__(name: str) -> Any:
    for home, names in _HOMES.items():
        if name in names:  # loaded on first use: to publish takes one kind, and not the others
            return getattr(importlib.import_module(home), name)
    raise AttributeError(f"module 'voile.publishing' has no attribute {name!r}")


@overload
def publish(
    table: Any,
    method: Literal["alphabeta"] = "alphabeta",
    prior_factor: float | None = None,
    posterior: float = ...,
    retention: float | None = None,
    columns: Sequence[str] | None = None,
    rows: Form | None = None,
    simulate_seed: int | None = None,
    *,
    to: str | Path | None = None,
    overwrite: bool = False,
    progress: Progress | None = None,
    sign: KeySource | None = None,
    **options: Unpack[ViewKeywords],
) -> ViewRelease: ...
@overload
def publish(
    table: Any,
    method: Method,
    *,
    to: str | Path | None = None,
    overwrite: bool = False,
    progress: Progress | None = None,
    sign: KeySource | None = None,
    **options: Unpack[ClassKeywords],
) -> ClassRelease: ...
@overload
def publish(
    table: Any,
    method: Literal["conjuncts"],
    *,
    to: str | Path | None = None,
    overwrite: bool = False,
    progress: Progress | None = None,
    sign: KeySource | None = None,
    **options: Unpack[CountKeywords],
) -> ConjunctRelease: ...
def publish(table: Any, method: str = "alphabeta", *given: Any, **options: Any) -> Release:
    """Publish a table: a path, a data frame, or what `voile.read` returned.

    Promises (d, γ)-privacy with d = prior_factor·n/m (default 10) and γ = posterior; the other
    options are those of `ViewOptions`. `to` is the release's folder, which a series needs. Without
    it the release lives in a temporary folder until `release.save(path)`. `sign` is a key that
    vouches for it: a file, or a `voile.signing.SigningKey`.

    Methods mondrian, anatomy, fulldomain, suppress, freeshape and trivial group rows into classes:
    their options are those of `ClassOptions`: qi, sensitive, k, l, t, semantic, recode, …. Method
    conjuncts publishes tables of counts: arity, subsets or direct, delta and eta or rho, noise.
    Installed packages may bring other methods, with options of their own.
    """
    named = dict(zip(POSITIONAL, given, strict=False))
    return publishing_kind(method).publish(table, method=method, **named, **options).release


POSITIONAL = ("prior_factor", "posterior", "retention", "columns", "rows", "simulate_seed")
"""Options of views that may be given without their names."""
