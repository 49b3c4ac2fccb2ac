"""Beliefs about named people together, read from a small file.

    brothers:
      - {in: [Joe, Jim], chance: 0.0004}
      - {in: [Joe], chance: 0.00005}
      - {in: [Jim], chance: 0.00005}

Each group lists who of it is in the table, with what chance. What is left to 1 is the chance that
none of the group is. Groups have nothing to do with one another.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import yaml

from voile.arrays import Bools, Floats
from voile.errors import UsageError, did_you_mean
from voile.privacy.adversary import Joint

SHAPE = "write   brothers: [{in: [Joe, Jim], chance: 0.0004}, {in: [Joe], chance: 0.0001}]"


@dataclass(frozen=True)
class Group:
    """People whose records hang together; memberships and chances as in Joint."""

    name: str
    people: tuple[str, ...]
    memberships: Bools
    chances: Floats

    def joint(self, places: npt.NDArray[np.int64]) -> Joint:
        return Joint(self.memberships, self.chances, places)


def read_groups(source: object, known: list[str]) -> tuple[Group, ...]:
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
    try:
        return yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"cannot read {str(path)!r}: {error.strerror}", hint=SHAPE) from None
    except (yaml.YAMLError, UnicodeDecodeError):
        raise UsageError(f"{str(path)!r} is neither YAML nor JSON", hint=SHAPE) from None


def read_group(name: str, entries: Any, known: list[str]) -> Group:
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
    return Group(name, people, np.array(rows, np.bool_), np.array(list(outcomes.values())))


def read_entry(group: str, entry: Any, known: list[str]) -> tuple[frozenset[str], float]:
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
