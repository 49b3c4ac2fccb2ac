"""Measure the classes of a release without Voile: python tools/check_classes.py RELEASE [--json]

Reads the files with pandas and pyarrow, and computes what anyone can compute who holds them: k, ℓ
by four measures, t by five distances and δ of semantic privacy, from the rows as they are shown. Of
generalized rows, a class is those rows that look alike in all quasi-identifiers; the column with
the number of the class is not believed. Of bucketized rows a class is what shares that number, and
its sensitive values are those in sensitive/.

Exit code 1: the release does not have what it says.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

TOLERANCE = 1e-9
DISTANCES = ("js", "variational", "emd-equal", "emd-ordered")
MEASURES = ("frequency", "distinct", "entropy")

Counts = list[list[int]]
"""For each class, how many rows have each value, in the order of the domain."""


# ---------------------------------------------------------------------- files


def read(folder: Path, where: str) -> pd.DataFrame:
    """All Parquet files of a folder of the release, NULLs as None."""
    files = sorted((folder / where).glob("part-*.parquet"))
    tables = [pq.ParquetFile(file).read() for file in files]
    frame: pd.DataFrame = pa.concat_tables(tables).to_pandas(types_mapper=pd.ArrowDtype)
    return frame.astype(object).where(frame.notna(), None)


def domain_of(attribute: dict[str, Any], seen: set[Any]) -> list[Any]:
    """The values of an attribute in their order, NULL last.

    Of ranges and intervals only those that were seen are listed: others have no rows.
    """
    if attribute["kind"] == "boolean":
        listed: list[Any] = [False, True]
    elif "values" in attribute:
        listed = [as_seen(value, attribute["kind"]) for value in attribute["values"]]
    else:
        listed = sorted(value for value in seen if value is not None)
    return [*listed, None] if attribute.get("null") or None in seen else listed


def as_seen(value: Any, kind: str) -> Any:
    """A value of the manifest as Parquet has it."""
    return pd.Timestamp(value).date() if kind == "date" else value


# ---------------------------------------------------------------------- classes


def generalized(data: pd.DataFrame, qi: list[str]) -> pd.Series[int]:
    """The class of every row: those that look alike."""
    return data.groupby(qi, dropna=False, sort=False).ngroup()


def histogram(classes: Any, values: Any, rows: Any, domain: list[Any]) -> Counts:
    """How many rows of each class have each value of the domain."""
    place = {value: i for i, value in enumerate(domain)}
    found: dict[int, list[int]] = {}
    for one, value, count in zip(classes, values, rows, strict=True):
        found.setdefault(one, [0] * len(domain))[place[value]] += int(count)
    return [found[one] for one in sorted(found)]


# ---------------------------------------------------------------------- ℓ


def diversity(counts: list[int], measure: str) -> float:
    """The ℓ of a class."""
    rows = sum(counts)
    if measure == "frequency":
        return rows / max(counts)
    if measure == "distinct":
        return float(sum(count > 0 for count in counts))
    return math.exp(-sum(c / rows * math.log(c / rows) for c in counts if c))


def recursive(counts: list[int], l: int) -> float:  # noqa: E741  (ℓ)
    """The c that a class does not meet: its most frequent value, in terms of the rarer ones."""
    ordered = sorted(counts, reverse=True)
    rest = sum(ordered[l - 1 :])
    return ordered[0] / rest if rest else math.inf


# ---------------------------------------------------------------------- t and δ


def distance(counts: list[int], overall: list[int], kind: str, tree: Any = None) -> float:
    """How far a class is from the whole table."""
    p = [c / sum(counts) for c in counts]
    q = [c / sum(overall) for c in overall]
    if kind == "js":
        middle = [(a + b) / 2 for a, b in zip(p, q, strict=True)]
        return (kullback_leibler(p, middle) + kullback_leibler(q, middle)) / 2
    if kind in ("variational", "emd-equal"):
        return sum(abs(a - b) for a, b in zip(p, q, strict=True)) / 2
    if kind == "emd-ordered":
        return moved_in_order([(a, b) for a, b in zip(p, q, strict=True) if b > 0])
    return moved_in_tree(p, q, tree)


def kullback_leibler(p: list[float], q: list[float]) -> float:
    """The divergence, in natural logarithms."""
    return sum(a * math.log(a / b) for a, b in zip(p, q, strict=True) if a > 0)


def moved_in_order(pairs: list[tuple[float, float]]) -> float:
    """Earth mover's distance along a line of length 1."""
    moved = carried = 0.0
    for a, b in pairs:
        carried += a - b
        moved += abs(carried)
    return moved / max(len(pairs) - 1, 1)


def moved_in_tree(p: list[float], q: list[float], tree: list[list[int]]) -> float:
    """Earth mover's distance in a hierarchy: two values are as far apart as they meet high up.

    Level by level from the values up, what can be matched within a node is matched there.
    """
    height = len(tree) + 1
    groups = [*tree, [0] * len(p)]
    left = [a - b for a, b in zip(p, q, strict=True)]
    extra = dict(enumerate(left))
    members = {i: [i] for i in extra}
    moved = 0.0
    for level, nodes in enumerate(groups, start=1):
        joined: dict[int, list[int]] = {}
        for child, codes in members.items():
            joined.setdefault(nodes[codes[0]], []).append(child)
        above, below = {}, {}
        for node, children in joined.items():
            over = sum(extra[c] for c in children if extra[c] > 0)
            under = -sum(extra[c] for c in children if extra[c] < 0)
            moved += min(over, under) * level / height
            above[node] = over - under
            below[node] = [code for c in children for code in members[c]]
        extra, members = above, below
    return moved


def semantic(counts: list[int], overall: list[int], absent: str) -> float:
    """The largest |ln(share in the class / share in the table)|."""
    worst = 0.0
    for count, all_rows in zip(counts, overall, strict=True):
        if count and all_rows:
            ratio = count / sum(counts) / (all_rows / sum(overall))
            worst = max(worst, abs(math.log(ratio)))
        elif count or (all_rows and absent == "forbidden"):
            return math.inf
    return worst


# ---------------------------------------------------------------------- a release


class Release:
    """The classes of a release, as its files show them."""

    def __init__(self, folder: Path) -> None:
        self.manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
        terms = self.manifest["parameters"]
        data = read(folder, "data")
        self.sensitive = list(terms["sensitive"])
        if terms["recode"] == "generalize":
            classes = generalized(data, terms["qi"]) if terms["qi"] else pd.Series([0] * len(data))
            shown, rows = data, [1] * len(data)
        else:
            classes = data[terms["class_column"]]
            shown = read(folder, "sensitive")
            rows = shown.iloc[:, -1]
        self.sizes = sorted(classes.value_counts())
        self.domains: dict[str, list[Any]] = {}
        self.counts: dict[str, Counts] = {}
        owner = classes if terms["recode"] == "generalize" else shown[terms["class_column"]]
        for name in self.sensitive:
            attribute = next(a for a in self.manifest["attributes"] if a["name"] == name)
            self.domains[name] = domain_of(attribute, set(shown[name]))
            self.counts[name] = histogram(owner, shown[name], rows, self.domains[name])

    @property
    def k(self) -> int:
        """Rows of the smallest class."""
        return int(self.sizes[0])

    def overall(self, name: str) -> list[int]:
        """How many rows have each value."""
        return [sum(column) for column in zip(*self.counts[name], strict=True)]

    def worst(self, requirement: dict[str, Any], name: str | None) -> float | None:
        """What the worst class has of what a requirement is about; None where it is not known."""
        kind = requirement["kind"]
        if kind == "k":
            return float(self.k)
        if name is None or kind not in ("l", "t", "semantic", "alpha-k"):
            return None
        if kind == "l" and requirement["measure"] != "recursive":
            return min(diversity(c, requirement["measure"]) for c in self.counts[name])
        return max(self.figure(c, requirement, self.overall(name)) for c in self.counts[name])

    def figure(self, counts: list[int], requirement: dict[str, Any], overall: list[int]) -> float:
        """What a class has, where less is better."""
        match requirement["kind"]:
            case "l":
                return recursive(counts, int(requirement["l"]))
            case "t":
                return distance(counts, overall, requirement["distance"], requirement.get("tree"))
            case "semantic":
                return semantic(counts, overall, requirement["absent"])
        limited = requirement.get("values")
        limited = range(len(overall)) if limited is None else limited
        return max(counts[i] for i in limited) / sum(counts)

    def report(self) -> dict[str, Any]:
        """Everything as JSON."""
        found: dict[str, Any] = {"rows": sum(map(int, self.sizes)), "classes": len(self.sizes),
                                 "k": self.k, "attributes": {}, "requirements": []}  # fmt: skip
        for name in self.sensitive:
            found["attributes"][name] = {
                "l": {m: self.worst({"kind": "l", "measure": m}, name) for m in MEASURES},
                "t": {d: self.worst({"kind": "t", "distance": d}, name) for d in DISTANCES},
            }
        for entry in self.manifest["guarantee"]["requirements"]:
            measured = self.worst(entry["requirement"], entry["attribute"])
            stated = entry["measured"]
            agrees = measured is None or measured == stated or abs(measured - stated) <= TOLERANCE
            found["requirements"].append(entry | {"found": measured, "agrees": agrees})
        found["agrees"] = found["rows"] == self.manifest["rows"] and all(
            entry["agrees"] for entry in found["requirements"]
        )
        return found


def main() -> int:
    """Print what was measured."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("release", type=Path)
    arguments.add_argument("--json", action="store_true")
    given = arguments.parse_args()
    found = Release(given.release).report()
    if given.json:
        print(json.dumps(found, indent=2))
        return int(not found["agrees"])
    print(f"{found['rows']} rows in {found['classes']} classes, the smallest of {found['k']}")
    for name, measured in found["attributes"].items():
        for symbol, by in measured.items():
            print(f"{name!a}: {symbol}: " + ", ".join(f"{m} {v:.6g}" for m, v in by.items()))
    for entry in found["requirements"]:
        said = "as stated" if entry["agrees"] else f"stated are {entry['measured']!a}"
        print(f"{entry['requirement']['kind']!a}: {entry['found']!a}, {said}")
    return int(not found["agrees"])


if __name__ == "__main__":
    sys.exit(main())
