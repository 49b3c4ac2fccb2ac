"""A belief after the view: posteriors, and what the promise says of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from voile.arrays import Floats, Ints
from voile.errors import ReleaseError
from voile.evaluate.attack.beliefs import Belief, Guess, Kind, Person, Tally, promised
from voile.evaluate.attack.targets import tuples_of, value_words
from voile.privacy import DGamma
from voile.privacy.adversary import Adversary, Evidence, Leaks, leaks
from voile.schema import Schema

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
        return len(self.names) == 1 and len(self) > 1


@dataclass(frozen=True)
class Judged:
    """A case after the view: posteriors, and what the promise says of them."""

    case: Case
    seen: npt.NDArray[Any]
    evidence: Evidence
    promise: DGamma
    schema: Schema
    protected: Floats
    """The largest prior that the promise covers, for each tuple."""

    @cached_property
    def prior(self) -> Floats:
        return self.case.adversary.priors

    @cached_property
    def posterior(self) -> Floats:
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
        return leaks(self.promise, self.prior, self.posterior, self.protected)

    @property
    def tally(self) -> Tally:
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
        columns = zip(self.schema.names, self.case.codes, strict=True)
        return tuple(name for name, column in columns if (column != column[0]).any())

    def beliefs(self, which: npt.NDArray[Any]) -> list[Belief]:
        values = tuples_of(self.schema, [column[which] for column in self.case.codes])
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
                words=self.words(value),
            )
            for i, value in zip(which.tolist(), values, strict=True)
        ]

    def words(self, values: dict[str, Any]) -> str:
        """A tuple as a line of text: what was guessed of it, or all its values."""
        texts = {a.name: value_words(a, values[a.name]) for a in self.schema}
        if self.guessed:
            return ", ".join(f"{name} {texts[name]}" for name in self.guessed)
        return ", ".join(texts.values())

    def person(self) -> Person:
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
        for attribute, column in zip(self.schema, self.case.codes, strict=True):
            if attribute.name not in self.guessed:
                continue
            values, where = np.unique(column, return_inverse=True)
            after = np.bincount(where, self.posterior)
            best = int(np.argmax(after))
            before = float(np.bincount(where, self.prior)[best])
            one = Schema((attribute,))
            value = tuples_of(one, [values[best : best + 1]])[0][attribute.name]
            text = value_words(attribute, value)
            found.append(Guess(attribute.name, value, text, before, float(after[best])))
        return tuple(found)
