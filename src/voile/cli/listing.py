"""The commands as --help lists them, and where each lives: nothing is imported to list them."""

from __future__ import annotations

from typing import NamedTuple


class Listed(NamedTuple):
    home: str
    """The module of this folder that has the command."""
    summary: str
    """The first words of its help."""


PANELS: dict[str, dict[str, Listed]] = {
    "Before publishing": {
        "inspect": Listed(
            "tables",
            "Look at a table before publishing it: domain, duplicates, identifiers, what is "
            "feasible.",
        ),
        "schema": Listed(
            "tables",
            "Write an editable codebook of the table's columns: values, ranges, bins.",
        ),
        "hierarchy": Listed(
            "hierarchy",
            "Show or save the coarser values that a column's values may be replaced by.",
        ),
        "plan": Listed(
            "planning",
            "Foresee a release before publishing: parameters, size, errors, or what an error "
            "allows.",
        ),
        "boundary": Listed(
            "planning",
            "Show which promises are possible, impossible or open for a table of this size.",
        ),
        "frontier": Listed(
            "frontier",
            "Measure many releases, find the efficient ones, and recommend which to publish.",
        ),
    },
    "Releases": {
        "publish": Listed(
            "publishing", "Turn a private table into a release that keeps a promise."
        ),
        "verify": Listed("releases", "Check every byte of a release, and its promise, again."),
        "describe": Listed(
            "releases",
            "Explain a release in plain words: the promise, its limits, how to count from it.",
        ),
        "generalize": Listed(
            "grouping",
            "Write a table whose quasi-identifiers are coarse enough for every class to keep "
            "a promise.",
        ),
    },
    "Local perturbation": {
        "perturb": Listed(
            "perturbing",
            "Perturb every row of a table on its own, so that nobody need be trusted with it.",
        ),
        "spec": Listed(
            "perturbing",
            "Write what clients need to perturb their own rows: a survey's public parameters.",
        ),
        "collect": Listed(
            "collecting",
            "Collect rows that people perturbed themselves, over HTTP; release what has come in.",
        ),
        "combine": Listed(
            "perturbing",
            "Put together parts that their owners perturbed: more rows, or more columns by a "
            "row key.",
        ),
    },
    "Questions": {
        "query": Listed("releases", "Estimate what the SQL would give on the original table."),
        "explain": Listed(
            "releases",
            "Show how an estimate comes about: what is counted, how, and where the error is from.",
        ),
        "refine": Listed(
            "releases",
            "Fit the model that --refine weighs estimates against, and keep it beside the release.",
        ),
        "shell": Listed(
            "releases",
            "Ask a release one question after the other, at a prompt or from a pipe.",
        ),
    },
    "Interactive answers": {
        "serve": Listed(
            "serving",
            "Serve noisy counts of a table: so many answers, and never one more.",
        ),
        "ask": Listed("asking", "Ask a server that answers a bounded number of noisy counts."),
        "mine": Listed(
            "mining_servers",
            "Estimate how often a condition on two servers' columns holds, by asking both.",
        ),
        "sulq": Listed("sulq", "What noisy answers tell about one row."),
    },
    "Mining": {
        "tree": Listed(
            "mining",
            "Grow a decision tree from counts that are reconstructed from perturbed rows.",
        ),
        "rules": Listed(
            "mining",
            "Find association rules, with intervals, in counts reconstructed from perturbed rows.",
        ),
    },
    "Privacy": {
        "guarantees": Listed(
            "guarantees",
            "List all that a release promises, against whom, and what it does not.",
        ),
        "convert": Listed(
            "guarantees",
            "Say what a promise comes to in other terms, by which theorem, and what does not "
            "follow.",
        ),
        "risk": Listed(
            "risk",
            "Measure how well the rows of any table can be told apart, and what their "
            "classes tell.",
        ),
        "exposure": Listed(
            "perturbing",
            "Measure what a seen value tells: beliefs from the distribution that is reconstructed.",
        ),
        "attack": Listed("attacks", "Attack what was released or answered."),
        "audit": Listed(
            "attacks",
            "Run a mechanism many times on neighbouring tables and see whether it keeps its "
            "promise.",
        ),
        "loss": Listed(
            "losses",
            "Measure privacy and utility lost in a release, from the table it was made of.",
        ),
    },
    "To begin with": {
        "datasets": Listed("tables", "List the tables that come with Voile."),
        "demo": Listed(
            "tables",
            "Publish the Adult table, ask it questions, and draw how good the answers are.",
        ),
        "reproduce": Listed(
            "reproducing",
            "Make the papers' figures and tables again, and compare them with what is printed.",
        ),
    },
}
