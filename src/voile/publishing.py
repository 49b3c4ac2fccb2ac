"""From a private table to a release: read, plan, perturb, verify, put in place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal, Unpack, get_args, overload

from voile.errors import UsageError, did_you_mean, spelled
from voile.kinds.classes.generalizing import Generalized, generalize
from voile.kinds.classes.grouping import Grouped, group_table
from voile.kinds.classes.options import ClassKeywords, ClassOptions
from voile.kinds.classes.release import ClassRelease
from voile.kinds.counts.options import CountKeywords, CountOptions
from voile.kinds.counts.release import ConjunctRelease
from voile.kinds.counts.steps import count_table
from voile.kinds.done import Done
from voile.kinds.perturbed.perturbing import Perturbation, perturb, perturb_table
from voile.kinds.release import Release
from voile.kinds.views.options import POSTERIOR, ViewKeywords, ViewOptions
from voile.kinds.views.release import ViewRelease
from voile.kinds.views.steps import Publication, publish_table
from voile.options import Options
from voile.options.choices import Form, Method
from voile.progress import Progress

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

STEPS: dict[type[Options], Callable[..., Done]] = {
    ViewOptions: publish_table,
    ClassOptions: group_table,
    CountOptions: count_table,
}
"""How a table becomes a release, by the model of the method's options."""


@overload
def publish(
    table: Any,
    method: Literal["alphabeta"] = "alphabeta",
    prior_factor: float | None = None,
    posterior: float = POSTERIOR,
    retention: float | None = None,
    columns: Sequence[str] | None = None,
    rows: Form | None = None,
    simulate_seed: int | None = None,
    *,
    to: str | Path | None = None,
    overwrite: bool = False,
    progress: Progress | None = None,
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
    **options: Unpack[CountKeywords],
) -> ConjunctRelease: ...
def publish(table: Any, method: str = "alphabeta", *given: Any, **options: Any) -> Release:
    """Publish a table: a path, a data frame, or what `voile.read` returned.

    Promises (d, γ)-privacy with d = prior_factor·n/m (default 10) and γ = posterior; the other
    options are those of `ViewOptions`. `to` is the release's folder, which a series needs. Without
    it the release lives in a temporary folder until `release.save(path)`.

    Methods mondrian, anatomy, fulldomain, suppress, freeshape and trivial group rows into classes:
    their options are those of `ClassOptions`: qi, sensitive, k, l, t, semantic, recode, …. Method
    conjuncts publishes tables of counts: arity, subsets or direct, delta and eta or rho, noise.
    """
    named = dict(zip(POSITIONAL, given, strict=False))
    return STEPS[options_of(method)](table, method=method, **named, **options).release


POSITIONAL = ("prior_factor", "posterior", "retention", "columns", "rows", "simulate_seed")
"""Options of views that may be given without their names."""


def options_of(method: str) -> type[Options]:
    """The model of a method's options."""
    known = {word: model for model in STEPS for word in methods_of(model)}
    if method not in known:
        raise UsageError(
            f"{spelled('method', method)} is not known", hint=did_you_mean(method, list(known))
        )
    return known[method]


def methods_of(model: type[Options]) -> tuple[str, ...]:
    return get_args(model.keywords()["method"].annotation)
