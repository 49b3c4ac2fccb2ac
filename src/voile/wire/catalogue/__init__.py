"""PostgreSQL's own catalogues, as its clients ask for them: tables in memory, and their words."""
