"""Perturb your own row before it leaves: NumPy and the standard library, nothing else.

A survey publishes a `Spec`. `perturb` randomizes one row by it, `submission` makes what is sent,
`send` sends it; `read_submission` is the server's side. The format: docs/reference/wire-format.md.
"""

from voile.client.column import Column
from voile.client.domains import Domain, Edges, Grid, Listed, Texts
from voile.client.perturbation import Draws, PerturbedRow, perturb, perturb_batch, prior_posterior
from voile.client.spec import Promise, Spec
from voile.client.submission import (
    Submission,
    WrongSpecError,
    fetch_spec,
    read_submission,
    send,
    submission,
)

__all__ = [
    "Column",
    "Domain",
    "Draws",
    "Edges",
    "Grid",
    "Listed",
    "PerturbedRow",
    "Promise",
    "Spec",
    "Submission",
    "Texts",
    "WrongSpecError",
    "fetch_spec",
    "perturb",
    "perturb_batch",
    "prior_posterior",
    "read_submission",
    "send",
    "submission",
]
