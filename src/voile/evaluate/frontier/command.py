"""The command that publishes a point of the frontier."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from voile.kinds.domain import columns_option

if TYPE_CHECKING:
    from voile.evaluate.frontier.subject import Subject

RELEASE = "R.voile"


def publishing_command(subject: Subject, options: Mapping[str, Any]) -> str:
    """`voile publish …` of classes, with everything that the point was measured with."""
    shared = subject.options
    words = ["voile", "publish", subject.source, "-o", RELEASE, "--method", options["method"]]
    for name, columns in (
        ("--qi", shared.qi),
        ("--sensitive", shared.sensitive),
        ("--identifiers", shared.identifiers),
    ):
        if columns:
            words += [name, unquoted(columns_option(list(columns)))]
    words += [word for name, value in options.items() for word in option(name, value)]
    for column, file in (shared.hierarchies or {}).items():
        if isinstance(file, str | Path):
            words += ["--hierarchy", f"{column}={file}"]
    return shlex.join([*words, *domain(subject)])


def viewing_command(subject: Subject, options: Mapping[str, Any]) -> str:
    """`voile publish …` of a noisy view."""
    words = ["voile", "publish", subject.source, "-o", RELEASE, "--method", options["method"]]
    return shlex.join([*words, *noise(subject, options)])


def perturbing_command(subject: Subject, options: Mapping[str, Any]) -> str:
    """`voile perturb …`."""
    words = ["voile", "perturb", subject.source, "-o", RELEASE]
    return shlex.join([*words, *noise(subject, options)])


def noise(subject: Subject, options: Mapping[str, Any]) -> list[str]:
    """Quasi-identifiers and the sensitive column are columns like any other."""
    columns = [*subject.options.qi, *subject.options.sensitive]
    asked = [word for name, value in options.items() for word in option(name, value)]
    return ["--columns", unquoted(columns_option(columns)), *asked, *domain(subject)]


def option(name: str, value: object) -> list[str]:
    """The method is named first."""
    return [] if name == "method" else [f"--{name.replace('_', '-')}", spelt(value)]


def domain(subject: Subject) -> list[str]:
    """How the table's values are read."""
    options = subject.options
    words = ["--schema", str(options.schema_)] if isinstance(options.schema_, str | Path) else []
    words += [] if options.nulls == "error" else ["--nulls", options.nulls]
    return [*words, *(word for text in subject.null_text for word in ("--null-text", text))]


def unquoted(option: str) -> str:
    """As the program sees it: quotes of the shell are put around it again at the end."""
    return " ".join(shlex.split(option))


def spelt(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
