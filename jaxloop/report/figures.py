"""What all figures share: colors, marks, and rendering without a screen.

The colors are those of Okabe and Ito, which people with any color vision can tell apart; series differ by mark, line
style or hatching too.
"""

from collections.abc import Callable
from io import BytesIO
from typing import Any

from .._errors import Diagnostic, Place, SpecError

BLUE, ORANGE, GREEN, PURPLE, SKY, GRAY = "#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#999999"
VERMILION, BLACK = "#D55E00", "#000000"
COLORS = (BLUE, VERMILION, GREEN, ORANGE, PURPLE, SKY, BLACK, GRAY)
MARKS = ("o", "s", "^", "D", "v", "p", "X", "<")
LINES = ("-", "--", "-.", ":")
HATCHES = ("", "//", "..", "\\\\", "xx", "", "--", "++")
DOTS_PER_INCH = 160
REMEDY = "pip install 'jaxloop[plot]'"


def render(draw: Callable[[Any], None], place: str = "plots", remedy: str = REMEDY) -> dict[str, bytes]:
    """The figure as files: `{"png": ..., "svg": ...}`. The same numbers give the same bytes.

    **Arguments:** `draw` fills an empty matplotlib `Figure`. `place`, `remedy`: what an error says.

    **Raises:** `SpecError` where matplotlib is not installed.
    """
    try:
        import matplotlib
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        message = "figures need matplotlib, which is not installed"
        raise SpecError([Diagnostic(Place(place), message, remedy)]) from None
    style: Any = {"font.size": 10, "axes.spines.top": False, "axes.spines.right": False, "hatch.linewidth": 0.5}
    style |= {"svg.hashsalt": "jaxloop", "axes.axisbelow": True}
    with matplotlib.rc_context(style):
        figure = Figure(layout="constrained")
        FigureCanvasAgg(figure)
        draw(figure)
        files = {}
        for kind, metadata in (("png", {"Software": None}), ("svg", {"Date": None, "Creator": None})):
            buffer = BytesIO()
            figure.savefig(buffer, format=kind, dpi=DOTS_PER_INCH, metadata=metadata)
            files[kind] = buffer.getvalue()
    return files
