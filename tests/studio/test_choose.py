"""Promise, Compare, Preview and Attack: their tasks against the Python interface, and a walk."""

from __future__ import annotations

import csv
import json
import random
import re
import shlex
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import pytest
from playwright.sync_api import Browser, Page

import voile
from tests.studio.conftest import RunningStudio, started
from tests.support.browser import VARIANTS, needs_browser, overflow, serious, tab
from tests.support.running import voile as run_voile
from voile.errors import UsageError, VoileError
from voile.evaluate.losses import losses
from voile.evaluate.planning import compare_methods
from voile.foreign import ENDINGS
from voile.progress import Silent
from voile.schema import Schema
from voile.schema.schema import read_codebook
from voile.serve import simulated
from voile.studio.advising import apply_change
from voile.studio.calls import ShownCall
from voile.studio.candidates import keep, use
from voile.studio.jobs import Jobs
from voile.studio.pages import AreaVisit, Form, Visit, rendered
from voile.studio.pages import ScreenPage as Reply
from voile.studio.points import SliderPoint, epsilon_points, nearest, per_cent, rises
from voile.studio.points import people as people_of
from voile.studio.project import read_project
from voile.studio.running import run_project
from voile.studio.screens import attack, compare, preview, promise, publish, servers, start
from voile.studio.state import Studio
from voile.studio.trying import task_arguments

HOSTILE = "<img src=x onerror=window.hacked=1>"
ROLES = {"age": "quasi-identifier", "town": "quasi-identifier", "smokes": "other",
         "ill": "sensitive"}  # fmt: skip
QUESTION = "select count(*) from people where age < 40 and smokes = 'yes'"


def people() -> list[tuple[int, str, str, str]]:
    """Rows that are the same in every run."""
    chance = random.Random(5)  # noqa: S311  (no secret)
    return [
        (chance.randrange(20, 70, 10), chance.choice("abc"), chance.choice(("no", "yes")),
         chance.choice(("flu", "none", "none")))
        for _ in range(900)
    ]  # fmt: skip


ROWS = people()


def write(folder: Path) -> None:
    with (folder / "people.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([("age", "town", "smokes", "ill"), *ROWS])
    few = [("name " + HOSTILE, "b"), *((HOSTILE + str(i % 4), f"b{i % 6}") for i in range(40))]
    with (folder / "few.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows(few)
    project = {"format": 1, "source": "people.csv", "roles": ROLES}
    (folder / "people.voile-project").write_text(json.dumps(project), encoding="utf-8")


@pytest.fixture
def table(tmp_path: Path) -> dict[str, Any]:
    """What tasks are told of the table."""
    write(tmp_path)
    return {"source": str(tmp_path / "people.csv"), "reading": {}, "stamp": [],
            "choices": {"roles": ROLES}}  # fmt: skip


@pytest.fixture(scope="module")
def one_studio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Studio]:
    """A studio without a browser; its jobs run as they do for one."""
    folder = tmp_path_factory.mktemp("visits")
    write(folder)
    found = Studio(folder)
    yield found
    found.close()


@pytest.fixture
def visit(one_studio: Studio) -> Visit:
    """A visit to a project of its own; the table is read once for all."""
    file = one_studio.folder / f"people-{len(one_studio.projects)}.voile-project"
    shutil.copy(one_studio.folder / "people.voile-project", file)
    found = Visit(one_studio, one_studio.open_project(file))
    assert ended(found.inspected()).ok
    return found


@pytest.fixture
def folder(visit: Visit, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where commands of a visit are run."""
    monkeypatch.chdir(visit.studio.folder)
    monkeypatch.setenv("VOILE_REGISTER", str(visit.studio.folder / "register.sqlite"))
    for place in ("preview.voile", "again.voile", "frontier", "targets.csv"):
        shutil.rmtree(visit.studio.folder / place, ignore_errors=True)
    return visit.studio.folder


def ended(job: Any) -> Any:
    """The job, when it has ended."""
    found = job.wait(60)
    assert not found.running, f"{job.title} does not end"
    return found


def posted(visit: Visit, **fields: str) -> Visit:
    return Visit(visit.studio, visit.open, Form({name: [value] for name, value in fields.items()}))


# ---------------------------------------------------------------------- tasks


def test_the_comparison_is_that_of_the_python_interface(table: dict[str, Any]) -> None:
    found = promise.compare_task(Silent(), **table, questions=[], epsilon=1.0)
    again = compare_methods(table["source"], epsilons=promise.EPSILONS, epsilon=1.0)
    assert found == again.to_dict()
    points = epsilon_points(found)
    assert [point.x for point in points] == sorted(promise.EPSILONS)
    errors = [one["expected_error"] for one in found["by_epsilon"]]
    assert errors == sorted(errors, reverse=True)  # a weaker promise errs less
    assert points[nearest(points, 0.46)].x == 0.5


def test_few_rows_are_refused_with_what_would_help(tmp_path: Path) -> None:
    write(tmp_path)
    found = promise.compare_task(
        Silent(), source=str(tmp_path / "few.csv"), reading={}, stamp=[], choices={}, questions=[],
        epsilon=1.0,
    )  # fmt: skip
    assert not found["useful"] and found["changes"]
    assert all(
        change["expected_error"] <= found["most_useful_error"] for change in found["changes"]
    )


def test_classes_lose_what_losses_measure(table: dict[str, Any]) -> None:
    (found,) = promise.trials_task(
        Silent(), **table, questions=[QUESTION], method="mondrian", points=[{"k": 50}]
    )
    release = voile.publish(
        table["source"], "mondrian", qi=["age", "town"], sensitive=["ill"],
        insensitive=["smokes"], k=50, error_model=False, simulate_seed=0, register=False,
    )  # fmt: skip
    wanted = losses(table["source"], release, sensitive="ill", queries=0, min_support=0.3)
    assert found["losses"]["gen_iloss"] == wanted.to_dict()["gen_iloss"] > 0
    truth = sum(age < 40 and smokes == "yes" for age, _, smokes, _ in ROWS)
    estimate = release.query(QUESTION).value
    assert found["asked"][0]["relative"] == pytest.approx(abs(estimate - truth) / truth)


def test_a_promise_that_cannot_be_kept_says_why(table: dict[str, Any]) -> None:
    (found,) = promise.trials_task(
        Silent(), **table, questions=[], method="mondrian", points=[{"l": 5}]
    )
    assert found["refused"] and found["losses"] is None


def test_a_preview_has_the_true_counts_and_leaves_nothing(
    table: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "temporary"
    place.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    found = preview.make_task(
        Silent(), **table, method="marginals", options={"epsilon": 2.0}, coins=1,
        questions=[QUESTION, "select nonsense"], pair=["town", "ill"], first=0,
    )  # fmt: skip
    assert list(place.glob("*/trial.voile")) == []
    by_name = {one["name"]: one["counts"] for one in found["columns"]}
    towns = {one["value"]: one["truth"] for one in by_name["town"] if one["truth"]}
    assert towns == Counter(town for _, town, _, _ in ROWS)
    cells = {(one["a"], one["b"]): one["truth"] for one in found["heat"]["cells"]}
    wanted = Counter((town, ill) for _, town, _, ill in ROWS)
    assert {cell: count for cell, count in cells.items() if count} == dict(wanted)
    good, bad = found["questions"]
    assert good["rows"][0]["truth"] == sum(r[0] < 40 and r[2] == "yes" for r in ROWS)
    assert bad["error"] and not bad["rows"]


def test_an_attack_on_classes_guesses_shares(table: dict[str, Any]) -> None:
    found = attack.attack_task(
        Silent(), **table, method="mondrian", options={"k": 5}, guessed="ill",
        person={"age": "30", "town": "a", "ill": "flu"},
    )  # fmt: skip
    alike = Counter(ill for age, town, _, ill in ROWS if (age, town) == (30, "a"))
    for one in found["guesses"]:
        assert one["posterior"] == pytest.approx(alike[one["value"]] / alike.total())
    with pytest.raises(UsageError, match="is a number"):
        attack.attack_task(Silent(), **table, method="mondrian", options={"k": 5}, guessed="ill",
                           person={"age": "old"})  # fmt: skip


def test_an_attack_on_noise_bounds_what_anybody_learns(table: dict[str, Any]) -> None:
    found = attack.attack_task(
        Silent(), **table, method="marginals", options={"epsilon": 0.5}, person={}, guessed=""
    )
    for one in found["bounds"]["bounds"]:
        assert one["prior"] < one["posterior"] < 1
    view = attack.attack_task(
        Silent(), **table, method="alphabeta", options={"prior": 0.05, "posterior": 0.3},
        person={"age": "30", "town": "a", "smokes": "no"}, guessed="",
    )  # fmt: skip
    (person,) = view["attack"]["people"]
    assert person["candidates"] == 2 and 0 < person["prior"] < 1


def test_somebody_is_picked_from_the_table(table: dict[str, Any]) -> None:
    found = attack.pick_task(Silent(), **table, turn=1)
    age, town, smokes, ill = (found[name] for name in ("age", "town", "smokes", "ill"))
    assert (int(age), town, smokes, ill) in ROWS


# ---------------------------------------------------------------------- screens


def runs(call: ShownCall) -> None:
    """A call does what it says, as a command and in Python."""
    done = run_voile(*shlex.split(call.command())[1:])
    assert done.returncode == 0, done.stderr
    code = call.python().replace("preview.voile", "again.voile")
    exec(compile(code, "call", "exec"), {})  # noqa: S102  (what the screen shows)


@pytest.mark.usefixtures("folder")
def test_calls_do_what_they_say(visit: Visit) -> None:
    visit.change(questions=[QUESTION], options={"epsilon": 2.0})
    runs(promise.plan_call(visit))
    frontier, _ = compare.calls_of(visit)
    runs(frontier)
    for call in (*preview.calls_of(visit), attack.calls_of(visit)[-1]):
        runs(call)


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("need", ["3", "4"])
def test_every_attack_has_its_command_and_python(
    visit: Visit, need: str, capsys: pytest.CaptureFixture[str]
) -> None:
    promise.answer(posted(visit, need=need))
    visit.open.remembered["attack.person"] = {"age": "30", "town": "a"}
    publishing, how = attack.calls_of(visit)
    runs(publishing)
    runs(how)
    if need == "4":
        assert how.python().endswith("guess_value(release, {'age': 30, 'town': 'a'}, 'ill')")
        assert """where "age" = 30 and "town" = 'a'""" in how.command().replace("'\"'\"'", "'")
    else:
        assert capsys.readouterr().out.strip()
    visit.open.remembered.clear()
    assert not attack.person_of(visit, [])
    runs(attack.calls_of(visit)[-1])  # of somebody who could be there


@pytest.mark.usefixtures("folder")
def test_the_start_has_its_command_and_python(visit: Visit) -> None:
    page = start.show(AreaVisit(visit.studio))
    assert isinstance(page, Reply)
    studio, looking = page.calls
    assert studio.command() == f"voile studio {visit.studio.folder}"
    runs(looking)
    html = rendered("start.html", {"studio": visit.studio, **page.context})
    assert all(ending in html for ending in ENDINGS)


def test_a_view_is_planned_and_attacked_by_commands(visit: Visit, folder: Path) -> None:
    promise.answer(posted(visit, need="5"))
    assert visit.project.method == "alphabeta"
    visit.change(options={"prior": 0.05, "posterior": 0.4})
    runs(promise.view_call(visit))
    (folder / "targets.csv").write_text("age,town\n30,a\n", encoding="utf-8")
    for call in attack.calls_of(visit):
        runs(call)


def test_the_slider_of_a_view_moves_errors_in_per_cent(visit: Visit) -> None:
    promise.answer(posted(visit, need="5"))
    visit.change(options={"prior": 0.05, "posterior": 0.4}, questions=[QUESTION])
    page = promise.show(visit)
    assert isinstance(page, Reply)
    assert ended(page.context["job"]).ok
    page = promise.show(visit)
    assert isinstance(page, Reply)
    truth = sum(age < 40 and smokes == "yes" for age, _, smokes, _ in ROWS)
    for slider, name in zip(page.context["sliders"], ("posterior", "prior_factor"), strict=True):
        asked = page.context["data"]["questions"]["curves"][name]
        for point, one in zip(slider["points"], asked, strict=True):
            share = one["errors"][0] / truth
            assert one["relative"][0] == pytest.approx(share)
            assert point.cells[f"{name}-question-0"].endswith(f", {per_cent(share)}")
        shown = [point.cells[f"{name}-0"] for point in slider["points"]]
        assert all(text.endswith(" %") for text in shown) and len(set(shown)) > 10
    html = rendered("promise.html", {"open": visit.open, "project": visit.project, **page.context})
    assert 'data-cell="posterior-0"' in html and 'data-cell="posterior-people-0"' in html


def test_the_strongest_view_with_an_error_is_taken_by_a_button(visit: Visit) -> None:
    promise.answer(posted(visit, need="5"))
    with pytest.raises(UsageError, match="no such promise"):
        promise.set_strongest(posted(visit, which="smallest_posterior"))
    promise.set_error(posted(visit, max_error="100"))
    context, html = settled_page(visit)
    found = context["data"]["plan"]["strongest"]["smallest_posterior"]
    assert "Use the promise with the smallest γ" in html
    promise.set_strongest(posted(visit, which="smallest_posterior"))
    assert visit.project.options == {name: found[name] for name in ("prior_factor", "posterior")}
    context, _ = settled_page(visit)
    assert context["data"]["plan"]["expected_error"] <= 100 * 1.01


def settled_page(visit: Visit) -> tuple[dict[str, Any], str]:
    """The Promise screen when all of its work has ended: its context, and its HTML."""
    for _ in range(9):
        page = promise.show(visit)
        assert isinstance(page, Reply)
        jobs = [page.context[name] for name in ("job", "trials") if page.context[name]]
        if all(job.ok for job in jobs):
            shown = {"open": visit.open, "project": visit.project, **page.context}
            return shown, rendered("promise.html", shown)
        assert all(ended(job).ok for job in jobs)
    raise AssertionError("new work begins again and again")


def test_the_headline_is_that_of_the_method_that_is_chosen(visit: Visit) -> None:
    visit.change(method="full-table", options={"epsilon": 5.0})
    context, html = settled_page(visit)
    data, (slider,) = context["data"], context["sliders"]
    point = slider["points"][slider["at"]]
    at = next(one for one in data["by_epsilon"] if one["epsilon"] == point.x == 5.0)
    assert f'data-cell="by" data-slider="slider-epsilon">{point.cells["by"]}<' in html
    assert f'data-slider="slider-epsilon">{point.cells["error"]}<' in html
    assert at["each_off_by"][at["method"]] == pytest.approx(at["off_by"])
    for method in ("marginals", "full-table"):
        for one, shown in zip(data["by_epsilon"], epsilon_points(data, method), strict=True):
            error = one["errors"].get(method)
            assert (shown.cells["by"], shown.cells["best"]) == (method, one["method"])
            assert shown.cells["error"] == per_cent(error)
            assert shown.cells["off"] == people_of(one["each_off_by"].get(method))
            useful = error is not None and error <= data["most_useful_error"]
            assert shown.bad != useful and bool(shown.cells["verdict"]) != useful
            if error is not None:
                assert one["each_off_by"][method] == pytest.approx(error * data["count"])
    both = [epsilon_points(data, method) for method in ("marginals", "full-table")]
    assert any(a.cells["error"] != b.cells["error"] for a, b in zip(*both, strict=True))


@pytest.fixture
def compared_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Methods are compared without the questions: the same work for all tests."""

    def once(visit: Visit) -> Any:
        return visit.work("promise.compare", title="", **task_arguments(visit), questions=[],
                          epsilon=1.0)  # fmt: skip

    monkeypatch.setattr(promise, "comparison", once)


@pytest.mark.usefixtures("compared_once")
def test_questions_are_foreseen_at_the_epsilon_that_is_chosen(
    visit: Visit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(promise, "FEW_EPSILONS", (5.0,))
    visit.change(method="full-table", questions=[QUESTION], options={"epsilon": 1.75})
    (slider,) = settled_page(visit)[0]["sliders"]
    texts = {point.x: point.cells["question-0"] for point in slider["points"]}
    assert " at ε" not in texts[1.75] and " at ε" not in texts[5.0]
    assert texts[1.5].endswith(" at ε = 1.75") and texts[6.0].endswith(" at ε = 5")
    trial = voile.publish(
        str(visit.studio.folder / "people.csv"), "full-table", epsilon=1.75, register=False,
        simulate_seed=promise.SEED,
    )  # fmt: skip
    assert texts[1.75].startswith(people_of(trial.query(QUESTION).stderr))


@pytest.mark.usefixtures("compared_once")
def test_the_number_of_answers_is_chosen_and_handed_to_the_server(
    visit: Visit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(promise, "FEW_ANSWERS", (1000,))
    total = "select avg(age) from people"
    visit.change(questions=[QUESTION, total])
    promise.answer(posted(visit, need="2"))
    context, _ = settled_page(visit)
    (slider,) = context["sliders"]
    place = next(i for i, point in enumerate(slider["points"]) if point.x == 20)
    promise.choose(posted(visit, slider="answers", answers=str(place)))
    assert visit.project.answers == read_project(visit.open.path).answers == 20
    context, html = settled_page(visit)
    (slider,) = context["sliders"]
    assert slider["at"] == place and slider["points"][place].x == 20
    texts = {point.x: point.cells["question-0"] for point in slider["points"]}
    assert " at T" not in texts[20] and texts[50].endswith(" at T = 20")
    with simulated(str(visit.studio.folder / "people.csv"), seed=promise.SEED, queries=20,
                   epsilon=1.0, noise="geometric") as server:  # fmt: skip
        assert texts[20].startswith(people_of(server.ask(QUESTION).stderr))
        assert slider["points"][place].cells["question-1"] != texts[20]
    link = re.search(r'href="(/servers\?[^"]+)">Set up this server', html)
    assert link is not None
    fields = dict(parse_qsl(unescape(link[1]).partition("?")[2]))
    form = Form({name: [value] for name, value in fields.items()})
    there = servers.listing(AreaVisit(visit.studio, (), form))
    assert isinstance(there, Reply)
    values = there.context["values"]
    assert values["project"] == visit.open.path.name and values["queries"] == "20"
    assert there.context["cost"]["epsilon"] == 1.0 and there.context["cost"]["noise"] == "geometric"
    plan, begin = promise.calls_of(visit, "server")
    assert plan.verb == "plan" and "--queries 20" in begin.command()


@pytest.mark.usefixtures("compared_once")
def test_the_number_of_answers_follows_from_the_error_that_is_allowed(visit: Visit) -> None:
    promise.answer(posted(visit, need="2"))
    promise.set_error(posted(visit, max_error="72,5"))
    assert visit.project.max_error == 72.5
    context, html = settled_page(visit)
    known = context["data"]["by_answers"]
    (wanted,) = [one for one in known if one["answers"] == context["wanted"]["answers"]]
    assert wanted["off_by"] <= 72.5
    assert all(one["off_by"] > 72.5 for one in known if one["answers"] > wanted["answers"])
    assert f"T = {wanted['answers']}" in html and "Use it" in html
    promise.choose(posted(visit, slider="answers", answers=str(context["wanted"]["place"])))
    assert visit.project.answers == wanted["answers"]
    promise.set_error(posted(visit, max_error="0.1"))
    _, html = settled_page(visit)
    assert "Not even one answer is off by ± 0.1" in html


def test_a_server_that_has_no_answer_left_says_so(table: dict[str, Any]) -> None:
    (found,) = promise.served_task(
        Silent(), **table, questions=[QUESTION, "select avg(age) from people"], epsilon=1.0,
        points=[1],
    )  # fmt: skip
    first, second = found["asked"]
    assert first["stderr"] > 0 and not first["error"]
    assert "left" in second["error"] or "budget" in second["error"]


@pytest.mark.parametrize("need", ["1", "2"])
def test_nothing_is_published_where_nothing_may_leave(visit: Visit, need: str) -> None:
    promise.answer(posted(visit, need=need))
    page = publish.show(visit)
    assert isinstance(page, Reply)
    shown = {"open": visit.open, "project": visit.project, **page.context}
    html = rendered("publish.html", shown)
    assert page.context["rehearsal"] is None and not page.calls
    assert "Nothing is published" in html and "hx-post" not in html
    assert ("Set up a server" in html) == (need == "2")
    for action in (publish.go, publish.rehearse):
        with pytest.raises(UsageError, match="Promise screen") as refused:
            action(posted(visit, read="yes"))
        assert "another answer" in refused.value.hint
    with pytest.raises(UsageError, match="Promise screen"):
        run_project(visit.open.path, overwrite=False, progress=Silent())
    assert not list(visit.studio.folder.glob(f"{visit.open.name}.voile"))
    promise.answer(posted(visit, need="6"))
    again = publish.show(visit)
    assert isinstance(again, Reply) and again.context["rehearsal"] is not None


@pytest.mark.parametrize("codebook", ["learnt", "table"])
def test_the_rehearsal_says_what_the_release_may_have_otherwise(
    visit: Visit, folder: Path, codebook: str
) -> None:
    visit.change(options={"epsilon": 8.0}, method="full-table", codebook=codebook)
    page = publish.show(visit)
    assert isinstance(page, Reply)
    job = ended(page.context["rehearsal"])
    assert job.ok, job.error
    again = publish.show(visit)
    assert isinstance(again, Reply)
    html = rendered("publish.html", {"open": visit.open, "project": visit.project,
                                     **again.context})  # fmt: skip
    assert "its noise is another" in html and folder.exists()
    assert ("another number of figures" in html) == (codebook == "learnt")


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("need", ["2", "4", "5", "6"])
def test_the_commands_have_the_codebook_that_is_declared(visit: Visit, need: str) -> None:
    codebook = [{"name": "age", "kind": "integer", "range": [0, 110]},
                {"name": "town", "kind": "categorical", "values": ["a", "b", "c", "d"]},
                {"name": "smokes", "kind": "categorical", "values": ["no", "yes"]},
                {"name": "ill", "kind": "categorical", "values": ["flu", "none"]}]  # fmt: skip
    visit.change(codebook="declared", attributes=codebook)
    promise.answer(posted(visit, need=need))
    calls = promise.calls_of(visit, promise.family(visit))
    for call in calls:
        assert f"--schema {visit.open.name}.codebook.yaml" in call.command()
        assert f"schema='{visit.open.name}.codebook.yaml'" in call.python()
    written = visit.studio.folder / f"{visit.open.name}.codebook.yaml"
    declared = Schema.from_dict({"attributes": codebook})
    assert Schema.from_dict(read_codebook(written)) == declared


@pytest.mark.parametrize(
    ("action", "fields"),
    [(promise.answer, {"need": "9"}), (promise.answer, {}), (promise.require, {"requirement": "x"}),
     (promise.choose_method, {"method": "nothing"}), (promise.set_error, {"max_error": "much"}),
     (promise.set_epsilon, {"epsilon": "-1"}), (promise.ask, {"questions": "drop table people"}),
     (promise.advise, {"change": "[]"}), (promise.advise, {"change": '{"columns": ["no"]}'}),
     (compare.choose, {"candidate": "7"}), (compare.add_point, {"point": "0"}),
     (compare.start, {"grid": "all"}), (preview.make, {"candidate": "x"}),
     (preview.set_pair, {"a": "age", "b": "age"}), (attack.act, {"candidate": "9"}),
     (attack.pick, {"candidate": "x"})],
)  # fmt: skip
def test_wrong_inputs_are_refused_and_nothing_changes(
    visit: Visit, action: Any, fields: dict[str, str]
) -> None:
    before = visit.project
    with pytest.raises(UsageError):
        action(posted(visit, **fields))
    assert visit.project == before


def test_a_question_that_cannot_be_read_is_refused_with_its_place(visit: Visit) -> None:
    """It would stop all that is foreseen; a good one beside it is not lost either."""
    visit.change(questions=[QUESTION])
    typed = f"{QUESTION}\nselect avg(alter) from people"
    with pytest.raises(VoileError) as raised:
        promise.ask(posted(visit, questions=typed))
    assert "line 1, column 12" in raised.value.message and raised.value.hint
    assert visit.project.questions == [QUESTION]


def test_a_question_of_a_column_that_was_left_out_stops_nothing(visit: Visit) -> None:
    about_towns = "select count(*) from people where town = 'a'"
    visit.change(questions=[about_towns, QUESTION])
    visit.change(roles={**visit.project.roles, "town": "identifier"})
    assert visit.questions == [QUESTION]
    page = promise.show(visit)
    assert isinstance(page, Reply)
    assert ended(page.context["job"]).ok and ended(page.context["trials"]).ok
    (unread,) = page.context["unread"]
    assert unread["sql"] == about_towns and "'town'" in unread["why"]
    assert preview.arguments(visit)["questions"] == [QUESTION]


def test_what_follows_a_look_is_marked(visit: Visit) -> None:
    keep(visit, "auto", {"epsilon": 1.0}, looked=False)
    assert not visit.project.candidates[0].after_looking
    visit.open.note_look("a preview")
    keep(visit, "auto", {"epsilon": 2.0}, looked=False)
    assert visit.project.candidates[1].after_looking
    use(visit, 0)
    assert visit.project.candidates[0].after_looking and visit.project.options == {"epsilon": 1.0}
    keep(visit, "auto", {"epsilon": 2.0}, looked=False)
    assert len(visit.project.candidates) == 2


def test_advice_leaves_out_columns_or_promises_less(visit: Visit) -> None:
    apply_change(posted(visit, change='{"epsilon": 4.0}'))
    assert visit.project.options["epsilon"] == visit.project.planned == 4.0
    apply_change(posted(visit, change='{"columns": ["age", "ill"]}'))
    assert visit.project.columns(visit.column_names()) == ["age", "ill"]


def test_a_refused_preview_lists_what_would_help(one_studio: Studio) -> None:
    """Whether something helps depends on the noisy number of rows: these coins say so."""
    few = Visit(one_studio, one_studio.begin_project("few.csv"))
    assert ended(few.inspected()).ok
    few.open.remembered["preview.coins"] = 2
    page = preview.make(posted(few, candidate="0"))
    assert isinstance(page, Reply)
    job = ended(page.context["job"])
    assert job.state == "failed" and job.changes
    again = preview.show(few)
    assert isinstance(again, Reply)
    (change,) = again.context["changes"]
    preview.advise(posted(few, change=change["options"]))
    assert few.project.options["epsilon"] == job.changes[0]["options"]["epsilon"] > 1


def test_the_frontier_has_noise_beside_classes(visit: Visit) -> None:
    compare.start(posted(visit, sensitive="ill", grid="few"))
    page = compare.show(visit)
    assert isinstance(page, Reply)
    job = ended(page.context["job"])
    assert job.ok, job.error
    points = {point["method"]: (n, point) for n, point in enumerate(job.data["points"])}
    assert {"mondrian", "trivial", "marginals"} <= {*points}
    place, noise = points["marginals"]
    assert noise["parameters"] == {"epsilon": 1.0} and noise["classes"] is None
    assert 0 < noise["p_loss"] <= noise["p_loss_permitted"]
    compare.add_point(posted(visit, point=str(place)))
    (kept,) = visit.project.candidates
    assert (kept.method, kept.options, kept.after_looking) == ("marginals", {"epsilon": 1.0}, True)
    frontier, _ = compare.calls_of(visit)
    assert "--schema active" in frontier.command() and "marginals" in frontier.command()
    (unlike,) = [one for one in job.data["refused"] if one["parameters"] == {"posterior": 0.2}]
    assert unlike["method"] == "alphabeta"
    visit.change(person="town")
    assert compare.frontier_options(visit)["methods"] == compare.METHODS


def test_a_cancelled_frontier_leaves_nothing_and_begins_anew(visit: Visit) -> None:
    compare.start(posted(visit, sensitive="ill", grid="more"))
    page = compare.show(visit)
    assert isinstance(page, Reply)
    job = page.context["job"]
    folder = Path(job.process.args[-1])
    visit.studio.jobs.cancel(job.id)
    job.process.wait(timeout=30)
    for _ in range(100):
        if not folder.exists():
            break
        time.sleep(0.1)
    assert ended(job).state == "cancelled" and not folder.exists()
    compare.start(posted(visit, sensitive="ill", grid="few"))
    again = compare.show(visit)
    assert isinstance(again, Reply)
    assert ended(again.context["job"]).ok
    compare.add_point(posted(visit, point="0"))
    assert visit.project.candidates[0].after_looking


def test_a_person_is_written_nowhere(visit: Visit) -> None:
    promise.answer(posted(visit, need="4"))
    fields = {"candidate": "0", "secret": "ill", "value-0": "30", "value-1": "a"}
    page = attack.act(posted(visit, **fields))
    assert isinstance(page, Reply)
    assert ended(page.context["job"]).ok
    kept = visit.open.path.read_text(encoding="utf-8")
    assert '"30"' not in kept and "person" not in json.loads(kept)


def test_processes_have_folders_that_go_with_them() -> None:
    jobs = Jobs()
    jobs.warm()
    spare = jobs._spare
    assert spare is not None
    folder = Path(spare.args[-1])  # type: ignore[index, arg-type]
    assert folder.is_dir()
    jobs.close()
    assert not folder.exists()


# ---------------------------------------------------------------------- in a browser


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningStudio]:
    folder = tmp_path_factory.mktemp("studio")
    write(folder)
    with started(folder, "people.voile-project") as found:
        yield found


def settled(page: Page) -> None:
    """Wait until no job of the page is at work."""
    for _ in range(300):
        page.wait_for_timeout(200)
        if not page.locator(".job progress").count():
            page.wait_for_timeout(300)
            if not page.locator(".job progress").count():
                return
    raise AssertionError("the job does not end")


def sound(page: Page, errors: list[str]) -> None:
    assert serious(page) == [] and overflow(page) <= 0 and errors == []


@needs_browser
def test_from_the_questions_to_an_attack(running: RunningStudio, browser: Browser) -> None:
    file = running.folder / "people.voile-project"
    with tab(browser) as seen:
        page = seen.page
        page.goto(running.url)
        base = f"{running.base}/p/people"
        page.goto(f"{base}/promise")
        settled(page)
        shown = page.locator("[data-cell=error]").first
        before, requests = shown.inner_text(), len(seen.requests)
        page.evaluate("s => { s = document.getElementById('slider-epsilon'); s.value = 2;"
                      " s.dispatchEvent(new Event('input', {bubbles: true})) }")  # fmt: skip
        assert shown.inner_text() != before and len(seen.requests) == requests
        page.locator("#slider-epsilon").focus()
        page.keyboard.press("ArrowRight")
        page.wait_for_timeout(700)
        assert json.loads(file.read_text())["options"] == {"epsilon": 0.2}
        sound(page, seen.errors)
        page.locator("#slider-epsilon").focus()
        page.keyboard.press("End")  # so weak a promise that these few rows are of use
        page.wait_for_timeout(700)
        page.goto(f"{base}/compare")
        page.get_by_role("button", name="Keep it as a candidate").click()
        page.get_by_text("Measure them on the table").wait_for()
        sound(page, seen.errors)
        page.goto(f"{base}/preview")
        page.get_by_role("button", name="Make a preview").click()
        page.locator(".job").wait_for()
        page.reload()  # in the middle of the work
        settled(page)
        page.get_by_role("heading", name="Column by column").wait_for()
        sound(page, seen.errors)
        page.goto(f"{base}/attack")
        page.get_by_role("button", name="See what they learn").click()
        settled(page)
        page.get_by_role("heading", name="What they learn").wait_for()
        sound(page, seen.errors)
        assert json.loads(file.read_text())["looks"]


@needs_browser
@pytest.mark.parametrize(("width", "dark"), VARIANTS)
def test_every_screen_is_sound_on_a_phone_and_in_the_dark(
    running: RunningStudio, browser: Browser, width: int, dark: bool
) -> None:
    with tab(browser, width=width, dark=dark) as seen:
        seen.page.goto(running.url)
        for name in ("promise", "compare", "preview", "attack"):
            seen.page.goto(f"{running.base}/p/people/{name}")
            settled(seen.page)
            sound(seen.page, seen.errors)


@needs_browser
def test_hostile_texts_stay_texts_and_advice_is_a_button(
    running: RunningStudio, browser: Browser
) -> None:
    with tab(browser) as seen:
        page = seen.page
        page.goto(running.url)
        page.goto(running.base)
        page.fill("#path", "few.csv")
        page.get_by_role("button", name="Open", exact=True).click()
        page.wait_for_url("**/p/few/**")
        for name in ("promise", "compare", "preview", "attack"):
            page.goto(f"{running.base}/p/few/{name}")
            settled(page)
            sound(page, seen.errors)
        page.goto(f"{running.base}/p/few/preview")
        page.get_by_role("button", name="Make a preview").click()
        settled(page)
        page.get_by_text("nothing of use can be published").wait_for()
        page.goto(f"{running.base}/p/few/promise")
        page.get_by_role("button", name="Do this").first.click()
        page.wait_for_timeout(700)
        kept = json.loads((running.folder / "few.voile-project").read_text())
        assert kept.get("roles") or kept["options"]["epsilon"] > 1
        assert page.evaluate("() => window.hacked === undefined")


def test_a_line_that_rises_is_explained() -> None:
    def line(*errors: float | None) -> list[SliderPoint]:
        series = [{} if error is None else {"marginals": error} for error in errors]
        return [SliderPoint(i, "", {}, {}, one) for i, one in enumerate(series)]

    assert rises(line(None, 0.3, 0.2, 0.25), "marginals")
    assert not rises(line(0.3, None, 0.2, 0.2), "marginals")
    assert not rises(line(0.1, 0.2), "alphabeta")
