"""What a steward is shown of tables of counts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from voile.terminal import table_of

if TYPE_CHECKING:
    from voile.kinds.counts.steps import Counted


def counted_view(done: Counted) -> Any:
    from rich.markup import escape

    manifest = done.release.manifest
    p, g = manifest.parameters, manifest.guarantee
    columns = "1 column" if p.arity == 1 else f"{p.arity} columns"
    of = f"both sides of {p.halves:,} halves" if p.halves else "all rows"
    epsilon = "" if g.epsilon is None else f"; ε = {g.epsilon:.4g} at {g.epsilon_delta:g}"
    rows = [
        ["release", escape(str(done.release.path))],
        ["rows", f"{done.rows_in:,} in, {manifest.public_rows:,} counted"],
        ["tables", f"{len(manifest.sets):,} sets of {columns}, of {of}: "
                   f"{manifest.rows:,} figures"],
        ["noise", f"{p.noise}, standard deviation {manifest.law.sd:,.4g}"],
        ["promise", f"δ = {g.delta:.4g} over T = {p.tables:,} tables, but for η = {g.eta:g}"],
        ["", f"ρ = {g.rho:.4g}{epsilon}"],
        *comparison_rows(done),
        *[["disclosed", escape(d.what)] for d in manifest.disclosed],
        *[["note", escape(note)] for note in done.notes],
    ]  # fmt: skip
    if manifest.simulated:
        rows.append(["[red]simulated[/red]", "made from a chosen seed: protects nobody"])
    return table_of(["", ""], rows, show_header=False)


def comparison_rows(done: Counted) -> list[list[str]]:
    """Both ways to answer the same questions, at the same promise."""
    found = done.release.manifest.comparison
    if found is None:
        return []
    by_halves = f"from halves {found.error:.2g} ({found.figures:,} figures)"
    direct = f"with --direct --arity {found.columns} {found.direct_error:.2g}"
    return [
        [f"error of {found.columns} columns", f"of a share: {by_halves}"],
        ["", f"{direct} ({found.direct_figures:,} figures)"],
    ]
