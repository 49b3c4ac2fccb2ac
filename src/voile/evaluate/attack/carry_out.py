"""An attack on a release: what someone who is after certain people learns about them.

Needs the release and what the adversary knows, never the private rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import yaml

from voile.arrays import Bools, Floats, Ints
from voile.errors import ReleaseError, UsageError, did_you_mean, spelled
from voile.evaluate.attack.beliefs import (
    KINDS,
    NOTHING,
    Attack,
    Belief,
    Guess,
    Kind,
    Person,
    Tally,
    promised,
)
from voile.evaluate.attack.priors import (
    Prior,
    choose_prior,
    is_release,
    row_weights,
    target_chances,
)
from voile.evaluate.attack.targets import (
    MOST_CANDIDATES,
    SpelledValues,
    Targets,
    read_targets,
)
from voile.kinds.views.release import ViewRelease
from voile.privacy import DGamma
from voile.privacy.adversary import Adversary, Evidence, Exclusive, Independent, Joint, Leaks, leaks
from voile.progress import Progress, Silent

# ----------------------------------------------------------------------
# a belief after the view: posteriors, and what the promise says of them


KEPT = 5
"""Of a person with many candidates: so many of the most believed, and of the most refuted."""


@dataclass(frozen=True)
class Case:
    """Tuples that one belief is about; `names` has one name for all of them, or one for each."""

    names: tuple[str, ...]
    kind: Kind
    codes: tuple[Ints, ...]
    adversary: Adversary

    def __len__(self) -> int:
        return len(self.codes[0])

    @property
    def is_person(self) -> bool:
        """Whether all tuples are candidates for one person."""
        return len(self.names) == 1 and len(self) > 1


@dataclass(frozen=True)
class CaseJudgement:
    """A case after the view: posteriors, and what the promise says of them."""

    case: Case
    seen: npt.NDArray[Any]
    evidence: Evidence
    promise: DGamma
    spelt: SpelledValues
    protected: Floats
    """The largest prior that the promise covers, for each tuple."""

    @cached_property
    def prior(self) -> Floats:
        """Beliefs before the view, for each tuple."""
        return self.case.adversary.priors

    @cached_property
    def posterior(self) -> Floats:
        """Beliefs after the view; refused where the view is impossible under the prior."""
        found = self.case.adversary.posteriors(self.evidence)
        wrong = np.flatnonzero(np.isnan(found) | np.isnan(self.prior))
        if len(wrong):
            name = self.case.names[int(wrong[0]) if len(self.case.names) > 1 else 0]
            raise ReleaseError(
                f"what the view shows is impossible under what is believed of {name}",
                hint="the prior excludes what was published, or the release is not sound: "
                "try `voile verify` on it",
            )
        return found

    @cached_property
    def leaks(self) -> Leaks:
        """Which beliefs the promise covers, and which leaked."""
        return leaks(self.promise, self.prior, self.posterior, self.protected)

    @property
    def tally(self) -> Tally:
        """How many beliefs there are of each sort."""
        found = self.leaks
        positive, negative = promised(self.promise, self.case.kind)
        broken = found.positive & positive | found.negative & negative
        sums = (found.covered, found.above, found.positive, found.negative, broken)
        return Tally(len(self.case), *(int(which.sum()) for which in sums))

    def kept(self) -> list[Belief]:
        """All beliefs, or of many candidates the most believed and the most refuted."""
        if not self.case.is_person:
            return self.beliefs(np.arange(len(self.case)))
        with np.errstate(divide="ignore", invalid="ignore"):
            gain = np.where(self.prior > 0, self.posterior / self.prior, 1.0)
        strongest = np.argsort(-self.posterior, kind="stable")[:KEPT]
        refuted = np.argsort(gain, kind="stable")[:KEPT]
        refuted = refuted[self.leaks.negative[refuted]]
        return self.beliefs(np.unique(np.concatenate([strongest, refuted])))

    @cached_property
    def guessed(self) -> tuple[str, ...]:
        """The attributes in which a person's candidates differ."""
        if not self.case.is_person:
            return ()
        columns = zip(self.spelt.schema.names, self.case.codes, strict=True)
        return tuple(name for name, column in columns if (column != column[0]).any())

    def beliefs(self, which: npt.NDArray[Any]) -> list[Belief]:
        """The chosen tuples, each with its belief before and after."""
        tuples = self.spelt.tuples([column[which] for column in self.case.codes])
        names = self.case.names
        found = self.leaks
        return [
            Belief(
                name=names[i] if len(names) > 1 else names[0],
                adversary=self.case.kind,
                values=value,
                seen=self.seen[i].tolist(),
                prior=float(self.prior[i]),
                posterior=float(self.posterior[i]),
                covered=bool(found.covered[i]),
                positive_leak=bool(found.positive[i]),
                negative_leak=bool(found.negative[i]),
                words=self.words(texts),
            )
            for i, (value, texts) in zip(which.tolist(), tuples, strict=True)
        ]

    def words(self, texts: dict[str, str]) -> str:
        """A tuple as a line of text: what was guessed of it, or all its values."""
        if self.guessed:
            return ", ".join(f"{name} {texts[name]}" for name in self.guessed)
        return ", ".join(texts.values())

    def person(self) -> Person:
        """The person of this case, with the best guess."""
        best = self.beliefs(np.array([int(np.argmax(self.posterior))]))[0]
        tally = self.tally
        return Person(
            name=self.case.names[0],
            adversary=self.case.kind,
            candidates=len(self.case),
            best=best,
            guesses=self.guesses() if self.case.kind == "exclusive" else (),
            positive_leaks=tally.positive_leaks,
            negative_leaks=tally.negative_leaks,
        )

    def guesses(self) -> tuple[Guess, ...]:
        """For each unknown attribute, the value that is now believed most."""
        found = []
        for j, (name, column) in enumerate(
            zip(self.spelt.schema.names, self.case.codes, strict=True)
        ):
            if name not in self.guessed:
                continue
            values, where = different(column)
            after = np.bincount(where, self.posterior)
            best = int(np.argmax(after))
            before = float(np.bincount(where, self.prior)[best])
            value, text = self.spelt.column(j, values[best : best + 1])[0]
            found.append(Guess(name, value, text, before, float(after[best])))
        return tuple(found)


def different(codes: Ints) -> tuple[Ints, Ints]:
    """Values in their order and, for each code, the place of its value; some may not occur."""
    low, high = int(codes.min()), int(codes.max())
    if high - low > 4 * len(codes):
        values, where = np.unique(codes, return_inverse=True)
        return values, np.asarray(where, np.int64)
    return np.arange(low, high + 1), codes - low


# ----------------------------------------------------------------------
# beliefs about named people together, read from a small file
#     brothers:
#       - {in: [Joe, Jim], chance: 0.0004}
#       - {in: [Joe], chance: 0.00005}
#       - {in: [Jim], chance: 0.00005}
#
# Each group lists who of it is in the table, with what chance. What is left to 1 is the chance that
# none of the group is. Groups have nothing to do with one another.


SHAPE = "write   brothers: [{in: [Joe, Jim], chance: 0.0004}, {in: [Joe], chance: 0.0001}]"


@dataclass(frozen=True)
class JointGroup:
    """People whose records are correlated; memberships and chances as in Joint."""

    name: str
    people: tuple[str, ...]
    memberships: Bools
    chances: Floats

    def joint(self, places: npt.NDArray[np.int64]) -> Joint:
        """The adversary's beliefs about the people at these places."""
        return Joint(self.memberships, self.chances, places)


def read_groups(source: object, known: list[str]) -> tuple[JointGroup, ...]:
    """The groups of a YAML or JSON file, or of the same as a mapping; `known` are the targets."""
    data = source if isinstance(source, Mapping) else read_yaml(Path(str(source)))
    if not isinstance(data, Mapping) or not data:
        raise UsageError("the joint beliefs are not groups by name", hint=SHAPE)
    groups = tuple(read_group(str(name), entries, known) for name, entries in data.items())
    listed = [person for group in groups for person in group.people]
    if len(set(listed)) < len(listed):
        twice = next(p for p in listed if listed.count(p) > 1)
        raise UsageError(f"{twice!r} is in two groups", hint="make one group of the two")
    return groups


def read_yaml(path: Path) -> Any:
    """The content of a YAML file."""
    try:
        return yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"cannot read {str(path)!r}: {error.strerror}", hint=SHAPE) from None
    except (yaml.YAMLError, UnicodeDecodeError):
        raise UsageError(f"{str(path)!r} is neither YAML nor JSON", hint=SHAPE) from None


def read_group(name: str, entries: Any, known: list[str]) -> JointGroup:
    """A group from its list of memberships."""
    if not isinstance(entries, list) or not entries:
        raise UsageError(f"group {name!r} is not a list of beliefs", hint=SHAPE)
    outcomes: dict[frozenset[str], float] = {}
    for entry in entries:
        members, chance = read_entry(name, entry, known)
        if members in outcomes:
            who = ", ".join(sorted(members)) or "nobody"
            raise UsageError(f"group {name!r} gives two chances for {who}", hint="add them up")
        outcomes[members] = chance
    total = sum(outcomes.values())
    if total > 1 + 1e-9:
        raise UsageError(f"the chances of group {name!r} add up to {total:g}", hint="at most to 1")
    nobody = frozenset[str]()
    outcomes[nobody] = outcomes.get(nobody, 0.0) + max(0.0, 1 - total)
    people = tuple(p for p in known if any(p in members for members in outcomes))
    rows = [[person in members for person in people] for members in outcomes]
    return JointGroup(name, people, np.array(rows, np.bool_), np.array(list(outcomes.values())))


def read_entry(group: str, entry: Any, known: list[str]) -> tuple[frozenset[str], float]:
    """Who of a group is in the table, with which chance."""
    if not isinstance(entry, Mapping) or set(entry) != {"in", "chance"}:
        raise UsageError(f"group {group!r}: {entry!r} has not the keys in and chance", hint=SHAPE)
    members, chance = entry["in"], entry["chance"]
    if not isinstance(members, list):
        raise UsageError(f"group {group!r}: in is {members!r}, not a list of names", hint=SHAPE)
    for person in map(str, members):
        if person not in known:
            raise UsageError(
                f"group {group!r} names {person!r}, who is not among the targets",
                hint=did_you_mean(person, known),
            )
    is_number = isinstance(chance, int | float) and not isinstance(chance, bool)
    if not is_number or not 0 <= chance <= 1:
        raise UsageError(
            f"group {group!r}: chance {chance!r} is no probability",
            hint="write it as a number from 0 to 1, such as 0.0004 or 4.0e-4",
        )
    return frozenset(map(str, members)), float(chance)


# ----------------------------------------------------------------------
# an attack on a release: what someone who is after certain people learns about them
# Needs the release and what the adversary knows, never the private rows.


def attack(
    release: ViewRelease,
    targets: object,
    *,
    prior: str | float = "uniform",
    model: object | None = None,
    adversary: str | None = None,
    joint: object | None = None,
    name: str | None = None,
    others: int = 0,
    bounded: bool = False,
    since: int | None = None,
    progress: Progress | None = None,
) -> Attack:
    """What an adversary who is after these people learns from the release.

    `targets` is a table (see targets.py). Without `adversary`, someone all of whose values are
    given is judged by an independent one, and someone with unknown values by one who knows that
    exactly one of the possible tuples is theirs. `joint` (see joint.py) gives correlations.
    Of a series all views are evidence; the records are taken to have been in the table from the
    view `since` on. `progress` hears how many targets are judged.
    """
    check_words(adversary, joint, others)
    first = first_view(release, since)
    whom = targets if isinstance(targets, Targets) else None
    whom = whom or read_targets(targets, release.schema, name=name)
    believed = choose_prior(prior, release, model=model, bounded=bounded)
    groups = read_groups(joint, list(whom.names)) if joint is not None else ()
    beliefs: list[Belief] = []
    people: list[Person] = []
    tally = NOTHING
    spelt = SpelledValues(release.schema)
    found = cases(whom, believed, adversary, groups, others)
    watched = progress or Silent()
    watched.start("judging targets", len(whom))
    for case, seen, evidence in looked_up(release, found, first):
        protected = release.protected_priors(case.codes)
        judged = CaseJudgement(case, seen, evidence, release.promise, spelt, protected)
        tally += judged.tally
        beliefs += judged.kept()
        people += [judged.person()] if case.is_person else []
        watched.advance(len(case.names))
    return Attack(
        release=release,
        prior=beliefs_in_words(believed, whom, {belief.adversary for belief in beliefs}),
        others=others,
        beliefs=tuple(sorted(beliefs, key=lambda belief: belief.rank)),
        people=tuple(sorted(people, key=lambda person: person.best.rank)),
        tally=tally,
        publishable=model is None or is_release(model),
        since=first,
    )


def first_view(release: ViewRelease, since: int | None) -> int | None:
    """The view of a series from which on records are there; None where there is no series."""
    histories = release.histories
    if histories is None:
        if since is not None:
            raise UsageError(
                f"{spelled('since', since)}, but {release.name!r} is one view, not a series",
                hint="leave it out",
            )
        return None
    if since is not None and not 1 <= since <= histories.view:
        raise UsageError(
            f"{spelled('since', since)} is no view of this series",
            hint=f"use 1 to {histories.view}",
        )
    return since or 1


def beliefs_in_words(prior: Prior, targets: Targets, kinds: set[Kind]) -> str:
    """What the adversary believed beforehand, by what is believed of whom."""
    words = [prior.words] * ("independent" in kinds)
    if "exclusive" in kinds:
        words.append(f"of people with unknown values {prior.words_of_candidates}")
    if "correlated" in kinds:
        words.append("of people together what the joint beliefs say")
    if targets.priors is not None:
        words.append("or as the targets say (a person's weights are made to add up to 1)")
    return "; ".join(words)


def check_words(adversary: str | None, joint: object | None, others: int) -> None:
    """Refuse unknown adversaries, and options that exclude each other."""
    if adversary is not None and adversary not in KINDS:
        raise UsageError(f"adversary {adversary!r} is not known", hint=f"use {', '.join(KINDS)}")
    if adversary == "correlated" and joint is None:
        raise UsageError(
            "a correlated adversary needs beliefs about people together",
            hint=f"{spelled('joint', 'joint.yaml')}; see docs/guides/attacks.md",
        )
    if adversary in ("independent", "exclusive") and joint is not None:
        raise UsageError(
            f"joint beliefs were given, but the adversary is {adversary}",
            hint=f"use {spelled('adversary', 'correlated')}, or leave it out",
        )
    if others < 0:
        raise UsageError(f"others {others} is negative", hint="it is a number of records")


def cases(
    targets: Targets, prior: Prior, kind: str | None, groups: Sequence[JointGroup], others: int
) -> Iterator[Case]:
    """Everyone by the belief that is held of them."""
    grouped = {person for group in groups for person in group.people}
    complete = targets.is_complete()
    for group in groups:
        yield correlated_case(targets, group, complete)
    alone: list[int] = []
    for name, rows in targets.people():
        if name in grouped:
            continue
        if len(rows) == 1 and complete[rows[0]] and kind != "exclusive":
            alone += rows
        elif kind == "independent":
            yield from (independent_case(targets, prior, row, others) for row in rows)
        else:
            yield exclusive_case(targets, prior, name, rows, others)
    if alone:
        asked = tuple(column[alone] for column in targets.codes)
        known = Independent(target_chances(prior, targets, alone), others)
        yield Case(tuple(targets.names[i] for i in alone), "independent", asked, known)


def correlated_case(targets: Targets, group: JointGroup, complete: npt.NDArray[np.bool_]) -> Case:
    """The tuples of a group of people whose records are correlated."""
    rows = [targets.names.index(person) for person in group.people]
    for person, row in zip(group.people, rows, strict=True):
        if not complete[row] or targets.names.count(person) > 1:
            raise UsageError(
                f"{person!r} of group {group.name!r} is not one complete row of the targets",
                hint="joint beliefs are about records of which every value is given",
            )
    codes = tuple(column[rows] for column in targets.codes)
    places = np.unique(np.stack(codes), axis=1, return_inverse=True)[1].ravel()
    first = np.array([int(np.flatnonzero(places == place)[0]) for place in places])
    return Case(group.people, "correlated", codes, group.joint(first))


def independent_case(targets: Targets, prior: Prior, row: int, others: int) -> Case:
    """One tuple, judged by itself."""
    if targets.priors is not None and not np.isnan(targets.priors[row]):
        raise UsageError(
            f"{targets.names[row]} has a prior and unknown values",
            hint="give the values, or leave the prior out, or use "
            f"{spelled('adversary', 'exclusive')}",
        )
    codes = targets.candidates(row)
    return Case(
        (targets.names[row],), "independent", codes, Independent(prior.chances(codes), others)
    )


def exclusive_case(
    targets: Targets, prior: Prior, name: str, rows: Sequence[int], others: int
) -> Case:
    """All tuples that agree with one of a person's rows; exactly one of them is theirs."""
    parts = [targets.candidates(row) for row in rows]
    weights = [prior.log_weights(part) for part in parts]
    own = row_weights(targets, rows)
    if own is not None and len(rows) == 1:
        raise UsageError(
            f"{name} has a prior and unknown values, in one row",
            hint="exactly one of the candidates is taken to be real, so that the row as a whole "
            "is sure: leave the prior out, or give several rows with weights",
        )
    if own is not None:
        # A row's candidates share what is believed of the row.
        weights = [
            part - np.logaddexp.reduce(part) + total
            for part, total in zip(weights, own, strict=True)
        ]
    codes = tuple(np.concatenate(columns) for columns in zip(*parts, strict=True))
    if len(codes[0]) == 1:
        raise UsageError(
            f"{name} has one complete row, and so only one candidate",
            hint="leave what is not known empty, or give several rows with the same "
            f"{spelled('name')}; "
            f"a complete row is for {spelled('adversary', 'independent')}",
        )
    if len(rows) > 1 and np.unique(np.stack(codes), axis=1).shape[1] < len(codes[0]):
        raise UsageError(f"two rows of {name} allow the same tuple", hint="make them different")
    return Case((name,), "exclusive", codes, Exclusive(np.concatenate(weights), others))


def looked_up(
    release: ViewRelease, found: Iterator[Case], since: int | None
) -> Iterator[tuple[Case, npt.NDArray[Any], Evidence]]:
    """Each case with what the view shows of its tuples, many cases at a time."""
    for batch in batches(found):
        codes = [np.concatenate(columns) for columns in zip(*(c.codes for c in batch), strict=True)]
        seen = release.seen(codes)
        whole = release.evidence(codes, seen, since=since or 1)
        known: dict[int, Floats] = {}
        first = 0
        for case in batch:
            own = slice(first, first + len(case))
            yield case, seen[own], remembered(whole, known, own)
            first += len(case)


def batches(found: Iterator[Case]) -> Iterator[list[Case]]:
    """Cases together, so that the view is searched for many tuples at once."""
    held: list[Case] = []
    tuples = 0
    for case in found:
        if held and tuples + len(case) > MOST_CANDIDATES:
            yield held
            held, tuples = [], 0
        held.append(case)
        tuples += len(case)
    if held:
        yield held


def remembered(whole: Evidence, known: dict[int, Floats], own: slice) -> Evidence:
    """A part of the evidence; what was computed for all cases is not computed again for each."""

    def evidence(records: int) -> Floats:
        if records not in known:
            known[records] = whole(records)
        found: Floats = known[records][own]
        return found

    return evidence
