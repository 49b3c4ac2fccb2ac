"""Questions that differ from one that was read before in their condition alone, read without SQL.

Everything of a question but its WHERE is a *frame*: what is counted or summed, for which groups.
A worker reads the first question of a frame (see `voile.serve.workers`). After that, a question of
the same frame whose condition joins plain comparisons (`age between 30 and 40`, `race = 'White'`,
`job in ('a', 'b')`) by AND, OR, NOT and parentheses is put together here: the comparisons are
looked up on the public values of their columns, and the totals are made as always, by the same
code. No SQL engine has a part in that, and its time is bounded by the limits below.

It is exact or it is not done. How a comparison is written is learnt from the parser itself, once
for each form; a frame is kept only if the condition of its first question, put together here, is
the one that the worker read. Whatever is not on the list below is left to the workers: another
kind of comparison, a text that a column does not list (which has a remark), bins, dates, a
condition on what makes the groups, a comment, and every refusal.
"""

from __future__ import annotations

import re
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from voile.arrays import Bools, Floats
from voile.engines.lookups import Lookup, Tree
from voile.errors import VoileError
from voile.query import parse
from voile.query.language import RESERVED
from voile.query.predicate import And, Atom, Expression, Or, Predicate, atoms, both
from voile.query.query import Query
from voile.query.text import shortened, single_select, sql_of
from voile.schema import Attribute, Range, Schema, Values
from voile.serve.canonical import in_words, simplified
from voile.serve.question import (
    Question,
    QuestionTotal,
    RowSelection,
    TotalBuilder,
    all_of,
    selected,
)
from voile.serve.setting import Setting

LONGEST = 2000
"""Characters of a question that is read here."""
MOST_ATOMS, MOST_LISTED, DEEPEST = 24, 64, 16
"""Comparisons of a condition, values in one IN, and parentheses within each other."""
LARGEST = 2**14
"""Values of a column whose comparisons are looked up here."""
JOINT = 2**16
"""Combinations of values of all columns that a total reads."""
FRAMES, FORMS, TRUTHS = 1024, 4096, 1024
"""How many are remembered."""
KEPT, KEPT_BYTES = 4096, 2**26
"""Questions that are remembered by their text, and their bytes."""
DIGITS = 15
"""Of a number in a comparison: so many are exact however a database keeps them."""

Key = TypeVar("Key", bound=Hashable)
Kept = TypeVar("Kept")


class Remembered(Generic[Key, Kept]):
    """The newest of what was found; the one that was not used for longest is forgotten."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._found: OrderedDict[Key, Kept] = OrderedDict()

    def get(self, key: Key) -> Kept | None:
        """What was found for a key."""
        found = self._found.get(key)
        if found is not None:
            self._found.move_to_end(key)
        return found

    def put(self, key: Key, found: Kept) -> Kept:
        """Remember it."""
        self._found[key] = found
        while len(self._found) > self._most:
            self._found.popitem(last=False)
        return found


# ---------------------------------------------------------------------- words
# The text in words. What this does not know for certain is not read here: comments, texts with
# quotes or escapes in them, numbers in other forms, names beyond ASCII.


WORDS = re.compile(
    r"""[ \t\r\n]*(?:(?P<word>[A-Za-z_][A-Za-z0-9_]*)|(?P<name>"[^"\\]+"(?!"))"""
    r"""|(?P<number>(?:0|[1-9][0-9]*)(?![\w.]))|(?P<decimal>[0-9]+\.[0-9]+(?![\w.]))"""
    r"""|(?P<text>(?<![\w"])'[^'\\\x00-\x1f]*'(?!'))"""
    r"""|(?P<sign><=|>=|<>|!=|[=<>(),*+%.]|-(?!-)|/(?![*/])))"""
)
LAST = ("group", "order", "limit", "offset")
"""Words that end a condition."""
FOREIGN = frozenset(
    ["with", "union", "intersect", "except", "having", "join", "over", "filter", "window", "case",
     "rollup", "cube", "grouping", "exists", "lateral", "qualify", "values", "using"]
)  # fmt: skip
"""Words of questions that are left to the workers."""


@dataclass(frozen=True)
class Word:
    """A piece of the text: its kind, as it is written, and where it begins."""

    kind: str
    text: str
    start: int

    @cached_property
    def lower(self) -> str:
        """A word of SQL in small letters; nothing else is one."""
        return self.text.lower() if self.kind == "word" else self.text


def words_of(sql: str) -> list[Word] | None:
    """All words of a text, or None if some part of it is not known."""
    found, at, end = [], 0, len(sql.rstrip(" \t\r\n"))
    while at < end:
        match = WORDS.match(sql, at)
        if match is None or match.lastgroup is None:
            return None
        kind = match.lastgroup
        found.append(Word(kind, match[kind], match.start(kind)))
        at = match.end()
    return found


@dataclass(frozen=True)
class DividedQuestion:
    """A question in three parts: before the condition, the condition's words, and after it."""

    frame: tuple[str, str]
    condition: tuple[Word, ...]


def cut_of(sql: str) -> DividedQuestion | None:
    """The parts of a question with one SELECT and one WHERE; None for any other."""
    words = words_of(sql)
    if words is None or not words:
        return None
    named = [word.lower for word in words if word.kind == "word"]
    if [named.count(one) for one in ("select", "from", "where")] != [1, 1, 1]:
        return None
    if named[0] != "select" or not FOREIGN.isdisjoint(named):
        return None
    begin = next(i for i, word in enumerate(words) if word.lower == "where")
    if balance(words[:begin]):
        return None
    after = words[begin + 1 :]
    stop = next((i for i, word in enumerate(after) if word.lower in LAST), len(after))
    end = after[stop].start if stop < len(after) else len(sql)
    first = words[begin].start + len("where")
    if not stop or balance(after[:stop]):
        return None
    return DividedQuestion((sql[:first], sql[end:]), tuple(after[:stop]))


def balance(words: Sequence[Word]) -> int:
    """How many parentheses are open at the end."""
    signs = [word.text for word in words if word.kind == "sign"]
    return signs.count("(") - signs.count(")")


# ---------------------------------------------------------------------- comparisons


@dataclass(frozen=True)
class PlainComparison:
    """A column compared with constants, as it is written in a question."""

    column: Word
    sign: str
    constants: tuple[Word, ...]

    @property
    def form(self) -> tuple[str, str, int]:
        """What it has in common with those that differ in their constants only."""
        return self.column.text, self.sign, len(self.constants)

    def written(self, constants: Sequence[str]) -> str:
        """SQL of the same form, with these constants."""
        name = self.column.text
        if self.sign == "between":
            return f"{name} between {constants[0]} and {constants[1]}"
        if self.sign == "in":
            return f"{name} in ({', '.join(constants)})"
        return f"{name} {self.sign} {constants[0]}"


@dataclass(frozen=True)
class JoinedConditions:
    """Conditions joined by `and` or `or`, or one under `not`."""

    word: str
    parts: tuple[PlainComparison | JoinedConditions, ...]


Condition = PlainComparison | JoinedConditions
SIGNS = frozenset(["=", "<>", "!=", "<", "<=", ">", ">="])
EQUALS = frozenset(["=", "<>", "!=", "in"])
"""What texts are compared by here; their order is left to the workers."""


class LeftError(Exception):
    """The question is left to the workers."""


class ConditionReader:
    """Reads the words of a condition; raises `LeftError` at what it does not know."""

    def __init__(self, words: Sequence[Word]) -> None:
        self._words, self._at, self._depth, self._atoms = words, 0, 0, 0

    def read(self) -> Condition:
        """The whole condition."""
        found = self._either()
        if self._at < len(self._words):
            raise LeftError
        return found

    def _next(self) -> Word:
        if self._at >= len(self._words):
            raise LeftError
        self._at += 1
        return self._words[self._at - 1]

    def _takes(self, text: str) -> bool:
        there = self._at < len(self._words) and self._words[self._at].lower == text
        self._at += there
        return there

    def _needs(self, text: str) -> None:
        if not self._takes(text):
            raise LeftError

    def _either(self) -> Condition:
        return self._joined("or", self._every)

    def _every(self) -> Condition:
        return self._joined("and", self._one)

    def _joined(self, word: str, part: Callable[[], Condition]) -> Condition:
        found = [part()]
        while self._takes(word):
            found.append(part())
        return JoinedConditions(word, tuple(found)) if len(found) > 1 else found[0]

    def _one(self) -> Condition:
        self._depth += 1
        if self._depth > DEEPEST:
            raise LeftError
        try:
            if self._takes("not"):
                return JoinedConditions("not", (self._one(),))
            if self._takes("("):
                found = self._either()
                self._needs(")")
                return found
            return self._comparison()
        finally:
            self._depth -= 1

    def _comparison(self) -> Condition:
        column, self._atoms = self._next(), self._atoms + 1
        if column.kind not in ("word", "name") or self._atoms > MOST_ATOMS:
            raise LeftError
        negated = self._takes("not")
        sign = self._next().lower
        if sign == "between":
            low = self._constant()
            self._needs("and")
            found = PlainComparison(column, sign, (low, self._constant()))
        elif sign == "in":
            found = PlainComparison(column, sign, self._listed())
        elif sign in SIGNS and not negated:
            found = PlainComparison(column, sign, (self._constant(),))
        else:
            raise LeftError
        return JoinedConditions("not", (found,)) if negated else found

    def _listed(self) -> tuple[Word, ...]:
        self._needs("(")
        found = [self._constant()]
        while self._takes(","):
            found.append(self._constant())
        self._needs(")")
        if len(found) > MOST_LISTED:
            raise LeftError
        return tuple(found)

    def _constant(self) -> Word:
        found = self._next()
        if found.kind not in ("number", "text") or len(found.text) > LONGEST:
            raise LeftError
        if found.kind == "number" and len(found.text) > DIGITS:
            raise LeftError
        return found


# ---------------------------------------------------------------------- columns


class ColumnTruth:
    """Where comparisons of one column hold, on its public values; nothing holds for NULL."""

    def __init__(self, attribute: Attribute) -> None:
        self._texts = attribute.kind == "categorical"
        values = list(attribute.domain)
        self._known = np.ones(attribute.size, dtype=np.bool_)
        self._known[len(values) :] = False
        self._codes = {value: code for code, value in enumerate(values)} if self._texts else {}
        self._numbers = np.zeros(attribute.size, dtype=np.int64)
        if not self._texts:
            self._numbers[: len(values)] = np.array(values, dtype=np.int64)

    @classmethod
    def of(cls, attribute: Attribute) -> ColumnTruth | None:
        """Of whole numbers and listed texts; None for any other column."""
        if attribute.size > LARGEST:
            return None
        domain = attribute.domain
        if attribute.kind == "categorical" and type(domain) is Values:
            fits = all(type(value) is str for value in domain)
        else:
            fits = attribute.kind == "integer" and type(domain) in (Range, Values)
            fits = fits and all(type(value) is int and abs(value) < 2**62 for value in domain)
        return cls(attribute) if fits else None

    def takes(self, comparison: PlainComparison) -> bool:
        """Whether it is one that is looked up here."""
        wanted = "text" if self._texts else "number"
        if any(one.kind != wanted for one in comparison.constants):
            return False
        if not self._texts:
            return True
        listed = all(one.text[1:-1] in self._codes for one in comparison.constants)
        return listed and comparison.sign in EQUALS

    def holds(self, comparison: PlainComparison, *, negated: bool) -> Bools:
        """On each value whether the comparison is true; if `negated`, whether it is false."""
        found = self._of_texts(comparison) if self._texts else self._of_numbers(comparison)
        return np.asarray((~found if negated else found) & self._known)

    def _of_texts(self, comparison: PlainComparison) -> Bools:
        found = np.zeros(len(self._known), dtype=np.bool_)
        found[[self._codes[one.text[1:-1]] for one in comparison.constants]] = True
        return ~found if comparison.sign in ("<>", "!=") else found

    def _of_numbers(self, comparison: PlainComparison) -> Bools:
        x, given = self._numbers, [int(one.text) for one in comparison.constants]
        found: npt.NDArray[np.bool_]
        match comparison.sign:
            case "between":
                found = (x >= given[0]) & (x <= given[1])
            case "in":
                found = np.isin(x, given)
            case "=":
                found = x == given[0]
            case "<":
                found = x < given[0]
            case "<=":
                found = x <= given[0]
            case ">":
                found = x > given[0]
            case ">=":
                found = x >= given[0]
            case _:
                found = x != given[0]
        return found


MARKS = 9_000_000_001
"""The first of the numbers that stand for constants where a form is learnt."""


@dataclass(frozen=True)
class LearntComparison:
    """How comparisons of one form are written once they are bound: the text around constants."""

    attribute: str
    plain: tuple[str, ...]
    negated: tuple[str, ...]
    shown: tuple[str, ...]

    def atom(self, comparison: PlainComparison, *, negated: bool) -> Atom:
        """The comparison as the binder would have made it."""
        constants = [one.text for one in comparison.constants]
        return Atom.from_canonical(
            filled(self.negated if negated else self.plain, constants),
            (self.attribute,),
            shortened(filled(self.shown, constants)),
            comparison.column.start,
        )


def filled(around: Sequence[str], constants: Sequence[str]) -> str:
    """A text with its constants in their places."""
    return around[0] + "".join(
        f"{one}{after}" for one, after in zip(constants, around[1:], strict=True)
    )


def around(text: str, marks: Sequence[str]) -> tuple[str, ...]:
    """The text before, between and after the marks, each of which must be there once, in order."""
    parts = re.split("|".join(map(re.escape, marks)), text)
    if len(parts) != len(marks) + 1 or filled(parts, marks) != text:
        raise LeftError
    return tuple(parts)


class Comparisons:
    """The comparisons of a schema's columns that are looked up here, and how they are written."""

    def __init__(self, schema: Schema, called: str) -> None:
        self._schema, self._called = schema, called
        self._columns: dict[str, ColumnTruth] = {}
        self._names: dict[str, str] = {}
        for attribute in schema:
            if (truth := ColumnTruth.of(attribute)) is not None:
                self._columns[attribute.name] = truth
                self._names |= dict.fromkeys(spellings(attribute.name), attribute.name)
        self._forms: Remembered[tuple[str, str, int], LearntComparison] = Remembered(FORMS)
        self._truths: Remembered[tuple[str, str], Bools] = Remembered(TRUTHS)

    def atom(self, comparison: PlainComparison, *, negated: bool) -> tuple[Atom, Bools]:
        """The comparison as an atom, and where it holds."""
        name = self._names.get(comparison.column.text)
        if name is None or not self._columns[name].takes(comparison):
            raise LeftError
        form = self._forms.get(comparison.form) or self._learnt(comparison, name)
        atom = form.atom(comparison, negated=negated)
        key = (name, atom.canonical)
        truth = self._truths.get(key)
        if truth is None:
            truth = self._truths.put(key, self._columns[name].holds(comparison, negated=negated))
        return atom, truth

    def _learnt(self, comparison: PlainComparison, name: str) -> LearntComparison:
        """How the parser and the binder write a comparison of this form."""
        marks = [str(MARKS + i) for i in range(len(comparison.constants))]
        if comparison.constants[0].kind == "text":
            marks = [f"'{mark}'" for mark in marks]
        sql = comparison.written(marks)
        try:
            plain, under = self._bound(sql, name), self._bound(f"not {sql}", name)
            where = single_select(f"select count(*) from t where {sql}").args["where"].this
        except VoileError:
            raise LeftError from None
        form = LearntComparison(
            name, around(plain.canonical, marks), around(under.canonical, marks),
            around(sql_of(where), marks),
        )  # fmt: skip
        return self._forms.put(comparison.form, form)

    def _bound(self, condition: str, name: str) -> Atom:
        sql = f"select count(*) from t where {condition}"
        found = parse(sql, self._schema, called=self._called).predicate
        if not isinstance(found, Atom) or found.attributes != (name,):
            raise LeftError
        return found


def spellings(name: str) -> Iterator[str]:
    """How a column is named in questions that are read here: so that no two names are mixed up."""
    if '"' not in name and "\\" not in name:
        yield f'"{name}"'
    if name.isascii() and name.isidentifier() and name.lower() not in RESERVED:
        yield from (name, name.lower(), name.upper())


# ---------------------------------------------------------------------- frames


@dataclass(frozen=True)
class Frame:
    """A question that a worker read, for those that differ in their condition alone."""

    question: Question
    inner: dict[Atom, Bools]
    """Conditions of the totals themselves."""
    numbers: dict[Expression, Floats]
    """What is summed, on the domain of its columns."""
    grouped: frozenset[str]
    """The columns that make groups."""

    @classmethod
    def of(cls, question: Question) -> Frame:
        """The frame of a question; raises `LeftError` where more depends on its condition."""
        if question.sets or question.wholes or question.rows.subset != "all":
            raise LeftError
        inner: dict[Atom, Bools] = {}
        numbers: dict[Expression, Floats] = {}
        for total in question.totals:
            if (only := total.term.predicate) is not None:
                if not (isinstance(only, Atom) and isinstance(total.summand.only, Lookup)):
                    raise LeftError
                inner[only] = total.summand.only.table
            factors = zip(total.term.values, total.summand.factors, strict=True)
            numbers |= {value: factor.table for value, factor in factors}
        grouped = frozenset(name for group in question.query.groups for name in group.attributes)
        return cls(question, inner, numbers, grouped)

    @cached_property
    def reads(self) -> list[frozenset[str]]:
        """The columns that each total reads beside those of WHERE."""
        found = []
        for total in self.question.totals:
            parts = [*total.term.values, *atoms(total.term.predicate or And(()))]
            found.append(frozenset(name for part in parts for name in part.attributes))
        return found


@dataclass(frozen=True)
class FrameTables:
    """What the conditions and values of one question are on the public domain."""

    frame: Frame
    truths: dict[Atom, Bools]

    def tree(self, predicate: Predicate | None) -> Tree | None:
        """A condition by what it is true of."""
        return None if predicate is None else simplified(predicate, self._truth)

    def _truth(self, atom: Atom) -> Bools:
        found = self.truths.get(atom)
        return self.frame.inner[atom] if found is None else found

    def numbers(self, value: Expression) -> Floats:
        """What is summed, as the worker computed it."""
        return self.frame.numbers[value]

    def written(self, predicate: Predicate) -> str:
        """A condition in the dialect of questions, as `DomainEvaluator.written` has it."""
        return in_words(predicate)


class ShapeReader:
    """Reads questions whose frame was read before; for any number of threads."""

    def __init__(self, setting: Setting) -> None:
        self._setting = setting
        self._sizes = {attribute.name: attribute.size for attribute in setting.schema}
        self._comparisons = Comparisons(setting.schema, setting.name)
        self._builder = TotalBuilder(setting)
        self._frames: Remembered[tuple[str, str], Frame] = Remembered(FRAMES)
        self._lock = threading.Lock()

    def read(self, sql: str, rows: RowSelection) -> Question | None:
        """The question as a worker would have read it; None where that is left to a worker."""
        if declared_name(rows) is not None or len(sql) > LONGEST:
            return None
        cut = cut_of(sql)
        if cut is None:
            return None
        with self._lock:
            frame = self._frames.get(cut.frame)
            if frame is None:
                return None
            try:
                predicate, truths = self._condition(cut.condition)
                return self._framed(sql, frame, rows, predicate, truths)
            except LeftError:
                return None

    def learn(self, sql: str, question: Question) -> None:
        """Keep the frame of a question about all rows that a worker read."""
        if len(sql) > LONGEST or (cut := cut_of(sql)) is None:
            return
        with self._lock:
            if self._frames.get(cut.frame) is not None:
                return
            try:
                frame = Frame.of(question)
                predicate, truths = self._condition(cut.condition)
                again = self._framed(sql, frame, question.rows, predicate, truths)
            except LeftError:
                return
            if again.query == question.query and same_totals(again.totals, question.totals):
                self._frames.put(cut.frame, frame)

    def _condition(self, words: Sequence[Word]) -> tuple[Predicate, dict[Atom, Bools]]:
        truths: dict[Atom, Bools] = {}

        def bound(found: Condition, *, negated: bool) -> Predicate:
            if isinstance(found, PlainComparison):
                atom, truth = self._comparisons.atom(found, negated=negated)
                truths[atom] = truth
                return atom
            if found.word == "not":
                return bound(found.parts[0], negated=not negated)
            parts = tuple(bound(part, negated=negated) for part in found.parts)
            return And(parts) if (found.word == "and") is not negated else Or(parts)

        whole = bound(ConditionReader(words).read(), negated=False)
        joined = both(None, whole)
        if joined is None:
            raise LeftError
        return joined, truths

    def _framed(
        self,
        sql: str,
        frame: Frame,
        rows: RowSelection,
        predicate: Predicate,
        truths: dict[Atom, Bools],
    ) -> Question:
        read = frozenset(name for atom in truths for name in atom.attributes)
        if read & frame.grouped:
            raise LeftError  # which groups there are depends on the condition
        for own in frame.reads:
            if prod(self._sizes[name] for name in read | own) > JOINT:
                raise LeftError
        first = frame.question
        query: Query = replace(first.query, sql=sql, predicate=predicate)
        tables = FrameTables(frame, truths)
        shape = replace(first.shape, rows=rows)
        totals = tuple(self._builder.total(one.term, query, shape, tables) for one in first.totals)
        tree = tables.tree(predicate)
        if frame.grouped and any(total.nobody for total in totals):
            raise LeftError  # perhaps no group is possible, which is a refusal
        where = all_of(tree, rows.declared)
        return replace(first, query=query, rows=rows, totals=totals, where=where, shape=shape)


class KnownQuestions:
    """Questions that were read before, by their text and by their frame; for any thread."""

    def __init__(self, setting: Setting) -> None:
        self._setting = setting
        self._shapes = ShapeReader(setting)
        self._kept: OrderedDict[tuple[str, str | None], tuple[Question, int]] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    def known(self, sql: str, subset: Any) -> Question | None:
        """The question, if it can be read at once and without SQL."""
        rows = selected(self._setting, subset)
        key = (sql, declared_name(rows))
        with self._lock:
            if (found := self._kept.get(key)) is not None:
                self._kept.move_to_end(key)
                return found[0].about(rows)
        return self._shapes.read(sql, rows)

    def keep(self, sql: str, question: Question, size: int) -> None:
        """Remember a question that a worker read, and how many bytes it has."""
        declared = declared_name(question.rows)
        if declared is None and question.rows.subset == "all":
            self._shapes.learn(sql, question)
        if size > KEPT_BYTES // 16:
            return
        with self._lock:
            if (sql, declared) in self._kept:
                return
            self._kept[sql, declared] = question, size
            self._bytes += size
            while len(self._kept) > KEPT or self._bytes > KEPT_BYTES:
                _, (_, dropped) = self._kept.popitem(last=False)
                self._bytes -= dropped


def declared_name(rows: RowSelection) -> str | None:
    """The declared subset that is asked about; None for all rows and for halves."""
    return rows.subset if isinstance(rows.subset, str) and rows.subset != "all" else None


def same_totals(one: Sequence[QuestionTotal], other: Sequence[QuestionTotal]) -> bool:
    """Whether two questions ask for the same totals with the same noise, and keep the same."""

    def shown(total: QuestionTotal) -> tuple[Any, ...]:
        return (total.key, total.earlier, total.question, total.range, total.change, total.law,
                total.nobody, total.everybody)  # fmt: skip

    return [shown(total) for total in one] == [shown(total) for total in other]
