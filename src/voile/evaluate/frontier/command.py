"""The command that publishes a point of the frontier."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from voile.publishing.wish import columns_option

if TYPE_CHECKING:
    from voile.evaluate.frontier.subject import Subject

RELEASE = "R.voile"


def publishing_command(subject: Subject, options: Mapping[str, Any]) -> str:
    """`voile publish …` with everything that the point was measured with."""
    wish = subject.wish
    words = ["voile", "publish", subject.source, "-o", RELEASE, "--method", options["method"]]
    for name, columns in (
        ("--qi", wish.qi), ("--sensitive", wish.sensitive), ("--identifiers", wish.identifiers),
    ):  # fmt: skip
        if columns:
            words += [name, unquoted(columns_option(list(columns)))]
    for name, value in options.items():
        if name != "method":
            words += [f"--{name.replace('_', '-')}", spelt(value)]
    for column, file in (wish.hierarchies or {}).items():
        if isinstance(file, str | Path):
            words += ["--hierarchy", f"{column}={file}"]
    if isinstance(wish.schema, str | Path):
        words += ["--schema", str(wish.schema)]
    if wish.nulls != "error":
        words += ["--nulls", wish.nulls]
    return shlex.join(words)


def unquoted(option: str) -> str:
    """As the program sees it: quotes of the shell are put around it again at the end."""
    return " ".join(shlex.split(option))


def spelt(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
