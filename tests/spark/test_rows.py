"""A release's rows on a cluster: what every engine owes, and the same answers as DuckDB's."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.engines.conftest import Tables
from tests.engines.test_rows import (  # noqa: F401  (what every engine owes)
    test_a_condition_that_cuts_a_bin,
    test_a_null_outside_the_domain,
    test_codes_and_keys,
    test_counts_of_tuples,
    test_expressions_on_the_domain,
    test_files_that_are_damaged,
    test_histograms,
    test_rows_that_are_scored,
    test_scores_of_histories,
    test_sums_by_group,
    test_sums_without_rows,
    test_tables_of_the_analyst,
    test_types_of_expressions,
    test_values_outside_the_domain,
)
from voile.engines.duckdb import DuckDb
from voile.engines.spark.rows import SparkRows
from voile.engines.spark.session import Cluster, cluster_at
from voile.schema import Schema


class OnCluster(DuckDb):
    """Rows of a release on Sail, in this process."""

    name = "spark"

    def open_rows(  # type: ignore[override]
        self, parts: Sequence[Path], schema: Schema, *, scores: Any = None, beside: Any = None
    ) -> SparkRows:
        return SparkRows(cluster_at("local"), [*map(str, parts)], schema, scores, beside)


@pytest.fixture(scope="module")
def cluster() -> Cluster:
    return cluster_at("local")


@pytest.fixture
def made(cluster: Cluster) -> Tables:  # noqa: ARG001
    return Tables(OnCluster())
