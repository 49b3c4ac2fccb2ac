"""A class name is a noun with one home."""

from __future__ import annotations

import re
from collections import defaultdict

from tests.support.paths import ROOT

CLASS = re.compile(r"^class (\w+)", re.MULTILINE)


def test_every_class_has_one_home() -> None:
    homes: dict[str, list[str]] = defaultdict(list)
    for file in (ROOT / "src" / "voile").rglob("*.py"):
        for name in CLASS.findall(file.read_text(encoding="utf-8")):
            homes[name].append(file.relative_to(ROOT).as_posix())
    assert len(homes) > 500
    assert {name: found for name, found in homes.items() if len(found) > 1} == {}
