"""Results for people: a page to look at, and a demonstration."""

from voxpop.report.demo import DemoResult, run_demo
from voxpop.report.html import html_page, html_report

__all__ = ["DemoResult", "html_page", "html_report", "run_demo"]
