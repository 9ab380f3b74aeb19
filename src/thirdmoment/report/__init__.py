"""What a fit found out about itself."""

from thirdmoment.report.build import Judged
from thirdmoment.report.findings import About, Finding
from thirdmoment.report.report import Report, moment_findings

__all__ = ["About", "Finding", "Judged", "Report", "moment_findings"]
