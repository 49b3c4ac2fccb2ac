"""Makes clients/vectors.json: `python -m tests.support.make_vectors` writes the file anew.

The values come from `tests/support/vector_law.py`. `tests/client/test_client.py` checks that the
file is what this makes, and that the Python client agrees with it; `clients/js/test.mjs` that the
other one does.
"""

from __future__ import annotations

import copy
import hashlib
import json
import math
from collections.abc import Iterator
from fractions import Fraction
from itertools import chain
from typing import Any

from tests.support.paths import ROOT
from tests.support.vector_law import Document, epsilon, perturbed, public

TARGET = ROOT / "clients" / "vectors.json"


def column(name: str, kind: str, domain: Document, **other: Any) -> Document:
    made = {"name": name, "kind": kind, "domain": domain, "null": False}
    return made | {"retention": 0.5, "replace": "uniform"} | other


def spec_of(*columns: Document, **other: Any) -> Document:
    return (
        {"format": "voile-perturbation", "version": 1, "name": "vector"}
        | {"columns": list(columns)}
        | other
    )


def words(*numbers: int) -> bytes:
    return b"".join(number.to_bytes(8, "big") for number in numbers)


HALF = 2**63
KEEP, CHANGE = 0, 2**64 - 1
AGES = column("age", "integer", {"low": 17, "step": 1, "per": 1, "count": 74}, retention=0.3)
HOURS = column("hours", "numeric", {"low": 0, "step": 1, "per": 10000, "count": 1000001})
COLD = column("degrees", "numeric", {"low": -25, "step": 5, "per": 10, "count": 11})
SEX = column("sex", "categorical", {"values": ["Female", "Male"]}, replace=[1, 3])
SMOKES = column("smokes", "boolean", {"values": [False, True]}, null=True, retention=0.8)
BORN = column("born", "date", {"first": "1950-01-01", "count": 20000}, retention=1.0)
PAY = column("pay", "numeric", {"edges": [0, 1000, 2000.5, 9000]}, retention=0.4)
GRADES = column("grade", "numeric", {"values": [1.5, 0.5, 4]}, null=True, replace=[2, 3, 4, 1])
ROUNDS = column("round", "integer", {"values": [10, -3, 7]})
VISITS = column("visit", "date", {"values": ["2024-02-29", "1999-12-31"]})
SURVEY = spec_of(AGES, HOURS, SEX, SMOKES, BORN, PAY)
PERSON = {
    "age": 33, "hours": 12.34, "sex": "Male", "smokes": None, "born": "1970-01-01", "pay": 1200,
}  # fmt: skip
TUPLE = spec_of(
    column("a", "integer", {"low": 0, "step": 2, "per": 1, "count": 3}, retention=1),
    column("b", "boolean", {"values": [False, True]}, null=True, retention=1),
    joint={"retention": 0.25},
)
TEXT = json.dumps(spec_of(AGES | {"name": "âge"}), indent=1, ensure_ascii=False) + "\n"

Good = tuple[str, Document, Document, bytes]
"""Name, spec, row and random bytes of a vector with values."""


def draws() -> Iterator[Good]:
    """The coin, the words that are drawn again, and what retention does."""
    threshold = math.floor(Fraction(0.3) * 2**64)
    age = {"age": 33}
    yield "integer kept", spec_of(AGES), age, words(KEEP, 5)
    yield "integer replaced", spec_of(AGES), age, words(CHANGE, 5)
    yield "replacement wraps around", spec_of(AGES), age, words(CHANGE, 74 * 10**15 + 73)
    yield "coin one below the threshold is kept", spec_of(AGES), age, words(threshold - 1, 1)
    yield "coin at the threshold is replaced", spec_of(AGES), age, words(threshold, 1)
    limit = 2**64 // 74 * 74
    yield "words at the limit are drawn again", spec_of(AGES), age, words(
        CHANGE, limit, 2**64 - 1, limit - 1
    )  # fmt: skip
    yield "rejected also where the value is kept", spec_of(AGES), age, words(KEEP, limit, 9)
    yield "a coin that is one word of zeros", spec_of(AGES | {"retention": 2.0**-64}), age, words(
        0, 3
    )  # fmt: skip
    yield "a retention below all words", spec_of(AGES | {"retention": 2.0**-65}), age, words(0, 3)
    yield "the largest retention below 1", spec_of(AGES | {"retention": 1 - 2.0**-53}), age, words(
        2**64 - 2**11 - 1, 3
    )  # fmt: skip
    yield "retention 0", spec_of(AGES | {"retention": 0}), age, words(0, 11)
    yield "retention 1 draws nothing", spec_of(AGES | {"retention": 1}), age, b""
    yield "a whole number written as 33.0", spec_of(AGES), {"age": 33.0}, words(KEEP, 0)


def grids() -> Iterator[Good]:
    yield "power of two rejects nothing", spec_of(
        column("n", "integer", {"low": 0, "step": 1, "per": 1, "count": 2**20})
    ), {"n": 7}, words(CHANGE, 2**64 - 1)  # fmt: skip
    yield "the largest grid", spec_of(
        column("n", "integer", {"low": -(2**50), "step": 1, "per": 1, "count": 2**51 + 1})
    ), {"n": 2**50 - 1}, words(KEEP, 2**64 // (2**51 + 1) * (2**51 + 1) - 1)  # fmt: skip
    yield "the largest grid, replaced", spec_of(
        column("n", "integer", {"low": -(2**50), "step": 1, "per": 1, "count": 2**51 + 1})
    ), {"n": 0}, words(CHANGE, 2**51)  # fmt: skip
    for name, value in {
        "a point": 12.34, "just above a point": 12.34004, "just below a point": 12.34006,
        "half-way goes up": 0.00005, "the last point": 100, "first": 0, "near the last": 99.99996,
        "a third": 1 / 3, "a small number": 5e-324,
    }.items():  # fmt: skip
        yield f"decimal grid: {name}", spec_of(HOURS), {"hours": value}, words(KEEP, 1)
    for value in (-2.5, -2.26, -2.25, -2.24, -0.25, 0, 0.25, 0.3, 2.5):
        yield f"grid of halves: {value}", spec_of(COLD), {"degrees": value}, words(KEEP, 1)
    yield "grid of halves, replaced", spec_of(COLD), {"degrees": 0}, words(HALF, 3)
    near = column("x", "numeric", {"low": 2**50 - 9, "step": 3, "per": 7, "count": 4})
    for code in range(4):
        value = (2**50 - 9 + 3 * code) / 7
        yield f"a fine grid of large numbers, {code}", spec_of(near), {"x": value}, words(KEEP, 0)


def listed() -> Iterator[Good]:
    for ticket in range(4):
        yield f"parts 1 and 3, ticket {ticket}", spec_of(SEX), {"sex": "Male"}, words(
            HALF, ticket
        )  # fmt: skip
    for ticket in (0, 1, 2, 4, 5, 8, 9):
        yield f"parts with NULL, ticket {ticket}", spec_of(GRADES), {"grade": 4}, words(
            HALF, 10**17 + ticket
        )  # fmt: skip
    yield "NULL kept", spec_of(GRADES), {"grade": None}, words(HALF - 1, 0)
    yield "listed integers", spec_of(ROUNDS), {"round": -3}, words(KEEP, 0)
    yield "listed integers, replaced", spec_of(ROUNDS), {"round": -3}, words(CHANGE, 5)
    yield "listed dates", spec_of(VISITS), {"visit": "2024-02-29"}, words(CHANGE, 1)
    yield "boolean kept", spec_of(SMOKES), {"smokes": False}, words(KEEP, 1)
    yield "NULL drawn", spec_of(SMOKES), {"smokes": True}, words(CHANGE, 2)


def days_and_bins() -> Iterator[Good]:
    days = spec_of(BORN | {"retention": 0.5})
    yield "a day kept", days, {"born": "2000-02-29"}, words(KEEP, 7)
    yield "the last day drawn", days, {"born": "1950-01-01"}, words(CHANGE, 19999)
    early = spec_of(column("d", "date", {"first": "0001-01-01", "count": 3652059}))
    yield "all days there are", early, {"d": "0099-12-31"}, words(KEEP, 7)
    yield "the very last day", early, {"d": "0001-01-01"}, words(CHANGE, 3652058)
    for value in (0, 999.999, 1000, 2000.25, 2000.5, 9000):
        yield f"bins: {value}", spec_of(PAY), {"pay": value}, words(KEEP, 1)
    yield "bins, replaced", spec_of(PAY), {"pay": 1}, words(CHANGE, 2)


def whole_rows() -> Iterator[Good]:
    yield "a domain of one value", spec_of(
        column("one", "categorical", {"values": ["yes"]})
    ), {"one": "yes"}, words(CHANGE, 2**64 - 1)  # fmt: skip
    texts = column("é", "categorical", {"values": ["naïve", "東京", "😀", ""]})
    yield "texts and a name beyond ASCII", spec_of(texts), {"é": "東京"}, words(CHANGE, 2)
    yield "empty text", spec_of(texts), {"é": ""}, words(KEEP, 0)
    yield (
        "a whole survey",
        SURVEY,
        PERSON,
        words(KEEP, 1, CHANGE, 123456, HALF, 0, CHANGE, 1, KEEP, 2),
    )
    yield "a whole survey, the row in another order", SURVEY, dict(reversed(PERSON.items())), words(
        CHANGE, 1, KEEP, 2, KEEP, 3, KEEP, 4, CHANGE, 5
    )  # fmt: skip
    pair = {"a": 4, "b": None}
    quarter = 2**62
    yield "joint kept", TUPLE, pair, words(quarter - 1, 0, 0)
    yield "joint replaced", TUPLE, pair, words(quarter, 1, 1)
    yield "joint replaced, a word drawn again", TUPLE, pair, words(CHANGE, 2**64 - 1, 2, 3)
    yield "joint retention 0", TUPLE | {"joint": {"retention": 0}}, pair, words(0, 0, 2)
    yield "a promise that is kept", spec_of(
        AGES, SEX, promise={"epsilon": 5.1, "columns": {"age": 3.4879, "sex": 1.6095}}
    ), {"age": 20, "sex": "Male"}, words(KEEP, 0, KEEP, 0)  # fmt: skip
    rare = AGES | {"retention": 1e-12}
    yield "a small promise that is kept but for the last digits", spec_of(
        rare, promise={"epsilon": epsilon(spec_of(rare)) * (1 - 1e-10)}
    ), {"age": 33}, words(CHANGE, 3)  # fmt: skip
    one = column("one", "categorical", {"values": ["yes"]}, retention=1)
    yield "one value beside what is perturbed", spec_of(
        AGES, one
    ), {"age": 20, "one": "yes"}, words(KEEP, 0)  # fmt: skip
    yield "one value alone", spec_of(one), {"one": "yes"}, b""
    yield "joint retention 1 draws nothing", TUPLE | {"joint": {"retention": 1}}, pair, b""
    yield "a joint promise that is kept", TUPLE | {
        "promise": {"epsilon": 1.3863, "columns": {"a": 1.3863}}
    }, pair, words(0, 0, 0)  # fmt: skip


def changed(document: Document, *path: Any, to: Any) -> Document:
    made = copy.deepcopy(document)
    *before, last = path
    place: Any = made
    for key in before:
        place = place[key]
    place[last] = to
    return made


def wrong_specs() -> Iterator[tuple[str, Document]]:
    one = spec_of(AGES)
    domain = ("columns", 0, "domain")
    yield "another format", changed(one, "format", to="voile-rows")
    yield "a newer version", changed(one, "version", to=2)
    yield "version true", changed(one, "version", to=True)
    yield "no columns", changed(one, "columns", to=[])
    yield "an unknown key", changed(one, "seed", to=1)
    yield "an unknown key of a column", changed(one, "columns", 0, "seed", to=1)
    yield "names that differ in case", spec_of(AGES, AGES | {"name": "AGE"})
    yield "an empty name", changed(one, "columns", 0, "name", to="")
    yield "a name that is a number", changed(one, "columns", 0, "name", to=7)
    yield "an unknown kind", changed(one, "columns", 0, "kind", to="float")
    yield "retention above 1", changed(one, "columns", 0, "retention", to=1.0000000000000002)
    yield "retention below 0", changed(one, "columns", 0, "retention", to=-0.1)
    yield "retention as text", changed(one, "columns", 0, "retention", to="0.3")
    yield "retention true", changed(one, "columns", 0, "retention", to=True)
    yield "null as text", changed(one, "columns", 0, "null", to="false")
    yield "no domain", changed(one, *domain, to={})
    yield "two domains", changed(one, *domain, to={"values": [1], "first": "2000-01-01"})
    yield "edges of integers", changed(one, *domain, to={"edges": [1, 2]})
    yield "count 0", changed(one, *domain, "count", to=0)
    yield "count 1.5", changed(one, *domain, "count", to=1.5)
    yield "step 0", changed(one, *domain, "step", to=0)
    yield "per 2 of an integer", changed(one, *domain, "per", to=2)
    yield "a grid that ends above 2^50", changed(one, *domain, "count", to=2**50 - 15)
    yield "low below -2^50", changed(one, *domain, "low", to=-(2**50) - 1)
    yield "a value twice", spec_of(column("x", "numeric", {"values": [1, 2, 1.0]}))
    yield "a text twice", spec_of(column("x", "categorical", {"values": ["a", "a"]}))
    yield "a number among texts", spec_of(column("x", "categorical", {"values": ["a", 1]}))
    yield "a text among booleans", spec_of(column("x", "boolean", {"values": [True, "no"]}))
    yield "half an integer", spec_of(column("x", "integer", {"values": [1, 1.5]}))
    yield "edges that do not increase", spec_of(column("x", "numeric", {"edges": [1, 1]}))
    yield "one edge", spec_of(column("x", "numeric", {"edges": [1]}))
    yield (
        "a bin without a middle",
        spec_of(column("x", "numeric", {"edges": [0, 1, 1.0000000000000002]})),
    )
    yield "a day that is not there", spec_of(column("d", "date", {"values": ["2023-02-29"]}))
    yield "a day spelt otherwise", spec_of(column("d", "date", {"first": "20230201", "count": 2}))
    yield "days after 9999", spec_of(column("d", "date", {"first": "9999-12-31", "count": 2}))
    yield "parts for another number of values", spec_of(SEX | {"replace": [1, 2, 3]})
    yield "parts without NULL", spec_of(SMOKES | {"replace": [1, 2]})
    yield "a part of 0", spec_of(SEX | {"replace": [0, 1]})
    yield "parts above 2^53", spec_of(SEX | {"replace": [2**53, 1]})
    yield "replace by identity", spec_of(SEX | {"replace": "identity"})
    yield "joint beside a retention", spec_of(SEX, joint={"retention": 0.5})
    yield "joint retention 2", changed(TUPLE, "joint", "retention", to=2)
    yield "a promise about another column", spec_of(AGES, promise={"columns": {"sex": 9}})
    yield "a negative promise", spec_of(AGES, promise={"epsilon": -1})


def wrong_rows() -> Iterator[tuple[str, Document, Any]]:
    ages, hours = spec_of(AGES), spec_of(HOURS)
    yield "below the domain", ages, {"age": 16}
    yield "above the domain", ages, {"age": 91}
    yield "half a year", ages, {"age": 33.5}
    yield "a number as text", ages, {"age": "33"}
    yield "true for a number", ages, {"age": True}
    yield "NULL that is not allowed", ages, {"age": None}
    yield "a list", ages, {"age": [33]}
    yield "a missing column", ages, {}
    yield "an unknown column", ages, {"age": 33, "Age": 33}
    yield "a row that is a list", ages, [33]
    yield "above a decimal grid", hours, {"hours": 100.00001}
    yield "below a decimal grid", hours, {"hours": -1e-300}
    yield "an enormous number", hours, {"hours": 1e308}
    yield "an unknown text", spec_of(SEX), {"sex": "male"}
    yield "1 for true", spec_of(SMOKES), {"smokes": 1}
    yield "a day before the first", spec_of(BORN), {"born": "1949-12-31"}
    yield "a day after the last", spec_of(BORN), {"born": "2004-10-04"}
    yield "no date", spec_of(BORN), {"born": "2000-02-30"}
    yield "a date and a time", spec_of(BORN), {"born": "2000-02-01T00:00"}
    yield "below the bins", spec_of(PAY), {"pay": -0.5}
    yield "above the bins", spec_of(PAY), {"pay": 9000.5}
    yield "not a listed number", spec_of(GRADES), {"grade": 1}
    yield "too few random bytes", ages, {"age": 33}
    yield "a name in another case", ages, {"Age": 33}


def broken_promises() -> Iterator[tuple[str, Document, Document, dict[str, Any]]]:
    age, row = spec_of(AGES), {"age": 33}
    yield "the row's promise is broken", spec_of(AGES, promise={"epsilon": 3.4878}), row, {}
    yield "a column's promise is broken", spec_of(
        AGES, SEX, promise={"columns": {"sex": 1.6094}}
    ), {"age": 33, "sex": "Male"}, {}  # fmt: skip
    yield "a promise about what is sent as it is", spec_of(
        BORN, promise={"columns": {"born": 1e300}}
    ), {"born": "1970-01-01"}, {}  # fmt: skip
    joint = TUPLE | {"promise": {"columns": {"b": 1.38}}}
    yield "a joint promise is broken", joint, {"a": 0, "b": None}, {}
    yield "above the caller's limit", age, row, {"at_most": 3.4878}
    yield from sent_as_it_is()
    rare = AGES | {"retention": 1e-12}
    tiny = epsilon(spec_of(rare))
    yield "a small promise is broken", spec_of(rare, promise={"epsilon": 1e-12}), row, {}
    yield "a small promise is broken by little", spec_of(
        rare, promise={"epsilon": tiny * (1 - 1e-8)}
    ), row, {}  # fmt: skip
    yield "above a small limit", spec_of(rare), row, {"at_most": tiny * (1 - 1e-8)}


def sent_as_it_is() -> Iterator[tuple[str, Document, Document, dict[str, Any]]]:
    both, born = {"age": 33, "born": "1970-01-01"}, {"born": "1970-01-01"}
    yield "sent as it is without leave", spec_of(AGES, BORN), both, {}
    yield "sent as it is without leave, within a limit", spec_of(AGES, BORN), both, {"at_most": 99}
    yield "nothing is perturbed, without leave", spec_of(BORN), born, {}
    yield "nothing is perturbed: no limit is kept", spec_of(BORN), born, {
        "at_most": 99, "public": ["born"],
    }  # fmt: skip
    yield "nothing is perturbed: no promise is kept", spec_of(
        BORN, promise={"epsilon": 1e300}
    ), born, {"public": ["born"]}  # fmt: skip
    kept, pair = TUPLE | {"joint": {"retention": 1}}, {"a": 0, "b": None}
    yield "joint retention 1, without leave", kept, pair, {"public": ["a"]}
    yield "joint retention 1: no limit is kept", kept, pair, {"at_most": 99, "public": ["a", "b"]}


def within_a_limit() -> Document:
    row = {"age": 33, "born": "1970-01-01"}
    return {
        "name": "within the caller's limit",
        "spec": spec_of(AGES, BORN),
        "row": row,
        "at_most": 3.4879,
        "public": ["born"],
        "random": words(KEEP, 0).hex(),
        "values": list(row.values()),
        "epsilon": epsilon(spec_of(AGES)),
    }


def with_a_digest() -> Document:
    return {
        "name": "the digest is of the exact bytes",
        "text": TEXT,
        "row": {"âge": 33},
        "random": words(CHANGE, 2).hex(),
        "values": [19],
        "epsilon": epsilon(spec_of(AGES)),
        "digest": hashlib.sha256(TEXT.encode()).hexdigest(),
    }


def wrong_texts() -> Iterator[tuple[str, str]]:
    yield "no JSON", TEXT[:-3]
    yield "NaN", TEXT.replace("0.3", "NaN")
    yield "no object", "[]"
    yield "a mark of byte order", "\ufeff" + TEXT
    yield "half a surrogate pair", TEXT.replace("âge", "\\ud800")


def leave(spec: Document) -> Document:
    """What the caller must name, where there is something to name."""
    return {"public": public(spec)} if public(spec) else {}


def vectors() -> Iterator[Document]:
    for name, spec, row, random in chain(draws(), grids(), listed(), days_and_bins(), whole_rows()):
        values, told = perturbed(spec, row, random), epsilon(spec)
        yield {"name": name, "spec": spec, "row": row, "random": random.hex()} | leave(spec) | {
            "values": values, "epsilon": told if math.isfinite(told) else None,
        }  # fmt: skip
    yield within_a_limit()
    yield with_a_digest()
    for name, spec in wrong_specs():
        yield {"name": name, "spec": spec, "row": {}, "error": "spec"}
    for name, broken in wrong_texts():
        yield {"name": name, "text": broken, "row": {}, "error": "spec"}
    for name, spec, wrong in wrong_rows():
        yield {"name": name, "spec": spec, "row": wrong, "random": "00"} | leave(spec) | {
            "error": "row"
        }  # fmt: skip
    for name, spec, row, extra in broken_promises():
        yield {"name": name, "spec": spec, "row": row, "random": ""} | extra | {"error": "promise"}


def text_of(made: list[Document]) -> str:
    """One vector on each line."""
    lines = (json.dumps(vector, ensure_ascii=False, allow_nan=False) for vector in made)
    return "[\n" + ",\n".join(lines) + "\n]\n"


if __name__ == "__main__":
    TARGET.write_text(text_of(list(vectors())), encoding="utf-8")
