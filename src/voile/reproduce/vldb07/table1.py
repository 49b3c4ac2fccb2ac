"""The toy table of test scores, its published forms as printed, and Example 4.1's parameters."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

from scipy.stats import binom

import voile
from voile.mechanisms import AlphaBeta
from voile.noise import Key
from voile.release import ViewRelease
from voile.reproduce.figure import Columns, Figure, Finding, Part, Run, columns_from
from voile.reproduce.look import BLUE, INK, altair, table
from voile.reproduce.papers import VLDB07
from voile.reproduce.verdict import Check, Claim, Number, Sample
from voile.schema import Attribute, Range, Schema, TupleIndex, Values

Row = tuple[Any, ...]
TABLE = "dataset:scores"
DOMAIN = Schema(
    (
        Attribute("age", "integer", Range(20, 39)),
        Attribute("nationality", "categorical", Values(("American", "British", "Indian"))),
        Attribute("score", "integer", Range(81, 100)),
    )
)
"""Of Example 4.1: m = 20 · 3 · 20 = 1200."""
SCORES: tuple[Row, ...] = (
    (25, "British", 99), (27, "British", 97), (21, "Indian", 82),
    (32, "Indian", 90), (33, "American", 94), (36, "American", 94),
)  # fmt: skip
PRINTED_CLASSES: tuple[Row, ...] = (
    ("21-30", "*", 99), ("21-30", "*", 97), ("21-30", "*", 82),
    ("31-40", "*", 90), ("31-40", "*", 94), ("31-40", "*", 94),
)  # fmt: skip
PRINTED_FRAPP: tuple[Row, ...] = (
    (25, "British", 99), (28, "Indian", 99), (29, "American", 81),
    (32, "Indian", 90), (39, "American", 84), (32, "Indian", 89),
)  # fmt: skip
PRINTED_ALPHABETA: tuple[Row, ...] = (
    (25, "British", 99), (21, "British", 99), (22, "Indian", 89), (32, "Indian", 90),
    (28, "Indian", 99), (29, "American", 81), (33, "American", 94), (27, "American", 94),
    (32, "British", 83), (36, "American", 94), (26, "American", 99), (39, "Indian", 94),
)  # fmt: skip

FRAPP_KEEPS = Fraction(1, 3)
ALPHA = Fraction(2, 3)
BETA = 2 * ALPHA * len(SCORES) / Fraction(DOMAIN.size)
SIMPLE_PRIOR = Fraction(len(SCORES), DOMAIN.size)
"""n/m: who knows nothing but how many records there are."""
POSTERIOR = float((ALPHA + BETA) / (ALPHA + BETA + BETA * (1 / SIMPLE_PRIOR - 1)))


def alphabeta() -> AlphaBeta:
    """α = 2/3 and β = 1/150."""
    return AlphaBeta(float(ALPHA + BETA), float(BETA), "set")


def published(seed: int) -> ViewRelease:
    """The toy table as a release with these parameters, planned from what they promise."""
    return voile.publish(
        TABLE,
        rows="set",
        schema=DOMAIN,
        prior=float(SIMPLE_PRIOR),
        posterior=POSTERIOR,
        retention=float(ALPHA + BETA),
        simulate_seed=seed,
    )


def rows_of(release: Any) -> list[list[Any]]:
    """What a release shows, row by row, as plain values."""
    shown = release.to_arrow().select(DOMAIN.names)
    return [list(row.values()) for row in shown.to_pylist()]


# --------------------------- table 1: the toy table published in four ways, by Voile's own methods


AGES_OF_1_1 = range(16, 36)
"""The domain that §1.1 gives for the same table."""


# ---------------------------------------------------------------------- the work


def classes() -> dict[str, Any]:
    """Table 1(b): decades of age, no nationality; and what its class sizes leave open."""
    with tempfile.TemporaryDirectory() as folder:
        decades = Path(folder) / "age.csv"
        decades.write_text(
            "".join(f"{age};{decade(age)};*\n" for age in range(20, 40)),
            encoding="utf-8",
            newline="\n",
        )
        release = voile.publish(
            TABLE, "fulldomain", qi=["age", "nationality"], sensitive="score", k=3, l=2,
            l_measure="distinct", hierarchies={"age": decades}, schema=DOMAIN, register=False,
        )  # fmt: skip
    counted = release.query("select count(*) from scores where age between 29 and 31").scalar
    measured = [required.measured for required in release.manifest.guarantee.requirements]
    return {"rows": rows_of(release), "measured": measured, "certain": list(counted.certain or ())}


def decade(age: int) -> str:
    """The range of ten years that Table 1(b) shows for an age."""
    first = (age - 1) // 10 * 10 + 1
    return f"{first}-{first + 9}"


def rows_kept(seed: int) -> dict[str, Any]:
    """Table 1(c): each row kept with chance 1/3, or replaced."""
    shown = voile.perturb(
        TABLE, float(FRAPP_KEEPS), whole_rows=True, schema=DOMAIN, simulate_seed=seed
    )
    rows = rows_of(shown)
    return {"rows": rows, "kept": len(real(rows))}


def views(seed: int, count: int) -> dict[str, Any]:
    """Table 1(d): one release to show, and many views of the same mechanism to count."""
    mechanism, index = alphabeta(), TupleIndex(DOMAIN.sizes)
    members = voile.read(TABLE).keys(DOMAIN, drop_nulls=False)
    kept, inserted = [], []
    for number in range(count):
        key = Key.from_seed(seed * 1_000_003 + number)
        noise = mechanism.noise_rows(index, key, 0, 0, index.limbs[0].size)
        shown = [int(k) for batch in mechanism.view(members, noise, key, 0) for k in batch]
        mine = len(set(shown) & {int(k) for k in members})
        kept.append(mine)
        inserted.append(len(shown) - mine)
    return {"rows": rows_of(published(seed)), "kept": kept, "inserted": inserted}


def real(rows: Sequence[Sequence[Any]]) -> list[tuple[Any, ...]]:
    """Rows that are records of the toy table."""
    return [tuple(row) for row in rows if tuple(row) in SCORES]


def parts(run: Run) -> list[Part]:
    """The classes, many views, and perturbed rows."""
    given = {"seed": run.first, "count": 100 if run.quick else 400}
    kept = [Part(rows_kept, {"seed": seed}) for seed in run.seeds(20, 6)]
    return [Part(classes), Part(views, given), *kept]


# ---------------------------------------------------------------------- what it comes to


def conclude(run: Run, results: Sequence[Any]) -> Finding:  # noqa: ARG001  (the same for all runs)
    """Publish the toy table in each way, and compare with the print."""
    grouped, shown, *kept = results
    columns = columns_of(grouped["rows"], kept[0]["rows"], shown["rows"])
    return Finding(
        checks=(*of_classes(grouped), *of_counts(shown, kept), *of_prints()),
        tables={"": columns},
        picture=lambda: drawn(columns),
        title="Four ways to publish six test scores",
        subtitle=[
            "Made by Voile with the paper's parameters. Blue: rows that are records of the table.",
            "Classes come out exactly as printed; perturbed rows and αβ views are other draws.",
        ],
    )


def of_classes(found: Any) -> tuple[Check, ...]:
    """Whether the classes are those of Table 1(b)."""
    ours = Counter(map(tuple, found["rows"]))
    k, diversity = found["measured"]
    low, high = found["certain"]
    return (
        Number("k of (b)", 3, Sample.of(k)),
        Number("ℓ of (b), distinct values", 2, Sample.of(diversity)),
        Claim(
            "the classes of (b)",
            "2-diversity and 3-anonymity",
            f"{(ours & Counter(PRINTED_CLASSES)).total()} of 6 rows are as printed",
            ours == Counter(PRINTED_CLASSES),
        ),
        Number("ages 29 to 31 from (b): at least", 0, Sample.of(low)),
        Number("ages 29 to 31 from (b): at most", 6, Sample.of(high)),
    )


def of_counts(shown: Any, kept: Sequence[Any]) -> tuple[Check, ...]:
    """How many records are kept and how many tuples inserted."""
    return (
        Number("records kept in (c), FRAPP", 2, Sample.of(one["kept"] for one in kept), 0.5),
        Number("records kept in (d), αβ", 4, Sample.of(shown["kept"]), 0.5),
        Number("tuples inserted in (d), αβ", 8, Sample.of(shown["inserted"]), 0.5),
        Number(
            "records kept in (d), average",
            None,
            Sample.of(shown["kept"]),
            right=len(SCORES) * alphabeta().retention,
            average=True,
        ),
        Number(
            "tuples inserted in (d), average",
            None,
            Sample.of(shown["inserted"]),
            right=(DOMAIN.size - len(SCORES)) * float(BETA),
            average=True,
        ),
        Number("a posteriori of αβ, prior n/m", 1 / 3, Sample.of(POSTERIOR), 0.005),
        # A replaced row may be the same again.
        Number(
            "a posteriori of FRAPP, of a row, prior 1/m",
            1 / 3,
            Sample.of(float(FRAPP_KEEPS + (1 - FRAPP_KEEPS) / DOMAIN.size)),
            0.005,
        ),
        Claim(
            "αβ keeps more than FRAPP",
            "it contains four of the original tuples, while FRAPP only retained two",
            f"on average {Sample.of(shown['kept']).mean:.2f} against "
            f"{Sample.of(one['kept'] for one in kept).mean:.2f}",
            Sample.of(shown["kept"]).mean > Sample.of(one["kept"] for one in kept).mean,
        ),
    )


def of_prints() -> tuple[Check, ...]:
    """Whether the printed instances can come out, and how likely such numbers are."""
    keep, left = alphabeta().retention, DOMAIN.size - len(SCORES)
    kept, same = len(real(PRINTED_ALPHABETA)), len(real(PRINTED_FRAPP))
    inserted = len(PRINTED_ALPHABETA) - kept
    view = binom.pmf(kept, len(SCORES), keep) * binom.pmf(inserted, left, float(BETA))
    return (
        Claim(
            "(c) as printed is a possible outcome",
            "a possible output of FRAPP; two tuples have been retained",
            f"six tuples of D, {same} of them records: of all outcomes "
            f"{binom.pmf(same, len(SCORES), float(FRAPP_KEEPS)):.0%} keep so many",
            inside(PRINTED_FRAPP) and len(PRINTED_FRAPP) == len(SCORES) and same == 2,
        ),
        Claim(
            "(d) as printed is a possible outcome",
            "four tuples have been retained, and eight new tuples have been inserted",
            f"{len(set(PRINTED_ALPHABETA))} different tuples of D, {kept} of them records: of all "
            f"outcomes {view:.1%} have just these numbers",
            inside(PRINTED_ALPHABETA) and len(set(PRINTED_ALPHABETA)) == 12 and kept == 4,
        ),
        Claim(
            "true and noise tuples of (d)",
            "the same ratio 1/3 of true tuples to noise tuples",
            f"{kept} to {inserted}, that is 1/{inserted / kept:g}; of all, "
            f"{kept} of {kept + inserted} are true",
            inserted == 3 * kept,
            expected=False,
            why="a third of all tuples is true, which is half as many as are noise",
        ),
        of_domain(),
    )


def of_domain() -> Claim:
    """The same table has another domain in §1.1."""
    outside = [row for row in SCORES if row[0] not in AGES_OF_1_1]
    return Claim(
        "the table lies in the domain of §1.1",
        "x ∈ [16, 35] is an age; m = 100,000",
        f"{len(outside)} of 6 records have another age: {outside[0][0]}" if outside else "all do",
        not outside,
        expected=False,
        why="Table 1(a) has an age of 36; Example 4.1's ages 20 to 39 hold all",
    )


def inside(rows: Sequence[Sequence[Any]]) -> bool:
    """Whether all rows lie in the domain."""
    return all(
        value in list(attribute)
        for row in rows
        for value, attribute in zip(row, DOMAIN, strict=True)
    )


# ---------------------------------------------------------------------- the picture


def columns_of(*shown: Sequence[Sequence[Any]]) -> Columns:
    """The four tables, one below the other."""
    names = ("(a) Test scores", "(b) 3-anonymity, 2-diversity", "(c) FRAPP", "(d) αβ")
    tables = dict(zip(names, (SCORES, *shown), strict=True))
    every = [(name, *row) for name, rows in tables.items() for row in rows]
    columns = columns_from(("published", "age", "nationality", "score"), every)
    return columns | {"record": [row[1:] in SCORES for row in every]}


def drawn(columns: Columns) -> Any:
    """The four tables side by side."""
    panels = []
    for name in dict.fromkeys(columns["published"]):
        here = [i for i, other in enumerate(columns["published"]) if other == name]
        fields = ("age", "nationality", "score")
        rows = [[str(columns[field][i]) for field in fields] for i in here]
        colours = [BLUE if columns["record"][i] else INK for i in here]
        marks = {(i, j): colour for i, colour in enumerate(colours) for j in range(len(fields))}
        chart = table(["Age", "Nationality", "Score"], rows, widths=[60, 100, 60], marks=marks)
        panels.append(chart.properties(title=name))
    return altair().hconcat(*panels, spacing=44)


FIGURE = Figure("vldb07-table1", VLDB07, "Six test scores published in four ways", parts, conclude)
