"""Questions that mean the same have one key, however they are written.

A condition on few columns is what it is on each tuple of their domain: its truth, not its text.
So `age > 30`, `not age <= 30` and `30 < age` are one, and `age >= 31` too where ages are whole.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from voile.query.predicate import And, Atom, Expression, Predicate

Truth = npt.NDArray[np.bool_]
Truths = Callable[[Atom], Truth]
TRUE, FALSE = "true", "false"


def digest(value: Any) -> str:
    """SHA-256, in hex, of canonical JSON."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def meaning(predicate: Predicate | None, truth: Truths) -> Any:
    """A condition as what it is true of, in one order: JSON that equal conditions share."""
    return told(simplified(predicate, truth)) if predicate is not None else TRUE


class Known:
    """A condition on some columns, by its truth on each tuple of their domain."""

    def __init__(self, attributes: tuple[str, ...], truth: Truth) -> None:
        self.attributes, self.truth = attributes, truth

    def told(self) -> Any:
        if self.truth.all():
            return TRUE
        if not self.truth.any():
            return FALSE
        shown = hashlib.sha256(np.packbits(self.truth).tobytes()).hexdigest()
        return [*self.attributes, shown]


Simple = Known | tuple[str, list[Any]]


def simplified(predicate: Predicate, truth: Truths) -> Simple:
    """Conditions on the same columns become one; And in And and Or in Or are flat."""
    if isinstance(predicate, Atom):
        return Known(predicate.attributes, truth(predicate))
    word = "and" if isinstance(predicate, And) else "or"
    parts: list[Any] = []
    known: dict[tuple[str, ...], Truth] = {}
    for part in flat(word, [simplified(p, truth) for p in predicate.parts]):
        if not isinstance(part, Known):
            parts.append(part)
        elif part.attributes in known:
            join = np.logical_and if word == "and" else np.logical_or
            known[part.attributes] = join(known[part.attributes], part.truth)
        else:
            known[part.attributes] = part.truth
    parts += [Known(names, found) for names, found in known.items()]
    return parts[0] if len(parts) == 1 else (word, parts)


def flat(word: str, parts: Iterable[Simple]) -> Iterable[Simple]:
    for part in parts:
        if isinstance(part, tuple) and part[0] == word:
            yield from part[1]
        else:
            yield part


def told(found: Simple) -> Any:
    if isinstance(found, Known):
        return found.told()
    word, parts = found
    neutral, decisive = (TRUE, FALSE) if word == "and" else (FALSE, TRUE)
    inner = {json.dumps(told(part), ensure_ascii=False): told(part) for part in parts}
    listed = [value for _, value in sorted(inner.items()) if value != neutral]
    if decisive in listed:
        return decisive
    if len(listed) < 2:
        return listed[0] if listed else neutral
    return {word: listed}


def meaning_of_values(
    values: Iterable[Expression], numbers: Mapping[Expression, npt.NDArray[np.float64]]
) -> list[Any]:
    """What is summed, as numbers on each tuple of its columns' domain."""
    found = []
    for value in values:
        shown = np.ascontiguousarray(numbers[value] + 0.0)  # one zero of two
        found.append([*value.attributes, hashlib.sha256(shown.tobytes()).hexdigest()])
    return sorted(found)
