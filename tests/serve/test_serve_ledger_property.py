"""Answered ≤ T, and charges = answers: in any order, from any number of threads."""

from __future__ import annotations

import os
import tempfile
import threading
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from tests.support.ledgers import begun, question
from tests.support.soak import rounds
from voile.errors import UsageError
from voile.serve.ledger import (
    ChargeResult,
    ExhaustedError,
    Ledger,
    LedgerError,
    StoredEntry,
    open_ledger,
)
from voile.serve.ledger.entries import AnalystAccount
from voile.serve.setting import Setting

NAMES = st.sampled_from(["ann", "bob", "cy"])
GROUPS = st.sampled_from(["red", "blue"])
MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # noqa: S108
"""Where nothing waits for a disk: what is on disk when is the matter of test_serve_faults.py."""
SIZES = st.integers(0, 6)
ASKED = st.lists(st.integers(0, 11), min_size=1, max_size=4)


@dataclass
class Model:
    """The ledger as one would write it without disks, threads or people who restore backups."""

    queries: int
    answers: dict[int, str] = field(default_factory=dict)
    used: Counter[str] = field(default_factory=Counter)
    group_used: Counter[str] = field(default_factory=Counter)
    own: dict[str, int | None] = field(default_factory=dict)
    group_of: dict[str, str | None] = field(default_factory=dict)
    groups: dict[str, int] = field(default_factory=dict)
    tokens: dict[str, str] = field(default_factory=dict)

    def left(self, name: str) -> int:
        lefts = [self.queries - len(self.answers)]
        if (own := self.own.get(name)) is not None:
            lefts.append(own - self.used[name])
        if (group := self.group_of.get(name)) is not None:
            lefts.append(self.groups[group] - self.group_used[group])
        return max(0, min(lefts))

    def charge(self, name: str, new: dict[int, str]) -> None:
        self.answers |= new
        self.used[name] += len(new)
        if (group := self.group_of.get(name)) is not None:
            self.group_used[group] += len(new)


class LedgerMachine(RuleBasedStateMachine):
    """Every order of steps, compared with the model after each."""

    def __init__(self) -> None:
        super().__init__()
        self.place = tempfile.TemporaryDirectory(dir=MEMORY)
        self.folder = Path(self.place.name)
        self.step = 0

    @initialize(queries=st.integers(1, 8))
    def begin(self, queries: int) -> None:
        self.model = Model(queries)
        self.setting = begun(self.folder, queries=queries)
        self.ledger = open_ledger(self.folder, self.setting, serving=True)

    @rule(name=NAMES, asked=ASKED)
    def record(self, name: str, asked: list[int]) -> None:
        self.step += 1
        new = {n: f"[{self.step}]" for n in asked if n not in self.model.answers}
        entries = [question(n, answer=self.step) for n in asked]
        if len(new) > self.model.left(name):
            with pytest.raises(ExhaustedError) as caught:
                self.ledger.record(name, entries)
            assert (caught.value.needed, caught.value.left) == (len(new), self.model.left(name))
            return
        done = self.ledger.record(name, entries)
        self.model.charge(name, new)
        assert done.charged == len(new)
        assert done.budgets.left == self.model.left(name)
        assert {k: kept.entry.answer for k, kept in done.kept.items()} == {
            question(n).key: self.model.answers[n] for n in asked
        }

    @rule(name=NAMES, queries=st.none() | SIZES, group=st.none() | GROUPS)
    def issue(self, name: str, queries: int | None, group: str | None) -> None:
        if group is not None and group not in self.model.groups:
            with pytest.raises(UsageError, match="no group"):
                self.ledger.issue(name, queries=queries, group=group)
            return
        token, _ = self.ledger.issue(name, queries=queries, group=group)
        self.model.tokens[token] = name
        self.model.own[name] = self.model.own.get(name) if queries is None else queries
        self.model.group_of[name] = self.model.group_of.get(name) if group is None else group

    @rule(name=GROUPS, queries=SIZES)
    def set_group(self, name: str, queries: int) -> None:
        self.ledger.set_group(name, queries)
        self.model.groups[name] = queries

    @rule(name=NAMES)
    def revoke(self, name: str) -> None:
        mine = [token for token, whose in self.model.tokens.items() if whose == name]
        if name in self.model.own:
            assert self.ledger.revoke(analyst=name) == len(mine)
        for token in mine:
            del self.model.tokens[token]
            assert self.ledger.identify(token) is None

    @rule()
    def start_anew(self) -> None:
        self.ledger.close()
        self.ledger = open_ledger(self.folder, self.setting, serving=True)

    @invariant()
    def never_one_more(self) -> None:
        if not hasattr(self, "ledger"):
            return
        kept = self.ledger.entries()
        assert len(kept) == len(self.model.answers) <= self.model.queries
        assert [one.number for one in kept] == list(range(1, len(kept) + 1))
        assert {one.entry.key: one.entry.answer for one in kept} == {
            question(n).key: answer for n, answer in self.model.answers.items()
        }
        for name in ("ann", "bob", "cy"):
            assert self.ledger.budgets(name).left == self.model.left(name)
        assert {p["name"]: p["used"] for p in self.ledger.people()} == {
            name: self.model.used[name] for name in self.model.own
        }
        assert {g["name"]: g["used"] for g in self.ledger.groups()} == {
            name: self.model.group_used[name] for name in self.model.groups
        }
        for token, name in self.model.tokens.items():
            identity = self.ledger.identify(token)
            assert identity is not None
            assert identity.name == name

    def teardown(self) -> None:
        if hasattr(self, "ledger"):
            self.ledger.close()
        self.place.cleanup()


def test_any_order() -> None:
    run_state_machine_as_test(
        LedgerMachine, settings=settings(max_examples=rounds(40, 150), stateful_step_count=25)
    )


# --------------------------------------------------------------------------------- threads


def together(jobs: list[Callable[[], None]]) -> None:
    """All at once; what one raises is raised here."""
    errors: list[BaseException] = []
    start = threading.Barrier(len(jobs))

    def run(job: Callable[[], None]) -> None:
        start.wait()
        try:
            job()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(job,)) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def check_conserved(ledger: Ledger, setting: Setting, done: list[ChargeResult]) -> None:
    """As many charges as answers, all of them the kept ones, and at most T."""
    kept = {one.entry.key: one for one in ledger.entries(most=10**6)}
    assert len(kept) <= setting.queries
    assert sum(one.charged for one in done) == len(kept)
    for one in done:
        for key, entry in one.kept.items():
            assert kept[key] == entry


@pytest.mark.parametrize("place", ["sqlite", "postgres"])
def test_64_threads_get_no_more_than_there_is(
    place: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """Every thread asks what others ask, too, with noise of its own; all hear the same."""
    url = request.getfixturevalue("postgres")() if place == "postgres" else None
    if url:
        pytest.importorskip("psycopg")
    setting = begun(tmp_path / "server", queries=300, ledger=url)
    done: list[ChargeResult] = []
    refused: list[int] = []
    with open_ledger(tmp_path / "server", setting, serving=True) as ledger:

        def ask(thread: int) -> Callable[[], None]:
            def job() -> None:
                for number in range(10):
                    asked = [
                        question(f"shared {(thread * 7 + number) % 40}", answer=thread),
                        question(f"own {thread} {number}", answer=thread),
                    ]
                    try:
                        done.append(ledger.record(f"analyst {thread % 8}", asked))
                    except ExhaustedError as error:
                        assert error.left < error.needed
                        refused.append(thread)

            return job

        together([ask(thread) for thread in range(64)])
        check_conserved(ledger, setting, done)
        assert ledger.budgets("x").everyone.left <= 1  # one is left when each asks for two
        assert len(refused) > 64
        assert len(refused) + len(done) == 640


@dataclass(frozen=True)
class Step:
    """One thing that a thread does: asks, or changes who may ask."""

    what: str
    name: str
    numbers: tuple[int, ...]


STEPS = st.builds(
    Step,
    st.sampled_from(["record", "record", "record", "issue", "revoke", "find", "group"]),
    NAMES,
    st.lists(st.integers(0, 14), min_size=1, max_size=3).map(tuple),
)


@settings(max_examples=rounds(50, 150))
@given(
    queries=st.integers(1, 9), plans=st.lists(st.lists(STEPS, max_size=8), min_size=2, max_size=5)
)
def test_any_interleaving_of_threads(queries: int, plans: list[list[Step]]) -> None:
    with tempfile.TemporaryDirectory(dir=MEMORY) as place:
        setting = begun(Path(place), queries=queries)
        done: list[ChargeResult] = []
        found: list[StoredEntry] = []
        with open_ledger(Path(place), setting, serving=True) as ledger:
            ledger.set_group("red", 5)

            def follow(thread: int, plan: list[Step]) -> Callable[[], None]:
                def job() -> None:
                    for place, step in enumerate(plan):
                        take(step, f"{thread}{place:03d}")

                return job

            def take(step: Step, answer: str) -> None:
                entries = [question(n, answer=answer) for n in step.numbers]
                match step.what:
                    case "record":
                        with suppress(ExhaustedError):
                            done.append(ledger.record(step.name, entries))
                    case "issue":
                        ledger.issue(step.name, queries=step.numbers[0], group="red")
                    case "revoke":
                        with suppress(UsageError):
                            ledger.revoke(analyst=step.name)
                    case "find":
                        found.extend(ledger.find([e.key for e in entries]).values())
                    case "group":
                        ledger.set_group("red", step.numbers[0])

            together([follow(n, plan) for n, plan in enumerate(plans)])
            check_conserved(ledger, setting, done)
            kept = ledger.entries()
            assert all(one in kept for one in found)
            for analyst in ledger.people():
                assert analyst["used"] == sum(one.analyst == analyst["name"] for one in kept)
            assert ledger.groups()[0]["used"] == sum(one.group == "red" for one in kept)


def test_the_file_itself_refuses_one_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Even if the budgets were not looked at."""
    setting = begun(tmp_path / "server", queries=3)
    monkeypatch.setattr(AnalystAccount, "check", lambda *_: None)
    with open_ledger(tmp_path / "server", setting, serving=True) as ledger:
        ledger.record("ann", [question(n) for n in range(3)])
        with pytest.raises(LedgerError, match="CHECK constraint"):
            ledger.record("ann", [question(3)])
        assert len(ledger.entries()) == 3


def test_the_check_would_notice_one_more(tmp_path: Path) -> None:
    setting = begun(tmp_path / "server", queries=3)
    with open_ledger(tmp_path / "server", setting, serving=True) as ledger:
        done = [ledger.record("ann", [question(n)]) for n in range(3)]
        check_conserved(ledger, setting, done)
        with pytest.raises(AssertionError):
            check_conserved(ledger, setting, done + done[:1])  # a charge without an answer
        with pytest.raises(AssertionError):
            check_conserved(ledger, setting, done[:2])  # an answer that nobody was charged for
