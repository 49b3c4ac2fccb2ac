"""The last screen: what will be disclosed, where it goes and who signs; then the release itself."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import voile
from voile.errors import UsageError
from voile.progress import Progress
from voile.publishing import published
from voile.register import Register
from voile.signing import SigningKey
from voile.studio.advising import take_change
from voile.studio.calls import (
    ShownCall,
    check_release_is_wanted,
    no_release,
    publish_options,
)
from voile.studio.certificate import (
    certificate_page,
    certificate_place,
    checked,
    facts_of,
    save_certificate,
)
from voile.studio.jobs import Job
from voile.studio.pages import Download, Go, Reply, Screen, ScreenPage, Visit
from voile.studio.project import Project, PublishedRelease
from voile.studio.running import (
    declared,
    located,
    place_of,
    publish_opened,
    record,
    seen_from,
    shown_call,
    stem_of,
)
from voile.studio.screens.promise import server_address
from voile.studio.state import OpenProject

MATTERS = {
    "source", "reading", "nulls", "person", "rows_per_person", "roles", "codebook", "attributes",
    "hierarchies", "method", "options", "questions",
}  # fmt: skip
"""Choices that a release depends on."""


# ---------------------------------------------------------------------- work


def rehearse_task(
    progress: Progress, *, path: str, project: dict[str, Any], stamp: list[Any], left: int
) -> dict[str, Any]:
    """Make the release without publishing it: nothing is kept, and nothing is registered.

    Its coins are thrown away with it; the release that leaves is drawn anew.
    """
    del stamp, left  # a changed file, or one release more, is another task
    opened = OpenProject("", Path(path), Project.model_validate(project))
    chosen = located(opened)
    table = voile.read(opened.source, **chosen.reading)
    columns = list(table.columns)
    with declared(chosen, columns) as schema:
        options = publish_options(chosen, columns, schema=schema)
        done = published(table, register=False, progress=progress, **options)
    told = done.to_dict()
    progress.start("looking into the register", 1)
    register = Register.open()
    counts = not told["simulated"]  # what promises nothing is not written down
    facts = facts_of(done.release)
    shown = {one["name"] for one in facts["columns"]}
    return {
        **facts,
        "left_out": [name for name in columns if name not in shown],
        "rows_in": told["rows_in"],
        "rows_dropped": told["rows_dropped"],
        "notes": [note for note in told["notes"] if not note.startswith("the register has")],
        "why": told["why"],
        "expected_error": told["expected_error"],
        "register": str(register.place),
        "accounts": [
            one.to_dict() for one in (register.foresee(table, done.release) if counts else [])
        ],
    }


def publish_task(
    progress: Progress,
    *,
    path: str,
    project: dict[str, Any],
    overwrite: bool,
    passphrase: str | None,
    stamp: list[Any] | None = None,
) -> dict[str, Any]:
    """Publish a project to its place, by the code of `voile studio run`."""
    opened = OpenProject("", Path(path), Project.model_validate(project))
    if stamp is not None and opened.stamp() != stamp:
        raise UsageError(
            "the table or a hierarchy has changed since the list was read",
            hint="nothing was published; read the list again",
        )
    key = located(opened).sign
    sign = SigningKey.read(key, passphrase=passphrase) if key else None
    return publish_opened(opened, overwrite=overwrite, progress=progress, sign=sign)


def check_task(progress: Progress, *, place: str, stamp: list[Any]) -> dict[str, Any]:
    """Verify a release as a stranger would."""
    del stamp
    progress.start("verifying the release", 1)
    return checked(place)


# ---------------------------------------------------------------------- the page


def show(visit: Visit) -> Reply:
    """The checklist, the form, and what was published."""
    inspected = visit.inspected()
    if not inspected.ok:
        return ScreenPage("publish.html", {"job": inspected, "ready": False})
    opened, project = visit.open, visit.project
    closed = no_release(project)
    rehearsal = None if closed else rehearsed(visit)
    publishing = visit.known_work("publish.publish", path=str(opened.path))
    context = {
        "closed": closed, "server": server_address(visit),
        "ready": True, "rehearsal": rehearsal, "publishing": publishing,
        "place": seen_from(place_of(opened), opened.path.parent), "taken": is_there(opened),
        "releases": releases_of(visit), "after_looking": after_looking(project),
        "is_weak": is_refused(rehearsal, "weak"), "is_useless": is_refused(rehearsal, "yes"),
        "options": project.options, "seen": seen_by(visit, rehearsal),
        "key_name": f"{stem_of(opened)}.key",
    }  # fmt: skip
    return ScreenPage("publish.html", context, calls_of(visit))


def calls_of(visit: Visit) -> list[ShownCall]:
    """Publishing as a command and from the project's file, and the check of what was published."""
    again, *verify = run_calls(visit)
    if no_release(visit.project):
        return verify
    return [shown_call(visit.open, visit.column_names(), visit.studio.folder), again, *verify]


def seen_by(visit: Visit, rehearsal: Job | None) -> str:
    """What a page shows, as a mark: a form that was made for something else publishes nothing."""
    shown = [rehearsal and rehearsal.id, place_of(visit.open), visit.project.sign]
    return hashlib.sha256(json.dumps(shown).encode()).hexdigest()


REHEARSE, REHEARSING = "publish.rehearse", "Rehearsing what would be published"


def rehearsal_of(visit: Visit) -> dict[str, Any]:
    """What a rehearsal depends on: the choices, the table, and what left before."""
    return {
        "path": str(visit.open.path),
        "project": visit.project.model_dump(include=MATTERS),
        "stamp": visit.open.stamp(),
        "left": len(visit.project.published),
    }


def rehearsed(visit: Visit) -> Job | None:
    """The rehearsal of the choices as they are now.

    It begins by itself until something was published; then somebody must want another release.
    """
    arguments = rehearsal_of(visit)
    if visit.project.published:
        return visit.known_work(REHEARSE, **arguments)
    return visit.work(REHEARSE, title=REHEARSING, **arguments)


def rehearse(visit: Visit) -> Reply:
    """Begin a rehearsal, after something was published."""
    check_release_is_wanted(visit.project)
    visit.work(REHEARSE, title=REHEARSING, **rehearsal_of(visit))
    return show(visit)


def run_calls(visit: Visit) -> list[ShownCall]:
    """The same from the project's file, and a stranger's check of what came of it."""
    folder = visit.studio.folder
    options = {"overwrite": True} if is_there(visit.open) else {}
    file = seen_from(str(visit.open.path), folder)
    again = ShownCall("studio run", "", file, options=options, reads=False)
    if not visit.project.published:
        return [again]
    place = seen_from(visit.project.published[-1].place, folder)
    verify = ShownCall("verify", "voile.verify", place, reads=False)
    return [again, verify]


def is_there(opened: OpenProject) -> bool:
    """Whether something has the place that the release would take."""
    place = place_of(opened)
    return "://" not in place and Path(place).exists()


def after_looking(project: Project) -> list[str]:
    """What its steward chose when they had seen what it does to the private table."""
    chosen = [
        f"{one.name} was kept as a candidate"
        + (", and is what is published" if is_chosen(one, project) else "")
        for one in project.candidates
        if one.after_looking
    ]
    return [*(f"{look.what} was looked at" for look in project.looks), *chosen]


def is_chosen(candidate: Any, project: Project) -> bool:
    """Whether a project publishes what a candidate says."""
    return (candidate.method, candidate.options) == (project.method, project.options)


def is_refused(job: Job | None, but: str) -> bool:
    """Whether an option would let a refused release pass: `weak`, or `yes` for a useless one."""
    return job is not None and job.state == "failed" and f"{but}=True" in job.hint


def releases_of(visit: Visit) -> list[dict[str, Any]]:
    """What this project published, newest first, with how the newest was verified."""
    found: list[dict[str, Any]] = []
    for number, one in reversed([*enumerate(visit.project.published)]):
        there = "://" in one.place or (Path(one.place) / "manifest.json").is_file()
        newest = not found
        near = there and "://" not in one.place  # what lies elsewhere is fetched when asked for
        check = verified(visit, one) if newest and near else None
        found.append({
            "number": number, "is": one, "name": Path(one.place).name, "there": there,
            "newest": newest, "check": check, "same": is_same(check, one),
            "certificate": certificate_name(one.place),
        })  # fmt: skip
    return found


def certificate_name(place: str) -> str:
    """How the file of a certificate is called; nothing where it cannot be beside its release."""
    return "" if "://" in place else certificate_place(place).name


def is_same(check: Job | None, published: PublishedRelease) -> bool:
    """Whether what lies there is what was published, and nothing that took its place."""
    if check is None or not check.ok or check.data["facts"] is None:
        return False
    return bool(check.data["facts"]["digest"] == published.digest)


def verified(visit: Visit, published: PublishedRelease) -> Job:
    """The verification of a release as it lies there now."""
    stamp: list[Any] = []
    if "://" not in published.place:
        seen = (Path(published.place) / "manifest.json").stat()
        stamp = [seen.st_mtime_ns, seen.st_size]
    return visit.work(
        "publish.check", title="Verifying the release", place=published.place, stamp=stamp
    )


# ---------------------------------------------------------------------- choices


def set_place(visit: Visit) -> Reply:
    """Where the release goes: a name beside the project, or a path that is meant."""
    given = visit.form.get("output")
    visit.change(output=checked_place(visit.open, given, meant=visit.form.has("outside")))
    return show(visit)


def checked_place(opened: OpenProject, given: str, *, meant: bool) -> str:
    """A place for a release; one outside of the project's folder must be meant."""
    if not given:
        return ""
    folder = opened.path.parent
    if "://" in given or Path(given).is_absolute():
        inside = Path(given).is_absolute() and Path(given).resolve().is_relative_to(folder)
        if not meant and not inside:
            raise UsageError(
                f"{given!r} lies outside of {str(folder)!r}",
                hint="tick that this is meant, or name a folder here, such as people.voile",
            )
        return given
    name = given if given.endswith(".voile") else f"{given}.voile"
    place = (folder / name).resolve()
    if name.startswith(".") or not place.is_relative_to(folder):
        raise UsageError(
            f"{given!r} leads out of {str(folder)!r}",
            hint="name a folder here, such as people.voile, or give the whole path",
        )
    if not place.parent.is_dir():
        raise UsageError(
            f"there is no folder {str(place.parent)!r}", hint="make it first, or name another"
        )
    return name


def set_key(visit: Visit) -> Reply:
    """Which key signs: none, or that of a file."""
    if visit.form.get("signing") != "key":
        visit.change(sign="")
        return show(visit)
    given = visit.form.get("key")
    if not given:
        raise UsageError("no key was named", hint="give the file of a key, or make a new one")
    folder = visit.open.path.parent
    file = folder / Path(given).expanduser()
    if not file.is_file():
        raise UsageError(
            f"there is no key {given!r}", hint="name its file, or make a new key with the button"
        )
    if file.name.endswith(".pub"):
        raise UsageError(
            f"{given!r} is the public half of a key", hint="name the private one, without .pub"
        )
    visit.change(sign=seen_from(str(file), folder))
    return show(visit)


def make_key(visit: Visit) -> Reply:
    """A new key beside the project, which signs from now on."""
    name, passphrase = visit.form.get("name"), secret_of(visit, "new_passphrase")
    if passphrase != secret_of(visit, "again"):
        raise UsageError("the two passphrases differ", hint="type the same one twice, or none")
    folder, stem = visit.open.path.parent, stem_of(visit.open)
    file, number = folder / f"{stem}.key", 1
    while file.exists() or file.with_name(f"{file.name}.pub").exists():
        number += 1
        file = folder / f"{stem}-{number}.key"
    SigningKey.new(name).save(file, passphrase=passphrase)
    visit.change(sign=file.name)
    return show(visit)


def secret_of(visit: Visit, name: str) -> str | None:
    """A passphrase as it was typed, with its spaces; None where there is none."""
    found = visit.form.all(name)
    return found[0] if found and found[0] else None


def advise(visit: Visit) -> Reply:
    """Take one of the changes with which something of use could be had."""
    job, number = rehearsed(visit), visit.form.get("number")
    changes = [] if job is None else job.changes
    if not number.isdecimal() or int(number) >= len(changes):
        raise UsageError("there is no such advice any more", hint="look at the page again")
    change = changes[int(number)]
    if change["questions"]:
        return Go(f"/servers?project={visit.open.name}&queries={change['questions']}")
    take_change(visit, change["options"])
    return show(visit)


def confirm(visit: Visit) -> Reply:
    """Publish knowingly what is weak, or of little use; or take that back."""
    name = visit.form.get("what")
    if name not in ("weak", "yes"):
        raise UsageError(f"nothing is called {name!r} here", hint="use the boxes of the page")
    kept = {key: value for key, value in visit.project.options.items() if key != name}
    if visit.form.has("sure"):
        kept[name] = True
    visit.change(options=kept)
    return show(visit)


# ---------------------------------------------------------------------- publishing


def go(visit: Visit) -> Reply:
    """Begin to publish, once everything that can be refused at once has been."""
    opened, project = visit.open, visit.project
    check_release_is_wanted(project)
    rehearsal = rehearsed(visit)
    if rehearsal is None or not rehearsal.ok:
        raise UsageError(
            "what would be published is not known yet", hint="wait for the rehearsal above"
        )
    if visit.form.get("seen") != seen_by(visit, rehearsal):
        raise UsageError(
            "the choices or the table have changed since this page was shown",
            hint="load the page again, and read the list",
        )
    if not visit.form.has("read"):
        raise UsageError(
            "the list above is not confirmed", hint="tick that you have read what is disclosed"
        )
    overwrite, passphrase = visit.form.has("overwrite"), secret_of(visit, "passphrase")
    if is_there(opened) and not overwrite:
        raise UsageError(
            f"{place_of(opened)!r} exists already",
            hint="tick that it is replaced, or choose another name",
        )
    if project.sign:
        SigningKey.read(located(opened).sign, passphrase=passphrase)  # a wrong one is told now
    visit.work(
        "publish.publish", title="Publishing", again=True, path=str(opened.path),
        secret={"project": project.model_dump(), "overwrite": overwrite, "passphrase": passphrase,
                "stamp": opened.stamp()},
        then=lambda done: record(opened, done),
    )  # fmt: skip
    return show(visit)


def explore(visit: Visit) -> Reply:
    """Open the newest release as an analyst would."""
    one = entry_of(visit)
    return Go(f"/r/{visit.studio.open_release(Path(one.place))}")


def entry_of(visit: Visit) -> PublishedRelease:
    """The release that a form means; the newest if none."""
    listed, number = visit.project.published, visit.form.get("number")
    if not listed:
        raise UsageError("nothing was published yet", hint="publish first")
    if not number:
        return listed[-1]
    if not number.isdecimal() or int(number) >= len(listed):
        raise UsageError(f"there is no release {number!r}", hint="choose one that is listed")
    return listed[int(number)]


def certified(visit: Visit) -> tuple[PublishedRelease, dict[str, Any]]:
    """A release and its verification; refused where there is none, or it is another one."""
    one = entry_of(visit)
    if "://" not in one.place and not (Path(one.place) / "manifest.json").is_file():
        raise UsageError(f"{one.place!r} is not there any more", hint="publish it again")
    job = verified(visit, one)
    if not job.ok:
        raise UsageError("the release is being verified", hint="try again in a moment")
    if not is_same(job, one):
        why = "; ".join(job.data["problems"]) or "another release took its place"
        raise UsageError(f"no certificate for {one.place!r}: {why}", hint="publish it again")
    return one, job.data


def certificate(visit: Visit) -> Reply:
    """The certificate to print."""
    one, found = certified(visit)
    text = certificate_page(visit.project, one, found, alone=False)
    return Download(text.encode(), "text/html; charset=utf-8")


def save(visit: Visit) -> Reply:
    """Keep the certificate beside its release."""
    one, found = certified(visit)
    save_certificate(visit.project, one, found)
    return show(visit)


SCREEN = Screen(
    "publish",
    "Publish",
    "Publish",
    "Read the list before you publish: what leaves cannot be called back. The rehearsal makes the "
    "release once and throws it away; the one that leaves is drawn anew. A signature says that "
    "the release comes from you; the certificate says, for your files, what was promised and how "
    "it was checked.",
    show,
    actions={
        "place": set_place, "key": set_key, "new-key": make_key, "advise": advise,
        "confirm": confirm, "rehearse": rehearse, "go": go, "explore": explore, "save": save,
    },
    parts={"certificate": certificate},
)  # fmt: skip
