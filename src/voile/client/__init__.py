"""Perturb your own row before it leaves: NumPy and the standard library, nothing else.

A survey publishes a `Spec`. `perturb` randomizes one row by it, `submission` makes what is sent,
`send` sends it; `read_submission` is the server's side. The format: docs/reference/wire-format.md.
"""

from voile.client.beliefs import prior_posterior
from voile.client.column import Column
from voile.client.domains import Domain, Edges, Grid, Listed, Texts
from voile.client.draws import Draws
from voile.client.perturbing import PerturbedRow, perturb, perturb_batch
from voile.client.promise import Promise
from voile.client.sending import fetch_spec, send
from voile.client.spec import Spec
from voile.client.wire import Submission, WrongSpecError, read_submission, submission

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
