"""PostgreSQL's wire protocol, version 3: releases and servers answer in tools that speak it.

What comes over the network is hostile until a token has proved otherwise, and bounded afterwards.
What a question may be, and what it costs, is decided by `voile.dbapi` alone.
"""
