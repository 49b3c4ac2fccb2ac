"""Releases of classes are quick to make where their error model is not what is tested."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.soak import SOAK
from voile.kinds.classes import errors

ABOUT_ERRORS = ("test_class_errors", "test_class_intervals", "test_class_answers")


@pytest.fixture(scope="module", autouse=True)
def few_questions(request: pytest.FixtureRequest) -> Iterator[None]:
    """Measuring how far answers are off takes half of the time of publishing, or more."""
    with pytest.MonkeyPatch.context() as patch:
        if not SOAK and request.module.__name__.rpartition(".")[2] not in ABOUT_ERRORS:
            patch.setattr(errors, "LEAST_QUESTIONS", 20)
            patch.setattr(errors, "MOST_QUESTIONS", 20)
        yield
