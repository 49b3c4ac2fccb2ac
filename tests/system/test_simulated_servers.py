"""Commands that listen, write for other programs or read their files, where the system is Windows.

Simulated, as in `test_simulated.py`; a process of its own, since it takes seconds to change one.
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
import importlib.util, json, os, signal, sys, threading, time, urllib.request
from pathlib import Path

from tests.support.make_vectors import PERSON, SURVEY
from tests.support.running import voile
from tests.support.wire import ByteClient, query, rows_of
from voile.client import fetch_spec, send

found = {}
rows = "".join(f"{i},{'fm'[i % 2]},{('Paris', 'Rome', 'Oslo')[i % 3]}\n" for i in range(600))
Path("people.csv").write_text("id,sex,city\n" + rows)
Path("spec.json").write_bytes(json.dumps(SURVEY).encode())


def ran(name, *arguments):
    print("begins:", name, file=sys.__stderr__, flush=True)  # where a process ends that should not
    done = voile(*arguments)
    found[name] = {"code": done.returncode, "out": done.stdout, "err": done.stderr}
    return done


def written():
    # What the command has printed: nothing before its own stream is in place.
    return getattr(sys.stdout.buffer, "getvalue", bytes)()


def listening(name, ask, *arguments):
    # The command runs in the main thread, where signals come; another one asks it and ends it.
    heard, over = {}, threading.Event()

    def work():
        try:
            until = time.monotonic() + 180
            while not (said := written()).endswith(b"\n"):
                assert time.monotonic() < until and not over.wait(0.01)
            heard["answer"] = ask(json.loads(said))
        except Exception as error:
            heard["error"] = repr(error)
        if not over.is_set():
            os.kill(os.getpid(), signal.SIGBREAK)

    thread = threading.Thread(target=work)
    thread.start()
    ran(name, *arguments, "--json")
    over.set()
    thread.join()
    found[name] |= heard


def fetched(url, data=None, **headers):
    request = urllib.request.Request(url, data, headers)
    with urllib.request.urlopen(request, timeout=120) as response:
        return response.read().decode()


ran("classes", "publish", "people.csv", "--method", "mondrian", "--k", "5", "--qi", "sex",
    "--sensitive", "city", "--identifiers", "id", "-o", "p.voile")
ran("server", "serve", "init", "srv", "--table", "people.csv", "--queries", "10", "--delta", "1",
    "--columns", "sex,city")
token = ran("token", "serve", "token", "srv", "--analyst", "ann", "--queries", "5").stdout.strip()
ASKED = "select sex, count(*) as n from people group by sex order by sex"


def ask_server(said):
    body = json.dumps({"sql": ASKED}).encode()
    given = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    by_http = json.loads(fetched(said["url"] + "/query", body, **given))
    ByteClient(said["wire"], start=False).socket.close()
    return [row["n"]["estimate"] for row in by_http["rows"]]


def ask_wire(said):
    with ByteClient(said["port"]) as client:
        (answer,) = rows_of(client.ask(query("select count(*) from people")))
    return float(answer[0])


def ask_collector(said):
    send(said["url"], [PERSON] * 20, fetch_spec(said["url"]), public=["born"])


listening("serve run", ask_server, "serve", "run", "srv", "--port", "0", "--wire", "0",
          "--workers", "2")
listening("collect", ask_collector, "collect", "--spec", "spec.json", "--store", "store",
          "--listen", "127.0.0.1:0")
listening("wire", ask_wire, "wire", "p.voile", "--port", "0", "--trust")
if all(map(importlib.util.find_spec, ("jinja2", "altair"))):  # an extra that not every job has
    listening("studio", lambda said: "<html" in fetched(said["url"]), "studio", "--no-browser")
ran("collected", "collect", "--store", "store", "--release", "c.voile", "--json")
ran("collected is whole", "verify", "c.voile", "--json")

for ending in ("csv", "parquet", "sql"):
    ran(f"export {ending}", "export", "p.voile", "-o", f"p.{ending}", "--json")
for name in ("croissant.json", "ddi.xml"):
    ran(f"export {name}", "export", "p.voile", "-o", name, "--json")
ran("export to device", "export", "p.voile", "-o", "aux.csv")
if importlib.util.find_spec("pyreadstat"):  # an extra that not every job has
    ran("export dta", "export", "p.voile", "-o", "p.dta", "--json")
    ran("read dta", "inspect", "p.dta", "--json")
if importlib.util.find_spec("openpyxl"):
    import openpyxl

    book = openpyxl.Workbook()
    for line in Path("people.csv").read_text().splitlines():
        book.active.append(line.split(","))
    book.save("C:\\people.xlsx")
    ran("read xlsx", "inspect", "C:\\people.xlsx", "--json")
    Path("bad.xlsx").write_bytes(b"PK\3\4 and no more")
    ran("read bad xlsx", "inspect", "bad.xlsx", "--json")
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


def of(found: dict[str, Any], name: str) -> dict[str, Any]:
    if name not in found:
        pytest.skip("it needs packages that are not installed")
    done: dict[str, Any] = found[name]
    return done


@pytest.mark.parametrize("name", ["serve run", "collect", "wire", "studio"])
def test_what_listens_answers_and_ends_at_ctrl_break(found: dict[str, Any], name: str) -> None:
    done = of(found, name)
    assert "error" not in done, done
    assert done["code"] == 0, done["err"]
    assert len(done["out"].splitlines()) == 1, "the line that says where"
    assert "Traceback" not in done["err"]


def test_answers_are_those_of_the_table(found: dict[str, Any]) -> None:
    assert found["wire"]["answer"] == 600
    # 15 a standard error: a false alarm in 10⁻⁹ of runs.
    assert all(abs(count - 300) < 100 for count in found["serve run"]["answer"])
    assert "answers in the ledger of srv: 1" in found["serve run"]["err"]


def test_the_studio_shows_a_page(found: dict[str, Any]) -> None:
    assert of(found, "studio")["answer"] is True


def test_what_was_collected_is_released(found: dict[str, Any]) -> None:
    assert "store has 20 rows" in found["collect"]["err"]
    assert json.loads(found["collected"]["out"])["rows"] == 20
    assert json.loads(found["collected is whole"]["out"])["ok"]


@pytest.mark.parametrize("name", ["csv", "parquet", "sql", "dta", "croissant.json", "ddi.xml"])
def test_releases_are_written_for_other_programs(found: dict[str, Any], name: str) -> None:
    done = of(found, f"export {name}")
    assert done["code"] == 0, done["err"]
    (path,) = json.loads(done["out"])["paths"]
    content = (found["place"] / path).read_bytes()
    assert content
    if name in ("sql", "croissant.json", "ddi.xml"):
        assert b"\r" not in content


def test_devices_are_not_written(found: dict[str, Any]) -> None:
    assert found["export to device"]["code"] == 2
    assert "cannot be written on this system" in found["export to device"]["err"]


@pytest.mark.parametrize("name", ["dta", "xlsx"])
def test_files_of_other_programs_are_read_by_a_process(found: dict[str, Any], name: str) -> None:
    done = of(found, f"read {name}")
    assert done["code"] == 0, done["err"]
    assert json.loads(done["out"])["rows"] == 600


def test_a_file_that_is_broken_is_refused(found: dict[str, Any]) -> None:
    done = of(found, "read bad xlsx")
    assert done["code"] == 1
    assert "bad.xlsx" in done["err"] and "hint:" in done["err"]


def test_nothing_is_left_behind(found: dict[str, Any]) -> None:
    assert found["left open"] == []
