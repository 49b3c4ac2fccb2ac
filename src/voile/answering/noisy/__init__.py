"""Answers from noisy totals: a server's, whose noise is known and independent."""
