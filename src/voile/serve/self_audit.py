"""What the answers so far disclosed about each person at most, from the ledger's questions alone.

No row is read. An attacker who knows every other row weighs two tuples, a and b, for one person.
All answers that count this person move the log-odds as a walk with mean D²/2 and variance D², where
D² is the squared distance of a and b (`distances`). The largest over all pairs bounds what any
attacker learned, with probability at least 1 − η. Proofs: docs/mathematics, section 36.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from scipy.special import ndtr, ndtri
from scipy.stats import chi2

from voile.answering.totals import row_codes
from voile.arrays import Floats, Ints
from voile.evaluate.reconstruction.fitting import distance_squared
from voile.evaluate.reconstruction.server import read_ids
from voile.noise.keyed import Hashes, members, row_hashes
from voile.query.rows import RowSums
from voile.records import Record
from voile.serve.distances import DomainParts, KindGroup, QuestionKind, compared, farthest, lots
from voile.serve.ledger import open_ledger
from voile.serve.ledger.base import Ledger, StoredEntry
from voile.serve.question import Question, QuestionReader, declared
from voile.serve.setting import Setting

MOST_COUNTS = 500
"""Unknown counts of one system of answers."""
NORMAL = ("binomial", "gaussian")
CERTAIN = 1e4
"""How much better than an answer a public number is known: as if it had so little noise."""


@dataclass(frozen=True)
class LedgerAnswer:
    """One answer of the ledger."""

    kind: QuestionKind
    half: str | None
    """The seed of the half that it is about; else all rows, of which the kind may choose some."""
    sql: str
    numbers: tuple[int, ...]


@dataclass(frozen=True)
class AnswerResiduals(Record):
    """The residuals of answers, as squares in units of their standard deviations."""

    json_keys = ("squares", "freedom", "too_large", "too_small")

    squares: float = 0.0
    freedom: int = 0
    """How many independent combinations of answers should be pure noise."""

    @property
    def too_large(self) -> float | None:
        """The probability of squares at least as large, if the noise is as stated."""
        return float(chi2.sf(self.squares, self.freedom)) if self.freedom else None

    @property
    def too_small(self) -> float | None:
        """The probability of squares at most as large, if the noise is as stated."""
        return float(chi2.cdf(self.squares, self.freedom)) if self.freedom else None

    def __add__(self, other: AnswerResiduals) -> AnswerResiduals:
        return AnswerResiduals(self.squares + other.squares, self.freedom + other.freedom)


def residuals(
    answers: Sequence[LedgerAnswer],
    reader: QuestionReader,
    domains: DomainParts,
    sizes: Mapping[str | None, int],
) -> AnswerResiduals:
    """Of all answers; `sizes` are how many rows all or a half are, where that is public."""
    blocks: dict[str | None, list[LedgerAnswer]] = {}
    for answer in answers:
        # Other noise is not normal enough for squares.
        if answer.kind.noise in NORMAL:
            blocks.setdefault(answer.half, []).append(answer)
    weights = StepWeights(reader, domains)
    found = AnswerResiduals()
    for half, block in blocks.items():
        for lot in lots(list(dict.fromkeys(answer.kind for answer in block))):
            own = [answer for answer in block if answer.kind in lot]
            found += left_over(own, lot, weights, sizes.get(half))
    return found


def left_over(
    answers: Sequence[LedgerAnswer],
    lot: Sequence[QuestionKind],
    weights: StepWeights,
    size: int | None,
) -> AnswerResiduals:
    """The residuals of answers about the same rows and connected columns."""
    codes = weights.tuples(lot)
    if codes is None:
        return AnswerResiduals()
    rows, right = list[Floats](), list[Floats]()
    for answer in answers:
        deviation = math.sqrt(answer.kind.variance)
        rows.append(weights.of(answer)[:, codes[:, lot.index(answer.kind)]] / deviation)
        right.append(np.array(answer.numbers) / deviation)
    if size is not None:
        known = CERTAIN / math.sqrt(min(answer.kind.variance for answer in answers))
        rows.append(np.full((1, len(codes)), known))
        right.append(np.array([size * known]))
    return solved(np.vstack(rows), np.concatenate(right))


def solved(left: Floats, right: Floats) -> AnswerResiduals:
    """The residual of the right side that no counts explain."""
    # Columns alike are one count.
    left = np.unique(left, axis=1)
    u, singular, _ = np.linalg.svd(left, full_matrices=False)
    rank = int((singular > singular.max(initial=0.0) * 1e-9).sum())
    rest = right - u[:, :rank] @ (u[:, :rank].T @ right)
    freedom = len(right) - rank
    return AnswerResiduals(float(rest @ rest) if freedom else 0.0, freedom)


class StepWeights:
    """By how many steps rows count in each group of an answer."""

    def __init__(self, reader: QuestionReader, domains: DomainParts) -> None:
        self._reader, self._domains = reader, domains
        self._known: dict[QuestionKind, Floats] = {}
        self._tuples: dict[tuple[QuestionKind, ...], Ints | None] = {}

    def tuples(self, lot: Sequence[QuestionKind]) -> Ints | None:
        """Tuples that the kinds distinguish, each as its part by every kind; None if too many."""
        key = tuple(lot)
        if key not in self._tuples:
            codes = self._domains.tuples(key)
            few = codes is not None and len(codes) <= MOST_COUNTS
            self._tuples[key] = codes if few else None
        return self._tuples[key]

    def of(self, answer: LedgerAnswer) -> Floats:
        """A row for each group as it is stored, a column for each part."""
        if answer.kind not in self._known:
            self._known[answer.kind] = self._weights(answer)
        return self._known[answer.kind]

    def _question(self, answer: LedgerAnswer) -> Question:
        """The question with the answer's grouping, where its SQL asked for several."""
        asked = self._reader.read(answer.sql).questions
        texts = sorted(group.canonical for group in answer.kind.groups)
        return next(
            one
            for one in asked
            if sorted(group.canonical for group in one.query.groups) == texts
            and len(one.groups) == len(answer.numbers)
        )

    def _weights(self, answer: LedgerAnswer) -> Floats:
        seen = self._domains.seen(answer.kind)
        assert seen is not None  # noqa: S101  (its columns have few tuples)
        question = self._question(answer)
        if question.expected is None:
            return seen.steps[None, :].astype(np.float64)
        parts, first = np.unique(seen.codes, return_index=True)
        counting = seen.steps[parts] != 0
        parts, first = parts[counting], first[counting]
        keys = tuple(
            self._domains.values(group, seen.columns).take(first).to_pylist()
            for group in answer.kind.groups
        )
        texts = [group.canonical for group in answer.kind.groups]
        as_written = sorted(range(len(texts)), key=lambda i: texts[i])
        rows = RowSums(tuple(keys[i] for i in as_written), np.empty((0, 1)))
        codes = row_codes(rows, question.expected)
        there = np.ravel_multi_index([codes[i] for i in question.order], question.sizes)
        stored = np.ravel_multi_index(question.codes, question.sizes)
        order = np.argsort(stored)
        weights = np.zeros((len(stored), len(seen.steps)))
        weights[order[np.searchsorted(stored, there, sorter=order)], parts] = seen.steps[parts]
        if question.reordered is not None and texts == sorted(texts):
            # The entry is of a time when answers were stored in the order of how they are written.
            weights[list(question.reordered)] = weights.copy()
        return weights


# ---------------------------------------------------------------------- self audit


PAGE = 1000
SAMPLE = 2_000
"""People that are looked at where nobody knows their ids: any hashes are as good as theirs."""
MOST_PEOPLE, MOST_TESTS = 200_000, 2 * 10**9
"""People that are looked at, and memberships that are computed."""
LOT = 4_096
QUANTILES = {"least": 0.0, "median": 0.5, "p95": 0.95, "largest": 1.0}
MOST_EXPOSED = 5


class AuditSubject(Protocol):
    """What is used of a QueryService."""

    @property
    def setting(self) -> Setting:
        """What the server was begun with."""

    @property
    def ledger(self) -> Ledger:
        """The ledger of its answers."""


@dataclass(frozen=True)
class ExposureBound(Record):
    """How well two tuples of one person can be distinguished, and what follows."""

    json_keys = ("distance_squared=squared", "rise", "rise_adaptive", "passed")

    squared: float
    delta: float
    eta: float
    planned: float
    """D² of all answers that there will ever be."""
    normal: bool = True
    """Whether the sum of losses is as good as normal; geometric noise has losses of few sizes."""

    @property
    def rise(self) -> float:
        """The rise of conf, exceeded with probability at most η if questions ignored answers."""
        far = -float(ndtri(self.eta)) if self.normal else math.sqrt(-2 * math.log(self.eta))
        return self.squared / 2 + far * math.sqrt(self.squared)

    @property
    def rise_adaptive(self) -> float:
        """The same at any time for questions that used answers, if tails are at most normal."""
        return rise_adaptive(self.squared, self.eta, self.planned)

    @property
    def passed(self) -> float:
        """The probability that conf rose by more than δ."""
        if self.squared == 0:
            return 0.0
        short = (self.squared / 2 - self.delta) / math.sqrt(self.squared)
        if self.normal:
            return float(ndtr(short))
        return math.exp(-(short**2) / 2) if short < 0 else 1.0


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
    """Answers that the ledger lost: each is taken to have disclosed as much as an answer can."""
    kinds: int
    together: tuple[KindGroup, ...]
    worst: ExposureBound
    """Of someone whom every question counts."""
    parts: tuple[float, ...]
    """What each lot of columns adds to it."""
    known_by: str
    named: int | None
    """How many ids were given; None if none were."""
    ids: tuple[str, ...]
    squares: Floats
    """D² of each person that was looked at."""
    left_over: AnswerResiduals

    @property
    def exact(self) -> bool:
        """Whether every bound is that of an actual pair of tuples."""
        return all(lot.exact for lot in self.together)

    def bound(self, squared: float) -> ExposureBound:
        """The bound for someone with this squared distance."""
        return replace(self.worst, squared=squared)

    @property
    def planned(self) -> ExposureBound:
        """The bound after all answers that there will ever be."""
        return self.bound(self.worst.planned)

    def to_dict(self) -> dict[str, Any]:
        """The audit as JSON, for the command and for `GET /admin/audit`."""
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
        """Bounds for someone whom every question counts, by the columns asked about."""
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


def self_audit(audited: AuditSubject, ids: Sequence[str] | None = None) -> dict[str, Any]:
    """The audit as JSON, for `GET /admin/audit` and the command."""
    return audit(audited.setting, audited.ledger, ids).to_dict()


def audit_folder(folder: Path, ids: Path | None = None) -> SelfAudit:
    """The audit of a server's folder, whether the server runs or not."""
    setting = Setting.open(folder)
    known = None if ids is None else read_ids(ids)
    ledger = open_ledger(folder, setting)
    try:
        return audit(setting, ledger, known)
    finally:
        ledger.close()


def audit(setting: Setting, ledger: Ledger, ids: Sequence[str] | None = None) -> SelfAudit:
    """Bounds on what the ledger's answers disclosed; `ids` are the people's, if they are known."""
    reader = QuestionReader(setting)
    domains = DomainParts(setting.schema, setting.per_person)
    answers, lost = read(ledger, reader)
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
    worst = ExposureBound(squared, setting.delta, setting.eta, planned, normal=normal)
    return SelfAudit(
        setting=setting, answers=len(answers), lost=lost, kinds=len(kinds),
        together=tuple(together),
        worst=worst,
        parts=tuple(float(farthest([part], 1)[0]) for part in each), known_by=known_by,
        named=None if ids is None else len(ids), ids=named,
        squares=squares_of(answers, together, hashes) + lost * one,
        left_over=residuals(answers, reader, domains, sizes_of(setting, answers, known_by, hashes)),
    )  # fmt: skip


def read(ledger: Ledger, reader: QuestionReader) -> tuple[list[LedgerAnswer], int]:
    """The ledger's answers, and how many are lost: of those nobody knows what was asked."""
    kinds: dict[QuestionKind, QuestionKind] = {}
    found, lost, after = list[LedgerAnswer](), 0, 0
    while page := ledger.entries(after, PAGE):
        after = page[-1].number
        known = [kept for kept in page if not kept.lost]
        lost += len(page) - len(known)
        for kept in known:
            answer = answer_of(kept, reader)
            found.append(replace(answer, kind=kinds.setdefault(answer.kind, answer.kind)))
    return found, lost


def answer_of(kept: StoredEntry, reader: QuestionReader) -> LedgerAnswer:
    """An entry of the ledger as an answer with its question's kind."""
    question = json.loads(kept.entry.question)
    rows = question["subset"]
    subset = None
    if isinstance(rows, str) and rows != "all":
        sql = next(one.sql for one in reader.setting.subsets if one.name == rows)
        subset = declared(sql, reader.setting.schema).predicate
    half = rows["half"] if isinstance(rows, dict) else None
    return LedgerAnswer(
        QuestionKind.of(question, subset),
        half,
        question["sql"],
        tuple(json.loads(kept.entry.answer)),
    )


def people(
    setting: Setting, ids: Sequence[str] | None, answers: int
) -> tuple[str, tuple[str, ...], Hashes]:
    """The people to look at: how they are known, their ids if given, and their hashes."""
    most = max(1, min(MOST_PEOPLE, MOST_TESTS // max(answers, 1)))
    if ids is None and setting.id_column is None:
        ids = [str(number) for number in range(setting.people)]
    if ids is None:
        return "random", (), row_hashes(range(min(SAMPLE, most)))
    looked_at = tuple(ids[:: -(-len(ids) // most)])
    return ("row number" if setting.id_column is None else "id"), looked_at, row_hashes(looked_at)


def squares_of(
    answers: Sequence[LedgerAnswer], together: Sequence[KindGroup], hashes: Hashes
) -> Floats:
    """D² of each person: halves count some people and not others."""
    by_kind: dict[QuestionKind, list[str | None]] = {}
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
    setting: Setting, answers: Sequence[LedgerAnswer], known_by: str, hashes: Hashes
) -> dict[str | None, int]:
    """How many rows there are, where everybody knows: in all, and in halves of known ids."""
    if setting.per_person > 1:
        return {}
    found: dict[str | None, int] = {None: setting.people}
    if known_by != "random" and len(hashes) == setting.people:
        seeds = {answer.half for answer in answers if answer.half is not None}
        found |= {seed: int(members(hashes, seed).sum()) for seed in seeds}
    return found
