"""What does not follow from what, each with the reason and a counterexample.

tests/test_guarantees.py builds every counterexample.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from voile.privacy.guarantees.kinds import KINDS


def labels(*names: str) -> frozenset[str]:
    """The labels of kinds; a name with its word in brackets stands for itself."""
    kinds: Iterable[list[str]] = ([n] if "[" in n else KINDS[n].labels for n in names)
    return frozenset(label for some in kinds for label in some)


PRESENCE = labels("d-gamma", "relative", "dp[add-remove]", "breach[presence]")
NOISY = labels("noisy-answers")
RECORD = NOISY | labels(
    "dp[swap]", "indistinguishable", "breach[record]", "amplification", "delta-T", "zcdp",
    "approximate-dp",
)  # fmt: skip
BELIEFS = PRESENCE | RECORD | labels("s-breach")
CLASSES = labels("k", "l", "t", "semantic")


@dataclass(frozen=True)
class Refusal:
    """No guarantee of the sources implies one of the targets."""

    name: str
    sources: frozenset[str]
    targets: frozenset[str]
    reason: str
    counterexample: str

    def to_dict(self) -> dict[str, Any]:
        return {
            "targets": sorted(self.targets),
            "reason": self.reason,
            "counterexample": self.counterexample,
        }


REFUSALS = (
    Refusal(
        "number-of-rows", RECORD | labels("s-breach"), PRESENCE,
        "exchanging one record for another never changes the number of rows, so it may be told "
        "exactly; then a record that is added shows",
        "publish the number of rows and nothing else: ε = 0 for exchanging a record, and no ε "
        "for adding one",
    ),
    Refusal(
        "joes-score", labels("k", "l"), BELIEFS,
        "what is known beforehand may rule out all but one record of a class (VLDB 2007, §2.4)",
        "the scores of Table 1(b), 3-anonymous and 2-diverse: who knows that Joe is under 30 and "
        "is sure that he scored below 95 learns that his score is 82",
    ),
    Refusal(
        "exact-shares", labels("t", "semantic"), BELIEFS,
        "the shares of values in a class are published as they are, so that tables which differ "
        "in one record give different releases with certainty",
        "one class that is the whole table: every distance is 0, and who knows all other "
        "records reads the last one off the shares",
    ),
    Refusal(
        "no-classes", BELIEFS, CLASSES,
        "it limits what is learnt, not how the published table looks: rows may stand alone",
        "publish one row drawn without a look at the table: nothing is learnt, ε = 0, and the "
        "row is a class of one record",
    ),
    Refusal(
        "frequent-sets", labels("s-breach"), RECORD,
        "it says nothing about sets that are frequent, nor about seeing the published value",
        "retention 0.2 on 1,000 values has no (68, 0.1, 0.95) breach (SIGMOD 2005, §5.3), but a "
        "value with prior 0.08 reaches 0.956 when it is published",
    ),
    Refusal(
        "same-value", labels("k"), labels("l"),
        "all records of a class may have the same sensitive value",
        "k records in one class, all with the same illness",
    ),
    Refusal(
        "nearly-all-the-same", labels("l[distinct]"), labels("l[frequency]", "l[entropy]"),
        "different values need not be equally frequent",
        "99 records with one illness and one with another: 2 distinct values, a share of 0.99",
    ),
    Refusal(
        "half-the-same", labels("l[entropy]"), labels("l[frequency]"),
        "a large share and many small ones have a large entropy together",
        "half of a class has one illness and the rest a hundred others: entropy ln 20, and a "
        "share of 1/2",
    ),
    Refusal(
        "far-from-the-table", labels("k", "l"), labels("t", "semantic"),
        "a class may be large and diverse and yet unlike the table",
        "two classes of two records with the values a, b and c, d: 2-diverse, variational "
        "distance 1/2, and half of the values absent",
    ),
    Refusal(
        "everyone-the-same", labels("t", "semantic"), labels("k", "l"),
        "a table in which all have the same sensitive value is as close to itself as can be",
        "two records with the same illness, each a class of its own: every distance is 0, "
        "k = 1 and ℓ = 1",
    ),
    Refusal(
        "rare-value", labels("t"), labels("semantic"),
        "a small distance leaves room for a rare value to become many times as frequent, or "
        "to vanish",
        "a value with a share of 1/1,000 in the table and none in a class: variational distance "
        "0.001, and no δ",
    ),
    Refusal(
        "neighbouring-values", labels("t[emd]"), labels("t[variational]", "t[jensen-shannon]"),
        "moving shares to neighbouring values costs little, and changes all of them",
        "101 ordered values; the table has half of them at 50 and half at 51, a class all at 50: "
        "earth mover's distance 0.005, variational distance 1/2",
    ),
    *(
        Refusal(
            "how-it-is-kept", (BELIEFS | CLASSES) - {one}, frozenset({one}),
            "a promise says what is hidden, not by which noise",
            "geometric noise keeps an ε for exchanging a record, and so does a coin toss "
            "that looks at no record: it answers nothing",
        )
        for one in sorted(NOISY)
    ),
    Refusal(
        "absent-value", labels("semantic[ignored]"), labels("semantic[forbidden]"),
        "that a value is absent from a class is not counted",
        "two classes with one value each: δ = ln 2 where absent values are ignored, none where "
        "they are forbidden",
    ),
)  # fmt: skip


def refusal(source: str, target: str) -> Refusal | None:
    """The known reason why nothing leads from one label to another."""
    found = (r for r in REFUSALS if source in r.sources and target in r.targets)
    return next(found, None)
