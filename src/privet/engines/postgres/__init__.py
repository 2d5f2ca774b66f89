"""Postgres, asked where the rows are: its types, its dialect of SQL, its connections, its tables, and the engine."""
