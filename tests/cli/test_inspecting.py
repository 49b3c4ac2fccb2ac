"""The first look at a messy table: it fits a screen, and ends with a command that works."""

from __future__ import annotations

import random
import re
import shlex
from pathlib import Path

import pytest

from tests.support.running import voile
from tests.support.soak import some
from voile.inspection import inspect_source
from voile.schema.infer import ColumnProfile

COIN = random.Random(20)  # noqa: S311
N = 3000
SIZES = {"a": 5, "b": 60, "c": 4, "d": 28}


def lines(head: str, row: str) -> str:
    """A table of N rows; {i} is the row, {a} to {d} are small numbers."""
    made = []
    for i in range(N):
        small = {name: COIN.randrange(size) for name, size in SIZES.items()}
        made.append(row.format(i=i, h=COIN.randrange(N // 4) * 7 + 1000, **small))
    return "\n".join([head, *made]) + "\n"


def gaps(content: str, text: str, every: int = 50) -> str:
    """The same with the second cell of some lines replaced."""
    head, *rest = content.splitlines()
    for i in range(7, len(rest), every):
        cells = rest[i].split(",")
        rest[i] = ",".join([cells[0], text, *cells[2:]])
    return "\n".join([head, *rest]) + "\n"


MESSY = {
    "r": (gaps(lines('"","age","group"', '"{i}",{b},"g{a}"'), "NA"), ["--na", "--nulls"]),
    "pandas": (gaps(lines(",age,group", "{i},{b}.0,g{a}"), ""), ["--nulls"]),
    "german": (lines("id;size;day;ward", "p{i};1,{b};{d}.1.2020;w{a}"), ["--columns"]),
    "dates": (lines("day,ward,age", "0{a}/0{a}/2020,w{a},{b}").replace("0/0", "1/0"), []),
    "survey": (gaps(lines("ward,age,sex", "w{a},{b},s{c}"), "-99"), ["--null-text=-99"]),
    "house": (lines("hhid,age,ward", "{h},{b},w{a}"), ["--columns"]),
    "dup": (lines("ward,age,age", "w{a},{b},{c}"), []),
}
MORE: dict[str, tuple[str | bytes, list[str]]] = {
    "latin": (
        lines("stadt;größe;datum", "Köln{a};1.2{a}{a},5;{d}/1/20{a}{a}").encode("cp1252"),
        ["--encoding"],
    ),
    "years": (lines("land,1960,1961,1962", "l{a},{b},{c},{d}"), []),
    "bom": (lines("\ufeffward,paid", 'w{a},"1,{c}{d}0"'), []),
    "spaces": (lines("full name;home town;age, years", "p {i};t {a};{b}"), ["--columns"]),
    "title": (lines("A survey of wards\n\nward,age", "w{a},{b}"), ["--skip"]),
    "bare": (lines("7,w1,33", "{a},w{c},{b}"), ["--header"]),
    "ragged": (lines("ward,age", "w{a},{b}") + "w1,3,x\n", ["--bad-rows"]),
    "sparse": (gaps(lines("ward,age,group", "w{a},{b},g{c}"), "", 3), ["--nulls"]),
}
"""Tables of which the first look may be refused; then what its hint says is added to it."""


@pytest.mark.parametrize("name", some([*MESSY, *MORE], 5))
def test_the_next_command_works_as_it_is_printed(name: str, tmp_path: Path) -> None:
    content, flags = {**MESSY, **MORE}[name]
    raw = content if isinstance(content, bytes) else content.encode()
    (tmp_path / f"{name}.csv").write_bytes(raw)
    shown = looked_at(f"{name}.csv", tmp_path)
    command = shown.rstrip().splitlines()[-1].removeprefix("next: ")
    assert command.startswith("voile publish")
    words = shlex.split(command)
    assert [flag for flag in flags if flag.split("=")[0] not in " ".join(words)] == []
    done = voile(*words[1:], cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert verified(tmp_path / f"{name}.voile")


def looked_at(table: str, folder: Path) -> str:
    """What `inspect` prints, with the flag that it asks for where it cannot read the table."""
    words = ["inspect", table]
    for _ in range(3):
        done = voile(*words, cwd=folder, columns=300)
        if done.returncode == 0:
            return done.stdout
        found = FLAG.search(done.stderr.partition("hint: ")[2])
        assert found, done.stderr
        words += [found["flag"], found["value"]]
    raise AssertionError(done.stderr)


FLAG = re.compile(r"add (?P<flag>--[a-z-]+) (?P<value>\S+)")


def verified(release: Path) -> bool:
    """Whether a release is what it says."""
    return voile("verify", str(release)).returncode == 0


def test_inspect_fits_a_screen_and_ends_with_the_command(tmp_path: Path) -> None:
    names = [f"question_{i}" for i in range(40)]
    rows = [",".join(str(COIN.randrange(5)) if COIN.random() < 0.9 else "NA" for _ in names)
            for _ in range(300)]  # fmt: skip
    for width in (12, 40):
        table = [",".join(names[:width]), *(",".join(r.split(",")[:width]) for r in rows)]
        (tmp_path / "t.csv").write_text("\n".join(table))
        shown = voile("inspect", "t.csv", cwd=tmp_path, columns=80).stdout.splitlines()
        assert len(shown) <= 24
        assert shown[-1].startswith("next: voile publish t.csv --na")
    everything = voile("inspect", "t.csv", "--all", cwd=tmp_path, columns=120)
    assert everything.returncode == 0, everything.stderr
    assert [name for name in names if name not in everything.stdout] == []


def test_a_household_that_repeats_is_found(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(MESSY["house"][0])
    found = inspect_source(str(tmp_path / "t.csv"))
    assert found.repeated_identifiers == ["hhid"]
    assert found.publishable == ["age", "ward"]
    data = found.to_dict()
    assert data["repeated_identifiers"] == ["hhid"]
    assert [a["repeated_identifier"] for a in data["attributes"]] == [True, False, False]


def profile(name: str, counts: dict[int, int]) -> ColumnProfile:
    rows, values = sum(counts.values()), sorted(counts)
    return ColumnProfile(
        name, "BIGINT", "integer", rows, 0, len(counts), values[0], values[-1], tuple(values),
        tuple(counts[value] for value in values),
    )  # fmt: skip


def test_ordinary_numbers_are_no_identifiers() -> None:
    coin = random.Random(7)  # noqa: S311
    amounts: dict[int, int] = {}
    zips: dict[int, int] = {}
    days: dict[int, int] = {}
    for _ in range(20_000):
        for counts, value in (
            (amounts, round(coin.lognormvariate(7, 1))),
            (zips, 10_001 + int(900 * coin.random() ** 4)),
            (days, 20_200_101 + 100 * coin.randrange(12) + coin.randrange(28)),
        ):
            counts[value] = counts.get(value, 0) + 1
    for name, counts in {"amount": amounts, "zip": zips, "day": days}.items():
        assert not profile(name, counts).looks_like_repeated_identifier, name
    people = {1000 + 3 * i: 1 + coin.randrange(6) for i in range(6000)}
    assert profile("x", people).looks_like_repeated_identifier
