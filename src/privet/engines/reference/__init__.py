"""A slow, obvious engine: it computes row by row, in Python, what others compute in SQL."""
