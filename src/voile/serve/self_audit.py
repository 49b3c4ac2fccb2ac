"""What the answers so far can have told about each person: from the ledger's questions alone.

No row is looked at. Someone who knows every other row weighs two tuples, a and b, for one person.
By all answers that count this person their log-odds move as a walk with mean D²/2 and variance D²,
where D² is the squared distance of a and b (`told_apart`). The largest over all pairs bounds what
anybody learned, but for a chance of η. Proofs: docs/mathematics, section 36.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from scipy.special import ndtr, ndtri

from voile.arrays import Floats
from voile.evaluate.reconstruction.fitting import distance_squared
from voile.evaluate.reconstruction.server import read_ids
from voile.noise.keyed import Hashes, members, row_hashes
from voile.serve.ledger import open_ledger
from voile.serve.ledger.base import Kept, Ledger
from voile.serve.question import Asking, declared
from voile.serve.residuals import Answer, Residuals, residuals
from voile.serve.setting import Setting
from voile.serve.told_apart import Domains, Kind, Together, compared, farthest

PAGE = 1000
SAMPLE = 2_000
"""People that are looked at where nobody knows their ids: any hashes are as good as theirs."""
MOST_PEOPLE, MOST_TESTS = 200_000, 2 * 10**9
"""People that are looked at, and memberships that are computed."""
LOT = 4_096
QUANTILES = {"least": 0.0, "median": 0.5, "p95": 0.95, "largest": 1.0}
MOST_EXPOSED = 5


class Audited(Protocol):
    """What is used of an Asker."""

    @property
    def setting(self) -> Setting: ...
    @property
    def ledger(self) -> Ledger: ...


@dataclass(frozen=True)
class Bound:
    """How far two tuples of one person are told apart, and what follows."""

    squared: float
    delta: float
    eta: float
    planned: float
    """D² of all answers that there will ever be."""
    normal: bool = True
    """Whether the sum of losses is as good as normal; geometric noise has losses of few sizes."""

    @property
    def rise(self) -> float:
        """What conf rises by at most, but with chance η, if questions did not depend on answers."""
        far = -float(ndtri(self.eta)) if self.normal else math.sqrt(-2 * math.log(self.eta))
        return self.squared / 2 + far * math.sqrt(self.squared)

    @property
    def rise_adaptive(self) -> float:
        """The same if they did, and at any time, and however the noise's tails are below normal."""
        return rise_adaptive(self.squared, self.eta, self.planned)

    @property
    def passed(self) -> float:
        """The chance that conf rose by more than δ."""
        if self.squared == 0:
            return 0.0
        short = (self.squared / 2 - self.delta) / math.sqrt(self.squared)
        if self.normal:
            return float(ndtr(short))
        return math.exp(-(short**2) / 2) if short < 0 else 1.0

    def to_dict(self) -> dict[str, float]:
        return {
            "distance_squared": self.squared, "rise": self.rise,
            "rise_adaptive": self.rise_adaptive, "passed": self.passed,
        }  # fmt: skip


def rise_adaptive(squared: float, eta: float, planned: float) -> float:
    """D²/2 + D'·√(2 ln(2^(j+1)/η)): D'² is the least planned/2^j that is not below D²."""
    if squared == 0:
        return 0.0
    halvings = max(0, math.floor(math.log2(planned / squared))) if squared < planned else 0
    level = max(planned / 2**halvings, squared)
    tail = 2 * ((halvings + 1) * math.log(2) - math.log(eta))
    return squared / 2 + math.sqrt(level * tail)


@dataclass(frozen=True)
class SelfAudit:
    """Bounds for everybody in the table, from questions and public ids."""

    setting: Setting
    answers: int
    lost: int
    """Answers that the ledger lost: of each it is taken that it told as much as an answer can."""
    kinds: int
    together: tuple[Together, ...]
    worst: Bound
    """Of someone whom every question counts."""
    parts: tuple[float, ...]
    """What each lot of columns adds to it."""
    known_by: str
    named: int | None
    """How many ids were given; None if none were."""
    ids: tuple[str, ...]
    squares: Floats
    """D² of each person that was looked at."""
    left_over: Residuals

    @property
    def exact(self) -> bool:
        """Whether every bound is that of an actual pair of tuples."""
        return all(lot.exact for lot in self.together)

    def bound(self, squared: float) -> Bound:
        return replace(self.worst, squared=squared)

    @property
    def planned(self) -> Bound:
        return self.bound(self.worst.planned)

    def to_dict(self) -> dict[str, Any]:
        setting = self.setting
        return {
            "server": setting.name, "id": setting.id, "queries": setting.queries,
            "answers": self.answers, "lost": self.lost, "kinds": self.kinds, "exact": self.exact,
            "delta": setting.delta, "eta": setting.eta, "noise": setting.noise,
            "variance": setting.variance, "planned": self.planned.to_dict(),
            "worst": self.worst.to_dict(), "columns": self._columns(),
            "people": self._people(), "residuals": self.left_over.to_dict(),
        }  # fmt: skip

    def _columns(self) -> list[dict[str, Any]]:
        """What someone whom every question counts has to fear, by what is asked about."""
        found = [
            {"columns": list(lot.columns), "exact": lot.exact} | self.bound(part).to_dict()
            for lot, part in zip(self.together, self.parts, strict=True)
        ]
        return sorted(found, key=lambda one: -float(one["distance_squared"]))

    def _people(self) -> dict[str, Any]:
        ends = np.quantile(self.squares, list(QUANTILES.values()), method="higher")
        named = {name: self.bound(float(end)).to_dict()
                 for name, end in zip(QUANTILES, ends, strict=True)}  # fmt: skip
        order = np.argsort(-self.squares, kind="stable")[: MOST_EXPOSED if self.ids else 0]
        exposed = [{"id": self.ids[i]} | self.bound(float(self.squares[i])).to_dict()
                   for i in order]  # fmt: skip
        counts = {"known_by": self.known_by, "of": self.setting.people, "named": self.named,
                  "looked_at": len(self.squares)}  # fmt: skip
        return counts | named | {"most_exposed": exposed}


def self_audit(audited: Audited, ids: Sequence[str] | None = None) -> dict[str, Any]:
    """For `GET /admin/audit` and the command: all of it as JSON."""
    return audit(audited.setting, audited.ledger, ids).to_dict()


def audit_folder(folder: Path, ids: Path | None = None) -> SelfAudit:
    """Of a server's folder, whether it runs or not."""
    setting = Setting.open(folder)
    known = None if ids is None else read_ids(ids)
    ledger = open_ledger(folder, setting)
    try:
        return audit(setting, ledger, known)
    finally:
        ledger.close()


def audit(setting: Setting, ledger: Ledger, ids: Sequence[str] | None = None) -> SelfAudit:
    asking = Asking(setting)
    domains = Domains(setting.schema, setting.per_person)
    answers, lost = read(ledger, asking)
    kinds = list(dict.fromkeys(answer.kind for answer in answers))
    together = compared(kinds, domains, nothing=setting.per_person > 1)
    everything = Counter(answer.kind for answer in answers)
    each = [lot.distances(np.array([[float(everything[kind]) for kind in lot.kinds]]))
            for lot in together]  # fmt: skip
    known_by, named, hashes = people(setting, ids, len(answers))
    one = distance_squared(setting.noise, setting.variance)
    planned = setting.queries * one
    squared = float(farthest(each, 1)[0]) + lost * one
    normal = setting.noise != "geometric"
    worst = Bound(squared, setting.delta, setting.eta, planned, normal=normal)
    return SelfAudit(
        setting=setting, answers=len(answers), lost=lost, kinds=len(kinds),
        together=tuple(together),
        worst=worst,
        parts=tuple(float(farthest([part], 1)[0]) for part in each), known_by=known_by,
        named=None if ids is None else len(ids), ids=named,
        squares=squares_of(answers, together, hashes) + lost * one,
        left_over=residuals(answers, asking, domains, sizes_of(setting, answers, known_by, hashes)),
    )  # fmt: skip


def read(ledger: Ledger, asking: Asking) -> tuple[list[Answer], int]:
    """The ledger's answers, and how many are lost: of those nobody knows what was asked."""
    kinds: dict[Kind, Kind] = {}
    found, lost, after = list[Answer](), 0, 0
    while page := ledger.entries(after, PAGE):
        after = page[-1].number
        known = [kept for kept in page if not kept.lost]
        lost += len(page) - len(known)
        for kept in known:
            answer = answer_of(kept, asking)
            found.append(replace(answer, kind=kinds.setdefault(answer.kind, answer.kind)))
    return found, lost


def answer_of(kept: Kept, asking: Asking) -> Answer:
    question = json.loads(kept.entry.question)
    told = question["subset"]
    subset = None
    if isinstance(told, str) and told != "all":
        sql = next(one.sql for one in asking.setting.subsets if one.name == told)
        subset = declared(sql, asking.setting.schema).where
    half = told["half"] if isinstance(told, dict) else None
    return Answer(
        Kind.of(question, subset), half, question["sql"], tuple(json.loads(kept.entry.answer))
    )


def people(
    setting: Setting, ids: Sequence[str] | None, answers: int
) -> tuple[str, tuple[str, ...], Hashes]:
    """Whom to look at: how they are known, their ids if those are theirs, and their hashes."""
    most = max(1, min(MOST_PEOPLE, MOST_TESTS // max(answers, 1)))
    if ids is None and setting.id_column is None:
        ids = [str(number) for number in range(setting.people)]
    if ids is None:
        return "random", (), row_hashes(range(min(SAMPLE, most)))
    looked_at = tuple(ids[:: -(-len(ids) // most)])
    return ("row number" if setting.id_column is None else "id"), looked_at, row_hashes(looked_at)


def squares_of(answers: Sequence[Answer], together: Sequence[Together], hashes: Hashes) -> Floats:
    """D² of each person: halves count some people and not others."""
    by_kind: dict[Kind, list[str | None]] = {}
    for answer in answers:
        by_kind.setdefault(answer.kind, []).append(answer.half)
    found = np.zeros(len(hashes))
    for start in range(0, len(hashes), LOT):
        some = hashes[start : start + LOT]
        each = [
            lot.distances(np.column_stack([counted(by_kind[kind], some) for kind in lot.kinds]))
            for lot in together
        ]
        found[start : start + LOT] = farthest(each, len(some))
    return found


def counted(seeds: Sequence[str | None], hashes: Hashes) -> Floats:
    """How many of these questions count each person; without a seed all are counted."""
    found = np.full(len(hashes), float(sum(seed is None for seed in seeds)))
    for seed in seeds:
        if seed is not None:
            found += members(hashes, seed)
    return found


def sizes_of(
    setting: Setting, answers: Sequence[Answer], known_by: str, hashes: Hashes
) -> dict[str | None, int]:
    """How many rows there are, where everybody knows: in all, and in halves of known ids."""
    if setting.per_person > 1:
        return {}
    found: dict[str | None, int] = {None: setting.people}
    if known_by != "random" and len(hashes) == setting.people:
        seeds = {answer.half for answer in answers if answer.half is not None}
        found |= {seed: int(members(hashes, seed).sum()) for seed in seeds}
    return found
