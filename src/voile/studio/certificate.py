"""What is known of a release that left, for its steward's files: facts, checks and a page."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import Any

import voile
from voile.errors import UsageError
from voile.files import write_whole
from voile.release import Release, Verification, examine
from voile.studio.pages import rendered
from voile.studio.project import Project, PublishedRelease, now

STYLE = files("voile.studio") / "static" / "certificate.css"
ENDING = ".certificate.html"


def facts_of(release: Release) -> dict[str, Any]:
    """What a release is and says of itself, as plain data."""
    manifest = release.manifest
    said = sections(release.describe())
    return {
        "name": release.name,
        "kind": release.kind,
        "method": manifest.method,
        "about": said.get("", []),
        "promised": said.get("What is promised", []),
        "not_promised": said.get("What is not promised", []),
        "exactly": said.get("What the release discloses exactly", []),
        "against": list(dict.fromkeys(one.against for one in release.promised())),
        "protects": release.protects,
        "columns": [
            {"name": one.name, "kind": one.kind, "public": one.public, "size": one.size}
            for one in release.schema.attributes
        ],
        "disclosed": [one.model_dump() for one in manifest.disclosed],
        "unprotected": list(release.unprotected),
        "rows": manifest.rows,
        "weakness": manifest.weakness(),
        "simulated": manifest.simulated,
        "registered": manifest.registered,
        "digest": manifest.digest,
        "voile": manifest.voile,
    }


def sections(text: str) -> dict[str, list[dict[str, Any]]]:
    """A description by its headings: paragraphs and lists, as a page shows them."""
    found: dict[str, list[dict[str, Any]]] = {"": []}
    title = ""
    for line in text.splitlines():
        if line.startswith("## "):
            title = line.removeprefix("## ")
            found[title] = []
        elif line.startswith("- "):
            listed = found[title]
            if not listed or "items" not in listed[-1]:
                listed.append({"items": []})
            listed[-1]["items"].append(line.removeprefix("- "))
        elif line.strip() and not line.startswith("# "):
            found[title].append({"text": line})
    return found


def checks_of(found: Verification) -> list[dict[str, Any]]:
    """What was verified, one thing after the other; `ok` is None where it does not apply."""
    signed = [one for one in found.signatures if one.counts]
    listed = ", ".join(f"{one.name or 'a key'} ({one.fingerprint})" for one in signed)
    return [
        {"what": "The files are whole", "ok": found.whole,
         "words": f"{found.files or 0:,} files, each as its SHA-256 in the manifest says"},
        {"what": "The promise follows from what the release states", "ok": found.terms,
         "words": "computed again from the parameters as they are written down"},
        {"what": "The rows can be what the stated mechanism makes", "ok": found.rows_plausible,
         "words": found.rows_unseen or f"{found.rows or 0:,} rows were looked at"},
        {"what": "It is signed", "ok": True if signed else found.signed_by,
         "words": listed or "nobody has signed it"},
    ]  # fmt: skip


def checked(place: str) -> dict[str, Any]:
    """A release verified as a stranger would, with what it says of itself."""
    found = examine(place)
    data = {
        "ok": found.ok, "problems": list(found.problems), "checks": checks_of(found),
        "signatures": [one.to_dict() for one in found.signatures], "at": now(),
        "by": voile.__version__,
    }  # fmt: skip
    return {**data, "facts": facts_of(voile.open(place)) if found.ok else None}


# ---------------------------------------------------------------------- the page


def certificate_page(
    project: Project, published: PublishedRelease, found: dict[str, Any], *, alone: bool
) -> str:
    """The certificate as a page; one that stands `alone` brings its style with it."""
    looks = [look for look in project.looks if look.at <= published.at]
    kept = [
        one
        for one in project.candidates
        if one.after_looking and (one.at is None or one.at <= published.at)
    ]
    return rendered("certificate.html", {
        "published": published, "found": found, "facts": found["facts"],
        "place": Path(published.place).name, "looks": looks,
        "after_looking": kept,
        "style": STYLE.read_text(encoding="utf-8") if alone else "",
    })  # fmt: skip


def certificate_place(place: str) -> Path:
    """Beside the release, and never inside: its folder is sealed."""
    if "://" in place:
        raise UsageError(
            f"{place!r} is not on this machine", hint="print the certificate to a file instead"
        )
    folder = Path(place)
    return folder.with_name(f"{folder.name.removesuffix('.voile')}{ENDING}")


def save_certificate(project: Project, published: PublishedRelease, found: dict[str, Any]) -> Path:
    """Write the certificate beside its release, over an earlier one of the same name."""
    text = certificate_page(project, published, found, alone=True)
    return write_whole(certificate_place(published.place), text.encode())
