"""DuckDB, embedded: its types, its dialect of SQL, how it reads sources, and the engine."""
