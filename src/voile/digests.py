"""Digests of files that were checked, remembered so that a large file is hashed once.

What is remembered is that a file, by its device, inode, size and times in nanoseconds, had a
certain SHA-256. It lies in the user's cache folder (`voile/checked` in `$XDG_CACHE_HOME`, else in
`~/.cache`), readable by the user alone, 32 bytes for each file. A memory that is broken, too large
or that others could have written is ignored: everything is hashed again then.
"""

from __future__ import annotations

import hashlib
import os
import stat
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

from voile.files import open_regular
from voile.system import here as system

HEADER = b"voile checked files, version 1\n\n"
RECORD = 32
"""Bytes of an entry, and of the header."""
MOST = 4096
"""Entries that are kept; the older half goes when there are more."""
SETTLED_NS = 2 * 10**9
"""A file that was changed less than this ago may change again without its times showing it."""


def changed(
    files: Iterable[tuple[Path, str]],
    look: Callable[[Path], object] = lambda _: None,
    *,
    trust: bool = True,
) -> list[Path]:
    """Those of the files that do not have the SHA-256 beside them.

    `look` is called with each file that is hashed and does: it may raise, and then nothing is
    remembered. Without `trust` everything is hashed, and what was found is remembered.
    """
    known = remembered() if trust else frozenset()
    wrong, sound = [], []
    for path, expected in files:
        with open_regular(path) as file:
            before = os.fstat(file.fileno())
            entry = entry_of(before, expected)
            if entry in known:
                continue
            if hashlib.file_digest(file, "sha256").hexdigest() != expected:
                wrong.append(path)
                continue
            look(path)
            if entry_of(os.fstat(file.fileno()), expected) == entry and is_settled(before):
                sound.append(entry)
    remember(sound)
    return wrong


def entry_of(state: os.stat_result, expected: str) -> bytes:
    """By what a file is known to be the one that was hashed."""
    seen = (state.st_dev, state.st_ino, state.st_size, state.st_mtime_ns, state.st_ctime_ns)
    return hashlib.sha256(f"{seen} {expected}".encode()).digest()


def is_settled(state: os.stat_result) -> bool:
    """Whether a change from now on would show in the file's times."""
    return time.time_ns() - max(state.st_mtime_ns, state.st_ctime_ns) > SETTLED_NS


def cache_file() -> Path:
    """Where it is remembered."""
    home = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if not home.is_absolute():
        home = system.cache_folder(Path.home())
    return home / "voile" / "checked"


def remembered() -> frozenset[bytes]:
    """All entries; none where they cannot be read or trusted."""
    try:
        with open_regular(cache_file()) as file:
            content = file.read(RECORD * (2 * MOST + 2))
            return frozenset(entries_in(content, os.fstat(file.fileno())))
    except (OSError, RuntimeError, ValueError):  # there is none, or no home
        return frozenset()


def entries_in(content: bytes, state: os.stat_result) -> list[bytes]:
    """The entries of a memory, in their order; none where it is not one of ours."""
    private = system.is_ours(state) and system.is_private(state)
    if not private or not content.startswith(HEADER):
        return []
    if len(content) % RECORD or len(content) > RECORD * (2 * MOST + 1):
        return []
    return [content[at : at + RECORD] for at in range(RECORD, len(content), RECORD)]


def remember(entries: list[bytes]) -> None:
    """Add entries; where that fails they are not remembered, and nothing else is lost."""
    if not entries or not system.CHANGES_SHOW:
        return
    with suppress(OSError, RuntimeError, ValueError):
        path = cache_file()
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with os.fdopen(system.open_file(path, create=True, follow=False), "r+b") as file:
            system.lock(file.fileno(), wait=True)
            state = os.fstat(file.fileno())
            if not stat.S_ISREG(state.st_mode) or not system.is_ours(state):
                return
            system.set_rights(file.fileno(), 0o600)
            append(file.fileno(), entries, state)


def append(handle: int, entries: list[bytes], state: os.stat_result) -> None:
    """Write entries behind those that are there, of which the older half goes if they are many.

    Who reads meanwhile sees a part of the entries at worst, or ignores all of them.
    """
    content = system.read_at(handle, RECORD * (2 * MOST + 2), 0)
    held = entries_in(content, state)
    known = set(held)
    new = [entry for entry in entries if entry not in known][-MOST:]
    if held and len(held) + len(new) <= MOST:
        system.write_at(handle, b"".join(new), RECORD * (len(held) + 1))
        return
    kept = [*held[-(MOST // 2) :], *new][-MOST:]
    os.ftruncate(handle, 0)
    system.write_at(handle, HEADER + b"".join(kept), 0)
