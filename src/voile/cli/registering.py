"""Commands of the steward's register: what has left, what it adds up to, and what may leave."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from voile.cli.common import JsonOpt, RegisterOpt, WithDefault, commands, group_of
from voile.terminal import say, show
from voile.terminal.registers import account_view, accounts_view

if TYPE_CHECKING:
    from voile.register import Register

registering = group_of("Look at what has left of each data set, and limit it.", WithDefault)
commands.add_typer(registering, name="register")

NameArg = Annotated[str, typer.Argument(metavar="NAME", help="The data set.")]


def opened(register: str | None) -> Register:
    """The register that is named, or the usual one."""
    from voile.register import Register

    return Register.open(register)


@registering.command(WithDefault.DEFAULT)
def default(register: RegisterOpt = None, as_json: JsonOpt = False) -> None:
    """List the data sets, with what has left of each and what all of it adds up to."""
    found = opened(register)
    accounts = found.accounts()
    for note in found.notes():
        say(f"note: {note}")
    data = [account.to_dict() for account in accounts]
    show(data if as_json else None, lambda: accounts_view(accounts, str(found.place)))


@registering.command("show")
def show_account(
    name: NameArg,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Write a page to this FILE.html.")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace that file.")] = False,
    register: RegisterOpt = None,
    as_json: JsonOpt = False,
) -> None:
    """Show the account of one data set over time, or write it as a page."""
    whole = opened(register)
    found = whole.account(name)
    for note in whole.notes():
        say(f"note: {note}")
    if output is not None:
        from voile.evaluate.account_page import account_page
        from voile.files import write_whole
        from voile.kinds.staging import check_outside

        check_outside(output)
        write_whole(output, account_page(found), overwrite=overwrite)
        say(f"wrote {output}; it is about what the register holds: do not publish it")
    show([found.to_dict()] if as_json else None, lambda: account_view(found))


@registering.command()
def limit(
    name: NameArg,
    epsilon: Annotated[
        float | None, typer.Option(help="What all releases together may cost.")
    ] = None,
    delta: Annotated[float, typer.Option(help="The δ of that ε; 0 for a pure one.")] = 0.0,
    unit: Annotated[str, typer.Option(help="exchange, add-remove or person.")] = "exchange",
    none: Annotated[bool, typer.Option("--none", help="Lift the limit.")] = False,
    register: RegisterOpt = None,
    as_json: JsonOpt = False,
) -> None:
    """Refuse releases of a data set that would cost more than this, all of them together."""
    from typing import Any, cast

    from voile.errors import UsageError
    from voile.register import SpendingLimit

    if (epsilon is None) != none:
        raise UsageError("a limit is --epsilon, or --none", hint=f"--epsilon 4, for {name}")
    chosen = None if epsilon is None else SpendingLimit(epsilon, delta, cast("Any", unit))
    found = opened(register).set_limit(name, chosen)
    if (excess := found.excess()) and found.left:
        say(f"note: what has left is beyond it already: {excess}")
    for other, one in found.limits:
        if other != name:
            say(f"note: {other!r} is another name of it, with a limit of {one.words}")
    show([found.to_dict()] if as_json else None, lambda: account_view(found))


@registering.command()
def withdraw(
    name: NameArg,
    release: Annotated[
        str, typer.Argument(metavar="RELEASE", help="Its path as it was given, or its digest.")
    ],
    note: Annotated[str, typer.Option(help="Why.")] = "",
    register: RegisterOpt = None,
    as_json: JsonOpt = False,
) -> None:
    """Note that a release was withdrawn. It still counts: it was public."""
    found = opened(register).withdraw(name, release, note)
    show([found.to_dict()] if as_json else None, lambda: account_view(found))


@registering.command()
def backup(
    to: Annotated[Path, typer.Argument(metavar="TO", help="The file to write.")],
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace that file.")] = False,
    register: RegisterOpt = None,
    as_json: JsonOpt = False,
) -> None:
    """Copy the register to a file, and its key to another beside it."""
    written = [str(path) for path in opened(register).backup(to, overwrite=overwrite)]
    if as_json:
        show({"written": written}, None)
    else:
        say(f"wrote {' and '.join(written)}: keep them where only you can read them")


@registering.command()
def accept(register: RegisterOpt = None, as_json: JsonOpt = False) -> None:
    """Go on with an old copy that was put back; what left since it was made is not in it."""
    from voile.units import counted

    found = opened(register)
    lost = found.accept()
    if as_json:
        show({"register": str(found.place), "changes_missing": lost}, None)
    elif lost:
        say(
            f"note: up to {counted(lost, 'change')} are not in it: totals are of what it knows. "
            "If the newer one turns up, take it in with voile register merge"
        )
    else:
        say(f"{found.place} is not an old copy: nothing was changed")


@registering.command()
def merge(
    other: Annotated[
        str, typer.Argument(metavar="OTHER", help="The register to take in: a file or address.")
    ],
    register: RegisterOpt = None,
    as_json: JsonOpt = False,
) -> None:
    """Take in all that another register knows; nothing is taken twice."""
    from voile.units import counted

    done = opened(register).merge(opened(other))
    for key in done.keys_missing:
        say(f"note: the key {key} is missing: rows of its tables are recognised by name alone")
    if as_json:
        show(done.to_dict(), None)
    else:
        say(f"took in {counted(done.entries, 'release')} and {counted(done.limits, 'limit')}")
