"""A disk as a power cut could have left it: all that was synced, and any part of what was not.

The calls come from the log of serve_shim.c, which stands between a process and its disk.
"""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.serve_faults import check_let_out
from voile.errors import VoileError
from voile.serve.ledger import open_ledger
from voile.serve.setting import Setting

SECTOR = 512


@dataclass(frozen=True)
class Call:
    """One call that changed the disk, or a mark."""

    what: str
    name: str
    other: str
    offset: int
    data: bytes


def read_log(path: Path) -> list[Call]:
    content, calls, place = path.read_bytes(), [], 0
    while place < len(content):
        end = content.index(b"\n", place)
        what, length, offset, names = content[place:end].decode().split(" ", 3)
        name, _, other = names.partition("\t")
        place = end + 1 + int(length)
        calls.append(Call(what, name, other, int(offset), content[end + 1 : place]))
    return calls


@dataclass
class File:
    """What is on disk for certain, and what may be."""

    durable: bytes = b""
    pending: list[Call] = field(default_factory=list)

    def after(self, chosen: list[Call]) -> bytes:
        content = bytearray(self.durable)
        for call in chosen:
            if call.what == "T":
                del content[call.offset :]
                content += bytes(call.offset - len(content))
            else:
                content += bytes(max(0, call.offset - len(content)))
                content[call.offset : call.offset + len(call.data)] = call.data
        return bytes(content)


class Disk:
    """A folder of files, whose names are as little certain as their contents until synced."""

    def __init__(self, folder: Path) -> None:
        self.live = {path.name: File(path.read_bytes()) for path in folder.iterdir()}
        self.names = dict(self.live)
        self.renamed: list[Call | tuple[str, File]] = []

    def do(self, call: Call) -> None:
        match call.what:
            case "O":
                if call.name not in self.live:
                    self.live[call.name] = File()
                    self.renamed.append((call.name, self.live[call.name]))
            case "T" | "W":
                self.live[call.name].pending.append(call)
            case "S" if call.name == ".":
                self.names = self.named(len(self.renamed))
                self.renamed.clear()
            case "S":
                file = self.live[call.name]
                file.durable = file.after(file.pending)
                file.pending.clear()
            case "R":
                self.live[call.other] = self.live.pop(call.name)
                self.renamed.append(call)
            case "U":
                del self.live[call.name]
                self.renamed.append(call)

    def named(self, count: int) -> dict[str, File]:
        """Names if so many changes of the folder are on disk: in order, as journals keep them."""
        names = dict(self.names)
        for change in self.renamed[:count]:
            if isinstance(change, tuple):
                names[change[0]] = change[1]
            elif change.what == "R":
                names[change.other] = names.pop(change.name)
            else:
                names.pop(change.name, None)
        return names

    def cut(self, folder: Path, coins: random.Random, keep: float) -> int:
        """What is there after a power cut; how many changes were lost."""
        count = sum(coins.random() < keep for _ in self.renamed)
        lost = len(self.renamed) - count
        for name, file in self.named(count).items():
            chosen = [part for call in file.pending for part in torn(call, coins, keep)]
            lost += sum(len(call.data) for call in file.pending) > sum(len(c.data) for c in chosen)
            (folder / name).write_bytes(file.after(chosen))
        return lost


def torn(call: Call, coins: random.Random, keep: float) -> Iterator[Call]:
    """Of a write that was not synced, any sectors may be on the disk."""
    if call.what == "T":
        if coins.random() < keep:
            yield call
        return
    whole = coins.random()
    for start in range(0, len(call.data), SECTOR):
        if (whole if whole < 0.5 else coins.random()) < keep:
            part = call.data[start : start + SECTOR]
            yield Call("W", call.name, "", call.offset + start, part)


def cuts(
    before: Path, place: Path, setting: Setting, calls: list[Call], keeps: tuple[float, ...]
) -> dict[str, int]:
    """Cut the power after every call, several times: how often something was wrong."""
    coins = random.Random(7)  # noqa: S311
    disk = Disk(before)
    let_out: dict[str, tuple[int, str]] = {}
    seen = {"cuts": 0, "lost_unsynced": 0, "wrong": 0}
    for call in calls:
        if call.what == "M":
            key, number, answer = json.loads(call.name)
            let_out[key] = (number, answer)
            continue
        disk.do(call)
        for keep in keeps:
            folder = place / "cut"
            folder.mkdir()
            seen["lost_unsynced"] += disk.cut(folder, coins, keep) > 0
            seen["cuts"] += 1
            seen["wrong"] += not sound(folder, setting, let_out)
            shutil.rmtree(folder)
    return seen | {"let_out": len(let_out)}


def sound(folder: Path, setting: Setting, let_out: dict[str, tuple[int, str]]) -> bool:
    """Whether the server starts, and has all that has left."""
    try:
        open_ledger(folder, setting, serving=True).close()
        check_let_out(folder, setting, let_out)
    except (VoileError, AssertionError, OSError):
        return False
    return True
