"""The codebook file: a schema as YAML that a person can read and edit."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

import yaml

from voile.errors import SchemaError, UsageError

HEADER = """\
# Codebook: the public domain of each column. Edit it, then pass it with --schema.
#   values: [a, b]      the values, in order          range: [low, high]   all integers or days
#   bins: [0, 10, 20]   intervals [0,10), [10,20]; a value is published as the middle of its bin
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
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        first = str(error).replace("\n", " ")
        raise SchemaError(f"{path}: not a readable codebook: {first}") from None
    if not isinstance(data, dict):
        raise SchemaError(f"{path}: a codebook is a mapping with a list 'attributes'")
    return data


def write_codebook(path: Path, data: dict[str, Any]) -> None:
    """Write beside, then rename: an interrupted run never leaves half a codebook."""
    text = HEADER + yaml.dump(
        data, allow_unicode=True, sort_keys=False, default_flow_style=None, width=100
    )
    try:
        handle, beside = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    except OSError as error:
        raise UsageError(f"cannot write {str(path)!r}: {error.strerror}") from None
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(text)
    Path(beside).replace(path)
