"""What is in these votes, and what stands in the way of using them: the diagnosis before a fit."""

from isplitlbi.diagnostics.findings import Diagnosis, Finding, Severity

__all__ = ["Diagnosis", "Finding", "Severity"]
