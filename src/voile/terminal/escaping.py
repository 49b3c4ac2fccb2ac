"""What is printed holds no character that a terminal would act upon.

Names and values come from tables and releases of others. A control character among them could
colour, move or erase what stands on the screen, and a mark of direction could show it in another
order. Such a character is printed as its code: `\\x1b`, `\\u202e`. Letters are left as they are,
also those of scripts that are written from right to left.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from rich.console import Console

MARKS = "\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069"
"""Of direction, and separators of lines and paragraphs."""
UNSAFE = re.compile(f"[\x00-\x08\x0b-\x1f\x7f-\x9f{MARKS}]")
"""All controls but tab and newline, and the marks."""
STYLED = re.compile(rf"\x1b\[[0-9;]*m|{UNSAFE.pattern}")
"""The same, where Rich has put colours in; those stay."""
IN_JSON = re.compile(f"[\x7f-\x9f{MARKS}]")
"""Of these JSON does not escape any."""


def escaped(text: str) -> str:
    """The text with such characters as their codes."""
    return UNSAFE.sub(code, text)


def code(found: re.Match[str]) -> str:
    """A character as it is written in a program."""
    number = ord(found[0])
    return f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}"


def json_text(data: Any, **options: Any) -> str:
    """Data as JSON, which means the same and has such characters as its own escapes."""
    text = json.dumps(data, ensure_ascii=False, **options)
    return IN_JSON.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


class EscapingStream:
    """A text stream that escapes what is written to it, and is the stream itself otherwise."""

    def __init__(self, stream: TextIO) -> None:
        self.beneath = stream

    def write(self, text: str) -> int:
        """Write it with its colours, and nothing else that a terminal acts upon."""
        self.beneath.write(STYLED.sub(kept_colour, text))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Write each of the lines."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.beneath, name)


def kept_colour(found: re.Match[str]) -> str:
    """A colour as it is; anything else as its code."""
    return found[0] if len(found[0]) > 1 else code(found)


def escape_standard_streams() -> None:
    """From now on whatever is printed is escaped, by whichever library it is."""
    sys.stdout = escaping(sys.stdout)
    sys.stderr = escaping(sys.stderr)


def escaping(stream: Any) -> Any:
    """The stream, escaping."""
    return stream if stream is None else EscapingStream(beneath(stream))


def beneath(stream: Any) -> Any:
    """The stream itself: for what escapes its texts already, and moves the cursor."""
    return stream.beneath if isinstance(stream, EscapingStream) else stream


def console(*, stderr: bool = False, **options: Any) -> Console:
    """A console of Rich that escapes texts, and moves the cursor and colours by itself."""
    from voile.terminal.consoles import EscapingConsole

    return EscapingConsole(file=beneath(sys.stderr if stderr else sys.stdout), **options)
