"""The estimator: scikit-learn's own checks, releases, and life without scikit-learn."""

from __future__ import annotations

import pickle
import sys
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tests.mining.test_mining_tree import ADULT, NUMBERS
from tests.support.perturbed import perturbed
from voile.engines import read_all
from voile.errors import UsageError
from voile.mining import ExactCounts, Limits, ReleaseTree, grow


@pytest.fixture(scope="module")
def adult() -> ExactCounts:
    return ExactCounts.of_table("dataset:adult/train", ADULT)


@pytest.fixture(scope="module")
def others() -> pd.DataFrame:
    return read_all("dataset:adult/test").select([*NUMBERS, "salary"]).to_pandas()


EXPECTED_TO_FAIL: dict[str, str] = {}
"""Checks of scikit-learn that do not apply to a tree from counts, with why: there are none."""


@pytest.mark.filterwarnings("ignore:Estimator ReleaseTree does not inherit")
def test_scikit_learn_finds_nothing_wrong_with_it() -> None:
    checks = pytest.importorskip("sklearn.utils.estimator_checks")
    told = checks.check_estimator(
        ReleaseTree(depth=6, min_support=1),
        expected_failed_checks=EXPECTED_TO_FAIL,
        on_skip=None,
        on_fail=None,
    )
    wrong = {c["check_name"]: repr(c["exception"]) for c in told if c["status"] == "failed"}
    assert not wrong
    assert sum(check["status"] == "passed" for check in told) > 40


def test_it_is_scikit_learns_in_a_pipeline_and_a_search() -> None:
    model_selection = pytest.importorskip("sklearn.model_selection")
    pipeline = pytest.importorskip("sklearn.pipeline")
    preprocessing = pytest.importorskip("sklearn.preprocessing")
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(400, 3))
    labels = np.where(rows[:, 1] > 0.3, "far", "near")
    steps = pipeline.make_pipeline(preprocessing.StandardScaler(), ReleaseTree(min_support=5))
    search = model_selection.GridSearchCV(steps, {"releasetree__depth": [1, 2]}, cv=3)
    search.fit(rows, labels)
    assert search.best_score_ > 0.9
    assert set(search.predict(rows)) == {"far", "near"}


def test_fit_on_a_release_is_the_tree_of_its_counts(
    adult: ExactCounts, others: pd.DataFrame
) -> None:
    release = perturbed(adult, dict.fromkeys(NUMBERS, 0.5) | {"salary": 1.0}, 1)
    model = ReleaseTree(target="salary").fit(release)
    tree = grow(release, "salary")
    assert [rule.conditions for rule in model.tree_.rules()] == [
        rule.conditions for rule in tree.rules()
    ]
    assert model.classes_.tolist() == ["<=50K", ">50K"]
    right = model.score(others)
    assert right == model.score(others.drop(columns="salary"), others["salary"])
    assert right == pytest.approx(np.mean(model.predict(others) == others["salary"]))
    assert right > 0.78
    shares = model.predict_proba(others)
    assert shares.shape == (len(others), 2)
    assert shares.sum(axis=1) == pytest.approx(1)
    assert (model.predict(others[list(NUMBERS)].to_numpy()) == model.predict(others)).all()


def test_fit_on_rows_is_the_tree_of_exact_counts(adult: ExactCounts) -> None:
    """With as many bins as values, cutting arrays and cutting the domain is the same."""
    pytest.importorskip("sklearn")
    rows = np.stack([adult.codes[name] for name in ("education_num", "hours_per_week")], axis=1)
    frame = pd.DataFrame(rows, columns=["education", "hours"])
    model = ReleaseTree(bins=100).fit(frame, adult.codes["salary"])
    tree = grow(adult, "salary", ["education_num", "hours_per_week"], Limits(bins=100))
    assert [rule.rows for rule in model.tree_.rules()] == [rule.rows for rule in tree.rules()]
    assert model.feature_names_in_.tolist() == ["education", "hours"]


def test_parameters_and_pickles() -> None:
    model = ReleaseTree("salary", depth=2)
    assert model.get_params()["depth"] == 2
    assert model.set_params(depth=4) is model
    assert "depth=4" in repr(model)
    with pytest.raises(ValueError, match="'leaves' is no parameter"):
        model.set_params(leaves=3)
    rows = np.array([[0.0], [1.0], [2.0], [3.0]])
    fitted = ReleaseTree(min_support=1).fit(rows, [0, 0, 1, 1])
    again = pickle.loads(pickle.dumps(fitted))  # noqa: S301  (our own bytes)
    assert again.predict(rows).tolist() == [0, 0, 1, 1]


def test_a_release_needs_a_target_and_rows_of_its_columns(
    adult: ExactCounts, others: pd.DataFrame
) -> None:
    with pytest.raises(UsageError, match="no target"):
        ReleaseTree().fit(adult)
    model = ReleaseTree("salary").fit(adult)
    with pytest.raises(UsageError, match="has not the tree's 4 columns"):
        model.predict(np.zeros((3, 2)))
    with pytest.raises(UsageError, match="the rows have no column 'salary'"):
        model.score(others.drop(columns="salary"))


def test_without_scikit_learn_releases_still_work(
    adult: ExactCounts, others: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.split(".")[0] == "sklearn"]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setitem(sys.modules, "sklearn", None)
    model: Any = ReleaseTree("salary")
    with pytest.raises(UsageError, match="was not fitted"):
        model.predict(others)
    assert model.fit(adult).score(others) > 0.78
    with pytest.raises(UsageError, match="needs scikit-learn"):
        ReleaseTree().fit(np.zeros((4, 1)), [0, 1, 0, 1])


def test_importing_voile_mining_does_not_import_scikit_learn() -> None:
    import subprocess

    code = "import sys, voile.mining; print('sklearn' in sys.modules, 'altair' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]
