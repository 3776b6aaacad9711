"""What a run found, for readers: tables, an HTML page, and a comparison of two runs."""

from mezzotint.bench.report.page import write
from mezzotint.bench.report.tables import table

__all__ = ["table", "write"]
