"""Servers for the tests of the Spark engine."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterator

import pytest

from tests.spark.cluster import ApacheSpark, end_client, missing, shared, turn


@pytest.fixture(scope="session", autouse=True)
def client() -> None:
    """pyspark takes a program without a file, as xdist's workers are, for doctests, and exits."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys.modules["__main__"], "__file__", "", raising=False)
        importlib.import_module("pyspark.sql.connect.session")


@pytest.fixture(scope="session")
def apache_spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApacheSpark]:
    """Apache Spark with two executors, one server for all workers of a run."""
    if reason := missing():
        pytest.skip(reason)
    place = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        place = place.parent
    with shared(place / "apache-spark") as spark:
        try:
            yield spark
        finally:
            end_client(spark.address)


@pytest.fixture(autouse=True)
def alone(request: pytest.FixtureRequest) -> Iterator[None]:
    """Workers take turns at Apache Spark: a test may kill executors, or count what was done."""
    if "apache_spark" not in request.fixturenames:
        yield
        return
    spark: ApacheSpark = request.getfixturevalue("apache_spark")
    with turn(spark.folder / "turn"):
        spark.await_executors()
        yield
