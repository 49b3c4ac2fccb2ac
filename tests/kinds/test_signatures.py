"""Signatures of releases: who vouches is seen, and nothing that was changed passes."""

from __future__ import annotations

import base64
import hashlib
import json
import random
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from cryptography.hazmat.primitives.asymmetric import ed25519

import voile
from tests.kinds.test_earlier_releases import FOLDER, RELEASES
from tests.support import signers
from tests.support.forging import sealed
from tests.support.running import told
from tests.support.running import voile as run
from tests.support.signers import PASSPHRASE
from tests.support.soak import SOAK, rounds, some
from voile.errors import ReleaseError, UsageError
from voile.kinds.manifest import SIGNATURE
from voile.kinds.perturbed.combining import combine
from voile.kinds.signatures import Trust
from voile.kinds.verification import examine
from voile.signing import SigningKey
from voile.signing.openssh import public_blob
from voile.signing.statements import SignatureFile, statement


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    """A release of an earlier Voile, to be signed."""
    return Path(shutil.copytree(FOLDER / "mondrian.voile", tmp_path / "r.voile"))


@pytest.fixture(scope="module")
def key() -> SigningKey:
    return SigningKey.new("Registry of Examples")


def people() -> pa.Table:
    return pa.table({"age": [i % 40 for i in range(200)], "sex": ["f", "m"] * 100})


def bytes_of(release: Path) -> dict[str, bytes]:
    files = (path for path in release.rglob("*") if path.is_file())
    return {path.relative_to(release).as_posix(): path.read_bytes() for path in files}


# ---------------------------------------------------------------------- signing


@pytest.mark.parametrize("name", some(RELEASES, 3))
def test_earlier_releases_are_signed_and_stay_what_they_are(
    tmp_path: Path, name: str, key: SigningKey
) -> None:
    copy = Path(shutil.copytree(FOLDER / name, tmp_path / name))
    done = voile.sign(copy, key)
    assert done.added
    assert done.release.manifest.version == 1
    after = bytes_of(copy)
    del after[SIGNATURE]
    assert after == bytes_of(FOLDER / name)
    assert voile.verify(copy, signer=key.public).manifest == voile.open(FOLDER / name).manifest


def test_the_commands(tmp_path: Path, mine: Path) -> None:
    assert run("keygen", "me", "--name", "Me", cwd=tmp_path).returncode == 0
    print_ = SigningKey.read(tmp_path / "me").fingerprint
    done = json.loads(run("sign", "r.voile", "me", "--json", cwd=tmp_path).stdout)
    assert (done["signed_by"], done["added"], done["signatures"]) == (print_, True, 1)
    plain = told(["verify", str(mine)])
    assert (plain["ok"], plain["signed_by"]) == (True, print_)
    assert plain["signatures"][0]["trusted"] is None
    assert "nobody has said that this key is trusted" in " ".join(
        run("verify", str(mine)).stdout.split()
    )
    trusted = told(["verify", str(mine), "--signer", str(tmp_path / "me.pub")])
    assert (trusted["signed_by"], trusted["signatures"][0]["trusted"]) == (print_, True)
    shown = run("verify", str(mine), "--signer", str(tmp_path / "me.pub")).stdout
    assert "you have the signer's word" in shown and "(`voile verify --signer`)" not in shown
    again = run("sign", "r.voile", "me", cwd=tmp_path)
    assert again.returncode == 0
    assert "nothing was changed" in again.stderr
    assert not list(tmp_path.glob(".*"))


def test_wherever_a_release_leaves_it_can_be_signed(tmp_path: Path) -> None:
    key = signers.own(tmp_path / "k", "me")
    table = tmp_path / "people.csv"
    people().to_pandas().to_csv(table, index=False)
    sign = ["--sign", str(tmp_path / "k")]
    commands = {
        "view": ["publish", "--prior", "0.01"],
        "series": ["publish", "--prior", "0.01", "--series", "monthly", "--views", "3"],
        "classes": ["publish", "--method", "mondrian", "--qi", "age,sex", "--k", "5"],
        "counts": ["publish", "--method", "conjuncts", "--arity", "1", "--direct", "--rho", "0.01"],
        "rows": ["perturb", "--retention", "0.5"],
        "more": ["perturb", "--retention", "0.5"],
    }
    # The least: one of publish, a view of a series, and two parts to combine.
    for name in [*commands] if SOAK else ["series", "rows", "more"]:
        command = commands[name]
        first, *rest = command
        done = told([first, str(table), *rest, *sign, "-o", str(tmp_path / f"{name}.voile")])
        assert done["signed_by"] == key.fingerprint, name
        assert Trust(key.public).check(voile.open(tmp_path / f"{name}.voile")).signed_by, name
    parts = [str(tmp_path / f"{name}.voile") for name in ("rows", "more")]
    told(["combine", *parts, "-o", str(tmp_path / "both.voile"), *sign])
    voile.verify(tmp_path / "both.voile", signer=key.public)
    again = ["publish", str(table), "--prior", "0.01", "--series", "monthly", "--views", "3"]
    told([*again, "-o", str(tmp_path / "again.voile"), *sign])  # the identical view
    assert len(examine(tmp_path / "again.voile").signatures) == 1


def test_signing_in_python(tmp_path: Path, key: SigningKey) -> None:
    release = voile.publish(people(), prior=0.01, sign=key)
    voile.verify(release, signer=key.public)
    with pytest.raises(UsageError, match="another digest when it is saved"):
        voile.sign(release, SigningKey.new())
    saved = release.save(tmp_path / "r.voile")  # signed again, since it is registered by that
    voile.verify(saved, signer=key.public)
    again = saved.save(tmp_path / "copy.voile")  # a copy keeps its signatures
    assert bytes_of(again.path) == bytes_of(saved.path)
    voile.perturb(people(), 0.5, to=tmp_path / "a.voile", sign=key)
    part = voile.perturb(people(), 0.5, to=tmp_path / "b.voile")
    with pytest.raises(ReleaseError, match="is not signed"):
        voile.verify(part, signer=key.public)
    both = combine([tmp_path / "a.voile", part], tmp_path / "both.voile").release
    assert not examine(both.path).signatures  # the part's signature is of the part
    voile.publish(people(), prior=0.01, to=tmp_path / "r.voile", overwrite=True)
    assert examine(tmp_path / "r.voile").signed_by is None


def test_replacing_a_signed_release_by_an_unsigned_one_is_said(tmp_path: Path) -> None:
    """The command of the note signs it; nothing is said where there is nothing to say."""
    key = signers.own(tmp_path / "KEY", "me")
    table = tmp_path / "people.csv"
    people().to_pandas().to_csv(table, index=False)
    target = str(tmp_path / "my r.voile")
    again = ["perturb", str(table), "--retention", "0.5", "-o", target, "--overwrite"]
    for _ in range(2):
        assert not lost(told([*again, "--sign", str(tmp_path / "KEY")]))
    (note,) = lost(told(again))
    assert f"signed by me ({key.fingerprint})" in note
    assert not lost(told(again))
    sign = shlex.split(note[note.index("voile sign") :])
    assert run(*sign[1:], cwd=tmp_path).returncode == 0
    voile.verify(target, signer=key.public)
    parts = [voile.perturb(people(), 0.5, to=tmp_path / f"{name}.voile") for name in "ab"]
    assert lost(combine(parts, target, overwrite=True).to_dict())
    assert not lost(combine(parts, target, overwrite=True).to_dict())
    voile.sign(target, key)
    (tmp_path / "my r.voile" / SIGNATURE).write_text("{}")
    done = run("publish", str(table), "--prior", "0.01", "-o", target, "--overwrite")
    assert "not signed" in " ".join(done.stdout.split()), done.stderr


def lost(data: dict[str, Any]) -> list[str]:
    return [note for note in data["notes"] if "this one is not signed" in note]


def test_a_key_that_cannot_sign_is_noticed_before_any_work(tmp_path: Path) -> None:
    signers.own(tmp_path / "k", passphrase=PASSPHRASE)
    done = run("publish", "absent.csv", "--sign", "k", cwd=tmp_path)
    assert done.returncode == 2
    assert "no terminal" in done.stderr
    with pytest.raises(UsageError, match="cannot read the key"):
        voile.publish(people(), prior=0.01, to=tmp_path / "r.voile", sign=tmp_path / "absent")
    assert not (tmp_path / "r.voile").exists()


def test_what_does_not_verify_is_not_signed(mine: Path, key: SigningKey) -> None:
    readme = mine / "README.md"
    readme.write_bytes(readme.read_bytes()[:-2] + b"!\n")
    with pytest.raises(ReleaseError, match=r"README.md was changed"):
        voile.sign(mine, key)
    assert not (mine / SIGNATURE).exists()


def test_a_simulated_release_is_signed_as_one(tmp_path: Path, key: SigningKey) -> None:
    release = voile.publish(
        people(), prior=0.01, simulate_seed=1, to=tmp_path / "r.voile", sign=key
    )
    (one,) = json.loads((release.path / SIGNATURE).read_bytes())["signatures"]
    assert one["simulated"] is True
    sealed(release.path, simulated=False)
    assert voile.open(release.path).manifest.simulated is False
    with pytest.raises(ReleaseError, match="of another release"):
        voile.verify(release.path)
    one["digest"] = voile.open(release.path).manifest.digest
    write(release.path, [one])
    with pytest.raises(ReleaseError, match="says other things"):
        voile.verify(release.path)
    write(release.path, [one | {"simulated": False}])
    with pytest.raises(ReleaseError, match="has not signed this"):
        voile.verify(release.path)


# ---------------------------------------------------------------------- trust


def test_two_people_vouch(tmp_path: Path, mine: Path) -> None:
    one, other, third = (signers.own(tmp_path / name, name) for name in ("a", "b", "c"))
    voile.sign(mine, one)
    assert voile.sign(mine, other).signatures == 2
    for trusted in ([one.public], [third.public, other.public], [tmp_path / "a.pub"]):
        voile.verify(mine, signer=trusted)
    both = re.escape(f"not signed by signer=, but by {one.fingerprint}, {other.fingerprint}")
    with pytest.raises(ReleaseError, match=both):
        voile.verify(mine, signer=third.public)
    found = examine(mine, signer=third.public)
    assert (found.ok, found.signed_by) == (False, False)


def test_revoked_keys_do_not_count(tmp_path: Path, mine: Path) -> None:
    old, new = signers.own(tmp_path / "old"), signers.own(tmp_path / "new")
    voile.sign(mine, old)
    (tmp_path / "revoked").write_text(f"# stolen\n{old.fingerprint}\n")
    for trusted in (None, old.public, [old.public, new.public]):
        found = examine(mine, signer=trusted, revoked=tmp_path / "revoked")
        assert (found.ok, found.signed_by) == (False, False)
        assert "revoked" in found.problems[0]
    voile.sign(mine, new)
    found = examine(mine, signer=[old.public, new.public], revoked=str(tmp_path / "revoked"))
    assert (found.ok, found.signed_by) == (True, new.fingerprint)
    assert [one.revoked for one in found.signatures] == [True, False]
    (tmp_path / "nobody").write_text("# nobody yet\n")
    assert examine(mine, signer=old.public, revoked=tmp_path / "nobody").ok


def test_a_release_without_a_signature(tmp_path: Path, mine: Path) -> None:
    signers.own(tmp_path / "k")
    assert told(["verify", str(mine)])["signed_by"] is None
    done = run("verify", str(mine), "--signer", str(tmp_path / "k.pub"), "--json")
    assert done.returncode == 1
    found = json.loads(done.stdout)
    assert (found["signed_by"], found["whole"], found["terms"]) == (False, True, True)
    assert found["problems"] == ["the release is not signed"]


@pytest.mark.parametrize(
    "signer", [".", "absent", "r.voile", "k", "r.voile/README.md", "SHA256:x", ""]
)
def test_signers_that_name_no_key(tmp_path: Path, mine: Path, signer: str) -> None:
    voile.sign(mine, signers.own(tmp_path / "k"))
    done = run("verify", "r.voile", "--signer", signer, cwd=tmp_path)
    assert done.returncode == 2
    assert "hint" in done.stderr


# ---------------------------------------------------------------------- forgeries


def write(release: Path, entries: list[Any], **more: Any) -> None:
    data = {"format": "voile-signatures", "version": 1, "signatures": entries} | more
    text = json.dumps(data, ensure_ascii=False, indent=1) + "\n"
    (release / SIGNATURE).write_text(text, encoding="utf-8")


def entries(release: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((release / SIGNATURE).read_bytes())["signatures"]
    return found


def unsigned(release: voile.Release, key: SigningKey) -> bool:
    """Whether the signatures alone warn those who trust the key, and those who trust nobody."""
    checks = [Trust().check(release), Trust(key.public).check(release)]
    return all(check.errors and check.signed_by is False for check in checks)


def broken(release: Path, key: SigningKey) -> bool:
    """Whether everybody is warned: those who trust the key, and those who trust nobody."""
    seen = [examine(release), examine(release, signer=key.public)]
    return not any(found.ok for found in seen) and seen[1].signed_by is False


def test_any_changed_byte_shows(mine: Path, key: SigningKey) -> None:
    release = voile.sign(mine, key).release
    good = (mine / SIGNATURE).read_bytes()
    draw = random.Random(5)  # noqa: S311
    for place in some(range(len(good)), 100):
        changed = bytearray(good)
        changed[place] ^= 1 << draw.randrange(8)
        (mine / SIGNATURE).write_bytes(bytes(changed))
        assert unsigned(release, key), place
    for content in (good + b"\n", good[:-1], good[: len(good) // 2], b""):
        (mine / SIGNATURE).write_bytes(content)
        assert unsigned(release, key)
    (mine / SIGNATURE).write_bytes(good)
    for file in ("manifest.json", "README.md", "datapackage.json"):
        before = (mine / file).read_bytes()
        (mine / file).write_bytes(before.replace(b"a", b"b", 1))
        assert broken(mine, key)
        (mine / file).write_bytes(before)
    assert examine(mine, signer=key.public).ok


def test_a_signature_of_another_release_is_none(
    tmp_path: Path, mine: Path, key: SigningKey
) -> None:
    other = Path(shutil.copytree(FOLDER / "anatomy.voile", tmp_path / "other.voile"))
    voile.sign(other, key)
    shutil.copy(other / SIGNATURE, mine / SIGNATURE)
    assert broken(mine, key)
    assert "of another release" in examine(mine).problems[0]
    (one,) = entries(other)
    write(mine, [one | {"digest": voile.open(mine).manifest.digest}])
    assert broken(mine, key)


def test_every_problem_is_said(mine: Path, key: SigningKey) -> None:
    voile.sign(mine, key)
    guarantee = json.loads((mine / "manifest.json").read_text(encoding="utf-8"))["guarantee"]
    guarantee["requirements"][0]["measured"] += 1
    sealed(mine, guarantee=guarantee)
    problems = examine(mine).problems
    assert len(problems) == 2
    done = run("verify", str(mine))
    said = " ".join((done.stdout + done.stderr).split())
    assert all(" ".join(one.split()) in said for one in problems)


def test_a_replaced_key_does_not_pass_for_the_other(mine: Path, key: SigningKey) -> None:
    thief = SigningKey.new(key.name)
    voile.sign(mine, thief)
    found = examine(mine, signer=key.public)
    assert (found.ok, found.signed_by) == (False, False)
    (stolen,) = entries(mine)
    public = {"public_key": key.public.text, "fingerprint": key.fingerprint}
    for change in (public, {"fingerprint": key.fingerprint}, {"public_key": key.public.text}):
        write(mine, [stolen | change])
        assert unsigned(voile.open(mine), key), change


def test_a_key_under_which_anybody_can_sign_vouches_for_nothing(
    mine: Path, key: SigningKey
) -> None:
    """Under the neutral point R = B, s = 1 is a signature of every message: s·B = R + h·0."""
    neutral = bytes([1, *bytes(31)])
    base = bytes.fromhex("58" + "66" * 31)  # RFC 8032, 5.1: y = 4/5
    made = base + bytes([1, *bytes(31)])
    ed25519.Ed25519PublicKey.from_public_bytes(neutral).verify(made, b"any message")
    digest = base64.b64encode(hashlib.sha256(public_blob(neutral)).digest()).decode().rstrip("=")
    voile.sign(mine, key)
    (one,) = entries(mine)
    forged = one | {
        "public_key": f"ssh-ed25519 {base64.b64encode(public_blob(neutral)).decode()}",
        "fingerprint": f"SHA256:{digest}",
        "signature": base64.b64encode(made).decode(),
    }
    write(mine, [forged])
    for trusted in (None, f"SHA256:{digest}"):
        found = examine(mine, signer=trusted)
        assert (found.ok, found.signed_by) == (False, False)
        assert "small order" in found.problems[0]


def test_one_broken_signature_of_two(mine: Path, key: SigningKey) -> None:
    other = SigningKey.new()
    voile.sign(mine, key)
    voile.sign(mine, other)
    good, bad = entries(mine)
    write(mine, [good, bad | {"when": "2020-01-01T00:00:00Z"}])
    assert broken(mine, key)
    with pytest.raises(ReleaseError, match="broken"):
        voile.sign(mine, SigningKey.new())


def test_a_signature_of_something_else_is_none(mine: Path, key: SigningKey) -> None:
    """The bytes that are signed begin with what they are."""
    manifest = voile.open(mine).manifest
    one = statement(key, digest=manifest.digest, version=1, simulated=False)
    assert one.message().startswith(b"voile release signature v1\0")
    for message in (manifest.digest.encode(), bytes.fromhex(manifest.digest), one.message()[27:]):
        made = base64.b64encode(key.sign(message)).decode()
        file = SignatureFile(signatures=[one.model_copy(update={"signature": made})])
        (mine / SIGNATURE).write_bytes(file.content())
        assert broken(mine, key)


HOSTILE: dict[str, Callable[[dict[str, Any]], bytes]] = {
    "huge": lambda _: b" " * 10_000_000,
    "deep": lambda _: b"[" * 60_000,
    "deep object": lambda _: b'{"a":' * 10_000,
    "number": lambda _: b"1" * 60_000,
    "null": lambda _: b"null",
    "list": lambda one: json.dumps([one]).encode(),
    "empty": lambda _: spelt({"signatures": []}),
    "twice": lambda one: spelt({"signatures": [one, one]}),
    "many": lambda one: spelt({"signatures": [one] * 60}),
    "unknown key": lambda one: spelt({"signatures": [one | {"note": "trust me"}]}),
    "unknown key above": lambda one: spelt({"signatures": [one], "note": ""}),
    "newer": lambda one: spelt({"version": 2, "signatures": [one]}),
    "version as text": lambda one: spelt({"version": "1", "signatures": [one]}),
    "version true": lambda one: spelt({"version": True, "signatures": [one]}),
    "other algorithm": lambda one: spelt({"signatures": [one | {"algorithm": "none"}]}),
    "simulated as number": lambda one: spelt({"signatures": [one | {"simulated": 0}]}),
    "no signature": lambda one: spelt({"signatures": [one | {"signature": ""}]}),
    "duplicate": lambda one: spelt({"signatures": [one]}).replace(
        b'"name"', b'"name": "x",\n   "name"'
    ),
    "half a character": lambda one: spelt({"signatures": [one | {"name": "x"}]}).replace(
        b'"x"', b'"\\ud800"'
    ),
    "escape": lambda one: spelt({"signatures": [one | {"name": "\x1b[2J"}]}),
    "not UTF-8": lambda one: spelt({"signatures": [one]}).replace(b"Registry", b"\xff\xfe"),
    "loose base64": lambda one: spelt(
        {"signatures": [one | {"signature": one["signature"][:86] + "\n="}]}
    ),
}


def spelt(data: dict[str, Any]) -> bytes:
    whole = {"format": "voile-signatures", "version": 1} | data
    return (json.dumps(whole, ensure_ascii=False, indent=1) + "\n").encode()


def test_hostile_signature_files(mine: Path, key: SigningKey) -> None:
    voile.sign(mine, key)
    (one,) = entries(mine)
    release = voile.open(mine)
    for name, content in HOSTILE.items():
        (mine / SIGNATURE).write_bytes(content(one))
        assert unsigned(release, key), name


@pytest.mark.parametrize("name", some([*HOSTILE], 4))
def test_verify_says_so_of_hostile_signature_files(mine: Path, key: SigningKey, name: str) -> None:
    voile.sign(mine, key)
    (one,) = entries(mine)
    (mine / SIGNATURE).write_bytes(HOSTILE[name](one))
    done = run("verify", str(mine))
    assert done.returncode == 1
    assert len(done.stdout) < 3_000
    assert "\x1b" not in done.stdout


def test_signature_json_is_a_file_of_its_own(tmp_path: Path, mine: Path, key: SigningKey) -> None:
    voile.sign(mine, key)
    signature = mine / SIGNATURE
    moved = signature.rename(tmp_path / "elsewhere.json")
    signature.symlink_to(moved)
    assert not examine(mine).ok
    signature.unlink()
    signature.mkdir()
    assert not examine(mine).ok
    signature.rmdir()
    moved.rename(mine / "signature2.json")
    assert "does not belong" in examine(mine).problems[0]


# ---------------------------------------------------------------------- signing under threat


def test_two_who_sign_at_once_are_both_there(tmp_path: Path, mine: Path) -> None:
    code = (
        "import sys, voile; from voile.signing import SigningKey\n"
        "for i in range(int(sys.argv[3])):\n"
        "    voile.sign(sys.argv[1], SigningKey.new(sys.argv[2] + str(i)))"
    )
    each = rounds(2, 12)
    asked = [[sys.executable, "-c", code, str(mine), name, str(each)] for name in "ab"]
    both = [subprocess.Popen(words) for words in asked]
    assert [process.wait(timeout=120) for process in both] == [0, 0]
    names = {one.name for one in examine(mine).signatures}
    assert names == {f"{name}{i}" for name in "ab" for i in range(each)}
    assert not list(tmp_path.glob(".*"))


KILLED = """
import os, random, signal, sys, threading, time
import voile
from voile.kinds import signatures
from voile.signing import SigningKey
release, count, key = sys.argv[1], int(sys.argv[2]), SigningKey.read(sys.argv[3])
voile.verify(release); signatures.SignatureFile
draw, held = random.Random(9), 0
for _ in range(count):
    child = os.fork()
    if not child:
        wait = draw.random() * 0.004
        real = signatures.put_beside
        def put_beside(*given):
            # Killed from another thread while the file is written and renamed.
            def kill():
                time.sleep(wait); os.kill(os.getpid(), signal.SIGKILL)
            threading.Thread(target=kill, daemon=True).start()
            for _ in range(200):
                real(*given)
        signatures.put_beside = put_beside
        voile.sign(release, key)
        os._exit(0)
    draw.random()
    os.waitpid(child, 0)
    place = os.path.join(release, "signature.json")
    if os.path.exists(place):
        voile.verify(release, signer=key.public)
        held += 1
        os.unlink(place)
    else:
        voile.verify(release)
print(held)
"""


def test_a_killed_run_leaves_a_whole_signature_or_none(tmp_path: Path, mine: Path) -> None:
    signers.own(tmp_path / "k")
    count = rounds(3, 300)
    done = subprocess.run(
        [sys.executable, "-c", KILLED, mine, str(count), tmp_path / "k"],
        check=True, capture_output=True, text=True, timeout=600,
    )  # fmt: skip
    assert 0 <= int(done.stdout) <= count
    left = [path.name for path in tmp_path.iterdir()]
    assert all(name in ("k", "k.pub", "r.voile") or ".partial-" in name for name in left)
