"""What an analyst should know about an answer, whatever it was made from."""

from __future__ import annotations

from typing import Any

from voile.engines.rows import PublicDomain
from voile.errors import VoileError
from voile.query.predicate import Expression, wording
from voile.query.query import Query

NO_TUPLE = "no tuple of the public domain satisfies the condition"
NO_COLUMN = "the condition reads no column; names go in double quotes, text in single"
HAVING = "HAVING compares estimates: a group near the limit may be on its wrong side"


def query_notes(query: Query) -> list[str]:
    """What the query itself gives reason to say."""
    reads_nothing = query.atoms and not any(atom.attributes for atom in query.atoms)
    return [*query.remarks, *([NO_COLUMN] if reads_nothing else [])]


def having_notes(query: Query) -> list[str]:
    return [HAVING] if query.having else []


def bin_notes(query: Query, engine: PublicDomain) -> list[str]:
    """Where it matters that numbers are known by the middles of their bins only."""

    def differs(part: Expression) -> bool:
        try:
            return engine.cuts_a_bin(part)
        except VoileError:  # what cannot be computed at the ends of bins: only a note is lost
            return False

    notes = list[str]()
    made = [g for g in query.groups if not g.is_column]  # a bin is a fine group
    read: list[Any] = [*query.conditions, *made]
    if cut := [wording(e) for e in read if differs(e)]:
        notes.append(f"{' and '.join(cut)} cuts inside a bin: rows count by the middle of "
                     "theirs, and the interval does not cover that; cut at the edges of the "
                     "schema's bins, with >= and <")  # fmt: skip
    if known := [wording(e) for e in query.values if differs(e)]:
        notes.append(f"{' and '.join(known)} is computed from the middles of bins, and the "
                     "interval does not cover that")  # fmt: skip
    return notes


def at_once(covers: str, groups: str) -> str:
    """What intervals cover that hold for all groups together."""
    return covers.replace("the statistic", f"all {groups} at once: the statistics", 1)


def plural(count: int, what: str) -> str:
    return f"{count:,} {what}" if count == 1 else f"{count:,} {what}s"
