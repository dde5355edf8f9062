"""Figures as inline SVG that take their colours and their font from the page, so they follow light and dark."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from voxpop.results import plots

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_ON_PAGE: Mapping[str, str] = MappingProxyType(
    {
        plots.INK: "var(--ink)",
        plots.FAINT: "var(--faint)",
        plots.GRID: "var(--line)",
        plots.ACCENT: "var(--accent)",
        plots.COLOURS["yes"]: "var(--good)",
        plots.COLOURS["unclear"]: "var(--unclear)",
        plots.COLOURS["worse"]: "var(--bad)",
        "#ffffff": "var(--on-accent)",
    }
)
_NOT_NEEDED = re.compile(
    r"<metadata>.*?</metadata>|<style.*?</style>|<defs>\s*</defs>"  # the page has its own style
    r'| xmlns(:\w+)?="[^"]*"| version="[^"]*"| id="[a-zA-Z.]+_\d+"| transform="rotate\(-0 [^"]*"'
    r"|(?<=px;) font-family: [^;]*;",
    re.DOTALL,
)
_SIZE = re.compile(r' (width|height)="[^"]*"')


def figure(draw: Callable[[Axes], object], about: str, width: float = 4.6, height: float = 3.2) -> str:
    """What ``draw`` draws, as an <svg> element with ``about`` as its text for those who cannot see it."""
    ax = plots.new_axes(width, height)
    draw(ax)
    return _inline(_svg(ax, about), about)


def _svg(ax: Axes, salt: str) -> str:
    import matplotlib

    out = io.StringIO()
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": salt}), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing")  # the reader's fonts draw the letters, not matplotlib's
        ax.figure.savefig(out, format="svg", transparent=True, dpi=150, metadata={"Date": None})  # type: ignore[union-attr]
    return out.getvalue()


def _inline(svg: str, about: str) -> str:
    from markupsafe import escape

    svg = _NOT_NEEDED.sub("", svg[svg.index("<svg") :])
    svg = _SIZE.sub("", svg, count=2)  # of the whole: the page decides, the viewBox keeps the shape
    for colour, name in _ON_PAGE.items():
        svg = svg.replace(colour, name)
    return svg.replace("<svg", f'<svg role="img" aria-label="{escape(about)}"', 1)
