"""What would help where nothing of use can be published, and a button for each."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from voile.errors import UsageError
from voile.studio.pages import Visit
from voile.studio.points import per_cent
from voile.studio.project import Role


def listed_changes(changes: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Changes as the page lists them; what a button cannot do leads elsewhere."""
    return [
        {
            "about": one["about"],
            "error": per_cent(one["expected_error"]),
            "server": bool(one["questions"]),
            "options": json.dumps(one["options"]),
        }
        for one in changes
    ]


def apply_change(visit: Visit) -> None:
    """Take the change of a button: fewer columns, or a larger ε."""
    wrong = UsageError("there is no such change", hint="choose one that is listed")
    try:
        options = json.loads(visit.form.get("change"))
    except ValueError:
        raise wrong from None
    if not isinstance(options, dict):
        raise wrong
    take_change(visit, options)


def take_change(visit: Visit, options: Mapping[str, Any]) -> None:
    """Publish fewer columns, or promise less; other changes are none."""
    wrong = UsageError("there is no such change", hint="choose one that is listed")
    kept, epsilon = options.get("columns"), options.get("epsilon")
    if isinstance(kept, list) and kept and set(kept) <= set(visit.column_names()):
        leave_out(visit, kept)
    elif isinstance(epsilon, int | float) and 0 < epsilon <= 100:
        visit.change(options={**visit.project.options, "epsilon": epsilon}, planned=epsilon)
    else:
        raise wrong


def leave_out(visit: Visit, kept: Sequence[str]) -> None:
    """Leave out all other columns that would be published."""
    names = visit.project.columns(visit.column_names())
    out: dict[str, Role] = {name: "identifier" for name in names if name not in kept}
    visit.change(roles={**visit.project.roles, **out})
