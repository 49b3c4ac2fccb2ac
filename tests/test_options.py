"""Options of the methods: one model each, and the flags, keywords, errors and page made from it."""

from __future__ import annotations

import inspect
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Required, get_origin, get_overloads, get_type_hints

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
from voile.evaluate.frontier import find_frontier, read_subject
from voile.evaluate.losses.measure import losses
from voile.evaluate.options import FrontierOptions, LossOptions, SubjectOptions
from voile.evaluate.planning.boundary import boundary_of
from voile.evaluate.planning.foresight import plan_table
from voile.kinds.classes.generalizing import GeneralizedTable
from voile.kinds.classes.options import ClassKeywords, ClassOptions, GeneralizeKeywords
from voile.kinds.classes.recoding_file import Recoding
from voile.kinds.classes.release import ClassRelease
from voile.kinds.counts.options import CountKeywords, CountOptions
from voile.kinds.counts.release import ConjunctRelease
from voile.kinds.marginals.options import MarginalKeywords, MarginalOptions
from voile.kinds.marginals.publishing import measure_table
from voile.kinds.marginals.release import MarginalRelease
from voile.kinds.options import AutomaticKeywords, AutomaticOptions
from voile.kinds.perturbed.options import PerturbKeywords, PerturbOptions, SpecKeywords
from voile.kinds.perturbed.publishing import perturb_table
from voile.kinds.perturbed.release import LocalRelease
from voile.kinds.registry import kinds
from voile.kinds.views.options import ViewKeywords, ViewOptions, ViewTableKeywords
from voile.kinds.views.publishing import publish_table
from voile.kinds.views.release import ViewRelease
from voile.options import Options, flag_of
from voile.options.choices import Form, Method
from voile.options.planning import LocalPlanKeywords, LocalPlanOptions
from voile.options.requirements import RequirementKeywords, RequirementOptions
from voile.progress import Progress
from voile.publishing import generalize, perturb, publish
from voile.signing import KeySource

FUNCTIONS = ("table", "method", "to", "overwrite", "progress", "apply", "reusable", "keep_order",
             "release", "folder", "source", "register", "sign", "return")  # fmt: skip
"""Parameters of functions that are no options."""


# ---------------------------------------------------------------------- keywords


LAZY = {
    "AutomaticKeywords": AutomaticKeywords, "Release": voile.Release,
    "ClassKeywords": ClassKeywords, "ClassRelease": ClassRelease,
    "ConjunctRelease": ConjunctRelease, "CountKeywords": CountKeywords,
    "Form": Form, "KeySource": KeySource, "Method": Method, "Progress": Progress,
    "Generalized": GeneralizedTable, "GeneralizeKeywords": GeneralizeKeywords,
    "MarginalKeywords": MarginalKeywords, "MarginalRelease": MarginalRelease,
    "LocalRelease": LocalRelease, "Mapping": Mapping, "PerturbKeywords": PerturbKeywords,
    "Recoding": Recoding, "RegisterChoice": Any,
    "Sequence": Sequence, "ViewKeywords": ViewKeywords, "ViewRelease": ViewRelease,
}  # fmt: skip
"""What `voile.publishing` imports for type checkers alone."""


def keywords(function: Any, required: set[str]) -> dict[str, Any]:
    """The options of a function by keyword, those of its TypedDict too, with their types."""
    hints, found = get_type_hints(function, localns=LAZY), dict[str, Any]()
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind is parameter.VAR_KEYWORD:
            (unpacked,) = hints[name].__args__
            typed = get_type_hints(unpacked, include_extras=True)
            needed = {name for name, hint in typed.items() if get_origin(hint) is Required}
            assert needed == required & typed.keys()
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
        *zip(
            get_overloads(publish),
            (AutomaticOptions, ViewOptions, ClassOptions, CountOptions, MarginalOptions),
            strict=True,
        ),
        (generalize, ClassOptions),
        (perturb, PerturbOptions),
        (publish_table, ViewOptions),
        (measure_table, MarginalOptions),
        (perturb_table, PerturbOptions),
        (losses, LossOptions),
        (find_frontier, FrontierOptions),
        (voile.frontier, FrontierOptions),
        (read_subject, SubjectOptions),
    ],
    ids=lambda each: getattr(each, "__name__", None),
)
def test_the_keywords_of_a_function_are_the_fields_of_its_model(
    function: Any, model: type[Options]
) -> None:
    required = {name for name, field in model.keywords().items() if field.is_required()}
    assert keywords(function, required) == fields(model)


def test_plans_take_the_keywords_of_views() -> None:
    for function in (publish_table, plan_table, boundary_of):
        (unpacked,) = get_type_hints(function)["options"].__args__
        assert unpacked is ViewTableKeywords


def test_the_keywords_of_a_local_plan_are_the_fields_of_its_model() -> None:
    hints, model = get_type_hints(LocalPlanKeywords), fields(LocalPlanOptions)
    assert hints.keys() == model.keys()
    assert {n for n in hints if hints[n] != model[n]} == {"breach"}  # may be a guarantee


def test_the_keywords_of_a_spec_are_fields_of_perturbing() -> None:
    model = fields(PerturbOptions)
    for name, hint in get_type_hints(SpecKeywords).items():
        assert model[name] == hint, name


def test_the_keywords_of_requirements_are_those_of_their_model() -> None:
    assert get_type_hints(RequirementKeywords) == fields(RequirementOptions)


def test_defaults_of_functions_are_those_of_their_models() -> None:
    for function, model in ((get_overloads(publish)[0], ViewOptions), (perturb, PerturbOptions)):
        for name, parameter in inspect.signature(function).parameters.items():
            if name in model.keywords() and name not in ("method", "rows"):
                field = model.keywords()[name]
                known = (field.default, ...)  # an ellipsis is what the model says
                assert field.is_required() or parameter.default in known, name


FRONT = [
    "src/voile/__init__.py", "src/voile/publishing.py", "src/voile/progress.py",
    "src/voile/kinds/release.py", "src/voile/kinds/options.py",
    "src/voile/kinds/classes/generalizing.py", "src/voile/kinds/perturbed/publishing.py",
]  # fmt: skip
"""Where the signatures are, beside the options and releases of each kind."""


def signatures() -> list[str]:
    """What mypy is to read: no more than this, since reading all of Voile takes a minute."""
    source = ROOT / "src" / "voile"
    folders = (source.glob("options/*.py"), source.glob("evaluate/options.py"),
               source.glob("evaluate/frontier/__init__.py"),
               source.glob("evaluate/frontier/result.py"), source.glob("kinds/*/options.py"),
               source.glob("kinds/*/release.py"))  # fmt: skip
    found = sorted(str(file) for files in folders for file in files)
    return ["--follow-imports=skip", f"--cache-dir={os.devnull}", *FRONT, *found]


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
voile.frontier("t.csv", sensitive="ill", qi=["age"], min_suport=0.1)
voile.frontier("t.csv", sensitive="ill")
"""


def test_an_editor_knows_the_keywords(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    good, bad = tmp_path / "good.py", tmp_path / "bad.py"
    good.write_text(GOOD, encoding="utf-8")
    bad.write_text(BAD, encoding="utf-8")
    told, _, _ = mypy.run([*signatures(), str(good), str(bad)])
    # By their names alone: from its cache, mypy may tell of the folder of an earlier run.
    said = [line for line in told.splitlines() if "/good.py:" in line]
    kinds_made = ("ClassRelease", "ViewRelease", "ConjunctRelease", "LocalRelease")
    for line, kind in zip(said, kinds_made, strict=True):
        assert f'.{kind}"' in line, line
    wrong = {line.split(":")[1] for line in told.splitlines() if "/bad.py:" in line}
    assert wrong == {"3", "4", "5", "6", "7", "8", "9"}, told


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
    ("frontier", {"qi": ["age"], "sensitive": "town", "min_support": 2.0},
     ["--qi", "age", "--sensitive", "town", "--min-support", "2"],
     "min_support=2.0 must lie in (0, 1]", "--min-support 2 must lie in (0, 1]"),
    ("frontier", {"qi": ["age"], "sensitive": "town", "most_p_loss": -1.0},
     ["--qi", "age", "--sensitive", "town", "--most-p-loss", "-1"],
     "most_p_loss=-1.0 must be at least 0", "--most-p-loss -1 must be at least 0"),
    ("frontier", {"qi": ["age"], "sensitive": "town", "grid": "odd"},
     ["--qi", "age", "--sensitive", "town", "--grid", "odd"],
     "grid='odd' is neither", "--grid odd is neither"),
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
        (["--qi", "age"], "--qi belongs to --method mondrian, not to auto"),
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
    models: list[type[Options]] = [LossOptions, FrontierOptions, LocalPlanOptions]
    for model in [*(kind.options for kind in kinds()), *models]:
        for name, field in model.keywords().items():
            assert flag_of(field).help, (model.__name__, name)


def test_flags_are_listed_without_what_publishing_needs() -> None:
    """--help of a command loads models of options, and neither engines nor arrays."""
    code = (
        "import sys, voile.cli.publishing, voile.cli.perturbing, voile.cli.evaluation\n"
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
