"""What a shell offers after a word and a tab."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

PROGRAM = "import sys; sys.argv = ['voile']; from voile.cli import main; main()"
WATCHED = PROGRAM.replace(
    "from voile", "import atexit; atexit.register(lambda: print(*sys.modules, file=sys.stderr)); "
    "from voile"
)  # fmt: skip


def offered(words: str, program: str = PROGRAM) -> tuple[list[str], str]:
    given = {"_VOILE_COMPLETE": "complete_bash", "COMP_WORDS": words,
             "COMP_CWORD": str(len(words.split(" ")) - 1)}  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-c", program], check=False, capture_output=True, text=True,
        env=os.environ | given,
    )  # fmt: skip
    return done.stdout.split(), done.stderr


@pytest.mark.parametrize(
    ("words", "some"),
    [
        ("voile qu", {"query"}),
        ("voile serve ", {"init", "token", "run", "status"}),
        ("voile register ", {"show", "limit"}),
        ("voile query --ref", {"--refine"}),
    ],
)
def test_commands_and_options_are_offered(words: str, some: set[str]) -> None:
    found, said = offered(words)
    assert some <= set(found), said
    assert "default" not in found


def test_only_the_command_in_question_is_loaded() -> None:
    found, said = offered("voile ve", WATCHED)
    assert found == ["verify"]
    ours = {name for name in said.split() if name.startswith("voile.cli.")}
    assert ours <= {"voile.cli.common", "voile.cli.program"}
    assert not {"numpy", "pyarrow", "duckdb", "pydantic"} & set(said.split())


def test_the_script_is_shown() -> None:
    """By a process of its own: the program's name is that of what was started."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.replace("'voile'", "'voile', '--show-completion', 'bash'")],
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    assert "_VOILE_COMPLETE=complete_bash" in done.stdout
