"""What every engine owes: one suite, run for each engine that is registered."""
