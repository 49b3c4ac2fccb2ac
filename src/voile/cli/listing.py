"""Which commands there are, under which heading of --help, and where each lives.

Nothing is imported to list them: what they say of themselves is in summaries.json, which a test
writes from their help (VOILE_WRITE=1 pytest tests/test_options.py -k summaries) and compares.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

SUMMARIES = Path(__file__).with_name("summaries.json")
PANELS: dict[str, dict[str, str]] = {
    "Before publishing": {
        "inspect": "tables",
        "schema": "tables",
        "hierarchy": "hierarchy",
        "plan": "planning",
        "boundary": "planning",
        "frontier": "frontier",
    },
    "Releases": {
        "publish": "publishing",
        "verify": "releases",
        "describe": "releases",
        "generalize": "grouping",
    },
    "Local perturbation": {
        "perturb": "perturbing",
        "spec": "perturbing",
        "collect": "collecting",
        "combine": "perturbing",
    },
    "Questions": {
        "query": "releases",
        "explain": "releases",
        "refine": "releases",
        "shell": "releases",
    },
    "Interactive answers": {
        "serve": "serving",
        "ask": "asking",
        "mine": "mining_servers",
        "sulq": "sulq",
    },
    "Mining": {
        "tree": "mining",
        "rules": "mining",
    },
    "Privacy": {
        "guarantees": "guarantees",
        "convert": "guarantees",
        "risk": "risk",
        "exposure": "perturbing",
        "attack": "attacks",
        "audit": "attacks",
        "loss": "losses",
    },
    "To begin with": {
        "datasets": "tables",
        "demo": "tables",
        "reproduce": "reproducing",
    },
}
"""The module of this folder that has a command, by panel and name."""
HOMES = {name: home for panel in PANELS.values() for name, home in panel.items()}
PANEL_OF = {name: title for title, panel in PANELS.items() for name in panel}


@cache
def summaries() -> dict[str, str]:
    """The first words of each command's help, by its name."""
    found: dict[str, str] = json.loads(SUMMARIES.read_text(encoding="utf-8"))
    return found
