"""Installs the wheel into fresh environments, and uses what each of them has.

    python tools/try_install.py                                   # this Python: core and publish
    python tools/try_install.py --python 3.12 /opt/python3.13/bin/python --extras core server

`publish` makes a release of every kind; `core` then verifies, describes and queries each of them
with nothing but the core's packages. It prints what each environment weighs and how much processor
time the program takes to start. Nothing is left behind.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TABLE = "dataset:adult/frontier"
COUNT = "select sex, count(*) as people from adult group by sex"
OTHERS = "age,workclass,education,marital_status"
SMALL = (TABLE, "--columns", "sex,race")
PUBLISHED: dict[str, tuple[str, ...]] = {
    "views": ("publish", *SMALL, "--method", "alphabeta", "--epsilon", "1"),
    "marginals": ("publish", *SMALL, "--method", "marginals", "--epsilon", "2"),
    "counts": ("publish", *SMALL, "--method", "conjuncts", "--arity", "1"),
    "classes": ("publish", TABLE, "--method", "mondrian", "--k", "10",
                "--qi", "sex,race", "--sensitive", "occupation", "--identifiers", OTHERS),
    "buckets": ("publish", TABLE, "--method", "anatomy", "--l", "4",
                "--qi", "sex,race", "--sensitive", "occupation", "--identifiers", OTHERS),
    "perturbed": ("perturb", *SMALL, "--retention", "0.5"),
}  # fmt: skip
"""A command for each kind of release."""
OWN = ("perturb", *SMALL, "--retention", "0.9", "-o", "own.voile")
"""A release that the core makes."""
SELECT = f"""
import sqlalchemy as sa
with sa.create_engine("voile:///own.voile").connect() as connection:
    assert len(connection.execute(sa.text({COUNT!r})).all()) == 2
"""
STEWARDS = ("scipy", "numba", "llvmlite", "altair", "vl_convert", "fastapi", "sklearn", "pyspark")
"""Packages that the core does without."""
EXTRA_COMMANDS: dict[str, list[tuple[str, ...]]] = {
    "core": [
        ("--help",), ("datasets",), ("inspect", TABLE), ("register",),
        ("keygen", "me.key"), OWN,
        ("sign", "own.voile", "me.key"), ("verify", "own.voile"), ("query", "own.voile", COUNT),
    ],
    "publish": [
        ("plan", *SMALL, "-o", "plan.html"), ("risk", TABLE, "--qi", "sex,race"),
    ],
    "plots": [("query", "{classes}", COUNT)],
    "server": [
        ("serve", "init", "counts", "--table", TABLE, "--queries", "5", "--delta", "1"),
        ("serve", "token", "counts", "--analyst", "iris", "--queries", "5", "-o", "iris.token"),
        ("serve", "status", "counts"),
    ],
    "studio": [("studio", "--help")],
    "mining": [("rules", "{perturbed}", "--columns", "sex,race")],
    "dp": [("serve", "init", "counts", "--table", TABLE, "--queries", "5",
            "--delta", "1", "--noise", "gaussian")],
    "files": [OWN, ("export", "own.voile", "-o", "own.dta"), ("inspect", "own.dta")],
    "sqlalchemy": [OWN, ("python", "-c", SELECT)],
    "spark": [OWN, ("export", "own.voile", "-o", "own.parquet"),
              ("inspect", "own.parquet", "--spark", "local")],
}  # fmt: skip
"""What an environment of this extra must do; {kind} is a release of that kind."""
NOBODY = "postgresql://me@127.0.0.1:1/none"
UNREACHED = {
    "postgres": [("register", "--register", NOBODY), ("inspect", f"{NOBODY}::people")],
}
"""What comes as far as a server that does not answer: psycopg asks, and then ADBC."""
WITH = {"dp": "server,dp", "plots": "plots"}
"""Extras that are of use beside others only."""
BESIDE = {"spark": ["pysail"]}
"""What an extra is tried with: a server of Spark Connect without Java."""
LACKING = ("publish", *SMALL, "-o", "none.voile")
"""What the core refuses, with what to install."""


@dataclass
class Found:
    """What one environment came to."""

    python: str
    extra: str
    megabytes: int
    start_seconds: float
    query_seconds: float | None
    done: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)


class Environment:
    """A fresh virtual environment with the wheel and one extra, and a folder to work in."""

    def __init__(self, python: str, wheel: Path, extra: str, place: Path) -> None:
        self.python, self.extra = python, extra
        self.folder = place / f"environment-{extra}"
        self.work = place / f"work-{extra}"
        self.work.mkdir()
        run([python, "-m", "venv", str(self.folder)])
        scripts = self.folder / ("Scripts" if os.name == "nt" else "bin")
        self.interpreter = str(scripts / ("python.exe" if os.name == "nt" else "python"))
        self.program = str(scripts / ("voile.exe" if os.name == "nt" else "voile"))
        extras = "" if extra == "core" else f"[{WITH.get(extra, extra)}]"
        run([self.interpreter, "-m", "pip", "install", "--quiet", "--no-compile",
             f"voile{extras} @ {wheel.as_uri()}", *BESIDE.get(extra, [])])  # fmt: skip

    def voile(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a command, or Python, with a register of its own."""
        own = ("PYTHONPATH", "PYTHONDONTWRITEBYTECODE")  # a second start has compiled modules
        clean = {name: value for name, value in os.environ.items() if name not in own}
        called = [self.interpreter] if arguments[0] == "python" else [self.program, arguments[0]]
        return subprocess.run(
            [*called, *arguments[1:]], cwd=self.work, check=False, capture_output=True,
            text=True, encoding="utf-8",
            env=clean | {"VOILE_REGISTER": str(self.work / "register.db")},
        )  # fmt: skip

    def packages(self) -> Path:
        """Where its packages are."""
        script = "import sysconfig; print(sysconfig.get_paths()['purelib'])"
        return Path(run([self.interpreter, "-c", script]).strip())

    def megabytes(self) -> int:
        """All that was installed, without pip and what it brings; before anything was compiled."""
        tools = ("pip", "setuptools", "pkg_resources", "_distutils_hack")
        files = (file for file in self.packages().rglob("*") if file.is_file())
        home = self.packages()
        return round(sum(
            file.stat().st_size for file in files
            if not file.relative_to(home).parts[0].startswith(tools)
        ) / 1e6)  # fmt: skip

    def seconds(self, *arguments: str) -> float:
        """Processor time of a command: the least of three, since others are at work."""
        times = []
        for _ in range(3):
            before = os.times()
            self.voile(*arguments)
            after = os.times()
            times.append(after.children_user - before.children_user
                         + after.children_system - before.children_system)  # fmt: skip
        return round(min(times), 2)


def run(command: Sequence[str]) -> str:
    """Run a program that must succeed; what it said."""
    done = subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
    return done.stdout


def tried(
    environment: Environment,
    found: Found,
    name: str,
    *arguments: str,
    code: int = 0,
    words: str = "",
) -> None:
    """Run a command, and note whether it did what it should."""
    done = environment.voile(*arguments)
    if done.returncode == code and "Traceback" not in done.stderr and words in done.stderr:
        found.done.append(name)
    else:
        found.failed.append(
            f"{name}: exit {done.returncode}\n{done.stdout[-500:]}{done.stderr[-1500:]}"
        )


def make_releases(environment: Environment, found: Found, releases: Path) -> None:
    """A release of each kind."""
    for kind, arguments in PUBLISHED.items():
        target = releases / f"{kind}.voile"
        if not target.exists():
            tried(environment, found, f"publish {kind}", *arguments, "-o", str(target))


def use(environment: Environment, releases: Path) -> Found:
    """Do with an environment what it is for."""
    found = Found(environment.python, environment.extra, environment.megabytes(), 0.0, None)
    if environment.extra == "publish":
        make_releases(environment, found, releases)
    for command in EXTRA_COMMANDS.get(environment.extra, []):
        given = [word.format(**{kind: releases / f"{kind}.voile" for kind in PUBLISHED})
                 if word.startswith("{") else word for word in command]  # fmt: skip
        tried(environment, found, " ".join(command), *given)
    for command in UNREACHED.get(environment.extra, []):
        words = "Connection refused"
        tried(environment, found, " ".join(command), *command, code=1, words=words)
    if environment.extra == "core":
        use_core(environment, found, releases)
    if not (environment.folder / "share" / "man" / "man1" / "voile.1").is_file():
        found.failed.append("the manual page is not installed")
    found.start_seconds = environment.seconds("--version")
    query = releases / "views.voile"
    if query.exists():
        found.query_seconds = environment.seconds("query", str(query), COUNT, "--json")
    return found


def use_core(environment: Environment, found: Found, releases: Path) -> None:
    """Releases of every kind are read with the core's packages alone, and the rest is refused."""
    there = [name for name in STEWARDS if (environment.packages() / name).exists()]
    if there:
        found.failed.append(f"the core brings {', '.join(there)}")
    for path in sorted(releases.iterdir()):
        # The law of counts' noise is computed again, which takes SciPy: said, not a traceback.
        lacks = path.stem == "counts"
        tried(environment, found, f"verify {path.stem}", "verify", str(path), code=2 * lacks)
        tried(environment, found, f"describe {path.stem}", "describe", str(path))
        tried(environment, found, f"query {path.stem}", "query", str(path), COUNT, "--json")
    tried(environment, found, "publish is refused", *LACKING, code=2)
    tried(environment, found, "demo is refused", "demo", code=2)
    if list(environment.work.glob("none.voile*")) + list(environment.work.glob("demo-output")):
        found.failed.append("what was refused has left something")


def built(place: Path) -> Path:
    """The wheel, built from this source."""
    isolated = ["--no-build-isolation"] if module_is_there("hatchling") else []
    run([sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", *isolated,
         "--wheel-dir", str(place), str(ROOT)])  # fmt: skip
    return next(place.glob("voile-*.whl"))


def module_is_there(name: str) -> bool:
    """Whether this Python has a module."""
    done = subprocess.run(
        [sys.executable, "-c", f"import {name}"], check=False, capture_output=True
    )
    return done.returncode == 0


def interpreter(given: str) -> str:
    """A Python by its path or its version; of a version, as pyenv or the system have it."""
    if os.sep in given or shutil.which(given):
        return given
    folders = sorted((Path.home() / ".pyenv" / "versions").glob(f"{given}*"))
    found = str(folders[-1] / "bin" / "python") if folders else shutil.which(f"python{given}")
    return found or sys.exit(f"there is no Python {given}")


def try_python(python: str, extras: Sequence[str]) -> list[Found]:
    """Every extra with one Python; what publishes comes first, since others read its releases."""
    results = []
    with tempfile.TemporaryDirectory(prefix="voile-install-", ignore_cleanup_errors=True) as folder:
        place = Path(folder)
        releases = place / "releases"
        releases.mkdir()
        wheel = built(place)
        for extra in sorted(extras, key=lambda extra: extra != "publish"):
            environment = Environment(python, wheel, extra, place)
            results.append(use(environment, releases))
            shutil.rmtree(environment.folder, ignore_errors=True)
    return results


def main() -> None:
    """Try every Python with every extra; exit 1 where something failed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--python", nargs="+", default=[sys.executable])
    parser.add_argument("--extras", nargs="+", default=["core", "publish"])
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    began = time.monotonic()
    results = [
        one for python in given.python for one in try_python(interpreter(python), given.extras)
    ]
    if given.json:
        print(json.dumps([vars(one) for one in results], indent=2))
    for one in results if not given.json else []:
        query = "" if one.query_seconds is None else f", a query {one.query_seconds} s"
        print(f"{one.python} {one.extra}: {one.megabytes} MB; {len(one.done)} commands; of the "
              f"processor, a start takes {one.start_seconds} s{query}")  # fmt: skip
        for failure in one.failed:
            print(f"  FAILED {failure}")
    print(f"{time.monotonic() - began:.0f} s", file=sys.stderr)
    sys.exit(any(one.failed for one in results))


if __name__ == "__main__":
    main()
