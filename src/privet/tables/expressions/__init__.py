"""Expressions over one row: `nodes` are what they are, `fluent` how Python writes them, `rendering` how they look."""
