"""What a server of noisy counts and a collector show on a terminal."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

from voile.terminal import key_values, table_of
from voile.terminal.progress import whole_numbers
from voile.terminal.publications import promise_line
from voile.units import counted

if TYPE_CHECKING:
    from pathlib import Path

    from voile.collect.releasing import CollectedRelease
    from voile.collect.server import CollectorStatus
    from voile.serve.ledger import Identity, Recovered
    from voile.serve.self_audit import AnswerResiduals, ExposureBound, SelfAudit
    from voile.serve.server import ServerStatus

SOON = 2 * 86400.0
"""Seconds before which the time of the day matters."""


def begun_view(found: dict[str, Any]) -> Any:
    """A server that was begun: its noise and its promise."""
    from rich.console import Group
    from rich.markup import escape

    printed, promise = found["as_printed"], found["promise"]
    facts = {
        "server": f"{escape(found['server'])}, about {escape(found['name'])}: "
        f"{found['people']:,} people{rows_each(found['per_person'])}",
        "answers": f"{found['queries']:,}, and never one more",
        "noise": f"{found['noise']}, variance {found['variance']:,.1f}"
        f"{of_one_row(found['per_person'])}: a count has a standard error of "
        f"{found['stderr']:,.1f}",
        "promise": promised(found),
        "which is": f"{in_epsilon(promise)}; ρ = {promise['rho']:.3g} zCDP{but_for(promise)}",
        "as printed": f"the slides' variance {printed['variance']:,.0f} would let it rise by more "
        f"with probability {printed['breach']:.2f}",
    }
    following = (
        f"voile serve token {found['server']} --analyst NAME --queries N, "
        f"then voile serve run {found['server']}"
    )
    notes = [f"[dim]note: {escape(note)}[/dim]" for note in found["notes"]]
    return Group(key_values(facts | {"next": escape(following)}), *notes)


def promised(found: dict[str, Any]) -> str:
    """By default of the end; on the way there chances are at most twice as large."""
    rise = (
        f"no belief about a person rises by more than δ = {found['delta']:.4g} in log-odds, except "
    )
    chance = f"with probability at most η = {found['eta']:g}"
    if found["anytime"]:
        return f"{rise}{chance}, at any time"
    text = f"{rise}{chance} after all answers, and at most 2η at any time before"
    if found["epsilon"] is None:
        return text
    return (
        f"(ε, δ)-differential privacy with ε = {found['epsilon']:g} and "
        f"δ = {found['epsilon_delta']:g}, for all answers together and at any time. It follows: "
        f"{text}"
    )


def rows_each(per_person: int) -> str:
    """How many rows a person may have, where it is more than one."""
    return f", up to {per_person:,} rows of each" if per_person > 1 else ""


def of_one_row(per_person: int) -> str:
    """Noise grows with what one person can change."""
    return f" where a person has one row, here {per_person:,}² times that" if per_person > 1 else ""


def in_epsilon(promise: dict[str, Any]) -> str:
    """The promise as (ε, δ)."""
    found, at = promise["epsilon"], promise["delta"]
    epsilon = "no finite ε" if found is None else f"ε = {found:.3g}"
    return f"{epsilon} at δ = {at:.0e}, in the words of differential privacy"


def but_for(promise: dict[str, Any]) -> str:
    """Coins may all fall on one side: then, and only then, an answer tells for certain."""
    if promise["rho_holds"]:
        return ""
    return (
        f" except with probability {promise['atom']:.0e}" if promise["atom"] else " all but surely"
    )


def issued_view(identity: Identity, expires: str | None, output: Path | None) -> str:
    """A token that was issued, shown once."""
    lasting = f"for {expires}" if expires else "until it is revoked"
    scopes = ", ".join(sorted(identity.scopes))
    where = "; it is in" if output else "; it is shown once:"
    return f"token {identity.token} of {identity.name}, {lasting}, for {scopes}{where}"


def recovered_lines(done: Recovered, folder: Path) -> list[str]:
    """What it cost, and what to do next."""
    lines = [f"answers charged that the ledger does not know any more: {done.lost:,}"]
    if done.revoked:
        lines.append(
            f"tokens revoked, since an old copy may not know which ones were: {done.revoked:,}; "
            f"make new ones with voile serve token {folder} --analyst NAME"
        )
    return [*lines, f"next: voile serve run {folder}"]


def listening_data(found: ServerStatus, folder: Path) -> dict[str, Any]:
    """Where a server listens, for programs."""
    return {
        "url": found.url,
        "server": str(folder),
        "name": found.name,
        "queries": found.queries,
        "used": found.used,
    } | ({} if found.postgres is None else {"wire": found.postgres})


def listening_view(found: ServerStatus, folder: Path) -> Any:
    """Where a server listens."""
    from rich.markup import escape

    wire = {} if found.postgres is None else {"wire": f"port {found.postgres}; passwords: tokens"}
    return key_values(
        {
            "listening": f"{found.url}; what it answers: {found.url}/docs",
            **wire,
            "server": f"{escape(str(folder))}, about {escape(found.name)}",
            "answers": f"{found.used:,} of {found.queries:,} given so far",
            "to stop": "Ctrl-C; nothing that was charged is lost",
        }
    )


def status_view(found: dict[str, Any]) -> Any:
    """A server's budgets and tokens."""
    from rich.console import Group
    from rich.markup import escape

    every = found["everyone"]
    budgets = [["everyone", "", *budget_cells(every)]]
    budgets += [[escape(one["name"]), "group", *budget_cells(one)] for one in found["groups"]]
    budgets += [
        [escape(one["name"]), kind_of(one), *budget_cells(one)] for one in found["analysts"]
    ]
    tokens = [
        [
            escape(one["name"]),
            escape(token["id"]),
            " ".join(token["scopes"]),
            day(token["created"]),
            state_of(token),
        ]
        for one in found["analysts"]
        for token in one["tokens"]
    ]
    parts = [table_of(["budget of", "", "answers", "used", "left"], budgets)]
    if found["registered"] is False:
        parts.append("[dim]note: it is not in the steward's register[/dim]")
    if tokens:
        parts.append(table_of(["analyst", "token", "scopes", "made", "valid"], tokens))
    return Group(*parts)


def budget_cells(found: dict[str, Any]) -> list[str]:
    """A budget's numbers."""
    queries, used = found["queries"], found["used"]
    if queries is None:
        return ["no bound of their own", f"{used:,}", ""]
    return [f"{queries:,}", f"{used:,}", f"{max(0, queries - used):,}"]


def kind_of(analyst: dict[str, Any]) -> str:
    """An analyst's role, and the group that the analyst is in."""
    from rich.markup import escape

    return f"{analyst['role']}, {escape(analyst['group'])}" if analyst["group"] else analyst["role"]


def state_of(token: dict[str, Any]) -> str:
    """Whether a token is valid."""
    if token["revoked"]:
        return f"revoked {day(token['revoked'])}"
    if not token["valid"]:
        return f"expired {day(token['expires'])}"
    return f"until {soon(token['expires'])}" if token["expires"] else "yes"


def log_view(lines: list[dict[str, Any]]) -> Any:
    """The lines of the log."""
    from rich.markup import escape

    if not lines:
        return "nothing has happened yet"
    rows = [
        [moment(line["at"]), escape(line["who"]), escape(line["what"]), escape(words(line))]
        for line in lines
    ]
    return table_of(["when (UTC)", "who", "what", ""], rows)


def words(line: dict[str, Any]) -> str:
    """A line's details in words."""
    return ", ".join(f"{key} {value}" for key, value in line["detail"].items() if value is not None)


def moment(at: float) -> str:
    """A time in UTC."""
    return f"{dt.datetime.fromtimestamp(at, dt.UTC):%Y-%m-%d %H:%M:%S}"


def soon(at: float) -> str:
    """A day; with the time if it is near."""
    near = at < dt.datetime.now(dt.UTC).timestamp() + SOON
    return f"{moment(at)} UTC" if near else day(at)


def day(at: float) -> str:
    """A day in UTC."""
    return f"{dt.datetime.fromtimestamp(at, dt.UTC):%Y-%m-%d}"


# ---------------------------------------------------------------------- self audit
# What a server's steward sees of what was disclosed so far.


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
        label = words.get(name, f"the {name} of anyone")
        rows.append([label, *numbers(found.bound(people[name]["distance_squared"]))])
    kinds = "1 kind" if found.kinds == 1 else f"{found.kinds:,} kinds"
    lost = f" ({found.lost:,} lost, taken for the worst)" if found.lost else ""
    parts: list[Any] = [
        f"[bold]{found.answers + found.lost:,} of {setting.queries:,} answers[/bold]{lost} by "
        f"{escape(setting.name)}, of {kinds}. Looked at: {people['looked_at']:,} "
        f"{WHO[found.known_by]}. No row was.",
        whole_numbers(["conf may have risen by", "D²", "at most", "adaptive",
                       f"above δ = {setting.delta:g}"], rows, numeric={1, 2, 3, 4}),
        f"At most: except with probability at most η = {setting.eta:g}. Adaptive: the same, at any "
        "time and for questions that were chosen by the answers before.",
    ]  # fmt: skip
    if (remark := given_ids(found.named, setting.people)) is not None:
        parts.insert(1, remark)
    if not found.exact:
        parts.append("Some questions read too many values to compare all: bounds are larger then.")
    columns = found.to_dict()["columns"][:MOST_COLUMNS]
    by_columns = [
        [escape(", ".join(one["columns"]) or "(no column)"), f"{one['distance_squared']:.4g}",
         f"{one['rise']:.3f}"]
        for one in columns
    ]  # fmt: skip
    if len(by_columns) > 1:
        parts.append(whole_numbers(["by questions about", "D²", "at most"], by_columns, {1, 2}))
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
    """A bound's numbers."""
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


# ---------------------------------------------------------------------- collecting
# What people see of a collector.


def collector_data(found: CollectorStatus, store: Path) -> dict[str, Any]:
    """`url` is what a server's line has, too; `listening` is its older name here."""
    return {
        "url": found.url, "listening": found.url, "store": str(store), "rows": found.rows,
        "spec": found.spec,
    }  # fmt: skip


def collector_view(found: CollectorStatus, store: Path) -> Any:
    """Where a collector listens, and what it has."""
    from rich.markup import escape

    return key_values(
        {
            "listening": f"{found.url}/v1/rows",
            "store": f"{escape(str(store))}, {counted(found.rows, 'row')} so far",
            "spec": f"{found.spec[:16]}… at {found.url}/v1/spec",
            "to stop": "Ctrl-C; nothing that was acknowledged is lost",
        }
    )


def collected_view(done: CollectedRelease) -> Any:
    """A release of collected rows."""
    from rich.markup import escape

    rows = [
        ["release", escape(str(done.release.path))],
        ["rows", f"{done.rows:,}, as they were perturbed by those who sent them"],
        ["from", escape(str(done.store))],
        ["spec", f"{done.spec[:16]}…"],
        ["promise", promise_line(done.release.manifest)],
        *[["note", escape(note)] for note in done.notes],
    ]
    return table_of(["", ""], rows, show_header=False)
