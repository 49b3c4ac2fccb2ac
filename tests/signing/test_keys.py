"""Keys: ours and OpenSSH's are read, everything else is refused by name, and nothing is lost."""

from __future__ import annotations

import base64
import os
import pickle
import random
import shutil
import stat
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest

from tests.support import signers
from tests.support.paths import TESTS
from tests.support.signers import PASSPHRASE
from tests.support.soak import rounds
from voile.errors import UsageError
from voile.signing import PublicKey, SigningKey
from voile.signing.keys import read_signers
from voile.signing.openssh import BEGIN, END, packed, public_blob

WRONG = PASSPHRASE[:-1]
KEYS = TESTS / "fixtures" / "keys"


def private_copy(name: str, folder: Path) -> Path:
    """A key of the fixtures, which only its owner may read."""
    for each in (name, f"{name}.pub"):
        shutil.copy(KEYS / each, folder / each)
    (folder / name).chmod(0o600)
    return folder / name


# ---------------------------------------------------------------------- private keys


def test_a_new_key_is_private_and_reads_back(tmp_path: Path) -> None:
    key = signers.own(tmp_path / "k", "Registry of Examples")
    assert stat.S_IMODE((tmp_path / "k").stat().st_mode) == 0o600
    again = SigningKey.read(tmp_path / "k")
    assert (again.fingerprint, again.name) == (key.fingerprint, "Registry of Examples")
    assert key.public.verifies(again.sign(b"text"), b"text")
    assert not key.public.verifies(again.sign(b"text"), b"texts")
    assert not SigningKey.new().public.verifies(again.sign(b"text"), b"text")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["k", "k.pub"]


@pytest.mark.parametrize("taken", ["k", "k.pub"])
def test_a_key_is_never_overwritten(tmp_path: Path, taken: str) -> None:
    (tmp_path / taken).write_text("precious")
    with pytest.raises(UsageError, match="exists already"):
        signers.own(tmp_path / "k")
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {taken: "precious"}


def test_a_key_shows_nothing_secret(tmp_path: Path) -> None:
    key = signers.own(tmp_path / "k", "me")
    assert repr(key) == f"SigningKey({key.fingerprint}, 'me')"
    with pytest.raises(TypeError, match="not pickled"):
        pickle.dumps(key)


def test_our_encrypted_key_needs_its_passphrase(tmp_path: Path) -> None:
    key = signers.own(tmp_path / "k", passphrase=PASSPHRASE)
    assert b"ENCRYPTED" in (tmp_path / "k").read_bytes()
    assert SigningKey.read(tmp_path / "k", passphrase=PASSPHRASE).fingerprint == key.fingerprint
    with pytest.raises(UsageError, match="passphrase does not open"):
        SigningKey.read(tmp_path / "k", passphrase=WRONG)


def test_keys_of_openssh_are_read(tmp_path: Path) -> None:
    path = signers.openssh(tmp_path / "id_ed25519")
    key = SigningKey.read(path)
    assert key.name == "a comment"  # of the .pub file; the key has none
    assert read_signers(tmp_path / "id_ed25519.pub") == {key.fingerprint: "a comment"}


@pytest.mark.parametrize("name", ["encrypted", "encrypted-aes128"])
def test_encrypted_keys_of_openssh_are_read(tmp_path: Path, name: str) -> None:
    path = private_copy(name, tmp_path)
    key = SigningKey.read(path, passphrase=PASSPHRASE)
    assert read_signers(KEYS / f"{name}.pub") == {key.fingerprint: key.name}
    with pytest.raises(UsageError, match="passphrase does not open"):
        SigningKey.read(path, passphrase=WRONG)


@pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="needs OpenSSH")
@pytest.mark.parametrize("passphrase", ["", PASSPHRASE])
def test_ssh_keygen_agrees(tmp_path: Path, passphrase: str) -> None:
    path = tmp_path / "id"
    options = ["-q", "-t", "ed25519", "-a", "2", "-C", "c d", "-N", passphrase]
    subprocess.run(["ssh-keygen", *options, "-f", path], check=True)
    shown = subprocess.run(
        ["ssh-keygen", "-l", "-f", f"{path}.pub"], check=True, capture_output=True, text=True
    ).stdout
    key = SigningKey.read(path, passphrase=passphrase)
    assert shown.split()[1] == key.fingerprint
    assert key.name == "c d"
    ours = signers.own(tmp_path / "ours", "me")
    shown = subprocess.run(
        ["ssh-keygen", "-l", "-f", tmp_path / "ours.pub"],
        check=True, capture_output=True, text=True,
    ).stdout  # fmt: skip
    assert shown.split()[1] == ours.fingerprint


@pytest.mark.parametrize("kind", ["rsa", "ec"])
@pytest.mark.parametrize("form", ["PKCS8", "OpenSSH", "TraditionalOpenSSL"])
def test_other_keys_are_refused_by_name(tmp_path: Path, kind: str, form: str) -> None:
    path = signers.of_type(tmp_path / "k", kind, form)
    with pytest.raises(UsageError, match=r"key of type (RSA|EC|EllipticCurve|ssh-rsa|ecdsa)"):
        SigningKey.read(path)
    with pytest.raises(UsageError, match=r"key of type (ssh-rsa|ecdsa-sha2)"):
        read_signers(tmp_path / "k.pub")


def test_a_key_that_others_may_read_is_refused(tmp_path: Path) -> None:
    signers.own(tmp_path / "k")
    for mode in (0o644, 0o640, 0o604, 0o660):
        (tmp_path / "k").chmod(mode)
        with pytest.raises(UsageError, match=f"permissions are {mode:04o}") as refused:
            SigningKey.read(tmp_path / "k")
        assert "chmod 600" in refused.value.hint


def test_what_is_no_key_is_refused(tmp_path: Path) -> None:
    signers.own(tmp_path / "k")
    cases = {
        "public": (tmp_path / "k.pub").read_bytes(),
        "empty": b"",
        "garbage": bytes(range(256)),
        "cut": (tmp_path / "k").read_bytes()[:60],
        "huge": b"-----BEGIN PRIVATE KEY-----\n" + b"A" * 100_000,
    }
    for name, content in cases.items():
        (tmp_path / name).write_bytes(content)
        (tmp_path / name).chmod(0o600)
        with pytest.raises(UsageError):
            SigningKey.read(tmp_path / name)
    for path in (tmp_path, tmp_path / "absent", tmp_path / "k" / "deeper", Path("a\0b")):
        with pytest.raises(UsageError):
            SigningKey.read(path)


def test_hostile_keys_of_openssh_are_refused(tmp_path: Path) -> None:
    """Any changed byte, and derivations that would not end."""
    path = tmp_path / "k"
    good = signers.openssh(path).read_bytes()
    body = base64.b64decode(b"".join(good.strip().splitlines()[1:-1]))
    draw = random.Random(2)  # noqa: S311
    wanted = SigningKey.read(path).fingerprint
    for _ in range(rounds(60, 5_000)):
        place = draw.randrange(len(body))
        changed = bytearray(body)
        changed[place] ^= draw.randrange(1, 256)
        lines = base64.encodebytes(bytes(changed))
        path.write_bytes(BEGIN + b"\n" + lines + END + b"\n")
        with suppress(UsageError):
            assert SigningKey.read(path).fingerprint == wanted  # the comment was changed
    many = packed(b"salt") + (2**31).to_bytes(4, "big")
    path.write_bytes(signers.container("aes256-ctr", "bcrypt", many, bytes(32), bytes(160)))
    with pytest.raises(UsageError, match="rounds"):
        SigningKey.read(path, passphrase=WRONG)
    path.write_bytes(signers.container("aes256-gcm@openssh.com", "bcrypt", many, bytes(32), b""))
    with pytest.raises(UsageError, match="encrypted by aes256-gcm"):
        SigningKey.read(path, passphrase=WRONG)


# ---------------------------------------------------------------------- passphrases


def test_where_a_passphrase_comes_from(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    key = signers.own(tmp_path / "k", passphrase=PASSPHRASE)
    with pytest.raises(UsageError, match="no terminal") as refused:
        SigningKey.read(tmp_path / "k")
    assert "VOILE_KEY_PASSPHRASE" in refused.value.hint
    asked = SigningKey.read(tmp_path / "k", ask=lambda _: PASSPHRASE)
    assert asked.fingerprint == key.fingerprint
    reading, writing = os.pipe()
    os.write(writing, f"{PASSPHRASE}\n".encode())
    os.close(writing)
    monkeypatch.setenv("VOILE_KEY_PASSPHRASE_FD", str(reading))
    assert SigningKey.read(tmp_path / "k").fingerprint == key.fingerprint
    os.close(reading)
    for wrong in ("seventy", "987654"):
        monkeypatch.setenv("VOILE_KEY_PASSPHRASE_FD", wrong)
        with pytest.raises(UsageError, match="no file descriptor"):
            SigningKey.read(tmp_path / "k")
    monkeypatch.setenv("VOILE_KEY_PASSPHRASE", PASSPHRASE)
    assert SigningKey.read(tmp_path / "k").fingerprint == key.fingerprint


# ---------------------------------------------------------------------- public keys


def test_all_ways_to_name_a_signer(tmp_path: Path) -> None:
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ed25519

    key = SigningKey.new("me")
    print_, text = key.fingerprint, key.public.text
    pem = ed25519.Ed25519PublicKey.from_public_bytes(key.public.raw).public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    files = {
        "pub": key.public.line,
        "bare": text,
        "allowed": f"a@example.org,b@example.org {text}",
        "namespaced": f'a@example.org namespaces="git,voile" {text} comment',
        "authorized": f'command="echo ssh-ed25519 AAAA",no-pty {text} comment',
        "prints": f"# who may sign\n\n{print_} me",
        "mixed": f"ssh-rsa AAAAB3NzaC1yc2E= old\n{text} new",
        "pem": pem.decode(),
    }
    for name, content in files.items():
        (tmp_path / name).write_text(content + "\n")
        assert list(read_signers(tmp_path / name)) == [print_], name
        assert list(read_signers(str(tmp_path / name))) == [print_], name
    assert read_signers([print_, key.public.line, key.public]) == {print_: "me"}
    other = SigningKey.new()
    (tmp_path / "two").write_text(f"one {text}\ntwo {other.public.text}\n")
    assert read_signers(tmp_path / "two") == {print_: "one", other.fingerprint: "two"}


def test_signers_that_cannot_be_used_are_refused(tmp_path: Path) -> None:
    key = signers.own(tmp_path / "k")
    text = key.public.text
    files = {
        "private": (tmp_path / "k").read_bytes(),
        "empty": b"# nobody\n",
        "garbage": bytes(range(256)),
        "words": b"who knows\n",
        "cut": text[:-9].encode(),
        "longer": f"{text}AAAA".encode(),
        "authority": f"* cert-authority {text}".encode(),
        "dated": f'a valid-before="20200101" {text}'.encode(),
        "for git": f'a namespaces="git" {text}'.encode(),
        "pem": b"-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n",
        "huge": b"#" * 2_000_000,
    }
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
        with pytest.raises(UsageError):
            read_signers(tmp_path / name)
    wrong = ["SHA256:short", f"{key.fingerprint}A", "MD5:" + ":".join(["00"] * 16), "ssh-ed25519 x"]
    sources: list[str | Path] = [tmp_path, tmp_path / "absent", *wrong]
    for source in sources:
        with pytest.raises(UsageError):
            read_signers(source)
    with pytest.raises(UsageError, match="names no key"):
        read_signers([])
    assert read_signers(tmp_path / "empty", "revoked", empty=True) == {}


# Points of small order, from libsodium's ed25519_ref10.c (has_small_order), and their second
# spellings, where y is not less than p or x = 0 has a sign.
SMALL = [
    "0000000000000000000000000000000000000000000000000000000000000000",
    "0100000000000000000000000000000000000000000000000000000000000000",
    "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
    "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
    "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
]
SIGNS = (0x00, 0x80)
P = 2**255 - 19
D = -121665 * pow(121666, P - 2, P) % P


def doubled(point: tuple[int, int]) -> tuple[int, int]:
    """Twice a point of the curve, by the law of RFC 8032, 5.1.4, in plain coordinates."""
    x, y = point
    product = D * x * x * y * y
    return (
        2 * x * y * pow(1 + product, P - 2, P) % P,
        (y * y + x * x) * pow(1 - product, P - 2, P) % P,
    )


def point_of(y: int) -> tuple[int, int] | None:
    """A point with this y, by RFC 8032, 5.1.3; None if there is none."""
    square = (y * y - 1) * pow(D * y * y + 1, P - 2, P) % P
    root = pow(square, (P + 3) // 8, P)
    for x in (root, root * pow(2, (P - 1) // 4, P) % P):
        if x * x % P == square:
            return x, y
    return None


@pytest.mark.parametrize("sign", SIGNS)
@pytest.mark.parametrize("given", SMALL)
def test_keys_under_which_anybody_can_sign_are_refused(
    tmp_path: Path, given: str, sign: int
) -> None:
    raw = bytearray.fromhex(given)
    raw[31] |= sign
    key = bytes(raw)
    with pytest.raises(ValueError, match=r"small order|not spelt"):
        PublicKey(key)
    line = f"ssh-ed25519 {base64.b64encode(public_blob(key)).decode()} somebody"
    (tmp_path / "pub").write_text(line + "\n")
    der = bytes.fromhex("302a300506032b6570032100") + key  # RFC 8410
    (tmp_path / "pem").write_text(
        f"-----BEGIN PUBLIC KEY-----\n{base64.b64encode(der).decode()}\n-----END PUBLIC KEY-----\n"
    )
    sources: list[str | Path] = [line, tmp_path / "pub", tmp_path / "pem"]
    for source in sources:
        with pytest.raises(UsageError, match=r"small order|not spelt"):
            read_signers(source)


def test_a_point_is_refused_if_and_only_if_its_order_is_small() -> None:
    """By doubling it three times: the neutral point is (0, 1)."""
    draw = random.Random(3)  # noqa: S311
    listed = [int.from_bytes(bytes.fromhex(one), "little") for one in SMALL]
    some = [draw.randrange(P) for _ in range(rounds(60, 2_000))]
    seen = set()
    for y in [*(one for one in listed if one < P), *some]:
        if (point := point_of(y)) is None:
            continue
        small = doubled(doubled(doubled(point))) == (0, 1)
        seen.add(small)
        try:
            PublicKey(y.to_bytes(32, "little"))
        except ValueError:
            assert small, y
        else:
            assert not small, y
    assert seen == {True, False}


@pytest.mark.parametrize("option", ["signer", "revoked"])
def test_only_files_are_read(tmp_path: Path, option: str) -> None:
    """A pipe would be waited for, and a device may never end."""
    os.mkfifo(tmp_path / "pipe")
    hints = {"signer": "allowed_signers", "revoked": "revoked keys"}
    devices = [Path("/dev/zero"), Path("/dev/tty")]
    sources: list[str | Path] = [tmp_path / "pipe", *devices, tmp_path, tmp_path / "absent", ""]
    for source in sources:
        with pytest.raises(UsageError) as refused:
            read_signers(source, option, empty=option == "revoked")
        assert hints[option] in refused.value.hint
        assert "voile keygen" not in refused.value.hint
    assert refused.value.message == f"{option}= is empty"
    with pytest.raises(UsageError, match="no regular file"):
        SigningKey.read(tmp_path / "pipe")
    signers.own(tmp_path / "k")
    (tmp_path / "k.pub").unlink()
    os.mkfifo(tmp_path / "k.pub")
    assert SigningKey.read(tmp_path / "k").name == ""


def test_names_cannot_command_a_terminal(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be the name"):
        SigningKey.new("\x1b[31mme")
    (tmp_path / "pub").write_text(f"{SigningKey.new().public.text} \x1b[31mme\u202ex\n")
    assert list(read_signers(tmp_path / "pub").values()) == ["[31mmex"]


def test_public_keys_are_equal_by_their_bytes() -> None:
    raw = SigningKey.new().public.raw
    assert PublicKey(raw, "a") == PublicKey(raw, "b")


def test_purposes_restrict_trust_and_never_a_revocation(tmp_path: Path) -> None:
    key = signers.own(tmp_path / "k")
    line = (tmp_path / "k.pub").read_text().strip()
    listed = tmp_path / "listed"
    for purposes in ("git", "!voile,*", "[v]oile"):
        listed.write_text(f'alice namespaces="{purposes}" {line}\n')
        with pytest.raises(UsageError):
            read_signers(listed)
        assert key.fingerprint in read_signers(listed, "revoked", empty=True)
    listed.write_text(f'alice namespaces="voi?e" {line}\n')
    assert key.fingerprint in read_signers(listed)
    listed.write_text(f"@revoked * {line}\n")
    with pytest.raises(UsageError, match="@revoked"):
        read_signers(listed)
