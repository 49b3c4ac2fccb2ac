"""What servers share: refusals, limits, addresses, group commits and SQLite files."""
