"""What a server's steward sees."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

from voile.terminal import key_values, table_of

if TYPE_CHECKING:
    from pathlib import Path

    from voile.serve.ledger import Identity
    from voile.serve.serving import Listening


def begun_view(found: dict[str, Any]) -> Any:
    from rich.console import Group
    from rich.markup import escape

    printed, promise = found["as_printed"], found["promise"]
    facts = {
        "server": f"{escape(found['server'])}, about {escape(found['name'])}: "
        f"{found['people']:,} people",
        "answers": f"{found['queries']:,}, and never one more",
        "noise": f"{found['noise']}, variance {found['variance']:,.1f}: a count has a standard "
        f"error of {found['stderr']:,.1f}",
        "promise": f"no belief about a person rises by more than δ = {found['delta']:g} in "
        f"log-odds, but with a chance of η = {found['eta']:g}",
        "which is": f"{in_epsilon(promise)}; ρ = {promise['rho']:.3g} zCDP{but_for(promise)}",
        "as printed": f"the slides' variance {printed['variance']:,.0f} would let it rise by more "
        f"with a chance of {printed['breach']:.2f}",
    }
    following = (
        f"voile serve token {found['server']} --analyst NAME --queries N, "
        f"then voile serve run {found['server']}"
    )
    notes = [f"[dim]note: {escape(note)}[/dim]" for note in found["notes"]]
    return Group(key_values(facts | {"next": escape(following)}), *notes)


def in_epsilon(promise: dict[str, Any]) -> str:
    found, at = promise["epsilon"], promise["delta"]
    told = "no ε that could be told" if found is None else f"ε = {found:.3g}"
    return f"{told} at δ = {at:.0e}, in the words of differential privacy"


def but_for(promise: dict[str, Any]) -> str:
    """Coins may all fall on one side: then, and only then, an answer tells for certain."""
    if promise["rho_holds"]:
        return ""
    return f" but for a chance of {promise['atom']:.0e}" if promise["atom"] else " all but surely"


def issued_view(identity: Identity, expires: str | None) -> str:
    lasting = f"for {expires}" if expires else "until it is revoked"
    scopes = ", ".join(sorted(identity.scopes))
    return f"token {identity.token} of {identity.name}, {lasting}, for {scopes}; it is shown once:"


def listening_data(found: Listening, folder: Path) -> dict[str, Any]:
    return {
        "url": found.url,
        "server": str(folder),
        "name": found.name,
        "queries": found.queries,
        "used": found.used,
    }


def listening_view(found: Listening, folder: Path) -> Any:
    from rich.markup import escape

    return key_values(
        {
            "listening": f"{found.url}; what it answers: {found.url}/docs",
            "server": f"{escape(str(folder))}, about {escape(found.name)}",
            "answers": f"{found.used:,} of {found.queries:,} given so far",
            "to stop": "Ctrl-C; nothing that was charged is lost",
        }
    )


def status_view(found: dict[str, Any]) -> Any:
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
    if tokens:
        parts.append(table_of(["analyst", "token", "scopes", "made", "valid"], tokens))
    return Group(*parts)


def budget_cells(found: dict[str, Any]) -> list[str]:
    queries, used = found["queries"], found["used"]
    if queries is None:
        return ["no bound of their own", f"{used:,}", ""]
    return [f"{queries:,}", f"{used:,}", f"{max(0, queries - used):,}"]


def kind_of(analyst: dict[str, Any]) -> str:
    from rich.markup import escape

    return f"{analyst['role']}, {escape(analyst['group'])}" if analyst["group"] else analyst["role"]


def state_of(token: dict[str, Any]) -> str:
    if token["revoked"]:
        return f"revoked {day(token['revoked'])}"
    if not token["valid"]:
        return f"expired {day(token['expires'])}"
    return f"until {day(token['expires'])}" if token["expires"] else "yes"


def log_view(lines: list[dict[str, Any]]) -> Any:
    from rich.markup import escape

    rows = [
        [moment(line["at"]), escape(line["who"]), escape(line["what"]), escape(words(line))]
        for line in lines
    ]
    return table_of(["when (UTC)", "who", "what", ""], rows)


def words(line: dict[str, Any]) -> str:
    return ", ".join(f"{key} {value}" for key, value in line["detail"].items() if value is not None)


def moment(at: float) -> str:
    return f"{dt.datetime.fromtimestamp(at, dt.UTC):%Y-%m-%d %H:%M:%S}"


def day(at: float) -> str:
    return f"{dt.datetime.fromtimestamp(at, dt.UTC):%Y-%m-%d}"
