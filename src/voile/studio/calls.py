"""What a screen does as a command and as a line of Python, and as the call itself."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from voile.errors import UsageError, in_shell, spelled
from voile.options.reading import ReadingOptions
from voile.studio.project import Project

CLASS_METHODS = ("mondrian", "anatomy", "fulldomain", "suppress", "freeshape", "trivial")
"""Methods that group rows, and ask what each column is for."""
FLAGS = {
    "hierarchies": "--hierarchy",
    "output": "-o",
    "file": "--from",
    "subsets": "--subset",
    "id_column": "--id",
}
"""Options that a command calls otherwise than Python."""


@dataclass(frozen=True)
class ShownCall:
    """One call: of a command, and of a function of the Python interface.

    `function` is what a script writes, such as `voile.publish`; empty where only a shell does it.
    `verb` are the words of the command. `positional` come after the table.
    """

    verb: str
    function: str
    table: str
    reading: Mapping[str, Any] = field(default_factory=dict)
    positional: Sequence[str] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    imports: str = "import voile"
    reads: bool = True
    """Whether the first argument is a table, which is read first; else it is what is opened."""
    unsaid: Sequence[str] = ()
    """Options of reading for which the command has no flag."""
    script: str = ""
    """The Python, where it is not one call; `TABLE` in it is the table, read as it should be."""

    def command(self) -> str:
        """As a shell takes it."""
        words = ["voile", *self.verb.split(), shlex.quote(self.table)]
        words += [shlex.quote(word) for word in self.positional]
        said = {name: value for name, value in self.reading.items() if name not in self.unsaid}
        words += [shlex.quote(word) for word in ReadingOptions(**said).words()]
        with in_shell():
            words += [flag for name, value in self.options.items() for flag in flags(name, value)]
        return " ".join(words)

    def python(self) -> str:
        """As a program writes it."""
        if self.script:
            how = "".join(f", {name}={value!r}" for name, value in self.reading.items())
            return self.script.replace("TABLE", f"voile.read({self.table!r}{how})")
        given = [*map(repr, self.positional)]
        given += [f"{name_in_python(name)}={value!r}" for name, value in self.options.items()]
        lines = [self.imports, ""]
        if self.reads and self.reading:
            how = ", ".join(f"{name}={value!r}" for name, value in self.reading.items())
            lines.append(f"table = voile.read({self.table!r}, {how})")
            given = ["table", *given]
        else:
            given = [repr(self.table), *given]
        call = f"{self.function}({', '.join(given)})"
        if len(call) > 88:
            call = f"{self.function}(\n" + "".join(f"    {each},\n" for each in given) + ")"
        return "\n".join([*lines, call])


def quoted(name: str) -> str:
    """A name of a table or a column in SQL."""
    return '"' + name.replace('"', '""') + '"'


def in_sql(value: Any) -> str:
    """A value in SQL."""
    return "'" + value.replace("'", "''") + "'" if isinstance(value, str) else str(value)


def name_in_python(name: str) -> str:
    """The keyword of an option."""
    return "to" if name == "output" else name


def flags(name: str, value: Any) -> list[str]:
    """An option as flags; one that is repeated for each of its values is so here."""
    flag = FLAGS.get(name, "")
    if isinstance(value, Mapping):
        return [spelled(name, f"{column}={given}", flag=flag) for column, given in value.items()]
    if name in ("on", "null_text"):
        return [spelled(name, each, flag=flag) for each in value]
    if value is None:
        return []
    return [spelled(name, value, flag=flag)]


# ---------------------------------------------------------------------- calls of a project


def publish_options(
    project: Project,
    columns: Sequence[str],
    *,
    method: str | None = None,
    options: Mapping[str, Any] | None = None,
    schema: str = "",
) -> dict[str, Any]:
    """The keywords of `voile.publish`: a project's own, or those of a candidate.

    `columns` are all of the table. `schema` is the file of the codebook that the project declares.
    """
    method = method or project.method
    found: dict[str, Any] = {} if method == "auto" else {"method": method}
    kept = project.columns(columns)
    if method in CLASS_METHODS:
        check_rows_are_people(project)
        known = set(columns)
        found |= {
            "qi": [name for name in project.named("quasi-identifier") if name in known],
            "sensitive": [name for name in project.named("sensitive") if name in known],
        }
        others = [n for n in kept if n not in found["qi"] and n not in found["sensitive"]]
        left_out = [name for name in columns if name not in kept]
        found |= {"insensitive": others} if others else {}
        found |= {"identifiers": left_out} if left_out else {}
        if project.hierarchies:
            found["hierarchies"] = {
                name: file for name, file in project.hierarchies.items() if name in found["qi"]
            }
    else:
        if len(kept) < len(columns) - (project.person is not None):
            found["columns"] = kept
        if project.person is not None:
            found["person"] = project.person
            if project.rows_per_person is not None:
                found["rows_per_person"] = project.rows_per_person
        if method == "auto" and project.questions:
            found["on"] = list(project.questions)
    if schema:
        found["schema"] = schema
    elif project.codebook == "table":
        found["schema"] = "active"
    if project.nulls != "error":
        found["nulls"] = project.nulls
    return {**found, **(project.options if options is None else options)}


NO_RELEASE = {
    1: ("nobody is to be trusted with the rows as they are, so no release is made of them",
        "begin a survey with `voile spec` and `voile collect`"),
    2: ("nothing may leave but answers, so no release is made", "set up a server"),
}  # fmt: skip
"""Answers to the question about the promise after which nothing is published, and what is done."""


def no_release(project: Project) -> str:
    """Why a project publishes nothing, by what its steward answered; empty where it may."""
    return NO_RELEASE[project.need][0] if project.need in NO_RELEASE else ""


def check_release_is_wanted(project: Project) -> None:
    """Refuse to publish what is not to leave."""
    if why := no_release(project):
        instead = NO_RELEASE[project.need][1]
        raise UsageError(
            f"by the first question of the Promise screen, {why}",
            hint=f"{instead}; or choose another answer there",
        )


def server_options(project: Project, columns: Sequence[str], *, schema: str = "") -> dict[str, Any]:
    """What `voile.serve.begin` takes over from a project: columns or codebook, whose rows."""
    found: dict[str, Any] = {}
    kept = project.columns(columns)
    if schema:
        found["schema"] = schema
    elif len(kept) < len(columns):
        found["columns"] = kept
    if project.person is not None:
        found["person"] = project.person
        if project.rows_per_person is not None:
            found["per_person"] = project.rows_per_person
    return found


def check_rows_are_people(project: Project) -> None:
    """Classes count rows: ten rows of one person would be a class of ten."""
    if project.person is not None:
        raise UsageError(
            f"classes count rows, and {project.person!r} says that people have several",
            hint="on the Table screen, say that each row is one person; or choose another promise",
        )


def publish_call(project: Project, columns: Sequence[str], **chosen: Any) -> ShownCall:
    """Publishing as the project says; `chosen` are those of `publish_options`."""
    output, sign = project.output, project.sign
    options = publish_options(project, columns, **chosen)
    if output:
        options["output"] = output
    if sign:
        options["sign"] = sign
    return ShownCall("publish", "voile.publish", project.source, project.reading, options=options)
