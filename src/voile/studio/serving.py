"""Servers that the studio runs: each in a process of its own, which ends with the studio."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from dataclasses import dataclass
from pathlib import Path

from voile.errors import UsageError, VoileError
from voile.system import here as system

PATIENCE = 60
"""Seconds that a server has to open its table and its ledger."""


@dataclass(eq=False)
class RunningServer:
    """A server, and where analysts reach it from this machine."""

    url: str
    process: subprocess.Popen[str]

    @property
    def alive(self) -> bool:
        """Whether it still answers."""
        return self.process.poll() is None


class Servers:
    """The servers that this studio has started, by their folder."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: dict[Path, RunningServer] = {}

    def get(self, folder: Path) -> RunningServer | None:
        """The server of a folder, as long as it runs."""
        found = self._running.get(folder)
        return found if found is not None and found.alive else None

    def start(self, folder: Path) -> RunningServer:
        """Run the server of a folder on a free port of this machine."""
        with self._lock:
            if (known := self.get(folder)) is not None:
                return known
            process = subprocess.Popen(  # noqa: S603  (our own program, and a folder of the studio)
                [sys.executable, "-P", "-m", "voile.studio.serving", str(folder)],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8",
            )  # fmt: skip
            said = first_line(process)
            if "url" not in said:
                stop(process)
                raise UsageError(
                    said.get("error", "the server did not start"),
                    hint=said.get("hint", f"try `voile serve run {folder.name}` in a terminal"),
                )
            found = RunningServer(said["url"], process)
            self._running[folder] = found
            return found

    def stop(self, folder: Path) -> None:
        """End the server of a folder; what it answered is in its ledger."""
        with self._lock:
            found = self._running.pop(folder, None)
        if found is not None:
            stop(found.process)

    def close(self) -> None:
        """End all of them."""
        for folder in list(self._running):
            self.stop(folder)


def first_line(process: subprocess.Popen[str]) -> dict[str, str]:
    """What a server says once it is ready, or why it is not; nothing if it takes too long."""
    assert process.stdout is not None  # noqa: S101  (a pipe was asked for)
    late = threading.Timer(PATIENCE, process.kill)
    late.start()
    try:
        return dict(json.loads(process.stdout.readline() or "{}"))
    except ValueError:
        return {}
    finally:
        late.cancel()


def stop(process: subprocess.Popen[str]) -> None:
    """End a server gently, then for certain."""
    process.terminate()
    try:
        process.wait(timeout=5)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            pipe.close()


# ---------------------------------------------------------------------- in the process itself


def main() -> None:
    """Answer as `voile serve run` does, until a signal comes or the studio is gone."""
    from voile.serve import serve  # noqa: PLC0415  (only in this process)
    from voile.web.limits import Rate  # noqa: PLC0415
    from voile.web.server import Address, WebOptions  # noqa: PLC0415

    threading.Thread(target=end_with_studio, daemon=True).start()
    how = WebOptions(Address.of("127.0.0.1", 0), Rate.read("50/s", 200))
    try:
        serve(Path(sys.argv[1]), how, ready=lambda found: say(url=found.url), note=lambda _: None)
    except VoileError as error:
        say(error=error.message, hint=error.hint)


def say(**words: str) -> None:
    """One line for the studio."""
    sys.stdout.write(json.dumps(words) + "\n")
    sys.stdout.flush()


def end_with_studio() -> None:
    """The studio keeps our standard input open as long as it lives."""
    sys.stdin.read()
    system.end_this_process()


if __name__ == "__main__":
    main()
