"""Kinds of releases, Voile's own and those of others."""
