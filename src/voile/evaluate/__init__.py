"""How close the estimates from a release come to the counts of the private table."""
