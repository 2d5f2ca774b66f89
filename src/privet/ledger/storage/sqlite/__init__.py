"""A ledger in a file, with SQLite."""
