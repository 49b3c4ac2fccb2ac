"""Which release to publish: many methods on two axes, and what none of them can go below."""

from voile.evaluate.frontier.finding import find_frontier, frontier
from voile.evaluate.frontier.measuring import Showing, measure, showings
from voile.evaluate.frontier.optimum import Certified, CertifiedFrontier, certify
from voile.evaluate.frontier.point import Point
from voile.evaluate.frontier.portfolio import Candidate, candidates
from voile.evaluate.frontier.result import Frontier
from voile.evaluate.frontier.subject import Subject, read_subject

__all__ = [
    "Candidate", "Certified", "CertifiedFrontier", "Frontier", "Point", "Showing", "Subject",
    "candidates", "certify", "find_frontier", "frontier", "measure", "read_subject", "showings",
]  # fmt: skip
