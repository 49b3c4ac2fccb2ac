"""Temporary folders are gone when the program ends, whatever its threads do meanwhile."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from voile.files import TEMPORARY, temporary_folder

ENDLESS = """
import threading
from voile.files import TEMPORARY

def work():
    while True:
        TEMPORARY.make()

threading.Thread(target=work, daemon=True).start()
while len(TEMPORARY._folders) < 20:
    pass
"""


def test_a_thread_that_makes_folders_to_the_end_leaves_none(tmp_path: Path) -> None:
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    subprocess.run([sys.executable, "-c", ENDLESS], env=environment, check=True, timeout=60)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_is_private_and_removed_with_what_is_in_it() -> None:
    with temporary_folder() as folder:
        assert os.name == "nt" or folder.stat().st_mode & 0o077 == 0
        (folder / "rows").write_text("secret")
    assert not folder.exists() and folder not in TEMPORARY._folders
