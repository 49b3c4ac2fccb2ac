"""What classes of rows must have: the options that `publish`, `generalize` and `frontier` share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, TypeAlias, TypedDict

from pydantic import model_validator

from voile.errors import UsageError
from voile.options import BY_NAME, PAIR, Flag, Options
from voile.options.choices import Absent, Distance, Measure

ForEach: TypeAlias = float | Mapping[str, float]
"""One for all sensitive attributes, or one for each that is named."""


class RequirementOptions(Options):
    """Requirements by their parameters; ℓ, t, δ and α for all sensitive attributes or by name."""

    k: Annotated[int | None, Flag("Every class has at least k rows.")] = None
    l: Annotated[  # noqa: E741  (the requirement's name)
        ForEach | None,
        Flag("ℓ-diversity: a number, or NAME=NUMBER for one attribute.", reads=BY_NAME),
    ] = None
    l_measure: Annotated[Measure, Flag("frequency, distinct, entropy or recursive (with --c).")] = (
        "frequency"
    )
    c: Annotated[float | None, Flag("c of recursive (c, ℓ)-diversity.")] = None
    t: Annotated[ForEach | None, Flag("t-closeness: a number, or NAME=NUMBER.", reads=BY_NAME)] = (
        None
    )
    t_distance: Annotated[
        Distance, Flag("js, variational, emd-equal, emd-ordered or emd-hierarchical.")
    ] = "js"
    semantic: Annotated[
        ForEach | None, Flag("Semantic privacy's δ, or NAME=NUMBER.", reads=BY_NAME)
    ] = None
    absent: Annotated[
        Absent, Flag("With --semantic: values that a class lacks are forbidden, or ignored.")
    ] = "forbidden"
    alpha: Annotated[
        ForEach | None,
        Flag("No sensitive value has a larger share of a class, or NAME=…", reads=BY_NAME),
    ] = None
    presence: Annotated[
        tuple[float, float] | None,
        Flag("δ-presence: the least and largest share, as 0.01,0.2.", reads=PAIR),
    ] = None

    @model_validator(mode="after")
    def _check_readings(self) -> RequirementOptions:
        """Refuse how something is measured where the requirement itself is not given."""
        for name, of in (("l_measure", "l"), ("c", "l"), ("t_distance", "t"),
                         ("absent", "semantic")):  # fmt: skip
            if self.given(name) and getattr(self, of) is None:
                raise UsageError(
                    f"{self.spelled(name, getattr(self, name))} is given, and "
                    f"{self.spelled(of)} is not",
                    hint=f"give {self.spelled(of)} too",
                )
        return self

    @property
    def requires(self) -> dict[str, Any]:
        """The keyword arguments of `requirements_of`."""
        return {name: getattr(self, name) for name in RequirementOptions.model_fields}


class RequirementKeywords(TypedDict, total=False):
    """The same options as keyword arguments."""

    k: int | None
    l: ForEach | None  # noqa: E741
    l_measure: Measure
    c: float | None
    t: ForEach | None
    t_distance: Distance
    semantic: ForEach | None
    absent: Absent
    alpha: ForEach | None
    presence: tuple[float, float] | None
