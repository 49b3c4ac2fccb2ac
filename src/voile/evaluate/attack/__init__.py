"""What someone who is after certain people learns from a release, exactly."""

from voile.evaluate.attack.carry_out import attack
from voile.evaluate.attack.guessing import GuessedBelief, guess_value
from voile.evaluate.attack.left_out import LeftOutAttack, attack_left_out

__all__ = ["GuessedBelief", "LeftOutAttack", "attack", "attack_left_out", "guess_value"]
