"""Jobs: found again, cancelled, failed, and gone with the studio."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from voile.studio.jobs import Job, Jobs
from voile.studio.pages import rendered
from voile.studio.screens import promise
from voile.studio.work import ReportedProgress


@pytest.fixture
def jobs() -> Iterator[Jobs]:
    found = Jobs()
    yield found
    found.close()


def arguments(source: str) -> dict[str, Any]:
    return {"source": source, "reading": {}, "stamp": [], "kept": []}


def await_(job: Job, done: Callable[[Job], bool] = lambda job: not job.running) -> Job:
    until = time.monotonic() + 60
    while not done(job):
        assert time.monotonic() < until, job
        job = job.wait(0.02)
    return job


def test_work_is_done_once_and_found_again(jobs: Jobs) -> None:
    job = jobs.start("table.inspect", arguments("dataset:scores"), title="Reading")
    found = jobs.find("table.inspect", arguments("dataset:scores"))
    assert found is not None and found.id == job.id and found.process is job.process
    done = await_(job)
    assert done.ok and done.data["rows"] > 0
    again = jobs.start("table.inspect", arguments("dataset:scores"), title="Reading")
    assert again.ok and again.process is job.process


def test_what_a_page_was_given_does_not_change_while_it_is_drawn(jobs: Jobs) -> None:
    job = jobs.start("table.inspect", arguments("dataset:scores"), title="Reading")
    assert job.running
    assert await_(job).ok
    assert job.running and job.data is None
    later = jobs.get(job.id)
    assert later is not None and later.ok


def test_a_refusal_arrives_with_its_hint(jobs: Jobs) -> None:
    job = await_(jobs.start("table.inspect", arguments("nowhere.csv"), title="Reading"))
    assert job.state == "failed" and "nowhere.csv" in job.error
    again = jobs.start("table.inspect", arguments("nowhere.csv"), title="Reading")
    # A page that is loaded anew does not try for ever.
    assert again.state == "failed" and again.process is job.process
    jobs.forget(job.id)
    assert jobs.find("table.inspect", arguments("nowhere.csv")) is None


def test_a_fault_is_no_silence(jobs: Jobs) -> None:
    job = await_(jobs.start("table.inspect", {"nonsense": 1}, title="Reading"))
    assert job.state == "failed" and "without an answer" in job.error


def test_cancelled_work_ends_at_once(jobs: Jobs, tmp_path: Path) -> None:
    big = tmp_path / "big.csv"
    big.write_text("a,b\n" + "1,x\n" * 3_000_000)
    job = jobs.start("table.inspect", arguments(str(big)), title="Reading")
    job = await_(job, lambda job: job.what != "starting")
    jobs.cancel(job.id)
    job = job.wait(0)
    assert job.state == "cancelled" and job.process is not None
    assert job.process.wait(timeout=10) != 0


def test_processes_end_with_the_studio(tmp_path: Path) -> None:
    jobs = Jobs()
    jobs.warm()
    big = tmp_path / "big.csv"
    big.write_text("a,b\n" + "1,x\n" * 1_000_000)
    job = jobs.start("table.inspect", arguments(str(big)), title="Reading")
    job = await_(job, lambda job: job.process is not None)
    jobs.close()
    assert job.process is not None and job.process.poll() is not None
    assert not await_(job).running


def test_the_id_says_nothing_of_the_arguments(jobs: Jobs) -> None:
    one = jobs.start("table.inspect", arguments("a.csv"), title="")
    other = jobs.start("table.inspect", arguments("b.csv"), title="")
    assert one.id != other.id and "csv" not in one.id


@pytest.mark.parametrize(
    ("done", "total", "said"),
    [(0, 0, ""), (0, 1, ""), (2, 5, "2 of 5"), (9, 5, "5 of 5"), (430, 1000, "43 %")],
)
def test_how_far_a_job_is(done: int, total: int, said: str) -> None:
    job = Job("id", "a.b", "Trying", what="trial 3: reading", done=done, total=total)
    html = rendered("job.html", {"job": job})
    assert job.measure == said
    assert f"trial 3: reading{', ' * bool(said)}{said}, 0 s" in html
    assert ("value=" in html) == bool(said)


def test_trials_say_which_of_them_is_made_and_its_step() -> None:
    lines: list[Any] = []
    table: dict[str, Any] = {"source": "dataset:scores", "reading": {}, "stamp": [], "choices": {}}
    promise.trials_task(
        ReportedProgress(lines.append), **table, questions=[], method="full-table",
        points=[{"epsilon": 1.0}, {"epsilon": 2.0}],
    )  # fmt: skip
    assert {line["total"] for line in lines} == {2}
    second = [line for line in lines if line["what"].startswith("trial 2: ")]
    assert second and second[-1]["done"] == 1
    assert any(line["what"].startswith("trial 1: ") and line["done"] == 0 for line in lines)


def test_secret_arguments_are_not_kept(jobs: Jobs) -> None:
    job = jobs.start(
        "table.inspect", {"source": "x"}, title="Reading", secret={"passphrase": "hunter2"}
    )
    job = await_(job)
    assert job.process is not None and "hunter2" not in str(job.process.args)
    assert "hunter2" not in repr(vars(job))
