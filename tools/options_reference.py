"""Writes the tables of docs/reference/options.md from the models of the methods' options.

`VOILE_WRITE=1 pytest tests/test_options.py -k reference` writes, a test compares.
"""

from __future__ import annotations

import re
from pathlib import Path
from types import UnionType
from typing import Any, Union, get_args, get_origin

from pydantic.fields import FieldInfo
from tools.cli_reference import prose

from voile.evaluate.options import FrontierOptions, LossOptions
from voile.kinds.registry import kinds
from voile.options import Options, bounds, flag_of, words_of

PAGE = Path(__file__).resolve().parent.parent / "docs" / "reference" / "options.md"
INTRODUCTION = """# Options by method

The options of each method, as Python keywords and as flags of the command. `voile.publish`,
`voile.perturb` and the commands check them by the same model; `voile.generalize` takes those of
classes of rows. `voile.evaluate.losses.losses` and `voile.frontier` share theirs with `voile loss`
and `voile frontier`. This page is generated: see tools/options_reference.py.
"""
EVALUATION: dict[str, type[Options]] = {
    "voile loss: what a release costs": LossOptions,
    "voile frontier: which release to publish": FrontierOptions,
}
"""Models of options that belong to no kind of release, by the titles of their sections."""


def page() -> str:
    """A section for each kind of release, and one for each command of evaluation."""
    others = [
        "\n".join([f"## {title}", "", *table(model), ""]) for title, model in EVALUATION.items()
    ]
    return "\n".join([INTRODUCTION, *(section(kind) for kind in kinds()), *others])


def section(kind: Any) -> str:
    """The options of one kind of release."""
    lines = [
        f"## voile {kind.command}: {kind.about}",
        "",
        f"Methods: {', '.join(f'`{method}`' for method in kind.methods)}.",
        "",
        *table(kind.options),
        "",
    ]
    return "\n".join(lines)


def table(model: type[Options]) -> list[str]:
    """The options of a model, a line for each."""
    return [
        "| keyword | flag | value | default | |",
        "|---|---|---|---|---|",
        *(row(name, field) for name, field in model.keywords().items()),
    ]


def row(name: str, field: FieldInfo) -> str:
    """One option as a line of the table."""
    flag = flag_of(field)
    spelled = flag.name or f"--{name.replace('_', '-')}"
    default = "required" if field.is_required() else f"`{field.default!r}`"
    return f"| `{name}` | `{spelled}` | {value(field)} | {default} | {prose(flag.help)} |"


def value(field: FieldInfo) -> str:
    """The type in words, with the numbers that it may have."""
    if words := list(dict.fromkeys(words_of(field.annotation))):
        return ", ".join(f"`{word}`" for word in words)
    kinds = [part for part in parts_of(field.annotation) if part is not type(None)]
    named = list(dict.fromkeys(NAMES.get(getattr(part, "__name__", ""), "") for part in kinds))
    text = " or ".join(filter(None, named)) or "see text"
    limited = any(re.match(r"[GL][te]$", type(each).__name__) for each in field.metadata)
    return f"{text}; must {bounds(field)}" if limited else text


def parts_of(annotation: Any) -> list[Any]:
    """The alternatives of a union, without what they are made of."""
    is_union = get_origin(annotation) in (Union, UnionType)
    found = get_args(annotation) if is_union else (annotation,)
    return [get_origin(part) or part for part in found]


NAMES = {
    "str": "text", "int": "whole number", "float": "number", "bool": "yes or no", "Path": "path",
    "Sequence": "names", "Mapping": "mapping", "tuple": "two numbers",
}  # fmt: skip
