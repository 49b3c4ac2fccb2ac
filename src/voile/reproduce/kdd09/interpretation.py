"""Section 5.1's interpretation: what a P_loss and a U_loss mean."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from voile.evaluate.frontier import Candidate, measure, read_subject
from voile.evaluate.losses import jensen_shannon
from voile.hierarchies import multiples
from voile.reproduce import look
from voile.reproduce.figure import Figure, Finding, Part, Run
from voile.reproduce.kdd09 import study
from voile.reproduce.kdd09.losses import readings
from voile.reproduce.kdd09.study import BUCKETIZED, GENERALIZED, IGNORING, L_DIVERSITY, Points
from voile.reproduce.papers import KDD09
from voile.reproduce.verdict import Check, Claim, Number, Sample

PRINTED = {
    "Tech-support": 0.0314, "Craft-repair": 0.1331, "Other-service": 0.1063, "Sales": 0.1196,
    "Exec-managerial": 0.1323, "Prof-specialty": 0.1329, "Handlers-cleaners": 0.0452,
    "Machine-op-inspct": 0.0657, "Adm-clerical": 0.1225, "Farming-fishing": 0.0327,
    "Transport-moving": 0.0512, "Priv-house-serv": 0.0052, "Protective-serv": 0.0216,
    "Armed-Forces": 0.0003,
}  # fmt: skip
"""Q, in the order in which it is printed."""
HOUSE_SERVICE = 0.0051
RAREST, COMMONEST = 0.692, 0.488
TRIVIAL, OUR_TRIVIAL = 0.05, 0.0437
LOW, LOWER = 0.04, 0.02
YEARS = 20


def shares() -> dict[str, Any]:
    """The table's distribution, and P_loss of someone whose value is known."""
    of = study.subject()
    names = [str(value) for value in of.prepared.schema[study.SENSITIVE]]
    known = jensen_shannon(of.overall, np.eye(len(names)))
    return {
        "share": dict(zip(names, map(float, of.overall), strict=True)),
        "revealed": dict(zip(names, map(float, known), strict=True)),
        "mixed": highest_mixture(of.overall),
    }


def highest_mixture(overall: Any, number: int = 200_000, seed: int = 1) -> float:
    """The largest P_loss of random distributions; by convexity, at most a known value's."""
    drawn = np.random.default_rng(seed).dirichlet(np.full(len(overall), 0.05), number)
    return float(jensen_shannon(overall, drawn).max())


def trivial_with_wide_ages() -> float:
    """U_loss without quasi-identifiers, where ages are grouped by twenty years only."""
    ages = multiples(study.subject().prepared.schema["age"], [YEARS])
    of = read_subject(
        study.TABLE, source=study.TABLE, sensitive=study.SENSITIVE, qi=study.QI,
        hierarchies={"age": ages},
    )  # fmt: skip
    (point,) = measure(of, Candidate("trivial"))
    return point.u_loss


def parts(run: Run) -> list[Part]:
    """The paper's curves, the trivial release, the table's shares, and readings at random."""
    return [
        *study.curve_parts(),
        Part(study.losses, {"method": "trivial", "options": [{}]}),
        Part(shares),
        Part(trivial_with_wide_ages),
        *(Part(readings, {"seed": seed, "number": 50}) for seed in run.seeds(8, 1)),
    ]


def conclude(run: Run, results: Sequence[Any]) -> Finding:  # noqa: ARG001
    """Put the losses beside those of known values and of the trivial release."""
    named, _ = study.curves(results)
    (trivial,), facts, wide = results[6:9]
    open_ = [reading for part in results[9:] for reading in part]
    checks = [
        *of_shares(facts["share"]), *of_revealed(facts), *of_diversity(named[L_DIVERSITY], open_),
        *of_trivial(trivial["u_loss"], wide), *of_utility(named, trivial["u_loss"]),
    ]  # fmt: skip
    columns: dict[str, list[Any]] = {
        "occupation": list(PRINTED),
        "printed": list(PRINTED.values()),
        "share": [facts["share"][name] for name in PRINTED],
        "p_loss_if_known": [facts["revealed"][name] for name in PRINTED],
    }
    return Finding(
        checks=tuple(checks),
        tables={"": columns},
        picture=lambda: drawn(columns, named, trivial["u_loss"]),
        title=f"To be known is a P_loss of {min(facts['revealed'].values()):.2f} to "
        f"{max(facts['revealed'].values()):.2f}; every release tells more than none",
        subtitle="Left: P_loss of a person whose occupation becomes known, by how common it is. "
        "Right: U_loss of all releases beside that of publishing no quasi-identifier",
    )


def of_shares(share: dict[str, float]) -> list[Check]:
    """The share of each occupation beside the printed one."""
    why = "232 of 45,222 rows"
    return [
        Number(f"share of {name}", printed, Sample.of(share[name]), 0.00005,
               HOUSE_SERVICE if name == "Priv-house-serv" else None,
               why if name == "Priv-house-serv" else "")
        for name, printed in PRINTED.items()
    ]  # fmt: skip


def of_revealed(facts: dict[str, Any]) -> list[Check]:
    """P_loss of a person whose occupation becomes known."""
    known = facts["revealed"]
    low, high = min(known.values()), max(known.values())
    return [
        Number("P_loss of Armed-Forces, known", RAREST, Sample.of(known["Armed-Forces"]), 0.0005),
        Number("P_loss of Craft-repair, known", COMMONEST, Sample.of(known["Craft-repair"]),
               0.0005),
        Claim(
            "P_loss of a known value",
            f"in between of {COMMONEST} and {RAREST}",
            f"{low:.4f} ({min(known, key=known.__getitem__)}) to {high:.4f} "
            f"({max(known, key=known.__getitem__)})",
            abs(low - COMMONEST) <= 0.0005 and abs(high - RAREST) <= 0.0005,
        ),
        Claim(
            "the largest P_loss",
            f"privacy loss cannot be greater than {RAREST}",
            f"the largest of 200,000 random distributions is {facts['mixed']:.4f}",
            facts["mixed"] <= high + 1e-9,
        ),
    ]  # fmt: skip


def of_diversity(points: Points, open_: Sequence[dict[str, Any]]) -> list[Check]:
    """Whether ℓ-diversity exceeds the P_loss of a known value without revealing one."""
    both = [study.at(points, value, GENERALIZED)["p_loss"] for value in (3.0, 3.5)]
    others = [reading["diverse_p_loss"] for reading in open_]
    return [
        Claim(
            "beyond a known value without one",
            f"P_loss above {COMMONEST} does not mean that a value is revealed",
            f"ℓ = 3: {both[0]:.3f}, where no value has more than a third of a class",
            both[0] > COMMONEST,
        ),
        Claim(
            "ℓ = 3 and ℓ = 3.5",
            f"the rightmost two points on the ℓ-diversity curve lie beyond {COMMONEST}",
            f"{both[0]:.3f} and {both[1]:.3f}; ℓ = 3.5 in {len(others)} other orders from "
            f"{min(others):.3f} to {max(others):.3f}",
            all(p_loss > COMMONEST for p_loss in both),
            expected=False,
            why="the orders of columns and values, which are not said, decide about ℓ = 3.5",
        ),
    ]


def of_trivial(trivial: float, wide: float) -> list[Check]:
    """U_loss of a release without quasi-identifiers."""
    why = "it depends on the hierarchies, which are not said: ours has ages by 5, 10 and 20 years"
    return [
        Number("U_loss without quasi-identifiers", TRIVIAL, Sample.of(trivial), 0.00005,
               OUR_TRIVIAL, why),
        Number("U_loss without them, ages by 20 years", TRIVIAL, Sample.of(wide), 0.0005),
    ]  # fmt: skip


def of_utility(named: dict[str, Points], trivial: float) -> list[Check]:
    """Whether U_loss stays below the limits that the paper states."""
    literal = [p["u_loss"] for name, of in named.items() if name != IGNORING for p in of]
    ignoring = [p["u_loss"] for p in named[IGNORING]]
    every = literal + ignoring
    many = sum(u < LOWER for u in every)
    return [
        Claim(
            f"U_loss below {LOW}",
            f"utility loss is lower than {LOW} in all cases",
            f"at most {max(literal):.4f} in {len(literal)} releases, δ with all values in each "
            "class",
            max(literal) < LOW,
        ),
        Claim(
            f"U_loss below {LOW}, where δ ignores absent values",
            f"utility loss is lower than {LOW} in all cases",
            f"at most {max(ignoring):.4f} in {len(ignoring)} releases",
            max(ignoring) < LOW,
            expected=False,
            why="δ = 1 leaves five classes, which tell little; at δ = 1.2 there are 59",
        ),
        Claim(
            f"U_loss below {LOWER}",
            f"lower than {LOWER} in many cases",
            f"in {many} of {len(every)}",
            2 * many >= len(every),
        ),
        Claim(
            "better than trivial",
            "publishing the anonymized data does improve the quality of data utility",
            f"U_loss below the trivial {trivial:.4f} in {sum(u < trivial for u in every)} of "
            f"{len(every)}",
            max(every) < trivial,
        ),
    ]


def drawn(columns: dict[str, list[Any]], named: dict[str, Points], trivial: float) -> Any:
    """P_loss of known values, beside U_loss of all releases."""
    return look.beside(known(columns), lost(named, trivial))


def known(columns: dict[str, list[Any]]) -> Any:
    """P_loss by occupation, with the printed extremes marked."""
    alt = look.altair()
    rows = look.records(columns)
    order = sorted(rows, key=lambda row: -row["share"])
    y = alt.Y("occupation:N", sort=[row["occupation"] for row in order], title=None)
    x = alt.X(
        "p_loss_if_known:Q",
        title="P_loss if the occupation is known",
        scale=alt.Scale(domain=[0.45, 0.71], nice=False),
        axis=alt.Axis(tickCount=5),
    )
    texts = [row | {"text": f"{row['share']:.2%}"} for row in rows]
    base = look.chart(texts).encode(y=y, x=x)
    printed = look.chart([
        {"occupation": "Craft-repair", "p_loss_if_known": COMMONEST, "text": "printed: 0.488"},
        {"occupation": "Armed-Forces", "p_loss_if_known": RAREST, "text": "printed: 0.692"},
    ]).encode(y=y, x=x)  # fmt: skip
    return alt.layer(
        base.mark_point(filled=True, size=70, color=look.BLUE, opacity=1),
        base.mark_text(align="right", dx=-10, fontSize=12, color=look.SOFT).encode(text="text:N"),
        printed.mark_point(size=190, color=look.INK, strokeWidth=1.6, opacity=1),
        printed.transform_filter(f"datum.p_loss_if_known == {COMMONEST}")
        .mark_text(align="left", dx=14, fontSize=13, color=look.INK).encode(text="text:N"),
        printed.transform_filter(f"datum.p_loss_if_known == {RAREST}")
        .mark_text(align="right", dx=-60, fontSize=13, color=look.INK)
        .encode(text="text:N"),
    ).properties(width=400, height=400)  # fmt: skip


def lost(named: dict[str, Points], trivial: float) -> Any:
    """U_loss of every release, with that of the trivial ones as lines."""
    alt = look.altair()
    words = {GENERALIZED: "generalization", BUCKETIZED: "bucketization"}
    rows = [
        {"curve": name, "u_loss": p["u_loss"], "shown by": words[p["recode"]]}
        for name, points in named.items()
        for p in points
    ]
    y = alt.Y("u_loss:Q", title="U_loss", scale=alt.Scale(domain=[0, 0.054], nice=False),
              axis=alt.Axis(tickCount=6))  # fmt: skip
    dots = (
        look.chart(rows)
        .mark_tick(thickness=2.5, size=26)
        .encode(
            x=alt.X("curve:N", sort=list(named), title=None,
                    axis=alt.Axis(labelAngle=-25, labelLimit=240, labelOverlap=False)),
            y=y,
            color=alt.Color(
                "shown by:N",
                scale=alt.Scale(domain=list(words.values()), range=[look.VERMILION, look.BLUE]),
                legend=alt.Legend(title=None, orient="top"),
            ),
        )
    )  # fmt: skip
    rules = [(TRIVIAL, "no quasi-identifier, printed"), (trivial, "no quasi-identifier, ours")]
    lines = [level(alt, y, at, text) for at, text in rules]
    return alt.layer(*lines, dots).properties(width=400, height=400)


def level(alt: Any, y: Any, at: float, text: str) -> Any:
    """A labelled horizontal line."""
    base = look.chart([{"u_loss": at}]).encode(y=y)
    return alt.layer(
        base.mark_rule(color=look.SOFT, strokeDash=[3, 3], strokeWidth=1.5),
        base.mark_text(text=f"{text}: {at:.4g}", align="right", dy=-9, fontSize=13,
                       color=look.INK).encode(x=alt.value(396)),
    )  # fmt: skip


INTERPRETATION = Figure(
    name="kdd09-interpretation",
    paper=KDD09,
    what="Section 5.1: what privacy loss and utility loss mean on Adult",
    parts=parts,
    conclude=conclude,
)
