"""Judging implementations: ``check`` and ``assert_conforms``."""

from .check import assert_conforms, check, scenarios
from .judge import Failure
from .report import Report, Result

__all__ = ["Failure", "Report", "Result", "assert_conforms", "check", "scenarios"]
