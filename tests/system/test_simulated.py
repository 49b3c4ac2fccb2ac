"""Commands where the system is as Windows: simulated here, on another system, in one process.

What the simulation changes, and what it cannot show, is in docs/reference/systems.md.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.windows import run_changed

if not Path("/proc/self/fd").is_dir():
    pytest.skip("the simulation sees in /proc which files are open", allow_module_level=True)

SCRIPT = r"""
import asyncio, json, signal, sys, threading
from pathlib import Path

from tests.support.running import voile
from voile.system import here as system
from voile.journal import Journal
from voile.serve.setting import Setting
from voile.serve.worker import Refused
from voile.serve.workers import Worker, unpickled

rows = "".join(f"{i},{'fm'[i % 2]},{('Paris', 'Rome', 'Oslo')[i % 3]}\n" for i in range(600))
for name in ("people.csv", "C:\\people.csv"):
    Path(name).write_text("id,sex,city\n" + rows)
found = {"lock": system.lock.__module__, "hangup": hasattr(signal, "SIGHUP")}
mondrian = ("--method", "mondrian", "--k", "5", "--qi", "sex", "--sensitive", "city",
            "--identifiers", "id")
COUNT = "select city, count(*) as people from people group by city"
runs = {
    "help": ("--help",),
    "inspect": ("inspect", "C:\\people.csv", "--json"),
    "missing": ("inspect", "D:\\missing.csv"),
    "classes": ("publish", "C:\\people.csv", *mondrian, "-o", "p.voile"),
    "again": ("publish", "people.csv", *mondrian, "-o", "p.voile", "--overwrite"),
    "device": ("publish", "people.csv", *mondrian, "-o", "aux.voile"),
    "sign in name": ("publish", "people.csv", *mondrian, "-o", "what?.voile"),
    "perturb": ("perturb", "people.csv", "--retention", "0.5", "--columns", "sex,city",
                "-o", "q.voile"),
    "keygen": ("keygen", "me.key"),
    "sign": ("sign", "p.voile", "me.key"),
    "register": ("register", "--json"),
    "server": ("serve", "init", "srv", "--table", "people.csv", "--queries", "10",
               "--delta", "1", "--columns", "sex,city"),
    "token": ("serve", "token", "srv", "--analyst", "ann", "--queries", "5", "-o", "ann.token"),
    "status": ("serve", "status", "srv", "--json"),
}
for name in ("p", "q"):
    runs |= {
        f"verify {name}": ("verify", f"{name}.voile", "--json"),
        f"describe {name}": ("describe", f"{name}.voile"),
        f"query {name}": ("query", f"{name}.voile", COUNT, "--json"),
    }
runs["query to device"] = ("query", "p.voile", COUNT, "-o", "nul.csv")
runs["query to file"] = ("query", "p.voile", COUNT, "-o", "answers.csv")
for name, arguments in runs.items():
    done = voile(*arguments)
    found[name] = {"code": done.returncode, "out": done.stdout, "err": done.stderr}

# A process that tries questions gets its socket through its standard input.
worker = Worker(Setting.open(Path("srv")))
worker.wait_until_ready()
asked = "select count(*) from people where sex = 'f'"
found["worker"] = type(unpickled(asyncio.run(
    worker.ask(json.dumps([asked, "all"]).encode())))).__name__
found["refused"] = isinstance(unpickled(asyncio.run(
    worker.ask(json.dumps(["select nothing", "all"]).encode()))), Refused)
worker.give_way()
worker.close()

# Locks: one journal at a time, and what is kept is read again.
with Journal(Path("kept") / "journal", "digest") as kept:
    kept.keep("one", 1)
    try:
        with Journal(Path("kept") / "journal", "digest"):
            found["second journal"] = "begun"
    except Exception as error:
        found["second journal"] = error.message
with Journal(Path("kept") / "journal", "digest") as kept:
    found["kept"] = kept.known

# Signals: the loop has no handlers of its own there.
async def until_stopped():
    stopped = asyncio.Event()
    before = signal.getsignal(signal.SIGTERM)
    with system.handling_endings(asyncio.get_running_loop(), stopped.set):
        threading.Thread(target=system.end_this_process).start()
        while not stopped.is_set():
            await asyncio.sleep(0.01)
    return signal.getsignal(signal.SIGTERM) == before
found["stopped"] = asyncio.run(until_stopped())
found["left open"] = sorted(path.name for path in Path().glob(".*"))
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What came of everything, each in its turn."""
    place = tmp_path_factory.mktemp("windows")
    done = run_changed(SCRIPT, place)
    assert done.returncode == 0, done.stderr
    made: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return made | {"place": place}


def test_the_process_is_changed(found: dict[str, Any]) -> None:
    assert found["lock"] == "voile.system.windows"
    assert not found["hangup"]


@pytest.mark.parametrize(
    "name",
    [
        "help", "inspect", "classes", "again", "perturb", "keygen", "sign", "register", "server",
        "token", "status", "verify p", "describe p", "query p", "verify q", "describe q",
        "query q", "query to file",
    ],
)  # fmt: skip
def test_commands_do_their_work(found: dict[str, Any], name: str) -> None:
    assert found[name]["code"] == 0, found[name]["err"]
    assert found[name]["out"] or name in {"token", "query to file"}


def test_a_drive_is_no_address(found: dict[str, Any]) -> None:
    assert json.loads(found["inspect"]["out"])["rows"] == 600
    assert found["missing"]["code"] == 2
    assert "D:\\missing.csv" in found["missing"]["err"]
    assert "://" not in found["missing"]["err"]


@pytest.mark.parametrize("name", ["device", "sign in name", "query to device"])
def test_places_that_windows_lacks_are_refused_by_name(found: dict[str, Any], name: str) -> None:
    assert found[name]["code"] == 2
    assert "cannot be written on this system" in found[name]["err"]


def test_a_release_has_the_same_words_as_elsewhere(found: dict[str, Any]) -> None:
    """No line ends of another kind: digests are of bytes."""
    place: Path = found["place"]
    for file in ("manifest.json", "README.md", "datapackage.json", "signature.json"):
        assert b"\r" not in (place / "p.voile" / file).read_bytes()
    counted = json.loads(found["query p"]["out"])
    assert len(counted["rows"]) == 3
    assert json.loads(found["verify p"]["out"])["signatures"]


def test_what_leaves_is_in_the_register_of_the_users_own_folder(found: dict[str, Any]) -> None:
    place: Path = found["place"]
    assert (place / "local" / "voile" / "register.db").is_file()
    assert not (place / ".local").exists()
    assert "q.voile" in found["register"]["out"]


def test_questions_are_tried_in_another_process(found: dict[str, Any]) -> None:
    assert found["worker"] == "Question"
    assert found["refused"]


def test_one_program_at_a_time_has_a_file(found: dict[str, Any]) -> None:
    assert "another run writes" in found["second journal"]
    assert found["kept"] == {"one": 1}


def test_signals_stop_a_server(found: dict[str, Any]) -> None:
    assert found["stopped"]


def test_nothing_is_left_behind(found: dict[str, Any]) -> None:
    assert [name for name in found["left open"] if ".partial" in name or ".replaced" in name] == []
