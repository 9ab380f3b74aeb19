"""What a fit found out about itself."""

from thirdmoment.report.findings import Finding
from thirdmoment.report.report import Report, moment_findings

__all__ = ["Finding", "Report", "moment_findings"]
