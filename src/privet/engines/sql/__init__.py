"""Statements as SQL, for every database: a dialect fills in what differs."""
