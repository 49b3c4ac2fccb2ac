"""Why a question was refused, in words for the log that do not repeat the question.

What somebody asks may say whom they suspect of what; the log has why it was refused, and no more.
"""

from __future__ import annotations

import re

WORD = re.compile(r"[\w.]+")
SAID = re.compile(r"'[^']*'|\"[^\"]*\"|[\w.]+")
PLAIN = frozenset(
    {"a", "all", "and", "as", "avg", "between", "by", "case", "corr", "count", "distinct", "else",
     "end", "from", "group", "having", "in", "is", "like", "limit", "not", "null", "of", "on",
     "or", "order", "over", "select", "stddev", "sum", "the", "then", "to", "when", "where"}
)  # fmt: skip
"""Words of SQL that say nothing about anybody."""


def hide(sql: str, message: str) -> str:
    """The first line of a message about a question, with dots for what it repeats of it."""
    asked = {word.lower() for word in WORD.findall(sql)} - PLAIN

    def hidden(found: re.Match[str]) -> str:
        quoted = found[0][0] in "'\""
        return "…" if quoted or found[0].lower() in asked else found[0]

    return SAID.sub(hidden, message.partition("\n")[0])
