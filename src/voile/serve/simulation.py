"""A server for studies: begun in a folder of its own, asked without HTTP, and gone afterwards.

Everything is as in a real server (the table, the ledger, the noise's law), except that the coins
come from a seed: anyone who knows it can remove the noise. No real server can be opened so.
"""

from __future__ import annotations

import hashlib
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from voile.engines.counted import read_counted
from voile.estimate import checked_confidence
from voile.estimate.answer import Answer
from voile.noise import Key
from voile.noise.whole import draw
from voile.privacy.interactive.laws import NoiseLaw
from voile.remote.client import Subset
from voile.serve.creation import begin
from voile.serve.ledger import open_ledger
from voile.serve.query_service import QueryService
from voile.serve.setting import TABLE

ANALYST = "study"


@contextmanager
def simulated(table: object, *, seed: int, **options: Any) -> Iterator[SimulatedServer]:
    """A server of `table` as long as the block lasts; `options` are those of `begin`.

    It is asked as one behind a URL is: `server.ask(sql, subset)`, `server.budget()`, and by
    `voile.asking.mine`. The same seed gives the same answers, in whatever order they are asked for.
    """
    with tempfile.TemporaryDirectory(prefix="voile-simulated-") as place:
        folder = Path(place) / "server"
        setting, _ = begin(folder, table, register=False, salt=str(seed), **options)
        ledger = open_ledger(folder, setting, serving=True)
        try:
            coins = SeededNoise(seed)
            rows = read_counted(folder / TABLE, setting.schema)
            yield SimulatedServer(QueryService(setting, rows, ledger, coins.draw), coins)
        finally:
            ledger.close()


class SeededNoise:
    """Noise by the question: threads that ask at the same time do not mix theirs up."""

    def __init__(self, seed: int) -> None:
        self._seed, self._now = seed, threading.local()

    def of(self, sql: str, subset: Subset) -> None:
        """What is drawn next in this thread is for this question."""
        question = f"{self._seed} {sql} {subset}"
        self._now.key = int.from_bytes(hashlib.sha256(question.encode()).digest()[:8], "big")

    def draw(self, law: NoiseLaw, count: int) -> list[int]:
        """Noise for the next total of this thread's question."""
        self._now.key += 1  # a question may have several totals
        return draw(law, count, Key.from_seed(self._now.key))


@dataclass(frozen=True)
class SimulatedReply:
    """An answer, as mining reads it."""

    answer: float | None
    stderr: float | None
    low: float | None
    high: float | None
    charged: int
    remaining: int
    subset_rows: int | None


@dataclass(frozen=True)
class SimulatedCost:
    """What a question would be charged."""

    cost: int


@dataclass(frozen=True)
class SimulatedServer:
    """Answers like a server behind a URL."""

    service: QueryService
    coins: SeededNoise

    def about(self) -> dict[str, Any]:
        """What may be asked, how much, and what each person in the table is promised."""
        return self.service.setting.to_public() | {"promise": self.service.promise()}

    def budget(self) -> dict[str, Any]:
        """How many answers are left."""
        return {"remaining": self.service.ledger.budgets(ANALYST).left}

    def cost(self, sql: str, subset: Subset = "all") -> SimulatedCost:
        """What the question would take from the budget."""
        return SimulatedCost(self.service.cost(ANALYST, sql, subset).new)

    def query(self, sql: str) -> Answer:
        """The noisy answer with all its groups and columns, as a release gives it."""
        self.coins.of(sql, "all")
        return self.service.ask(ANALYST, sql, "all", checked_confidence(0.95)).answer

    def ask(self, sql: str, subset: Subset = "all", confidence: float = 0.95) -> SimulatedReply:
        """The noisy answer. What was answered before costs nothing."""
        self.coins.of(sql, subset)
        found = self.service.ask(ANALYST, sql, subset, checked_confidence(confidence)).to_dict()
        wanted = ("answer", "stderr", "low", "high", "charged", "remaining", "subset_rows")
        return SimulatedReply(**{name: found[name] for name in wanted})
