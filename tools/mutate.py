"""Break central lines one at a time and see tests fail: python tools/mutate.py [NAME…]

A test that passes whatever the code does proves nothing. A mutation here is a line on which
people's privacy or an answer's truth depends, what replaces it, and quick tests of which one must
fail then. The package is copied once; one file of the copy is changed at a time, and the tests
import the copy. First they run on the copy as it is, and must pass. `--list` names the mutations,
`--json` prints what became of them. The exit code is 1 if a mutation survives, 2 if one cannot be
tried.

`VOILE_WRITE=1 pytest tests/test_mutations.py -k page` writes docs/reference/mutations.md.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import fill
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "voile"
PAGE = ROOT / "docs" / "reference" / "mutations.md"
PATIENCE = 300.0
"""Seconds for the tests of one mutation: generous, for a machine that is busy."""
PASSED, FAILED = 0, 1
"""Exit codes of pytest. All others say that tests could not be run, which shows nothing."""


class MutationError(Exception):
    """A mutation cannot be tried, because the source or its tests are not as they were."""


@dataclass(frozen=True)
class Mutation:
    """A line that is broken, and who notices."""

    name: str
    area: str
    file: str
    """Below src/voile."""
    text: str
    """It occurs exactly once in the file."""
    instead: str
    tests: tuple[str, ...]
    """Nodes of pytest, below tests/."""
    harm: str
    """What would go wrong for a person whose data it is, or for one who counts them."""

    def broken(self, source: str) -> str:
        """The file's source, with the line replaced."""
        count = source.count(self.text)
        if count != 1:
            raise MutationError(
                f"{self.name}: src/voile/{self.file} has {self.text!r} {count} times and not once; "
                "write the line as it is now into tools/mutate.py"
            )
        return source.replace(self.text, self.instead)


LEDGER = "serve/test_serve_ledger.py::test_"
NOISE = "noise/test_noise.py::test_"
NORMAL = "noise/test_normal_noise.py::test_"
PROMISE = "privacy/test_privacy.py::test_"
BACKUPS = "serve/test_serve_ledger_backups.py::test_"
SIGNED = "kinds/test_signatures.py::test_"
VIEWS = "kinds/views/test_alphabeta.py::test_"
MARGINALS = "kinds/marginals/test_"
"""The beginnings of some tests' names."""
MUTATIONS = (
    # ------------------------------------------------------------------ noise
    Mutation(
        "noise-twice",
        "noise",
        "noise/gaps.py",
        'self.step = 1 if form == "set" else 0',
        "self.step = 0",
        (NOISE + "set_walk_takes_each_tuple_at_most_once_and_neighbours_independently",),
        "Noise shows a tuple several times where a person is shown once: people stand out.",
    ),
    Mutation(
        "gap-digits",
        "noise",
        "noise/gaps.py",
        "share = context.divide(power, context.add(Decimal(1), power))",
        'share = context.divide(power, context.add(Decimal("1.0000001"), power))',
        (NOISE + "digits_make_the_geometric_law",),
        "Rows of noise are rarer or more frequent than the promise was computed for.",
    ),
    Mutation(
        "chance-of-a-record",
        "noise",
        "noise/gaps.py",
        "heads: Bools = stream.words(count) < threshold",
        "heads: Bools = stream.words(count) >= threshold",
        (NOISE + "bernoulli_has_the_stated_chance_and_no_other",),
        "People's rows are kept with the chance with which they should be dropped.",
    ),
    Mutation(
        "one-sided-noise",
        "noise",
        "noise/geometric.py",
        "found.append(one - other)",
        "found.append(one)",
        (NORMAL + "draws_follow_their_law_and_no_other[geometric-1.0]",),
        "Noise is never negative: a count that is shown is never below the truth, and a 0 is true.",
    ),
    Mutation(
        "geometric-scale",
        "noise",
        "noise/geometric.py",
        "return np.asarray(scale * (64 * math.log(2) - np.log(v)))",
        "return np.asarray(0.95 * scale * (64 * math.log(2) - np.log(v)))",
        (NORMAL + "draws_follow_their_law_and_no_other[geometric-3.5]",),
        "There is 5 % less noise than the promise needs, and nobody sees it.",
    ),
    Mutation(
        "normal-sign",
        "noise",
        "noise/normal.py",
        "return np.where(words & np.uint64(1), -low, low)",
        "return low",
        (NORMAL + "draws_follow_their_law_and_no_other[normal-1.0]",),
        "Gaussian noise is never negative: figures are biased, and give a lower bound away.",
    ),
    Mutation(
        "binomial-centre",
        "noise",
        "noise/whole.py",
        "return out - coins // 2",
        "return out - coins // 2 + 1",
        ("noise/test_whole_noise.py::test_secret_draws_follow_their_law_and_no_other",),
        "Every answer of a server is 1 too large.",
    ),
    Mutation(
        "same-noise",
        "noise",
        "noise/keyed.py",
        'label = f"{purpose}/{index}".encode()',
        "label = purpose.encode()",
        (NOISE + "same_key_same_words_other_purpose_other_words",),
        "All parts of a table get the same noise: comparing them takes it away.",
    ),
    Mutation(
        "known-key",
        "noise",
        "noise/keyed.py",
        "return cls(secrets.token_bytes(32), simulated=False)",
        "return cls(bytes(32), simulated=False)",
        (NOISE + "a_fresh_key_is_of_the_systems_own_bytes",),
        "Everybody knows the key of every release, and can take its noise away.",
    ),
    Mutation(
        "halves-in-order",
        "noise",
        "noise/keyed.py",
        "return np.argpartition(words, count)[:count]",
        "return np.arange(count)",
        ("kinds/counts/test_conjunct_release.py::test_halves_are_halves_and_all_alike",),
        "The secret halves are the first and the last rows: who is in which is no secret.",
    ),
    Mutation(
        "order-of-rows",
        "noise",
        "kinds/views/alphabeta.py",
        'return np.sort(np.concatenate([kept, noise]), kind="stable")',
        "return np.concatenate([kept, noise])",
        (VIEWS + "the_view_is_in_the_order_of_the_domain",),
        "True rows come before those of noise: their places tell who is real.",
    ),
    Mutation(
        "a-persons-own-answer",
        "noise",
        "client/perturbation.py",
        "kept = draws.words(len(code)) < threshold(column.retention)",
        "kept = draws.words(len(code)) <= threshold(column.retention)",
        ("client/test_client_law.py::test_the_law_of_a_column_is_exact",),
        "A person's answer is kept more often than the survey promised that person.",
    ),
    # ------------------------------------------------------------------ promises
    Mutation(
        "ratio-of-a-view",
        "promises",
        "kinds/views/alphabeta.py",
        "return LikelihoodRatio(1 - a, 1 - a + a / noise if noise else None)",
        "return LikelihoodRatio(1 - a, a / noise if noise else None)",
        (PROMISE + "linked_posterior_is_what_enumeration_finds",),
        "A view states a smaller ε than it keeps.",
    ),
    Mutation(
        "sum-of-epsilons",
        "promises",
        "privacy/composition.py",
        "known = [loss.epsilon for loss in losses if loss.epsilon is not None]",
        "known = [loss.epsilon / len(losses) for loss in losses if loss.epsilon is not None]",
        ("privacy/test_composition.py::test_without_a_delta_only_pure_losses_add_up",),
        "Ten releases about a person count as one, and no limit is ever reached.",
    ),
    Mutation(
        "rho-of-marginals",
        "promises",
        "kinds/marginals/residuals.py",
        "return math.fsum(self.weight(c) / (2 * v) for c, v in self.variances.items())",
        "return math.fsum(self.weight(c) / (4 * v) for c, v in self.variances.items())",
        (MARGINALS + "residuals.py::test_rho_is_what_a_record_moves",),
        "Noisy marginals promise half of the loss that they have.",
    ),
    Mutation(
        "noise-for-large-changes",
        "promises",
        "privacy/interactive/laws.py",
        'return NoiseLaw("binomial", 2 * math.ceil(2 * variance * change.l2_squared))',
        'return NoiseLaw("binomial", 2 * math.ceil(2 * variance * change.l1))',
        ("privacy/test_interactive.py::test_a_change_widens_noise_in_proportion",),
        "Sums get the noise of counts: a person with a large value is seen in them.",
    ),
    Mutation(
        "limit-of-a-data-set",
        "promises",
        "register/accounts.py",
        "if total.epsilon > limit.epsilon * (1 + 1e-9):",
        "if total.epsilon > limit.epsilon * 2:",
        ("register/test_register.py::test_a_limit_refuses_before_anything_leaves",),
        "Releases about the same people go on leaving after the steward's limit.",
    ),
    # ------------------------------------------------------------------ ledger
    Mutation(
        "counter-stays",
        "ledger",
        "serve/ledger/sql_ledger.py",
        "self._counter.advance(head)",
        "pass",
        (BACKUPS + "a_whole_folder_put_back_is_noticed_by_a_counter_outside",),
        "Whoever puts an old ledger back asks the same again, and averages the noise away.",
    ),
    Mutation(
        "half-a-charge",
        "ledger",
        "serve/ledger/sql_ledger.py",
        'run("ROLLBACK TO SAVEPOINT job")\n        outcome = LedgerError(',
        "outcome = LedgerError(",
        (LEDGER + "what_cannot_be_written_is_refused_whole[sqlite]",),
        "Part of a question that failed is charged, and stored with answers that nobody was given.",
    ),
    Mutation(
        "half-a-refusal",
        "ledger",
        "serve/ledger/sql_ledger.py",
        'run("ROLLBACK TO SAVEPOINT job")\n        outcome = error',
        "outcome = error",
        (LEDGER + "nothing_of_a_refused_job_stays",),
        "What was refused is half done: tokens, budgets and entries that nobody meant to write.",
    ),
    Mutation(
        "clock-set-back",
        "ledger",
        "serve/ledger/sql_ledger.py",
        "self._seen = max(self._seen, time.time())",
        "self._seen = time.time()",
        (LEDGER + "setting_the_clock_back_revives_no_token[sqlite]",),
        "Setting the clock back makes expired tokens valid again.",
    ),
    Mutation(
        "one-answer-too-many",
        "ledger",
        "serve/ledger/entries.py",
        "if needed > left:",
        "if needed > left + 1:",
        (LEDGER + "the_tightest_budget_decides[sqlite]",),
        "Analysts get more answers than what the promise was computed for.",
    ),
    Mutation(
        "nobody-is-charged",
        "ledger",
        "serve/ledger/entries.py",
        "self.used += 1",
        "self.used += 0",
        (LEDGER + "the_tightest_budget_decides[sqlite]",),
        "The budget of an analyst is never used up.",
    ),
    Mutation(
        "chain-without-answers",
        "ledger",
        "serve/ledger/entries.py",
        "number, entry.key, entry.question, entry.answer, analyst, group, at]",
        "number, entry.key, entry.question, analyst, group, at]",
        (BACKUPS + "a_changed_entry_breaks_the_chain",),
        "Answers in the ledger can be changed, so that the same question gives other noise.",
    ),
    Mutation(
        "new-noise-for-old-questions",
        "ledger",
        "serve/ledger/entries.py",
        "new = [entry for key, entry in by_key.items() if key not in found]",
        "new = list(by_key.values())",
        (LEDGER + "an_entry_is_kept_with_its_answer_and_charged_once[sqlite]",),
        "A question that is asked again is charged again, or answered with new noise.",
    ),
    Mutation(
        "another-copy",
        "ledger",
        "serve/ledger/sql_ledger.py",
        "if not leads_to(run, setting, said):",
        "if False:",
        (BACKUPS + "a_copy_that_went_its_own_way_is_noticed",),
        "Two copies of a server answer apart, each with noise and budgets of its own.",
    ),
    Mutation(
        "tokens-for-ever",
        "ledger",
        "serve/ledger/accounts.py",
        "return TokenLookup(identity, expires is not None and now >= expires, revoked is not None)",
        "return TokenLookup(identity, False, revoked is not None)",
        (LEDGER + "a_token_expires_to_the_second[sqlite]",),
        "A token that has expired still asks questions about people.",
    ),
    Mutation(
        "any-secret",
        "ledger",
        "serve/ledger/accounts.py",
        "return same and kept is not None",
        "return kept is not None",
        (LEDGER + "wrong_tokens_are_nobodys[sqlite]",),
        "Who knows the public half of a token asks in its owner's name.",
    ),
    # ------------------------------------------------------------------ verification
    Mutation(
        "changed-files",
        "verification",
        "kinds/opening.py",
        "if wrong:",
        "if wrong and trust:",
        ("kinds/test_opening.py::test_verify_hashes_every_byte_whatever_is_remembered",),
        "A release whose rows were exchanged verifies.",
    ),
    Mutation(
        "number-of-rows",
        "verification",
        "kinds/verification.py",
        "if total != release.manifest.rows:",
        "if False:",
        ("kinds/test_pipeline.py::test_what_is_unsound_never_reaches_its_place",),
        "A release may state another number of rows than it has, and estimates rest on it.",
    ),
    Mutation(
        "unchecked-terms",
        "verification",
        "kinds/verification.py",
        "release.check_terms()\n        if plausible:",
        "if plausible:",
        (MARGINALS + "release.py::test_a_promise_that_the_noise_does_not_keep_is_refused",),
        "A release may promise more than its noise keeps.",
    ),
    Mutation(
        "implausible-rows",
        "verification",
        "kinds/plausibility.py",
        "if worst.log_chance + math.log(len(surprises)) < math.log(FALSE_ALARM):",
        "if worst.log_chance + math.log(len(surprises)) < -math.inf:",
        ("kinds/test_plausibility.py::test_true_rows_in_the_place_of_a_view",),
        "True rows in the place of noisy ones verify as a protected release.",
    ),
    Mutation(
        "foreign-signature",
        "verification",
        "signing/keys.py",
        "except (InvalidSignature, ValueError):\n            return False",
        "except (InvalidSignature, ValueError):\n            return True",
        (SIGNED + "any_changed_byte_shows",),
        "Anybody can sign a release in somebody else's name.",
    ),
    Mutation(
        "signature-of-another-release",
        "verification",
        "kinds/signatures.py",
        "if signature.digest != manifest.digest:",
        "if False:",
        (SIGNED + "a_signature_of_another_release_is_none",),
        "A signature under one release vouches for any other.",
    ),
    Mutation(
        "untrusted-signer",
        "verification",
        "kinds/verification.py",
        "if errors := trust.check(release).errors:",
        "if (errors := trust.check(release).errors) and False:",
        (SIGNED + "two_people_vouch",),
        "`verify` with the signer's key passes for a release that the signer never saw.",
    ),
    Mutation(
        "classes-below-k",
        "verification",
        "privacy/requirements/requirement.py",
        "return classes.rows >= self.k",
        "return classes.rows > self.k - 2",
        ("privacy/test_requirements.py::test_what_is_met_is_what_the_definition_says",),
        "A class has fewer than k people.",
    ),
    # ------------------------------------------------------------------ intervals
    Mutation(
        "noise-not-taken-off",
        "intervals",
        "kinds/views/alphabeta.py",
        "return (view - self.noise_mean * domain) / self.excess",
        "return view / self.excess",
        (
            "answering/test_answering.py::test_intervals_of_sums_and_ratios_cover_as_stated[sum-noisy]",
        ),
        "Rows of noise are counted as people.",
    ),
    Mutation(
        "variance-of-a-count",
        "intervals",
        "kinds/views/alphabeta.py",
        "return self.coins.variance(members, spread) / self.excess**2",
        "return self.coins.variance(members, spread) / self.excess",
        (VIEWS + "estimates_and_variances_of_the_oracle",),
        "Standard errors are too small, and chance is taken for a finding.",
    ),
    Mutation(
        "one-tail",
        "intervals",
        "answering/count_law.py",
        "miss = (1 - confidence) / 2",
        "miss = 1 - confidence",
        (VIEWS + "intervals_of_the_oracle",),
        "Intervals of 95 % cover the truth in 90 of 100 cases.",
    ),
    Mutation(
        "counts-of-a-model",
        "intervals",
        "answering/count_law.py",
        "reach = NormalDist().inv_cdf((1 + level) / 2) * np.sqrt(spread)",
        "reach = NormalDist().inv_cdf(level) * np.sqrt(spread)",
        (MARGINALS + "errors.py::test_intervals_cover_counts_that_scatter_more_than_poisson",),
        "Counts of refined views and marginals have intervals that are too narrow.",
    ),
    Mutation(
        "sums-of-marginals",
        "intervals",
        "kinds/marginals/answering.py",
        "return np.asarray(-NormalDist().inv_cdf(miss / 2) * np.sqrt(square))",
        "return np.asarray(-NormalDist().inv_cdf(miss) * np.sqrt(square))",
        (MARGINALS + "answering.py::test_intervals_are_as_wide_as_their_confidence_says",),
        "Averages from noisy marginals have intervals that are too narrow.",
    ),
    Mutation(
        "cells-of-marginals",
        "intervals",
        "kinds/marginals/residuals.py",
        "total += self.variances[c] * self.weight(c) / rest**2",
        "total += self.variances[c] * self.weight(c) / rest",
        (MARGINALS + "residuals.py::test_variances_of_cells_are_those_of_the_matrix",),
        "Tables say that they are off by more than they are, or are chosen badly.",
    ),
    Mutation(
        "bias-twice",
        "intervals",
        "answering/nonlinear.py",
        "middle = self.value - self.bias + self.lean * (z**2 + 1)",
        "middle = self.value + self.bias + self.lean * (z**2 + 1)",
        ("answering/test_binned.py::test_the_interval_of_a_square_is_that_of_its_root_squared",),
        "Intervals of roots, squares and correlations lie beside the truth.",
    ),
)


# ---------------------------------------------------------------------- trying them


@dataclass(frozen=True)
class Trial:
    """What some tests did."""

    code: int
    seconds: float
    output: str

    @property
    def failed(self) -> str:
        """The test that failed, if one did."""
        lines = [line for line in self.output.splitlines() if line.startswith("FAILED ")]
        return lines[0].removeprefix("FAILED ").split(" - ")[0] if lines else ""


class SourceCopy:
    """A copy of the package that tests import in the place of the installed one."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._changes = 0
        shutil.copytree(SOURCE, folder / "voile", ignore=shutil.ignore_patterns("*.nb[ci]"))
        found = self._python("-c", "import voile; print(voile.__file__)").output.strip()
        if Path(found).resolve() != (folder / "voile" / "__init__.py").resolve():
            raise MutationError(f"tests would import {found!r} and not the copy in {str(folder)!r}")

    def control(self, mutations: Sequence[Mutation]) -> Trial:
        """The tests of these mutations, of which none is made: they must pass."""
        done = self._tested(sorted({test for one in mutations for test in one.tests}))
        if done.code != PASSED:
            raise MutationError(f"tests fail or are not there without a mutation:\n{done.output}")
        return done

    def tried(self, mutation: Mutation) -> Trial:
        """Its tests while it is made: FAILED if it is caught, PASSED if it survives."""
        file = self.folder / "voile" / mutation.file
        whole, state = file.read_bytes(), file.stat()
        try:
            file.write_bytes(mutation.broken(whole.decode("utf-8")).encode("utf-8"))
            # Python takes bytecode for new if seconds and sizes agree: no two changes share both.
            self._changes += 1
            os.utime(file, (state.st_atime, state.st_mtime + self._changes))
            done = self._tested(mutation.tests)
        finally:
            file.write_bytes(whole)
            os.utime(file, ns=(state.st_atime_ns, state.st_mtime_ns))
        if done.code not in (PASSED, FAILED):
            raise MutationError(f"{mutation.name}: its tests cannot be run:\n{done.output}")
        return done

    def _tested(self, tests: Sequence[str]) -> Trial:
        options = ("-x", "-q", "--tb=short", "-p", "no:cacheprovider", "-n", "0")
        return self._python("-m", "pytest", *options, *(f"tests/{test}" for test in tests))

    def _python(self, *arguments: str) -> Trial:
        start = time.monotonic()
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("PYTEST_", "VOILE_", "PYTHON"))
        }
        # Loops that Numba compiled from one source must not be run for another.
        with tempfile.TemporaryDirectory(prefix="voile-numba-") as compiled:
            try:
                done = subprocess.run(
                    [sys.executable, *arguments],
                    cwd=ROOT,
                    env=kept | {"PYTHONPATH": str(self.folder), "NUMBA_CACHE_DIR": compiled},
                    capture_output=True,
                    encoding="utf-8",
                    timeout=PATIENCE,
                    check=False,
                )
            except subprocess.TimeoutExpired:
                raise MutationError(f"{arguments[-1]} took more than {PATIENCE:g} s") from None
        return Trial(done.returncode, time.monotonic() - start, done.stdout + done.stderr)


# ---------------------------------------------------------------------- the page


INTRODUCTION = """# What the tests would notice

A test that passes whatever the code does proves nothing. So central lines of Voile are broken on
purpose, one at a time, and a test must fail. This is the list: the line, what replaces it, what
would go wrong for people, and the test that notices. `make test` tries a sample of the list, and
`make soak` tries all of it. To try some yourself, in a clone:

```sh
.venv/bin/python tools/mutate.py one-tail known-key
```

This page is generated: see `tools/mutate.py`.
"""


def page() -> str:
    """A section for each area, and in it a paragraph for each mutation."""
    parts = [INTRODUCTION]
    for area in dict.fromkeys(one.area for one in MUTATIONS):
        parts += [f"## {area.capitalize()}\n"]
        parts += [described(one) for one in MUTATIONS if one.area == area]
    return "\n".join(parts)


def described(mutation: Mutation) -> str:
    """One mutation: what it does to people, the change, and who notices."""
    noticed = ", ".join(
        f"`{name}` of `tests/{file}`"
        for file, name in (test.split("::") for test in mutation.tests)
    )
    return "\n".join(
        [
            f"### {mutation.name}\n",
            f"{mutation.harm}\n",
            "```diff",
            f" src/voile/{mutation.file}",
            *(f"- {line.strip()}" for line in mutation.text.splitlines()),
            *(f"+ {line.strip()}" for line in mutation.instead.splitlines()),
            "```\n",
            f"{fill(f'Noticed by {noticed}.', 100, break_on_hyphens=False)}\n",
        ]
    )


# ---------------------------------------------------------------------- the command


def chosen(names: Sequence[str]) -> list[Mutation]:
    """The mutations of these names, or all."""
    known = {one.name: one for one in MUTATIONS}
    if unknown := [name for name in names if name not in known]:
        raise MutationError(f"there is no mutation {unknown[0]!r}; --list names them")
    return [known[name] for name in names] or list(MUTATIONS)


def report(mutations: Sequence[Mutation], *, aloud: bool) -> dict[str, Any]:
    """Try them all and say what became of each."""
    found: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="voile-mutations-") as name:
        copy = SourceCopy(Path(name))
        copy.control(mutations)
        for one in mutations:
            done = copy.tried(one)
            found.append(
                {"name": one.name, "file": one.file, "caught": done.code == FAILED,
                 "by": done.failed, "seconds": round(done.seconds, 1)}
            )  # fmt: skip
            if aloud:
                verdict = f"caught by {done.failed}" if done.failed else "SURVIVES"
                print(f"{one.name:28} {done.seconds:5.1f} s  {verdict}", flush=True)
    survivors = [one["name"] for one in found if not one["caught"]]
    return {"tried": len(found), "survivors": survivors, "mutations": found}


def main() -> int:
    """Try mutations and print what became of them: 1 if one survives, 2 if one cannot be tried."""
    arguments = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    arguments.add_argument("names", nargs="*", metavar="NAME", help="all, if none is named")
    arguments.add_argument("--list", action="store_true", help="name them and do nothing")
    arguments.add_argument("--json", action="store_true", help="print what became of them as JSON")
    given = arguments.parse_args()
    try:
        mutations = chosen(given.names)
        if given.list:
            for one in mutations:
                print(f"{one.name:28} {one.area:13} {one.harm}")
            return 0
        found = report(mutations, aloud=not given.json)
    except MutationError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    summary = f"{found['tried']} tried, {len(found['survivors'])} survive"
    print(json.dumps(found, indent=2) if given.json else summary)
    return 1 if found["survivors"] else 0


if __name__ == "__main__":
    sys.exit(main())
