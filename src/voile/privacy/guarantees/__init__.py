"""Promises as data, their spelling, and the theorems between them."""
