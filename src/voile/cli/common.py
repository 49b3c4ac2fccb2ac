"""What the commands share: where they register, their common arguments, and how those are read."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

commands = typer.Typer()
"""Where every module of this folder registers its commands; `Program` takes them from here."""

PLACES: list[tuple[Path, int | None]] = []
"""Where a command puts its release, and what was there when it began."""

KEPT: list[str] = []
"""What an interrupted command leaves behind on purpose, in words."""


def inode(path: Path) -> int | None:
    """Which folder or file it is, None if there is none."""
    try:
        return path.stat().st_ino
    except OSError:
        return None


def is_released() -> bool:
    """Whether a release has been put in its place, from where nobody can take it back."""
    return any(inode(place) not in (None, before) for place, before in PLACES)


TableArg = Annotated[
    str,
    typer.Argument(
        metavar="TABLE",
        help="CSV, TSV, Parquet, Arrow, DuckDB, SQLite, .xlsx, .sav, .dta or .rds file, folder or "
        "glob; FILE::TABLE; postgresql://…::TABLE; or dataset:NAME.",
    ),
]
ReleaseArg = Annotated[Path, typer.Argument(metavar="RELEASE", help="A release's folder.")]
SqlArg = Annotated[str, typer.Argument(metavar="SQL", help="select count(*) from name where …")]
WithOpt = Annotated[
    list[str] | None,
    typer.Option("--with", help="NAME=TABLE: a table of your own that the SQL may look up in."),
]
MemoryOpt = Annotated[str, typer.Option(help="What counting the domain may use, e.g. 4GB.")]
RefineOpt = Annotated[
    bool | None,
    typer.Option(
        "--refine/--no-refine",
        help="Weigh estimates against a model fitted to the same release, or not "
        "(marginals have one and use it).",
    ),
]
ExactOpt = Annotated[
    bool, typer.Option("--exact", help="Refuse rather than estimate a count of the domain.")
]
CheckOpt = Annotated[
    bool,
    typer.Option(
        "--check/--no-check",
        help="Hash files that were not seen before or were touched; sizes are always compared.",
    ),
]
CsvSafeOpt = Annotated[
    bool,
    typer.Option(
        "--csv-safe",
        help="In CSV, put an apostrophe before texts that a spreadsheet would compute.",
    ),
]
JsonOpt = Annotated[bool, typer.Option("--json", help="Print JSON with stable keys.")]
ColumnsOpt = Annotated[
    str | None, typer.Option("--columns", help="Columns to use: a,b,c (quote names with commas).")
]
KeyArg = Annotated[
    Path, typer.Argument(metavar="KEY", help="An Ed25519 key: of voile keygen, or of OpenSSH.")
]
SignOpt = Annotated[
    Path | None,
    typer.Option("--sign", metavar="KEY", help="Sign the release with this key: see voile sign."),
]
RegisterOpt = Annotated[
    str | None,
    typer.Option(
        "--register",
        metavar="PATH",
        help="The steward's register: a file, or postgresql://…; else VOILE_REGISTER, else the "
        "user's own.",
    ),
]
NoRegisterOpt = Annotated[
    bool, typer.Option("--no-register", help="Write nothing down; the release says so.")
]


SparkOpt = Annotated[
    str | None,
    typer.Option(
        "--spark",
        metavar="ADDRESS",
        help="The table is one that a cluster reads: sc://HOST:PORT/;use_ssl=true of a Spark "
        "Connect server, or local for one in this process.",
    ),
]


def source_of(table: str, spark: str | None) -> Any:
    """What a command names: a table of this machine, or of a cluster."""
    if spark is None:
        return table
    from voile.engines.spark import SparkSource

    return SparkSource(spark, table)


def place_of(output: str | None, name: str) -> Any:
    """Where a release is put: a folder, or the URL of one."""
    from voile.storage import is_url

    if output is None:
        return Path(f"{name}.voile")
    return output if is_url(output) else Path(output)


def read_table(table: str, reading: Any, spark: str | None = None) -> Any:
    """The table that a command names, read as its flags say; what that did is said."""
    import voile
    from voile.terminal import say_notes

    source = voile.read(source_of(table, spark), **reading.given_keywords())
    say_notes(source.notes)
    return source


def key_of(path: Path | None, name: str | None = None) -> Any:
    """The key of a file; its passphrase is asked for on a terminal."""
    if path is None:
        return None
    from voile.signing import SigningKey

    return SigningKey.read(path, name=name, ask=ask_passphrase())


def signed_data(data: dict[str, Any], key: Any) -> dict[str, Any]:
    """What a command says with --json, and whose key has signed."""
    return {**data, "signed_by": None if key is None else key.fingerprint}


def ask_passphrase() -> Any:
    """Asks for a passphrase where somebody can answer; None where nobody can."""
    import getpass
    import sys

    return getpass.getpass if sys.stdin.isatty() else None


def register_of(register: str | None, no_register: bool) -> Any:
    """The register that the two flags mean; None where nothing is to be written down."""
    from voile.errors import UsageError
    from voile.register import chosen_register

    if no_register and register is not None:
        raise UsageError("--register and --no-register exclude each other", hint="say one of them")
    return chosen_register(False if no_register else register)


def own_tables(given: list[str] | None) -> dict[str, str]:
    """NAME=TABLE options by name."""
    from voile.errors import UsageError

    found: dict[str, str] = {}
    for text in given or []:
        name, equals, source = text.partition("=")
        if not equals or not name or not source:
            raise UsageError(
                f"--with {text!r} is not NAME=TABLE", hint="--with regions=regions.csv"
            )
        if name in found:
            raise UsageError(f"--with names {name!r} twice", hint="give each table its own name")
        found[name] = source
    return found


def check_output(path: Path, release: Path, *, overwrite: bool) -> None:
    """Refuse before any work is done: a release is sealed, and files are not lost by accident."""
    from voile.errors import UsageError
    from voile.files import check_free, lies_within
    from voile.kinds.staging import check_outside

    if lies_within(path, release):
        raise UsageError(f"{str(path)!r} is inside the release", hint="write it elsewhere")
    check_outside(path)
    check_free(path, overwrite=overwrite)


def refuse_table(output: Path, table: str) -> None:
    """What is read is never written over, whatever else may be replaced."""
    from voile.engines import files_of
    from voile.errors import UsageError

    if output.exists() and any(output.samefile(file) for file in files_of(table)):
        raise UsageError(f"{str(output)!r} is the table itself", hint="name another file")


def names_in(text: str | None) -> list[str] | None:
    """The names that an option lists; None where it is not given."""
    if text is None:
        return None
    from voile.options import split_names

    return split_names(text)


# ----------------------------------------------------------------------
# commands of commands: `voile serve run`, and groups that are a command by themselves too


class WithDefault(TyperGroup):
    """A group whose first argument may be left out: then the command called `DEFAULT` is meant."""

    DEFAULT = "default"

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put the default command in front where none is named."""
        completes = ctx.resilient_parsing and not args  # a shell asks what could come next
        if not completes and (not args or args[0] not in self.commands):
            args = [self.DEFAULT, *args]
        return super().parse_args(ctx, args)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command that is called; the default's --help names the others."""
        name, command, rest = super().resolve_command(ctx, args)
        if command is not None and name == self.DEFAULT:
            others = ", ".join(each for each in self.list_commands(ctx) if each != self.DEFAULT)
            command.epilog = f"{ctx.command_path} COMMAND --help: {others}"
            name = ""  # so that it is not said to be called so
        return name, command, rest

    def shell_complete(self, ctx: Any, incomplete: str) -> list[Any]:
        """What a shell offers: every command but the one that needs no name."""
        found = super().shell_complete(ctx, incomplete)
        return [each for each in found if each.value != self.DEFAULT]


def in_order(names: tuple[str, ...]) -> type[TyperGroup]:
    """A group that lists its commands in this order, in whichever files they are."""

    class Ordered(TyperGroup):
        def list_commands(self, ctx: Any) -> list[str]:
            return sorted(super().list_commands(ctx), key=names.index)

    return Ordered


def flat(group: Any, prefix: str = "") -> dict[str, Any]:
    """Every command by the words that call it, in the order of --help."""
    found: dict[str, Any] = {}
    for name in group.list_commands(None):
        command = group.commands[name]
        called = prefix.strip() if name == WithDefault.DEFAULT else f"{prefix}{name}"
        if isinstance(command, TyperGroup):
            found |= flat(command, f"{called} ")
        else:
            found[called] = command
    return found


def group_of(
    help_text: str, cls: type[TyperGroup] = TyperGroup, *, completion: bool = False
) -> typer.Typer:
    """A new group, to be added to the commands by its name."""
    return typer.Typer(
        help=help_text,
        cls=cls,
        no_args_is_help=cls is not WithDefault,
        add_completion=completion,
        rich_markup_mode="rich",
        context_settings={"help_option_names": ["-h", "--help"]},
    )
