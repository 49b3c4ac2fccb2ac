"""The program as a module, and types that others can read."""

from __future__ import annotations

import subprocess
import sys

from tests.support.paths import ROOT
from voile import __version__


def test_the_program_is_a_module_too() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "voile", "--version"], check=True, capture_output=True, text=True
    )
    assert done.stdout == f"voile {__version__}\n"


def test_types_are_shipped() -> None:
    assert (ROOT / "src" / "voile" / "py.typed").is_file()
