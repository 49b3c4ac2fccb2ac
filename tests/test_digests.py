"""What is remembered of files that were hashed: when it is believed, and when it is not."""

from __future__ import annotations

import hashlib
import io
import multiprocessing
import os
from pathlib import Path

import pytest

from voile import digests

CONTENT = b"rows"
EXPECTED = hashlib.sha256(CONTENT).hexdigest()
LONG_AGO = 1_700_000_000 * 10**9


def is_as_stated(path: Path, expected: str) -> bool:
    """Whether a file has this SHA-256; it is hashed unless that is remembered of it."""
    return not digests.changed([(path, expected)])


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file that was written a while ago, and a memory that is empty."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(digests, "SETTLED_NS", -(10**18))
    path = tmp_path / "part"
    path.write_bytes(CONTENT)
    return path


def hashed(path: Path, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether the file is read when it is checked."""
    read = []
    real = hashlib.file_digest

    def noted(file: io.BufferedReader, name: str) -> object:
        read.append(name)
        return real(file, name)

    with monkeypatch.context() as patched:
        patched.setattr(hashlib, "file_digest", noted)
        assert is_as_stated(path, EXPECTED)
    return bool(read)


def test_a_file_is_hashed_once(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert hashed(file, monkeypatch)
    assert not hashed(file, monkeypatch)
    assert digests.cache_file().stat().st_mode & 0o777 == 0o600


def test_a_touched_file_is_hashed_again(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert hashed(file, monkeypatch)
    os.utime(file, ns=(LONG_AGO, LONG_AGO))
    assert hashed(file, monkeypatch)


def test_a_byte_changed_in_place_shows_though_its_times_are_set_back(file: Path) -> None:
    assert is_as_stated(file, EXPECTED)
    before = file.stat()
    with file.open("r+b") as opened:
        opened.write(b"R")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert not is_as_stated(file, EXPECTED)


def test_what_is_remembered_is_for_one_digest_alone(file: Path) -> None:
    assert is_as_stated(file, EXPECTED)
    assert not is_as_stated(file, hashlib.sha256(b"other").hexdigest())


def test_a_file_that_was_just_written_is_not_remembered(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may change again within one tick of the clock of the file system."""
    monkeypatch.setattr(digests, "SETTLED_NS", 10**18)
    assert hashed(file, monkeypatch)
    assert hashed(file, monkeypatch)


@pytest.mark.parametrize(
    "broken",
    [b"", b"x", os.urandom(4096), digests.HEADER[:-1], digests.HEADER + b"half an entry",
     digests.HEADER + b"\0" * 32 * 10_000],
)  # fmt: skip
def test_a_broken_memory_is_ignored_and_mended(
    file: Path, broken: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = digests.cache_file()
    memory.parent.mkdir(parents=True)
    memory.write_bytes(broken)
    memory.chmod(0o600)
    assert hashed(file, monkeypatch)
    assert not hashed(file, monkeypatch)


def test_a_memory_that_others_could_write_is_ignored(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert hashed(file, monkeypatch)
    memory = digests.cache_file()
    memory.chmod(0o622)
    assert hashed(file, monkeypatch)
    elsewhere = memory.with_name("elsewhere")
    memory.rename(elsewhere)
    memory.symlink_to(elsewhere)
    assert hashed(file, monkeypatch)


@pytest.mark.parametrize("what", ["fifo", "folder", "nothing"])
def test_without_a_memory_everything_is_hashed(
    file: Path, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = digests.cache_file()
    if what == "nothing":
        monkeypatch.setenv("XDG_CACHE_HOME", "/dev/null")
    else:
        memory.parent.mkdir(parents=True)
        (os.mkfifo if what == "fifo" else os.mkdir)(memory)
    assert hashed(file, monkeypatch)
    assert hashed(file, monkeypatch)


def test_the_memory_is_bounded(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entries = [hashlib.sha256(bytes([i % 256, i // 256])).digest() for i in range(20_000)]
    for start in range(0, 20_000, 1000):
        digests.remember(entries[start : start + 1000])
        assert digests.cache_file().stat().st_size <= digests.RECORD * (digests.MOST + 1)
    assert set(entries[-1000:]) <= digests.remembered()
    assert hashed(file, monkeypatch)
    assert not hashed(file, monkeypatch)


def remember_many(seed: int) -> None:
    for i in range(50):
        digests.remember([hashlib.sha256(f"{seed} {i}".encode()).digest()])


def test_processes_add_to_it_at_once(file: Path) -> None:
    del file
    with multiprocessing.get_context("fork").Pool(4) as pool:
        pool.map(remember_many, range(4))
    assert len(digests.remembered()) == 200
