"""A server that answers a bounded number of noisy counts about a table, and never one more."""
