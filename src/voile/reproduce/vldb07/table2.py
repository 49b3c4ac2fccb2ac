"""Table 2: the paper's symbols, and what they are on Adult."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from voile.reproduce.figure import Figure, Finding, Part, Run, columns_from
from voile.reproduce.look import table
from voile.reproduce.papers import VLDB07
from voile.reproduce.verdict import Check, Claim, Number, Sample
from voile.reproduce.vldb07.adult import (
    MISS,
    POSTERIOR,
    PRIOR_FACTOR,
    TIGHT,
    adult,
    alphabeta,
    promise,
)


def symbols() -> dict[str, Any]:
    """The values of the paper's symbols on Adult."""
    listed, schema = adult()
    rows, size, mechanism = len(listed), schema.size, alphabeta(TIGHT)
    return {
        "n": rows,
        "m": size,
        "distinct": rows - listed.duplicates(schema.names),
        "d": promise().prior,
        "view": rows * mechanism.retention + (size - rows) * mechanism.noise,
        "rho": mechanism.utility(rows, size, MISS).rho,
    }


def parts(run: Run) -> list[Part]:  # noqa: ARG001  (nothing is drawn by chance)
    """One calculation of all symbols."""
    return [Part(symbols)]


def conclude(run: Run, results: Sequence[Any]) -> Finding:  # noqa: ARG001
    """The symbols with their meaning and their values."""
    (found,) = results
    rows = [
        ["D", "Domain of tuples", "nine active domains"],
        ["I", "Database instance, a part of D", f"{found['distinct']:,} different tuples"],
        ["V", "Published view, a part of D", f"about {found['view']:,.0f} tuples"],
        ["n", "Database size, |I|", f"{found['n']:,} rows"],
        ["m", "Domain size, |D|, far above n", f"{found['m']:,}"],
        ["k", "Attacker's prior, Pr[t] ≤ k·n/m", f"{PRIOR_FACTOR}: d = {found['d']:.4%}"],
        ["γ", "Attacker's posterior, Pr[t|V] ≤ γ", f"{POSTERIOR}"],
        [
            "ρ",
            "Error of an estimate, at most ρ√n",
            f"{found['rho']:.1f} with chance {1 - MISS:.0%}",
        ],
    ]
    return Finding(
        checks=checks(found),
        tables={"": columns_from(("symbol", "meaning", "on_adult"), rows)},
        picture=lambda: table(["Symbol", "Meaning", "On Adult"], rows, widths=[90, 300, 240]),
        title="The paper's symbols, and their values on Adult",
        subtitle=[
            "αβ with α + β = ½ and the tight β of Theorem 4.3. A third of the rows repeat others,",
            "so that I as a set is smaller than n.",
        ],
    )


def checks(found: dict[str, Any]) -> tuple[Check, ...]:
    """The printed sizes of Adult and of its domain."""
    n, m = found["n"], found["m"]
    return (
        Number("n", 30_162, Sample.of(n)),
        Number("m", 648_023_040, Sample.of(m)),
        Number("n/m", 4.65e-5, Sample.of(n / m), 0.005e-5),
        Number("d = 10·n/m", 0.000465, Sample.of(found["d"]), 0.0000005),
        Claim("n is much less than m", "n ≪ m", f"m/n = {m / n:,.0f}", n < m / 1000),
        Claim(
            "the instance is a set",
            "I ⊆ D, n = |I|",
            f"{n:,} rows, of which {found['distinct']:,} are different",
            found["distinct"] == n,
            expected=False,
            why=f"{n - found['distinct']:,} rows repeat another: the paper counts a multiset "
            "and treats it as a set",
        ),
    )


FIGURE = Figure("vldb07-table2", VLDB07, "Symbols, and their values on Adult", parts, conclude)
