"""Releases that were tampered with are opened or refused, and nothing else.

See tools/fuzz_releases.py; `make soak` tries a hundred thousand.
"""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import pytest
from tools import fuzz_releases
from tools.fuzz_releases import ReleaseFuzzer, Report

from tests.support.paths import TESTS
from voile.errors import ReleaseError

TOOL = TESTS.parent / "tools" / "fuzz_releases.py"
INPUTS = 250


@pytest.mark.slow
def test_tampered_releases_are_opened_or_refused() -> None:
    """In a process of its own, which a crash would end and whose memory is measured."""
    done = subprocess.run(
        [sys.executable, str(TOOL), "--inputs", str(INPUTS), "--seed", "7"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


def test_what_must_not_happen_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fuzzer = ReleaseFuzzer(tmp_path)
    (tmp_path.parent / "secret").write_text("x")
    monkeypatch.setattr(fuzz_releases, "SECONDS", 0.2)

    def failures(misdeed: object) -> str:
        report = Report()
        with monkeypatch.context() as patched:
            patched.setattr(fuzzer.voile, "open", misdeed)
            fuzzer.one(random.Random(1), report)  # noqa: S311
        return "\n".join(report.failures)

    def crash(_: Path) -> None:
        raise KeyError("inside")

    def hang(_: Path) -> None:
        while True:
            pass

    def refuse(_: Path) -> None:
        raise ReleaseError("no\x1b[2J")

    assert "KeyError" in failures(crash)
    assert "took more than" in failures(hang)
    assert "opened" in failures(lambda _: (tmp_path.parent / "secret").read_text())
    assert not failures(refuse)
    monkeypatch.setattr(fuzzer, "complain", lambda message, _: print(message, file=sys.stderr))
    assert "printed" in failures(refuse)
