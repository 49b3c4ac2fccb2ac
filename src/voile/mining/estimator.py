"""Arrays of numbers as a table with a schema of its own, for the estimator."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from voile.arrays import Floats
from voile.engines import read_all
from voile.errors import UsageError
from voile.mining.binning import binning
from voile.mining.counts import Counts, ExactCounts, chosen_columns
from voile.mining.growing import Limits, grow
from voile.mining.tree import Tree
from voile.schema import Attribute, Bins, Schema, Values


@dataclass(frozen=True, eq=False)
class TrainingSample:
    """How the columns of an array are cut, and which classes its rows have."""

    schema: Schema
    target: str
    classes: npt.NDArray[Any]
    bins: int

    @classmethod
    def of_arrays(
        cls,
        rows: Floats,
        labels: npt.NDArray[Any],
        names: Sequence[Any] | None,
        target: str | None,
        bins: int,
    ) -> TrainingSample:
        """Cut every column between its smallest and its largest number."""
        known = (
            [f"x{at}" for at in range(rows.shape[1])] if names is None else list(map(str, names))
        )
        called = target or "class"
        while called.casefold() in {name.casefold() for name in known}:
            called += "_"
        columns = [numbers(name, rows[:, at], bins) for at, name in enumerate(known)]
        classes = np.unique(labels)
        listed = Values(tuple(str(label) for label in classes))
        own = Attribute(called, "categorical", listed, ordered=False)
        return cls(Schema((*columns, own)), called, classes, bins)

    def table(self, rows: Floats) -> Any:
        """The rows as Arrow, without classes."""
        names = self.schema.names[:-1]
        return pa.table({name: pa.array(rows[:, at]) for at, name in enumerate(names)})

    def codes(self, rows: Floats, labels: npt.NDArray[Any]) -> dict[str, npt.NDArray[Any]]:
        """The codes of all columns: there are no more of them than bins."""
        table = self.table(rows)
        found = {
            a.name: binning(a, self.bins).places(table.column(a.name))
            for a in self.schema.attributes[:-1]
        }
        return {**found, self.target: np.searchsorted(self.classes, labels)}


def numbers(name: str, column: Floats, bins: int) -> Attribute:
    """All values of a column of few, else equal parts of its range."""
    values = np.unique(column + 0.0)  # one zero of the two that floats have
    if len(values) <= bins:
        return Attribute(name, "numeric", Values(tuple(values.tolist())))
    edges = np.unique(np.linspace(values[0], values[-1], bins + 1))
    return Attribute(name, "numeric", Bins(tuple(edges.tolist())))


# -------- the tree as scikit-learn knows estimators: fit on a release, or on rows; predict on rows


class ReleaseTree:
    """A decision tree from reconstructed counts.

    `fit(release)` needs `target`, the name of the class column. `fit(X, y)` takes rows that
    nobody perturbed, as arrays or a data frame of numbers, and counts them exactly; `target` is
    then only a name. Both cut numbers into `bins` parts and stop at `depth` and `min_support`; a
    release is split only beyond chance, by `level`, and rows wherever that gains anything.
    """

    tree_: Tree
    classes_: npt.NDArray[Any]
    n_features_in_: int

    def __init__(
        self,
        target: str | None = None,
        *,
        depth: int = 3,
        min_support: float = 300,
        bins: int = 20,
        method: str = "stopped",
        level: float = 0.95,
        columns: Sequence[str] | None = None,
    ) -> None:
        self.target = target
        self.depth = depth
        self.min_support = min_support
        self.bins = bins
        self.method = method
        self.level = level
        self.columns = columns

    # ------------------------------------------------------------------ parameters

    def get_params(self, deep: bool = True) -> dict[str, Any]:  # noqa: ARG002  (scikit-learn's)
        """The parameters by name."""
        return {name: getattr(self, name) for name in inspect.signature(type(self)).parameters}

    def set_params(self, **params: Any) -> ReleaseTree:
        """Change parameters; unknown ones are refused."""
        known = self.get_params()
        for name, value in params.items():
            if name not in known:
                raise ValueError(f"{name!r} is no parameter of ReleaseTree: {', '.join(known)}")
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        given = ", ".join(f"{name}={value!r}" for name, value in self.get_params().items())
        return f"ReleaseTree({given})"

    # ------------------------------------------------------------------ fitting

    def fit(self, X: Any, y: Any = None) -> ReleaseTree:  # noqa: N803  (scikit-learn's names)
        """Grow the tree from a release, or from rows X and their classes y."""
        if isinstance(X, Counts):
            return self._fit_release(X)
        return self._fit_rows(X, y)

    def _limits(self) -> Limits:
        return Limits(self.depth, self.min_support, self.bins, self.method, self.level)

    def _fit_release(self, release: Counts) -> ReleaseTree:
        if self.target is None:
            raise UsageError(
                "the tree has no target", hint="ReleaseTree(target='salary').fit(release)"
            )
        names = chosen_columns(release.schema, self.columns, but=self.target)
        self.tree_ = grow(release, self.target, names, self._limits())
        self.classes_ = np.array(self.tree_.classes)
        self.feature_names_in_ = np.array(names, dtype=object)
        self.n_features_in_ = len(names)
        self._sample: TrainingSample | None = None
        return self

    def _fit_rows(self, X: Any, y: Any) -> ReleaseTree:  # noqa: N803
        rows, classes = validated(self, X, y)
        self._sample = TrainingSample.of_arrays(
            rows, classes, getattr(self, "feature_names_in_", None), self.target, self.bins
        )
        self.classes_ = self._sample.classes
        counts = ExactCounts(self._sample.schema, self._sample.codes(rows, classes))
        names = chosen_columns(counts.schema, self.columns, but=self._sample.target)
        limits = replace(self._limits(), level=0.0)
        self.tree_ = grow(counts, self._sample.target, names, limits)
        return self

    # ------------------------------------------------------------------ predicting

    def predict(self, X: Any) -> npt.NDArray[Any]:  # noqa: N803
        """The class of each row."""
        shares = self.predict_proba(X)
        found: npt.NDArray[Any] = self.classes_[shares.argmax(axis=1)]
        return found

    def predict_proba(self, X: Any) -> npt.NDArray[np.float64]:  # noqa: N803
        """The share of each class in the leaf that a row falls in (rows × classes_)."""
        check_fitted(self)
        table = self._table(X)
        return self.tree_.shares(self.tree_.places(table), table.num_rows)

    def score(self, X: Any, y: Any = None) -> float:  # noqa: N803
        """The share of rows put in their class; y may be a column of X."""
        predicted = self.predict(X)
        if y is None and self._sample is None:
            y = self._labels(read_all(X))
        return float(np.mean(predicted == np.asarray(y)))

    def _labels(self, table: Any) -> npt.NDArray[Any]:
        if self.target not in table.schema.names:
            raise UsageError(
                f"the rows have no column {self.target!r} to compare with", hint="give y as well"
            )
        return np.array(table.column(self.target).to_pylist(), dtype=self.classes_.dtype)

    def _table(self, X: Any) -> Any:  # noqa: N803
        if self._sample is not None:
            return self._sample.table(validated_again(self, X))
        if isinstance(X, np.ndarray):
            if X.ndim != 2 or X.shape[1] != self.n_features_in_:
                raise UsageError(
                    f"an array of shape {X.shape} has not the tree's {self.n_features_in_} columns",
                    hint=f"give {', '.join(map(str, self.feature_names_in_))}, or a data frame",
                )
            names = [str(name) for name in self.feature_names_in_]
            return pa.table({name: pa.array(X[:, at].tolist()) for at, name in enumerate(names)})
        return read_all(X)

    # ------------------------------------------------------------------ what scikit-learn asks

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "tree_")

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import ClassifierTags, InputTags, Tags, TargetTags  # noqa: PLC0415

        return Tags(
            estimator_type="classifier",
            target_tags=TargetTags(required=True),
            classifier_tags=ClassifierTags(),
            input_tags=InputTags(),
        )


def validated(estimator: ReleaseTree, rows: Any, classes: Any) -> tuple[Any, Any]:
    """Rows and classes as scikit-learn wants them checked."""
    try:
        from sklearn.utils.multiclass import check_classification_targets  # noqa: PLC0415
        from sklearn.utils.validation import validate_data  # noqa: PLC0415
    except ImportError:
        raise UsageError(
            "fitting rows needs scikit-learn, which is not installed",
            hint="pip install 'voile[mining]', or fit a release",
        ) from None
    checked, labels = validate_data(estimator, rows, classes, dtype=np.float64)
    check_classification_targets(labels)
    if len(np.unique(labels)) < 2:
        raise ValueError("ReleaseTree needs two classes; y has one class only")
    return checked, labels


def validated_again(estimator: ReleaseTree, rows: Any) -> Any:
    """Rows to predict for, checked against those of the fit."""
    from sklearn.utils.validation import validate_data  # noqa: PLC0415

    return validate_data(estimator, rows, reset=False, dtype=np.float64)


def check_fitted(estimator: ReleaseTree) -> None:
    """Refuse a tree that was not fitted."""
    if hasattr(estimator, "tree_"):
        return
    try:
        from sklearn.exceptions import NotFittedError  # noqa: PLC0415
    except ImportError:
        raise UsageError("the tree was not fitted", hint="call fit(release) first") from None
    raise NotFittedError("this ReleaseTree was not fitted; call fit(release) first")
