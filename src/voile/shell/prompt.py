"""The prompt: editing over several lines, history, colours, completion."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from prompt_toolkit import PromptSession
from prompt_toolkit.auto_suggest import AutoSuggestFromHistory
from prompt_toolkit.enums import DEFAULT_BUFFER
from prompt_toolkit.filters import has_completions, has_focus, is_searching
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.lexers import PygmentsLexer
from pygments.lexers.sql import SqlLexer  # type: ignore[import-untyped]

from voile.schema.schema import large
from voile.shell.commands import perform
from voile.shell.complete import ShellCompleter
from voile.shell.session import Leave, Session
from voile.shell.statements import complete, statements
from voile.terminal import say
from voile.units import counted

PROMPT, CONTINUED = "voile> ", "  ...> "


def interact(session: Session, *, history: History | None = None, **streams: Any) -> None:
    """Ask until the user leaves."""
    ask: PromptSession[str] = PromptSession(
        PROMPT,
        multiline=True,
        prompt_continuation=CONTINUED,
        key_bindings=bindings(),
        completer=ShellCompleter(session),
        complete_while_typing=True,
        history=history or kept_history(session),
        auto_suggest=AutoSuggestFromHistory(),
        lexer=PygmentsLexer(SqlLexer),
        **streams,
    )
    greet(session)
    while True:
        try:
            text = ask.prompt()
        except KeyboardInterrupt:
            continue
        except EOFError:
            return
        try:
            for statement in statements(text):
                with cancellable() as pressed:
                    perform(session, statement)
                if pressed:
                    session.reopen()
                    say("cancelled")
                    break
        except Leave:
            return


def greet(session: Session) -> None:
    release = session.release
    say(
        f"{release.name}: {len(release.schema.attributes)} attributes, "
        f"{large(release.schema.size)} possible tuples, {counted(release.manifest.rows, 'row')}, "
        "records and noise mixed"
    )
    if release.manifest.simulated:
        say("simulated: made from a chosen seed, it protects nobody")
    say(f"select count(*) from {release.name} where …;   \\d attributes   .help   Ctrl-D leaves")


def bindings() -> KeyBindings:
    keys = KeyBindings()
    typing = has_focus(DEFAULT_BUFFER) & ~is_searching

    @keys.add("enter", filter=typing)
    def enter(event: KeyPressEvent) -> None:
        """Run what is complete; else go on with the next line."""
        buffer = event.current_buffer
        state = buffer.complete_state
        if state and state.current_completion:
            buffer.complete_state = None
        elif not buffer.text.strip() or complete(buffer.text) or ends_blank(buffer.text):
            buffer.validate_and_handle()
        else:
            buffer.newline(copy_margin=False)

    @keys.add("escape", filter=typing & has_completions, eager=True)
    def close(event: KeyPressEvent) -> None:
        event.current_buffer.complete_state = None

    return keys


def ends_blank(text: str) -> bool:
    """Whether an empty line was entered after something."""
    head, newline, tail = text.rpartition("\n")
    return bool(newline) and not tail.strip() and bool(head.strip())


# ---------------------------------------------------------------------- history


class KeptHistory(FileHistory):
    """History in a file; a full disk is no reason to stop answering."""

    def store_string(self, string: str) -> None:
        try:
            super().store_string(string)
        except OSError:
            return


def history_file() -> Path:
    """In the user's state folder, never in a release."""
    state = Path(os.environ.get("XDG_STATE_HOME", ""))
    if not state.is_absolute():
        state = Path.home() / ".local" / "state"
    return state / "voile" / "history"


def kept_history(session: Session) -> History:
    try:
        path = history_file()
        if path.resolve().is_relative_to(session.release.path.resolve()):
            return InMemoryHistory()
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        path.touch(mode=0o600)
    except (OSError, RuntimeError):  # no home, or one that cannot be written
        return InMemoryHistory()
    return KeptHistory(path)


# ---------------------------------------------------------------------- Ctrl-C


@contextmanager
def cancellable() -> Iterator[list[int]]:
    """Ctrl-C ends what runs within, and nothing else; yields where it is noted.

    A library that was interrupted may make an error of its own of it.
    """
    pressed: list[int] = []

    def note(number: int, _: object) -> None:
        pressed.append(number)
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, note)
    try:
        yield pressed
    except KeyboardInterrupt:
        pressed.append(signal.SIGINT)
    except Exception:
        if not pressed:
            raise
    finally:
        signal.signal(signal.SIGINT, before)
