"""Example 4.2: the share of the domain that meets three predicates, each on two attributes.

The paper gives one of the predicates, A1² + A2² ≥ 20; the other two are ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import product
from typing import Any

import pyarrow as pa

import voile
from voile.reproduce.figure import Figure, Finding, Part, Run
from voile.reproduce.look import VERMILION, table
from voile.reproduce.papers import VLDB07
from voile.reproduce.verdict import Check, Claim, Number, Sample
from voile.schema import Attribute, Range, Schema

SIZES = (6, 5, 4, 7)
SQL = "select count(*) from t where a1*a1 + a2*a2 >= 20 and a2*a3 < 9 and a3 + a4 > 5"


def first(a1: int, a2: int) -> bool:
    """The predicate on A1 and A2 that the paper gives."""
    return a1 * a1 + a2 * a2 >= 20


def second(a2: int, a3: int) -> bool:
    """Our predicate on A2 and A3."""
    return a2 * a3 < 9


def third(a3: int, a4: int) -> bool:
    """Our predicate on A3 and A4."""
    return a3 + a4 > 5


def nested(chance: tuple[Fraction, Fraction, Fraction], shared: Fraction) -> tuple[Fraction, int]:
    """The printed sum: over a3, of (the sum over a2, a1) times (the sum over a4), and its steps.

    `chance` is what a pair that satisfies a predicate counts for; `shared` is the factor for the
    values of the attributes that are summed over in common.
    """
    ones, twos, threes, fours = map(range, SIZES)
    total, steps = Fraction(0), 0
    for a3 in threes:
        inner = last = Fraction(0)
        for a2, a1 in product(twos, ones):
            inner += chance[0] * chance[1] * (first(a1, a2) and second(a2, a3))
            steps += 1
        for a4 in fours:
            last += chance[2] * third(a3, a4)
            steps += 1
        total += inner * last
    return total * shared, steps


def computed() -> dict[str, Any]:
    """By listing all tuples, by the printed formula, and with the factors that it lacks."""
    m1, m2, m3, m4 = SIZES
    every = m1 * m2 * m3 * m4
    listed = sum(
        first(a, b) and second(b, c) and third(c, d) for a, b, c, d in product(*map(range, SIZES))
    )
    whole = Fraction(1, every)
    printed, steps = nested((whole, whole, whole), Fraction(1))
    # Given the shared values, a1 and a4 are uniform: 1/m1 and 1/m4; shared values are averaged.
    given = (Fraction(1, m1), Fraction(1), Fraction(1, m4))
    lacking, _ = nested(given, Fraction(1))
    right, _ = nested(given, Fraction(1, m2 * m3))
    return {
        "listed": listed, "share": listed / every, "printed": float(printed),
        "without_average": float(lacking), "right": float(right), "steps": steps,
    }  # fmt: skip


def queried(seed: int) -> int:
    """n_D as the query engine counts it, for any release of such a table."""
    names = [f"a{i}" for i in range(1, 5)]
    domain = Schema(
        tuple(Attribute(n, "integer", Range(0, m - 1)) for n, m in zip(names, SIZES, strict=True))
    )
    rows = pa.table({name: [0, 1, 2, 3] for name in names})
    release = voile.publish(
        rows, schema=domain, prior=0.01, posterior=0.5, name="t", simulate_seed=seed
    )
    return int(release.explain(SQL)["n_domain"])


def parts(run: Run) -> list[Part]:
    """The formulas, and one count by the query engine."""
    return [Part(computed), Part(queried, {"seed": run.first})]


def conclude(run: Run, results: Sequence[Any]) -> Finding:  # noqa: ARG001  (the same for all runs)
    """Compare the printed formula with enumeration."""
    found, counted = results
    rows = [
        ["all tuples listed", found["share"]],
        ["the printed formula, p = 1/m for a pair", found["printed"]],
        ["p of each predicate given what is shared, not averaged", found["without_average"]],
        ["averaged over the shared a2 and a3: 1/(m2·m3)", found["right"]],
        ["voile query, n_D / m", counted / (SIZES[0] * SIZES[1] * SIZES[2] * SIZES[3])],
    ]
    return Finding(
        checks=checks(found, counted),
        tables={"": {"how": [how for how, _ in rows], "p(C)": [value for _, value in rows]}},
        picture=lambda: drawn(rows, found["share"]),
        title="The printed formula for p(C) lacks a factor; averaged, it is exact",
        subtitle=[
            "C is P1(A1, A2), P2(A2, A3) and P3(A3, A4): a1² + a2² ≥ 20, a2·a3 < 9, a3 + a4 > 5",
            f"on domains of {', '.join(map(str, SIZES))} values.",
        ],
    )


def checks(found: Any, counted: int) -> tuple[Check, ...]:
    """Whether the printed formulas are right, and how many steps they take."""
    m1, m2, m3, m4 = SIZES
    return (
        Claim(
            "the formula of Example 4.2",
            "p(P(a, b)) is 1/m if (a, b) satisfies P",
            f"{found['printed']:.2g}; of all tuples {found['share']:.4f} satisfy C",
            abs(found["printed"] - found["share"]) < 1e-12,
            expected=False,
            why="a pair has chance 1/(m_i·m_j), and shared values are averaged, not summed",
        ),
        Claim(
            "the third idea of §4.1",
            "p(C) is the sum over shared values of the products",
            f"{found['without_average']:.4f}; of all tuples {found['share']:.4f} satisfy C",
            abs(found["without_average"] - found["share"]) < 1e-12,
            expected=False,
            why="the sum lacks the factor 1/(m_i·m_j) of the shared attributes",
        ),
        Number("p(C) with the factor", None, Sample.of(found["right"]), 1e-12,
               right=found["share"]),
        Number("n_D by voile query", None, Sample.of(counted), right=found["listed"]),
        Number("steps, m3·(m1·m2 + m4)", m3 * (m1 * m2 + m4), Sample.of(found["steps"]),
               why=f"the printed formula at domains of {', '.join(map(str, SIZES))} values"),
    )  # fmt: skip


def drawn(rows: Sequence[Sequence[Any]], share: float) -> Any:
    """The values of p(C) as a table, with wrong ones marked."""
    wrong = [i for i, (_, value) in enumerate(rows) if abs(value - share) > 1e-12]
    cells = [[how, f"{value:.6g}", ""] for how, value in rows]
    for i in wrong:
        cells[i][2] = "wrong"
    return table(
        ["how p(C) is found", "p(C)", ""],
        [
            [how, f"{value:.6g}", "wrong" if i in wrong else ""]
            for i, (how, value) in enumerate(rows)
        ],
        widths=[430, 110, 80],
        marks={(i, j): VERMILION for i in wrong for j in (1, 2)},
    )


FIGURE = Figure(
    "vldb07-example42", VLDB07, "How much of the domain meets three predicates", parts, conclude
)
