"""The only source of randomness: keyed streams and exact samplers."""

from voile.noise.gaps import Bernoulli, Gaps
from voile.noise.keyed import Key, Stream

__all__ = ["Bernoulli", "Gaps", "Key", "Stream"]
