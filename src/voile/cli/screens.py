"""What --help of a command shows: one screen, an example, and the options that matter first.

Options that find no place are named there, and `--help-all` describes every one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

LINES = 40
"""Of a screen."""
WIDEST = 100
"""Columns, however wide the terminal is: longer lines are hard to read."""
KINDS = {"int": "N", "float": "NUMBER", "Path": "PATH"}
"""What stands for a value, by its type; all others are TEXT."""
SHOWN = {
    "studio": ("people.csv", "--no-browser --port --public"),
    "studio run": ("people.voile-project", "--output --overwrite"),
    "inspect": ("people.csv", "--all --na --columns"),
    "schema": ("people.csv -o people.yaml", "--output --columns --nulls"),
    "hierarchy": ("people.csv age --equal-width 5 -o age.csv", "--equal-width --prefixes --output"),
    "plan": ("people.csv", "--epsilon --on --max-error"),
    "boundary": ("people.csv -o boundary.html", "--prior --posterior --output"),
    "frontier": ("people.csv --qi age,sex --sensitive illness -o out", "--methods --grid"),
    "publish": ("people.csv -o people.voile", "--epsilon --columns --method"),
    "sign": ("people.voile steward.key", "--name"),
    "keygen": ("steward.key", "--name --encrypt"),
    "verify": ("people.voile --signer steward.key.pub", "--signer --revoked --spark"),
    "describe": ("people.voile", "--check --spark"),
    "generalize": ("people.csv --qi age,sex --k 5 -o coarse.csv", "--qi --sensitive --k"),
    "register": ("", "--register"),
    "register show": ("people", "--output --register"),
    "register limit": ("people --epsilon 4", "--epsilon --delta --none"),
    "register withdraw": ('people people.voile --note "wrong year"', "--note"),
    "register backup": ("register.backup", "--overwrite"),
    "register accept": ("", "--register"),
    "register merge": ("other.db", "--register"),
    "perturb": ("people.csv --retention 0.5 -o rows.voile", "--output --columns --most-epsilon"),
    "spec": ("survey.yaml --retention 0.5 -o spec.json", "--columns --most-epsilon --name"),
    "collect": ("--store answers --spec spec.json", "--spec --release --listen"),
    "combine": ("north.voile south.voile -o all.voile", "--name --sign --overwrite"),
    "query": ('people.voile "select avg(age) from people"', "--confidence --output --with"),
    "explain": ('people.voile "select avg(age) from people"', "--with --memory --exact"),
    "refine": ("people.voile", "--check"),
    "rows": ("people.voile -n 1000 -o synthetic.parquet", "--number --csv-safe --overwrite"),
    "export": ("people.voile -o people.sql", "--format --tables --number"),
    "shell": ("people.voile", "--command --with --check"),
    "wire": ("people.voile --port 5433 --trust", "--port --token-file --trust"),
    "serve init": ("clinic --table people.csv --queries 100", "--epsilon --delta --columns"),
    "serve token": ("clinic --analyst ana --queries 50", "--queries --expires --output"),
    "serve group": ("clinic students --queries 30", ""),
    "serve revoke": ("clinic --analyst ana", "--analyst --token"),
    "serve run": ("clinic --port 8521", "--port --workers --certificate"),
    "serve status": ("clinic", ""),
    "serve log": ("clinic", "--show"),
    "serve recover": ("clinic", "--ledger-is-whole"),
    "serve audit": ("clinic", "--ids"),
    "ask": (
        'https://host "select count(*) from people" --token-file token.txt',
        "--token-file --dry-run --confidence",
    ),
    "mine": (
        '"a.smokes and b.ill" --db a=https://north --db b=https://south',
        "--token-file --error --dry-run",
    ),
    "sulq simulate": ("--queries 100 -o walks.html", "--queries --delta --output"),
    "tree": ("rows.voile --target salary", "--depth --min-support --test"),
    "rules": ("rows.voile --support 0.1", "--support --confidence --longest"),
    "guarantees": ("people.voile", "--not-promised --check"),
    "convert": ('"dp(epsilon=1)" --to breach', "--to"),
    "risk": ("people.csv --qi age,sex --sensitive illness", "--qi --sensitive --output"),
    "exposure": ("rows.voile", "--breach"),
    "attack": ("view.voile --targets targets.csv -o attack.html", "--targets --prior --output"),
    "attack reconstruct": ("--rows 1000 --questions 4000", "--rows --questions --output"),
    "audit": ("alphabeta", "--runs --weaken --failure"),
    "loss": ("people.csv classes.voile --sensitive illness", "--sensitive --qi --output"),
    "datasets": ("", ""),
    "demo": ("-o out", "--output"),
    "reproduce": ("vldb07-fig3 -o out", "--output --quick --list"),
}  # fmt: skip
"""Of each command what one types behind its name, and the options that matter first."""


def print_screen(name: str, command: Any) -> None:
    """Print the help of a command on one screen: all options where they fit, else the first."""
    console = Console(highlight=False)
    width = min(console.width, WIDEST)
    options = ordered(name, command)
    needed = [each for each in options if each.required]
    first = [each for each in options if longest(each) in SHOWN[name][1].split()]
    some = [*needed, *(each for each in first if each not in needed)]
    for shown in (options, some):
        page = Group(*screen(name, command, shown, options))
        if len(console.render_lines(page, console.options.update(width=width))) < LINES:
            break
    console.print(page, width=width)


def screen(name: str, command: Any, shown: Sequence[Any], options: Sequence[Any]) -> Iterator[Any]:
    """The parts of a screen on which some of the options are described."""
    given, _ = SHOWN[name]
    arguments = [each for each in command.params if each.param_type_name == "argument"]
    words = [metavar(each) for each in arguments] + [spelled(o) for o in shown if o.required]
    yield Text(" ".join(["Usage: voile", name, *words, "[OPTIONS]"]))
    yield Text(f"\n{command.help}\n")
    yield Text(f"  {f'voile {name} {given}'.rstrip()}\n", style="bold")
    listing = Table(box=None, show_header=False, padding=(0, 2, 0, 0), pad_edge=False)
    listing.add_column(style="cyan", ratio=2)
    listing.add_column(ratio=5)
    for each in arguments:
        listing.add_row(Text(metavar(each)), Text(each.help or ""))
    for each in shown:
        listing.add_row(Text(spelled(each)), Text(described(each)))
    yield listing
    rest = [longest(each) for each in options if each not in shown]
    if rest:
        yield Text(f"\nAlso {' '.join(rest)}")
        yield Text(f"\nvoile {name} --help-all describes all {len(options)} options.")
    if command.epilog:
        yield Text(f"\n{command.epilog}")


def ordered(name: str, command: Any) -> list[Any]:
    """A command's options: those that it needs and those that matter first, then the others."""
    first = SHOWN[name][1].split()
    options = [
        each
        for each in command.params
        if each.param_type_name == "option" and each.name != "help" and not each.hidden
    ]
    place = {flag: i for i, flag in enumerate(first)}
    return sorted(options, key=lambda o: (not o.required, place.get(longest(o), len(first))))


def longest(option: Any) -> str:
    """An option by its full name."""
    return str(max(option.opts, key=len))


def metavar(argument: Any) -> str:
    """An argument as the usage names it."""
    name = str(argument.metavar or argument.name.upper())
    return name if argument.required or name.startswith("[") else f"[{name}]"


def spelled(option: Any) -> str:
    """An option as one types it, with what stands for its value."""
    names = sorted(option.opts, key=len)
    if option.secondary_opts:
        return f"{names[-1]}, {option.secondary_opts[0]}"
    if option.is_flag:
        return ", ".join(names)
    kind = getattr(option.type_descriptor.annotation, "__name__", "")
    return f"{', '.join(names)} {option.metavar or KINDS.get(kind, 'TEXT')}"


def described(option: Any) -> str:
    """What an option does, and its default."""
    said = option.help or ""
    if option.required:
        return f"{said} Required."
    if option.is_flag or option.default is None:
        return said
    return f"{said} Default {option.default}."
