"""Candidates: ways to publish that are kept to be compared, looked at and attacked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from voile.errors import UsageError
from voile.studio.calls import CLASS_METHODS
from voile.studio.pages import Visit
from voile.studio.project import KeptCandidate, now
from voile.studio.trying import described

MOST = 12
"""Candidates that are kept."""


def current(visit: Visit) -> KeptCandidate:
    """The project's own choice, as a candidate."""
    project = visit.project
    name = f"Your choice: {described(project.method, project.options)}"
    return KeptCandidate(name=name, method=project.method, options=project.options)


def every(visit: Visit) -> list[KeptCandidate]:
    """The choice and what is kept besides."""
    return [current(visit), *visit.project.candidates]


def picked(visit: Visit, place: str) -> KeptCandidate:
    """The candidate at a place of `every`; the choice itself where none is named."""
    found = every(visit)
    try:
        return found[int(place or 0)]
    except (ValueError, IndexError):
        raise UsageError("there is no such candidate", hint="choose one that is listed") from None


def remembered_place(visit: Visit, screen: str) -> int:
    """Which candidate a screen looks at, as long as it is there."""
    place = visit.open.remembered.get(f"{screen}.candidate", 0)
    return place if isinstance(place, int) and 0 <= place < len(every(visit)) else 0


def keep(visit: Visit, method: str, options: Mapping[str, Any], *, looked: bool) -> None:
    """Add a candidate, unless it is kept already."""
    kept = visit.project.candidates
    if any(one.method == method and one.options == dict(options) for one in kept):
        return
    if len(kept) >= MOST:
        raise UsageError(f"{MOST} candidates are kept already", hint="remove one of them")
    name = described(method, options)
    if recode := options.get("recode"):
        name += f" ({recode}d)" if recode.endswith("e") else f" ({recode})"
    looked = looked or bool(visit.project.looks)
    made = KeptCandidate(name=name, method=method, options=dict(options), after_looking=looked)
    made.at = now() if looked else None
    visit.change(candidates=[*kept, made])


def use(visit: Visit, place: int) -> None:
    """Make a candidate the project's choice, and say whether that followed a look."""
    found = visit.project.candidates
    if not 0 <= place < len(found):
        raise UsageError("there is no such candidate", hint="choose one that is listed")
    one = found[place]
    looked = one.after_looking or bool(visit.project.looks)
    at = one.at or (now() if looked and not one.after_looking else None)
    seen = one.model_copy(update={"after_looking": looked, "at": at})
    marked = [*found[:place], seen, *found[place + 1 :]]
    need = 4 if one.method in CLASS_METHODS else {"alphabeta": 5, "conjuncts": 3}.get(one.method, 6)
    visit.change(candidates=marked, method=one.method, options=one.options, need=need)


def place_of(visit: Visit) -> int:
    """The place that a form names."""
    try:
        return int(visit.form.get("candidate"))
    except ValueError:
        raise UsageError("there is no such candidate", hint="choose one that is listed") from None
