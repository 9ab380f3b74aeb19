"""The report as HTML for notebooks: the verdict, what to do, and two small pictures."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

import numpy as np

from thirdmoment.report.findings import STABLE
from thirdmoment.report.labels import shown
from thirdmoment.report.plot import ACCENT, INK, PALE

if TYPE_CHECKING:
    from thirdmoment.report.report import Report

COLOURS = {"good": "#2e8b6f", "care": "#b7791f", "grave": ACCENT, "unknown": "#5b6470"}

WIDTH, HEIGHT = 320, 110


def report_html(report: Report) -> str:
    """A few lines and two pictures, which need no script and no style sheet."""
    colour = COLOURS[report.level]
    first, *rest = str(report).split("\n")
    lines = "".join(f"<li>{escape(line)}</li>" for line in rest)
    pictures = _trust(report) + _spectrum(report)
    numbers = escape(report.full())
    return (
        f'<div style="border-left:4px solid {colour};padding:4px 12px;max-width:52em">'
        f'<p style="margin:4px 0"><strong style="color:{colour}">{escape(first)}</strong></p>'
        f'<ul style="margin:4px 0;padding-left:1.2em">{lines}</ul>'
        f'<div style="display:flex;gap:24px;flex-wrap:wrap">{pictures}</div>'
        f"<details><summary>Everything that was measured</summary>"
        f'<pre style="white-space:pre-wrap;font-size:85%">{numbers}</pre></details></div>'
    )


def _picture(title: str, inside: str) -> str:
    return (
        f'<figure style="margin:6px 0"><figcaption style="font-size:85%">{escape(title)}'
        f'</figcaption><svg width="{WIDTH}" height="{HEIGHT}" role="img" '
        f'aria-label="{escape(title)}">{inside}</svg></figure>'
    )


def _line(y: float) -> str:
    return (
        f'<line x1="0" x2="{WIDTH}" y1="{y:.1f}" y2="{y:.1f}" stroke="{ACCENT}" '
        'stroke-dasharray="4 3"/>'
    )


def _trust(report: Report) -> str:
    """A bar for each component, and the line below which one is not stable."""
    trust = report.trust
    if not len(trust) or np.isnan(trust).all():
        return ""
    step = WIDTH / len(trust)
    bars = [
        f'<rect x="{j * step:.1f}" y="{HEIGHT * (1 - value):.1f}" width="{max(0.7 * step, 1):.1f}" '
        f'height="{HEIGHT * value:.1f}" fill="{INK if value >= STABLE else ACCENT}">'
        f"<title>{escape(shown(report.name(j)))}: {value:.2f}</title></rect>"
        for j, value in enumerate(np.nan_to_num(trust))
    ]
    title = f"Trust of each {report.about.noun} (dashed: stable from here on)"
    return _picture(title, "".join(bars) + _line(HEIGHT * (1 - STABLE)))


def _spectrum(report: Report) -> str:
    """Eigenvalues of the second moment on a logarithmic scale, and the sampling noise."""
    values = report.spectrum[report.spectrum > 0]
    if not len(values):
        return ""
    logs = np.log10(values)
    noise = float(np.log10(report.noise)) if report.noise > 0 else float(logs.min())
    low, high = min(noise, float(logs.min())) - 0.1, float(logs.max()) + 0.1
    place = (HEIGHT - 4) * (high - logs) / (high - low) + 2
    step = WIDTH / len(values)
    dots = [
        f'<circle cx="{(j + 0.5) * step:.1f}" cy="{y:.1f}" r="3" '
        f'fill="{INK if j < report.n_components else PALE}"><title>{value:.3g}</title></circle>'
        for j, (y, value) in enumerate(zip(place, values, strict=True))
    ]
    line = _line((HEIGHT - 4) * (high - noise) / (high - low) + 2) if report.noise > 0 else ""
    return _picture("Spectrum of the second moment (dashed: sampling noise)", "".join(dots) + line)
