"""Where rows come from: files, frames and databases, checked against the declaration before any question.

This is for the steward. An analyst never sees a source, and no later answer depends on how it was read.
"""

from privet.sources.csv.importing import import_csv
from privet.sources.csv.report import ImportReport
from privet.sources.private import duckdb_file, table
from privet.sources.public import keys_from, public_table

__all__ = ["ImportReport", "duckdb_file", "import_csv", "keys_from", "public_table", "table"]
