"""Apache Spark on this machine: a Connect server, and two executors in processes of their own.

`make spark` fetches it; it needs Java 17. All processes of a server are one session of the
operating system's, whose leader is a guard: it ends them when nobody holds the lock of users any
more, so that a server does not outlive tests that were killed.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, TextIO

from tests.support.paths import ROOT

HOME = ROOT / ".spark"
EXECUTORS = 2
OLDEST_JAVA = 17
LONGEST = 300
"""Seconds that a server may take to start."""

STARTED = re.compile(r"Spark Connect server started at: \S*:(\d+)")
PAGE = re.compile(r"Bound SparkUI to \S+, and started at \S*?:(\d+)|'SparkUI' on port (\d+)")


@dataclass(frozen=True)
class ApacheSpark:
    """A server that runs, and this process's hold on it."""

    folder: Path
    session: int
    address: str
    ui: str
    held: TextIO

    @staticmethod
    def available() -> bool:
        return missing() is None

    @property
    def events(self) -> Path:
        """What Spark records of its jobs: one file, a line of JSON for each event."""
        return self.folder / "events"

    def recorded(self, kind: str) -> list[dict[str, Any]]:
        """The events of a kind that are recorded so far."""
        found = []
        for file in self.events.rglob("*"):
            if file.is_file():
                for line in read_bytes(file).splitlines():
                    with suppress(ValueError):  # the last line may be half written
                        event = json.loads(line)
                        if event["Event"] == f"SparkListener{kind}":
                            found.append(event)
        return found

    @property
    def log(self) -> str:
        return read_log(self.folder)

    @classmethod
    def start(
        cls,
        folder: Path,
        settings: Mapping[str, object] | None = None,
        *,
        hosts: Sequence[str] = (),
    ) -> ApacheSpark:
        """A server whose files are all below this new folder; it may have further settings.

        With `hosts`, addresses of this machine, each has an executor: to Spark these are machines.
        """
        for name in ("events", "logs", "local", "temporary", "home"):
            (folder / name).mkdir(parents=True)
        # Executors write into Spark's home, so that each server has a home of links.
        for part in ("bin", "sbin", "jars", "python"):
            (folder / "home" / part).symlink_to(HOME / part)
        held = (folder / "users").open("w")
        fcntl.flock(held, fcntl.LOCK_SH)
        with (folder / "server.log").open("w") as log:
            guard = [sys.executable, "-m", "tests.spark.cluster", str(folder)]
            begun = subprocess.run(
                [*guard, *command(folder, settings or {}, hosts)],
                cwd=ROOT,
                env=environment(folder),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                check=False,
            )
        assert begun.returncode == 0, read_log(folder)
        session = int(await_text(folder / "session", str.strip))
        try:
            port = await_text(folder / "server.log", lambda text: first(STARTED, text), session)
            page = first(PAGE, read_log(folder))
            assert page, read_log(folder)
        except BaseException:
            end_session(session)
            held.close()
            raise
        spark = cls(folder, session, f"sc://127.0.0.1:{port}", f"http://127.0.0.1:{page}", held)
        said = {"session": session, "address": spark.address, "ui": spark.ui}
        (folder / "server.json").write_text(json.dumps(said))
        return spark

    @classmethod
    def join(cls, folder: Path) -> ApacheSpark | None:
        """The server that another process started there, unless it ended."""
        held = (folder / "users").open("w")
        try:
            fcntl.flock(held, fcntl.LOCK_SH | fcntl.LOCK_NB)
            said = json.loads((folder / "server.json").read_text())
        except (BlockingIOError, FileNotFoundError):
            held.close()
            return None
        if not members(said["session"]):
            held.close()
            return None
        return cls(folder, held=held, **said)

    def executors(self) -> list[int]:
        """The processes of the executors: JVMs, which in turn start those of Python."""
        return [
            pid
            for pid in members(self.session)
            if b"CoarseGrainedExecutorBackend" in read_bytes(Path(f"/proc/{pid}/cmdline"))
        ]

    def await_executors(self) -> None:
        """Spark starts another one for each that dies."""
        until = time.monotonic() + LONGEST
        while len(self.executors()) < EXECUTORS:
            assert time.monotonic() < until, self.log[-5000:]
            time.sleep(0.1)

    def kill_executor(self) -> int:
        """Kill one, as a machine that fails does; which it was."""
        pid = self.executors()[0]
        os.kill(pid, signal.SIGKILL)
        while pid in members(self.session):
            time.sleep(0.01)
        return pid

    def stop(self) -> None:
        """End all processes, whoever else uses them."""
        end_session(self.session)
        self.held.close()

    def leave(self) -> None:
        """Stop it if nobody else uses it."""
        try:
            fcntl.flock(self.held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self.held.close()
        else:
            self.stop()


@contextmanager
def shared(place: Path) -> Iterator[ApacheSpark]:
    """One server for all who name this folder: the first starts it, and the last stops it."""
    place.mkdir(exist_ok=True)
    with turn(place / "turn"):
        running = filter(None, map(ApacheSpark.join, place.glob("server-*")))
        spark = next(running, None) or ApacheSpark.start(
            Path(tempfile.mkdtemp(prefix="server-", dir=place))
        )
    try:
        yield spark
    finally:
        with turn(place / "turn"):
            spark.leave()


@contextmanager
def turn(file: Path) -> Iterator[None]:
    """One process at a time."""
    with file.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@cache
def missing() -> str | None:
    """Why there is no Apache Spark here, or None if there is."""
    if not Path("/proc/self/stat").exists():
        return "processes are watched in /proc, which is not there"
    home = os.environ.get("JAVA_HOME")
    java = f"{home}/bin/java" if home else shutil.which("java")
    if java is None or not Path(java).exists():
        return "Java is not installed"
    told = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    version = first(re.compile(r'version "(\d+)'), told)
    if int(version or 0) < OLDEST_JAVA:
        return f"Spark needs Java {OLDEST_JAVA}, and this is {version or told!r}"
    if not (HOME / ".ready").exists():
        return "there is no Apache Spark in .spark/: `make spark` fetches it"
    return None


def command(folder: Path, more: Mapping[str, object], hosts: Sequence[str]) -> list[str]:
    settings: dict[str, object] = {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": 0,
        "spark.ui.port": 0,
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": (folder / "events").as_uri(),
        "spark.eventLog.compress": "false",
        "spark.eventLog.rolling.enabled": "false",
        "spark.local.dir": folder / "local",
        "spark.sql.warehouse.dir": (folder / "warehouse").as_uri(),
        "spark.driver.extraJavaOptions": f"-Djava.io.tmpdir={folder / 'temporary'}",
        "spark.executor.extraJavaOptions": f"-Djava.io.tmpdir={folder / 'temporary'}",
        # The first job, too, finds all executors.
        "spark.scheduler.minRegisteredResourcesRatio": "1.0",
        **more,
    }
    script = str(folder / "home" / "sbin" / "start-connect-server.sh")
    given = [f"--conf={name}={value}" for name, value in settings.items()]
    if hosts:
        return ["bash", "-c", on_hosts(folder, hosts, shlex.join(["bash", script, *given]))]
    return ["bash", script, "--master", f"local-cluster[{EXECUTORS},1,1024]", *given]


def on_hosts(folder: Path, hosts: Sequence[str], server: str) -> str:
    """A script that starts a cluster with a worker on each host, and a server that uses it."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    run = shlex.quote(str(folder / "home" / "bin" / "spark-class"))
    master = f"spark://127.0.0.1:{port}"
    lines = [f"bash {run} org.apache.spark.deploy.master.Master --host 127.0.0.1 --port {port} "
             "--webui-port 0 &"]  # fmt: skip
    for host in hosts:
        work = shlex.quote(str(folder / f"work-{host}"))
        lines.append(
            f"SPARK_LOCAL_IP={host} bash {run} org.apache.spark.deploy.worker.Worker --host {host} "
            f"--cores 1 --memory 1g --webui-port 0 --work-dir {work} {master} &"
        )
    return "\n".join([*lines, f"{server} --master {master}"])


def environment(folder: Path) -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("SPARK_", "PYSPARK_"))}
    return kept | {
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_HOME": str(folder / "home"),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_LOG_DIR": str(folder / "logs"),
        "SPARK_NO_DAEMONIZE": "1",
        "SPARK_PID_DIR": str(folder / "logs"),
    }


def await_text(file: Path, read: Callable[[str], str | None], session: int | None = None) -> str:
    """What is read off the file as soon as it is there."""
    until = time.monotonic() + LONGEST
    while True:
        alive = session is None or members(session)
        text = read_bytes(file).decode(errors="replace")
        if found := read(text):
            return found
        if not alive or time.monotonic() > until:
            raise AssertionError(f"Apache Spark did not start: {text[-5000:]}")
        time.sleep(0.1)


def first(pattern: re.Pattern[str], text: str) -> str | None:
    found = pattern.search(text)
    return next(filter(None, found.groups())) if found else None


def end_client(address: str) -> None:
    """End this process's session of a server that is about to go: Spark's client would wait."""
    from voile.engines.spark import session

    if (known := session._KNOWN.pop(address, None)) is not None:
        known.session.stop()


def read_log(folder: Path) -> str:
    return read_bytes(folder / "server.log").decode(errors="replace")


def read_bytes(file: Path) -> bytes:
    """Nothing, if the file or the process is not there."""
    try:
        return file.read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return b""


def members(session: int) -> list[int]:
    """The living processes of a session."""
    found = []
    for file in Path("/proc").glob("[0-9]*/stat"):
        fields = read_bytes(file).rpartition(b")")[2].split()  # state, parent, group, session, …
        if fields and int(fields[3]) == session and fields[0] not in (b"Z", b"X"):
            found.append(int(file.parent.name))
    return sorted(found)


def end_session(session: int) -> None:
    """Its leader last: as long as it lives, the number is nobody else's."""
    while others := [pid for pid in members(session) if pid != session]:
        for pid in others:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.02)
    with suppress(ProcessLookupError):
        os.kill(session, signal.SIGKILL)


def guard(folder: Path, server: Sequence[str]) -> None:
    """Lead a session, run the server in it, and end it when the last user has gone."""
    if os.fork():
        os._exit(0)
    os.setsid()
    process = subprocess.Popen(server, cwd=folder)
    with (folder / "users").open("w") as users:
        (folder / "session").write_text(str(os.getpid()))
        while process.poll() is None:
            time.sleep(0.5)
            with suppress(BlockingIOError):
                fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
                end_session(os.getpid())
    end_session(os.getpid())


if __name__ == "__main__":
    guard(Path(sys.argv[1]), sys.argv[2:])
