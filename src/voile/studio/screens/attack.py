"""Attack: what someone who knows something about a person comes to believe."""

from __future__ import annotations

import csv
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from voile.errors import UsageError
from voile.progress import Progress
from voile.studio.advising import apply_change, listed_changes
from voile.studio.calls import CLASS_METHODS, ShownCall, in_sql, publish_options, quoted
from voile.studio.candidates import every, picked, remembered_place
from voile.studio.charts import belief_chart
from voile.studio.pages import Reply, Screen, ScreenPage, Visit, read_number
from voile.studio.points import per_cent
from voile.studio.running import shown_schema
from voile.studio.trying import task_arguments, tried_table

PLACE, TARGETS = "preview.voile", "targets.csv"
COINS = 1
MOST_FIELDS = 40
"""Columns of which a value can be typed."""
LONGEST = 200
"""Characters of a value."""


@dataclass(frozen=True)
class AttackCall(ShownCall):
    """Attacking a release; Python opens it first. A `script` goes on from there."""

    def python(self) -> str:
        """As a program writes it."""
        head = f"{self.imports}\n\nrelease = voile.open({self.table!r})\n"
        if self.script:
            return head + self.script
        given = [*map(repr, self.positional)]
        given += [repr(value) for value in self.options.values()]
        return f"{head}{self.function}({', '.join(['release', *given])})"


# ---------------------------------------------------------------------- tasks


def attack_task(
    progress: Progress, *, source: str, reading: dict[str, Any], stamp: list[Any],
    choices: dict[str, Any], method: str, options: dict[str, Any], person: dict[str, str],
    guessed: str,
) -> dict[str, Any]:  # fmt: skip
    """Make a trial release, attack it, and remove it."""
    del stamp
    tried = tried_table(source, reading, choices)
    with tried.release(method, options, progress, seed=COINS) as release:
        found: dict[str, Any] = {
            "method": release.manifest.method, "words": release.promise_in_short,
            "statements": [one.explain for one in release.promised()],
            "not_promised": [one.explain for one in release.not_promised()],
            "bounds": None, "attack": None, "guesses": None,
        }  # fmt: skip
        if (bounds := release.belief_bounds()) is not None:
            found["bounds"] = bounds.to_dict()
        elif release.manifest.method == "alphabeta":
            found["attack"] = attack_on_view(release, person, progress)
        elif release.manifest.method in CLASS_METHODS:
            found["guesses"] = guesses(release, person, guessed)
        return found


def attack_on_view(release: Any, person: Mapping[str, str], progress: Progress) -> dict[str, Any]:
    """Beliefs about one person, exactly; a file of targets exists for as long as that takes."""
    from voile.evaluate.attack import attack  # noqa: PLC0415  (used in tasks alone)

    known = {name: value for name, value in person.items() if name in release.schema.names}
    with tempfile.TemporaryDirectory(prefix="voile-") as folder:
        file = Path(folder) / TARGETS
        with file.open("w", encoding="utf-8", newline="") as opened:
            writer = csv.writer(opened)
            writer.writerow(known)
            writer.writerow(known.values())
        return attack(release, file, progress=progress).to_dict()


def guesses(release: Any, person: Mapping[str, str], secret: str) -> list[dict[str, Any]]:
    """What a reader of classes guesses of the sensitive value."""
    from voile.evaluate.attack import guess_value  # noqa: PLC0415

    known = {
        name: typed(release.schema[name], value)
        for name, value in person.items()
        if name in release.schema.names and name != secret
    }
    return [one.to_dict() for one in guess_value(release, known, secret)]


def typed(attribute: Any, text: str) -> Any:
    """A text as a value of its column."""
    if attribute.kind not in ("integer", "numeric"):
        return text
    try:
        return int(text) if attribute.kind == "integer" else read_number(text)
    except ValueError:
        raise UsageError(
            f"{attribute.name!r} is a number, not {text!r}", hint="correct it"
        ) from None


def pick_task(
    progress: Progress, *, source: str, reading: dict[str, Any], stamp: list[Any],
    choices: dict[str, Any], turn: int,
) -> dict[str, str]:  # fmt: skip
    """The values of somebody in the table; another `turn` picks another."""
    del stamp, turn
    progress.start("picking", 1)
    tried = tried_table(source, reading, choices)
    (row,) = tried.table.run("select * from people using sample 1 rows")
    return {name: "" if value is None else str(value)
            for name, value in zip(tried.columns, row, strict=True)}  # fmt: skip


# ---------------------------------------------------------------------- the screen


def show(visit: Visit) -> Reply:
    """Who is looked for, and what was found."""
    looked, kept = visit.inspected(), visit.open.remembered
    context: dict[str, Any] = {
        "looked": looked, "candidates": every(visit), "place": remembered_place(visit, "attack"),
        "job": None, "picking": None, "data": None, "chart": None, "beliefs": [], "fields": [],
        "person": {}, "classes": False, "secrets": [], "secret": "", "changes": [],
        "percent": per_cent, "bound_rows": [], "kind": "",
    }  # fmt: skip
    if not looked.ok:
        return ScreenPage("attack.html", context)
    one = picked(visit, str(context["place"]))
    names = visit.project.columns(visit.column_names())
    context |= {
        "fields": fields(visit, names), "person": person_of(visit, names),
        "classes": one.method in CLASS_METHODS, "secrets": names, "secret": secret_of(visit, names),
        "kind": kind_of(one.method),
    }  # fmt: skip
    picking = kept.get("attack.turn") and visit.known_work(
        "attack.pick", **task_arguments(visit), turn=kept["attack.turn"]
    )
    context["picking"] = picking if picking and not picking.ok else None
    asked = kept.get("attack.asked")
    job = visit.known_work("attack.attack", **asked) if asked else None
    context["job"] = job
    if job is not None:
        context["changes"] = listed_changes(job.changes)
    if job is not None and job.ok:
        context |= outcome(job.data)
    return ScreenPage("attack.html", context, calls_of(visit))


def kind_of(method: str) -> str:
    """What can be found out: of a person, a guess of a value, or a bound for everybody."""
    if method in CLASS_METHODS:
        return "guess"
    return "person" if method == "alphabeta" else "everybody"


def outcome(data: Mapping[str, Any]) -> dict[str, Any]:
    """Beliefs before and after, as a chart and rows."""
    found: dict[str, Any] = {"data": data}
    beliefs: list[dict[str, Any]] = []
    if data["guesses"]:
        beliefs = [{"what": one["value"], **one} for one in data["guesses"][:30]]
    elif data["attack"]:
        attack = data["attack"]
        people = [guess for one in attack["people"] for guess in one["guesses"]]
        beliefs = [{"what": f"{one['attribute']} = {one['value']}", **one} for one in people]
        beliefs += [{"what": "this very record is there", **one} for one in attack["targets"][:1]]
    if data["bounds"]:
        rows: dict[float, list[Any]] = {}
        for one in data["bounds"]["bounds"]:
            rows.setdefault(one["prior"], []).append(one)
        found["bound_rows"] = list(rows.items())
    return found | {"beliefs": beliefs, "chart": belief_chart(beliefs) if beliefs else None}


def fields(visit: Visit, names: list[str]) -> list[dict[str, Any]]:
    """The columns of which something may be known, quasi-identifiers first."""
    known = visit.project.named("quasi-identifier")
    ordered = [n for n in names if n in known] + [n for n in names if n not in known]
    examples = {one["name"]: one.get("example") for one in visit.inspected().data["attributes"]}
    return [{"name": name, "example": examples.get(name)} for name in ordered[:MOST_FIELDS]]


def person_of(visit: Visit, names: list[str]) -> dict[str, str]:
    """Who is looked for: as typed, or as picked. It is written nowhere."""
    kept = visit.open.remembered
    if turn := kept.get("attack.turn"):
        job = visit.known_work("attack.pick", **task_arguments(visit), turn=turn)
        if job is not None and job.ok:
            return {name: value for name, value in job.data.items() if name in names}
    return dict(kept.get("attack.person", {}))


def secret_of(visit: Visit, names: list[str]) -> str:
    """What the attacker wants to learn: the first sensitive column, unless another was chosen."""
    wanted = visit.open.remembered.get("attack.secret", "")
    sensitive = [name for name in visit.project.named("sensitive") if name in names]
    return wanted if wanted in names else next(iter([*sensitive, *names[-1:]]), "")


def calls_of(visit: Visit) -> list[ShownCall]:
    """Publishing a trial, and attacking it."""
    project = visit.project
    one = picked(visit, str(remembered_place(visit, "attack")))
    options = publish_options(
        project,
        visit.column_names(),
        method=one.method,
        options=one.options,
        schema=shown_schema(visit.open, visit.column_names(), visit.studio.folder),
    )
    options |= {"simulate_seed": COINS, "output": PLACE}
    publishing = ShownCall(
        "publish", "voile.publish", project.source, project.reading, options=options
    )
    kind = kind_of(one.method)
    if kind == "person":
        how = AttackCall("attack", "voile.evaluate.attack.attack", PLACE,
                         options={"targets": TARGETS},
                         imports="import voile\nimport voile.evaluate.attack")  # fmt: skip
        return [publishing, how]
    if kind == "guess":
        return [publishing, guess_call(visit)]
    if one.method == "conjuncts":
        said = "for statement in release.promised():\n    print(statement.explain)"
        return [publishing, AttackCall("describe", "", PLACE, script=said)]
    return [publishing, AttackCall("attack", "", PLACE, script="release.belief_bounds()")]


def guess_call(visit: Visit) -> ShownCall:
    """Looking up who may be the person, as SQL and by the function that guesses."""
    names = visit.project.columns(visit.column_names())
    secret, data = secret_of(visit, names), visit.inspected().data
    kinds = {each["name"]: each["kind"] for each in data["attributes"]}
    typed_in = person_of(visit, names)
    if not typed_in:  # a person who could be there
        typed_in = {one["name"]: str(one["example"]) for one in fields(visit, names)[:2]}
    known = {name: plain(kinds[name], text) for name, text in typed_in.items() if name != secret}
    where = " and ".join(f"{quoted(name)} = {in_sql(value)}" for name, value in known.items())
    sql = (f"select {quoted(secret)}, count(*) from {quoted(data['name'])} where {where} "
           f"group by {quoted(secret)}")  # fmt: skip
    script = f"voile.evaluate.attack.guess_value(release, {known!r}, {secret!r})"
    return AttackCall("query", "", PLACE, positional=[sql], script=script,
                      imports="import voile\nimport voile.evaluate.attack")  # fmt: skip


def plain(kind: str, text: str) -> Any:
    """A value as Python has it; a text that is no number stays one."""
    try:
        return read_number(text) if kind == "numeric" else int(text) if kind == "integer" else text
    except ValueError:
        return text


# ---------------------------------------------------------------------- actions


def act(visit: Visit) -> Reply:
    """Attack: the person is kept in memory alone."""
    form, kept = visit.form, visit.open.remembered
    one = picked(visit, form.get("candidate"))
    names = visit.project.columns(visit.column_names())
    person = {}
    for place, field in enumerate(fields(visit, names)):
        value = form.get(f"value-{place}")
        if len(value) > LONGEST:
            raise UsageError(f"the value of {field['name']!r} is too long", hint="shorten it")
        if value:
            person[field["name"]] = value
    kept |= {"attack.candidate": int(form.get("candidate") or 0), "attack.person": person,
             "attack.secret": form.get("secret"), "attack.turn": None}  # fmt: skip
    secret = secret_of(visit, names)
    kind = kind_of(one.method)
    if kind != "everybody" and not person:
        raise UsageError("nothing is known of the person", hint="type a value, or pick somebody")
    asked = {
        **task_arguments(visit), "method": one.method, "options": one.options,
        "person": {} if kind == "everybody" else person, "guessed": secret,
    }  # fmt: skip
    kept["attack.asked"] = asked
    visit.open.note_look(f"an attack on {one.name.removeprefix('Your choice: ')}")
    visit.work("attack.attack", title="Attacking a trial release", again=True, **asked)
    return show(visit)


def pick(visit: Visit) -> Reply:
    """Pick somebody of the table."""
    kept = visit.open.remembered
    picked(visit, visit.form.get("candidate"))
    kept["attack.turn"] = (kept.get("attack.turns") or 0) + 1
    kept["attack.turns"] = kept["attack.turn"]
    kept["attack.candidate"] = int(visit.form.get("candidate") or 0)
    visit.work("attack.pick", title="Picking somebody", **task_arguments(visit),
               turn=kept["attack.turn"])  # fmt: skip
    return show(visit)


def set_candidate(visit: Visit) -> Reply:
    """Look at another candidate."""
    picked(visit, visit.form.get("candidate"))
    visit.open.remembered |= {"attack.candidate": int(visit.form.get("candidate") or 0),
                              "attack.asked": None}  # fmt: skip
    return show(visit)


def advise(visit: Visit) -> Reply:
    """Apply a change that would help; it is about the project's own choice."""
    apply_change(visit)
    visit.open.remembered |= {"attack.candidate": 0, "attack.asked": None}
    return show(visit)


SCREEN = Screen(
    "attack",
    "Attack",
    "Choose",
    "Play somebody who knows a few things about a person and reads the release. How much surer are "
    "they afterwards? Some promises bound that for everybody; of classes only a guess can be "
    "shown. The person you type here is never saved.",
    show,
    actions={"attack": act, "pick": pick, "candidate": set_candidate, "advise": advise},
)
