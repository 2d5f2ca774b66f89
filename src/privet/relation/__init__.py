"""Declared tables, total expressions over their rows, person-local operators, and what can be asked of groups."""
