"""Commands that attack: what an adversary learns, and whether a mechanism keeps its word."""
