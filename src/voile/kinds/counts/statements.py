"""What tables of counts promise, as statements that any release can be asked for."""

from __future__ import annotations

from voile.kinds.counts.manifest import ConjunctManifest
from voile.privacy.guarantees.statements import Statement, not_kept, void

ANYONE = "anyone, even who knows every other row"
DEFINED = "(δ,T)-privacy: the law of the sum of all losses"


def conjunct_statements(manifest: ConjunctManifest) -> list[Statement]:
    """(δ,T)-privacy, ρ-zCDP where it holds, and (ε, δ)."""
    g, tables = manifest.guarantee, manifest.parameters.tables
    found = [
        Statement(
            {"kind": "delta-T", "delta": g.delta, "T": tables, "eta": g.eta},
            "exclusive", ANYONE, DEFINED,
            f"Over all {tables:,} tables the log-odds of the truth about a row rise by more than "
            f"{g.delta:.4g} with a chance of at most {g.eta:g}.",
        ),
    ]  # fmt: skip
    if g.rho_holds:
        found.append(Statement(
            {"kind": "zcdp", "rho": g.rho}, "exclusive", ANYONE,
            "ρ of each table adds up",
            f"Zero-concentrated differential privacy with ρ = {g.rho:.4g}, for replacing a row.",
        ))  # fmt: skip
    if g.epsilon is not None:
        found.append(Statement(
            {"kind": "approximate-dp", "epsilon": g.epsilon, "delta": g.epsilon_delta},
            "exclusive", ANYONE, DEFINED,
            f"(ε, δ)-differential privacy with ε = {g.epsilon:.4g} and δ = {g.epsilon_delta:g}, "
            "for replacing a row.",
        ))  # fmt: skip
    return [void(one) for one in found] if manifest.simulated else found


def conjuncts_not_promised() -> list[Statement]:
    """What tables of counts must not be taken to promise."""
    return [
        not_kept(
            {"kind": "dp", "unit": unit}, "exclusive", "anyone", "does not follow",
            "With a small chance noise is so far out that it excludes a possibility, or nearly: "
            "no ε holds with δ = 0." if unit == "swap" else
            "The number of rows is told: tables with a row more or less can be told apart.",
        )
        for unit in ("swap", "add-remove")
    ]  # fmt: skip
