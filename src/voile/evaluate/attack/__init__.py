"""What someone who is after certain people learns from a release, exactly."""

from voile.evaluate.attack.carry_out import attack

__all__ = ["attack"]
