"""DuckDB, embedded: the engine for one machine, and the only package that imports duckdb."""
