"""What a server's steward sees of what was told so far."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from voile.terminal.narrow import whole_numbers

if TYPE_CHECKING:
    from voile.serve.residuals import AnswerResiduals
    from voile.serve.self_audit import ExposureBound, SelfAudit

WHO = {
    "row number": "people, by their rows' numbers",
    "id": "people, by their ids",
    "random": "people with random ids (give theirs with --ids)",
}
MOST_COLUMNS = 8


def self_audit_view(found: SelfAudit) -> Any:
    """Bounds for everybody, then what is asked about most, then whether answers agree."""
    from rich.console import Group
    from rich.markup import escape

    setting, people = found.setting, found.to_dict()["people"]
    rows = [["all that will ever be answered", *numbers(found.planned)],
            ["whom every question counted", *numbers(found.worst)]]  # fmt: skip
    for name in ("largest", "p95", "median", "least"):
        words = {"p95": "95 % of people, at most", "median": "half of them, at most"}
        told = words.get(name, f"the {name} of anyone")
        rows.append([told, *numbers(found.bound(people[name]["distance_squared"]))])
    kinds = "1 kind" if found.kinds == 1 else f"{found.kinds:,} kinds"
    lost = f" ({found.lost:,} lost, taken for the worst)" if found.lost else ""
    parts: list[Any] = [
        f"[bold]{found.answers + found.lost:,} of {setting.queries:,} answers[/bold]{lost} by "
        f"{escape(setting.name)}, of {kinds}. Looked at: {people['looked_at']:,} "
        f"{WHO[found.known_by]}. No row was.",
        whole_numbers(["conf may have risen by", "D²", "at most", "adaptive",
                       f"above δ = {setting.delta:g}"], rows, numeric={1, 2, 3, 4}),
        f"At most: but with a chance of η = {setting.eta:g}. Adaptive: the same, at any time and "
        "for questions that were chosen by the answers before.",
    ]  # fmt: skip
    if (remark := given_ids(found.named, setting.people)) is not None:
        parts.insert(1, remark)
    if not found.exact:
        parts.append("Some questions read too many values to compare all: bounds are larger then.")
    columns = found.to_dict()["columns"][:MOST_COLUMNS]
    told_by = [
        [escape(", ".join(one["columns"]) or "(no column)"), f"{one['distance_squared']:.4g}",
         f"{one['rise']:.3f}"]
        for one in columns
    ]  # fmt: skip
    if len(told_by) > 1:
        parts.append(whole_numbers(["by questions about", "D²", "at most"], told_by, {1, 2}))
    return Group(*parts, agreement(found.left_over))


def given_ids(named: int | None, people: int) -> str | None:
    """Whether the file can be the server's people: both sizes are public, the ids are not."""
    if named is None or named == people:
        return None
    remark = f"[yellow]--ids names {named:,} people, and the server has {people:,}[/yellow]: "
    if named < people:
        return f"{remark}the other {people - named:,} were not looked at."
    return f"{remark}at least {named - people:,} of these ids are nobody's."


def numbers(bound: ExposureBound) -> list[str]:
    return [f"{bound.squared:.4g}", f"{bound.rise:.3f}", f"{bound.rise_adaptive:.3f}",
            f"{bound.passed:.1g}"]  # fmt: skip


def agreement(left_over: AnswerResiduals) -> str:
    """Whether the answers' noise is what it should be, as far as answers show it."""
    if left_over.too_large is None or left_over.too_small is None:
        return "No answers overlap so that their noise would show."
    return (
        f"Where answers overlap, what they leave over is {left_over.squares:.1f} squares where "
        f"{left_over.freedom} are expected (more with chance {left_over.too_large:.2g}, fewer with "
        f"{left_over.too_small:.2g}, if the noise is what it should be)."
    )
