"""What follows from a guarantee: theorems, one after the other, and what does not follow."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from voile.errors import PromiseError, UsageError, VoileError
from voile.errors import spelled as option
from voile.privacy.guarantee import Guarantee
from voile.privacy.guarantees import KINDS, Target, example, plain, spelled
from voile.privacy.guarantees.answer_theorems import ANSWER_THEOREMS
from voile.privacy.guarantees.class_theorems import CLASS_THEOREMS
from voile.privacy.guarantees.theorems import (
    BELIEF_THEOREMS,
    NothingFollows,
    PrintedConstant,
    Theorem,
)
from voile.records import Record

# ---------------------------------------------------------------------- what does not follow
# What does not follow from what, each with the reason and a counterexample.
#
# tests/test_guarantees.py builds every counterexample.


def labels(*names: str) -> frozenset[str]:
    """The labels of kinds; a name with its word in brackets stands for itself."""
    kinds: Iterable[Sequence[str]] = ([n] if "[" in n else KINDS[n].labels for n in names)
    return frozenset(label for some in kinds for label in some)


PRESENCE = labels(
    "d-gamma", "relative", "dp[add-remove]", "breach[presence]", "delta-T[presence]",
    "zcdp[add-remove]", "approximate-dp[add-remove]", "gdp[add-remove]",
)  # fmt: skip
NOISY = labels("noisy-answers")
RECORD = NOISY | labels(
    "dp[swap]", "indistinguishable", "breach[record]", "amplification", "delta-T[record]",
    "zcdp[swap]", "approximate-dp[swap]", "gdp[swap]",
)  # fmt: skip
BELIEFS = PRESENCE | RECORD | labels("s-breach")
CLASSES = labels("k", "l", "t", "semantic")


@dataclass(frozen=True)
class Refusal(Record):
    """No guarantee of the sources implies one of the targets."""

    json_keys = ("targets", "reason", "counterexample")

    name: str
    sources: frozenset[str]
    targets: frozenset[str]
    reason: str
    counterexample: str


REFUSALS = (
    Refusal(
        "number-of-rows", RECORD | labels("s-breach"), PRESENCE,
        "exchanging one record for another never changes the number of rows, so it may be "
        "disclosed exactly; then a record that is added shows",
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
        "a small distance allows a rare value to become many times as frequent, or to vanish",
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


# ---------------------------------------------------------------------- what follows


THEOREMS: tuple[Theorem, ...] = BELIEF_THEOREMS + ANSWER_THEOREMS + CLASS_THEOREMS
NOTICEABLE = 1e-9
"""Relative difference below which two numbers are the same up to rounding."""


@dataclass(frozen=True)
class ConversionStep(Record):
    """A theorem as it was used: from what, to what."""

    json_keys = (
        "guarantee=conclusion", "theorem=theorem.cite", "formula=theorem.formula",
        "tight=theorem.tight", "condition=theorem.condition",
    )  # fmt: skip

    source: Guarantee
    theorem: Theorem
    conclusion: Guarantee


@dataclass(frozen=True)
class Conversion(Record):
    """A guarantee that follows from another, with the theorems that lead there."""

    json_keys = (
        "guarantee", "theorem", "tight", "condition", "printed", "steps", "explain=explanation",
    )  # fmt: skip

    source: Guarantee
    guarantee: Guarantee
    steps: tuple[ConversionStep, ...]

    @property
    def theorem(self) -> str:
        """The theorems that lead to the conclusion, in their order."""
        if not self.steps:
            return "it is the same statement"
        return "; then ".join(step.theorem.cite for step in self.steps)

    @property
    def condition(self) -> str:
        """What the theorems presuppose, each condition once."""
        conditions = dict.fromkeys(s.theorem.condition for s in self.steps if s.theorem.condition)
        return "; ".join(conditions)

    @property
    def tight(self) -> bool:
        """Whether nothing stronger of this kind follows.

        A tight theorem stays so among equivalences; of two in a row nothing is known.
        """
        inexact = [step for step in self.steps if not step.theorem.equivalent]
        return len(inexact) <= 1 and all(step.theorem.tight for step in self.steps)

    @property
    def printed(self) -> list[PrintedConstant]:
        """The looser constants that papers print for these steps."""
        return [one for step in self.steps for one in step.theorem.printed(step.source)]

    @property
    def explanation(self) -> str:
        """The conclusion in plain words."""
        return self.guarantee.explain()


@dataclass(frozen=True)
class OpenTheorem(Record):
    """A theorem that waits for parameters to be chosen."""

    target: str
    needs: tuple[str, ...]
    theorem: str


@dataclass(frozen=True)
class Consequences(Record):
    """All that follows from a guarantee, what would with a choice, and what does not."""

    json_keys = (
        "from=source", "explain=explanation", "follows", "open", "does_not_follow=refused",
    )  # fmt: skip

    source: Guarantee
    follows: tuple[Conversion, ...]
    open: tuple[OpenTheorem, ...]
    refused: tuple[Refusal, ...]

    @property
    def explanation(self) -> str:
        """The source in plain words."""
        return self.source.explain()


class ConversionSearch:
    """Every guarantee that theorems lead to, the strongest of each label.

    Breadth first, so that of equally strong ways the shortest is kept.
    """

    def __init__(self, source: Guarantee, target: Target | None = None) -> None:
        self.source = source
        self.target = target
        self.found: dict[str, Conversion] = {source.label: Conversion(source, source, ())}
        self.missing: dict[str, OpenTheorem] = {}
        self.empty: dict[str, NothingFollows] = {}
        self._spread()

    def _spread(self) -> None:
        waiting = deque(self.found)
        while waiting:
            here = waiting.popleft()
            for theorem in THEOREMS:
                if theorem.source == here and self._use(theorem, self.found[here]):
                    waiting.append(theorem.target)

    def _use(self, theorem: Theorem, known: Conversion) -> bool:
        """Add what the theorem gives; whether that is new, or stronger than before."""
        wanted = self._wanted(theorem)
        lacking = tuple(name for name in theorem.needs if name not in wanted)
        if lacking:
            waits = OpenTheorem(theorem.target, lacking, theorem.cite)
            self.missing.setdefault(theorem.target, waits)
            return False
        try:
            conclusion = theorem.derive(known.guarantee, wanted)
        except NothingFollows as nothing:
            self.empty.setdefault(theorem.target, nothing)
            return False
        steps = (*known.steps, ConversionStep(known.guarantee, theorem, conclusion))
        new = Conversion(self.source, conclusion, steps)
        before = self.found.get(theorem.target)
        if before and not self._better(new, before):
            return False
        self.found[theorem.target] = new
        return True

    def _wanted(self, theorem: Theorem) -> dict[str, Any]:
        """The target's parameters as far as they concern this theorem's conclusion."""
        if self.target is None:
            return {}
        if theorem.target in self.target.labels:
            return self.target.fixed
        return {n: self.target.fixed[n] for n in theorem.needs if n in self.target.fixed}

    def _better(self, new: Conversion, old: Conversion) -> bool:
        """With the parameters that are wanted at last; else stronger by more than rounding.

        Of equally strong ones the one that is known to be tight.
        """
        kind = type(new.guarantee)
        if self.target and new.guarantee.label in self.target.labels:
            fits = [c.guarantee.at_least(self.target.choices) for c in (new, old)]
            if fits[0] != fits[1]:
                return fits[0]
        has, had = new.guarantee.values, old.guarantee.values
        if any(has[name] != had[name] for name in has if name not in kind.claims):
            return False
        sign = 1 if kind.larger_is_stronger else -1
        gains = [sign * (has[n] - had[n]) / (abs(had[n]) or 1) for n in kind.claims]
        if all(abs(gain) < NOTICEABLE for gain in gains):
            return new.tight and not old.tight
        return all(gain > -NOTICEABLE for gain in gains)


def convert(source: Guarantee, target: Target) -> Conversion:
    """The strongest guarantee of the target's kind that follows, or an error that says why not.

    A word that the target leaves open is the one against the source's adversaries, if that
    follows, else the default.
    """
    search = ConversionSearch(source, target)
    reached = [
        search.found[name]
        for name in target.labels
        if name in search.found and search.found[name].guarantee.at_least(target.choices)
    ]
    reached.sort(key=lambda conversion: conversion.guarantee.adversary != source.adversary)
    for conversion in reached:
        settled = Target(target.kind, {**_chosen(conversion.guarantee), **target.fixed})
        if settled.fixed != target.fixed:
            # What was left open is now known: theorems that wait for it may give more.
            return convert(source, settled)
        if conversion.guarantee.at_least(target.fixed):
            return conversion
    if reached:
        raise PromiseError(
            f"{target} does not follow from {spelled(source)}; what follows is "
            f"{spelled(reached[0].guarantee, digits=6)}",
            hint="request that, or a weaker one"
            if reached[0].tight
            else "it may hold, but no theorem here shows it",
        )
    raise _why_not(search, source, target)


def _chosen(guarantee: Guarantee) -> dict[str, Any]:
    """A guarantee's parameters that are not claims of strength."""
    return {name: v for name, v in guarantee.values.items() if name not in guarantee.claims}


def _why_not(search: ConversionSearch, source: Guarantee, target: Target) -> VoileError:
    refused = next(filter(None, (refusal(source.label, name) for name in target.labels)), None)
    lacking = _lacking(search, target)
    empty = next((search.empty[name] for name in target.labels if name in search.empty), None)
    open_ = [name for name in target.labels if refusal(source.label, name) is None]
    if not (empty or lacking):
        empty = _dead_end(search, open_)
    text = f"{target} follows from {spelled(source)}"
    if empty:
        return PromiseError(f"no {text}: {empty.reason}", hint=empty.hint)
    if refused:
        return PromiseError(
            f"no {text}: {refused.reason}", hint=f"counterexample: {refused.counterexample}"
        )
    if lacking:
        given = {**dict.fromkeys(lacking, "…"), **target.fixed}
        parameters = ", ".join(f"{name}={plain(value)}" for name, value in given.items())
        return UsageError(
            f"{text} for every {' and '.join(lacking)}: say which",
            hint=option("target", f"{target.kind.kind}({parameters})", flag="--to"),
        )
    return PromiseError(
        f"no theorem leads from {spelled(source)} to {target}",
        hint=f'see all that follows: voile convert "{example(type(source))}"',
    )


def _dead_end(search: ConversionSearch, targets: Sequence[str]) -> NothingFollows | None:
    """Why the way ended that would have led to one of the targets."""
    for name, nothing in search.empty.items():
        reached, waiting = {name}, [name]
        while waiting:
            here = waiting.pop()
            found = {t.target for t in THEOREMS if t.source == here} - reached
            reached |= found
            waiting += found
        if name not in search.found and reached & set(targets):
            return nothing
    return None


def _lacking(search: ConversionSearch, target: Target) -> list[str]:
    """Parameters of the target's kind that some theorem on the way waits for."""
    waiting = [waits.needs for waits in search.missing.values()]
    waiting += [theorem.needs for theorem in THEOREMS if theorem.target in target.labels]
    names = dict.fromkeys(name for needs in waiting for name in needs)
    return [n for n in target.kind.parameters if n in names and n not in target.fixed]


def consequences(source: Guarantee) -> Consequences:
    """Everything that follows from a guarantee, and what is known not to."""
    search = ConversionSearch(source)
    start = source.label
    follows = tuple(
        convert(source, Target(type(c.guarantee), _chosen(c.guarantee)))
        for c in search.found.values()
        if c.steps
    )
    waiting = tuple(
        open_
        for open_ in search.missing.values()
        if open_.target not in search.found or open_.target == start
    )
    refused = tuple(r for r in REFUSALS if start in r.sources)
    return Consequences(source, follows, waiting, refused)
