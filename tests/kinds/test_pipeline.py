"""What a kind of another package cannot do: publish what was not verified."""

from __future__ import annotations

from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import voile
from tests.kinds.rounded import Rounded, RoundedDraft, RoundedManifest
from voile.errors import ReleaseError, UsageError, VoileError
from voile.kinds import registry

FRAME = pd.DataFrame({"age": [20, 21, 22, 23] * 25, "ill": ["a", "b"] * 50})


class WrongCount(RoundedDraft):
    """States one row more than it writes."""

    def write(self, folder: Path) -> RoundedManifest:
        manifest = super().write(folder)
        return manifest.model_copy(update={"rows": manifest.rows + 1})


class LeftBehind(RoundedDraft):
    """Leaves a file that the manifest does not name: perhaps the true counts."""

    def fill(self, folder: Path) -> None:
        super().fill(folder)
        (folder / "truth.csv").write_text("20,a,13\n")


class Unsealed(RoundedDraft):
    """Changes the manifest after it was sealed."""

    def fill(self, folder: Path) -> None:
        super().fill(folder)
        manifest = folder / "manifest.json"
        manifest.write_text(manifest.read_text().replace('"age"', '"age" '))


class Empty(RoundedDraft):
    """Writes nothing."""

    def fill(self, folder: Path) -> None:
        del folder


class OwnPut(WrongCount):
    """Brings a `put` that would put an unsound release straight into its place."""

    def put(self, target: Path, *, overwrite: bool) -> Any:
        raise AssertionError(f"called for {target}, {overwrite}")


class Straight(RoundedDraft):
    """Writes into the place itself, before there is anything verified."""

    place: Path

    def fill(self, folder: Path) -> None:
        super().fill(folder)
        self.place.mkdir()
        (self.place / "manifest.json").write_text("{}")


def published(
    draft: type[RoundedDraft], target: Path, monkeypatch: pytest.MonkeyPatch, **options: Any
) -> voile.Release:
    """A release of a kind like the rounded one, but for its draft."""

    class Misbehaving(Rounded):
        def draft(self, *given: Any) -> RoundedDraft:
            made = super().draft(*given)
            return draft(made.name, made.schema, made.rows, made.options, made.notes)

    monkeypatch.setattr(registry, "entry_points", lambda **_: EntryPoints([POINT]))
    monkeypatch.setattr(registry, "loaded", lambda _: Misbehaving())
    publish: Any = voile.publish
    found: voile.Release = publish(FRAME, method="rounded", base=2, to=target, **options)
    return found


POINT = EntryPoint("rounded", "tests.kinds.rounded:Rounded", registry.GROUP)
UNSOUND = [
    (WrongCount, "rows, not"),
    (LeftBehind, "truth.csv does not belong to the release"),
    (Unsealed, "changed after the release was written"),
    (Empty, "has no manifest.json"),
    (OwnPut, "rows, not"),
]


@pytest.mark.parametrize(("draft", "words"), UNSOUND, ids=lambda x: getattr(x, "__name__", None))
def test_what_is_unsound_never_reaches_its_place(
    draft: type[RoundedDraft], words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ReleaseError, match=words):
        published(draft, tmp_path / "r.voile", monkeypatch)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("draft", "words"), UNSOUND, ids=lambda x: getattr(x, "__name__", None))
def test_what_is_unsound_replaces_nothing(
    draft: type[RoundedDraft], words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "r.voile"
    before = published(RoundedDraft, target, monkeypatch).manifest.digest
    with pytest.raises(VoileError, match=words):
        published(draft, target, monkeypatch, overwrite=True)
    assert voile.verify(target).manifest.digest == before
    assert list(tmp_path.iterdir()) == [target]


def test_what_appears_in_the_place_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Straight, "place", tmp_path / "r.voile", raising=False)
    with pytest.raises(UsageError, match="exists"):
        published(Straight, tmp_path / "r.voile", monkeypatch)


def test_a_kind_brings_no_publish_of_its_own() -> None:
    with pytest.raises(TypeError, match=r"Own\.publish: a kind brings a `draft`"):
        type("Own", (Rounded,), {"publish": lambda *_, **__: None})
