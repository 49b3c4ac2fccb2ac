"""Servers' settings and questions for tests of the ledger, and programs that put it to the test."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.support.paths import ROOT
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


def counter_says(path: Path) -> dict[str, Any]:
    """The newest of what stands in a counter's two places, a line of JSON each."""
    found = []
    for start in (0, 512):
        with suppress(ValueError):
            found.append(json.loads(path.read_bytes()[start : start + 512]))
    newest: dict[str, Any] = max(found, key=lambda said: said["turn"])
    return newest


def run_faults(module: str, *words: object) -> Any:
    """In a process of its own, which has no threads when it forks."""
    done = subprocess.run(
        [sys.executable, "-m", f"tests.support.{module}", *map(str, words)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    if done.returncode == 77:
        pytest.skip("there is no C compiler")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
