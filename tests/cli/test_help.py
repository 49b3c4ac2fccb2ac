"""--help of every command: one screen, a line that can be typed, what matters first."""

from __future__ import annotations

import re
import shlex
from typing import Any

import pytest
from tools.cli_reference import commands

from tests.support.running import voile
from voile.cli.screens import LINES, SHOWN, longest, ordered

COMMANDS = commands()
WIDTH = 80


def screen(name: str, flag: str = "--help") -> str:
    done = voile(*name.split(), flag, columns=WIDTH)
    assert done.returncode == 0, done.stderr
    return done.stdout


def own(command: Any) -> list[Any]:
    """The options of a command that help describes."""
    return [p for p in command.params if p.param_type_name == "option" and p.name != "help"]


def test_every_command_has_an_example_and_options_to_begin_with() -> None:
    assert SHOWN.keys() == COMMANDS.keys()


@pytest.mark.parametrize("name", COMMANDS)
def test_help_fits_a_screen_and_names_every_option(name: str) -> None:
    command, shown = COMMANDS[name], screen(name)
    lines = shown.splitlines()
    assert len(lines) <= LINES
    assert max(map(len, lines)) <= WIDTH
    first, about = " ".join(shown.split()), " ".join(command.help.split())
    assert first.startswith(f"Usage: voile {name} ") and about in first
    for option in own(command):
        assert re.search(rf"(?<![\w-]){longest(option)}(?![\w-])", shown), option.name


@pytest.mark.parametrize("name", COMMANDS)
def test_what_is_needed_and_what_matters_is_described_first(name: str) -> None:
    command = COMMANDS[name]
    first = SHOWN[name][1].split()
    known = {longest(option): option for option in own(command)}
    assert len(first) <= 3 and set(first) <= set(known)
    needed = [flag for flag, option in known.items() if option.required]
    asked = [flag for flag in first if flag not in needed]
    assert [longest(option) for option in ordered(name, command)][: len(needed + asked)] == [
        *needed, *asked,
    ]  # fmt: skip
    described = screen(name).partition("\nAlso ")[0]
    for flag in [*needed, *asked]:
        words = " ".join(known[flag].help.split())[:25]
        assert words in re.sub(r"\s+", " ", described), flag


@pytest.mark.parametrize("name", COMMANDS)
def test_the_example_is_a_line_that_the_command_takes(name: str) -> None:
    command, given = COMMANDS[name], SHOWN[name][0]
    assert f"\n  voile {name} {given}".rstrip() in screen(name)
    # An unknown option, a missing one, or an argument too many is refused here.
    assert not command.make_context(name, shlex.split(given)).args


def test_all_options_are_described_when_they_are_asked_for() -> None:
    brief, whole = screen("publish"), screen("publish", "--help-all")
    assert "voile publish --help-all describes all" in brief
    assert "Weak promises" not in brief
    assert len(whole.splitlines()) > 5 * LINES
    assert "Show this message" in whole
    assert screen("serve init", "--help-all") != screen("serve init")
