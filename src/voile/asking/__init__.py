"""Asking servers: a client, and statistics of people whose columns lie on several servers."""
