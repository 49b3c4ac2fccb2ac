"""Releases that were tampered with, opened and verified:
python tools/fuzz_releases.py --inputs 100000 --seed 1

Every input is a small release of some kind with its manifest, its list of files, a Parquet file or
its signature changed at random; mostly everything is sealed again, so that no hash gives it away.
It must be opened or refused with a VoileError within the time limit, without a file opened outside
of the release, without a character that a terminal acts upon, and within 500 MB.
"""

from __future__ import annotations

import argparse
import contextlib
import faulthandler
import hashlib
import io
import json
import os
import random
import re
import shutil
import signal
import sys
import tempfile
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
FIXTURES = ROOT / "tests" / "fixtures" / "version1"
SECONDS, STUCK = 10.0, 120.0
MEGABYTES = 500
SHOWN = 20
REPORTED = 5000
ACTIVE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
ODD: list[Any] = [
    None, True, False, 0, -1, 1, 2, 10**9, 2**63, -(2**63), 10**400, 0.5, -0.0, 1e308, 1e-320,
    "", "x", "\x1b[2J\u202e", "\ud800", "a" * 1000, [], {}, [[]], [None], {"": None}, ["x", "x"],
    "data/part-00000.parquet", "../manifest.json", "/etc/passwd", "2004-02-30", "0" * 64,
]  # fmt: skip
PATHS = [
    "../outside", "/etc/passwd", "data/age=45/p.parquet", "data/*.parquet",
    "data/part-00001.parquet",
    "data\\part-00000.parquet", "manifest.json", "README.md", "data", "", ".", "\x00", "\u202e",
    "data/part-00000.parquet/", "history/part-00000.parquet", "sensitive/part-00000.parquet",
]  # fmt: skip


class TooSlowError(BaseException):
    """An input took longer than it may."""


def alarm(_: int, __: FrameType | None) -> None:
    """What the timer calls."""
    raise TooSlowError


# ---------------------------------------------------------------------- inputs


@dataclass
class Mutation:
    """Changes a copy of a release at random."""

    random: random.Random
    folder: Path

    def change(self) -> str:
        """Do something to it; what was done."""
        ways: list[Callable[[], None]] = [
            self.manifest_bytes, self.manifest_values, self.manifest_values, self.file_list,
            self.parquet, self.parquet, self.footer, self.signature,
        ]  # fmt: skip
        way = self.random.choice(ways)
        way()
        return f"{way.__name__} of {self.folder.name}"

    @property
    def _manifest(self) -> Path:
        return self.folder / "manifest.json"

    def _data(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self._manifest.read_bytes())
        return found

    def _seal(self, data: Any) -> None:
        """Write a manifest in its one spelling, with a digest that fits."""
        if isinstance(data, dict) and self.random.random() < 0.95:
            blank = json.dumps(data | {"digest": ""}, ensure_ascii=False, indent=1) + "\n"
            digest = hashlib.sha256(blank.encode("utf-8", "surrogatepass")).hexdigest()
            data = data | {"digest": digest}
        text = json.dumps(data, ensure_ascii=False, indent=1) + "\n"
        self._manifest.write_bytes(text.encode("utf-8", "surrogatepass"))

    def manifest_bytes(self) -> None:
        """Bytes changed, left out, doubled."""
        self._manifest.write_bytes(self._mutated(self._manifest.read_bytes()))

    def manifest_values(self) -> None:
        """Values of the JSON replaced, left out or moved, and sealed."""
        data: Any = self._data()
        for _ in range(self.random.choice((1, 1, 1, 2, 4))):
            places = [*containers(data)]
            if not places:
                break
            inside = self.random.choice(places)
            key = self.random.choice([*inside] if isinstance(inside, dict) else range(len(inside)))
            match self.random.randrange(5):
                case 0:
                    del inside[key]
                case 1:
                    other = self.random.choice(places)
                    inside[key] = json.loads(json.dumps(other))
                case 2 if isinstance(inside[key], int | float):
                    inside[key] = self._number(inside[key])
                case 3 if isinstance(inside, dict):
                    inside[str(self.random.choice(ODD))] = deepcopy(self.random.choice(ODD))
                case _:
                    inside[key] = deepcopy(self.random.choice(ODD))
        self._seal(data)

    def _number(self, number: float) -> float:
        return self.random.choice([-number, number * 2, number + 1, number // 3, number * 10**9])

    def file_list(self) -> None:
        """Other paths, sizes, hashes and rows."""
        data = self._data()
        files = data["files"]
        entry = self.random.choice(files)
        match self.random.randrange(6):
            case 0 | 1:
                entry["path"] = self.random.choice(PATHS)
            case 2:
                entry["rows"] = self.random.choice([None, 0, 1, 2**62, (entry["rows"] or 0) + 1])
            case 3:
                entry["bytes"] = self.random.choice([0, 1, 2**62, entry["bytes"] + 1])
            case 4:
                files.append(dict(entry))
            case 5:
                files.remove(entry)
        data["files"] = files
        self._seal(data)

    def parquet(self) -> None:
        """Bytes of a Parquet file, anywhere."""
        self._rewrite(self._mutated)

    def footer(self) -> None:
        """Bytes of its footer, or the length of that."""

        def changed(content: bytes) -> bytes:
            length = int.from_bytes(content[-8:-4], "little")
            start = max(0, len(content) - 8 - length)
            new = self._mutated(content[start:-8])
            stated = self.random.choice([len(new), len(new), length, 0, 2**31, 2**32 - 1])
            return content[:start] + new + stated.to_bytes(4, "little") + b"PAR1"

        self._rewrite(changed)

    def _rewrite(self, change: Callable[[bytes], bytes]) -> None:
        path = self.random.choice(sorted(self.folder.rglob("*.parquet")))
        content = change(path.read_bytes())
        path.write_bytes(content)
        data = self._data()
        for entry in data["files"]:
            if entry["path"] == path.relative_to(self.folder).as_posix():
                entry["bytes"] = len(content)
                entry["sha256"] = hashlib.sha256(content).hexdigest()
        self._seal(data)

    def signature(self) -> None:
        """Something that is called a signature."""
        made: Any = self.random.choice([*ODD[:-6], {"version": 1, "signatures": ODD[:5]}])
        text = json.dumps(made).encode()
        if self.random.random() < 0.3:
            text = self.random.randbytes(99)
        (self.folder / "signature.json").write_bytes(text)

    def _mutated(self, content: bytes) -> bytes:
        changed = bytearray(content)
        for _ in range(self.random.choice((1, 1, 2, 4, 16))):
            at = self.random.randrange(len(changed) + 1)
            match self.random.randrange(6):
                case 0:
                    del changed[at : at + self.random.choice((1, 4, 100))]
                case 1:
                    changed[at:at] = self.random.randbytes(self.random.choice((1, 4, 100)))
                case 2:
                    changed[at:at] = changed[at : at + self.random.choice((1, 10, 1000))]
                case 3:
                    del changed[at:]
                case _ if at < len(changed):
                    changed[at] ^= 1 << self.random.randrange(8)
        return bytes(changed)


def restore(folder: Path, original: Path) -> None:
    """Make the copy what the release is: a mutation leaves files changed, and adds a signature."""
    if not folder.is_dir():
        shutil.copytree(original, folder)
        return
    (folder / "signature.json").unlink(missing_ok=True)
    for path in original.rglob("*"):
        if path.is_file():
            content, copy = path.read_bytes(), folder / path.relative_to(original)
            if copy.read_bytes() != content:
                copy.write_bytes(content)


def containers(data: Any) -> list[Any]:
    """Every object and list of parsed JSON that is not empty."""
    found, left = [], [data]
    while left:
        item = left.pop()
        if isinstance(item, dict | list) and item:
            found.append(item)
            left += item.values() if isinstance(item, dict) else item
    return found


# ---------------------------------------------------------------------- what must not happen


@dataclass
class Opened:
    """Notes which files Python opens that it may not; DuckDB is confined by itself."""

    allowed: tuple[str, ...]
    on: bool = False
    seen: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        sys.addaudithook(self._note)

    def _note(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self.on or event not in ("open", "socket.connect", "subprocess.Popen", "os.system"):
            return
        if event == "open" and isinstance(arguments[0], int):
            return
        path = os.path.realpath(os.fsdecode(arguments[0])) if event == "open" else event
        if not path.startswith(self.allowed):
            self.seen.append(path)


@dataclass
class Report:
    """What became of the inputs."""

    outcomes: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)


def marginals(folder: Path) -> Path:
    """A small release of noisy marginals, a kind that earlier versions did not have."""
    import pyarrow as pa  # noqa: PLC0415  (where things are remembered is set before)

    import voile  # noqa: PLC0415

    table = pa.table(
        {"a": [i % 5 for i in range(300)], "b": [("x", "y")[i % 3 == 0] for i in range(300)]}
    )
    made = voile.publish(
        table, method="marginals", simulate_seed=1, name="t", to=folder / "m.voile"
    )
    return made.path.resolve()


class ReleaseFuzzer:
    """Gives tampered releases to opening and verifying, and notes what must not happen."""

    def __init__(self, folder: Path) -> None:
        import voile  # noqa: PLC0415  (where things are remembered is set before)
        from voile.terminal import complain  # noqa: PLC0415

        self.work = folder.resolve() / "work"
        self.releases = [*sorted(FIXTURES.glob("*.voile")), marginals(folder.resolve())]
        self.voile, self.complain = voile, complain
        libraries = (sys.prefix, sys.base_prefix, str(ROOT / "src"), "/proc/", "/dev/", "/sys/",
                     "/usr/share/zoneinfo")  # fmt: skip
        self.watch = Opened((str(folder.resolve()), *map(os.path.realpath, libraries)))
        signal.signal(signal.SIGALRM, alarm)

    def run(self, seed: int, inputs: int) -> Report:
        """So many inputs."""
        report, source = Report(), random.Random(seed)  # noqa: S311
        for done in range(1, inputs + 1):
            if done % 100 == 1:
                faulthandler.dump_traceback_later(STUCK + 100 * SECONDS, exit=True)
            self.one(source, report)
            if done % REPORTED == 0:
                print(f"{done:,} inputs, {len(report.failures)} failures, {peak():.0f} MB",
                      file=sys.stderr)  # fmt: skip
        faulthandler.cancel_dump_traceback_later()
        return report

    def one(self, source: random.Random, report: Report) -> None:
        """Try one input and add its outcome to the report."""
        original = source.choice(self.releases)
        folder = self.work / original.name
        restore(folder, original)
        before = source.getstate()
        what = Mutation(source, folder).change()
        self.watch.seen.clear()
        outcome, problem = self._outcome(folder)
        if self.watch.seen:
            problem = f"opened {self.watch.seen}"
        report.outcomes["failed" if problem else outcome] += 1
        if problem:
            number = hashlib.sha256(repr(before).encode()).hexdigest()[:12]
            report.failures.append(f"{what} ({number}): {problem}")

    def _outcome(self, folder: Path) -> tuple[str, str]:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                signal.setitimer(signal.ITIMER_REAL, SECONDS)
                self.watch.on = True
                self.voile.open(folder).describe()
                self.voile.verify(folder)
        except self.voile.errors.VoileError as error:
            self.watch.on = False
            return "refused", self.shown(error)
        except TooSlowError:
            return "", f"took more than {SECONDS:g} s"
        except BaseException:
            self.watch.on = False  # a traceback reads the source
            return "", traceback.format_exc(limit=-4)
        finally:
            self.watch.on = False
            signal.setitimer(signal.ITIMER_REAL, 0)
        return "opened", ""

    def shown(self, error: Any) -> str:
        """What is wrong with the message as it is printed."""
        out = io.StringIO()
        with contextlib.redirect_stderr(out):
            self.complain(error.message, error.hint)
        found = ACTIVE.findall(out.getvalue())
        return f"printed {found!r}" if found else ""


def peak() -> float:
    """The most memory that this process has had, in megabytes."""
    with Path("/proc/self/status").open(encoding="ascii") as status:
        return next(int(line.split()[1]) / 1024 for line in status if line.startswith("VmHWM"))


def main() -> int:
    """Run the fuzzer and print its report; 1 if an input failed."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--inputs", type=int, default=100_000)
    arguments.add_argument("--seed", type=int, default=1)
    given = arguments.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_CACHE_HOME"] = folder
        report = ReleaseFuzzer(Path(folder)).run(given.seed, given.inputs)
    for failure in report.failures[:SHOWN]:
        print(failure)
    print(f"{dict(report.outcomes)}, at most {peak():.0f} MB")
    return int(bool(report.failures) or peak() > MEGABYTES)


if __name__ == "__main__":
    sys.exit(main())
