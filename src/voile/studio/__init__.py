"""Voile Studio: from a table to a defended release in a browser, on one's own machine.

Server-rendered pages that call the public Python interface and compute nothing themselves.
"""
