"""All that the perturbing of a row promises, as statements that any release can be asked for."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from voile.privacy.guarantees.belief_formulas import breach_within
from voile.privacy.guarantees.beliefs import Breach, DeltaT, Dp
from voile.privacy.guarantees.denials import not_kept
from voile.privacy.guarantees.parameters import LARGEST_EPSILON
from voile.privacy.guarantees.statements import Bounds, Statement, stated, void
from voile.privacy.guarantees.theorems import NothingFollows
from voile.privacy.local.amplification import epsilon_of, local_promise

BELIEFS = (0.01, 0.1, 0.5)
LARGEST_RATIO = 10**300
"""Of a γ that can be stated; a larger one is told by its ε."""
ROW = "of one row; but for its public columns, and for that the row is there"


def local_statements(ratio: Fraction | None, *, simulated: bool) -> list[Statement]:
    """What follows from how much a row can change the chance of what is seen of it.

    Beyond all bounds that can be stated nothing does.
    """
    epsilon = epsilon_of(ratio)
    if ratio is None or epsilon > LARGEST_EPSILON:
        return []
    bounds, found = Bounds(swap=ratio), []
    if ratio <= LARGEST_RATIO:
        found.append(stated(local_promise(ratio), bounds, "the perturbing itself", ROW))
    cited = "a table of rows that are each perturbed within γ"
    found.append(stated(Dp(epsilon, "swap"), bounds, cited, ROW))
    found += [stated(b, bounds, "Bayes' rule", ROW) for b in breaches(ratio)]
    found.append(stated(DeltaT(epsilon), bounds, "log-odds change by ε at most", ROW))
    return [void(one) for one in found] if simulated else found


def breaches(ratio: Fraction) -> list[Breach]:
    """To what beliefs of a few sizes can rise."""
    found = []
    for prior in BELIEFS:
        try:
            found.append(breach_within(ratio, prior, "record"))
        except NothingFollows:
            continue
    return found


def locally_not_promised(
    ratio: Fraction | None, columns: Mapping[str, Fraction | None]
) -> list[Statement]:
    """What a perturbed table must not be taken to promise."""
    found = [
        not_kept(
            {"kind": "dp", "unit": "add-remove"}, "independent", "anyone",
            "every row is there, perturbed",
            "That a row is in the table is told: no ε holds for adding or removing one.",
        )
    ]  # fmt: skip
    if ratio is None:
        open_ = ", ".join(name for name, bound in columns.items() if bound is None)
        found.append(not_kept(
            {"kind": "dp", "unit": "swap"}, "exclusive",
            "anyone who knows which values are rare",
            "Privacy Preserving OLAP, §6.2.2",
            f"Columns without ε: {open_}. Public ones are told as they are; where replacements are "
            "the column's own values, a rare value that is seen is likely to be somebody's own.",
        ))  # fmt: skip
    for kind, words in (("k", "k-anonymity"), ("l", "ℓ-diversity"), ("t", "t-closeness")):
        found.append(not_kept(
            {"kind": kind}, "none", "nobody in particular", "does not follow",
            f"{words} is not claimed: rows may stand alone. Nor would it limit what anyone learns.",
        ))  # fmt: skip
    return found
