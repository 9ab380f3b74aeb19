"""What a fit found out about itself."""

from thirdmoment.report.report import Report, Thresholds, moment_warnings

__all__ = ["Report", "Thresholds", "moment_warnings"]
