"""Which release to publish: many methods on two axes, and what none of them can go below."""

from voile.evaluate.frontier.measuring import Showing, measure, showings
from voile.evaluate.frontier.mixture import Certified, CertifiedFrontier, certify
from voile.evaluate.frontier.portfolio import Candidate, Point, candidates
from voile.evaluate.frontier.result import Frontier, find_frontier, frontier
from voile.evaluate.frontier.subject import Subject, read_subject

__all__ = [
    "Candidate", "Certified", "CertifiedFrontier", "Frontier", "Point", "Showing", "Subject",
    "candidates", "certify", "find_frontier", "frontier", "measure", "read_subject", "showings",
]  # fmt: skip
