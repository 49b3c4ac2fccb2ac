"""Bound trees from SQL that is written with quoted names already."""

from __future__ import annotations

from voile.query.predicate import Atom, Expression
from voile.query.text import read_back


def expression_of(sql: str, attributes: tuple[str, ...]) -> Expression:
    return Expression(read_back(sql), attributes)


def atom_of(sql: str, attributes: tuple[str, ...]) -> Atom:
    return Atom(read_back(sql), attributes)
