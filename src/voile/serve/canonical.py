"""Which questions are one question: by what they mean on the public domain, not by their words.

What a row adds to a total is a function of the row's tuple. Where all columns that a total reads
have at most `JOINT` tuples together, that function is computed on each of them, and its digest is
the total's key: two totals share a key exactly if every table has the same true total for both,
with the same noise. However a question is written then, it is charged once.

Beyond `JOINT`, conditions that read the same columns are still compared by their truth, and And and
Or in any order; but two conditions that are equal only through laws over more columns, as
`(a and b) or (a and c)` and `a and (b or c)`, are two questions, and both are charged. A key is
never shared by totals that differ.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from typing import Any

import numpy as np
import numpy.typing as npt

from voile.arrays import Bools
from voile.engines.lookups import Lookup, Tree
from voile.query.predicate import And, Atom, Expression, Or, Predicate, folded

Truth = npt.NDArray[np.bool_]
Truths = Callable[[Atom], Truth]
TRUE, FALSE = "true", "false"
JOINT = 2**20
"""Tuples on which a whole total is computed to compare it with others."""


def digest(value: Any) -> str:
    """SHA-256, in hex, of canonical JSON."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def in_words(predicate: Predicate) -> str:
    """A condition in the dialect of questions, as `as_node` has it, from how its atoms are written.

    Writing its whole tree again took one part in fifteen of the time to read a question.
    """
    if isinstance(predicate, Atom):
        return f"TRY({predicate.canonical})"
    if not predicate.parts:
        return "TRUE" if isinstance(predicate, And) else "FALSE"
    word = " AND " if isinstance(predicate, And) else " OR "
    return f"({word.join(map(in_words, predicate.parts))})"


# ---------------------------------------------------------------------- on all columns at once


@dataclass(frozen=True, eq=False)
class RowPart:
    """What a row adds to a total, on each tuple of all columns that the total reads."""

    columns: tuple[str, ...]
    sizes: tuple[int, ...]
    counted: Bools
    """Where a row counts: WHERE is true, and what is summed is not NULL."""
    parts: npt.NDArray[Any]
    """What it adds, 0 where it does not count; true and false where all add 1 or nothing."""

    @property
    def ends(self) -> tuple[float, float]:
        """Between which numbers the part of a row lies that counts."""
        some = self.parts[self.counted]
        return (float(some.min()), float(some.max())) if len(some) else (0.0, 0.0)

    @property
    def nothing(self) -> bool:
        """Whether no row adds anything."""
        return not self.parts.any()

    @property
    def one_each(self) -> bool:
        """Whether every row adds 1: the total is how many rows there are."""
        return bool((self.parts == 1).all())

    def meaning(self) -> list[str]:
        """The columns that matter, and a digest of the function of them."""
        parts = self.parts
        if parts.dtype != np.bool_:
            whole = (parts == 0) | (parts == 1)
            parts = parts == 1 if whole.all() else parts + 0.0  # one zero of two
        return function_digest(self.columns, parts.reshape(self.sizes))


def row_part(
    where: Tree | None, factors: Sequence[Lookup], sizes: Mapping[str, int]
) -> RowPart | None:
    """What a row adds, on the columns of its condition and of what is summed; None if too many."""
    read = {name for factor in factors for name in factor.attributes} | set(columns_of(where))
    columns = tuple(name for name in sizes if name in read)
    shape = tuple(sizes[name] for name in columns)
    if math.prod(shape) > JOINT:
        return None
    held = True if where is None else holding(where, columns, sizes)
    if not factors:
        counted = np.broadcast_to(held, shape).reshape(-1)
        return RowPart(columns, shape, counted, counted)
    product = reduce(np.multiply, (spread(factor, columns, sizes) for factor in factors))
    counts = np.broadcast_to(held & ~np.isnan(product), shape)
    parts = np.where(counts, product, 0.0)
    return RowPart(columns, shape, counts.reshape(-1), parts.reshape(-1))


def columns_of(tree: Tree | None) -> list[str]:
    """The columns that a condition reads."""
    if tree is None:
        return []
    return folded(tree, lambda leaf: list(leaf.attributes), joined, joined)


def joined(parts: Iterable[list[str]]) -> list[str]:
    """Lists as one list."""
    return [name for part in parts for name in part]


def spread(lookup: Lookup, columns: tuple[str, ...], sizes: Mapping[str, int]) -> npt.NDArray[Any]:
    """A table in the shape of more columns, 1 long where it does not depend on one."""
    own = tuple(sizes[name] if name in lookup.attributes else 1 for name in columns)
    return lookup.table.reshape(own)


def holding(tree: Tree, columns: tuple[str, ...], sizes: Mapping[str, int]) -> Bools:
    """Where a condition holds, in a shape that broadcasts to that of the columns."""

    def holds(leaf: Lookup) -> Bools:
        return np.asarray(spread(leaf, columns, sizes), dtype=np.bool_)

    every, some = partial(reduce, np.logical_and), partial(reduce, np.logical_or)
    return np.asarray(folded(tree, holds, every, some))


def function_digest(columns: Sequence[str], table: npt.NDArray[Any]) -> list[str]:
    """The columns that a function depends on, and a digest of it as a function of these."""
    kept = []
    for axis, name in reversed(list(enumerate(columns))):
        first = table.take([0], axis=axis)
        if (table == first).all():
            table = first.squeeze(axis)
        else:
            kept.append(name)
    packed = np.packbits(table) if table.dtype == np.bool_ else np.ascontiguousarray(table)
    return [*reversed(kept), hashlib.sha256(packed.tobytes()).hexdigest()]


def group_meaning(
    group: Expression, labels: npt.NDArray[np.int64], keys: Sequence[Any], sizes: Mapping[str, int]
) -> Any:
    """What groups are made by: each tuple's key, of which `labels` are the numbers."""
    if len(labels) > JOINT:
        return group.canonical
    shown, places = np.unique([str(key) for key in keys], return_inverse=True)
    if len(shown) < len(keys):  # NULL and 'None', or 1 and '1': only their order tells them apart
        return group.canonical
    shape = tuple(sizes[name] for name in group.attributes)
    return [*function_digest(group.attributes, places[labels].reshape(shape)), digest(list(shown))]


# ---------------------------------------------------------------------- condition by condition
# Where a total reads too many columns, and for ledgers that were begun before totals were compared.


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
    """The parts, with those of nested And (or Or) of the same kind in their place."""
    for part in parts:
        if isinstance(part, kind):
            yield from part.parts
        else:
            yield part


def canonical_form(tree: Tree | None) -> Any:
    """A condition by what its parts are true of, in one order.

    Conditions with the same form are equal. Not all that are equal have the same form: that
    conditions on different columns come to the same is not noticed (see `RowPart.meaning`).
    """
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
    """A table of truths as its columns and the digest of its bits, or as a constant."""
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
