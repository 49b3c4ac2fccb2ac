"""Commands on promises: convert one into another, list what follows from a release."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from voile.cli.common import JsonOpt, ReleaseArg, commands
from voile.terminal import say, show
from voile.terminal.guarantees import consequences_view, conversion_view, statements_view

if TYPE_CHECKING:
    from voile.kinds.manifest import ViewManifest
    from voile.kinds.release import Release
    from voile.privacy import Told
    from voile.privacy.guarantees.statements import Statement


@commands.command()
def convert(
    guarantee: Annotated[
        str,
        typer.Argument(metavar="GUARANTEE", help="E.g. 'd-gamma(d=4.65e-4, gamma=0.2)'."),
    ],
    to: Annotated[
        str | None,
        typer.Option(help="A kind, with what should be fixed: dp, 'dp(unit=swap)'. Else all."),
    ] = None,
    as_json: JsonOpt = False,
) -> None:
    """Say what a promise comes to in other terms, by which theorem, and what does not follow."""
    from voile.privacy import consequences, parse_guarantee, parse_wish
    from voile.privacy import convert as converted

    source = parse_guarantee(guarantee)
    if to is None:
        found = consequences(source)
        show(found.to_dict() if as_json else None, lambda: consequences_view(found))
        return
    conversion = converted(source, parse_wish(to))
    show(conversion.to_dict() if as_json else None, lambda: conversion_view(conversion))


@commands.command()
def guarantees(
    release: ReleaseArg,
    denied: Annotated[
        bool, typer.Option("--not-promised", help="List only what is not promised.")
    ] = False,
    as_json: JsonOpt = False,
) -> None:
    """List all that a release promises, against whom, and what it does not."""
    from voile.kinds.release import Release

    opened = Release.open(release)
    simulated = opened.manifest.simulated
    kept, refused = promised(opened)
    kept = [] if denied else kept
    if simulated and as_json:
        say("note: made from a chosen seed: this release promises nothing")
    show(
        [one.to_dict() for one in (refused if denied else kept)] if as_json else None,
        lambda: statements_view(kept, refused, simulated=simulated),
    )


def promised(opened: Release) -> tuple[list[Statement], list[Statement]]:
    """What a release keeps, and what it must not be taken to keep."""
    from voile.kinds.classes.release import ClassRelease
    from voile.kinds.counts.release import ConjunctRelease
    from voile.kinds.counts.statements import conjunct_statements, conjuncts_not_promised
    from voile.kinds.perturbed.release import LocalRelease
    from voile.kinds.views.release import ViewRelease
    from voile.privacy import not_promised, statements
    from voile.privacy.local import local_statements, locally_not_promised
    from voile.privacy.requirements.requirement import class_statements, classes_not_promised

    simulated = opened.manifest.simulated
    if isinstance(opened, LocalRelease):
        ratio, columns = opened.mechanism.ratio(), opened.column_ratios()
        kept = local_statements(ratio, simulated=simulated)
        return kept, locally_not_promised(ratio, columns)
    if isinstance(opened, ClassRelease):
        bucketized = opened.manifest.parameters.recode == "bucketize"
        kept = class_statements(
            opened.requirements, opened.sensitive, bucketized=bucketized, simulated=simulated
        )
        return kept, classes_not_promised(bucketized=bucketized)
    if isinstance(opened, ConjunctRelease):
        return conjunct_statements(opened.manifest), conjuncts_not_promised()
    assert isinstance(opened, ViewRelease)  # noqa: S101
    promise, bounds = opened.promise, opened.mechanism.likelihood_ratio()
    exact = told(opened.manifest)
    kept = statements(promise, bounds, told=exact, simulated=simulated)
    return kept, not_promised(promise, bounds, told=exact)


def told(manifest: ViewManifest) -> Told:
    """What the release tells exactly, outside of what it promises."""
    from voile.kinds.views.terms import MARGINALS, ROWS
    from voile.privacy import Told

    shape = manifest.parameters.noise_prior
    return Told(
        rows=manifest.public_rows is not None,
        marginals=shape is not None and shape.learnt,
        edits=manifest.parameters.series is not None,
        kept=tuple(d.what for d in manifest.disclosed if not d.what.startswith((ROWS, MARGINALS))),
    )
