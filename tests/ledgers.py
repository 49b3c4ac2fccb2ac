"""Servers' settings and questions for tests of the ledger."""

from __future__ import annotations

import dataclasses
import hashlib
from pathlib import Path
from typing import Any

from voile.schema import Attribute, Schema, Values
from voile.serve.ledger import Entry, begin_ledger
from voile.serve.setting import Setting

SETTING = Setting(
    id="0123456789abcdef0123456789abcdef",
    name="people",
    schema=Schema((Attribute("smoker", "categorical", Values(("yes", "no"))),)),
    people=1000,
    declared=True,
    queries=10,
    delta=1.0,
    eta=1e-6,
    noise="binomial",
    variance=100.0,
)


def begun(folder: Path, **changes: Any) -> Setting:
    """A new ledger in a new folder."""
    folder.mkdir(exist_ok=True)
    setting = dataclasses.replace(SETTING, **changes)
    begin_ledger(folder, setting)
    return setting


def question(name: object, answer: object = None) -> Entry:
    """An entry whose key follows from its name."""
    key = hashlib.sha256(str(name).encode()).hexdigest()
    return Entry(key, f'{{"asked": "{name}"}}', f"[{name if answer is None else answer}]")
