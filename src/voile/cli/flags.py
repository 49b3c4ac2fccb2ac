"""Flags made from models of options: a field is a flag, and what is given becomes the model."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import NoneType
from typing import Annotated, Any, Literal, TypeVar, get_args, get_origin

import typer
from pydantic.fields import FieldInfo

from voile.errors import UsageError
from voile.options import Options, flag_of

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
            if name in model.model_fields:
                continue
            owner = next(other for other in self.models if name in other.model_fields)
            home = owner.model_fields["method"].default
            raise UsageError(
                f"{owner.spelled(name)} belongs to --method {home}, not to {method}",
                hint=model.instead(name) or f"leave it out, or say --method {home}",
            )


def with_flags(
    *models: type[Options],
    only: Sequence[str] | None = None,
    without: Sequence[str] = ("method",),
    after: Mapping[str, str] | None = None,
    last: Sequence[str] = (),
    panel: str | None = None,
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command a flag for each field, and `given`, what was typed of them.

    Flags stand behind the command's own parameters, in the order of the fields; those of `last` at
    the end. `after` puts a parameter of the command behind another one. A parameter of the command
    that is called like a field takes its place.
    """
    fields = {
        name: field
        for model in reversed(models)
        for name, field in model.model_fields.items()
        if name not in without and (only is None or name in only)
    }

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        own = dict(inspect.signature(command, eval_str=True).parameters)
        del own["given"]
        names = dict.fromkeys(n for model in models for n in model.model_fields if n in fields)
        order = ordered(list(own), list(names), after or {}, last)
        made = {n: own.get(n) or parameter(n, fields[n], panel) for n in order}

        def run(context: typer.Context, **typed: Any) -> None:
            values = {n: read(n, fields[n], typed[n], own) for n in names if is_typed(context, n)}
            mine = {n: context if n == "context" else typed[n] for n in own}
            command(given=Given(values, models), **mine)

        return dressed(run, command, made)

    return decorate


def ordered(
    own: Sequence[str], fields: Sequence[str], after: Mapping[str, str], last: Sequence[str]
) -> list[str]:
    """Names of parameters as --help lists them."""
    found = [n for n in dict.fromkeys((*own, *fields)) if n not in after and n not in last]
    found += last
    for name, anchor in after.items():
        found.insert(found.index(anchor) + 1, name)
    return found


def dressed(
    run: Callable[..., None], command: Callable[..., None], parameters: dict[str, inspect.Parameter]
) -> Callable[..., None]:
    """A function that looks like the command, with these parameters."""
    context = inspect.Parameter("context", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context)
    shown = {"context": context} | {
        name: each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for name, each in parameters.items()
    }
    run.__name__, run.__doc__, run.__module__ = command.__name__, command.__doc__, command.__module__
    run.__signature__ = inspect.Signature(list(shown.values()))  # type: ignore[attr-defined]
    run.__annotations__ = {name: each.annotation for name, each in shown.items()}
    return run


def parameter(name: str, field: FieldInfo, panel: str | None) -> inspect.Parameter:
    """The flag of a field, as Typer takes it."""
    flag, kind = flag_of(field), kind_of(field)
    if not field.is_required() and field.default is None or (flag.reads and not field.is_required()):
        kind = kind | None
    option = typer.Option(spelling(name, field), help=flag.help, rich_help_panel=panel)
    default = inspect.Parameter.empty
    if not field.is_required():
        default = None if flag.reads else field.default
    return inspect.Parameter(
        name, inspect.Parameter.KEYWORD_ONLY, annotation=Annotated[kind, option], default=default
    )


def spelling(name: str, field: FieldInfo) -> str:
    return flag_of(field).name or f"--{name.replace('_', '-')}"


def kind_of(field: FieldInfo) -> Any:
    """What the command line reads: the reader's kind, or the plainest of the field's own."""
    reads = flag_of(field).reads
    if reads is not None:
        return reads.kind
    kinds = {str if get_origin(kind) is Literal else kind for kind in alternatives(field)}
    return next((kind for kind in PLAIN if kind in kinds), str)


def alternatives(field: FieldInfo) -> list[Any]:
    annotation = field.annotation
    if get_origin(annotation) is Literal:
        return [annotation]
    return [kind for kind in get_args(annotation) or (annotation,) if kind is not NoneType]


def read(name: str, field: FieldInfo, typed: Any, own: Mapping[str, Any]) -> Any:
    """A value as the model takes it."""
    reads = flag_of(field).reads
    return typed if reads is None or name in own else reads.read(spelling(name, field), typed)


def is_typed(context: typer.Context, name: str) -> bool:
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"
