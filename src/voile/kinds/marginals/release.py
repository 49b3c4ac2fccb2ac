"""Noisy marginals that were published, and what can be counted from them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from voile.arrays import Floats, Ints
from voile.arrow import numpy_array
from voile.engines import open_domain
from voile.errors import ReleaseError, UsageError, spelled
from voile.kinds.marginals.manifest import (
    CELL,
    COLUMN,
    FIGURE,
    MEASUREMENT,
    MODEL_FILE,
    PRODUCT,
    SHARE,
    VALUE,
    MarginalManifest,
    guarantee_of,
    marginal_statements,
    marginals_disclosed,
    marginals_not_promised,
    threshold_delta,
)
from voile.kinds.parquet import read_parquet
from voile.kinds.release import QueryOptions, Release

if TYPE_CHECKING:
    from voile.answering.explanation import Explanation
    from voile.engines.rows import PublicDomain
    from voile.estimate import Answer
    from voile.kinds.beliefs import BeliefBounds, StatedBeliefs
    from voile.kinds.evaluation import CountedSelections, LossEvidence, Truth
    from voile.kinds.exported import ExportChoice, ExportTable
    from voile.kinds.marginals.answering import MarginalSource
    from voile.kinds.marginals.errors import ErrorLaw
    from voile.kinds.marginals.expected import ExpectedNoise
    from voile.kinds.marginals.mixture import ProductMixture
    from voile.kinds.marginals.modelling import Model
    from voile.kinds.marginals.residuals import NoisyMarginals
    from voile.privacy.guarantees.statements import Statement
    from voile.progress import Progress
    from voile.query.query import Query

PART = "data/part-00000.parquet"


class MarginalRelease(Release):
    """Noisy tables of every few columns, and a model fitted to them."""

    kind = "noisy marginals"
    instead = "`voile query` counts from it, and `voile rows` draws synthetic rows"
    refines = True
    is_refined = True
    has_losses = True
    rows_are = "synthetic rows, drawn from a model with noise: nobody is among them"
    manifest: MarginalManifest

    def promised(self) -> list[Statement]:
        """(ε, δ), ρ or ε alone, as statements."""
        return marginal_statements(self.manifest)

    def not_promised(self) -> list[Statement]:
        """What noisy marginals must not be taken to promise."""
        return marginals_not_promised(self.manifest)

    @property
    def estimated_rows(self) -> float:
        """Rows of the table: their number where it is public, else its estimate."""
        if self.manifest.public_rows is not None:
            return float(self.manifest.public_rows)
        return max(0.0, float(self.noisy.residuals.get((), np.zeros(()))))

    def expected(self) -> list[ExpectedNoise]:
        """The noise of tables of one column, of two, and so on."""
        from voile.kinds.marginals.expected import expected_noise  # noqa: PLC0415

        return expected_noise(self.manifest.plan, self.estimated_rows, self.model.law)

    # ------------------------------------------------------------------ its files

    def columns_of(self, path: str) -> Any:
        """The Arrow schema of one of its files."""
        return model_schema() if path == MODEL_FILE else figure_schema()

    def counts_rows(self, path: str) -> bool:
        """Whether the rows of that file are counted as rows of the release: figures are."""
        return path == PART

    @property
    def figures(self) -> list[Ints]:
        """The whole figures of each table, with their noise."""
        return self._figures[: len(self.manifest.plan.measurements)]

    @property
    def place_sums(self) -> list[Ints]:
        """The sums of places within bins, of each column whose means were measured."""
        return self._figures[len(self.manifest.plan.measurements) :]

    @cached_property
    def _figures(self) -> list[Ints]:
        table = read_parquet(self.path / PART, [FIGURE])
        cells = self.manifest.public_cells
        found: Ints = numpy_array(table.column(FIGURE))
        if len(found) != sum(cells):
            raise ReleaseError(f"{PART} does not have a figure for every cell")
        return np.split(found, np.cumsum(cells)[:-1])

    @cached_property
    def noisy(self) -> NoisyMarginals:
        """The tables that the figures rebuild: unbiased, and consistent with each other."""
        return self.manifest.plan.estimated(self.figures, self.manifest.parameters.rows_figure)

    def table(self, some: tuple[str, ...]) -> Floats:
        """The unbiased table of some columns that were measured, with an axis for each."""
        names = self.schema.names
        wanted = tuple(sorted(names.index(self.schema[name].name) for name in some))
        if wanted not in self.noisy.plan.variances:
            raise UsageError(
                f"there is no table of ({', '.join(some)})",
                hint=f"name at most {self.manifest.parameters.order} columns that were measured",
            )
        found = self.noisy.table(wanted)
        order = [wanted.index(names.index(name)) for name in some]
        return np.asarray(found.transpose(order))

    @cached_property
    def model(self) -> Model:
        """The mixture, and the law of its errors."""
        return read_model(self.path, self.manifest)

    def refine(self, progress: Progress | None = None, *, replace_broken: bool = False) -> Model:
        """The model that answers are weighed against: it was fitted when this was published."""
        del progress, replace_broken
        return self.model

    # ------------------------------------------------------------------ checking it

    def foreign_attribute(self) -> str | None:
        """None: the files have figures, not values."""
        return None

    def check_terms(self) -> None:
        """Compute again all that is stated."""
        check_figures(self)
        check_promise(self.manifest)
        check_model(self)

    def check_plausible(self) -> bool:
        """Whether figures have noise where the table can have nothing."""
        from voile.kinds.marginals.plausibility import check_noise  # noqa: PLC0415

        return check_noise(self)

    # ------------------------------------------------------------------ counting from it

    def estimate_selections(
        self,
        count: Callable[[Sequence[npt.NDArray[Any]]], CountedSelections],
        *,
        refine: bool = False,
    ) -> Floats:
        """Estimates of all selections at once, weighed with the model if `refine`."""
        from voile.kinds.marginals.answering import cell_estimates  # noqa: PLC0415

        nothing: Ints = np.empty(0, dtype=np.int64)
        model = self.model if refine else None
        subsets = count([nothing for _ in self.schema]).subsets
        return np.concatenate([cell_estimates(self.noisy, model, tuple(s)) for s in subsets])

    def _check_options(self, options: QueryOptions) -> None:
        if options.method is not None:
            raise UsageError(
                "noisy marginals are answered in one way", hint=f"leave out {spelled('method')}"
            )

    def _answer(self, query: Query, view: PublicDomain, options: QueryOptions) -> Answer:
        from voile.kinds.marginals.answering import answer_marginals  # noqa: PLC0415

        source = self._source(view, options)
        return answer_marginals(
            query, source, options.confidence, simultaneous=options.simultaneous
        )

    def _explain(self, query: Query, view: PublicDomain, options: QueryOptions) -> Explanation:
        from voile.kinds.marginals.explanation import explain_marginals  # noqa: PLC0415

        return explain_marginals(query, self._source(view, options))

    def _opened_view(self, which: str = "current") -> PublicDomain:  # noqa: ARG002
        return open_domain(self.schema)  # there are no rows

    def _source(self, view: PublicDomain, options: QueryOptions) -> MarginalSource:
        from voile.kinds.marginals.answering import MarginalSource, NoisyPlaces  # noqa: PLC0415

        domain = self._sums(view, options.memory, exact=True)
        model = None if options.refine is False else self.model
        rows = self.manifest.public_rows
        means = {
            one.column: NoisyPlaces(
                sums, math.sqrt(self.manifest.plan.place_variance(measured)), (one.low, one.high)
            )
            for one, measured, sums in zip(
                self.manifest.parameters.means, self.manifest.plan.places, self.place_sums,
                strict=True,
            )
        }  # fmt: skip
        learnt = account.columns if (account := self.manifest.schema_account) else []
        reach = frozenset(column.name for column in learnt if column.open)
        beyond = {column.name: column.scales[-1] for column in learnt}
        return MarginalSource(
            view, domain, self.schema, self.noisy, model, rows, means, reach, beyond
        )

    def stated_beliefs(self) -> StatedBeliefs:
        """What the promise means in beliefs."""
        from voile.kinds.marginals.beliefs import stated_beliefs  # noqa: PLC0415

        return stated_beliefs(self.manifest)

    def belief_bounds(self) -> BeliefBounds:
        """What anyone can come to believe of one row, for several beliefs beforehand."""
        from voile.kinds.marginals.beliefs import belief_bounds  # noqa: PLC0415

        return belief_bounds(self.manifest)

    # ------------------------------------------------------------------ measuring it

    def loss_evidence(self, truth: Truth) -> LossEvidence:
        """The model, and the bound of what anyone comes to believe."""
        from voile.kinds.marginals.losses import marginal_evidence  # noqa: PLC0415

        return marginal_evidence(self, truth)

    # ------------------------------------------------------------------ its rows

    def rows(self, count: int | None = None) -> Any:
        """Synthetic rows, drawn from the model: an Arrow table, the same at every call.

        As many as `count`, or as the model counts. Nobody is among them.
        """
        from voile.kinds.marginals.rows import synthetic_rows  # noqa: PLC0415

        return synthetic_rows(self, count)

    def write_rows(
        self,
        path: str | Path,
        count: int | None = None,
        *,
        overwrite: bool = False,
        csv_safe: bool = False,
    ) -> int:
        """Write synthetic rows to a Parquet or CSV file, and say how many."""
        from voile.kinds.marginals.rows import write_rows  # noqa: PLC0415

        return write_rows(self, Path(path), count, overwrite=overwrite, csv_safe=csv_safe)

    def shown_rows(self) -> Any:
        """Synthetic rows, as many as the model counts."""
        return self.rows()

    def exported(self, choice: ExportChoice) -> Sequence[ExportTable]:
        """Synthetic rows, each marked so; or the noisy tables with the errors of their figures."""
        from voile.kinds.marginals.exported import noisy_tables, synthetic_table  # noqa: PLC0415

        self.refuse_choice(choice, tables=True, number=not choice.tables)
        return [noisy_tables(self) if choice.tables else synthetic_table(self, choice.number)]

    def to_arrow(self) -> Any:
        """Refused: there are no rows of people."""
        raise UsageError(
            "noisy marginals have no rows of people",
            hint="release.rows() draws synthetic ones, release.table(('age', 'sex')) is a table",
        )


def figure_schema() -> Any:
    """Of the file of figures."""
    return pa.schema([
        pa.field(MEASUREMENT, pa.int32(), nullable=False),
        pa.field(CELL, pa.int64(), nullable=False),
        pa.field(FIGURE, pa.int64(), nullable=False),
    ])  # fmt: skip


def model_schema() -> Any:
    """Of the file of the model."""
    return pa.schema([
        pa.field(PRODUCT, pa.int32(), nullable=False),
        pa.field(COLUMN, pa.int32(), nullable=False),
        pa.field(VALUE, pa.int64(), nullable=False),
        pa.field(SHARE, pa.float64(), nullable=False),
    ])  # fmt: skip


def listed_cells(cells: Sequence[int]) -> tuple[Ints, Ints]:
    """The measurement and the cell of every figure, in the order of the file."""
    number = np.repeat(np.arange(len(cells)), cells)
    return number, np.arange(len(number)) - np.repeat(np.cumsum([0, *cells[:-1]]), cells)


# ----------------------------------------------------------------------
# the model's file: column −1 has the weights of the products, others their shares


def model_table(model: Model) -> Any:
    """The mixture as an Arrow table."""
    mixture = model.mixture
    sizes = [part.shape[1] for part in mixture.parts]
    share = np.concatenate([mixture.weights, *(part.ravel() for part in mixture.parts)])
    columns = (*listed_places(len(mixture.weights), sizes), share)
    kinds = [field.type for field in model_schema()]
    arrays = [pa.array(c).cast(kind) for c, kind in zip(columns, kinds, strict=True)]
    return pa.table(arrays, schema=model_schema())


def model_cells(manifest: MarginalManifest) -> int:
    """The shares that a model of so many products has."""
    return manifest.model.products * (1 + sum(manifest.schema_.sizes))


def read_model(folder: Path, manifest: MarginalManifest) -> Model:
    """The model as it was published."""
    from voile.kinds.marginals.mixture import ProductMixture  # noqa: PLC0415
    from voile.kinds.marginals.modelling import Model  # noqa: PLC0415

    share: Floats = numpy_array(read_parquet(folder / MODEL_FILE, [SHARE]).column(SHARE))
    number, sizes = manifest.model.products, manifest.schema_.sizes
    if len(share) != model_cells(manifest):
        raise ReleaseError(f"{MODEL_FILE} does not have a share for every value")
    starts = np.cumsum([0, number, *(number * size for size in sizes)])
    weights = share[:number]
    parts = tuple(
        share[starts[i + 1] : starts[i + 2]].reshape(number, size) for i, size in enumerate(sizes)
    )
    mixture = ProductMixture(manifest.model.rows, weights, parts)
    check_shares(mixture)
    return Model(mixture, law_of(manifest))


# ----------------------------------------------------------------------
# checking: every figure is there, and the promise follows from the noise


AT_ONCE = 2**18
"""Rows of a file that are looked at together."""
CLOSE = 1e-6
"""By which numbers that are computed again may differ: another machine's functions."""


def check_figures(release: MarginalRelease) -> None:
    """Every cell of every table stands there once, in order; and no file is missing."""
    manifest = release.manifest
    paths = [file.path for file in manifest.files if file.rows is not None]
    if paths != [PART, MODEL_FILE]:
        raise ReleaseError(f"the release does not have {PART} and {MODEL_FILE}, and no other data")
    starts = np.cumsum([0, *manifest.public_cells])
    for place, (number, cell) in in_batches(
        release.path / PART, [MEASUREMENT, CELL], manifest.rows
    ):
        wanted = np.searchsorted(starts, place, side="right") - 1
        if not (np.array_equal(number, wanted) and np.array_equal(cell, place - starts[wanted])):
            raise ReleaseError(f"{PART} does not list its cells in order")


def in_batches(path: Path, columns: Sequence[str], rows: int) -> Iterator[tuple[Ints, list[Ints]]]:
    """The places of some rows of a file, and some columns of them: a small file may have many."""
    name, start = f"{path.parent.name}/{path.name}", 0
    try:
        with pq.ParquetFile(path) as file:
            for batch in file.iter_batches(AT_ONCE, columns=list(columns)):
                found = [numpy_array(batch.column(column)) for column in columns]
                yield np.arange(start, start + batch.num_rows), found
                start += batch.num_rows
    except (OSError, pa.ArrowException, MemoryError) as error:
        raise ReleaseError(f"{name} cannot be read: {error}", hint="try `voile verify`") from None
    if start != rows:
        raise ReleaseError(f"{name} has {start:,} rows, not {rows:,}")


def check_promise(manifest: MarginalManifest) -> None:
    """Refuse a guarantee that does not follow from the noise."""
    g = manifest.guarantee
    chance = threshold_delta(manifest)
    pure = manifest.parameters.noise == "geometric" and not chance
    if (g.kind == "dp") != pure or (g.kind == "zcdp" and chance):
        raise ReleaseError(f"manifest.json: {g.kind} does not follow from its noise")
    kept = guarantee_of(manifest.plan, g.kind, g.delta or 0.5)
    for name in ("epsilon", "delta", "rho", "mu"):
        stated, found = getattr(g, name), getattr(kept, name)
        if not agree(stated, found):
            raise ReleaseError(
                f"manifest.json: {name} is {stated!r}, and from the noise follows {found!r}"
            )
    wanted = marginals_disclosed(manifest.schema_, manifest.nulls, g.unit, manifest.schema_account)
    if manifest.disclosed != wanted:
        raise ReleaseError("manifest.json does not say all that the release discloses")


def agree(stated: float | None, found: float | None) -> bool:
    """Whether a stated number is the one that was computed again, up to rounding."""
    if stated is None or found is None:
        return stated is found
    return math.isclose(stated, found, rel_tol=CLOSE, abs_tol=1e-300)


def check_model(release: MarginalRelease) -> None:
    """Every share of the model stands there once, in order; that they add up, reading it sees."""
    stated = next(file.rows for file in release.manifest.files if file.path == MODEL_FILE)
    if stated != (cells := model_cells(release.manifest)):
        raise ReleaseError(f"{MODEL_FILE} does not have a share for every value")
    sizes = np.array([1, *release.schema.sizes])
    starts = np.cumsum([0, *(release.manifest.model.products * sizes)])
    path = release.path / MODEL_FILE
    for place, found in in_batches(path, [PRODUCT, COLUMN, VALUE], cells):
        part = np.searchsorted(starts, place, side="right") - 1
        product, value = np.divmod(place - starts[part], sizes[part])
        if not all(map(np.array_equal, found, (product, part - 1, value))):
            raise ReleaseError(f"{MODEL_FILE} does not list its shares in order")
    check_rows_of_model(release)


def check_rows_of_model(release: MarginalRelease) -> None:
    """The model counts as many rows as the tables do, or as their noise hides."""
    model, law = release.manifest.model, release.model.law
    variance = release.noisy.plan.variances.get((), 0.0)
    total = float(release.noisy.residuals.get((), np.array(1.0)))
    wanted = max(math.sqrt(variance), total)
    for what, stated, found in (
        ("model.rows", model.rows, wanted),
        ("model.law.rows", law.rows, wanted),
        ("model.law.rows_variance", law.rows_variance, variance),
    ):
        if not agree(stated, found):
            raise ReleaseError(f"manifest.json: {what} is {stated!r}, and the tables say {found!r}")


def check_shares(mixture: ProductMixture) -> None:
    """Refuse shares that are none, or do not add up to 1."""
    for shares in (mixture.weights[None, :], *mixture.parts):
        sound = np.isfinite(shares).all() and (shares >= 0).all() and (shares <= 1 + CLOSE).all()
        if not sound or not np.allclose(shares.sum(axis=1), 1, rtol=0, atol=CLOSE):
            raise ReleaseError(f"{MODEL_FILE} has shares that do not add up to 1")


def law_of(manifest: MarginalManifest) -> ErrorLaw:
    """The law of the model's errors, as it was published."""
    from voile.kinds.marginals.errors import NUMBER, TURNS, ErrorLaw  # noqa: PLC0415

    law = manifest.model.law
    if (
        len(law.error) != NUMBER
        or len(law.unmeasured) != NUMBER
        or len(law.shared) != 2 * len(TURNS)
    ):
        raise ReleaseError("manifest.json: the law of the model's errors is not whole")
    return ErrorLaw(
        rows=law.rows,
        rows_variance=law.rows_variance,
        unit=law.unit,
        scale=law.scale,
        error=tuple(law.error),
        shared=tuple(law.shared),
        unmeasured=tuple(law.unmeasured),
        order=law.order,
        caution=law.caution,
        far=law.far,
    )


def listed_places(products: int, sizes: Sequence[int]) -> tuple[Ints, Ints, Ints]:
    """The product, the column and the value of every share, in the order of the file."""
    parts = [(-1, 1), *enumerate(sizes)]
    return (
        np.concatenate([np.repeat(np.arange(products), size) for _, size in parts]),
        np.concatenate([np.full(products * size, i) for i, size in parts]),
        np.concatenate([np.tile(np.arange(size), products) for _, size in parts]),
    )
