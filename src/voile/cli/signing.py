"""Commands that vouch for releases: make a key, sign."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from voile.cli.common import JsonOpt, KeyArg, ReleaseArg, ask_passphrase, commands, key_of
from voile.terminal import say, show

NameOpt = Annotated[
    str | None, typer.Option(help="What signatures call you (else the key's comment).")
]


@commands.command()
def sign(
    release: ReleaseArg,
    key: KeyArg,
    name: NameOpt = None,
    as_json: JsonOpt = False,
) -> None:
    """Vouch for a release with your key, beside whoever has signed it already."""
    from voile.kinds.signatures import sign
    from voile.terminal.publications import signed_view

    done = sign(release, key_of(key, name))
    if not done.added:
        say(f"note: {done.signed_by} has signed this release before; nothing was changed")
    if done.release.manifest.simulated:
        say("note: the release is simulated, and the signature says so")
    show(done.to_dict() if as_json else None, lambda: signed_view(done))


@commands.command()
def keygen(
    key: Annotated[Path, typer.Argument(metavar="KEY", help="The new key; KEY.pub is beside it.")],
    name: NameOpt = None,
    encrypt: Annotated[
        bool, typer.Option("--encrypt", help="Encrypt it with a passphrase, which is asked for.")
    ] = False,
    as_json: JsonOpt = False,
) -> None:
    """Make a key that signs releases, and its public half for those who verify them."""
    from voile.signing import SigningKey
    from voile.signing.keys import new_passphrase
    from voile.terminal.publications import key_view

    passphrase = new_passphrase(ask_passphrase()) if encrypt else None
    made = SigningKey.new(name or "")
    made.save(key, passphrase=passphrase)
    data = {
        "key": str(key),
        "public_key": f"{key}.pub",
        "fingerprint": made.fingerprint,
        "name": made.name,
        "encrypted": encrypt,
    }
    show(data if as_json else None, lambda: key_view(data))
