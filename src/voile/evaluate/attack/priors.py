"""What an adversary believes beforehand: of each tuple by itself, or of a person's candidates.

`Prior.chances` are the beliefs of one to whom records are independent, `Prior.log_weights` those of
one who knows that exactly one of the tuples is in the table; they need not add up to 1.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from voile.arrays import Floats
from voile.engines import connect
from voile.engines.table import Table
from voile.errors import UsageError, spelled
from voile.evaluate.attack.targets import (
    UNKNOWN,
    Targets,
    chances,
    check_columns,
    coded,
    read_texts,
    tuples_of,
)
from voile.kinds.manifest import MANIFEST
from voile.kinds.views.release import ViewRelease
from voile.privacy import DGamma
from voile.privacy.adversary import Pair, PairCounts, Population, product, tree
from voile.schema import Schema, TupleIndex

# ----------------------------------------------------------------------
# a model of the population, from a table that the adversary is supposed to have


MOST_CELLS = 10**7
"""Pairs of attributes with more cells than this are not looked at together."""


def fit(kind: str, model: object, schema: Schema) -> Population:
    """The product of the marginals, or the best tree, of a table or of a release."""
    check_sizes(schema)
    if is_release(model):
        singles, both = refined_counts(ViewRelease.open(str(model)), schema)
    else:
        singles, both = table_counts(connect(model), schema)
    return product(singles) if kind == "product" else tree(singles, pairs(schema), both)


def is_release(model: object) -> bool:
    """Whether the model is the folder of a release."""
    return isinstance(model, str | Path) and (Path(model) / MANIFEST).is_file()


def pairs(schema: Schema) -> list[Pair]:
    """Pairs of attributes that are small enough to be counted together."""
    sizes = schema.sizes
    return [
        (i, j)
        for i, j in itertools.combinations(range(len(sizes)), 2)
        if sizes[i] * sizes[j] <= MOST_CELLS
    ]


def table_counts(table: Table, schema: Schema) -> tuple[list[Floats], PairCounts]:
    """Counts of the values of each attribute, and a function for those of pairs."""
    table.check_columns(schema.names)
    codes = TupleIndex(schema.sizes).decode(
        table.keys(schema, drop_nulls=not any(a.null for a in schema))
    )
    if not len(codes[0]):
        raise UsageError("the model's table has no rows", hint="name another one")
    sizes = schema.sizes

    def both(pair: Pair) -> Floats:
        i, j = pair
        place = codes[i].astype(np.int64) * sizes[j] + codes[j]
        found = np.bincount(place, minlength=sizes[i] * sizes[j])
        return found.reshape(sizes[i], sizes[j]).astype(np.float64)

    singles = [
        np.bincount(c, minlength=size).astype(np.float64)
        for c, size in zip(codes, sizes, strict=True)
    ]
    return singles, both


def refined_counts(release: ViewRelease, schema: Schema) -> tuple[list[Floats], PairCounts]:
    """The same from a release alone: the counts of the model that --refine fits to it."""
    if release.schema.to_dict() != schema.to_dict():
        raise UsageError(
            f"release {release.name!r} has another domain", hint="give a table, or the release"
        )
    mixture = release.refine().mixture
    even = [np.full(size, mixture.rows / size) for size in schema.sizes]
    left_out = set(mixture.left_out)
    singles = [
        even[j] if j in left_out else mixture.marginal([j]) for j in range(len(schema.sizes))
    ]

    def both(pair: Pair) -> Floats:
        if left_out & set(pair):
            i, j = pair
            return np.outer(singles[i], singles[j]) / mixture.rows
        return mixture.marginal(pair)

    return singles, both


def check_sizes(schema: Schema) -> None:
    """Refuse attributes with too many values for a model."""
    for attribute in schema:
        if attribute.size > MOST_CELLS:
            raise UsageError(
                f"attribute {attribute.name!r} has {attribute.size:,} values, too many for a model",
                hint=f"use {spelled('prior', 'uniform')}, or a file of priors",
            )


# ----------------------------------------------------------------------
# what an adversary believes beforehand: of each tuple by itself, or of a person's candidates
# `Prior.chances` are the beliefs of one to whom records are independent, `Prior.log_weights` those
# of one who knows that exactly one of the tuples is in the table; they need not add up to 1.


Codes = Sequence[npt.NDArray[Any]]

PROBABILITY = "probability"
WORDS = ("uniform", "promise", "product", "tree")


class Prior(Protocol):
    """Beliefs about tuples, given by the places of their values."""

    @property
    def words(self) -> str:
        """The prior in words."""

    @property
    def words_of_candidates(self) -> str:
        """The same of a person's candidates, of which one is real."""
        ...

    def chances(self, codes: Codes) -> Floats:
        """The chance that each tuple is in the table."""

    def log_weights(self, codes: Codes) -> Floats:
        """ln of how much each tuple is believed beside the others."""


@dataclass(frozen=True)
class EvenPrior:
    """The same chance for every tuple."""

    chance: float
    words: str
    words_of_candidates = "each of their candidates alike"

    def chances(self, codes: Codes) -> Floats:
        """The one chance, for each tuple."""
        return np.full(len(codes[0]), self.chance)

    def log_weights(self, codes: Codes) -> Floats:
        """0 for each tuple: all alike."""
        return np.zeros(len(codes[0]))


@dataclass(frozen=True)
class PopulationPrior:
    """From a model of the population that the table of `rows` rows was drawn from."""

    population: Population
    rows: float
    words: str

    @property
    def words_of_candidates(self) -> str:
        """The same words: candidates are weighed by the same model."""
        return self.words

    def chances(self, codes: Codes) -> Floats:
        """The chance that at least one of the table's rows is the tuple."""
        return np.exp(self.population.log_prior(codes, self.rows))

    def log_weights(self, codes: Codes) -> Floats:
        """ln of the tuple's share of the population."""
        return self.population.log_chance(codes)


@dataclass(frozen=True)
class ListedPrior:
    """From a file with a row for each tuple; `keys` are sorted."""

    schema: Schema
    keys: npt.NDArray[Any]
    values: Floats
    words: str = field(default="listed")

    @property
    def words_of_candidates(self) -> str:
        """The same words: candidates are weighed by the same file."""
        return self.words

    def chances(self, codes: Codes) -> Floats:
        """The chances of the file; a tuple that it lacks is refused."""
        found, there = self._look_up(codes)
        if not there.all():
            first = np.flatnonzero(~there)[:1]
            values = tuples_of(self.schema, [np.asarray(c)[first] for c in codes])[0]
            raise UsageError(
                f"the file of priors has no row for {', '.join(map(str, values.values()))}",
                hint="add this tuple with a probability",
            )
        return found

    def log_weights(self, codes: Codes) -> Floats:
        """What is not listed is held impossible."""
        with np.errstate(divide="ignore"):
            return np.log(self._look_up(codes)[0])

    def _look_up(self, codes: Codes) -> tuple[Floats, npt.NDArray[np.bool_]]:
        keys = TupleIndex(self.schema.sizes).encode([np.asarray(c) for c in codes])
        places = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        there = self.keys[places] == keys
        return np.where(there, self.values[places], 0.0), there


@dataclass(frozen=True)
class BoundedPrior:
    """Another prior, cut at the promise's d: the strongest of its kind that is covered.

    Weights of a person's candidates are not cut: they add up to 1, so that with few candidates
    some of them must exceed d.
    """

    inner: Prior
    promise: DGamma

    @property
    def words(self) -> str:
        """The inner prior's words, and where it is cut."""
        return f"{self.inner.words}, cut at d = {self.promise.prior:.3g}"

    @property
    def words_of_candidates(self) -> str:
        """The inner prior's words: weights are not cut."""
        return self.inner.words_of_candidates

    def chances(self, codes: Codes) -> Floats:
        """The inner chances, at most d."""
        return np.minimum(self.inner.chances(codes), self.promise.prior)

    def log_weights(self, codes: Codes) -> Floats:
        """The inner weights as they are."""
        return self.inner.log_weights(codes)


# ---------------------------------------------------------------------- choosing one


def choose_prior(
    text: str | float, release: ViewRelease, *, model: object | None = None, bounded: bool = False
) -> Prior:
    """The prior that was asked for: a word of WORDS, a number, or a file of probabilities."""
    if model is not None and text not in ("product", "tree"):
        raise UsageError(
            f"a model was given, but the prior is {text!r}",
            hint=f"use {spelled('prior', 'product')} or {spelled('prior', 'tree')}",
        )
    found = _prior(text, release, model)
    return BoundedPrior(found, release.promise) if bounded else found


def _prior(text: str | float, release: ViewRelease, model: object | None) -> Prior:
    rows, schema = release.likely_rows, release.schema
    if text == "uniform":
        return uniform(rows, schema.size, distinct=release.manifest.parameters.form == "set")
    if text == "promise":
        return EvenPrior(
            release.promise.prior, f"d = {release.promise.prior:.3g}, all that is covered"
        )
    if text in ("product", "tree"):
        if model is None:
            raise UsageError(
                f"{spelled('prior', text)} needs what the adversary knows of the population",
                hint=f"{spelled('model', 'people.csv')}, such as a table of other people, or the "
                "release itself",
            )
        return fitted(str(text), model, schema, rows)
    number = as_number(text)
    if number is None:
        return listed(text, schema)
    if not 0 <= number <= 1:
        raise UsageError(
            f"{spelled('prior', text)} is no probability", hint="give a number from 0 to 1"
        )
    return EvenPrior(number, f"{number:.3g} for every tuple")


FEW = 0.01
"""Rows per tuple up to which n/m is as good as the chance of any of n draws."""


def uniform(rows: int, size: int, *, distinct: bool) -> EvenPrior:
    """The size of the table is known and nothing else; `distinct`: no row occurs twice.

    n/m, as the promise's d is reckoned, while repetitions hardly matter.
    """
    if distinct or size == 1 or rows <= FEW * size:
        chance = min(1.0, rows / size)
        return EvenPrior(chance, f"every tuple alike, n/m = {chance:.3g}")
    chance = -math.expm1(rows * math.log1p(-1 / size))
    return EvenPrior(chance, f"every tuple alike, 1 − (1 − 1/m)ⁿ = {chance:.3g}")


def as_number(text: str | float) -> float | None:
    """The number that a text is, or None."""
    try:
        return float(text)
    except ValueError:
        return None


def fitted(kind: str, model: object, schema: Schema, rows: float) -> PopulationPrior:
    """Beliefs of someone who knows a population like the model's."""
    name = str(model) if isinstance(model, str | Path) else "a table"
    shape = "its columns apart" if kind == "product" else "its columns as a tree"
    return PopulationPrior(fit(kind, model, schema), rows, f"a population like {name}, {shape}")


def listed(text: str | float, schema: Schema) -> ListedPrior:
    """A CSV file with the attributes and a column `probability`."""
    if not Path(str(text)).is_file():
        raise UsageError(
            f"{spelled('prior', text)} is neither a known word, a number nor a file",
            hint=f"use {', '.join(WORDS)}, a number, or a CSV with a column {PROBABILITY!r}",
        )
    table = read_texts(str(text))
    if PROBABILITY not in table.column_names:
        raise UsageError(f"{text!r} has no column {PROBABILITY!r}", hint="add it")
    priors = chances(table[PROBABILITY].combine_chunks(), PROBABILITY)
    rest = table.drop_columns([PROBABILITY])
    check_columns(rest, schema, None)
    found = [coded(rest, attribute) for attribute in schema]
    if not table.num_rows or np.isnan(priors).any() or any((c == UNKNOWN).any() for c in found):
        raise UsageError(
            f"{text!r} leaves cells empty, or has no rows",
            hint="a file of priors needs every attribute and a probability in every row",
        )
    keys = TupleIndex(schema.sizes).encode(found)
    order = np.argsort(keys, kind="stable")
    if len(np.unique(keys)) < len(keys):
        raise UsageError(f"{text!r} lists a tuple twice", hint="give each tuple one probability")
    return ListedPrior(schema, keys[order], priors[order], f"from {text}")


def target_chances(prior: Prior, targets: Targets, rows: Sequence[int]) -> Floats:
    """The prior of complete rows; a target's own, where it has one, goes first."""
    asked = [column[list(rows)] for column in targets.codes]
    if targets.priors is None:
        return prior.chances(asked)
    own = targets.priors[list(rows)]
    missing = np.isnan(own)
    found = own.copy()
    if missing.any():
        found[missing] = prior.chances([column[missing] for column in asked])
    return found


def row_weights(targets: Targets, rows: Sequence[int]) -> list[float] | None:
    """ln of how much each row of one person is believed beside the others; None: all alike."""
    own = None if targets.priors is None else targets.priors[list(rows)]
    if own is None or np.isnan(own).all():
        return None
    if np.isnan(own).any():
        raise UsageError(
            f"some rows of {targets.names[rows[0]]} have a prior and some have none",
            hint="give all of a person's rows one, or none",
        )
    return [math.log(weight) if weight > 0 else -math.inf for weight in own]
