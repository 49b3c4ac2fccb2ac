"""A model of the table behind noisy marginals: a mixture of products, fitted to them alone.

The share of a tuple t is Σ_k w_k Π_i P_i[k, t_i]. Centring a marginal along an axis centres that
factor of each product: component c of the model is Σ_k w_k Π_{i∈c} (P_i[k, t_i] − 1/n_i), a few
products of small matrices. What is fitted are the measured components, each weighed by its own
variance; for Gaussian noise that is the likelihood. The parameters are logits, the descent is
Adam's with a cosine decay.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from voile.arrays import Floats, Ints
from voile.kinds.marginals.residuals import Columns, NoisyMarginals
from voile.progress import Progress

Singles = npt.NDArray[np.float32]
PRODUCTS, STEPS, RATE = 100, 400, 0.3
TILT = 1.0
"""How far the products of a mixture are from independent columns when the descent begins."""
FIRST, SECOND, SMALL = 0.9, 0.9, 1e-8
"""Adam's averages of the slope and of its square."""


quietly = np.errstate(invalid="ignore")
"""Vector units raise this flag in matrix products of finite numbers, now and then, where they load
more than there is. What is not finite is refused once a model is made."""


@dataclass(frozen=True, eq=False)
class ProductMixture:
    """Products of distributions, and how much each of them weighs."""

    rows: float
    weights: Floats
    parts: tuple[Floats, ...]
    """For each column, (products, values)."""

    @quietly
    def table(self, columns: Columns) -> Floats:
        """The counts of a marginal."""
        if not columns:
            return np.array(self.rows)
        first, *others = columns
        lead = (self.rows * self.weights[:, None] * self.parts[first]).T
        rest = joined([self.parts[i] for i in others], len(self.weights))
        return (lead @ rest).reshape([self.parts[i].shape[1] for i in columns])

    def component(self, columns: Columns) -> Floats:
        """The marginal, centred along every axis."""
        centred = tuple(part - 1 / part.shape[1] for part in self.parts)
        return ProductMixture(self.rows, self.weights, centred).table(columns)

    def totals(self, columns: Columns, shares: Sequence[Floats], weights: Floats) -> Floats:
        """Σ weight·count over classes of columns; shares[j] is (products, classes) of the j-th."""
        before = weights.ndim - len(columns)
        letters = "abcdefghijklmnop"[: len(columns)]
        terms = ",".join(f"z{letter}" for letter in letters)
        ones = f"z,{terms}" if terms else "z"
        counts = np.einsum(f"{ones}->{letters}", self.weights, *shares, optimize=True)
        axes = tuple(range(before, weights.ndim))
        return np.asarray((weights * (self.rows * counts)).sum(axis=axes))

    def class_shares(self, column: int, class_of: Ints) -> Floats:
        """(products, classes): how likely each class of a column's values is."""
        found = np.zeros((int(class_of.max()) + 1, len(self.weights)))
        np.add.at(found, class_of, self.parts[column].T)
        return np.ascontiguousarray(found.T)


def together(mixtures: Sequence[ProductMixture]) -> ProductMixture:
    """The average of several."""
    return ProductMixture(
        float(np.mean([m.rows for m in mixtures])),
        np.concatenate([m.weights for m in mixtures]) / len(mixtures),
        tuple(np.concatenate(parts) for parts in zip(*(m.parts for m in mixtures), strict=True)),
    )


def shrunk(mixture: ProductMixture, share: float) -> ProductMixture:
    """With this share of independent columns, each as it is distributed."""
    if share <= 0:
        return mixture
    own = tuple(np.concatenate([p, (mixture.weights @ p)[None]]) for p in mixture.parts)
    weights = np.append(mixture.weights * (1 - share), share)
    return ProductMixture(mixture.rows, weights, own)


def joined(parts: Sequence[npt.NDArray[np.floating]], products: int) -> npt.NDArray[np.floating]:
    """(products, cells of all these columns)."""
    if not parts:
        return np.ones((products, 1), np.float32)
    found, *others = parts
    for part in others:
        found = (found[:, :, None] * part[:, None, :]).reshape(products, -1)
    return found


# ----------------------------------------------------------------------
# the components, arranged for few large matrix products


@dataclass(frozen=True, eq=False)
class Group:
    """All measured components that end in the same columns: one matrix product.

    Its rows are the values of the leading columns, one after another; its columns are the cells
    of those that they share.
    """

    leads: tuple[int, ...]
    ends: Columns
    places: slice | Ints
    """Where the leads' values are among the values of all columns."""
    target: Singles
    """Divided by σ."""
    precision: Singles
    """1/σ of each row."""


@dataclass(frozen=True, eq=False)
class Layout:
    """The order of columns in which products are taken, largest first, so that ends are small."""

    sizes: tuple[int, ...]
    order: tuple[int, ...] = field(init=False)
    starts: Mapping[int, int] = field(init=False)

    def __post_init__(self) -> None:
        order = tuple(sorted(range(len(self.sizes)), key=lambda i: (-self.sizes[i], i)))
        sizes = [self.sizes[i] for i in order]
        before = np.concatenate([[0], np.cumsum(sizes)])[:-1]
        object.__setattr__(self, "order", order)
        object.__setattr__(self, "starts", {i: int(b) for i, b in zip(order, before, strict=True)})

    def place(self, column: int) -> slice:
        """Where a column's values are among all."""
        return slice(self.starts[column], self.starts[column] + self.sizes[column])

    def groups(self, noisy: NoisyMarginals) -> list[Group]:
        """The measured components but the total, by what they end in."""
        rank = {column: r for r, column in enumerate(self.order)}
        by_ends: dict[Columns, list[int]] = {}
        for c in noisy.plan.components:
            if c:
                first, *ends = sorted(c, key=rank.__getitem__)
                by_ends.setdefault(tuple(ends), []).append(first)
        return [
            self._group(noisy, tuple(sorted(leads, key=rank.__getitem__)), ends)
            for ends, leads in by_ends.items()
        ]

    def _group(self, noisy: NoisyMarginals, leads: tuple[int, ...], ends: Columns) -> Group:
        targets, precisions = [], []
        for lead in leads:
            columns = (lead, *ends)
            c = tuple(sorted(columns))
            table = noisy.residuals[c].transpose([c.index(i) for i in columns])
            root = 1 / math.sqrt(noisy.plan.variances[c])
            targets.append((table.reshape(self.sizes[lead], -1) * root).astype(np.float32))
            precisions.append(np.full(self.sizes[lead], root))
        target = np.concatenate(targets)
        precision = np.concatenate(precisions).astype(np.float32)
        return Group(leads, ends, self._places(leads), target, precision)

    def _places(self, leads: tuple[int, ...]) -> slice | Ints:
        parts = [self.place(lead) for lead in leads]
        if all(a.stop == b.start for a, b in pairwise(parts)):
            return slice(parts[0].start, parts[-1].stop)
        return np.concatenate([np.arange(p.start, p.stop, dtype=np.int64) for p in parts])


# ----------------------------------------------------------------------
# the descent


class MixtureFit:
    """Parameters, slopes, and how far the model is from the marginals."""

    def __init__(self, noisy: NoisyMarginals, products: int = PRODUCTS, seed: int = 0) -> None:
        self._layout = Layout(noisy.plan.sizes)
        self._products = products
        # Noise may hide that there are rows at all: then there may be as many as it hides.
        unclear = math.sqrt(noisy.plan.variances.get((), 0.0))
        self.rows = max(unclear, float(noisy.residuals.get((), np.array(1.0))))
        self._scale = np.float32(max(1.0, self.rows))
        self._groups = self._layout.groups(noisy)
        self.logits = self._begun(noisy, np.random.default_rng(seed))
        self._slopes = [np.zeros_like(p) for p in self.logits]
        self._squares = [np.zeros_like(p) for p in self.logits]
        self._taken = 0

    def _begun(self, noisy: NoisyMarginals, rng: np.random.Generator) -> list[Singles]:
        """Independent columns, each product tilted by chance."""
        found = [np.zeros((1, self._products), np.float32)]
        for i in self._layout.order:
            size = noisy.plan.sizes[i]
            one = np.maximum(noisy.table((i,)), 0) if (i,) in noisy.residuals else np.ones(size)
            share = np.log(one + 1e-3 * one.max() + 1e-9) - math.log(one.sum() + 1)
            tilt = TILT * rng.standard_normal((self._products, size))
            found.append((share[None, :] + tilt).astype(np.float32))
        return found

    @quietly
    def run(self, steps: int, progress: Progress | None = None) -> ProductMixture:
        """Descend; the model after the last step."""
        for step in range(steps):
            self.step(RATE * (1 + math.cos(math.pi * step / steps)) / 2)
            if progress is not None:
                progress.advance(1)
        return self.mixture()

    def step(self, rate: float) -> None:
        """One step of Adam's."""
        self._taken += 1
        lower, upper = 1 - FIRST**self._taken, 1 - SECOND**self._taken
        for place, slope in enumerate(self.slopes()[1]):
            mean, square = self._slopes[place], self._squares[place]
            mean += (1 - FIRST) * (slope - mean)
            square += (1 - SECOND) * (slope * slope - square)
            grown = np.sqrt(square / upper) + SMALL
            self.logits[place] -= np.float32(rate / lower) * mean / grown

    def mixture(self) -> ProductMixture:
        """The model as it stands."""
        weights, *parts = (normalized(softmax(p).astype(np.float64)) for p in self.logits)
        by_column = dict(zip(self._layout.order, parts, strict=True))
        return ProductMixture(self.rows, weights[0], tuple(by_column[i] for i in sorted(by_column)))

    @quietly
    def slopes(self) -> tuple[float, list[Singles]]:
        """Half the weighted square distance from the components, and its slope in each logit."""
        weights, *parts = (softmax(p) for p in self.logits)
        flat = np.concatenate([p - np.float32(1 / p.shape[1]) for p in parts], axis=1)
        weight = (weights[0] * self._scale)[:, None]
        loss, of_flat, of_lead = 0.0, np.zeros_like(flat), np.zeros_like(flat)
        lead = weight * flat
        for group, ends, rest in self._products_of(flat):
            own = lead[:, group.places] * group.precision
            off = own.T @ rest
            off -= group.target
            loss += float(np.vdot(off, off)) / 2
            of_lead[:, group.places] += (rest @ off.T) * group.precision
            if group.ends:
                self._spread(own @ off, ends, of_flat, group.ends)
        of_flat += weight * of_lead
        of_weights = ((of_lead * flat).sum(axis=1) * self._scale)[None, :]
        places = [self._layout.place(i) for i in self._layout.order]
        slopes = [of_weights, *(of_flat[:, place] for place in places)]
        return loss, [sloped(p, g) for p, g in zip((weights, *parts), slopes, strict=True)]

    def _products_of(self, flat: Singles) -> Iterator[tuple[Group, list[Singles], Singles]]:
        for group in self._groups:
            ends = [flat[:, self._layout.place(i)] for i in group.ends]
            yield group, ends, joined(ends, self._products).astype(np.float32, copy=False)

    def _spread(
        self, slope: Singles, ends: Sequence[Singles], into: Singles, columns: Columns
    ) -> None:
        """The slope of each factor of a product, from that of the product."""
        if len(ends) == 1:
            into[:, self._layout.place(columns[0])] += slope
            return
        last = ends[-1]
        whole = slope.reshape(self._products, -1, last.shape[1])
        others = joined(ends[:-1], self._products)
        into[:, self._layout.place(columns[-1])] += (others[:, None, :] @ whole)[:, 0, :]
        self._spread((whole @ last[:, :, None])[:, :, 0], ends[:-1], into, columns[:-1])


def softmax(logits: Singles) -> Singles:
    """Shares, row by row."""
    grown = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(grown / grown.sum(axis=1, keepdims=True))


def normalized(shares: Floats) -> Floats:
    """Rows that sum to 1, as nearly as doubles do."""
    return np.asarray(shares / shares.sum(axis=1, keepdims=True))


def sloped(shares: Singles, slope: Singles) -> Singles:
    """The slope of logits from that of shares."""
    return np.asarray(shares * (slope - (slope * shares).sum(axis=1, keepdims=True)))


def fit(
    noisy: NoisyMarginals,
    *,
    products: int = PRODUCTS,
    steps: int = STEPS,
    seed: int = 0,
    progress: Progress | None = None,
) -> ProductMixture:
    """A mixture whose marginals are near the noisy ones, as near as their noise warrants."""
    return MixtureFit(noisy, products, seed).run(steps, progress)


def rows_of(mixture: ProductMixture, count: int, rng: np.random.Generator) -> list[Ints]:
    """Rows that are drawn from the model: for each column, the codes."""
    share = mixture.weights / mixture.weights.sum()
    which = rng.choice(len(share), count, p=share)
    found = []
    for part in mixture.parts:
        below = np.cumsum(part, axis=1)
        below /= below[:, -1:]
        drawn = np.empty(count, np.int64)
        u = rng.random(count)
        for k in np.unique(which):
            mine = which == k
            drawn[mine] = np.searchsorted(below[k], u[mine], side="right")
        found.append(np.minimum(drawn, part.shape[1] - 1))
    return found
