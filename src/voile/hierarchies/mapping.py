"""Hierarchies of categories, from groups that someone wrote down."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from voile.errors import SchemaError, UsageError
from voile.schema.hierarchy import EVERYTHING, Hierarchy
from voile.schema.words import in_words

BETWEEN = " | "


def mapped(groups: Any) -> Hierarchy:
    """From {value: group}, {group: [values]}, or nested as deeply as one likes.

    A list inside a list is a group that is called by its values. Where a value has fewer groups
    above it than others, it stands for itself below them.

    >>> mapped({"mammal": ["cat", "dog"], "bird": ["hen"]}).paths[0]
    ('cat', 'mammal', '*')
    """
    if isinstance(groups, Mapping) and all(not is_group(inner) for inner in groups.values()):
        found = [[word(value), word(group)] for value, group in groups.items()]
    elif is_group(groups):
        found = [[leaf, *reversed(above)] for leaf, above in leaves(groups, ())]
    else:
        raise SchemaError(
            f"a mapping is {{group: [values]}} or {{value: group}}, not {groups!r}",
            hint="write 'group: [value, value]' in each line",
        )
    if not found:
        raise SchemaError("the mapping is empty", hint="write 'group: [value, value]'")
    longest = max(map(len, found))
    level = [[path[0]] * (longest - len(path)) + path for path in found]
    return Hierarchy.of([*path, EVERYTHING] for path in level)


def is_group(item: object) -> bool:
    return isinstance(item, Mapping | list | tuple)


def leaves(group: Any, above: tuple[str, ...]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Every value with the groups that it lies in, the widest first."""
    if isinstance(group, Mapping):
        for name, inner in group.items():
            yield from leaves(inner if is_group(inner) else [inner], (*above, word(name)))
        return
    for item in group:
        if isinstance(item, Mapping):
            yield from leaves(item, above)
        elif is_group(item):
            inside = BETWEEN.join(leaf for leaf, _ in leaves(item, ()))
            yield from leaves(item, (*above, inside))
        else:
            yield word(item), above


def word(item: Any) -> str:
    """A value or a group as YAML and JSON give it."""
    if item is None or isinstance(item, str | bool | int | float | dt.date):
        return in_words(item)
    raise SchemaError(f"{item!r} is neither a value nor a group", hint="put it in quotes")


def read_mapping(path: str | Path) -> Hierarchy:
    """From a YAML or JSON file."""
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
        groups = yaml.safe_load(text)  # JSON is YAML
    except OSError as error:
        raise UsageError(
            f"cannot read the mapping {str(path)!r}: {error.strerror}", hint="check its name"
        ) from None
    except (yaml.YAMLError, UnicodeDecodeError, ValueError) as error:
        first = str(error).splitlines()[0]
        raise SchemaError(f"{path} is neither YAML nor JSON: {first}") from None
    try:
        return mapped(groups)
    except SchemaError as error:
        raise SchemaError(f"{path}: {error.message}", hint=error.hint) from None
