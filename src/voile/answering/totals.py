"""Sums over the view and over the domain, for every group of an answer."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement
from typing import Any

import numpy as np
import numpy.typing as npt

from voile.arrays import Floats, Ints
from voile.engines.rows import ReleaseRows
from voile.errors import QueryError, ReleaseError
from voile.query.domain import DomainSums, GroupedSum, Weights
from voile.query.predicate import FALSE, Expression, Predicate, Term, both
from voile.query.rows import SCORE, SPREAD, RowSums, WeightedTerm

MOST_SUBQUERIES = 6
"""Subqueries in the sums of one call to the engine."""
MOST_IN_A_SUM = 40
ALL_GROUPS = 50_000
"""Up to so many groups, those without a row in the view are listed too."""


@dataclass(frozen=True)
class ListedGroups:
    """The groups of an answer: the keys of each, and their places among the domain's keys."""

    keys: tuple[tuple[Any, ...], ...]
    codes: tuple[Ints, ...]
    possible: int
    """How many the domain allows."""
    complete: bool
    """Whether all of those are listed, or only the ones that have rows in the view."""

    def __len__(self) -> int:
        return len(self.keys)


@dataclass(frozen=True)
class NoiseShape:
    """The mean and the variance of the noise on each tuple, where they are not the same on all."""

    mean: Weights
    variance: Weights


@dataclass(frozen=True)
class Totals:
    """For each group, sums over the view and the domain of each term and of products of terms."""

    groups: ListedGroups
    terms: tuple[Term, ...]
    view: Floats
    domain: Floats
    """Where noise has a shape, weighted by its mean on each tuple."""
    domain_error: Floats
    spread: Floats
    """The same sums weighted by the variance of each tuple's noise, in the mechanism's unit."""
    plain: tuple[GroupedSum, ...]

    def column(self, term: Term) -> int:
        """The place of a term among the totals."""
        return self.terms.index(term)


def product(left: Term, right: Term) -> Term:
    """The term that is the product of two, in one order, so that equal ones are one."""
    predicate = left.predicate if left.predicate == right.predicate else None
    if predicate is None:
        predicate = both(*sorted((left.predicate, right.predicate), key=repr))
    return Term(predicate, tuple(sorted(left.values + right.values, key=repr)))


def with_products(sets: Sequence[Sequence[Term]]) -> tuple[Term, ...]:
    """All terms, and the products of those that meet in a formula."""
    found = [term for terms in sets for term in terms]
    for terms in sets:
        found += [product(a, b) for a, b in combinations_with_replacement(terms, 2)]
    return tuple(dict.fromkeys(found))


def totals(
    where: Predicate | None,
    groups: Sequence[Expression],
    terms: tuple[Term, ...],
    rows: ReleaseRows,
    domain: DomainSums,
    shape: NoiseShape | None = None,
) -> Totals:
    """Count everything: one query on the rows, one call for the domain."""
    everyone = Term()
    summed = tuple(dict.fromkeys([everyone, *terms]))
    counted = [Term(both(where, t.predicate), t.values) for t in summed]
    expected = domain.sums(counted, groups)
    # No row can do what no tuple does; a condition that fails everywhere is slow to try on rows.
    passing = where if possible(expected[0]) else FALSE

    def on_rows(weight: str) -> RowSums:
        sums = [WeightedTerm(term, weight) for term in summed]
        return side_by_side([rows.sums(passing, groups, some) for some in batches(sums)])

    seen = on_rows(SCORE if rows.scored else "")
    listed = listing(seen, expected[0], len(groups))
    counts = place_rows(seen, listed, expected[0])
    on_domain, errors = domain_columns(expected, listed)
    spread = on_domain
    if shape:
        on_domain, errors = domain_columns(domain.sums(counted, groups, shape.mean), listed)
        spread, _ = domain_columns(domain.sums(counted, groups, shape.variance), listed)
    if rows.scored:
        spread = spread + place_rows(on_rows(SPREAD), listed, expected[0])
    return Totals(
        groups=listed,
        terms=summed,
        view=counts,
        domain=on_domain,
        domain_error=errors,
        spread=spread,
        plain=tuple(expected),
    )


def possible(everyone: GroupedSum) -> bool:
    """Whether any tuple of the domain passes, as far as that is known."""
    return bool(everyone.keys) or everyone.error > 0 or everyone.total > 0


def check_lookups(terms: Iterable[Term]) -> None:
    """A value of a joined table is a subquery wherever it stands, and errors need its powers."""
    if any(term.subqueries > MOST_IN_A_SUM for term in terms):
        raise QueryError(
            "one aggregate looks up values in your own tables too often",
            hint="put what is computed from them into a column of the table",
        )


def batches(sums: Iterable[WeightedTerm]) -> list[list[WeightedTerm]]:
    """Sums that are computed at once: the engine's time explodes with the subqueries of a call."""
    found: list[list[WeightedTerm]] = [[]]
    used = 0
    for one in sums:
        used += (count := one.term.subqueries)
        if count and used > MOST_SUBQUERIES and found[-1]:
            found.append([])
            used = count
        found[-1].append(one)
    return found


def side_by_side(parts: Sequence[RowSums]) -> RowSums:
    """One set of sums from several over the same groups, which may come in any order."""
    first, *rest = parts
    if not rest:
        return first
    places = {key: i for i, key in enumerate(_group_keys(first))}
    columns = [first.sums]
    for part in rest:
        order = np.argsort([places[key] for key in _group_keys(part)])
        columns.append(part.sums[order])
    return RowSums(first.keys, np.concatenate(columns, axis=1))


def _group_keys(part: RowSums) -> list[tuple[Any, ...]]:
    if not part.keys:
        return [()]
    return [tuple(map(hashable, key)) for key in zip(*part.keys, strict=True)]


# ---------------------------------------------------------------------- groups


def listing(seen: RowSums, expected: GroupedSum, width: int) -> ListedGroups:
    """Which groups to answer for.

    All that the domain allows: to list only those that occur in the view would favour the ones
    with more noise, and their sum would exceed the total. Where the domain allows too many, only
    those that occur are listed, and the answer says so.
    """
    if not width:
        return ListedGroups(((),), (), 1, complete=True)
    sizes = [len(keys) for keys in expected.keys]
    if math.prod(sizes) <= ALL_GROUPS:
        places = np.unravel_index(np.arange(math.prod(sizes)), sizes)
        codes = tuple(np.asarray(p, dtype=np.int64) for p in places)
        # A domain that was sampled may have tuples that were not found.
        possible = (expected.at(codes) > 0) | (expected.errors_at(codes) > 0)
        codes = tuple(c[possible] for c in codes)
        complete = True
    else:
        codes, complete = row_codes(seen, expected), False
        order = np.lexsort(codes[::-1]) if len(codes[0]) else np.array([], dtype=np.int64)
        codes = tuple(c[order] for c in codes)
    columns = [[keys[c] for c in code] for keys, code in zip(expected.keys, codes, strict=True)]
    keys = tuple(zip(*columns, strict=True))
    return ListedGroups(keys, codes, len(keys) if complete else math.prod(sizes), complete)


def row_codes(seen: RowSums, expected: GroupedSum) -> tuple[Ints, ...]:
    """The places of the view's groups among the keys of the domain."""
    found = []
    for keys, known in zip(seen.keys, expected.keys, strict=True):
        places = {hashable(key): i for i, key in enumerate(known)}
        try:
            codes = [places[hashable(key)] for key in keys]
        except KeyError as error:
            raise ReleaseError(
                f"the view has a group {error.args[0]!r} that its domain does not allow",
                hint="try `voile verify`",
            ) from None
        found.append(np.array(codes, dtype=np.int64))
    return tuple(found)


def hashable(key: Any) -> Any:
    """A group's key as a dictionary can find it: all NaN are one."""
    return "not a number" if isinstance(key, float) and math.isnan(key) else key


def place_rows(seen: RowSums, groups: ListedGroups, expected: GroupedSum) -> Floats:
    """The view's sums in the order of the groups, 0 for a group without rows."""
    if not groups.codes:
        return seen.sums
    placed, found = scattered(seen, groups.codes, expected)
    if not found.all():
        raise ReleaseError(
            "the view has rows where its domain has no tuple", hint="try `voile verify`"
        )
    return placed


def scattered(
    seen: RowSums, codes: tuple[Ints, ...], expected: GroupedSum
) -> tuple[Floats, npt.NDArray[np.bool_]]:
    """The view's sums at these codes, 0 where it has none; and which of them have a place there."""
    sizes = [len(keys) for keys in expected.keys]
    if math.prod(sizes) >= 2**62:
        raise QueryError(f"GROUP BY allows {math.prod(sizes):,} groups", hint="group by less")
    placed = np.zeros((len(codes[0]), seen.sums.shape[1]))
    if not len(placed):
        return placed, np.zeros(len(seen.sums), dtype=np.bool_)
    flat = np.ravel_multi_index(row_codes(seen, expected), sizes)
    wanted = np.ravel_multi_index(codes, sizes)
    order = np.argsort(wanted)
    at = order[np.minimum(np.searchsorted(wanted, flat, sorter=order), len(order) - 1)]
    found = wanted[at] == flat
    placed[at[found]] = seen.sums[found]
    return placed, found


def domain_columns(sums: Sequence[GroupedSum], groups: ListedGroups) -> tuple[Floats, Floats]:
    """Sums over the domain as columns, with their errors."""
    if not groups.codes:
        return (
            np.array([[float(s.total) for s in sums]]),
            np.array([[float(s.error) for s in sums]]),
        )
    values = [s.at(groups.codes) for s in sums]
    errors = [s.errors_at(groups.codes) for s in sums]
    return np.stack(values, axis=1), np.stack(errors, axis=1)
