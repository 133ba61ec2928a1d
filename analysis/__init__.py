"""From recorded runs to tables, figures and the report.

from analysis import runs
"""

from analysis.records import histories, planned, runs

__all__ = ["histories", "planned", "runs"]
