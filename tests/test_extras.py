"""What works without the packages of extras, and what is said where one is missing."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.special import gammaincinv

import voile
from tests.support.paths import ROOT
from voile.answering.count_law import gamma_quantile
from voile.extras import EXTRAS, lacking

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
FRAME = pd.DataFrame({"age": [30, 31, 32, 45] * 100, "sex": ["f", "m", "m", "f"] * 100})
PUBLISHED: dict[str, dict[str, Any]] = {
    "view": {"prior": 0.01, "retention": 0.5},
    "classes": {"method": "mondrian", "k": 5, "qi": ["age"], "sensitive": ["sex"]},
    "marginals": {"method": "marginals", "epsilon": 1, "schema": "active"},
    "counts": {"method": "conjuncts", "arity": 2, "rho": 0.5, "schema": "active"},
}
STEWARDS = ("scipy", "numba", "llvmlite")
WITHOUT = """
import sys
for name in MODULES:
    sys.modules[name] = None
from voile.cli import main
main()
"""


def without(
    *arguments: str, cwd: Path | None = None, modules: tuple[str, ...] = STEWARDS
) -> subprocess.CompletedProcess[str]:
    """A command where some modules are not installed; SciPy and Numba if nothing is said."""
    return subprocess.run(
        [sys.executable, "-c", WITHOUT.replace("MODULES", repr(modules)), *arguments],
        capture_output=True, text=True, check=False, cwd=cwd,
    )  # fmt: skip


@pytest.mark.parametrize("kind", [*PUBLISHED, "rows"])
def test_releases_are_read_without_what_publishes(kind: str, tmp_path: Path) -> None:
    place = tmp_path / "t.voile"
    if kind == "rows":
        release = voile.perturb(FRAME, name="t", retention=0.5, register=False, simulate_seed=1)
    else:
        how: dict[str, Any] = {"simulate_seed": 1, **PUBLISHED[kind]}
        if kind == "classes":
            del how["simulate_seed"]
        release = voile.publish(FRAME, name="t", register=False, **how)
    release.save(place)
    sql = "select sex, count(*) from t group by sex"
    done = without("describe", str(place))
    assert done.returncode == 0, done.stderr
    done = without("verify", str(place))
    if kind == "counts":  # whose noise has a law that is computed again
        assert done.returncode == 2 and "pip install 'voile[publish]'" in done.stderr
    else:
        assert done.returncode == 0, done.stderr
    done = without("query", str(place), sql, "--csv")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[1].startswith("f,")
    again = release.query(sql).rows[0]["count"]
    assert f"{again.value}"[:6] in done.stdout


def test_publishing_says_what_to_install(tmp_path: Path) -> None:
    table, place = tmp_path / "t.csv", tmp_path / "t.voile"
    FRAME.to_csv(table, index=False)
    done = without("publish", str(table), "-o", str(place), "--no-register")
    assert done.returncode == 2 and "needs the package scipy" in done.stderr
    assert "pip install 'voile[publish]'" in done.stderr
    assert not place.exists()


def test_an_import_that_fails_later_is_no_traceback(tmp_path: Path) -> None:
    table = tmp_path / "t.csv"
    FRAME.to_csv(table, index=False)
    done = without("risk", str(table), "--qi", "age,sex")
    assert done.returncode == 2 and "Traceback" not in done.stderr
    assert "pip install 'voile[publish]'" in done.stderr


LEDGER = ("--ledger", "postgresql://me@127.0.0.1/none")


@pytest.mark.parametrize(
    ("module", "options", "extra"),
    [
        ("msgspec", (), "server"),
        ("opendp", ("--noise", "gaussian"), "dp"),
        ("opendp", ("--noise", "geometric"), "dp"),
        ("psycopg", LEDGER, "postgres"),
    ],
)
def test_a_server_says_what_to_install_before_it_reads_a_table(
    module: str, options: tuple[str, ...], extra: str, tmp_path: Path
) -> None:
    asked = ("serve", "init", "counts", "--table", "none.csv", "--queries", "5", "--delta", "1")
    done = without(*asked, *options, cwd=tmp_path, modules=(module,))
    assert done.returncode == 2 and f"needs {module}" in done.stderr, done.stderr
    assert f"pip install 'voile[{extra}]'" in done.stderr
    assert not list(tmp_path.iterdir())
    with_it = without(*asked, *options, cwd=tmp_path, modules=())
    assert "none.csv" in with_it.stderr


def test_a_server_does_not_start_without_what_draws_its_noise(tmp_path: Path) -> None:
    FRAME.to_csv(tmp_path / "t.csv", index=False)
    asked = ("serve", "init", "counts", "--table", "t.csv", "--queries", "5", "--delta", "1",
             "--no-register", "--noise", "gaussian")  # fmt: skip
    done = without(*asked, cwd=tmp_path, modules=())
    assert done.returncode == 0, done.stderr
    done = without("serve", "run", "counts", "--port", "0", cwd=tmp_path, modules=("opendp",))
    assert done.returncode == 2, done.stdout
    assert "--noise gaussian needs opendp" in done.stderr
    assert "pip install 'voile[dp]'" in done.stderr


DISTRIBUTIONS = {"pyspark": "pyspark-client", "sklearn": "scikit-learn",
                 "vl_convert": "vl-convert-python"}  # fmt: skip
"""Packages whose distributions are called otherwise."""


def test_every_extra_that_is_named_brings_the_package() -> None:
    extras = PROJECT["optional-dependencies"]
    for package, extra in EXTRAS.items():
        wanted = DISTRIBUTIONS.get(package, package.replace("_", "-"))
        assert any(each.startswith(wanted) for each in extras[extra]), package
    assert not any(each.startswith(("scipy", "numba")) for each in PROJECT["dependencies"])


def test_every_package_of_an_extra_is_named() -> None:
    """Or an import that fails would be a traceback."""
    ours = {"dev", "bench", "docs"}
    brought = {
        re.split(r"[\[<>=]", each)[0]
        for extra, lines in PROJECT["optional-dependencies"].items()
        if extra not in ours
        for each in lines
    }
    named = {DISTRIBUTIONS.get(package, package.replace("_", "-")) for package in EXTRAS}
    assert named == brought - {"voile"}


def test_other_imports_that_fail_stay_what_they_are() -> None:
    assert lacking(ImportError("no", name="voile.nothing")) is None
    found = lacking(ImportError("no", name="scipy.special"))
    assert found is not None and "scipy" in found.message


@pytest.mark.parametrize("level", [0.6, 0.9, 0.975, 0.9995])
def test_the_quantile_of_a_gamma_law_is_that_of_scipy(level: float) -> None:
    shapes = np.exp(np.linspace(np.log(1e-10), np.log(1e9), 3000)).reshape(3, 1000)
    np.testing.assert_allclose(
        gamma_quantile(shapes, level), gammaincinv(shapes, level), rtol=1e-6, atol=1e-200
    )
    assert gamma_quantile(np.empty(0), level).shape == (0,)
