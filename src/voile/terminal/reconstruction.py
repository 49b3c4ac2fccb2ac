"""What people see of a reconstruction."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from voile.terminal.narrow import whole_numbers

if TYPE_CHECKING:
    from voile.evaluate.reconstruction.server import Guesses
    from voile.evaluate.reconstruction.simulating import Attempt, Reconstruction

FITS = {"lsq": "least squares", "lp": "linear programming"}


def reconstruction_view(found: Reconstruction) -> Any:
    """What came back at every size of the noise, beside guessing and beside what is possible."""
    from rich.console import Group

    rows = [
        [attempt.noise, f"{attempt.questions:,}", f"{attempt.size:,.4g}", f"{attempt.roots:.3g}",
         recovered(attempt), f"{attempt.ceiling:.3f}"]
        for attempt in found.attempts
    ]  # fmt: skip
    headings = ["noise", "questions", "size", "in √n", "recovered", "most, on\naverage"]
    told = "the largest error" if found.law == "uniform" else "the standard deviation"
    runs = (
        "1 run" if found.runs == 1 else f"{found.runs:,} runs, ± the standard error of their mean"
    )
    return Group(
        f"[bold]{found.rows:,} rows[/bold] of one secret bit, {FITS[found.method]}, {found.law} "
        f"noise (size: {told}); {runs}",
        whole_numbers(headings, rows, numeric={1, 2, 3, 4, 5}),
        f"Guessing the commoner value gets {found.guess:.3f} right. Most: what someone who "
        "knows every other row gets right on average; by luck a few runs may get more.",
    )


def recovered(attempt: Attempt) -> str:
    spread = "" if attempt.stderr is None else f" ± {attempt.stderr:.3f}"
    return f"{attempt.recovered:.3f}{spread}"


def guesses_view(found: Guesses) -> Any:
    """What came back from a server."""
    from rich.console import Group
    from rich.markup import escape

    from voile.terminal import key_values

    facts = {
        "condition": escape(found.condition),
        "rows": f"{found.rows:,}",
        "questions answered": f"{found.questions:,} ({found.charged:,} of them new, "
                              f"{found.remaining:,} left)",
        "noise": f"{found.noise}, variance {found.variance:,.4g}, {found.roots:.3g}√n",
    }  # fmt: skip
    if found.recovered is None or found.guess is None or found.ceiling is None:
        return Group(key_values(facts), "Without --truth nobody knows how many guesses are right.")
    facts["recovered"] = f"{found.recovered:.4f} of the rows"
    facts["by guessing"] = f"{found.guess:.4f}"
    facts["at most"] = f"{found.ceiling:.4f} on average, by someone who knows every other row"
    return key_values(facts)
