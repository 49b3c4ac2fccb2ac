"""From a question to its answer: charged, on disk, and only then disclosed.

The order is: read the question (no row is touched), find what was answered before, see that every
budget has room for the rest, count, add noise, write charge and answer in one durable step, answer
from what was written. A process that dies before the write has disclosed nothing; one that dies
after it finds the answer again.
"""

from __future__ import annotations

import json
import os
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from voile.answering.arithmetic import as_ratio
from voile.answering.noisy_totals import NoisyEstimator, NoisyTotal, NoNoise, noisy_walk
from voile.arrays import Floats, Ints
from voile.engines.lookups import Summand, Sums
from voile.estimate import Answer, checked_confidence
from voile.noise.whole import draw
from voile.privacy.interactive.laws import NoiseLaw
from voile.privacy.interactive.promise import account
from voile.records import Record
from voile.serve.ledger.base import (
    ChargeResult,
    Entry,
    ExhaustedError,
    Ledger,
    StoredEntry,
    WouldWaitError,
)
from voile.serve.question import Question, QuestionReader, QuestionTotal
from voile.serve.setting import Setting
from voile.units import counted

Draw = Callable[[NoiseLaw, int], list[int]]
StoredValues = Callable[[Question, QuestionTotal], Floats]
"""What was answered to a total, for each group of its question."""
FEW = 100
"""Numbers of an answer that is made at once."""
STOCK = 256
"""Noise that is drawn at a time."""
LAWS = 256
"""Laws whose noise is in stock."""
KEPT = 4096
"""Sizes of halves that are remembered."""


class PrivateRows(Protocol):
    """The private table, which gives totals only."""

    def totals(self, asked: Sums) -> Ints:
        """The exact totals: a row for each group, a column for each summand."""

    def is_at_hand(self, request: Sums) -> bool:
        """Whether these totals are had without a look at all rows."""


@dataclass(frozen=True)
class QuestionCost(Record):
    """What a question would cost, known before it is asked."""

    json_keys = (
        "cost=new", "remaining=left", "new", "known", "affordable", "groups", "stderr", "notes",
    )  # fmt: skip

    new: int
    """Totals that would be charged."""
    known: int
    """Totals that were answered before."""
    left: int
    """Of the tightest budget, before."""
    stderr: dict[str, float | None]
    """Of each column, where it does not depend on the answer."""
    groups: int
    notes: tuple[str, ...] = ()

    @property
    def affordable(self) -> bool:
        """Whether the budget suffices."""
        return self.new <= self.left


@dataclass(frozen=True)
class QueryReply:
    """An answer, what it cost, and what is left."""

    answer: Answer
    charged: int
    left: int
    numbers: tuple[int, ...]
    """Where the totals it is made of stand in the ledger."""
    subset: Any
    subset_rows: int | None
    notes: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """The reply as JSON; `answer` and its error are set where there is one estimate only."""
        found = self.answer.to_dict()
        estimates = [v for row in found["rows"] for v in row.values() if isinstance(v, dict)]
        one = estimates[0] if len(estimates) == 1 else {}
        return {
            "answer": one.get("estimate"), "stderr": one.get("stderr"),
            "low": one.get("low"), "high": one.get("high"),
            "charged": self.charged, "remaining": self.left,
            "rows": found["rows"], "columns": list(self.answer.columns),
            "confidence": self.answer.confidence, "covers": self.answer.covers,
            "notes": list(self.notes), "subset": self.subset, "subset_rows": self.subset_rows,
            "numbers": list(self.numbers),
        }  # fmt: skip


class PendingReply:
    """A reply that leaves when what it is made of is on disk.

    Its estimates are computed while the disk is waited for, from the noisy numbers that are about
    to be written. Where the ledger keeps others, because the same question came twice at a time,
    they are computed again from those.
    """

    def __init__(
        self,
        recorded: Future[ChargeResult] | None,
        drafted: Mapping[str, StoredEntry],
        reply: Callable[[Mapping[str, StoredEntry], ChargeResult | None], QueryReply],
        draft: Answer,
    ) -> None:
        self.recorded = recorded
        """Done when all is on disk; None where nothing is to be charged."""
        self.draft = draft
        self._drafted, self._reply = drafted, reply

    def result(self) -> QueryReply:
        """The reply; waits for the disk. Raises if the charge was refused."""
        if self.recorded is None:
            return self._reply(self._drafted, None)
        done = self.recorded.result()
        return self._reply({**self._drafted, **done.kept}, done)


class QueryService:
    """Answers the questions of all analysts; any number of threads may ask."""

    def __init__(
        self, setting: Setting, rows: PrivateRows, ledger: Ledger, draw_noise: Draw = draw
    ) -> None:
        self.setting, self.ledger = setting, ledger
        self._rows, self._draw = rows, draw_noise
        self._reserved = Reservations()
        self._sizes: dict[int, int] = {}

    @cached_property
    def _reader(self) -> QuestionReader:
        """Reads questions in this process; a server lets workers do that."""
        return QuestionReader(self.setting)

    def promise(self) -> dict[str, Any]:
        """What all answers together promise everyone in the table."""
        setting = self.setting
        at = setting.accounted_at
        return account(setting.noise, setting.variance, setting.queries, at=at).to_dict()

    def cost(self, analyst: str, sql: str, subset: Any = "all") -> QuestionCost:
        """What the question would cost; no row is touched and nothing is charged."""
        return self.cost_of(analyst, self.read(sql, subset))

    def ask(
        self, analyst: str, sql: str, subset: Any = "all", confidence: float = 0.95
    ) -> QueryReply:
        """Answer; what was answered before is free."""
        checked_confidence(confidence)
        return self.answer(analyst, self.read(sql, subset), confidence)

    def read(self, sql: str, subset: Any = "all") -> Question:
        """The question, read in this process, however long that takes."""
        return self._reader.read(sql, subset)

    def cost_of(self, analyst: str, question: Question) -> QuestionCost:
        """What a question that was read would cost."""
        asked = self._asked(question)
        known = self._known(question)
        return QuestionCost(
            new=len(asked) - len(known),
            known=len(known),
            left=self.ledger.budgets(analyst).left,
            stderr=self._expected_errors(question),
            groups=sum(len(one.groups) for one in question.sets or (question,)),
            notes=(*question.query.remarks, *self._notes(question)),
        )

    def answer(self, analyst: str, question: Question, confidence: float = 0.95) -> QueryReply:
        """Answer a question that was read; what was answered before is free."""
        return self.begin(analyst, question, confidence).result()

    def begin(
        self,
        analyst: str,
        question: Question,
        confidence: float = 0.95,
        *,
        at_once: bool = False,
    ) -> PendingReply:
        """Count and hand the charge to the ledger; the reply waits for the disk.

        If this is to be done `at_once`, a WouldWaitError says that it cannot be; nothing is done
        then.
        """
        checked_confidence(confidence)
        if at_once and not self._is_short(question):
            raise WouldWaitError
        totals = self._asked(question)
        kept = self._known(question)
        new = [total for total in totals if total.key not in kept]
        if at_once and new and not self._rows.is_at_hand(question.sums(new)):
            raise WouldWaitError
        recorded = None
        if new:
            self._reserved.take(self.ledger, analyst, len(new), wait=not at_once)
            recorded = self._recording(analyst, question, new, kept)
        left = self.ledger.budgets(analyst).left if recorded is None else 0
        draft = self._assembled(question, kept, confidence)

        def reply(found: Mapping[str, StoredEntry], done: ChargeResult | None) -> QueryReply:
            same = all(found[total.key].entry == kept[total.key].entry for total in totals)
            answer = draft if same else self._assembled(question, found, confidence)
            return QueryReply(
                answer=answer, charged=done.charged if done else 0,
                left=done.budgets.left if done else left,
                numbers=tuple(sorted({found[total.key].number for total in totals})),
                subset=question.rows.subset, subset_rows=self._size(question),
                notes=(*answer.notes, *self._notes(question)),
            )  # fmt: skip

        return PendingReply(recorded, kept, reply, draft)

    def _recording(
        self,
        analyst: str,
        question: Question,
        new: Sequence[QuestionTotal],
        kept: dict[str, StoredEntry],
    ) -> Future[ChargeResult]:
        """Hand new totals to the ledger, and put them among those that were kept.

        A part of the budget is held for them, until they are on disk or refused.
        """
        try:
            entries = self._answers(question, new)
            recorded = self.ledger.recording(analyst, entries)
        except BaseException:
            self._reserved.give(analyst, len(new))
            raise
        recorded.add_done_callback(lambda _: self._reserved.give(analyst, len(new)))
        kept |= {entry.key: StoredEntry(0, entry, analyst, 0.0, "") for entry in entries}
        return recorded

    def _is_short(self, question: Question) -> bool:
        """Whether it has one grouping, few numbers, and asks about rows that need no look."""
        single = not question.sets and not question.wholes and question.rows.mask is None
        return single and len(question.totals) * len(question.groups) <= FEW

    def _known(self, question: Question) -> dict[str, StoredEntry]:
        """What was answered before, by key; also under the keys of earlier versions."""
        kept: dict[str, StoredEntry] = {}
        for one in question.questions:
            totals = [t for t in one.totals if self._public(one, t) is None]
            earlier = {total.earlier: total.key for total in totals if total.earlier}
            found = self.ledger.find([*(total.key for total in totals), *earlier])
            kept |= {key: entry for key, entry in found.items() if key not in earlier}
            for key in earlier.keys() & found.keys():
                kept.setdefault(earlier[key], reordered(found[key], one.reordered))
        return kept

    def _size(self, question: Question) -> int | None:
        """How many rows the subset has, where that is public: ids are, and so are halves."""
        rows = question.rows
        if rows.rows is not None or self.setting.per_person > 1 or rows.mask is None:
            return rows.rows
        if rows.mask not in self._sizes:
            if len(self._sizes) >= KEPT:
                self._sizes.clear()
            half = Sums((Summand(),), mask=rows.mask)
            self._sizes[rows.mask] = int(self._rows.totals(half)[0, 0])
        return self._sizes[rows.mask]

    def _public(self, question: Question, total: QuestionTotal) -> int | None:
        """The exact total where it is public: of no row, or of all rows of a subset."""
        if total.nobody:
            return 0
        return self._size(question) if total.everybody else None

    def _asked(self, question: Question) -> list[QuestionTotal]:
        """Totals that are answered with noise, each once however often the question needs it."""
        found = {
            total.key: total
            for one in question.questions
            for total in one.totals
            if self._public(one, total) is None
        }
        return list(found.values())

    def _notes(self, question: Question) -> list[str]:
        found = list(question.notes)
        totals = [total for one in question.questions for total in one.totals]
        if any(total.nobody for total in totals):
            found.append("no tuple of the public domain satisfies the condition: 0, at no charge")
        if any(self._public(question, total) is not None for total in totals if total.everybody):
            found.append("how many rows there are is public: that count is exact, at no charge")
        if question.sets:
            found.append(f"{counted(len(question.sets), 'grouping')}: each is charged by itself")
        if any(self._asked(part.question) for one in question.sets or (question,)
               for part in one.wholes):  # fmt: skip
            found.append("a total over all groups has noise of its own, and is charged by itself")
        return found

    # ------------------------------------------------------------------ what touches rows

    def _answers(self, question: Question, new: Sequence[QuestionTotal]) -> list[Entry]:
        """The true totals with noise; no other function sees the true ones."""
        entries, wanted = [], {total.key for total in new}
        for part in question.questions:
            some = [total for total in unique(part.totals) if total.key in wanted]
            wanted -= {total.key for total in some}
            if not some:
                continue
            truth = self._rows.totals(part.sums(some))
            for place, total in enumerate(some):
                steps = truth[:, place].tolist()
                noise = self._draw(total.law, len(steps))
                noisy = [step + one for step, one in zip(steps, noise, strict=True)]
                question_text = json.dumps(total.question, ensure_ascii=False, sort_keys=True)
                entries.append(Entry(total.key, question_text, json.dumps(noisy)))
        return entries

    # ------------------------------------------------------------------ what does not

    def _expected_errors(self, question: Question) -> dict[str, float | None]:
        """Standard errors that are known in advance: of columns that are linear in totals."""
        if question.sets:
            return self._expected_errors(question.sets[0])
        estimator = self._estimator(question, lambda one, _: np.zeros(len(one.groups)))
        found: dict[str, float | None] = {}
        for column in question.query.columns:
            if isinstance(column.source, int):
                continue
            ratio = as_ratio(column.source)
            linear = ratio is not None and ratio.bottom.is_constant
            found[column.name] = float(estimator.stderr(column.source)[0]) if linear else None
        return found

    def _assembled(
        self, question: Question, kept: Mapping[str, StoredEntry], confidence: float
    ) -> Answer:
        def stored(one: Question, total: QuestionTotal) -> Floats:
            steps = np.array(json.loads(kept[total.key].entry.answer), dtype=np.float64)
            return np.asarray(steps[list(one.stored)] / total.summand.scale)

        walks = [
            noisy_walk(one.query, one.groups, self._estimator(one, stored))
            for one in question.sets or (question,)
        ]
        if not question.sets:
            return walks[0].answer(confidence)
        from voile.answering.subtotals import answer_sets  # noqa: PLC0415  (few ask for them)

        return answer_sets(question.query, walks, confidence)

    def _estimator(self, question: Question, stored: StoredValues) -> NoisyEstimator:
        """Estimates from totals of the groups, and from those over more rows."""
        totals = self._noisy(question, stored)
        ranges = {total.term: total.range for total in question.totals}
        for part in question.wholes:
            found = self._noisy(part.question, stored)
            within = {total.term: total.range for total in part.question.totals}
            for term in part.terms:
                whole = found[term.plain]
                totals[term] = replace(whole, values=whole.values[list(part.places)])
                ranges[term] = within[term.plain]
        return NoisyEstimator(ranges, totals, self.setting.rows)

    def _noisy(self, question: Question, stored: StoredValues) -> dict[Any, NoisyTotal]:
        """Every total of one question as it was answered, or as it is public."""
        found: dict[Any, NoisyTotal] = {}
        for total in question.totals:
            public = self._public(question, total)
            if public is None:
                found[total.term] = noisy_total(total, stored(question, total))
            else:
                values = np.full(len(question.groups), float(public))
                found[total.term] = NoisyTotal(total.key, values, NoNoise(), 1.0)
        return found


def unique(totals: Sequence[QuestionTotal]) -> list[QuestionTotal]:
    """Each total once, however often a question needs it."""
    return list({total.key: total for total in totals}.values())


def reordered(found: StoredEntry, order: Sequence[int] | None) -> StoredEntry:
    """An entry with its groups in another order."""
    if order is None:
        return found
    steps = json.loads(found.entry.answer)
    answer = json.dumps([steps[place] for place in order])
    return replace(found, entry=replace(found.entry, answer=answer))


def noisy_total(total: QuestionTotal, values: Any) -> NoisyTotal:
    """The stored values of a total, with the law of their noise."""
    unit, normal = 1 / total.summand.scale, total.law.kind != "geometric"
    return NoisyTotal(total.key, values, total.law, unit, normal=normal)


class NoiseStock:
    """Noise drawn beforehand: many numbers of one law take hardly longer than one.

    Each number is given out once. A process that was forked has none of its parent's.
    """

    def __init__(self, draw_noise: Draw = draw) -> None:
        self._draw = draw_noise
        self._stock: dict[NoiseLaw, list[int]] = {}
        self._process = os.getpid()
        self._lock = threading.Lock()

    def draw(self, law: NoiseLaw, count: int) -> list[int]:
        """So many numbers of a law, which nobody had before."""
        if count > STOCK // 8:
            return self._draw(law, count)
        with self._lock:
            if self._process != os.getpid():
                self._stock, self._process = {}, os.getpid()
            stock = self._stock.setdefault(law, [])
            if len(stock) < count:
                if len(self._stock) > LAWS:
                    self._stock = {law: stock}
                stock += self._draw(law, STOCK)
            return [stock.pop() for _ in range(count)]


class Reservations:
    """Parts of budgets held for questions that are being counted.

    Without them two questions could both see the last answer left; the ledger would refuse the
    second, but only after it was counted. With them every refusal comes before any counting. Where
    only held parts stand in the way, the question waits: some may fail, or be recorded already.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._held: Counter[str] = Counter()
        self._all = 0

    def take(self, ledger: Ledger, analyst: str, needed: int, *, wait: bool = True) -> None:
        """Keep `needed` of the analyst's budgets; refuse if they are used up."""
        with self._changed:
            if wait:
                self._changed.wait_for(lambda: self._has_room(ledger, analyst, needed))
            elif not self._has_room(ledger, analyst, needed):
                raise WouldWaitError
            self._held[analyst] += needed
            self._all += needed

    def give(self, analyst: str, needed: int) -> None:
        """Keep them no longer: they are recorded, or were refused."""
        with self._changed:
            self._held[analyst] -= needed
            self._all -= needed
            self._changed.notify_all()

    def _has_room(self, ledger: Ledger, analyst: str, needed: int) -> bool:
        found = ledger.budgets(analyst)
        bounds = (
            ("the server", found.everyone, self._all),
            (analyst, found.analyst, self._held[analyst]),
            ("the group", found.group, 0),
        )
        for whose, budget, _ in bounds:
            if budget is not None and budget.left < needed:
                raise ExhaustedError(whose, needed, budget.left)
        return all(budget is None or budget.left - held >= needed for _, budget, held in bounds)
