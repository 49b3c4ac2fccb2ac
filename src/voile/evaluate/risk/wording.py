"""Risk in words: each number by its name, and what the name means."""

from __future__ import annotations

from voile.evaluate.risk.found import Risk, percent
from voile.evaluate.risk.uniqueness import ASSUMPTION
from voile.units import counted

MEANINGS = {
    "k": "rows of the smallest class",
    "classes": "different combinations of quasi-identifiers",
    "ℓ distinct": "different sensitive values in the poorest class",
    "ℓ frequency": "1 / the largest share of a sensitive value in a class",
    "ℓ entropy": "e to the smallest entropy of a class",
    "t": "largest Jensen–Shannon divergence of a class (natural logarithm)",
    "t equal": "the same as earth mover's distance, values equally far apart",
    "δ semantic": "largest |ln(share in a class / share in the table)|; ∞ if a value is absent",
    "δ, absent ignored": "the same, of values that occur in the class",
    "prosecutor, largest": "worst row, by someone who knows that it is there",
    "prosecutor, average": "the same for all rows on average",
    "prosecutor, above": "rows whose chance is above the threshold (--threshold)",
    "journalist, largest": "worst row, by someone who knows the population only",
    "journalist, average": "the same for all rows on average",
    "journalist, above": "rows whose chance is above the threshold (--threshold)",
    "marketer": "rows found again when each is linked to somebody at random",
    "presence": "share of the population's people of a class who are in the table",
    "unique": "rows that are alone in their class",
    "population unique": "counted: of those, alone in the population too",
    "population unique, Pitman": f"estimated, if {ASSUMPTION}",
    "population unique, Zayatz": f"estimated, if {ASSUMPTION}",
    "suppressed cells": "each counted as a value of its own",
    "suppressed rows": "rows of which no quasi-identifier is shown",
}


SINGLED = "singled out by"
ABOVE = ", above"


def meaning(name: str) -> str:
    """What a number is, without the sensitive attribute in brackets or the threshold's value."""
    if name.startswith(SINGLED):
        most = int(name.removeprefix(SINGLED))
        if most == 1:
            return "rows that 1 column is enough to single out"
        return f"rows that {most} columns, or fewer, are enough to single out"
    plain = name.split(" [", maxsplit=1)[0]
    above = plain.find(ABOVE)
    return MEANINGS.get(plain if above < 0 else plain[: above + len(ABOVE)], "")


def facts(risk: Risk) -> list[tuple[str, str]]:
    """Each number by its name, in the order in which people ask for them."""
    return [
        ("k", f"{risk.k:,}"),
        ("classes", f"{len(risk.classes):,}"),
        *_of_values(risk),
        *_found_again(risk),
        *_alone(risk),
        *_suppressed(risk),
    ]


def _of_values(risk: Risk) -> list[tuple[str, str]]:
    names = {
        "ℓ distinct": "l_distinct",
        "ℓ frequency": "l_frequency",
        "ℓ entropy": "l_entropy",
        "t": "t",
        "t equal": "t_emd_equal",
        "δ semantic": "semantic",
        "δ, absent ignored": "semantic_ignored",
    }
    several = len(risk.disclosures) > 1
    return [
        (f"{name} [{d.attribute}]" if several else name, number(d.measured[key]))
        for d in risk.disclosures
        for name, key in names.items()
    ]


def number(value: float) -> str:
    return "∞" if value == float("inf") else f"{value:.4g}"


def _found_again(risk: Risk) -> list[tuple[str, str]]:
    found = []
    for who, chances in (("prosecutor", risk.prosecutor), ("journalist", risk.journalist)):
        if chances:
            found += [
                (f"{who}, largest", f"{chances.largest:.4g}"),
                (f"{who}, average", f"{chances.average:.4g}"),
                (f"{who}{ABOVE} {chances.threshold:.3g}", f"{percent(chances.above)} of rows"),
            ]
    found.append(("marketer", f"{percent(risk.marketer)} of rows"))
    if risk.presence:
        found.append(("presence", f"{risk.presence.low:.4g} to {risk.presence.high:.4g}"))
    return found


def _alone(risk: Risk) -> list[tuple[str, str]]:
    alone = risk.uniqueness
    found = [("unique", f"{counted(alone.unique, 'row')} ({percent(alone.share)})")]
    if alone.population_unique is not None:
        found.append(("population unique", counted(alone.population_unique, "row")))
    if alone.pitman is not None and alone.zayatz is not None:
        found.append(("population unique, Pitman", f"about {counted(alone.pitman, 'row')}"))
        found.append(("population unique, Zayatz", f"about {counted(alone.zayatz, 'row')}"))
    few = f"{SINGLED} {risk.unique_sets.largest}"
    return [*found, (few, counted(risk.unique_sets.rows, "row"))]


def _suppressed(risk: Risk) -> list[tuple[str, str]]:
    if not risk.suppressed_cells:
        return []
    left = f", {risk.rows_left_out:,} left out" if risk.rows_left_out else ""
    return [
        ("suppressed cells", f"{risk.suppressed_cells:,}"),
        ("suppressed rows", f"{risk.suppressed_rows:,}{left}"),
    ]
