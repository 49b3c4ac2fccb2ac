"""What someone who is after certain people learns from a release, exactly."""

from voile.evaluate.attack.carry_out import attack
from voile.evaluate.attack.guessing import GuessedBelief, guess_value

__all__ = ["GuessedBelief", "attack", "guess_value"]
