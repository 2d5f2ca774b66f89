"""CSV files, imported once and strictly into Parquet."""
