"""From a private table to a release: read, plan, perturb, verify, put in place."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Unpack, overload

from voile.extras import PUBLISHING, check_installed
from voile.kinds.registry import kinds, publishing_kind
from voile.register import chosen_register

if TYPE_CHECKING:
    from collections.abc import Mapping

    from voile.kinds.classes.column_hierarchy import ColumnHierarchy
    from voile.kinds.classes.generalizing import Generalized
    from voile.kinds.classes.options import ClassKeywords, GeneralizeKeywords
    from voile.kinds.classes.publishing import Grouped
    from voile.kinds.classes.recoding_file import Recoding
    from voile.kinds.classes.release import ClassRelease
    from voile.kinds.counts.options import CountKeywords
    from voile.kinds.counts.release import ConjunctRelease
    from voile.kinds.marginals.options import MarginalKeywords
    from voile.kinds.marginals.release import MarginalRelease
    from voile.kinds.options import AutomaticKeywords
    from voile.kinds.perturbed.options import PerturbKeywords
    from voile.kinds.perturbed.publishing import Perturbation
    from voile.kinds.perturbed.release import LocalRelease
    from voile.kinds.publishing import PublishResult
    from voile.kinds.release import Release
    from voile.kinds.views.options import ViewKeywords
    from voile.kinds.views.publishing import Publication
    from voile.kinds.views.release import ViewRelease
    from voile.options.choices import Form, Method
    from voile.progress import Progress
    from voile.register import RegisterChoice
    from voile.schema import Schema
    from voile.signing import KeySource

__all__ = [
    "ColumnHierarchy",
    "Generalized",
    "Grouped",
    "Perturbation",
    "Progress",
    "Publication",
    "PublishResult",
    "column_hierarchy",
    "generalize",
    "group_table",
    "perturb",
    "perturb_table",
    "publish",
    "publish_table",
    "published",
]

_HOMES = {
    "voile.kinds.classes.column_hierarchy": ("ColumnHierarchy",),
    "voile.kinds.classes.generalizing": ("Generalized",),
    "voile.kinds.classes.publishing": ("Grouped",),
    "voile.kinds.perturbed.publishing": ("Perturbation",),
    "voile.kinds.publishing": ("PublishResult",),
    "voile.kinds.views.publishing": ("Publication",),
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
    method: Literal["auto"] = "auto",
    *,
    to: str | Path | None = None,
    overwrite: bool = False,
    progress: Progress | None = None,
    sign: KeySource | None = None,
    register: RegisterChoice = None,
    **options: Unpack[AutomaticKeywords],
) -> Release: ...
@overload
def publish(
    table: Any,
    method: Literal["alphabeta"] | None = None,
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
    register: RegisterChoice = None,
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
    register: RegisterChoice = None,
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
    register: RegisterChoice = None,
    **options: Unpack[CountKeywords],
) -> ConjunctRelease: ...
@overload
def publish(
    table: Any,
    method: Literal["marginals", "full-table"],
    *,
    to: str | Path | None = None,
    overwrite: bool = False,
    progress: Progress | None = None,
    sign: KeySource | None = None,
    register: RegisterChoice = None,
    **options: Unpack[MarginalKeywords],
) -> MarginalRelease: ...
def publish(
    table: Any,
    method: str | None = None,
    *given: Any,
    register: RegisterChoice = None,
    **options: Any,
) -> Release:
    """Publish a table: a path, a data frame, or what `voile.read` returned.

    Without a method all of them are compared under one promise, and the one that errs least is
    taken: ε = 1 for adding or removing a person unless `epsilon` says otherwise, with δ of 1e-9.
    Without a codebook (`schema`) the domain is learnt privately from a share of the budget. The
    options are those of `AutomaticOptions`. Where nothing of use can be had, nothing is published,
    and the error says what would help.

    A promise of the papers (`prior`, `posterior`, `prior_factor`) means a noisy view, method
    alphabeta: (d, γ)-privacy with d = prior_factor·n/m (10 if not given) and γ = posterior; the
    other options are those of `ViewOptions`. `to` is the release's folder, which a series needs.
    Without it the release lives in a temporary folder until `release.save(path)`. `sign` is a key
    that vouches for it: a file, or a `voile.signing.SigningKey`.

    Methods mondrian, anatomy, fulldomain, suppress, freeshape and trivial group rows into classes:
    their options are those of `ClassOptions`: qi, sensitive, k, l, t, semantic, recode, …. Method
    conjuncts publishes tables of counts: arity, subsets or direct, delta and eta or rho, noise.
    Method marginals publishes noisy tables of every few columns with a model: epsilon and delta,
    or rho, or pure; order or tables or workload; unit. Method full-table is one table of all
    columns. Installed packages may bring other methods, with options of their own.

    What is put in a place by name is written into the steward's register before it is there:
    `register` is its path or address, else the usual one; False writes nothing down.
    """
    named = dict(zip(POSITIONAL, given, strict=False))
    return published(table, method, register=register, **named, **options).release


def published(
    table: Any, method: str | None = None, *, register: RegisterChoice = None, **options: Any
) -> PublishResult:
    """The same as `publish`, with what the steward should know: it may hold true counts."""
    check_installed("publishing", PUBLISHING, "publish")
    chosen = chosen_register(register)
    method = method or implied_method(set(options) - PLACING)
    if method == AUTO:
        from voile.kinds.automatic import publish_best  # noqa: PLC0415  (one way among several)

        return publish_best(table, register=chosen, **options)
    return publishing_kind(method).publish(table, method=method, register=chosen, **options)


AUTO = "auto"
"""The method that compares all others."""
PLACING = {"to", "overwrite", "progress", "sign"}
"""Keywords that every method has."""


def implied_method(options: Iterable[str]) -> str:
    """The method that options mean which name none."""
    from voile.kinds.marginals.options import MarginalOptions  # noqa: PLC0415  (options alone)
    from voile.kinds.options import AutomaticOptions  # noqa: PLC0415
    from voile.kinds.views.options import ViewOptions  # noqa: PLC0415

    asked = set(options)
    known = ((AUTO, AutomaticOptions), ("alphabeta", ViewOptions), ("marginals", MarginalOptions))
    for name, model in known:
        if asked <= set(model.keywords()):
            return name
    # What no method knows is likely a slip in the words of the papers.
    every = {name for kind in kinds() for name in kind.options.keywords()}
    return AUTO if asked <= every else "alphabeta"


POSITIONAL = ("prior_factor", "posterior", "retention", "columns", "rows", "simulate_seed")
"""Options of views that may be given without their names."""


def perturb(
    table: Any,
    retention: float | Mapping[str, float] | Mapping[str | None, float],
    replace: Any = "uniform",
    columns: Sequence[str] | None = None,
    simulate_seed: int | None = None,
    *,
    to: str | Path | None = None,
    overwrite: bool = False,
    progress: Progress | None = None,
    sign: KeySource | None = None,
    register: RegisterChoice = None,
    **options: Unpack[PerturbKeywords],
) -> LocalRelease:
    """Perturb every row of a table on its own: a path, a data frame, or what `voile.read` gave.

    `retention` is the chance that a value is kept, for all columns or by name (others stay as they
    are). `replace` says where other values come from: uniform, identity or swap, for all or by
    name, or a distribution. The other options are those of `PerturbOptions`. `to` is the release's
    folder; without it the release lives in a temporary one until `release.save(path)`. `sign` and
    `register` are as for `publish`.
    """
    from voile.kinds.perturbed import publishing  # noqa: PLC0415  (one kind, and not the others)

    return publishing.perturb(
        table,
        retention,
        replace,
        columns,
        simulate_seed,
        to=to,
        overwrite=overwrite,
        progress=progress,
        sign=sign,
        register=chosen_register(register),
        **options,
    )


def generalize(
    table: Any,
    qi: Sequence[str] = (),
    sensitive: Sequence[str] = (),
    *,
    apply: Recoding | str | Path | None = None,
    reusable: bool = False,
    keep_order: bool = False,
    progress: Progress | None = None,
    register: RegisterChoice = None,
    **options: Unpack[GeneralizeKeywords],
) -> Generalized:
    """Make the quasi-identifiers of a table coarser until every class meets the requirements.

    Its options are those of `ClassOptions`: k, l, t, …, method, hierarchies, identifiers.
    `apply` is a saved recoding (or its file) that is applied instead; what it promised is checked
    anew on these rows. `reusable` shows the regions between cuts, which new rows can be given to,
    not the smallest ranges. Rows are sorted by class unless `keep_order`: their order
    may disclose something. `register` is as for `publish`; the table is in it when it is written.
    """
    from voile.kinds.classes import generalizing  # noqa: PLC0415  (one kind, and not the others)

    return generalizing.generalize(
        table,
        qi,
        sensitive,
        apply=apply,
        reusable=reusable,
        keep_order=keep_order,
        progress=progress,
        register=chosen_register(register),
        **options,
    )


def publish_table(table: Any, *, register: RegisterChoice = None, **options: Any) -> Publication:
    """Publish a view, and say what the steward should know. `to` names the release's folder."""
    from voile.kinds.views import publishing  # noqa: PLC0415  (one kind, and not the others)

    return publishing.publish_table(table, register=chosen_register(register), **options)


def perturb_table(table: Any, *, register: RegisterChoice = None, **options: Any) -> Perturbation:
    """Perturb a table, and say what its holder should know. `to` names the release's folder."""
    from voile.kinds.perturbed import publishing  # noqa: PLC0415  (one kind, and not the others)

    return publishing.perturb_table(table, register=chosen_register(register), **options)


def group_table(table: Any, *, register: RegisterChoice = None, **options: Any) -> Grouped:
    """Group rows and publish the classes, with notes for the steward. `to` names the folder."""
    from voile.kinds.classes import publishing  # noqa: PLC0415  (one kind, and not the others)

    return publishing.group_table(table, register=chosen_register(register), **options)


def column_hierarchy(
    table: Any,
    column: str,
    *,
    schema: Schema | str | Path | None = None,
    to: str | Path | None = None,
    overwrite: bool = False,
    **options: Any,
) -> ColumnHierarchy:
    """The coarser values that a column's values may be replaced by, and the rows under each.

    At most one option says how it is built: `multiples`, `equal_width`, `equal_depth`, `dates`,
    `mask`, `prefixes`, `mapping` (groups in a file), `suggest_by` (a sensitive column) or `file`,
    in the form of ARX; `fanout` is how many ranges are joined into one. Without one it is the
    hierarchy that ships with the table, or the usual one. `schema` is a codebook with the column.
    `to` writes the hierarchy to a file that ARX and `voile publish` read.
    """
    from voile.engines import connect  # noqa: PLC0415  (to publish takes none of these)
    from voile.kinds.classes import column_hierarchy as built  # noqa: PLC0415
    from voile.kinds.classes.options import HierarchyOptions  # noqa: PLC0415
    from voile.schema import Schema  # noqa: PLC0415

    asked = HierarchyOptions(**options)
    if to is not None:
        built.check_target(Path(to), overwrite=overwrite)
    codebook = Schema.open(schema) if isinstance(schema, str | Path) else schema
    found = built.column_hierarchy(connect(table), column, asked, codebook)
    if to is not None:
        found.save(to, overwrite=overwrite)
    return found
