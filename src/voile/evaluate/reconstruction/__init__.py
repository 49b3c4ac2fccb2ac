"""Dinur and Nissim's attack: a secret column from noisy counts of random subsets of the rows."""
