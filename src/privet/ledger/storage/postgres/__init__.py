"""A ledger in Postgres."""
