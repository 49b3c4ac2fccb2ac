"""What a release must say about itself: written once, and recomputed to verify it."""

from __future__ import annotations

import math

from voile.mechanisms import AlphaBeta
from voile.privacy import DGamma
from voile.release.manifest import Disclosed, Epsilon, Guarantee, Parameters
from voile.schema import Attribute, Bins, Range, Schema, Values


def guarantee(promise: DGamma, mechanism: AlphaBeta, *, rows_are_public: bool) -> Guarantee:
    """The promise as it is written down, with what follows from the likelihood ratio.

    Where the number of rows is told exactly, tables that differ by a record are told apart by
    it, and no ε holds between them.
    """
    ratio = mechanism.likelihood_ratio()
    one = "one record, i.e. one person with one row, whatever the other rows are"
    return Guarantee(
        prior=promise.prior,
        posterior=promise.posterior,
        adversary=promise.adversary,
        unit=one if mechanism.form == "multiset" else "one tuple of the table, which is a set",
        epsilon=Epsilon(
            add_remove=None if rows_are_public else finite(ratio.epsilon("add-remove")),
            swap=finite(ratio.epsilon("swap")),
        ),
    )


def finite(x: float) -> float | None:
    return x if math.isfinite(x) else None


def disclosed(schema: Schema, parameters: Parameters, *, rows_are_public: bool) -> list[Disclosed]:
    """What the release tells outside its promise, with why.

    That the table lies in its declared domain is what declaring it means, and is not listed.
    """
    found = []
    if rows_are_public:
        rows = "different rows" if parameters.distinct else "rows"
        what = f"the number of {rows} of the table"
        why = (
            "the prior, or the size of the view, was asked for relative to it; with --prior and "
            "without --max-view-ratio it is not told"
        )
        found.append(Disclosed(what=what, why=why))
    if parameters.form == "set" and not parameters.distinct:
        why = "the set form was asked for, which refuses tables with repetitions"
        found.append(Disclosed(what="that no row of the table repeats another", why=why))
    return found + [
        Disclosed(what=what, why="its domain was read off the table; a codebook avoids that")
        for what in map(read_off, schema)
        if what
    ]


def read_off(attribute: Attribute) -> str:
    """What an active domain tells about the column."""
    if attribute.public != "active":
        return ""
    missing = ", and that some are missing" if attribute.null else ""
    match attribute.domain:
        case Values():
            return f"which values occur in {attribute.name}{missing}"
        case Range():
            return f"the smallest and the largest value of {attribute.name}{missing}"
        case Bins():
            return f"about how small and how large values of {attribute.name} get{missing}"
