"""Checking classes of rows: on what is shown, as whoever opens the files sees it."""

from __future__ import annotations

import numpy as np

from voile.errors import ReleaseError
from voile.kinds.classes.files import Ranges
from voile.kinds.classes.manifest import grouped_disclosed
from voile.kinds.classes.release import ClassRelease
from voile.recoding.labels import agrees

TOLERANCE = 1e-9
"""By which what is measured again may differ: sums of floats in another order."""


def check_grouped(release: ClassRelease) -> None:
    """Everything that is promised, measured again."""
    manifest = release.manifest
    check_order(release)
    for name, ranges in release.ranges.items():
        check_ranges(release, name, ranges)
    check_rows(release)
    check_requirements(release)
    if manifest.disclosed != grouped_disclosed(release.schema, manifest.parameters, manifest.nulls):
        raise ReleaseError("manifest.json does not say all that the release discloses")
    if manifest.public_rows != manifest.rows:
        raise ReleaseError("manifest.json: every row that is shown is one of the table's")


def check_requirements(release: ClassRelease) -> None:
    """Every class meets every requirement, and the worst has what is stated."""
    found = release.histograms
    entries = release.manifest.guarantee.requirements
    for entry, requirement in zip(entries, release.requirements, strict=True):
        if not requirement.met(found).all():
            worst = int(np.flatnonzero(~requirement.met(found))[0])
            raise ReleaseError(f"class {worst} does not meet {requirement.spelling}")
        measured = requirement.worst(requirement.measured(found))
        if abs(measured - entry.measured) > TOLERANCE:
            raise ReleaseError(
                f"manifest.json: {requirement.spelling}: the classes have {measured:.6g}, not "
                f"{entry.measured:.6g}"
            )


def check_order(release: ClassRelease) -> None:
    """Classes are in order, all there, and look different."""
    if (np.diff(release.of_row) < 0).any() or not release.histograms.rows.all():
        raise ReleaseError("data/ is not in the order of the classes, or leaves one out")
    p = release.manifest.parameters
    if p.recode == "generalize":
        boxes = np.unique(np.hstack(release.boxes()), axis=0)
        if len(boxes) < p.classes:
            raise ReleaseError("two classes show the same ranges, and so are one")


def check_ranges(release: ClassRelease, name: str, ranges: Ranges) -> None:
    """A class shows one range of the column, and every text says which one that is."""
    if not np.array_equal(ranges.text[release.of_row], release.shown_codes[name]):
        raise ReleaseError(f"data/: {name!r} does not show what classes/ says")
    attribute, p = release.schema[name], release.manifest.parameters
    inside = (ranges.low >= 0) & (ranges.low <= ranges.high) & (ranges.high < attribute.size)
    if not inside.all():
        raise ReleaseError(f"classes/: a range of {name!r} is not one of its domain")
    pairs = np.unique(np.stack([ranges.text, ranges.low, ranges.high]), axis=1)
    if pairs.shape[1] != len(ranges.texts):
        raise ReleaseError(f"classes/: a text of {name!r} stands for several ranges")
    order = release.order(name) if name in p.orders else None
    for number, low, high in pairs.T.tolist():
        text = ranges.texts[number]
        if not agrees(text, (low, high), attribute, order, p.groups.get(name, {})):
            raise ReleaseError(f"classes/: {text!r} of {name!r} is not the range {low} … {high}")


def check_rows(release: ClassRelease) -> None:
    """What stands beside the rows counts as many of them."""
    p, rows, hidden = release.manifest.parameters, release.histograms.rows, release.hidden
    if p.recode == "generalize" and not np.array_equal(release.stated_rows, rows):
        raise ReleaseError("classes/ does not agree with the rows in data/")
    if hidden is not None:
        told = np.bincount(hidden.of_class, hidden.rows, p.classes)
        if len(told) != p.classes or not np.array_equal(told, rows):
            raise ReleaseError("sensitive/ does not agree with the rows in data/")
