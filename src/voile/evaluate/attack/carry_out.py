"""An attack on a release: what someone who is after certain people learns about them.

Needs the release and what the adversary knows, never the private rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from voile.arrays import Floats
from voile.errors import UsageError
from voile.evaluate.attack.attacked import Attack
from voile.evaluate.attack.beliefs import KINDS, NOTHING, Belief, Kind, Person
from voile.evaluate.attack.joint import Group, read_groups
from voile.evaluate.attack.judging import Case, Judged
from voile.evaluate.attack.population_fit import is_release
from voile.evaluate.attack.priors import Prior, choose_prior, row_weights, target_chances
from voile.evaluate.attack.targets import MOST_CANDIDATES, Targets, read_targets
from voile.kinds.views.release import ViewRelease
from voile.privacy.adversary import Evidence, Exclusive, Independent


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
    progress: Callable[[str, float], None] | None = None,
) -> Attack:
    """What an adversary who is after these people learns from the release.

    `targets` is a table (see targets.py). Without `adversary`, someone all of whose values are
    given is judged by an independent one, and someone with unknown values by one who knows that
    exactly one of the possible tuples is theirs. `joint` (see joint.py) gives correlations.
    Of a series all views are evidence; the records are taken to have been in the table from the
    view `since` on. `progress` is told what is done and how much of it.
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
    found = cases(whom, believed, adversary, groups, others)
    done = 0
    for case, seen, evidence in looked_up(release, found, first):
        protected = release.protected_priors(case.codes)
        judged = Judged(case, seen, evidence, release.promise, release.schema, protected)
        tally += judged.tally
        beliefs += judged.kept()
        people += [judged.person()] if case.is_person else []
        done += len(case.names)
        if progress:
            progress("judging targets", min(1.0, done / len(whom)))
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
                f"--since {since}, but {release.name!r} is one view, not a series",
                hint="leave it out",
            )
        return None
    if since is not None and not 1 <= since <= histories.view:
        raise UsageError(
            f"--since {since} is no view of this series", hint=f"use 1 to {histories.view}"
        )
    return since or 1


def beliefs_in_words(prior: Prior, targets: Targets, kinds: set[Kind]) -> str:
    """What the adversary believed beforehand, by what is believed of whom."""
    told = [prior.words] * ("independent" in kinds)
    if "exclusive" in kinds:
        told.append(f"of people with unknown values {prior.words_of_candidates}")
    if "correlated" in kinds:
        told.append("of people together what the joint beliefs say")
    if targets.priors is not None:
        told.append("or as the targets say (a person's weights are made to add up to 1)")
    return "; ".join(told)


def check_words(adversary: str | None, joint: object | None, others: int) -> None:
    if adversary is not None and adversary not in KINDS:
        raise UsageError(f"adversary {adversary!r} is not known", hint=f"use {', '.join(KINDS)}")
    if adversary == "correlated" and joint is None:
        raise UsageError(
            "a correlated adversary needs beliefs about people together",
            hint="--joint FILE; see docs/guides/attacks.md",
        )
    if adversary in ("independent", "exclusive") and joint is not None:
        raise UsageError(
            f"joint beliefs were given, but the adversary is {adversary}",
            hint="use --adversary correlated, or leave it out",
        )
    if others < 0:
        raise UsageError(f"others {others} is negative", hint="it is a number of records")


def cases(
    targets: Targets, prior: Prior, kind: str | None, groups: Sequence[Group], others: int
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


def correlated_case(targets: Targets, group: Group, complete: npt.NDArray[np.bool_]) -> Case:
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
    if targets.priors is not None and not np.isnan(targets.priors[row]):
        raise UsageError(
            f"{targets.names[row]} has a prior and unknown values",
            hint="give the values, or leave the prior out, or use --adversary exclusive",
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
            hint="leave what is not known empty, or give several rows with the same --name; "
            "a complete row is for --adversary independent",
        )
    if np.unique(np.stack(codes), axis=1).shape[1] < len(codes[0]):
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
    held: list[Case] = []
    for case in found:
        if held and sum(map(len, held)) + len(case) > MOST_CANDIDATES:
            yield held
            held = []
        held.append(case)
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
