"""Options of the methods: one model each, and the flags, keywords, errors and page made from it."""

from __future__ import annotations

import inspect
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, get_overloads, get_type_hints

import pyarrow as pa
import pyarrow.csv as pacsv
import pytest
from mypy import api as mypy
from tools import options_reference

import voile
from tests.support.paths import ROOT
from tests.support.running import voile as run
from voile.cli.program import HOMES, SUMMARIES, built
from voile.errors import UsageError, VoileError, in_shell, spelled
from voile.kinds.classes.generalizing import GeneralizedTable
from voile.kinds.classes.options import ClassKeywords, ClassOptions, GeneralizeKeywords
from voile.kinds.classes.recoding_file import Recoding
from voile.kinds.classes.release import ClassRelease
from voile.kinds.counts.options import CountKeywords, CountOptions
from voile.kinds.counts.release import ConjunctRelease
from voile.kinds.perturbed.options import PerturbKeywords, PerturbOptions
from voile.kinds.perturbed.release import LocalRelease
from voile.kinds.registry import kinds
from voile.kinds.views.options import ViewKeywords, ViewOptions
from voile.kinds.views.release import ViewRelease
from voile.options import Options, flag_of
from voile.options.choices import Form, Method
from voile.options.requirements import RequirementKeywords, RequirementOptions
from voile.progress import Progress
from voile.publishing import generalize, perturb, publish

FUNCTIONS = (
    "table", "method", "to", "overwrite", "progress", "apply", "reusable", "keep_order", "register",
)  # fmt: skip
"""Parameters of functions that are no options."""


# ---------------------------------------------------------------------- keywords


LAZY = {
    "ClassKeywords": ClassKeywords, "ClassRelease": ClassRelease,
    "ConjunctRelease": ConjunctRelease, "CountKeywords": CountKeywords,
    "Form": Form, "Method": Method, "Progress": Progress,
    "Generalized": GeneralizedTable, "GeneralizeKeywords": GeneralizeKeywords,
    "LocalRelease": LocalRelease, "Mapping": Mapping, "PerturbKeywords": PerturbKeywords,
    "Recoding": Recoding, "RegisterChoice": Any,
    "Sequence": Sequence, "ViewKeywords": ViewKeywords, "ViewRelease": ViewRelease,
}  # fmt: skip
"""What `voile.publishing` imports for type checkers alone."""


def keywords(function: Any) -> dict[str, Any]:
    """The options of a function by keyword, those of its TypedDict too, with their types."""
    hints, found = get_type_hints(function, localns=LAZY), dict[str, Any]()
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind is parameter.VAR_KEYWORD:
            (unpacked,) = hints[name].__args__
            assert not unpacked.__required_keys__
            found |= get_type_hints(unpacked)
        else:
            found[name] = hints[name]
    return {name: hint for name, hint in found.items() if name not in FUNCTIONS}


def fields(model: type[Options]) -> dict[str, Any]:
    hints = get_type_hints(model)
    own = model.model_fields.items()
    found = {field.alias or name: hints[name] for name, field in own if hints[name] is not None}
    found.pop("method", None)
    return found


@pytest.mark.parametrize(
    ("function", "model"),
    [
        *zip(get_overloads(publish), (ViewOptions, ClassOptions, CountOptions), strict=True),
        (generalize, ClassOptions),
        (perturb, PerturbOptions),
    ],
    ids=["views", "classes", "counts", "generalize", "perturb"],
)
def test_the_keywords_of_a_function_are_the_fields_of_its_model(
    function: Any, model: type[Options]
) -> None:
    assert keywords(function) == fields(model)


def test_the_keywords_of_requirements_are_those_of_their_model() -> None:
    assert get_type_hints(RequirementKeywords) == fields(RequirementOptions)


def test_defaults_of_functions_are_those_of_their_models() -> None:
    for function, model in ((get_overloads(publish)[0], ViewOptions), (perturb, PerturbOptions)):
        for name, parameter in inspect.signature(function).parameters.items():
            if name in model.keywords() and name not in ("method", "rows"):
                field = model.keywords()[name]
                known = (field.default, ...)  # an ellipsis is what the model says
                assert field.is_required() or parameter.default in known, name


GOOD = """
import voile
reveal_type(voile.publish("t.csv", method="mondrian", k=5, qi=["age"]))
reveal_type(voile.publish("t.csv", prior=0.1, nulls="drop"))
reveal_type(voile.publish("t.csv", "conjuncts", arity=2))
reveal_type(voile.perturb("t.csv", 0.3, whole_rows=True))
"""
BAD = """
import voile
voile.publish("t.csv", metod="mondrian")
voile.publish("t.csv", method="mondrian", prior=0.1)
voile.publish("t.csv", nulls="maybe")
voile.perturb("t.csv", 0.3, whole_row=True)
voile.generalize("t.csv", kk=3)
"""


def test_an_editor_knows_the_keywords(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    good, bad = tmp_path / "good.py", tmp_path / "bad.py"
    good.write_text(GOOD, encoding="utf-8")
    bad.write_text(BAD, encoding="utf-8")
    told, _, _ = mypy.run([str(good), str(bad)])
    said = [line for line in told.splitlines() if line.startswith(str(good))]
    kinds_made = ("ClassRelease", "ViewRelease", "ConjunctRelease", "LocalRelease")
    for line, kind in zip(said, kinds_made, strict=True):
        assert f'.{kind}"' in line, line
    wrong = {line.split(":")[1] for line in told.splitlines() if f"{bad}:" in line}
    assert wrong == {"3", "4", "5", "6", "7"}, told


# ---------------------------------------------------------------------- errors


def test_a_field_is_spelled_for_its_caller() -> None:
    assert spelled("null_text") == "null_text="
    assert spelled("nulls", "drop") == "nulls='drop'"
    with in_shell():
        assert spelled("null_text") == "--null-text"
        assert spelled("nulls", "drop") == "--nulls drop"
        assert spelled("overwrite", True) == "--overwrite"
        assert spelled("columns", ["a,b", "c d"]) == "--columns '\"a,b\",c d'"
        assert spelled("retention", {"age": 0.5}) == "--retention age=0.5"
    assert ClassOptions.spelled("hierarchies") == "hierarchies="
    with in_shell():
        assert ClassOptions.spelled("hierarchies") == "--hierarchy"


WRONG: list[tuple[str, dict[str, Any], list[str], str, str]] = [
    ("publish", {"nulls": "maybe"}, ["--nulls", "maybe"], "nulls='maybe'", "--nulls maybe"),
    ("publish", {"retention": 2.0}, ["--retention", "2"],
     "retention=2.0 must lie in (0, 1]", "--retention 2 must lie in (0, 1]"),
    ("publish", {"distinct": True}, ["--distinct"],
     "distinct=True belongs to rows='set'", "--distinct belongs to --rows set"),
    ("publish", {"views": 3}, ["--views", "3"],
     "views= belongs to series=", "--views belongs to --series"),
    ("publish", {"method": "magic"}, ["--method", "magic"], "magic", "magic"),
    ("publish", {"method": "mondrian", "qi": ["age"], "k": 2, "cuts": "odd"},
     ["--method", "mondrian", "--qi", "age", "--k", "2", "--cuts", "odd"],
     "cuts='odd' is not known", "--cuts odd is not known"),
    ("publish", {"method": "mondrian", "qi": ["age"], "k": 2}, ["--method", "mondrian", "--qi",
     "age", "--k", "2"], "identifiers=['town'] leaves", "--identifiers town leaves"),
    ("publish", {"method": "conjuncts", "arity": 0}, ["--method", "conjuncts", "--arity", "0"],
     "arity=0 must be at least 1", "--arity 0 must be at least 1"),
    ("publish", {"method": "conjuncts", "noise": "odd"},
     ["--method", "conjuncts", "--noise", "odd"], "noise='odd'", "--noise odd"),
    ("perturb", {"retention": 0.5, "suppress_below": 1},
     ["--retention", "0.5", "--suppress-below", "1"],
     "suppress_below=1 must be at least 2", "--suppress-below 1 must be at least 2"),
    ("perturb", {"retention": {"age": 0.5}, "whole_rows": True},
     ["--retention", "age=0.5", "--whole-rows"],
     "give one retention=", "give one --retention"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("command", "options", "flags", "python", "shell"), WRONG, ids=lambda v: str(v)[:30]
)
def test_both_front_ends_refuse_the_same_in_their_own_words(
    command: str,
    options: dict[str, Any],
    flags: list[str],
    python: str,
    shell: str,
    tmp_path: Path,
) -> None:
    table = pa.table({"age": [1, 2, 3, 4] * 5, "town": ["a", "b"] * 10})
    with pytest.raises(VoileError) as refused:
        getattr(voile, command)(table, **options)
    assert python in str(refused.value) and "--" not in str(refused.value)
    pacsv.write_csv(table, tmp_path / "t.csv")
    done = run(command, "t.csv", *flags, "-o", "r.voile", cwd=tmp_path, columns=300)
    assert done.returncode == refused.value.exit_code, done.stderr
    assert shell in " ".join(done.stderr.split()), done.stderr
    assert not (tmp_path / "r.voile").exists()


def test_an_option_of_another_method_is_refused(tmp_path: Path) -> None:
    pacsv.write_csv(pa.table({"age": [1, 2]}), tmp_path / "t.csv")
    for flags, said in (
        (["--method", "mondrian", "--prior", "0.1"], "--prior belongs to --method alphabeta"),
        (["--method", "mondrian", "--columns", "age"], "--qi and --sensitive name columns"),
        (["--qi", "age"], "--qi belongs to --method mondrian, not to alphabeta"),
        (["--method", "conjuncts", "--hierarchy", "a=b"], "--hierarchy belongs to --method mondri"),
    ):
        done = run("publish", "t.csv", *flags, cwd=tmp_path, columns=300)
        assert done.returncode == 2 and said in done.stderr, done.stderr
    with pytest.raises(UsageError, match="qi= and sensitive= name columns"):
        voile.publish("t.csv", "mondrian", **dict[str, Any](columns=["age"]))


def test_options_are_frozen_and_changed_by_copies() -> None:
    options = ViewOptions(columns="age", prior=0.1)
    assert options.columns == ("age",)
    with pytest.raises(Exception, match="frozen"):
        options.prior = 0.2
    changed = options.but(prior=None, prior_factor=3.0)
    assert (changed.prior, changed.prior_factor, changed.columns) == (None, 3.0, ("age",))
    with pytest.raises(UsageError, match="did you mean 'prior'"):
        options.but(prio=3)


# ---------------------------------------------------------------------- help and pages


def test_summaries_of_commands_are_the_first_words_of_their_help() -> None:
    """Write them anew with VOILE_WRITE=1."""
    said = {name: built(name).help.split("\n\n")[0].replace("\n", " ") for name in HOMES}
    if os.environ.get("VOILE_WRITE"):
        SUMMARIES.write_text(
            json.dumps(said, ensure_ascii=False, indent=1) + "\n", encoding="utf-8"
        )
    assert json.loads(SUMMARIES.read_text(encoding="utf-8")) == said


def test_every_field_has_a_line_of_help() -> None:
    for kind in kinds():
        for name, field in kind.options.keywords().items():
            assert flag_of(field).help, (kind.name, name)


def test_flags_are_listed_without_what_publishing_needs() -> None:
    """--help of a command loads models of options, and neither engines nor arrays."""
    code = (
        "import sys, voile.cli.publishing, voile.cli.perturbing\n"
        "print(sorted({'duckdb', 'numpy', 'pyarrow', 'scipy', 'numba'} & set(sys.modules)))"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "[]"


def test_the_page_of_options_is_what_the_models_say() -> None:
    """Write it anew with VOILE_WRITE=1."""
    page = options_reference.PAGE
    if os.environ.get("VOILE_WRITE"):
        page.write_text(options_reference.page(), encoding="utf-8")
    assert page.read_text(encoding="utf-8") == options_reference.page()
