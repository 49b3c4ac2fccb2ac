"""What publishing asks of a mechanism; what answering asks is in voile.answering.estimator."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from voile.arrays import Floats
from voile.noise import Key
from voile.privacy import Form, LikelihoodRatio
from voile.schema import Keys, TupleIndex
from voile.schema.index import Codes


class Publishing(Protocol):
    """Immutable parameters that state what they promise and turn records into a view."""

    @property
    def form(self) -> Form: ...

    @property
    def retention(self) -> float:
        """The chance that a record is kept."""
        ...

    def likelihood_ratio(self) -> LikelihoodRatio:
        """How much one record can change the chance of any view, exactly."""
        ...

    def log_likelihood(self, counts: Codes, records: int, codes: Sequence[Codes]) -> Floats:
        """log P(the view shows counts[i] copies of tuple i | the table holds `records` of it)."""
        ...

    def expected_noise(self, size: int) -> float: ...

    def noise_deviation(self, size: int) -> float: ...

    def cuts(self, index: TupleIndex, rows: int) -> list[int]:
        """Where D is cut into ranges that are perturbed on their own."""
        ...

    def noise_rows(self, index: TupleIndex, key: Key, number: int, first: int, last: int) -> Keys:
        """The noise of the tuples whose first word lies in [first, last), in the order of D."""
        ...

    def view(self, members: Keys, noise: Keys, key: Key, number: int) -> Iterator[Keys]:
        """The published rows of one range, in the order of D, a batch at a time."""
        ...
