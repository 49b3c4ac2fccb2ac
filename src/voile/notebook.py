"""`%load_ext voile`: questions to releases in cells of their own, in Jupyter and IPython."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

from IPython.core.error import UsageError as WrongCall
from IPython.core.magic import Magics, line_cell_magic, magics_class
from IPython.core.magic_arguments import argument, magic_arguments, parse_argstring
from IPython.display import display

import voile
from voile.errors import UsageError, VoileError
from voile.release import Release


class OpenedRelease:
    """A release as a line shows it: what it is, what it promises, and what may be asked."""

    def __init__(self, release: Release) -> None:
        self.release = release

    def __repr__(self) -> str:
        found = self.release
        columns = ", ".join(found.schema.names)
        return f"{found.name}: {found.kind}. {found.promise_in_short}. Columns: {columns}"

    def _repr_html_(self) -> str:
        import html  # noqa: PLC0415  (only in a notebook with pages)

        found = self.release
        about = html.escape(f"{found.name}: {found.kind}. {found.promise_in_short}.")
        return f"<p>{about}</p>{found.schema._repr_html_()}"


@magics_class
class VoileMagics(Magics):
    """%voile and %%voile; the release that was named last is asked where none is named."""

    def __init__(self, shell: Any) -> None:
        super().__init__(shell)
        self._opened: dict[str, tuple[Any, Release]] = {}
        self._current: Release | None = None

    @magic_arguments()
    @argument("release", nargs="*", help="A release's folder or URL, or the name of a variable.")
    @argument("-o", "--output", help="Keep the answer in a variable of this name.")
    @argument("--confidence", type=float, default=0.95, help="Of the intervals.")
    @argument("--simultaneous", action="store_true", help="Intervals that hold for all groups.")
    @argument("--refine", action="store_true", help="Weigh estimates against a fitted model.")
    @argument("--method", help="inversion or em; uniform or entropy.")
    @argument(
        "--with",
        dest="tables",
        action="append",
        default=[],
        metavar="NAME",
        help="A variable with a table of your own, or NAME=VARIABLE; repeatable.",
    )
    @line_cell_magic
    def voile(self, line: str, cell: str | None = None) -> Any:
        """Open a release (%voile people.voile), or ask it what the cell says in SQL (%%voile)."""
        try:
            return self._run(parse_argstring(self.voile, line), cell)
        except VoileError as error:
            # Without a traceback, which would point into our code; the cell fails all the same.
            raise WrongCall(str(error)) from None

    def _run(self, given: Any, cell: str | None) -> Any:
        words = [unquoted(word) for word in given.release]
        if cell is None and words and words[0].lower() in ("select", "with"):
            cell, words = " ".join(given.release), []
        release = self._release(words)
        if cell is None:
            display(OpenedRelease(release))
            return None
        answer = release.query(
            cell.strip().rstrip(";"),
            given.confidence,
            tables=self._tables(given.tables),
            simultaneous=given.simultaneous,
            refine=True if given.refine else None,
            method=given.method,
        )
        if given.output:
            if not given.output.isidentifier():
                raise UsageError(f"-o {given.output!r} is no name", hint="such as -o answer")
            self.shell.user_ns[given.output] = answer
        display(answer)
        return None

    def _release(self, words: list[str]) -> Release:
        """The release that is named, or the one of the last call."""
        if len(words) > 1:
            raise UsageError(
                f"two releases are named: {' and '.join(words[:2])}", hint="name one; quote spaces"
            )
        if words:
            self._current = self._named(words[0])
        if self._current is None:
            raise UsageError("no release is open", hint="%voile people.voile opens one")
        return self._current

    def _named(self, name: str) -> Release:
        found = self.shell.user_ns.get(name)
        if isinstance(found, Release):
            return found
        if found is not None and not Path(name).exists():
            raise UsageError(
                f"the variable {name!r} is a {type(found).__name__}, not a release",
                hint="name a folder, or a variable that voile.open gave",
            )
        state = state_of(name)
        kept = self._opened.get(name)
        if kept is None or kept[0] != state or state is None:
            self._opened[name] = (state, voile.open(name))
        return self._opened[name][1]

    def _tables(self, given: list[str]) -> dict[str, object]:
        """Variables by the names that the SQL has for them."""
        found: dict[str, object] = {}
        for text in given:
            name, _, variable = text.partition("=")
            if (variable or name) not in self.shell.user_ns:
                raise UsageError(
                    f"{text!r}: there is no variable {variable or name!r}",
                    hint="make it in a cell before: regions = pandas.read_csv(…)",
                )
            found[name] = self.shell.user_ns[variable or name]
        return found


def unquoted(word: str) -> str:
    """A word of the line without its quotes."""
    try:
        return "".join(shlex.split(word))
    except ValueError:
        return word


def state_of(name: str) -> Any:
    """By which a release on disk is known to be the same; None elsewhere."""
    try:
        found = (Path(name) / "manifest.json").stat()
    except (OSError, ValueError):
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size


def load_ipython_extension(shell: Any) -> None:
    """What `%load_ext voile` calls."""
    shell.register_magics(VoileMagics(shell))
