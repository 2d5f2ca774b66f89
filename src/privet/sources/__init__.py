"""Where rows come from: files, frames and databases, checked against the declaration before any question.

This is for the steward. An analyst never sees a source, and no later answer depends on how it was read.
"""

from privet.sources.importing import import_csv
from privet.sources.private import duckdb_file, table
from privet.sources.public import keys_from, public_table
from privet.sources.report import ImportReport

__all__ = ["ImportReport", "duckdb_file", "import_csv", "keys_from", "public_table", "table"]
