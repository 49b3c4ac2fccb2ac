"""Commands before publishing: what can be had, and what is impossible."""
