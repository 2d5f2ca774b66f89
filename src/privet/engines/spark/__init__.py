"""Spark: the plan runs where the rows are, in a session of this process or through Spark Connect."""
