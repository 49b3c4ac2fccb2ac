"""Flags made from models of options: a field is a flag, and what is given becomes the model."""

from __future__ import annotations

import inspect
import shlex
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, get_args, get_origin

import typer
from pydantic.fields import FieldInfo

from voile.errors import UsageError
from voile.options import Options, flag_of
from voile.options.reading import ReadingOptions

Made = TypeVar("Made", bound=Options)
PLAIN = (bool, int, float, Path, str)
"""What a flag may hold as it is, in the order in which a union is tried."""


@dataclass(frozen=True)
class Given:
    """What was typed: values of fields by name, as their models take them."""

    values: Mapping[str, Any]
    """Only what stands on the command line; the models know the defaults."""
    models: Sequence[type[Options]]

    def options(self, model: type[Made], **more: Any) -> Made:
        """The options of one model, from all that was typed."""
        return model(**self.values, **more)

    def check_belong(self, model: type[Options], method: str) -> None:
        """Refuse flags that the method knows nothing of, rather than ignore them."""
        for name in self.values:
            if name in model.keywords():
                continue
            owner = next(other for other in self.models if name in other.keywords())
            home = owner.model_fields["method"].default
            raise UsageError(
                f"{owner.spelled(name)} belongs to --method {home}, not to {method}",
                hint=model.instead(name) or f"leave it out, or say --method {home}",
            )


@dataclass(frozen=True)
class FieldFlag:
    """The flag of a field."""

    name: str
    field: FieldInfo
    help: str
    panel: str | None
    """The panel of --help that it stands in."""

    @property
    def spelling(self) -> str:
        """The flag as it is typed."""
        return flag_of(self.field).name or f"--{self.name.replace('_', '-')}"

    @property
    def parameter(self) -> inspect.Parameter:
        """As Typer takes it."""
        reads, required = flag_of(self.field).reads, self.field.is_required()
        default = None if reads else self.field.default
        kind = reads.kind if reads else kind_of(self.field)
        if not required and default is None:
            kind = kind | None
        both = flag_of(self.field).negated
        flags = f"{self.spelling}/--no-{self.spelling[2:]}" if both else self.spelling
        option = typer.Option(flags, help=self.help, rich_help_panel=self.panel)
        return inspect.Parameter(
            self.name,
            inspect.Parameter.KEYWORD_ONLY,
            annotation=Annotated[kind, option],
            default=inspect.Parameter.empty if required else default,
        )

    def read(self, typed: Any) -> Any:
        """What was typed, as the model takes it."""
        reads = flag_of(self.field).reads
        return typed if reads is None else reads.read(self.spelling, typed)


def with_flags(
    *models: type[Options],
    only: Sequence[str] | None = None,
    without: Sequence[str] = ("method",),
    after: Mapping[str, str] | None = None,
    last: Sequence[str] = (),
    helps: Mapping[str, str] | None = None,
    panels: Mapping[type[Options], str] | None = None,
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command a flag for each field, and `given`, what was typed of them.

    Flags stand behind the command's own parameters, in the order of the fields; those of `last` at
    the end. `after` puts a parameter of the command behind another one. A parameter of the command
    that is called like a field takes its place. `helps` has another help for a field, `panels` the
    panel of --help for a model's fields.
    """
    flags: dict[str, FieldFlag] = {}
    for model in models:
        for name, field in model.keywords().items():
            if name not in without and (only is None or name in only):
                text = (helps or {}).get(name) or flag_of(field).help
                flags.setdefault(name, FieldFlag(name, field, text, (panels or {}).get(model)))

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        own = dict(inspect.signature(command, eval_str=True).parameters)
        del own["given"]
        made = {
            name: own.get(name) or flags[name].parameter
            for name in ordered([*own, *flags], after or {}, last)
        }

        def run(context: typer.Context, **typed: Any) -> None:
            values = {
                name: typed[name] if name in own else flag.read(typed[name])
                for name, flag in flags.items()
                if is_typed(context, name)
            }
            mine = {name: context if name == "context" else typed[name] for name in own}
            command(given=Given(values, models), **mine)

        return dressed(run, command, made)

    return decorate


AS_IT_IS = ReadingOptions()
"""Nothing is said about how text is written."""


def with_reading(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the flags that say how a table's text is written, where it has `reading`.

    The command gets them as `ReadingOptions`. They stand in the place of that parameter.
    """
    own = dict(inspect.signature(command, eval_str=True).parameters)
    # A command may have a flag of the same name that means something else.
    flags = [FieldFlag(name, field, flag_of(field).help, "How text is read")
             for name, field in ReadingOptions.keywords().items() if name not in own]  # fmt: skip
    made: dict[str, inspect.Parameter] = {}
    for name, parameter in own.items():
        made |= {f.name: f.parameter for f in flags} if name == "reading" else {name: parameter}
    made.pop("context", None)

    def run(context: typer.Context, **typed: Any) -> None:
        chosen = {f.name: f.read(typed[f.name]) for f in flags if is_typed(context, f.name)}
        mine = {name: context if name == "context" else typed[name]
                for name in own if name != "reading"}  # fmt: skip
        command(reading=ReadingOptions(**chosen), **mine)

    return dressed(run, command, made)


def ordered(names: Sequence[str], after: Mapping[str, str], last: Sequence[str]) -> list[str]:
    """Names of parameters as --help lists them."""
    found = [n for n in dict.fromkeys(names) if n not in after and n not in last]
    found += last
    for name, anchor in after.items():
        found.insert(found.index(anchor) + 1, name)
    return found


def dressed(
    run: Callable[..., None], command: Callable[..., None], parameters: dict[str, inspect.Parameter]
) -> Callable[..., None]:
    """The function as Typer is to see it: the command, with these parameters."""
    context = inspect.Parameter("context", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context)
    shown = {"context": context} | {
        name: each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for name, each in parameters.items()
    }
    run.__name__, run.__doc__ = command.__name__, command.__doc__
    run.__module__ = command.__module__
    run.__dict__["__signature__"] = inspect.Signature(list(shown.values()))
    run.__annotations__ = {name: each.annotation for name, each in shown.items()}
    return run


def kind_of(field: FieldInfo) -> Any:
    """What the command line reads as it is: the plainest of what the field may be."""
    annotation = field.annotation
    parts = () if get_origin(annotation) is Literal else get_args(annotation)
    kinds = {str if get_origin(part) is Literal else part for part in parts or (annotation,)}
    return next((kind for kind in PLAIN if kind in kinds), str)


def is_typed(context: typer.Context, name: str) -> bool:
    """Whether it stands on the command line."""
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def typed_again(context: typer.Context, program: str, only: Collection[str], *words: str) -> str:
    """A line for a shell: another command with what was typed for this one, as far as it takes it.

    `only` are the parameters that it takes; `words` come after them.
    """
    arguments: list[str] = []
    flags: list[str] = []
    for parameter in context.command.params:
        name = parameter.name or ""
        if name not in only or not is_typed(context, name):
            continue
        value = context.params[name]
        if parameter.param_type_name == "argument":
            arguments.append(str(value))
        elif isinstance(value, bool):
            flags.append(parameter.opts[0] if value else parameter.secondary_opts[0])
        else:
            values = value if isinstance(value, list | tuple) else [value]
            flags += [word for one in values for word in (parameter.opts[-1], str(one))]
    return f"voile {program} {shlex.join([*arguments, *flags, *words])}"
