"""Where one statement ends and the next begins.

SQL ends at a semicolon that is in no quotes and no comment, or at a blank line. A command, which
begins with a dot or a backslash, ends with its line.
"""

from __future__ import annotations

import re

SKIPPED = re.compile(r"(?:\s+|;|--[^\n]*(?:\n|\Z)|/\*.*?\*/)+", re.DOTALL)
# The pieces of SQL within which a semicolon means nothing; a blank line ends a quotation, too,
# or else one that was left open would swallow all that follows.
PIECE = re.compile(
    r"""(?P<quoted>'(?:[^'\n]|\n(?![^\S\n]*\n))*(?:'|(?P<open1>\Z))
      |"(?:[^"\n]|\n(?![^\S\n]*\n))*(?:"|(?P<open2>\Z)))
      |(?P<line>--[^\n]*)
      |(?P<block>/\*.*?(?:\*/|(?P<open3>\Z)))
      |(?P<end>;|\n[^\S\n]*\n)""",
    re.DOTALL | re.VERBOSE,
)
COMMANDS = (".", "\\")


def split(text: str) -> tuple[list[str], str]:
    """The statements that have ended, and what is left of one that has not."""
    found: list[str] = []
    at = 0
    while True:
        skipped = SKIPPED.match(text, at)
        at = skipped.end() if skipped else at
        if at >= len(text):
            return found, ""
        end = text.find("\n", at) if text.startswith(COMMANDS, at) else sql_end(text, at)
        if end < 0:
            return found, text[at:]
        found.append(text[at:end].strip())
        at = end


def sql_end(text: str, start: int) -> int:
    """Where the SQL that begins at `start` ends; -1 if it does not yet."""
    for piece in PIECE.finditer(text, start):
        if any(piece[name] is not None for name in ("open1", "open2", "open3")):
            return -1
        if piece["end"]:
            return piece.start()
    return -1


def complete(text: str) -> bool:
    """Whether what was typed can be run as it is."""
    found, rest = split(text)
    return not rest or (not found and is_command(rest))


def statements(text: str) -> list[str]:
    """All statements of a text; its end ends the last one."""
    found, rest = split(text)
    return [*found, rest.strip()] if rest.strip() else found


def is_command(statement: str) -> bool:
    return statement.startswith(COMMANDS)
