"""Questions that mean the same have one key, however they are written.

A condition on few columns is what it is on each tuple of their domain: its truth, not its text.
So `age > 30`, `not age <= 30` and `30 < age` are one, and `age >= 31` too where ages are whole.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from voile.engines.lookups import Lookup, Tree
from voile.query.predicate import And, Atom, Expression, Or, Predicate

Truth = npt.NDArray[np.bool_]
Truths = Callable[[Atom], Truth]
TRUE, FALSE = "true", "false"


def digest(value: Any) -> str:
    """SHA-256, in hex, of canonical JSON."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def simplified(predicate: Predicate, truth: Truths) -> Tree:
    """Conditions on the same columns become one; And in And and Or in Or are flat."""
    if isinstance(predicate, Atom):
        return Lookup(predicate.attributes, truth(predicate))
    kind = And if isinstance(predicate, And) else Or
    join = np.logical_and if kind is And else np.logical_or
    known: dict[tuple[str, ...], Truth] = {}
    parts: list[Tree] = []
    for part in flat(kind, [simplified(p, truth) for p in predicate.parts]):
        if isinstance(part, And | Or):
            parts.append(part)
        elif part.attributes in known:
            known[part.attributes] = join(known[part.attributes], part.table)
        else:
            known[part.attributes] = part.table
    parts += [Lookup(names, found) for names, found in known.items()]
    return parts[0] if len(parts) == 1 else kind(tuple(parts))


def flat(kind: type[And[Any] | Or[Any]], parts: Iterable[Tree]) -> Iterable[Tree]:
    for part in parts:
        if isinstance(part, kind):
            yield from part.parts
        else:
            yield part


def canonical_form(tree: Tree | None) -> Any:
    """A condition as what it is true of, in one order: JSON that equal conditions share."""
    if tree is None:
        return TRUE
    if isinstance(tree, Lookup):
        return canonical_lookup(tree)
    word, neutral, decisive = ("and", TRUE, FALSE) if isinstance(tree, And) else ("or", FALSE, TRUE)
    inner = {json.dumps(one, ensure_ascii=False): one for one in map(canonical_form, tree.parts)}
    listed = [value for _, value in sorted(inner.items()) if value != neutral]
    if decisive in listed:
        return decisive
    if len(listed) < 2:
        return listed[0] if listed else neutral
    return {word: listed}


def canonical_lookup(lookup: Lookup) -> Any:
    if lookup.table.all():
        return TRUE
    if not lookup.table.any():
        return FALSE
    shown = hashlib.sha256(np.packbits(lookup.table).tobytes()).hexdigest()
    return [*lookup.attributes, shown]


def meaning_of_values(
    values: Iterable[Expression], numbers: Iterable[npt.NDArray[np.float64]]
) -> list[Any]:
    """What is summed, as numbers on each tuple of its columns' domain."""
    found = []
    for value, number in zip(values, numbers, strict=True):
        shown = np.ascontiguousarray(number + 0.0)  # one zero of two
        found.append([*value.attributes, hashlib.sha256(shown.tobytes()).hexdigest()])
    return sorted(found)
