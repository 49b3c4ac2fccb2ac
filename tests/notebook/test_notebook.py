"""%voile and %%voile in IPython."""

from __future__ import annotations

from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from IPython.core.error import UsageError as WrongCall
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output

import voile
from voile.estimate import Answer

FRAME = pd.DataFrame({"age": [20, 21, 22, 23] * 50, "sex": ["<f>", "m"] * 100})
COUNT = "select sex, count(*) as n from t group by sex"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("with space") / "t.voile"
    voile.perturb(FRAME, 0.7, name="t", to=folder, register=False, simulate_seed=1)
    return folder


@pytest.fixture
def shell() -> Iterator[Any]:
    found = InteractiveShell.instance()
    found.run_line_magic("load_ext", "voile")
    yield found
    found.run_line_magic("unload_ext", "voile")
    InteractiveShell.clear_instance()


def displayed(shell: Any, line: str, cell: str | None = None) -> Any:
    with capture_output() as found:
        if cell is None:
            shell.run_line_magic("voile", line)
        else:
            shell.run_cell_magic("voile", line, cell)
    [shown] = found.outputs
    return shown


def test_a_cell_of_sql_is_answered_and_kept(shell: Any, place: Path) -> None:
    opened = displayed(shell, f"'{place}'")
    assert opened.data["text/plain"].startswith("t: a table perturbed row by row. local ε")
    assert "<table>" in opened.data["text/html"]
    shown = displayed(shell, "-o found --confidence 0.9", COUNT + ";\n")
    answer = shell.user_ns["found"]
    assert isinstance(answer, Answer)
    assert answer.confidence == 0.9
    assert answer.to_dict() == voile.open(place).query(COUNT, 0.9).to_dict()
    assert shown.data["text/html"] == answer._repr_html_()
    again = displayed(shell, f'"{place}"', "select count(*) from t")
    assert "200" in again.data["text/html"]
    assert "200" in displayed(shell, "select count(*) from t").data["text/html"]


def test_variables_are_releases_and_tables(shell: Any, place: Path) -> None:
    shell.user_ns["mine"] = voile.open(place)
    shell.user_ns["ages"] = pd.DataFrame({"age": [20, 21], "old": ["no", "yes"]})
    sql = "select count(*) as n from t where age in (select age from old_ages where old = 'no')"
    displayed(shell, "mine --with old_ages=ages -o n", sql)
    [row] = shell.user_ns["n"].rows
    assert abs(row["n"].value - 50) < 5 * row["n"].stderr


@pytest.mark.parametrize(
    ("line", "cell", "message"),
    [
        ("", COUNT, "no release is open"),
        ("there/is/none.voile", None, "there is no release"),
        ("{place} other", None, "two releases are named"),
        ("frame", None, "the variable 'frame' is a DataFrame"),
        ("{place}", "select wrong from t", "wrong"),
        ("{place} -o 1a", COUNT, "is no name"),
        ("{place} --with nothing", COUNT, "there is no variable 'nothing'"),
        ("{place} --confidence 2", COUNT, "must lie between 0 and 1"),
        ("{place} --confidence x", COUNT, "invalid float"),
    ],
)
def test_what_is_wrong_is_said_without_a_traceback(
    shell: Any, place: Path, line: str, cell: str | None, message: str
) -> None:
    shell.user_ns["frame"] = FRAME
    with pytest.raises(WrongCall, match=message):
        displayed(shell, line.format(place=f"'{place}'"), cell)


def test_a_release_that_was_replaced_is_opened_again(shell: Any, tmp_path: Path) -> None:
    folder = tmp_path / "t.voile"
    for rows in (FRAME, FRAME.head(100)):
        voile.perturb(rows, 0.7, name="t", to=folder, register=False, simulate_seed=1,
                      overwrite=True)  # fmt: skip
        displayed(shell, f"{folder} -o n", "select count(*) as n from t")
        assert shell.user_ns["n"].value == len(rows)


class Tags(HTMLParser):
    """What a page shows, and whether its elements close."""

    def __init__(self) -> None:
        super().__init__()
        self.open, self.cells = list[str](), list[str]()

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        del attrs
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if {"td", "th"} & set(self.open):
            self.cells.append(data)


def test_an_answer_as_html(place: Path) -> None:
    answer = voile.open(place).query(COUNT)
    text = answer._repr_html_()
    page = Tags()
    page.feed(text)
    assert not page.open
    assert page.cells[:4] == ["sex", "n", "±", "interval"]
    assert page.cells[4] == "<f>"
    low, high = answer.rows[0]["n"].interval()
    assert page.cells[7] == f"{low:,.0f} – {high:,.0f}"
    # Both themes: every colour is the page's own.
    assert "#" not in text and "rgb(" not in text and "currentColor" in text
    assert "Intervals at 0.95 cover" in text
    none = voile.open(place).query(COUNT + " having count(*) < 0")._repr_html_()
    assert "<th" in none and "<td" not in none
