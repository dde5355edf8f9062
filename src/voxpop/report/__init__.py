"""Results for people: a page to look at, and a demonstration."""

from voxpop.report.html import html_page, html_report

__all__ = ["html_page", "html_report"]
