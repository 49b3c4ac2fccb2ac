"""Begin a server: copy the table, derive the noise from the promise, make the ledger."""

from __future__ import annotations

import json
import math
import os
import secrets
import shutil
import stat
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from voile.engines import connect
from voile.engines.counted import read_counted, write_counted
from voile.engines.lookups import Summand, Sums
from voile.engines.table import Table
from voile.errors import UsageError, VoileError, spelled
from voile.files import check_name, check_utf8, sha256, sync
from voile.kinds.domain import choose_schema
from voile.kinds.registration import Departure, Registration
from voile.privacy.guarantee import Guarantee
from voile.privacy.guarantees import ApproximateDp, Dp, NoisyAnswers, Target, Zcdp
from voile.privacy.guarantees.conversions import convert
from voile.privacy.interactive.confidence import check_promise
from voile.privacy.interactive.promise import needed, needed_for_epsilon, rise_within
from voile.progress import Progress
from voile.register import chosen_register
from voile.schema import Schema
from voile.serve.ledger import begin_ledger
from voile.serve.ledger.postgres import check_url
from voile.serve.question import QuestionReader
from voile.serve.setting import FILE, TABLE, DeclaredSubset, Setting
from voile.system import here as system

if TYPE_CHECKING:
    from voile.register import RegisterChoice

NAME = 60
MOST_QUERIES = 2**53
"""Whole numbers up to here are exact wherever they go, in JSON too."""
DELTA = 1e-9
"""The δ at which the register counts answers whose noise has neither an ε nor a ρ."""
MANY = 100
"""Different texts in a column that may still be kinds of something."""


def begin(
    folder: str | Path,
    table: object,
    *,
    schema: Schema | str | Path | Mapping[str, Any] | None = None,
    columns: Sequence[str] | None = None,
    queries: int,
    delta: float | None = None,
    eta: float = 1e-6,
    epsilon: float | None = None,
    epsilon_delta: float | None = None,
    noise: str = "binomial",
    anytime: bool = False,
    name: str | None = None,
    person: str | None = None,
    per_person: int | None = None,
    id_column: str | None = None,
    subsets: Mapping[str, str] | None = None,
    ledger: str | None = None,
    counter: str | Path | None = None,
    clamp: bool = False,
    null_text: Sequence[str] = (),
    progress: Progress | None = None,
    salt: str | None = None,
    register: RegisterChoice = None,
) -> tuple[Setting, list[str]]:
    """Make the folder of a new server, whole or not at all; also notes for its steward.

    Its noise is the least that keeps what is promised: `delta` with `eta` is (δ,T)-privacy, and
    `epsilon` with `epsilon_delta` (1e-9) is (ε,δ)-differential privacy.

    All answers that it may ever give are written into the steward's register before: `register` is
    its path or address, else the usual one; False writes nothing down. Which rows of a person are
    kept is decided by coins of a secret `salt`, which is drawn and forgotten if none is given.
    """
    folder = Path(folder)
    check_place(folder)
    check_words(name, ledger)
    check_people(person, per_person, id_column)
    promised = chosen_promise(
        noise, queries, delta=delta, eta=eta, anytime=anytime, epsilon=epsilon,
        epsilon_delta=epsilon_delta,
    )  # fmt: skip
    source = connect(table, null_text=null_text)
    key = person or id_column
    if key is not None:
        source.check_columns([key])
    chosen = columns
    if chosen is None and schema is None and key is not None:
        chosen = [column for column in source.columns if column != key]
    domain, notes = choose_schema(source, chosen, schema, nulls_of(source, chosen))
    if key in domain.names:
        raise UsageError(
            f"column {key!r} identifies people, and cannot be asked about",
            hint=f"leave it out of the schema or of {spelled('columns')}",
        )
    notes += disclosed(domain, len(source), inferred=schema is None)
    begun = folder.with_name(f".{folder.name}.{secrets.token_hex(4)}")
    begun.mkdir(mode=0o700)
    entry = None
    try:
        rows, people = write_counted(
            begun / TABLE, source, domain, key=key,
            per_key=(per_person or 1) if person else None, salt=salt or secrets.token_hex(32),
            clamp=clamp, progress=progress,
        )  # fmt: skip
        if not people:
            raise UsageError("the table has no rows", hint="there is nothing to ask about")
        setting = Setting(
            id=secrets.token_hex(16), name=name or source.name[:NAME], schema=domain,
            people=people, declared=not domain.active, queries=queries, delta=promised.delta,
            eta=eta, noise=noise, variance=promised.variance, anytime=anytime,
            epsilon=promised.epsilon, epsilon_delta=promised.epsilon_delta,
            per_person=per_person or 1, person=person,
            id_column=key, ledger=ledger, counter=outside(counter),
            digest=sha256(begun / TABLE), registered=register is not False,
        )  # fmt: skip
        setting = with_subsets(setting, subsets or {}, begun / TABLE)
        write_setting(begun, setting)
        entry = registration(register, source, setting, folder)
        begin_ledger(begun, setting)
        put_in_place(begun, folder)
        if entry is not None:
            entry.left()
            notes += entry.notes
        else:
            notes.append("the register has nothing of this server: its answers count nowhere")
    except BaseException:
        if entry is not None and begun.exists():  # nobody can ask it anything
            entry.stayed()
        shutil.rmtree(begun, ignore_errors=True)
        raise
    return setting, notes + remarks(setting, len(source) - rows)


@dataclass(frozen=True)
class ServerPromise:
    """What a server promises, and the noise that keeps it."""

    delta: float
    """How much confidence rises at most, except with probability η: promised, or what follows."""
    variance: float
    epsilon: float | None = None
    epsilon_delta: float | None = None


def chosen_promise(
    noise: str,
    queries: int,
    *,
    delta: float | None,
    eta: float,
    anytime: bool,
    epsilon: float | None,
    epsilon_delta: float | None,
) -> ServerPromise:
    """(δ,T)-privacy or (ε,δ)-differential privacy, whichever is asked for, with its noise."""
    check_queries(queries)
    if epsilon is None:
        if epsilon_delta is not None:
            raise UsageError(
                f"{spelled('epsilon_delta')} needs {spelled('epsilon')}",
                hint="it is the δ of (ε, δ)",
            )
        if delta is None:
            raise UsageError(
                "nothing says what is promised",
                hint=f"{spelled('delta', 1)} for (δ,T)-privacy, or {spelled('epsilon', 1)} for "
                "(ε,δ)-differential privacy",
            )
        check_delta(delta)
        return ServerPromise(delta, needed(noise, delta, eta, queries, anytime=anytime).variance)
    if delta is not None:
        raise UsageError(
            f"{spelled('delta')} and {spelled('epsilon')} exclude each other",
            hint="noise is derived from one promise; what follows of the other is stated",
        )
    if anytime:
        raise UsageError(
            f"{spelled('anytime')} is for {spelled('delta')}",
            hint=f"leave it out: what {spelled('epsilon')} promises holds at any time",
        )
    at = DELTA if epsilon_delta is None else epsilon_delta
    check_promise(1.0, eta, queries)
    variance = needed_for_epsilon(noise, epsilon, at, queries).variance
    return ServerPromise(rise_within(noise, variance, queries, eta), variance, epsilon, at)


def registration(
    register: RegisterChoice, source: Table, setting: Setting, folder: Path
) -> Registration | None:
    """The entry of a server in the register, which counts all answers that it may give."""
    chosen = chosen_register(register)
    if chosen is None:
        return None
    entry = chosen.begin(source, setting.name)
    promise = NoisyAnswers(setting.queries, setting.variance, cast("Any", setting.noise))
    entry.reserve(
        Departure(
            kind="a server of noisy answers",
            method=setting.noise,
            name=setting.name,
            digest=setting.id,
            path=str(folder),
            guarantee=[one.to_dict() for one in (*stated(setting), promise, *following(promise))],
            unit="person" if setting.person is not None else "record",
        )
    )
    return entry


def stated(setting: Setting) -> list[Guarantee]:
    """(ε, δ), where that is what the server promises."""
    if setting.epsilon is None or setting.epsilon_delta is None:
        return []
    return [ApproximateDp(setting.epsilon, setting.epsilon_delta)]


def following(promise: NoisyAnswers) -> list[Guarantee]:
    """What adds up of the answers: ε, ρ, and (ε, δ), as far as they hold of this noise."""
    found = []
    for target in (
        Target(Dp, {"unit": "swap"}), Target(Zcdp, {}), Target(ApproximateDp, {"delta": DELTA}),
    ):  # fmt: skip
        with suppress(VoileError):
            found.append(convert(promise, target).guarantee)
    return found


def outside(counter: str | Path | None) -> str | None:
    """The counter's absolute path: the server may be run from any folder."""
    return None if counter is None else str(Path(counter).absolute())


def nulls_of(source: Table, columns: Sequence[str] | None) -> Any:
    """NULL is a value where it occurs: leaving such rows out would disclose that they exist."""
    names = source.check_columns(list(columns if columns is not None else source.columns))
    return "as-value" if source.null_counts(names) else "error"


def check_place(folder: Path) -> None:
    """Refuse a folder that exists, or whose parent does not."""
    check_utf8(folder)
    parent = folder.absolute().parent
    if not parent.is_dir():
        raise UsageError(f"there is no folder {str(parent)!r}", hint="make it first")
    check_name(folder)
    if folder.exists() or folder.is_symlink():
        raise UsageError(
            f"{str(folder)!r} exists already",
            hint="a server's folder is never overwritten: its ledger says what was answered",
        )


def check_words(name: str | None, ledger: str | None) -> None:
    """Refuse a table name or a ledger address that cannot be used."""
    if name is not None and (
        not 0 < len(name) <= NAME or not name.isprintable() or name != name.strip()
    ):
        raise UsageError(
            f"{spelled('name', name[:NAME])} is no name for a table",
            hint=f"1 to {NAME} printable characters, without spaces around them",
        )
    if ledger is not None:
        check_url(ledger)


def check_queries(queries: int) -> None:
    """Refuse a number of answers that no noise can be planned for."""
    if queries > MOST_QUERIES:
        raise UsageError(
            f"{spelled('queries', queries)} is too large",
            hint=f"at most 2⁵³ = {MOST_QUERIES:,} answers",
        )


def check_delta(delta: float) -> None:
    """Refuse a δ that no noise can be planned for."""
    if not math.isfinite(delta):
        raise UsageError(
            f"{spelled('delta', delta)} is not a finite number",
            hint="δ is how much confidence may rise, such as 1",
        )


def check_people(person: str | None, per_person: int | None, id_column: str | None) -> None:
    """Refuse options about people that contradict each other."""
    if per_person is not None and person is None:
        raise UsageError(
            f"{spelled('per_person')} needs {spelled('person')}",
            hint="name the column that identifies people",
        )
    if per_person is not None and per_person < 1:
        raise UsageError(f"{spelled('per_person', per_person)} keeps no row", hint="at least 1")
    if person is not None and id_column is not None and person != id_column:
        raise UsageError(
            f"{spelled('person')} and {spelled('id_column', flag='--id')} exclude each other",
            hint="halves are drawn by the person then",
        )


def with_subsets(setting: Setting, subsets: Mapping[str, str], table: Path) -> Setting:
    """The setting with declared subsets, checked as questions are, and their public sizes."""
    if not subsets:
        return setting
    reader, rows = QuestionReader(setting), read_counted(table, setting.schema)
    found = []
    for name, sql in subsets.items():
        wanted = Sums((Summand(),), reader.condition(sql))
        found.append(DeclaredSubset(checked_name(name), sql, int(rows.totals(wanted)[0, 0])))
    return replace(setting, subsets=tuple(found))


def checked_name(name: str) -> str:
    """The name of a declared subset, if it can be one."""
    if name == "all" or not name or not name.replace("_", "a").replace("-", "a").isalnum():
        raise UsageError(
            f"{spelled('subsets', name, flag='--subset')} is no name",
            hint="letters, digits, _ and -; 'all' is everyone",
        )
    return name


def write_setting(folder: Path, setting: Setting) -> None:
    """Write the setting, readable by its owner only, and wait until it is on disk."""
    path = folder / FILE
    handle = system.open_file(path, new=True)
    with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as file:
        json.dump(setting.to_dict(), file, ensure_ascii=False, indent=2)
        file.write("\n")
        file.flush()
        system.flush(file.fileno())


def put_in_place(begun: Path, folder: Path) -> None:
    """Sync the folder, readable by its owner only, then give it its name."""
    for path in begun.iterdir():
        path.chmod(stat.S_IRUSR | stat.S_IWUSR)
    sync(begun / TABLE)
    sync(begun)
    system.move(begun, folder)
    sync(folder.absolute().parent)


def disclosed(domain: Schema, rows: int, *, inferred: bool) -> list[str]:
    """What every analyst will see of the values that occur."""
    notes = []
    if domain.active and not inferred:
        listed = ", ".join(domain.active)
        notes.append(
            f"the schema says that values were read off the table: {listed}; where you know them "
            "without it, write 'public: declared'"
        )
    for attribute in domain.attributes:
        if attribute.public == "active" and attribute.kind == "categorical":
            different = attribute.domain.size
            if different > MANY and 10 * different >= rows:
                notes.append(
                    f"{attribute.name!r} has {different:,} different values in {rows:,} rows, and "
                    "analysts see all of them; if it identifies people: "
                    f"{spelled('person', attribute.name)}, or leave it out with "
                    f"{spelled('columns')}"
                )
    return notes


def remarks(setting: Setting, left_out: int) -> list[str]:
    """What the steward should know about the server that was made."""
    notes = [f"how many people there are is public: {setting.people:,}"]
    if setting.person is not None:
        each = f"{setting.per_person:,} row{'s' * (setting.per_person > 1)}"
        notes.append(f"up to {each} of each person were kept, and {left_out:,} rows left out")
    if setting.id_column is not None:
        notes.append(f"who is in the table, by {setting.id_column!r}, is taken to be public")
    if setting.person is None:
        notes.append(
            f"each row is taken for one person; say {spelled('person', 'COLUMN')} where people "
            "have more"
        )
    if setting.epsilon_delta is not None and setting.epsilon_delta * setting.people >= 1:
        notes.append(
            f"δ = {setting.epsilon_delta:g} of (ε, δ) is not below one over the number of people: "
            "a mechanism that publishes somebody's row would keep it; choose "
            f"{spelled('epsilon_delta', 1e-9)}"
        )
    if setting.subsets:
        listed = ", ".join(f"{one.name} ({one.rows:,})" for one in setting.subsets)
        notes.append(f"declared subsets and their exact sizes are public: {listed}")
    return notes
