"""The codebook file: a schema as YAML that a person can read and edit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from voile.errors import SchemaError, UsageError
from voile.files import write_whole

HEADER = """\
# Codebook: the public domain of each column. Edit it, then pass it with --schema.
#   values: [a, b]      the values, in order          range: [low, high]   all integers or days
#   bins: [0, 10, 20]   intervals [0,10), [10,20]; a value is published as the middle of its bin
#   interval: [0, 100]  any number in between, kept in decimal steps (step: 0.01)
#   null: true          NULL is one more value        ordered: true        the order means something
#   public: declared    known without the table (a codebook, a law, common sense)
#   public: active      read off the private table: publishing it discloses which values occur
"""


def read_codebook(path: Path) -> dict[str, Any]:
    try:
        data = yaml.safe_load(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UsageError(
            f"there is no schema file {str(path)!r}", hint="`voile schema TABLE -o FILE` makes one"
        ) from None
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise SchemaError(
            f"{path}: not a readable codebook: {_reason(error)}",
            hint="a codebook is a YAML file; `voile schema TABLE -o FILE` makes one",
        ) from None
    if not isinstance(data, dict):
        raise SchemaError(
            f"{path}: a codebook is a mapping with a list 'attributes'",
            hint="`voile schema TABLE -o FILE` makes one",
        )
    return data


def _reason(error: Exception) -> str:
    """What is wrong and on which line, in one line."""
    mark = getattr(error, "problem_mark", None)
    said = getattr(error, "strerror", None) or str(error).splitlines()[0]
    problem = getattr(error, "problem", None) or said
    return f"{problem} (line {mark.line + 1}, column {mark.column + 1})" if mark else problem


def write_codebook(path: Path, data: dict[str, Any], *, overwrite: bool) -> None:
    text = HEADER + yaml.dump(
        data, allow_unicode=True, sort_keys=False, default_flow_style=None, width=100
    )
    write_whole(path, text.encode(), overwrite=overwrite)
